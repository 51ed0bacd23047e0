//! Rules about the generator: its CPU, lateness, agents, resources, and queries not sent.

use super::finding::{Conclusion, Finding};
use super::phrases::{BUFFER_OCTETS, host_of, some_agents};
use crate::doctor::{BUSY_POLL_US, Cure, Diagnosis, State};
use crate::notation::{count, counted, latency, per_second, percent, share};
use crate::scope;
use crate::symptoms::generator::{
    NotSentQueries, NotSentReason, RefusedQueries, Shortage, TailWaits,
};
use crate::symptoms::{Figures, Symptoms};

/// From one handshake in that many queries on, handshakes cost more CPU than the queries: over 200
/// us each with a certificate, against some 5 us a query.
const QUERIES_PER_HANDSHAKE_MAX: u64 = 40;
/// Agents that are named in a sentence.
const NAMED_MAX: usize = 5;
/// Queries that one client may have open: 65,536 message IDs without those of the 4,096 queries
/// that timed out last.
const OPEN_MAX: u64 = 61_440;

/// How an agent whose quota was used up gets more time.
const QUOTA_ADVICE: &str = "raise the agent's CPU quota, or remove it: limits.cpu, CPUQuota=";

/// Where the way out of this host shows.
pub(super) const LOOK_AT_INTERFACE: &str = "ip -s link; ip route";
/// Where the rules on what leaves this host are; a route may prohibit it too.
pub(super) const LOOK_AT_RULES: &str = "nft list ruleset; iptables -S OUTPUT; ip route";

const PORTS: &str = "source ports";
const CPU: &str = "generator's CPU";
const CPU_MATTERS: &str =
    "a generator without CPU time to spare measures itself: rate and latency are its own";

/// A worker that had no CPU left, or had to share it.
pub(super) fn out_of_cpu(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.out_of_cpu.as_ref()?, &symptoms.figures);
    let worker = figures.record.worker_name(it.worker);
    let late = it.late_ns.map_or_else(String::new, |late_ns| {
        let late = latency(late_ns as f64);
        format!(" and queries were sent up to {late} late (p99)")
    });
    let (seen, advice) = match it.shortage {
        Shortage::Used(busy) => (
            format!(
                "{worker} used {} of its CPU{}{late}: this tool, not the target, set the rate",
                percent(busy),
                for_handshakes(figures)
            ),
            more_cpu(figures),
        ),
        Shortage::Waited(waited) => {
            let (why, advice) = match it.has_quota_used_up {
                true => ("the agent's CPU quota was used up", QUOTA_ADVICE),
                false => (
                    "another process uses this CPU",
                    "run the target on other cores or another machine: --cpus LIST",
                ),
            };
            let comma = if late.is_empty() { "" } else { "," };
            let waited = percent(waited);
            (
                format!("{worker} waited for its CPU {waited} of the time: {why}{comma}{late}"),
                advice.to_owned(),
            )
        }
    };
    let diagnosis = Diagnosis::new(CPU, State::Problem, seen, CPU_MATTERS);
    Some(diagnosis.cure(Cure::words(advice)).into())
}

/// Connections that had to wait for local ports.
pub(super) fn ports_recycled(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.ports_recycled.as_ref()?, &symptoms.figures);
    let seen = format!(
        "{} got a local port that an earlier one had left a moment before, as the others were in \
         use: the kernel searches for one at each connect, so that {} used {} of its CPU and \
         hardly sent in {} of the time",
        counted(it.recycled, "connection"),
        figures.record.worker_name(it.worker),
        percent(it.busy),
        percent(it.slow)
    );
    let matters = "each connection to one target needs a port of its own on each source address; \
                   Linux takes every other one first, and one in TIME_WAIT after a second";
    // The kernel takes those in TIME_WAIT already.
    let more = resources(figures, true).into_iter().take(2);
    let diagnosis = Diagnosis::new(PORTS, State::Problem, seen, matters).cures(more);
    Some(
        Finding::from(diagnosis)
            .advising("give the clients more source addresses: --local-address"),
    )
}

