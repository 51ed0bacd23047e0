//! Rule 2: this tool, or the host it ran on, set the rate (P3, P5, P14, P19).

use super::rules::{enough, losses};
use super::{Figures, Finding, Limit};
use crate::counts::SendFailures;
use crate::notation::{count, decimal, latency, percent, share};
use crate::scenario::Arrival;

/// Above this share of a CPU a closed-loop worker has no headroom.
const BUSY_SHARE_MAX: f64 = 0.97;
/// Above this share an open-loop worker that is late is late for want of CPU.
const BUSY_SHARE_WHEN_LATE: f64 = 0.9;
/// Queries that leave later than this (p99) are not on time.
pub(super) const LATENESS_MAX_NS: u64 = 1_000_000;
/// With fewer queries, the p99 is the lateness of one of them.
const LATENESS_QUERIES_MIN: u64 = 200;
/// Share of the offered queries that may be missing before it matters.
const SHORTFALL_MAX: f64 = 0.001;

pub(super) fn judge(figures: &Figures<'_>) -> Option<Finding> {
    out_of_resources(figures)
        .or_else(|| short_of_time(figures).filter(|_| explains_losses(figures)))
        .or_else(|| not_sent(figures))
}

/// A worker without a CPU, or queries that left late.
pub(super) fn short_of_time(figures: &Figures<'_>) -> Option<Finding> {
    out_of_cpu(figures).or_else(|| late_for_no_reason(figures))
}

/// A generator that is late sends late, and may fail to read what came: it does not make others
/// lose what it sent. A target on the same host may be kept from its CPU by the same.
fn explains_losses(figures: &Figures<'_>) -> bool {
    let is_host = figures.target_is_local() && longest_wait(figures).1 >= CPU_WAIT_SHARE_MAX;
    is_host || !losses::are_beyond_this_tool(figures)
}

/// True if a worker had no time to spare: it used its CPU or waited for it.
pub(super) fn has_no_cpu_left(figures: &Figures<'_>) -> bool {
    let workers = figures.record.workers.iter();
    let mut shares = workers.map(|it| it.busy_share() + it.cpu_wait_share());
    shares.any(|share| share >= BUSY_SHARE_WHEN_LATE)
}

/// Position of the worker that waited longest for its CPU, and the share of the time.
fn longest_wait(figures: &Figures<'_>) -> (usize, f64) {
    let shares = figures.record.workers.iter().map(|it| it.cpu_wait_share());
    let longest = shares.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
    longest.unwrap_or((0, 0.0))
}

/// Connections that could not be opened for want of descriptors or ports (P14).
pub(super) fn out_of_resources(figures: &Figures<'_>) -> Option<Finding> {
    let failed = &figures.record.connections().failed;
    let (number, what, cure) = if failed.no_resources > 0 {
        let cure = "allow more open files: ulimit -n";
        (failed.no_resources, "file descriptors or memory", cure)
    } else if failed.no_local_port > 0 {
        let cure = "give the clients more source addresses: --local-address";
        (failed.no_local_port, "local ports", cure)
    } else {
        return None;
    };
    let evidence = format!(
        "{} connection attempts failed because this host ran out of {what}",
        count(number)
    );
    Some(Finding::new(Limit::Generator, evidence, cure))
}

/// Share of the time that a closed loop's worker may wait for its CPU before it shapes the result.
const CPU_WAIT_SHARE_MAX: f64 = 0.10;
/// Share of the time from which on waiting for its CPU accounts for queries that left late.
const CPU_WAIT_SHARE_LATE: f64 = 0.05;

/// A worker that had no CPU left (P3), or had to share it (P19).
pub(super) fn out_of_cpu(figures: &Figures<'_>) -> Option<Finding> {
    let closed = matches!(figures.record.scenario.arrival, Arrival::Closed { .. });
    let late = figures.lateness_p99_ns > LATENESS_MAX_NS;
    let limit = match (closed, late) {
        (true, _) => BUSY_SHARE_MAX,
        (false, true) => BUSY_SHARE_WHEN_LATE,
        (false, false) => return None,
    };
    let (worker, busy) = figures.busiest_worker()?;
    if busy >= limit {
        let lateness = if closed {
            String::new()
        } else {
            let p99 = latency(figures.lateness_p99_ns as f64);
            format!(" and queries left up to {p99} late (p99)")
        };
        let evidence = format!(
            "worker {worker} used {} of its CPU{}{lateness}: this tool, not the target, set the \
             rate",
            percent(busy),
            for_handshakes(figures)
        );
        return Some(Finding::new(Limit::Generator, evidence, &more_cpu(figures)));
    }
    let (worker, waited) = longest_wait(figures);
    let busy = figures.record.workers.get(worker)?.busy_share();
    let short_of_cpu = waited >= CPU_WAIT_SHARE_LATE && busy + waited >= limit;
    // In a closed loop every wait holds up the next query, however idle the worker is otherwise;
    // in an open loop those that it held up left late.
    let hindered = waited >= CPU_WAIT_SHARE_MAX || late && waited >= CPU_WAIT_SHARE_LATE;
    if !short_of_cpu && !hindered {
        return None;
    }
    let evidence = format!(
        "worker {worker} waited for its CPU {} of the time: something else runs on it{}",
        percent(waited),
        match late && !closed {
            true => format!(
                ", and queries left up to {} late (p99)",
                latency(figures.lateness_p99_ns as f64)
            ),
            false => String::new(),
        }
    );
    let advice = "run the target on other cores or another machine: --cpus LIST";
    Some(Finding::new(Limit::Generator, evidence, advice))
}

