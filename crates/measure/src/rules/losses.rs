//! Rules about queries without a response: outages, late responses, full buffers, blocked slots.

use super::connections::handshakes;
use super::finding::Finding;
use super::generator::{LOOK_AT_INTERFACE, LOOK_AT_RULES, resources};
use super::host::cpus_for_target;
use super::path::{long_segments, who_rejects};
use super::phrases::{
    MORE_QUOTA, larger_server_buffers, lift_rate_limits, list, lower_rate, path_to_target, plain,
    rate_below_limit, smaller_answers,
};
use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::notation::{count, counted, decimal, latency, percent, rate, share};
use crate::scenario::{Arrival, Transport, Transports};
use crate::symptoms::generator::sends_are_forbidden;
use crate::symptoms::losses::{
    Outages, RateLimited, SignOfLoad, StalledConnections, UnclearOutages, number_lost,
};
use crate::symptoms::losses_by_name::large_edns_size;
use crate::symptoms::server::ServerQueriesDropped;
use crate::symptoms::{Figures, Symptoms};
use crate::timeline::OutageKind;

/// Of the rate asked for, one that shows whether the share lost depends on it.
const ANOTHER: f64 = 0.5;
/// So long a run shows that as many queries are answered each second.
const RUN_NS: u64 = 10_000_000_000;
/// How much longer to wait for late responses.
const LONGER: u64 = 4;
/// From this share of the lost queries on, they were those of the first burst.
const OF_BURST: f64 = 0.9;
/// Share of the queries that a full buffer left in circulation that certainly fits into it.
const FITTING: f64 = 0.5;

pub(super) fn losses_of_one_agent(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.losses_of_one_agent.as_ref()?;
    let name = symptoms.figures.record.agent_on_node(it.agent);
    let which = match it.lost == it.lost_of_all {
        true => format!("all of the {} were", counted_lost(it.lost)),
        false => format!(
            "{} of the {} were",
            count(it.lost),
            counted_lost(it.lost_of_all)
        ),
    };
    let others = match it.others {
        1 => "the other agent".to_owned(),
        number => format!("the other {number} agents"),
    };
    let seen = format!("{which} agent {name}'s: its link or its host, not the server");
    let matters = format!("{others} sent to the same target and lost hardly any");
    let cure = "look there for drops (ip -s link; throng doctor), or leave it out of --hosts";
    let diagnosis = Diagnosis::new("agents", State::Problem, seen, matters);
    Some(diagnosis.cure(Cure::words(cure)).into())
}

fn counted_lost(number: u64) -> String {
    match number {
        1 => "1 lost query".to_owned(),
        number => format!("{} lost queries", count(number)),
    }
}

pub(super) fn outages_of_target(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = &symptoms.outages_of_target.as_ref()?.0;
    // Queries that it counted as dropped are no outage.
    let dropped = symptoms.server_queries_dropped.as_ref();
    let is_known = it.may_be_limit && dropped.is_some_and(ServerQueriesDropped::explain_losses);
    (!is_known).then(|| outage(symptoms, it))
}

pub(super) fn outages_of_network(symptoms: &Symptoms<'_>) -> Option<Finding> {
    Some(outage(symptoms, &symptoms.outages_of_network.as_ref()?.0))
}

pub(super) fn outages_of_generator(symptoms: &Symptoms<'_>) -> Option<Finding> {
    Some(outage(symptoms, &symptoms.outages_of_generator.as_ref()?.0))
}