pub(super) fn busy_worker(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.busy_worker.as_ref()?, &symptoms.figures);
    let worker = figures.record.worker_name(it.worker);
    let seen = format!("{worker} used {} of its CPU", percent(it.busy));
    let diagnosis = Diagnosis::new(CPU, State::Warning, seen, CPU_MATTERS);
    Some(diagnosis.cure(Cure::words(more_cpu(figures))).into())
}

/// The work of a busy worker with short-lived connections.
fn for_handshakes(figures: &Figures<'_>) -> String {
    if figures.record.asks_nothing() {
        let opened = per_second(figures.record.opened_per_second());
        return format!(", with {opened} connections a second");
    }
    let handshakes = figures.counts.connections.handshakes.total();
    if handshakes == 0 || figures.counts.sent / handshakes > QUERIES_PER_HANDSHAKE_MAX {
        return String::new();
    }
    format!(
        ", with {} handshakes a second beside the queries",
        per_second(figures.record.handshakes_per_second())
    )
}

/// How to get more CPU: another worker where a core is left, another machine where none is.
fn more_cpu(figures: &Figures<'_>) -> String {
    let workers = figures.record.scenario.workers;
    let cores = scope::count_cores(&figures.record.hosts);
    if workers >= figures.record.scenario.clients {
        format!(
            "allow more workers than {workers}: --clients {0} --workers {0}",
            workers + 1
        )
    } else if cores == 0 || workers < cores {
        format!(
            "give the generator another worker: --workers {}",
            workers + 1
        )
    } else {
        "no core is left here: run from a second machine too and merge the records".into()
    }
}

pub(super) fn late_sends(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.late_sends.as_ref()?;
    let (why, advice) = match it.has_quota_used_up {
        true => ("the agent's CPU quota stopped them", QUOTA_ADVICE),
        false => (
            "the host stalled them",
            "look for other load on this host, or CPU steal by the hypervisor",
        ),
    };
    let seen = format!(
        "{}queries were sent up to {} late (p99) although the busiest worker used {} of its CPU \
         and waited for it {} of the time: {why}",
        some_agents(&symptoms.figures, &it.agents),
        latency(it.lateness_ns as f64),
        percent(it.busy),
        percent(it.waited)
    );
    let matters = "what is sent late is answered late: part of the latency is this host's";
    let diagnosis = Diagnosis::new("lateness", State::Problem, seen, matters)
        .cure(Cure::words(advice))
        .cure(Cure::busiest_processes());
    Some(Finding::from(diagnosis).advising(advice))
}

pub(super) fn late_agents(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.late_agents.as_ref()?;
    let record = symptoms.figures.record;
    let named = it.late.iter().take(NAMED_MAX).map(|(agent, load)| {
        let name = record.agent_on_node(*agent);
        let quota = match load.has_quota_used_up {
            true => "; the agent's CPU quota was used up",
            false => "",
        };
        let (busy, waited) = (percent(load.busy), percent(load.waited));
        format!(
            "{name} by {} (p99; a worker used {busy} of its CPU and waited for it {waited} of the \
             time{quota})",
            latency(load.lateness_ns as f64)
        )
    });
    let named: Vec<String> = named.collect();
    let more = match it.late.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let seen = format!(
        "{} of {} sent late: {}{more}; the others by at most {}",
        it.late.len(),
        counted(it.all as u64, "agent"),
        named.join(", "),
        latency(it.others_ns as f64)
    );
    let matters = "what is sent late is answered late: its part of the latency is not the target's";
    let cure = match record.has_local_agents() {
        true => "give the agents CPUs of their own: fewer of them (--agents), or fewer --workers",
        false => "leave it out of --hosts, or look there with `throng doctor`",
    };
    let diagnosis = Diagnosis::new("agents", State::Warning, seen, matters);
    Some(diagnosis.cure(Cure::words(cure)).into())
}

