//! Readers that are fast, slow or many, and a publisher that none of them delays.

use std::sync::mpsc::channel;

use measure::Interval;
use measure::histogram::Histogram;

use super::*;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);

fn shown(responses: u64) -> Shown {
    let mut interval = Interval::default();
    interval.counts.responses = responses;
    Shown {
        phase: Phase::Load,
        interval: Some(Arc::new(interval)),
        ..Shown::default()
    }
}

fn published(count: u64) -> Live {
    let live = Live::default();
    for number in 1..=count {
        assert_eq!(live.publish(shown(number)), number);
    }
    live
}

fn numbers(next: &Next) -> Vec<u64> {
    next.snapshots.iter().map(|it| it.number).collect()
}

fn responses(snapshot: &Snapshot) -> u64 {
    let interval = snapshot.shown.interval.as_ref();
    interval.map_or(0, |it| it.counts.responses)
}

#[test]
fn many_readers_see_the_same_snapshots_by_the_same_numbers() {
    let live = published(3);
    let first = live.after(0, LONG);
    live.publish(shown(4));
    let second = live.clone().after(0, LONG);
    assert_eq!(
        (numbers(&first), first.missed.clone()),
        (vec![1, 2, 3], 1..1)
    );
    assert_eq!(numbers(&second), [1, 2, 3, 4]);
    assert!(Arc::ptr_eq(&first.snapshots[2], &second.snapshots[2]));
    assert_eq!(responses(&second.snapshots[3]), 4);
    assert_eq!(numbers(&live.after(3, LONG)), [4]);
}

#[test]
fn a_slow_reader_learns_which_numbers_it_has_missed() {
    let most = SNAPSHOTS_MAX as u64;
    let live = published(most + 10);
    let next = live.after(4, LONG);
    assert_eq!(next.missed, 5..11);
    assert_eq!(next.snapshots.len(), SNAPSHOTS_MAX);
    assert_eq!(
        (next.snapshots[0].number, responses(&next.snapshots[0])),
        (11, 11)
    );
    // One that has the newest of those that are gone has missed nothing.
    assert!(live.after(10, LONG).missed.is_empty());
    // A number of another command's run does not make a reader wait until it is reached.
    live.close();
    assert!(live.after(u64::MAX, LONG).is_over);
}

#[test]
fn large_histograms_leave_fewer_snapshots_in_the_ring() {
    let mut latency = Histogram::default();
    (0..4_000_000_000)
        .step_by(100_000)
        .for_each(|ns| latency.record(ns));
    let live = Live::default();
    let mut held = 0;
    for _ in 0..SNAPSHOTS_MAX {
        let mut interval = Interval::default();
        interval.distributions.latency = latency.clone();
        interval.distributions.service = latency.clone();
        interval.distributions.send_lateness = latency.clone();
        held = interval.shrink_to_fit();
        live.publish(Shown {
            interval: Some(Arc::new(interval)),
            ..Shown::default()
        });
    }
    let next = live.after(0, LONG);
    let most = BUCKETS_MAX / held;
    assert!(
        most < SNAPSHOTS_MAX,
        "{held} buckets are too few for this test"
    );
    assert_eq!(next.snapshots.len(), most);
    assert_eq!(next.missed, 1..1 + (SNAPSHOTS_MAX - most) as u64);
}

#[test]
fn many_samples_of_observations_leave_fewer_snapshots_in_the_ring() {
    let series = Arc::new(SeriesName {
        name: "queries".to_owned(),
        unit: "queries".to_owned(),
        kind: measure::observation::SeriesKind::Counter,
    });
    let sample = NewestSample {
        series,
        sample: measure::observation::Sample::Value(1.0),
        last: None,
    };
    let scrape = Arc::new(NewestScrape {
        source: "s".into(),
        profile: "p".into(),
        at: Duration::ZERO,
        has_failed: false,
        samples: vec![sample; 1_024],
    });
    let live = Live::default();
    for _ in 0..SNAPSHOTS_MAX {
        live.publish(Shown {
            observations: vec![Arc::clone(&scrape); 32],
            ..Shown::default()
        });
    }
    let next = live.after(0, LONG);
    assert!(!next.snapshots.is_empty());
    let octets = next.snapshots.len() * 32 * 1_024 * size_of::<NewestSample>();
    assert!(octets <= BUCKETS_MAX * size_of::<u64>(), "{octets}");
}

#[test]
fn a_reader_waits_for_the_next_snapshot_and_no_longer_than_asked() {
    let live = published(1);
    assert!(live.after(1, Duration::ZERO).snapshots.is_empty());
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| live.after(1, LONG));
        live.publish(shown(2));
        assert_eq!(numbers(&waits.join().unwrap()), [2]);
    });
}

/// The reader does not return from its first snapshot until all others are published.
#[test]
fn the_publisher_does_not_wait_for_a_reader_that_is_at_work() {
    let live = Live::default();
    let (release, released) = channel::<()>();
    let (reads, read) = channel();
    let follower = live.follow(move |next| {
        reads.send((next.missed.clone(), numbers(next))).unwrap();
        let _ = released.recv_timeout(LONG);
    });
    live.publish(shown(1));
    assert_eq!(read.recv_timeout(LONG).unwrap(), (1..1, vec![1]));
    let last = SNAPSHOTS_MAX as u64 + 5;
    for number in 2..=last {
        live.publish(shown(number));
    }
    assert!(!follower.unwrap().end(Duration::ZERO));
    drop(release);
    let (missed, numbers) = read.recv_timeout(LONG).unwrap();
    assert_eq!(missed, 2..6);
    assert_eq!(
        (numbers.len(), numbers.last()),
        (SNAPSHOTS_MAX, Some(&last))
    );
}

#[test]
fn a_follower_reads_what_was_published_before_its_end_and_nothing_after_it() {
    let live = published(2);
    live.begin(Place::new("trial 2", 2, None));
    let (reads, read) = channel();
    let follower = live.follow(move |next| {
        for snapshot in &next.snapshots {
            reads.send((snapshot.number, snapshot.place.run)).unwrap();
        }
    });
    live.publish(shown(3));
    live.publish(shown(4));
    assert!(follower.unwrap().end(LONG));
    live.publish(shown(5));
    assert_eq!(read.iter().collect::<Vec<_>>(), [(3, 2), (4, 2)]);
}