/// Spans in which nothing came back, each with its beginning, its end and its kind. The rate
/// outside of them is what the run sustained; no rate is advised for the sake of them.
fn outage(symptoms: &Symptoms<'_>, outages: &Outages) -> Finding {
    let figures = &symptoms.figures;
    let mut seen = longest(outages, symptoms);
    if outages.alike > 0 {
        seen.push_str(&format!(
            "; with {} similar ones, {} in all",
            count(outages.alike),
            seconds(outages.alike_ns)
        ));
    }
    if figures.outages.omitted > 0 {
        let omitted = count(figures.outages.omitted);
        seen.push_str(&format!("; {omitted} shorter ones are not in the record"));
    }
    seen.push_str(&outside(figures));
    let matters = match outages.longest.kind {
        OutageKind::OwnFreeze => {
            "what a stalled generator sends late is answered late: latencies and losses of that \
                time are its own"
        }
        OutageKind::NoResources => {
            "clients without a connection send nothing, which says nothing about the target"
        }
        OutageKind::Unsendable => "what never left this host says nothing about the target",
        _ if outages.may_be_limit => {
            "a target that stops and a limit on the rate look the same here: a lower rate avoids \
                the limit alone"
        }
        _ => {
            "an outage is not overload: a lower rate does not prevent it, and percentiles of the \
                whole run mix two states"
        }
    };
    let diagnosis = Diagnosis::new("outage", State::Problem, seen, matters);
    let cures = cures_of_outage(symptoms, outages);
    diagnosis.cures(cures).into()
}

/// A target that fell behind until no response came in time.
pub(super) fn timeout_outgrown(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.timeout_outgrown.as_ref()?, &symptoms.figures);
    let counts = figures.counts;
    let seen = format!(
        "latency grew to {}, and from {} on responses came after the timeout of {} ({} of the {} \
         that timed out): the target fell behind",
        latency(it.latency_ns),
        seconds(it.from_ns),
        latency(figures.record.scenario.timeout_ns as f64),
        share(counts.late, counts.timeouts),
        counted(counts.timeouts, "query")
    );
    let matters = "a queue that outgrows the timeout looks like an outage: the target answers all \
                   the time, but queries that were given up";
    let answered_qps = (counts.responses + counts.late) as f64 / figures.window_s;
    let diagnosis = Diagnosis::new("queue", State::Problem, seen, matters);
    let advice = rate_below_limit(answered_qps);
    Some(diagnosis.cure(Cure::words(advice)).into())
}

/// An instant or a length, to 10 ms.
fn seconds(ns: u64) -> String {
    format!("{} s", decimal(ns as f64 / 1e9, 2))
}

fn longest(outages: &Outages, symptoms: &Symptoms<'_>) -> String {
    let figures = &symptoms.figures;
    let outage = &outages.longest;
    let who = match outage.kind {
        OutageKind::Unsendable if sends_are_forbidden(figures) => {
            "a firewall rule of this host forbade what it sent (nftables or iptables, output)"
        }
        kind => kind.words(),
    };
    let until = match outage.lasts {
        true => "the end".to_owned(),
        false => seconds(outage.end_ns),
    };
    let (what, why) = match (&symptoms.stalled_connections, &symptoms.unclear_outages) {
        (Some(it), _) => ("no response for", after_losses(it)),
        (None, Some(it)) => ("no response for", stopped_or_waited(it)),
        (None, None) if outages.may_be_limit => (
            "no response for",
            ": the target was down, or answers nothing while a limit on the rate is exceeded (RRL)"
                .to_owned(),
        ),
        (None, None) => ("an outage of", String::new()),
    };
    let mut text = format!(
        "{what} {}: from {} to {until} of the run {who}{why}",
        seconds(outage.length_ns()),
        seconds(outage.begin_ns)
    );
    if figures.outstanding.is_none() {
        text.push_str(&format!(
            "; of {} due in it, {} got no response",
            counted(outage.due, "query"),
            count(outage.lost)
        ));
    }
    text
}

/// What silence may be of a target that waited for its CPU at some time.
fn stopped_or_waited(it: &UnclearOutages) -> String {
    let waited = decimal(it.waited, 2);
    match it.is_quota {
        true => format!(
            ": the target stopped, or its CPU quota stopped it, as it did for {waited} s in each \
             second of the run"
        ),
        false => format!(
            ": the target stopped, or other processes kept it from its CPU, for which it waited \
             {waited} s in each second of the run"
        ),
    }
}