pub(super) fn waits_in_host(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.waits_in_host.as_ref()?, &symptoms.figures);
    let (agents, host) = (some_agents(figures, &it.agents), host_of(&it.agents));
    let of_mean = it.of_mean.map(|(generator, reader)| {
        format!(
            "{agents}{} of the latency was waiting in {host}: {} until queries left, {} until \
             responses were read",
            percent(generator + reader),
            percent(generator),
            percent(reader)
        )
    });
    let of_tail = it.of_tail.as_ref().map(of_tail);
    let seen: Vec<String> = of_mean.into_iter().chain(of_tail).collect();
    let matters = "only the part between is the target's and the network's; judge them by that \
                   part, as with --require 'wire.p99 < 5ms'";
    let fewer = "send fewer queries at a time: lower --rate or --outstanding";
    let mut cures = [Cure::words(fewer), Cure::words(more_cpu(figures))];
    if it.is_late_reader {
        cures.reverse();
    }
    let topic = "waiting in this host";
    let diagnosis = Diagnosis::new(topic, State::Warning, seen.join("; "), matters);
    // Loopback has no queue that could be polled.
    let may_poll = it.is_late_reader && !figures.target_shares_cpus();
    let poll = may_poll.then(|| Cure::sysctl("net.core.busy_poll", BUSY_POLL_US));
    Some(diagnosis.cures(cures).cures(poll).into())
}

fn of_tail(it: &TailWaits) -> String {
    let [whole, generator, network, reader] =
        [it.whole_ns, it.generator_ns, it.network_ns, it.reader_ns].map(|ns| latency(ns as f64));
    format!(
        "{} of the p99 was made in this host: it is {whole}, that of wire and server alone \
         {network} (until queries left {generator}, until responses were read {reader})",
        percent(it.share)
    )
}

pub(super) fn no_resources(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.no_resources.as_ref()?, &symptoms.figures);
    let what = match it.are_ports {
        true => "local ports",
        false => "file descriptors or memory",
    };
    let seen = format!(
        "{}{} connection attempts failed because {} ran out of {what}",
        some_agents(figures, &it.agents),
        count(it.number),
        host_of(&it.agents)
    );
    let (topic, matters, advice) = match it.are_ports {
        true => (
            PORTS,
            "each connection to one target needs a port of its own on each source address; closed \
             ones keep theirs for 60 s",
            "give the clients more source addresses: --local-address",
        ),
        false => (
            "open files",
            "clients without a socket send nothing, and the others send more in their place",
            "allow more open files: ulimit -n",
        ),
    };
    let cures = resources(figures, it.are_ports);
    let state = match it.are_many() {
        true => State::Problem,
        false => State::Warning,
    };
    let diagnosis = Diagnosis::new(topic, state, seen, matters).cures(cures);
    Some(Finding::from(diagnosis).advising(advice))
}

/// How to get more local ports, or more open files.
pub(super) fn resources(figures: &Figures<'_>, are_ports: bool) -> Vec<Cure> {
    match are_ports {
        true => vec![
            Cure::throng("--local-address ADDRESS,ADDRESS,..."),
            Cure::sysctl("net.ipv4.ip_local_port_range", "1024 65535"),
            Cure::sysctl("net.ipv4.tcp_tw_reuse", 1),
        ],
        false => vec![
            Cure::open_files(2 * figures.record.scenario.clients + 1_024),
            Cure::throng("--agents 2"),
        ],
    }
}

/// Clients that have used up their message IDs: 16 bits distinguish the queries of one client.
pub(super) fn no_message_id(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.no_message_id.as_ref()?, &symptoms.figures);
    let (who, whose) = match figures.record.scenario.clients {
        1 => ("the only client".to_owned(), "its"),
        clients => (format!("some of the {} clients", count(clients)), "their"),
    };
    let seen = format!(
        "{} ({} of those offered) were not sent: {who} had used up {whose} message IDs ({} queries \
         open each)",
        counted(it.number, "query"),
        share(it.number, figures.counts.offered),
        count(OPEN_MAX)
    );
    let matters = "a client tells responses apart by 16 bits: an ID is free again when its query \
                   is answered or has timed out";
    let diagnosis = Diagnosis::new("message IDs", State::Problem, seen, matters);
    let clients = Cure::throng(format!("--clients {}", clients_wanted(figures)));
    Some(diagnosis.cure(clients).into())
}

