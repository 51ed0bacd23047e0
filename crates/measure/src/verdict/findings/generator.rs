//! What this tool and its host lacked.

use super::Figures;
use crate::counts::NotSent;
use crate::doctor::{BUSY_POLL_US, Cure, Diagnosis, STEAL_PROBLEM, STEAL_WARNING, State};
use crate::histogram::Histogram;
use crate::interval::{Distributions, PathTimes, per};
use crate::notation::{count, counted, latency, percent, share};
use crate::verdict::generator;

/// From this share of its CPU on, a worker may soon be the limit.
const BUSY_WARNING: f64 = 0.9;
/// From this share of the latency on, timestamps say that it is more this host's than the target's.
const WAITS_WARNING: f64 = 0.5;
/// From this share of the latency's p99 on, it says a third more than the target's own p99: more
/// than objectives leave to chance.
const TAIL_WARNING: f64 = 0.25;
/// The latency's p99 is told apart by timestamps where at least so many responses are stamped: of
/// fewer, those without stamps may be the slow ones.
const STAMPED_MIN: f64 = 0.999;
/// More queries not sent than this share, and the run was not the one asked for.
const NOT_SENT_PROBLEM: f64 = 0.001;

pub(super) fn all(figures: &Figures<'_>) -> Vec<Diagnosis> {
    let found = [
        resources(figures),
        processor(figures),
        lateness(figures),
        waits(figures),
        steal(figures),
        quota(figures),
    ];
    found
        .into_iter()
        .flatten()
        .chain(not_sent(figures))
        .collect()
}

/// Open files, or ports.
fn resources(figures: &Figures<'_>) -> Option<Diagnosis> {
    let finding = generator::out_of_resources(figures)?;
    let scenario = &figures.record.scenario;
    let failed = figures.record.connections().failed;
    Some(if failed.no_resources > 0 {
        let needed = 2 * scenario.clients + 1_024;
        let matters = "clients without a socket ask nothing, and the others ask more for them";
        Diagnosis::new("open files", State::Problem, finding.evidence, matters)
            .cure(Cure::open_files(needed))
            .cure(Cure::throng("--processes 2"))
    } else {
        let matters = "each connection to one target needs a port of its own on each source \
                       address; closed ones keep theirs for 60 s";
        Diagnosis::new("source ports", State::Problem, finding.evidence, matters)
            .cure(Cure::throng("--local-address ADDRESS,ADDRESS,..."))
            .cure(Cure::sysctl("net.ipv4.ip_local_port_range", "1024 65535"))
            .cure(Cure::sysctl("net.ipv4.tcp_tw_reuse", 1))
    })
}

/// Workers without CPU time to spare.
fn processor(figures: &Figures<'_>) -> Option<Diagnosis> {
    let matters = "a generator without time to spare measures itself: rate and latency are its own";
    if let Some(finding) = generator::out_of_cpu(figures) {
        let advice = finding.advice.into_iter().map(Cure::words);
        return Some(
            Diagnosis::new("generator's CPU", State::Problem, finding.evidence, matters)
                .cures(advice),
        );
    }
    let (worker, busy) = figures.busiest_worker().filter(|it| it.1 >= BUSY_WARNING)?;
    let seen = format!("worker {worker} used {} of its CPU", percent(busy));
    let cure = Cure::words(generator::more_cpu(figures));
    Some(Diagnosis::new("generator's CPU", State::Warning, seen, matters).cure(cure))
}

fn lateness(figures: &Figures<'_>) -> Option<Diagnosis> {
    let finding = generator::late_for_no_reason(figures)?;
    if generator::out_of_cpu(figures).is_some() {
        return None;
    }
    let matters = "what leaves late is answered late: the latency is partly this host's";
    let advice = finding.advice.into_iter().map(Cure::words);
    Some(
        Diagnosis::new("lateness", State::Problem, finding.evidence, matters)
            .cures(advice)
            .cure(Cure::busiest_processes()),
    )
}

/// Latency that passed within this host, by the timestamps of datagrams.
fn waits(figures: &Figures<'_>) -> Option<Diagnosis> {
    let distributions = &figures.record.total.distributions;
    let seen = [
        waits_on_average(&distributions.path),
        waits_in_tail(distributions),
    ];
    let seen: Vec<String> = seen.into_iter().flatten().collect();
    if seen.is_empty() {
        return None;
    }
    let p99 = |part: &Histogram| part.percentile(0.99);
    let (generator, reader) = (&distributions.path.generator, &distributions.path.reader);
    let is_late_reader = p99(reader) > p99(generator);
    let matters = "only the part between is the target's and the network's; judge them by that \
                   part, as with --require 'wire.p99 < 5ms'";
    let fewer = "ask for fewer queries at a time: lower --rate or --outstanding";
    let more = generator::more_cpu(figures);
    let mut cures = [Cure::words(fewer), Cure::words(more)];
    if is_late_reader {
        cures.reverse();
    }
    let diagnosis = Diagnosis::new(
        "waiting in this host",
        State::Warning,
        seen.join("; "),
        matters,
    );
    // Loopback has no queue that could be polled.
    let may_poll = is_late_reader && !figures.target_is_local();
    let poll = may_poll.then(|| Cure::sysctl("net.core.busy_poll", BUSY_POLL_US));
    Some(diagnosis.cures(cures).cures(poll))
}