/// What silence over TCP may be that follows losses.
fn after_losses(it: &StalledConnections) -> String {
    let unacknowledged = match it.unacknowledged {
        0 => String::new(),
        number => format!(
            ", and {} got no acknowledgement either",
            counted(number, "connection")
        ),
    };
    format!(
        ", after {} of the earlier queries had been lost{unacknowledged}: the path drops long \
         segments, so that connections stall one by one, or the target was down, or answers \
         nothing while a limit on the rate is exceeded",
        share(it.lost, it.due)
    )
}

/// The rate sustained without them.
fn outside(figures: &Figures<'_>) -> String {
    let outside = &figures.outages.outside;
    if outside.due == 0 {
        return String::new();
    }
    format!(
        "; outside of it {} were answered, {} of the queries lost",
        rate(outside.responses_qps),
        share(outside.lost, outside.due)
    )
}

fn cures_of_outage(symptoms: &Symptoms<'_>, outages: &Outages) -> Vec<Cure> {
    let outage = &outages.longest;
    let started_at = &symptoms.figures.record.started_at;
    match outage.kind {
        OutageKind::OwnFreeze => vec![
            Cure::busiest_processes(),
            Cure::words("run again where nothing suspends or starves this tool"),
        ],
        OutageKind::Unsendable => match sends_are_forbidden(&symptoms.figures) {
            true => vec![Cure::shell(LOOK_AT_RULES)],
            false => vec![Cure::shell(LOOK_AT_INTERFACE)],
        },
        OutageKind::NoResources => {
            let it = symptoms.no_resources.as_ref();
            it.map_or_else(Vec::new, |it| resources(&symptoms.figures, it.are_ports))
        }
        OutageKind::Handshakes => handshakes(symptoms),
        OutageKind::Silence if symptoms.rejected_outages.is_some() => vec![who_rejects()],
        _ => {
            let log = Cure::words(format!(
                "check why the target stopped: its log at {} after {started_at}, restarts, \
                 reloads, pauses of its process",
                seconds(outage.begin_ns)
            ));
            if symptoms.stalled_connections.is_some() {
                let target = &symptoms.figures.record.scenario.target;
                return long_segments(target).into_iter().chain([log]).collect();
            }
            let limits = outages.may_be_limit.then(lift_rate_limits);
            let is_short = symptoms.figures.record.measured_ns < RUN_NS;
            let longer = (outages.may_be_limit && is_short).then(|| {
                Cure::words(
                    "run longer, in an open loop: --rate with --duration 10s; of a limit on the \
                     rate, as many queries are answered each second",
                )
            });
            let limits = limits.into_iter().flatten();
            let cpus = symptoms.unclear_outages.as_ref();
            let cpus = cpus.map(|it| match it.is_quota {
                true => Cure::words(MORE_QUOTA),
                false => cpus_for_target(),
            });
            let each = [log].into_iter().chain(cpus).chain(longer);
            each.chain(limits).collect()
        }
    }
}

pub(super) fn late_responses(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let counts = symptoms.figures.counts;
    let timeout_ns = symptoms.figures.record.scenario.timeout_ns;
    let seen = format!(
        "{} came after the timeout of {} ({} of the queries that timed out): the target answers, \
            but too late",
        counted(counts.late, "response"),
        latency(timeout_ns as f64),
        share(counts.late, counts.timeouts)
    );
    let matters = "a query that times out is lost, even if a response comes later: latency beyond \
        the timeout is not in the figures";
    let longer = timeout_ns.saturating_mul(LONGER);
    let cure = Cure::throng(format!("--timeout {}ms", longer.div_ceil(1_000_000)));
    let diagnosis = Diagnosis::new("timeout", State::Problem, seen, matters);
    Some(diagnosis.cure(cure).into())
}

pub(super) fn target_receive_drops(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.target_receive_drops.as_ref()?;
    let seen = format!(
        "receive buffers on this host that are not this tool's dropped {}: the target, or \
         a server behind it, did not read them in time",
        counted(it.drops, "datagram")
    );
    let matters = "queries that its sockets had no room for are lost: it reads too slowly, or in \
                   bursts";
    let topic = "receive buffers of the target";
    let diagnosis = Diagnosis::new(topic, State::Warning, seen, matters)
        .cures(larger_server_buffers())
        .cure(Cure::words(
            "give each of its threads a socket of its own (BIND: reuseport yes; and named -n \
             THREADS; Unbound: so-reuseport: yes and num-threads)",
        ));
    Some(diagnosis.into())
}