/// From one handshake in that many queries on, handshakes cost more CPU than the queries: over 200
/// us each with a certificate, against some 5 us a query.
const QUERIES_PER_HANDSHAKE_MAX: u64 = 40;

/// What a busy worker was busy with, where connections are short-lived.
fn for_handshakes(figures: &Figures<'_>) -> String {
    if figures.record.asks_nothing() {
        let opened = decimal(figures.record.opened_per_second(), 1);
        return format!(", with {opened} connections a second");
    }
    let handshakes = figures.counts.connections.handshakes.total();
    if handshakes == 0 || figures.counts.sent / handshakes > QUERIES_PER_HANDSHAKE_MAX {
        return String::new();
    }
    format!(
        ", with {} handshakes a second beside the queries",
        decimal(figures.record.handshakes_per_second(), 1)
    )
}

/// How to get more CPU: another worker where a core is left, another machine where none is.
pub(super) fn more_cpu(figures: &Figures<'_>) -> String {
    let workers = figures.record.scenario.workers;
    let cores: u64 = figures
        .record
        .hosts
        .iter()
        .filter_map(|host| host.cores)
        .sum();
    let clients = figures.record.scenario.clients;
    if workers >= clients {
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

/// Queries that were due and that the kernel did not take.
fn not_sent(figures: &Figures<'_>) -> Option<Finding> {
    let counts = figures.counts;
    let send_failed = counts.not_sent.send_failed;
    // The network rule names the kernel's send buffer with its own counter.
    let is_counted = figures.record.network.kernel_counter("Udp.SndbufErrors") >= send_failed / 2;
    if !enough::is_above(send_failed, counts.offered, SHORTFALL_MAX) || is_counted {
        return None;
    }
    let (limit, why, advice) = refused_because(&counts.not_sent.send_failed_for);
    let evidence = format!(
        "{} of the queries were not sent: {why}",
        share(send_failed, counts.offered)
    );
    Some(Finding::new(limit, evidence, advice))
}

/// Why the kernel refused most of the datagrams that it refused.
fn refused_because(causes: &SendFailures) -> (Limit, &'static str, &'static str) {
    // Names every field, so that a new one cannot be forgotten here.
    let SendFailures {
        unreachable,
        forbidden,
        refused,
        no_resources,
        other,
    } = *causes;
    let unknown = (
        Limit::Generator,
        "the kernel did not take them",
        "raise net.core.wmem_max, or lower the rate",
    );
    let causes = [
        (
            unreachable,
            (
                Limit::Network,
                "there was no route to the target: the interface is down or gone",
                "look at the interface: ip -s link; ip route",
            ),
        ),
        (
            forbidden,
            (
                Limit::Generator,
                "a firewall of this host forbids them",
                "look at its rules: nft list ruleset; iptables -S OUTPUT",
            ),
        ),
        (
            refused,
            (
                Limit::Server,
                "nobody listened at the target's port",
                "start the server again, and look at its log",
            ),
        ),
        (no_resources, unknown),
        (other, unknown),
    ];
    let most = causes.into_iter().max_by_key(|(number, _)| *number);
    most.filter(|(number, _)| *number > 0)
        .map_or(unknown, |(_, what)| what)
}

/// UDP queries leave when they are due unless the host stalls the worker: over connections they
/// may have to wait for one, which is not the generator's fault.
pub(super) fn late_for_no_reason(figures: &Figures<'_>) -> Option<Finding> {
    let scenario = &figures.record.scenario;
    let open = !matches!(scenario.arrival, Arrival::Closed { .. });
    let sent = figures.record.total.distributions.send_lateness.count();
    let is_late = figures.lateness_p99_ns > LATENESS_MAX_NS && sent >= LATENESS_QUERIES_MIN;
    if !open || scenario.transport.has_connections() || !is_late {
        return None;
    }
    let (_, busy) = figures.busiest_worker().unwrap_or((0, 0.0));
    let (_, waited) = longest_wait(figures);
    let evidence = format!(
        "queries left up to {} late (p99) although the busiest worker used {} of its CPU and \
         waited for it {} of the time: the host stalled them",
        latency(figures.lateness_p99_ns as f64),
        percent(busy),
        percent(waited)
    );
    let advice = "look for other load on this host, or a virtual CPU that is taken away";
    Some(Finding::new(Limit::Generator, evidence, advice))
}
