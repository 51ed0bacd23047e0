//! The run record of a finished run.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use driver::TcpStats;
use driver::clock::Clock;
use engine::{EndedBy, Outcome, WorkerOutcome};
use load::Plan;
use load::arrival::Arrival;
use measure::Verdict;
use measure::facts::{HostFacts, NetworkFacts, TcpFacts, WorkerFacts, XdpFacts};
use measure::instances::Instances;
use measure::interval::Interval;
use measure::intervals::Intervals;
use measure::record::{Agent, AskedGroup, Phases, RunRecord, SCHEMA_VERSION};
use measure::scenario::{self, DriverKind, ScenarioRecord};
use measure::simulation::SimulationRecord;
use measure::target::TargetRecord;
use measure::timeline::{Steps, Timeline};
use proto::query::{Edns, OPTION_KEEPALIVE};

use super::local::{TargetScope, target_scope};
use super::site::Site;
use super::{RunRequest, recorded_transport};
use crate::host::Host;

mod losses;
mod population;
mod questions;

/// What the record says about time and place of the run.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) started: Started,
    pub(crate) host: HostFacts,
    /// Growth of the kernel's network counters.
    pub(crate) kernel: BTreeMap<String, u64>,
    /// The model, if nothing of this was real.
    pub(crate) simulation: Option<SimulationRecord>,
}

/// Which run it is, and when its clients began to connect.
///
/// This is the only time of a run that the wall clock gives. All others are counted from it by a
/// monotonic clock, so setting the wall clock in mid-run changes nothing in the record.
#[derive(Clone)]
pub(crate) struct Started {
    /// None in virtual time, and where there are no random numbers.
    pub(crate) id: Option<String>,
    pub(crate) unix_time: Duration,
    pub(crate) site: Site,
}

impl Started {
    /// A run that starts now.
    pub(crate) fn now() -> Started {
        Started {
            id: Host::this().random_id(),
            unix_time: Clock::unix_time(),
            site: Site::own(),
        }
    }

    /// A simulated run that starts at this time.
    pub(crate) fn in_virtual_time(unix_time: Duration) -> Started {
        Started {
            id: None,
            unix_time,
            site: Site::default(),
        }
    }

    /// The time in the form of RFC 3339, UTC, whole seconds.
    fn at(&self) -> String {
        let time = SystemTime::UNIX_EPOCH + self.unix_time;
        humantime::format_rfc3339_seconds(time).to_string()
    }

    /// Who made it, once it is known how long it took.
    fn agent(
        self,
        (phases, measured_ns): (&Phases, u64),
        first_late_ns: Option<u64>,
    ) -> Option<Agent> {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let before_ns = phases.connect_ns + phases.warmup_ns;
        Some(Agent {
            id: self.id?,
            host: 0,
            began_us: micros(self.unix_time + Duration::from_nanos(before_ns)),
            window_us: measured_ns / 1_000,
            clock_error_us: Clock::unix_time_error().map(micros),
            placement: self.site.placement,
            first_late_ns,
            ..Agent::default()
        })
    }
}

/// Puts everything together and judges it.
pub(crate) fn from_outcome(
    groups: &[RunRequest],
    outcome: Outcome,
    surroundings: Surroundings,
) -> RunRecord {
    let (mut record, steps) = assembled(groups, outcome, surroundings);
    conclude(&mut record, &steps);
    record
}

/// The record of one agent, for its lead: without intervals, which the agent has already sent, and
/// without conclusions, which follow from all agents together. The groups have their positions for
/// names.
pub(crate) fn assemble_agent_record(
    groups: &[RunRequest],
    outcome: Outcome,
    surroundings: Surroundings,
) -> RunRecord {
    let (mut record, _) = assembled(groups, outcome, surroundings);
    record.groups.retain(|group| group.clients > 0);
    record.total = Interval::total(&record.intervals);
    record.intervals = vec![record.total.clone()];
    record.intervals_merged = 1;
    record
}

