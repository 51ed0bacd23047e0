//! Phrases that several rules and every verdict use.

use crate::counts::{ConnectionFailures, Counts, End};
use crate::doctor::{Cure, Place};
use crate::experience::GroupRecord;
use crate::notation::{count, counted, decimal, latency, rate, share};
use crate::record::EndedBy;
use crate::scenario::Transports;
use crate::symptoms::host::SomeHosts;
use crate::symptoms::instances::SomeInstances;
use crate::symptoms::losses_by_name::large_edns_size;
use crate::symptoms::{Figures, Symptoms};

/// Names that are named of a longer list.
const NAMED_MAX: usize = 5;

/// Of what a target answered, a rate with which to look for its limit.
const TRY: f64 = 0.8;

/// Four times the receive buffer that this tool asks for by default.
pub(super) const BUFFER_OCTETS: u64 = 16 << 20;

/// The ends of queries that are lost, with their numbers; those by HTTP or their stream by cause,
/// and last.
fn ends(counts: &Counts, transport: Transports) -> Vec<(u64, String)> {
    let by_cause = counts.exchange_failures.by_cause(transport);
    let is_other = |end: &End| end.is_lost && !end.has_causes;
    let others = counts.ends().filter(|(end, _)| is_other(end));
    let others = others.map(|(end, number)| (number, end.words.to_owned()));
    others
        .chain(by_cause.into_iter().map(|(cause, number)| (number, cause)))
        .collect()
}

/// `5 timed out, 2 not sent`, without those that are zero.
pub(super) fn list(mut causes: Vec<(u64, String)>) -> String {
    causes.retain(|(number, _)| *number > 0);
    let causes: Vec<String> = causes
        .iter()
        .map(|(number, cause)| format!("{} {cause}", count(*number)))
        .collect();
    causes.join(", ")
}

/// `at 2 of 5 server instances: a, b`.
pub(super) fn at_instances(some: &SomeInstances) -> String {
    let number = some.named.len() as u64;
    format!(
        "at {} of {}: {}",
        count(number),
        counted(some.all, "server instance"),
        some_of(some.named.iter().cloned(), number)
    )
}

/// Where hosts of a run showed something, in words.
pub(super) struct AtHosts {
    /// Which agents are on them: `1 of 40 agents (b): `; empty in a run of one host.
    pub(super) agents: String,
    pub(super) host: &'static str,
    pub(super) container: &'static str,
}

pub(super) fn at_hosts(figures: &Figures<'_>, hosts: &SomeHosts) -> AtHosts {
    let record = figures.record;
    if record.hosts.len() <= 1 {
        return AtHosts {
            agents: String::new(),
            host: "this host",
            container: "this container",
        };
    }
    AtHosts {
        agents: some_agents(figures, &hosts.agents(record)),
        host: "its host",
        container: "its container",
    }
}

/// Why it matters that its CPU quota stops a server.
pub(super) const STOPPED_BY_QUOTA: &str = "a server that is stopped for the rest of each period \
    answers late, or drops what its receive buffers cannot hold";
/// Cure for a server that its CPU quota stops.
pub(super) const MORE_QUOTA: &str = "raise the quota: cpu.max or cpu.cfs_quota_us of its control \
    group, limits.cpu in Kubernetes, --cpus of a container";

/// The host of a finding that names these agents, or none.
pub(super) fn host_of(agents: &[usize]) -> &'static str {
    match agents.is_empty() {
        true => "this host",
        false => "its host",
    }
}

/// `1 of 40 agents (b): `, of agents by position, the first of which shows most; empty of none.
pub(super) fn some_agents(figures: &Figures<'_>, agents: &[usize]) -> String {
    if agents.is_empty() {
        return String::new();
    }
    let record = figures.record;
    let number = agents.len() as u64;
    let names = agents.iter().map(|agent| record.agent_on_node(*agent));
    let most = match agents.first() {
        Some(first) if number > 1 => format!(", most at {}", record.agent_on_node(*first)),
        _ => String::new(),
    };
    let all = counted(record.agents.len() as u64, "agent");
    let named = some_of(names, number);
    format!("{} of {all} ({named}){most}: ", count(number))
}