/// `0.20 % of the offered queries`, of those that were lost.
pub(super) fn share_lost(figures: &Figures<'_>) -> String {
    let lost = share(number_lost(figures), figures.counts.offered);
    format!("{lost} of the offered queries")
}

/// What the times of responses say of a queue that all of them waited in.
fn no_queue(figures: &Figures<'_>) -> String {
    let service = &figures.record.total.distributions.service;
    let [p10, p50] = [0.1, 0.5].map(|p| service.percentile(p).unwrap_or(0));
    let shortest = figures.path_ns.unwrap_or(p50);
    let [fast, half, least] = [p10, p50, shortest].map(|ns| latency(ns as f64));
    match p50 < 2 * shortest {
        true => format!("p50 {half} and the shortest {least} leave no room for a queue"),
        false => format!(
            "the shortest took {least}, a tenth no longer than {fast}, half of them up to {half}, \
             and a queue would delay all"
        ),
    }
}

/// A server whose median takes that much longer than the path may have asked others.
const UPSTREAM_NS: u64 = 5_000_000;

/// Losses without a sign that the load is the cause: a rate is not advised.
pub(super) fn without_queue(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let figures = &symptoms.figures;
    let scenario = &figures.record.scenario;
    let seen = format!(
        "{} got no response, and nothing shows that the load is the cause: {}",
        share_lost(figures),
        no_queue(figures)
    );
    let large = match large_edns_size(figures) {
        Some(_) => ", such as one that drops large answers",
        None => "",
    };
    let matters = format!(
        "a server that cannot keep up lets queries wait before it drops them; losses without \
         waiting come from the path{large}, or from a limit on the rate of each client"
    );
    let diagnosis = Diagnosis::new("losses without a queue", State::Warning, seen, matters)
        .cures(tenth_of_rate(figures))
        .cures(smaller_answers(figures));
    let diagnosis = match scenario.transport {
        Transports::One(Transport::Udp) => diagnosis
            .cures(path_to_target(figures))
            .cures(more_queries_at_work(figures))
            .cures(lift_rate_limits()),
        _ => diagnosis,
    };
    Some(diagnosis.into())
}

/// A resolver that waits for upstreams loses what is more than it may work on at once.
fn more_queries_at_work(figures: &Figures<'_>) -> Option<Cure> {
    let waits = figures.service_p50_ns? >= figures.path_ns.unwrap_or(0) + UPSTREAM_NS;
    waits.then(|| {
        Cure::words(
            "if it is a resolver, let it work on more queries at once: recursive-clients (BIND), \
             num-queries-per-thread (Unbound), max-mthreads (PowerDNS Recursor)",
        )
    })
}

/// A run that shows whether the loss depends on the rate.
fn tenth_of_rate(figures: &Figures<'_>) -> Option<Cure> {
    let scenario = &figures.record.scenario;
    let asked = match scenario.arrival {
        _ if scenario.replay.is_some() => return None,
        Arrival::Closed { .. } => figures.achieved_qps,
        Arrival::Open { rate_qps, .. } => rate_qps,
        Arrival::Clients { rate_qps } => rate_qps.unwrap_or(figures.achieved_qps),
    };
    Some(Cure::words(format!(
        "run at a tenth of the rate to find out: --rate {}; if the same share is lost, the rate is \
         not the cause (throng doctor RECORD RECORD compares them)",
        plain((asked / 10.0).max(1.0))
    )))
}