/// Puts everything together but for what follows from it.
fn assembled(
    groups: &[RunRequest],
    mut outcome: Outcome,
    surroundings: Surroundings,
) -> (RunRecord, Steps) {
    let mut intervals = std::mem::take(&mut outcome.intervals);
    let outcome = &outcome;
    let measured_ns = measured_ns(outcome);
    let phases = phases(outcome);
    let mut warmup = Interval::default();
    for worker in &outcome.workers {
        warmup.merge(&worker.summary.warmup);
    }
    let steps = intervals.take_steps();
    let (intervals, intervals_merged) = intervals.finish(measured_ns);
    warmup.shrink_to_fit();
    let record = RunRecord {
        schema_version: SCHEMA_VERSION.to_owned(),
        throng_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: surroundings.started.at(),
        generators: 1,
        agent_count: 1,
        scenario: population::scenario(groups, outcome),
        asked: asked(groups),
        driver: match surroundings.simulation {
            Some(_) => DriverKind::Sim,
            None => driver_kind(outcome),
        },
        driver_reason: driver_reason(outcome),
        self_test: groups.iter().all(|request| request.asked.is_self_test()),
        hosts: vec![surroundings.host],
        warnings: warnings(groups, outcome, &surroundings.started.site),
        agents: (surroundings.started)
            .agent((&phases, measured_ns), first_late_ns(outcome))
            .into_iter()
            .collect(),
        absent_agents: Vec::new(),
        merged_by_force: Vec::new(),
        phases,
        measured_ns,
        responses_in_window: sum(outcome, |worker| worker.summary.window.responses),
        groups: population::groups(groups, outcome),
        targets: target_records(groups, outcome),
        total: Interval::default(),
        warmup,
        intervals,
        intervals_merged,
        losses_by_question: losses::by_question(groups, outcome),
        instances: instances(outcome),
        timeline: timeline(outcome, outcome.workers.iter()),
        outages: None,
        degraded: None,
        workers: worker_facts(outcome, measured_ns),
        network: network(outcome, surroundings.kernel),
        host_use: None,
        responder: None,
        observations: Vec::new(),
        events: Vec::new(),
        simulation: (surroundings.simulation).map(|model| with_utilisation(model, measured_ns)),
        ended_by: ended_by(outcome),
        aborted: None,
        conditions: Vec::new(),
        steady_state: None,
        verdict: Verdict::default(),
        summary: None,
    };
    (record, steps)
}

/// By how much the first query of the worker that was latest left late.
fn first_late_ns(outcome: &Outcome) -> Option<u64> {
    let workers = outcome.workers.iter();
    workers.filter_map(|it| it.summary.first_late_ns).max()
}

/// Responses by server instance; none where some queries did not ask for it, or where a worker was
/// left behind with its counts.
fn instances(outcome: &Outcome) -> Option<Instances> {
    let workers = outcome.workers.iter();
    let each = workers.map(|it| it.summary.instances.as_ref());
    let each: Option<Vec<&Instances>> = each.collect();
    let each = each.filter(|each| !each.is_empty() && outcome.left_behind.is_empty())?;
    let mut all = Instances::default();
    for one in each {
        all.merge(one);
    }
    Some(all)
}

/// What was measured of each target; none if it is not known what was done at each of several.
fn target_records(groups: &[RunRequest], outcome: &Outcome) -> Vec<TargetRecord> {
    let has_choice = groups.iter().any(|request| request.plan.stub.is_some());
    let is_known = outcome.left_behind.is_empty() && !(outcome.is_checkpoint && has_choice);
    match is_known {
        true => population::targets(groups, outcome),
        false => Vec::new(),
    }
}

/// What was asked for of each group.
fn asked(groups: &[RunRequest]) -> Vec<AskedGroup> {
    let asked = groups.iter().map(|request| AskedGroup {
        name: request.group.clone(),
        run: request.asked.as_ref().clone(),
    });
    asked.collect()
}

/// What happened when at some of the workers; none if one was left behind, which has told only its
/// intervals.
fn timeline<'a>(
    outcome: &Outcome,
    workers: impl Iterator<Item = &'a WorkerOutcome>,
) -> Option<Timeline> {
    let is_whole = outcome.left_behind.is_empty();
    is_whole.then(|| Timeline::merged(workers.map(|worker| &worker.summary.bins)))
}

