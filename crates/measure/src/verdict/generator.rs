//! Rule 2: this tool, or the host it ran on, set the rate (P3, P5, P14, P19).

use super::{Figures, Finding, Limit};
use crate::notation::{count, decimal, latency, percent, share};
use crate::scenario::Arrival;

/// Above this share of a CPU a closed-loop worker has no headroom.
const BUSY_SHARE_MAX: f64 = 0.97;
/// Above this share an open-loop worker that is late is late for want of CPU.
const BUSY_SHARE_WHEN_LATE: f64 = 0.9;
/// Queries that leave later than this (p99) are not on time.
pub(super) const LATENESS_MAX_NS: u64 = 1_000_000;
/// Share of the offered queries that may be missing before it matters.
const SHORTFALL_MAX: f64 = 0.001;

pub(super) fn judge(figures: &Figures<'_>) -> Option<Finding> {
    out_of_resources(figures)
        .or_else(|| out_of_cpu(figures))
        .or_else(|| not_sent(figures))
        .or_else(|| late_for_no_reason(figures))
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
    let workers = figures.record.workers.iter().enumerate();
    let (worker, facts) =
        workers.max_by(|a, b| a.1.cpu_wait_share().total_cmp(&b.1.cpu_wait_share()))?;
    let waited = facts.cpu_wait_share();
    let short_of_cpu = waited >= 0.05 && facts.busy_share() + waited >= limit;
    // In a closed loop every wait holds up the next query, however idle the worker is otherwise.
    let hindered = closed && waited >= CPU_WAIT_SHARE_MAX;
    if !short_of_cpu && !hindered {
        return None;
    }
    let evidence = format!(
        "worker {worker} waited for its CPU {} of the time: something else runs on it",
        percent(facts.cpu_wait_share())
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

/// Queries that were due and never left, for reasons of this host.
fn not_sent(figures: &Figures<'_>) -> Option<Finding> {
    let counts = figures.counts;
    let short = |number: u64| number as f64 > SHORTFALL_MAX * counts.offered as f64;
    let (no_free_id, send_failed) = (counts.not_sent.no_free_id, counts.not_sent.send_failed);
    if !short(no_free_id + send_failed) {
        return None;
    }
    let of_offered = share(no_free_id + send_failed, counts.offered);
    if no_free_id >= send_failed {
        let evidence = format!(
            "{of_offered} of the queries were not sent: all 65,536 message IDs of a client were \
             in flight"
        );
        let advice = format!(
            "spread them: --clients {}",
            2 * figures.record.scenario.clients
        );
        return Some(Finding::new(Limit::Generator, evidence, &advice));
    }
    // The network rule names the kernel's send buffer with its own counter.
    if figures.record.network.kernel_counter("Udp.SndbufErrors") >= send_failed / 2 {
        return None;
    }
    let evidence =
        format!("{of_offered} of the queries were not sent: the kernel did not take them");
    let advice = "raise net.core.wmem_max, or lower the rate";
    Some(Finding::new(Limit::Generator, evidence, advice))
}

/// UDP queries leave when they are due unless the host stalls the worker: over connections they
/// may have to wait for one, which is not the generator's fault.
pub(super) fn late_for_no_reason(figures: &Figures<'_>) -> Option<Finding> {
    let scenario = &figures.record.scenario;
    let open = !matches!(scenario.arrival, Arrival::Closed { .. });
    if !open || scenario.transport.has_connections() || figures.lateness_p99_ns <= LATENESS_MAX_NS {
        return None;
    }
    let evidence = format!(
        "queries left up to {} late (p99) although no worker was out of CPU: the host stalled them",
        latency(figures.lateness_p99_ns as f64)
    );
    let advice = "look for other load on this host, or a virtual CPU that is taken away";
    Some(Finding::new(Limit::Generator, evidence, advice))
}