/// Enough clients that queries which are never answered have IDs until they time out, and twice as
/// many as there are.
fn clients_wanted(figures: &Figures<'_>) -> u64 {
    let scenario = &figures.record.scenario;
    let open = figures.record.offered_qps() * scenario.timeout_ns as f64 / 1e9;
    let for_all = (open / OPEN_MAX as f64).ceil() as u64;
    for_all.max(2 * scenario.clients)
}

fn refused(
    symptoms: &Symptoms<'_>,
    queries: &RefusedQueries,
    why: &str,
    advice: &str,
) -> Conclusion {
    let refused = share(queries.number, queries.offered);
    let agents = some_agents(&symptoms.figures, &queries.agents);
    let whose = match queries.agents.is_empty() {
        true => "the",
        false => "its",
    };
    Conclusion::new(
        format!("{agents}{refused} of {whose} queries were not sent: {why}"),
        advice,
    )
}

pub(super) fn no_route(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let queries = &symptoms.no_route.as_ref()?.0;
    let why = "there was no route to the target: the interface is down or gone";
    let advice = "check the interface: ip -s link; ip route";
    Some(refused(symptoms, queries, why, advice))
}

pub(super) fn port_closed(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let queries = &symptoms.port_closed.as_ref()?.0;
    let why = "nothing was listening on the target's port";
    let advice = "start the server again, and look at its log";
    Some(refused(symptoms, queries, why, advice))
}

pub(super) fn sends_refused(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let it = symptoms.sends_refused.as_ref()?;
    let (why, advice) = match it.is_forbidden {
        true => (
            "a firewall on the host rejects them",
            "check its rules: nft list ruleset; iptables -S OUTPUT",
        ),
        false => (
            "the kernel did not take them",
            "raise net.core.wmem_max, or lower the rate",
        ),
    };
    Some(refused(symptoms, &it.queries, why, advice))
}

/// Why queries that were due did not leave, a reason each.
pub(super) fn not_sent(symptoms: &Symptoms<'_>) -> Vec<Finding> {
    let reasons = symptoms.not_sent.iter().flat_map(|it| &it.by_reason);
    let finding = |(reason, number): &(NotSentReason, u64)| {
        let figures = &symptoms.figures;
        let (what, matters, cure) = reason_not_sent(*reason, figures.record.scenario.clients);
        let offered = figures.counts.offered;
        let state = match NotSentQueries::are_many(*number, offered) {
            true => State::Problem,
            false => State::Warning,
        };
        let seen = format!(
            "{} ({} of those offered) {what}",
            counted(*number, "query"),
            share(*number, offered)
        );
        let diagnosis = Diagnosis::new("queries not sent", state, seen, matters);
        diagnosis.cure(cure).into()
    };
    reasons.map(finding).collect()
}

fn reason_not_sent(reason: NotSentReason, clients: u64) -> (&'static str, &'static str, Cure) {
    match reason {
        NotSentReason::WaitedForConnection => (
            "timed out while they waited for their connection",
            "connections are not ready when they are needed: what the run shows is their set-up",
            Cure::throng(format!("--clients {}", 2 * clients)),
        ),
        NotSentReason::NoRoute => (
            "were refused by the kernel: there was no route to the target",
            "the interface was down or gone, or had lost its address",
            Cure::shell(LOOK_AT_INTERFACE),
        ),
        NotSentReason::Forbidden => (
            "were refused by the kernel: a firewall rule of this host forbids them",
            "what never left this host says nothing about the target",
            Cure::shell(LOOK_AT_RULES),
        ),
        NotSentReason::PortClosed => (
            "were refused by the kernel: nothing was listening on the target's port",
            "the target had said so (ICMP port unreachable) for queries before",
            Cure::words("start the server again, and look at its log"),
        ),
        NotSentReason::RefusedByKernel => (
            "were refused by the kernel",
            "the send buffer, or the queue of the interface, was full",
            Cure::sysctl("net.core.wmem_max", BUFFER_OCTETS / 4),
        ),
        NotSentReason::RunEnded => (
            "were still waiting when the run ended",
            "the target, or this tool, was behind the rate asked for",
            Cure::words("lower --rate until nothing waits"),
        ),
    }
}