fn driver_kind(outcome: &Outcome) -> DriverKind {
    let first = outcome.workers.iter().find_map(|it| it.driver.as_ref());
    // Nothing is known of the driver of a thread that was left behind.
    first.map_or(DriverKind::Epoll, |driver| driver.kind)
}

/// Why it was that driver; threads may have fared differently.
fn driver_reason(outcome: &Outcome) -> Option<String> {
    let drivers = outcome.workers.iter().filter_map(|it| it.driver.as_ref());
    let mut reasons: Vec<String> = Vec::new();
    for driver in drivers {
        let reason = format!("{}: {}", driver.kind, driver.reason);
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Makes one record of what the agents of a run measured, after it was merged; its groups have
/// their positions for names, and its intervals are those of all agents together.
pub(crate) fn finish(record: &mut RunRecord, requests: &[RunRequest], mut intervals: Intervals) {
    population::finish(record, requests);
    record.asked = asked(requests);
    let steps = intervals.take_steps();
    (record.intervals, record.intervals_merged) = intervals.finish(record.measured_ns);
    conclude(record, &steps);
}

fn conclude(record: &mut RunRecord, steps: &Steps) {
    record.total = Interval::total(&record.intervals);
    record.find_outages(steps);
    record.conclude();
    // A wrong figure must not leave unmarked, and a long run must not be lost for it either.
    if let Err(reason) = record.check() {
        record.warnings.push(format!(
            "THIS RECORD IS WRONG, please report a bug: {reason}"
        ));
    }
}

/// Says how busy the modelled server was over the measured run.
fn with_utilisation(mut model: SimulationRecord, measured_ns: u64) -> SimulationRecord {
    if let Some(server) = &mut model.server {
        let available_ns = measured_ns as f64 * server.workers as f64;
        let busy = server.seen.busy_ns as f64 / available_ns.max(1.0);
        server.seen.utilisation = busy.min(1.0);
    }
    model
}

/// The window for rates: offering, or until the last response if a number of queries ended it.
fn measured_ns(outcome: &Outcome) -> u64 {
    let window = |worker: &WorkerOutcome| {
        let timeline = &worker.summary.timeline;
        let end = match worker.summary.ended_by {
            EndedBy::Queries => worker
                .summary
                .window
                .last_response_at
                .max(timeline.run_ended_at),
            EndedBy::Duration | EndedBy::TargetGone | EndedBy::NoAnswer | EndedBy::Interrupted => {
                timeline.run_ended_at
            }
        };
        end.nanos_since(timeline.run_started_at)
    };
    outcome.workers.iter().map(window).max().unwrap_or(0)
}

fn sum(outcome: &Outcome, of: impl Fn(&WorkerOutcome) -> u64) -> u64 {
    outcome.workers.iter().map(of).sum()
}

fn ended_by(outcome: &Outcome) -> measure::record::EndedBy {
    let ended = |by| {
        outcome
            .workers
            .iter()
            .any(|worker| worker.summary.ended_by == by)
    };
    if ended(EndedBy::Interrupted) {
        measure::record::EndedBy::Interrupted
    } else if ended(EndedBy::TargetGone) || ended(EndedBy::NoAnswer) {
        measure::record::EndedBy::TargetGone
    } else if ended(EndedBy::Duration) {
        measure::record::EndedBy::Duration
    } else {
        measure::record::EndedBy::Queries
    }
}

fn phases(outcome: &Outcome) -> Phases {
    let longest = |of: fn(&engine::Timeline) -> u64| {
        let each = outcome
            .workers
            .iter()
            .map(|worker| of(&worker.summary.timeline));
        each.max().unwrap_or(0)
    };
    Phases {
        connect_ns: longest(|at| at.started_at.nanos_since(at.opened_at)),
        warmup_ns: longest(|at| at.run_started_at.nanos_since(at.started_at)),
        run_ns: longest(|at| at.run_ended_at.nanos_since(at.run_started_at)),
        drain_ns: longest(|at| at.drained_at.nanos_since(at.run_ended_at)),
    }
}

/// One entry a thread, over all groups.
fn worker_facts(outcome: &Outcome, wall_ns: u64) -> Vec<WorkerFacts> {
    let mut threads: Vec<usize> = outcome.workers.iter().map(|worker| worker.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    let facts = |thread: usize| {
        let workers = outcome.workers.iter();
        let of_thread: Vec<&WorkerOutcome> =
            workers.filter(|worker| worker.thread == thread).collect();
        let mut own = Interval::default();
        of_thread.iter().for_each(|worker| own.merge(&worker.total));
        // The first worker of a thread has the CPU use of the whole thread.
        let first = of_thread.first();
        let cpu = first.map_or_else(Default::default, |worker| worker.summary.cpu_in_window);
        WorkerFacts {
            cpu: first.and_then(|worker| u32::try_from(worker.cpu?).ok()),
            cpu_ns: nanos(cpu.used),
            // A worker that was kept waiting reads its times late, all of them.
            wall_ns: wall_ns.max(nanos(cpu.passed)),
            cpu_wait_ns: Some(nanos(cpu.waited)),
            send_lateness_p99_ns: own.distributions.send_lateness.percentile(0.99),
            queries: own.counts.sent,
            streams_max: (of_thread.iter())
                .filter_map(|worker| worker.summary.streams_max)
                .min(),
            host: 0,
            agent: None,
            left_behind: outcome.left_behind.contains(&thread),
        }
    };
    threads.into_iter().map(facts).collect()
}

fn network(outcome: &Outcome, kernel: BTreeMap<String, u64>) -> NetworkFacts {
    let mut facts = NetworkFacts {
        kernel,
        ..NetworkFacts::default()
    };
    for worker in &outcome.workers {
        let stats = worker.summary.stats;
        facts.add(&NetworkFacts {
            send_calls: stats.send_calls,
            datagrams_sent: stats.datagrams_sent,
            datagrams_offloaded: stats.datagrams_offloaded,
            offload_bursts: stats.offload_bursts,
            receive_calls: stats.receive_calls,
            datagrams_received: stats.datagrams_received,
            receive_drops: stats.receive_drops,
            stream_calls: stats.stream_calls,
            waits: stats.waits,
            ring_overflows: stats.ring_overflows,
            buffer_shortages: stats.buffer_shortages,
            short_sends: stats.short_sends,
            tcp: tcp_facts(&stats.tcp),
            xdp: xdp_facts(worker),
            echo: None,
            kernel: BTreeMap::new(),
            kernel_of_hosts: Vec::new(),
        });
    }
    facts
}

/// What TCP did for one worker; none if it closed no connection.
fn tcp_facts(stats: &TcpStats) -> Option<TcpFacts> {
    (stats.closed > 0).then_some(TcpFacts {
        closed: stats.closed,
        read: stats.read,
        segments_sent: stats.segments_sent,
        segments_repeated: stats.segments_repeated,
        segments_repeated_in_vain: stats.segments_repeated_in_vain,
        segments_repeated_unanswered: stats.segments_repeated_unanswered,
        out_of_order: stats.out_of_order,
        unacknowledged: stats.unacknowledged,
        rtt_us_sum: stats.rtt_us_sum,
        rtt_us_max: stats.rtt_us_max,
    })
}

/// What AF_XDP counted for one worker; none with another driver.
fn xdp_facts(worker: &WorkerOutcome) -> Option<XdpFacts> {
    let driver = worker.driver.as_ref()?;
    let stats = worker.summary.stats.xdp;
    (driver.kind == DriverKind::Xdp).then_some(XdpFacts {
        receive_ring_full: stats.receive_ring_full,
        receive_dropped: stats.receive_dropped,
        fill_ring_empty: stats.fill_ring_empty,
        transmit_invalid: stats.transmit_invalid,
        transmit_full: stats.transmit_full,
        checksums_wrong: stats.checksums_wrong,
        checksums_unfinished: stats.checksums_unfinished,
        stray: stats.stray,
        forwarded: stats.forwarded,
        forward_drops: stats.forward_drops,
        sent_by_kernel: stats.sent_by_kernel,
        interface_received_dropped: stats.interface.received,
        interface_sent_dropped: stats.interface.sent,
        peer_received_dropped: stats.interface.peer_received,
        peer_sent_dropped: stats.interface.peer_sent,
    })
}

/// The scenario of one group.
fn scenario(request: &RunRequest, group: usize, outcome: &Outcome) -> ScenarioRecord {
    let (plan, words, asked) = (&request.plan, &request.description, &request.asked);
    let edns = asked.message.edns.as_ref();
    ScenarioRecord {
        target: targets(plan),
        server_name: server_name(asked),
        transport: plan.transport.into(),
        questions: questions::questions(plan, &words.questions_source),
        arrival: arrival(plan),
        per_client: match &plan.arrival {
            Arrival::Clients(clients) => Some(clients.to_string()),
            _ => None,
        },
        shape: plan.shape.as_ref().map(ToString::to_string),
        script: match &plan.arrival {
            Arrival::Script(script) => Some(script.file_name.clone()),
            _ => None,
        },
        profile: words.profile.clone(),
        replay: words.replay.clone(),
        presence: plan.presence.clone(),
        clients: clients(plan, group, outcome),
        workers: outcome.of_group(group).count() as u64,
        cpus: request
            .cpus
            .iter()
            .filter_map(|cpu| u32::try_from(*cpu).ok())
            .collect(),
        duration_ns: plan.duration.map(nanos),
        warmup_ns: nanos(plan.warmup),
        timeout_ns: nanos(plan.timeout),
        interval_ns: nanos(plan.interval),
        queries_max: plan.queries_max,
        seed: plan.seed,
        local_addresses: local_addresses(plan, asked),
        local_port: plan.local_port,
        connections: plan.connections,
        http: plan.doh.as_deref().map(recorded_transport::http),
        socket_buffer_octets: plan.sockets.buffer_octets.map(u64::from),
        edns: edns.map(describe_edns),
        edns_padding_octets: edns.and_then(|edns| edns.padding_octets.map(u64::from)),
        edns_keepalive: plan.questions.edns_uses().keepalive,
        tcp_fallback: plan.tcp_fallback,
        stub: plan.stub.as_deref().cloned(),
        offload: plan.sockets.offload,
        timestamps: plan.sockets.timestamps,
        tls: request
            .tls
            .as_ref()
            .map(|tls| recorded_transport::tls(tls, outcome.of_group(group))),
        tsig_algorithm: plan
            .tsig
            .as_ref()
            .map(|key| key.algorithm.name().to_owned()),
        goodput_rcodes: asked.goodput_rcodes.clone(),
        labels: asked.labels.clone(),
    }
}

/// The servers as they were given; none if the built-in responder was the target.
pub(crate) fn server_name(asked: &settings::Run) -> Option<String> {
    (!asked.is_self_test()).then(|| asked.servers.join(", "))
}

/// Addresses and prefixes as they were given, or those that were chosen.
fn local_addresses(plan: &Plan, asked: &settings::Run) -> Vec<String> {
    let given = &asked.generator.local_addresses;
    match given.is_empty() {
        false => given.clone(),
        true => plan
            .local_addresses
            .iter()
            .map(ToString::to_string)
            .collect(),
    }
}

fn describe_edns(asked: &settings::Edns) -> String {
    let octets = asked.udp_payload_octets;
    let octets = octets.unwrap_or(Edns::default().udp_payload_octets);
    let mut words = format!("{octets} octets");
    if asked.dnssec_ok {
        words.push_str(", DO");
    }
    for option in &asked.options {
        let (code, octets) = (option.code, option.data.len());
        words.push_str(&format!(", option {code} ({octets} octets)"));
    }
    if asked.keepalive {
        words.push_str(&format!(", option {OPTION_KEEPALIVE} (0 octets)"));
    }
    words
}

/// The target, or all servers of each client.
fn targets(plan: &Plan) -> String {
    let servers = plan.stub.as_ref().map(|stub| stub.servers.as_slice());
    let servers = servers.unwrap_or(std::slice::from_ref(&plan.target));
    let all: Vec<String> = servers.iter().map(ToString::to_string).collect();
    all.join(", ")
}

/// The clients that the workers of the outcome had: all of the group's, or those of one process.
fn clients(plan: &Plan, group: usize, outcome: &Outcome) -> u64 {
    let of_worker = |worker: &WorkerOutcome| plan.worker_clients(worker.thread as u32);
    outcome.of_group(group).map(of_worker).map(u64::from).sum()
}

fn arrival(plan: &Plan) -> scenario::Arrival {
    match &plan.arrival {
        &Arrival::Closed {
            outstanding,
            rate_qps_max,
        } => scenario::Arrival::Closed {
            outstanding: outstanding.into(),
            rate_qps_max,
        },
        &Arrival::Open {
            rate_qps,
            process,
            burst,
        } => scenario::Arrival::Open {
            rate_qps,
            process,
            burst,
        },
        Arrival::Script(_) => scenario::Arrival::Clients { rate_qps: None },
        Arrival::Profile(clients) => scenario::Arrival::Clients {
            rate_qps: Some(clients.rate_qps_mean() * f64::from(plan.clients)),
        },
        Arrival::Replay(replay) => scenario::Arrival::Clients {
            rate_qps: replay.rate_qps(),
        },
        Arrival::Clients(each) => scenario::Arrival::Clients {
            rate_qps: each.rate_qps().map(|qps| qps * f64::from(plan.clients)),
        },
    }
}

/// A target that is where the generator is.
fn beside(groups: &[RunRequest], site: &Site) -> Option<String> {
    let foreign = groups.iter().filter(|it| !it.asked.is_self_test());
    let mut targets = foreign.flat_map(|request| match &request.plan.stub {
        Some(stub) => stub.servers.iter().map(SocketAddr::ip).collect(),
        None => vec![request.plan.target.ip()],
    });
    if targets
        .clone()
        .any(|it| target_scope(it) == TargetScope::Loopback)
    {
        let words = "generator and target share this host: they compete for its CPUs, and loopback \
                     is not a network";
        return Some(words.to_owned());
    }
    targets.find_map(|it| site.shared_with(it))
}

fn warnings(groups: &[RunRequest], outcome: &Outcome, site: &Site) -> Vec<String> {
    let mut warnings = Vec::from_iter(beside(groups, site));
    for thread in &outcome.left_behind {
        let own = outcome.workers.iter().find(|it| it.thread == *thread);
        let until = own.map_or(0, |worker| worker.total.end_ns);
        warnings.push(format!(
            "worker {thread} did not end with the run and was left behind: it has taken no turn \
             for {} s; what it measured is known until {}",
            engine::PATIENCE.as_secs_f64(),
            measure::notation::seconds(until)
        ));
    }
    let gave_up = |worker: &WorkerOutcome| worker.summary.ended_by == EndedBy::NoAnswer;
    if outcome.workers.iter().any(gave_up) {
        warnings.push(
            "the run was ended early: its first queries had all failed; --no-preflight lets it go \
             on"
            .to_owned(),
        );
    }
    for script in outcome
        .workers
        .iter()
        .filter_map(|it| it.summary.script.as_ref())
    {
        if script.failures.total > 0 {
            let warning = "clients ended because their script failed; see Scripts".to_owned();
            warnings.push(warning);
            break;
        }
    }
    for worker in &outcome.workers {
        for reason in &worker.summary.tls.failures {
            let warning = format!("TLS failed: {reason}");
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    warnings
}

fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clock_that_is_set_in_mid_run_changes_no_time_of_the_record() {
        let started = Started {
            id: Some("a run".to_owned()),
            unix_time: Duration::from_secs(1_000_000_000),
            site: Site::default(),
        };
        let phases = Phases {
            connect_ns: 5_000_000,
            warmup_ns: 2_000_000_000,
            ..Phases::default()
        };
        // Whatever time it is by now.
        assert_eq!(started.at(), "2001-09-09T01:46:40Z");
        let agent = started.agent((&phases, 60_000_000_000), Some(7)).unwrap();
        assert_eq!(agent.first_late_ns, Some(7));
        assert_eq!(agent.began_us, 1_000_000_002_005_000);
        assert_eq!(agent.window_us, 60_000_000);
    }
}