/// Evidence that the target could not keep up, as the end of a sentence.
pub(super) fn sign_in_words(sign: &SignOfLoad) -> String {
    match sign {
        SignOfLoad::Waiting {
            queries,
            p50_ns,
            shortest_ns,
        } => format!(
            "while {} waited at the target on average: p50 {} against the shortest {}",
            counted(*queries, "query"),
            latency(*p50_ns as f64),
            latency(*shortest_ns as f64)
        ),
        SignOfLoad::BuffersFull(dropped) => format!(
            "and the target's receive buffers were full: they dropped {}",
            counted(*dropped, "datagram")
        ),
        SignOfLoad::MoreAtPeaks(above, below) => format!(
            "and more of them where more was due: {} at peaks, {} otherwise",
            percent(*above),
            percent(*below)
        ),
    }
}

/// A fixed rate of responses, whatever was sent.
pub(super) fn rate_limited(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.rate_limited.as_ref()?, &symptoms.figures);
    let when = match it.burst_ns {
        Some(burst_ns) => format!("after a burst of {}", latency(burst_ns as f64)),
        None => "all the time".into(),
    };
    let seen = format!(
        "the target, or a device before it, admits a fixed rate: {} were answered {when}, {} of \
         the queries lost, and {}",
        rate(it.admitted_qps),
        share(number_lost(figures), figures.counts.offered),
        none_waited(it, figures)
    );
    let matters = "a server without CPU time lets queries wait before it drops them; one that \
                   drops them at once limits the rate of queries or responses, or a device on the \
                   path does: the rate is that of the limit, not what the server can do";
    let diagnosis = Diagnosis::new("rate limit", State::Problem, seen, matters)
        .cures(lift_rate_limits())
        .cure(Cure::words(lower_rate(figures, 1.0)))
        .cure(more_sources(figures));
    Some(diagnosis.into())
}

/// A fixed rate of responses in a run at one rate of queries.
pub(super) fn steady_losses(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.rate_limited.as_ref()?, &symptoms.figures);
    let from = it.burst_ns.map_or_else(String::new, |burst_ns| {
        format!(" from {} on", seconds(burst_ns))
    });
    let turns = it.turns.map_or_else(String::new, |(answered, of)| {
        format!(
            ", such as {} of {} in turn",
            count(of - answered),
            count(of)
        )
    });
    let seen = format!(
        "cannot tell a limit of {} from the loss of a fixed share{turns}: {} of the queries were \
         lost, as many in each second{from}, and {}",
        rate(it.admitted_qps),
        share(number_lost(figures), figures.counts.offered),
        none_waited(it, figures)
    );
    let matters = "a limit admits as many queries a second at any rate; a path, a back-end or a \
                   thread of several that does not answer loses the same share at any rate";
    let diagnosis = Diagnosis::new("steady losses", State::Problem, seen, matters)
        .cures(another_rate(figures))
        .cures(smaller_answers(figures))
        .cures(lift_rate_limits())
        .cure(more_sources(figures));
    Some(diagnosis.into())
}

/// Beside a fixed rate of responses: no queue, and truncated responses.
fn none_waited(it: &RateLimited, figures: &Figures<'_>) -> String {
    let truncated = match it.truncated {
        0 => String::new(),
        number => format!(
            "; {} of the responses were truncated, as RRL sends them in place of answers (slip)",
            share(number, figures.counts.responses)
        ),
    };
    format!(
        "none waited at the target: p50 {} against the shortest {}{truncated}",
        latency(it.p50_ns as f64),
        latency(it.shortest_ns as f64)
    )
}

/// A run that distinguishes a limit on the rate from a share that is lost.
fn another_rate(figures: &Figures<'_>) -> Option<Cure> {
    let how = match figures.record.scenario.replay.is_some() {
        true => "half the --speed".to_owned(),
        false => format!(
            "half the rate, --rate {}",
            plain((ANOTHER * figures.rate_asked()?).max(1.0))
        ),
    };
    Some(Cure::words(format!(
        "repeat at {how}: if the same share is lost, a path or a server of several is dead; if \
         less is lost, the rate is limited"
    )))
}

/// A run that shows whether each source address has its own limit.
fn more_sources(figures: &Figures<'_>) -> Cure {
    let addresses = figures.record.scenario.local_addresses.len().max(1);
    Cure::words(format!(
        "send from more source addresses, of other networks too (--local-address; this run had \
         {addresses}): if more is answered then, the limit is one of each source"
    ))
}