/// The first names, and `...` if there are more.
pub(super) fn some_of(names: impl Iterator<Item = String>, number: u64) -> String {
    let named: Vec<String> = names.take(NAMED_MAX).collect();
    let more = match number > named.len() as u64 {
        true => ", ...",
        false => "",
    };
    format!("{}{more}", named.join(", "))
}

/// Failed attempts to connect by cause: `70 refused, 30 timed out`.
pub(super) fn attempts_by_cause(failed: &ConnectionFailures, transport: Transports) -> String {
    let causes = failed.by_cause(transport).into_iter();
    list(causes.map(|(cause, number)| (number, cause)).collect())
}

/// A number of clients or connections with room to spare, as a round number.
pub(super) fn with_room(number: u64) -> u64 {
    (number + number / 2).div_ceil(1_000).max(1) * 1_000
}

/// A rate as an option takes it.
pub(super) fn plain(rate_qps: f64) -> String {
    decimal(rate_qps, 0).replace(',', "")
}

/// `once`, `2 times`.
pub(super) fn times(number: u64) -> String {
    match number {
        1 => "once".to_owned(),
        _ => format!("{} times", count(number)),
    }
}

/// How to find a limit above the rate that was answered from below.
pub(super) fn rate_below_limit(answered_qps: f64) -> String {
    format!(
        "find its limit from below: --rate {}",
        plain((TRY * answered_qps).max(1.0))
    )
}

/// The same where this share of what came back was of use.
pub(super) fn lower_rate(figures: &Figures<'_>, share: f64) -> String {
    match figures.record.scenario.replay.is_some() {
        true => "lower --speed to find its limit".to_owned(),
        false => rate_below_limit(share * figures.achieved_qps),
    }
}

/// More room for datagrams in the sockets of a server.
pub(super) fn larger_server_buffers() -> [Cure; 2] {
    [
        Cure::server_sysctl("net.core.rmem_default", BUFFER_OCTETS),
        Cure::server_sysctl("net.core.rmem_max", BUFFER_OCTETS),
    ]
}

/// One query by hand, without validation, so that the difference shows.
pub(super) fn send_one(figures: &Figures<'_>) -> Cure {
    Cure::shell(format!("dig {} +cd NAME", dig_at(figures)))
}

/// The target as dig takes it.
pub(super) fn dig_at(figures: &Figures<'_>) -> String {
    let target = &figures.record.scenario.target;
    match target.parse::<std::net::SocketAddr>() {
        Ok(address) => format!("@{} -p {}", address.ip(), address.port()),
        Err(_) => format!("@{target}"),
    }
}

/// How answers become small enough for any path, where EDNS allows larger ones.
pub(super) fn smaller_answers(figures: &Figures<'_>) -> Vec<Cure> {
    match large_edns_size(figures) {
        Some(_) => vec![
            Cure::throng("--edns-size 1232"),
            Cure::throng("--transport tcp"),
        ],
        None => Vec::new(),
    }
}

/// BIND lets the generator have all responses.
pub(super) fn exempt_generator() -> Cure {
    Cure::new(
        Place::NamedConf,
        "rate-limit { exempt-clients { GENERATOR; }; };",
    )
}

/// What treats clients over datagrams each in another way.
pub(super) fn by_source(figures: &Figures<'_>) -> Vec<Cure> {
    let scenario = &figures.record.scenario;
    let parts = Cure::words(
        "check the threads and the processes of the target, the servers behind it, and the paths \
         to it (ECMP): source ports are divided among them, and one of them is slow or dead",
    );
    let path = path_to_target(figures);
    let addresses = Cure::words(
        "let the server answer all addresses of --local-address (BIND: allow-query { any; };)",
    );
    let addresses = (scenario.local_addresses.len() > 1).then_some(addresses);
    [addresses, Some(parts), path]
        .into_iter()
        .flatten()
        .collect()
}

/// Traces the path to the target; none to one on this host.
pub(super) fn path_to_target(figures: &Figures<'_>) -> Option<Cure> {
    let target = &figures.record.scenario.target;
    (!figures.target_is_local()).then(|| Cure::trace_path("udp", target))
}

