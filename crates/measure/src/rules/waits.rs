//! Latency that passed within this host, by the timestamps of datagrams.

use crate::doctor::{BUSY_POLL_US, Cure, Diagnosis, State};
use crate::histogram::Histogram;
use crate::interval::{Distributions, PathTimes, per};
use crate::notation::{latency, percent};

use super::{Figures, Finding, processor};

/// From this share of the latency on, timestamps say that it is more this host's than the target's.
const WAITS_WARNING: f64 = 0.5;
/// From this share of the latency's p99 on, it says a third more than the target's own p99: more
/// than objectives leave to chance.
const TAIL_WARNING: f64 = 0.25;
/// The latency's p99 is told apart by timestamps where at least so many responses are stamped: of
/// fewer, those without stamps may be the slow ones.
const STAMPED_MIN: f64 = 0.999;

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
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
    let fewer = "send fewer queries at a time: lower --rate or --outstanding";
    let more = processor::more_cpu(figures);
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
    let may_poll = is_late_reader && !figures.target_shares_cpus();
    let poll = may_poll.then(|| Cure::sysctl("net.core.busy_poll", BUSY_POLL_US));
    Some(Finding::met(diagnosis.cures(cures).cures(poll)))
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

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    const TOPIC: &str = "waiting in this host";

    fn waits(record: &RunRecord) -> Option<Diagnosis> {
        found_on(record, TOPIC)
    }

    #[test]
    fn waiting_in_the_generators_host_is_told_from_the_rest_by_timestamps() {
        let mut record = saturated();
        change_last(&mut record, |interval| {
            let path = &mut interval.distributions.path;
            path.generator.record_many(3 * MS, 1_000);
            path.network.record_many(4 * MS, 1_000);
            path.reader.record_many(3 * MS, 1_000);
        });
        let seen =
            "60.0 % of the latency was waiting in this host: 30.0 % until queries left, 30.0 %";
        told(&record, TOPIC).warning(seen, "--outstanding");
        change_last(&mut record, |interval| {
            interval
                .distributions
                .path
                .network
                .record_many(4 * MS, 1_000);
        });
        assert!(waits(&record).is_none(), "{:?}", waits(&record));
    }

    /// 100,000 responses of which 2 % waited for so long in the generator, and for so long to be
    /// read, beside `network` on the way.
    fn stamped(generator: u64, network: u64, reader: u64) -> RunRecord {
        let slow = generator + network + reader;
        let usual = 10_000 + MS + 10_000;
        let latencies = [(usual, 9_800), (slow, 200)];
        let mut record = record((0..10).map(|index| interval(index, &latencies)).collect());
        let parts = |interval: &mut Interval| {
            let path = &mut interval.distributions.path;
            for (part, usual, slow) in [
                (&mut path.generator, 10_000, generator),
                (&mut path.network, MS, network),
                (&mut path.reader, 10_000, reader),
            ] {
                part.record_many(usual, 9_800);
                part.record_many(slow, 200);
            }
        };
        record.intervals.iter_mut().for_each(parts);
        change_last(&mut record, |_| ());
        record
    }

    #[test]
    fn a_tail_that_was_made_in_the_generators_host_is_told_by_timestamps() {
        let late = stamped(3 * MS, 2 * MS, 10_000);
        let seen = "60.0 % of the p99 was made in this host: it is 4.997 ms, that of wire and \
                    server alone 2.000 ms (until queries left 3.000 ms, until responses were read \
                    10.00 us)";
        let found = told(&late, TOPIC).warning(seen, "--rate");
        assert!(found.cures[0].sentence().contains("--rate"), "{found:#?}");
        assert!(found.matters.contains("wire.p99"), "{found:#?}");

        let unread = stamped(10_000, 2 * MS, 3 * MS);
        let seen = "60.0 % of the p99 was made in this host";
        let cure = "net.core.busy_poll";
        let found = told(&unread, TOPIC).warning(seen, cure);
        let more = found.cures[0].sentence();
        assert!(more.contains("--workers"), "{found:#?}");
    }

    #[test]
    fn a_tail_of_the_targets_is_none_of_this_hosts() {
        // Below a quarter.
        for (generator, network) in [(10_000, 5 * MS), (MS, 4 * MS)] {
            let found = waits(&stamped(generator, network, 10_000));
            assert!(found.is_none(), "{found:#?}");
        }
        // Many without stamps: nobody knows where the slow ones were.
        let mut record = stamped(3 * MS, 2 * MS, 10_000);
        change_last(&mut record, |interval| {
            let of_tail = 0.02 * interval.counts.responses as f64;
            interval.counts.offered += of_tail as u64;
            interval.counts.sent += of_tail as u64;
            interval.counts.responses += of_tail as u64;
            interval
                .distributions
                .latency
                .record_many(9 * MS, of_tail as u64);
        });
        assert!(waits(&record).is_none(), "{:#?}", waits(&record));
    }
}