fn waits_on_average(path: &PathTimes) -> Option<String> {
    let [generator, network, reader] =
        [&path.generator, &path.network, &path.reader].map(|part| part.sum_ns() as f64);
    let all = generator + network + reader;
    if per(generator + reader, all) < WAITS_WARNING {
        return None;
    }
    Some(format!(
        "{} of the latency was waiting in this host: {} until queries left, {} until responses \
         were read",
        percent(per(generator + reader, all)),
        percent(per(generator, all)),
        percent(per(reader, all))
    ))
}

/// Percentiles of parts do not add up; but of no response does the part between take longer than
/// all of it, so that what its p99 is below that of the latency is the doing of the others.
fn waits_in_tail(distributions: &Distributions) -> Option<String> {
    let (all, path) = (&distributions.latency, &distributions.path);
    if (path.network.count() as f64) < STAMPED_MIN * all.count() as f64 {
        return None;
    }
    let [whole, generator, network, reader] =
        [all, &path.generator, &path.network, &path.reader].map(|part| part.percentile(0.99));
    let (whole, network) = (whole?, network?);
    let share = per(whole.saturating_sub(network) as f64, whole as f64);
    if share < TAIL_WARNING {
        return None;
    }
    let [whole, generator, network, reader] =
        [whole, generator?, network, reader?].map(|ns| latency(ns as f64));
    Some(format!(
        "{} of the p99 was made in this host: it is {whole}, that of wire and server alone \
         {network} (until queries left {generator}, until responses were read {reader})",
        percent(share)
    ))
}

/// Time that the hypervisor took during the run.
fn steal(figures: &Figures<'_>) -> Option<Diagnosis> {
    let network = &figures.record.network;
    let (stolen, all) = (
        network.kernel_counter("Cpu.Steal"),
        network.kernel_counter("Cpu.All"),
    );
    let stolen = per(stolen as f64, all as f64);
    if stolen < STEAL_WARNING {
        return None;
    }
    let state = match stolen >= STEAL_PROBLEM {
        true => State::Problem,
        false => State::Warning,
    };
    let seen = format!(
        "the hypervisor took {} of this host's CPU time during the run",
        percent(stolen)
    );
    let matters = "a virtual CPU that is taken away stalls every query on it";
    Some(Diagnosis::new("CPU steal", state, seen, matters).cure(Cure::dedicated_cpus()))
}

/// Time in which the control group might not run.
fn quota(figures: &Figures<'_>) -> Option<Diagnosis> {
    let network = &figures.record.network;
    let periods = network.kernel_counter("Cgroup.Throttled");
    if periods == 0 {
        return None;
    }
    let stood = network.kernel_counter("Cgroup.ThrottledMicroseconds") as f64 * 1e3;
    let seen = format!(
        "the CPU quota of this container was used up {}, and its threads stood still for {} \
         together",
        match periods {
            1 => "once".to_owned(),
            _ => format!("{} times", count(periods)),
        },
        latency(stood)
    );
    let matters =
        "what stands still sends late and reads late, which shows as the target's latency";
    let cure = "in Kubernetes: leave out limits.cpu, or set it and requests.cpu to the same whole \
                number under the static CPU manager policy";
    Some(
        Diagnosis::new("CPU quota", State::Problem, seen, matters)
            .cure(Cure::words(cure))
            .cure(Cure::throng("--workers 1")),
    )
}

/// Why queries that were due did not leave, a reason each.
fn not_sent(figures: &Figures<'_>) -> Vec<Diagnosis> {
    let counts = figures.counts;
    // Names every field, so that a new one cannot be forgotten here.
    let NotSent {
        timed_out_waiting,
        // The rule on message IDs tells of them.
        no_free_id: _,
        send_failed,
        send_failed_for: _,
        run_ended,
    } = counts.not_sent;
    let more_clients = 2 * figures.record.scenario.clients;
    let reasons = [
        (
            timed_out_waiting,
            "timed out while they waited for their connection",
            "connections are not there when they are needed: their set-up is what the run shows",
            Cure::throng(format!("--clients {more_clients}")),
        ),
        (
            send_failed,
            "were refused by the kernel",
            "the send buffer, or the queue of the interface, was full",
            Cure::sysctl("net.core.wmem_max", 4 << 20),
        ),
        (
            run_ended,
            "were still waiting when the run ended",
            "the target, or this tool, was behind the rate asked for",
            Cure::words("lower --rate until nothing waits"),
        ),
    ];
    let offered = counts.offered;
    let found = reasons.into_iter().filter(|reason| reason.0 > 0);
    let diagnosis = |(number, what, matters, cure): (u64, &str, &str, Cure)| {
        let state = match number as f64 > NOT_SENT_PROBLEM * offered as f64 {
            true => State::Problem,
            false => State::Warning,
        };
        let seen = format!(
            "{} ({} of those offered) {what}",
            counted(number, "query"),
            share(number, offered)
        );
        Diagnosis::new("queries not sent", state, seen, matters).cure(cure)
    };
    found.map(diagnosis).collect()
}