/// How servers answer the generator at any rate.
pub(super) fn lift_rate_limits() -> Vec<Cure> {
    vec![
        Cure::words(
            "if the server limits the rate, lift the limit for the generator, and measure again: \
             rate-limit { exempt-clients } (BIND), ip-ratelimit and ratelimit (Unbound), \
             rrl-ratelimit (NSD), mod-rrl (Knot DNS), MaxQPSIPRule and dynamic blocks (dnsdist)",
        ),
        exempt_generator(),
        Cure::new(Place::UnboundConf, "ip-ratelimit: 0"),
        Cure::new(Place::KnotConf, "mod-rrl: whitelist: GENERATOR"),
    ]
}

/// One sentence on a run without a single response.
pub(crate) fn why_nothing_was_answered(figures: &Figures<'_>) -> String {
    let counts = figures.counts;
    let transport = figures.record.scenario.transport;
    let failed = figures.record.connections().failed;
    let failed: Vec<(u64, String)> = failed
        .by_cause(transport)
        .into_iter()
        .map(|(cause, number)| (number, format!("connection attempts failed: {cause}")))
        .collect();
    if counts.offered == 0 && failed.iter().any(|(number, _)| *number > 0) {
        return format!("no query could be sent: {}", list(failed));
    }
    let failed_scripts = figures.record.groups.iter();
    let failed_script = failed_scripts
        .filter_map(GroupRecord::script_failure)
        .next();
    if let (0, Some(failure)) = (counts.offered, failed_script) {
        return format!("no query was sent: the script of every client failed: {failure}");
    }
    let warmup = &figures.record.warmup.counts;
    let stuck = warmup.lost() + figures.record.answered_after_warmup();
    if counts.offered == 0 && stuck > 0 && figures.record.measured_ns > 0 {
        return format!(
            "no query was sent: {} of the warm-up got no response in time, and held all slots",
            counted(stuck, "query")
        );
    }
    if counts.offered == 0 {
        let why = match figures.record.ended_by {
            EndedBy::Aborted => "a condition of --abort-if ended the run before the first query",
            EndedBy::Interrupted => "the run was interrupted before the first query",
            EndedBy::TargetGone => "the target could not be reached",
            EndedBy::AgentLost => "an agent was lost before the first query",
            EndedBy::Duration | EndedBy::Queries | EndedBy::Killed => "no query was due",
        };
        return why.into();
    }
    let mut causes = ends(counts, transport);
    causes.extend(failed);
    let queries = counted(counts.offered, "query");
    format!("no response to {queries}: {}", list(causes))
}

/// The number of lost queries, for every verdict.
pub(crate) fn losses(figures: &Figures<'_>) -> Option<String> {
    let counts = figures.counts;
    let lost = counts.lost();
    (lost > 0).then(|| {
        format!(
            "{} of {} got no response ({}): {}",
            count(lost),
            counted(counts.offered, "query"),
            share(lost, counts.offered),
            list(ends(counts, figures.record.scenario.transport))
        )
    })
}

/// Closed loop: mean latency x rate = slots in use, always.
pub(crate) fn littles_law(symptoms: &Symptoms<'_>) -> Option<String> {
    let figures = &symptoms.figures;
    let slots = figures.outstanding?;
    let mean_ns = figures.mean_latency_ns?;
    let answered = figures.answered_in_flight();
    let product = format!(
        "mean latency {} x {} = {} in flight of {}",
        latency(mean_ns),
        rate(figures.achieved_qps),
        decimal(answered, 1),
        count(slots),
    );
    // Where lost queries hold nearly all of them, their timeout set the latency of the others.
    // Of what a full queue at the target does not lose, that queue sets it.
    let delayed = symptoms.delayed_acknowledgements.as_ref();
    let is_set_by_slots = answered >= 0.1 * slots as f64
        && symptoms.slots_overflow.is_none()
        && delayed.is_none_or(|it| !it.are_most());
    let in_use = answered + figures.held_by_lost();
    Some(match in_use >= 0.9 * slots as f64 && is_set_by_slots {
        true => format!(
            "{product}: latency was set by --outstanding, not by the target (run with --rate \
             for honest latency)"
        ),
        false => product,
    })
}
