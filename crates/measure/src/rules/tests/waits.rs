//! Latency that passed within this host, by the timestamps of datagrams.

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
    let seen = "60.0 % of the latency was waiting in this host: 30.0 % until queries left, 30.0 %";
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

/// 100,000 responses, of which 2 % waited for the given times in the generator and to be read, in
/// addition to `network` on the way.
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
    // Many have no timestamps: it is unknown where the slow ones waited.
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