/// Slots of a closed loop that lost queries hold.
pub(super) fn slots_held(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.slots_held.as_ref()?, &symptoms.figures);
    let overflow = it.overflow.as_ref();
    let why = match (it.at_once_ns, overflow) {
        (Some(at_ns), _) => format!(
            ", those of all slots at once: from {} on nothing came back until they had timed out",
            seconds(at_ns)
        ),
        (None, Some(it)) => format!(", {}", sign_in_words(it)),
        (None, None) => String::new(),
    };
    let seen = format!(
        "{} of {} outstanding slots were held by lost queries ({} timed out after {} each){}{why}",
        decimal(it.held, 0),
        count(it.slots),
        count(figures.counts.timeouts),
        latency(figures.record.scenario.timeout_ns as f64),
        it.of_burst.map_or_else(String::new, when_lost),
    );
    let state = match it.are_many() {
        true => State::Problem,
        false => State::Warning,
    };
    let matters = "a lost query holds its slot until it times out, and no other query is sent from \
        it: the rate is lower than what the target can take";
    let more = Cure::throng(format!("--outstanding {}", it.slots.saturating_mul(2)));
    let shorter = Cure::throng("--timeout 1s");
    let open_loop = Cure::words(format!(
        "use the open loop, which has no slots: --rate {}",
        plain(figures.achieved_qps.max(1.0))
    ));
    let cures = match (overflow, &symptoms.slots_exhausted) {
        // As many more would be held too.
        (_, Some(_)) => vec![open_loop, shorter],
        (Some(_), _) => {
            let from_below = Cure::words(rate_below_limit(figures.achieved_qps));
            [vec![from_below], full_buffer(figures), vec![shorter]].concat()
        }
        (None, _) => vec![more, shorter, open_loop],
    };
    let topic = "slots held by lost queries";
    let diagnosis = Diagnosis::new(topic, state, seen, matters).cures(cures);
    Some(diagnosis.into())
}

/// Slots that queries of the warm-up hold.
pub(super) fn slots_stuck(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.slots_stuck.as_ref()?, &symptoms.figures);
    let timeout = latency(figures.record.scenario.timeout_ns as f64);
    let ends = list(vec![
        (it.lost, format!("timed out after {timeout} each")),
        (it.late, "were answered too late to be of use".into()),
    ]);
    let seen = format!(
        "{} of {} outstanding slots were held by queries of the warm-up that got no response in \
         time ({ends}): the other slots alone were measured",
        decimal(it.stuck, 0),
        count(it.slots)
    );
    let matters = "what the warm-up lost is in no figure of the result, and the rate is that of \
                   fewer slots than asked for";
    let state = match it.are_many() {
        true => State::Problem,
        false => State::Warning,
    };
    let diagnosis = Diagnosis::new("slots held since the warm-up", state, seen, matters)
        .cure(Cure::throng("--timeout 1s"))
        .cure(Cure::throng("--warmup 0s"))
        .cures(larger_server_buffers());
    Some(diagnosis.into())
}

/// Fewer queries at a time, or more room for them.
fn full_buffer(figures: &Figures<'_>) -> Vec<Cure> {
    let fitting = (FITTING * figures.answered_in_flight()).max(1.0);
    let [default, _] = larger_server_buffers();
    vec![
        Cure::throng(format!("--outstanding {fitting:.0}")),
        default,
        Cure::new(Place::UnboundConf, "so-rcvbuf: 4m"),
    ]
}

/// When those that were lost had been sent.
fn when_lost((of_burst, all): (u64, u64)) -> String {
    let since = match of_burst as f64 >= OF_BURST * all as f64 {
        true => "nearly all in the burst with which the run began",
        false => "throughout the run",
    };
    let were = match of_burst {
        1 => "was",
        _ => "were",
    };
    format!(
        ", {since} ({} {were} asked in the first 0.1 s)",
        count(of_burst)
    )
}
