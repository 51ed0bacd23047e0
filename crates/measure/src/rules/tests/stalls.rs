//! A host that keeps everything waiting a little at all times is not what stopped a target for a
//! second; one that was stopped in that second is.

use crate::facts::{CpuUse, WorkerFacts};
use crate::rules::situations::*;
use crate::timeline::{Bin, Timeline};

/// What happens in the middle of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Nothing,
    /// The target, or this many of its four parts, stops by itself.
    TargetStops(u64),
    /// The generator's host stops, with the target on it.
    HostStops,
    /// Something keeps the target alone from its CPU.
    TargetStarved,
}

/// A run on a host that keeps generator and target waiting in small pieces.
#[derive(Clone, Copy, Debug)]
struct Run {
    seed: u64,
    event: Event,
    /// Its length, milliseconds.
    length: u64,
    /// Queries due in each millisecond.
    rate: u64,
    /// The longest piece, milliseconds; none if the host is idle.
    piece: u64,
    /// How many thousandths of the time such pieces are.
    busy: u64,
    /// Queries that each part of the target has room for.
    room: usize,
}

const RUN_MS: u64 = 30_000;
const EVENT_MS: u64 = 15_300;
const TIMEOUT_MS: u64 = 5_000;
const PARTS: usize = 4;

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }
}

/// The milliseconds in which one of two does not run, in pieces.
fn pieces(random: &mut Random, run: &Run) -> Vec<bool> {
    let mut waits = vec![false; (RUN_MS + TIMEOUT_MS) as usize];
    let mut at = 0;
    while run.piece > 0 && at < waits.len() {
        let length = 1 + random.below(run.piece) as usize;
        let end = (at + length).min(waits.len());
        waits[at..end].fill(true);
        let pause = (length as u64 * (1_000 - run.busy) / run.busy.max(1)).max(1);
        at = end + 1 + random.below(2 * pause) as usize;
    }
    waits
}

impl Run {
    fn is_in_event(&self, ms: u64) -> bool {
        (EVENT_MS..EVENT_MS + self.length).contains(&ms)
    }

    /// Simulates it, millisecond by millisecond.
    fn record(&self) -> RunRecord {
        let mut random = Random(self.seed);
        let (mut own, mut target) = (pieces(&mut random, self), pieces(&mut random, self));
        for ms in 0..RUN_MS {
            let (is_event, at) = (self.is_in_event(ms), ms as usize);
            own[at] |= is_event && self.event == Event::HostStops;
            target[at] |= is_event && matches!(self.event, Event::HostStops | Event::TargetStarved);
        }
        let mut sim = Simulation::new();
        for ms in 0..RUN_MS + TIMEOUT_MS {
            sim.offer(self, ms, own[ms as usize]);
            sim.answer(self, ms, target[ms as usize]);
        }
        sim.into_record(self)
    }
}

struct Simulation {
    intervals: Vec<Interval>,
    timeline: Timeline,
    due: Vec<u64>,
    /// Of each part of the target, when queries were due and sent.
    queues: [Vec<(u64, u64)>; PARTS],
    next: usize,
    last_turn: u64,
    own_waited: u64,
    target_waited: u64,
    dropped: u64,
}

impl Simulation {
    fn new() -> Self {
        Simulation {
            intervals: (0..RUN_MS / 1_000).map(|it| interval(it, &[])).collect(),
            timeline: Timeline::new(),
            due: Vec::new(),
            queues: Default::default(),
            next: 0,
            last_turn: 0,
            own_waited: 0,
            target_waited: 0,
            dropped: 0,
        }
    }

    fn interval(&mut self, ms: u64) -> &mut Interval {
        let last = self.intervals.len() - 1;
        &mut self.intervals[((ms / 1_000) as usize).min(last)]
    }

    /// Queries that are due leave unless the generator waits for its CPU.
    fn offer(&mut self, run: &Run, ms: u64, waits: bool) {
        if ms < RUN_MS {
            (0..run.rate).for_each(|_| self.due.push(ms));
            let bin = Bin {
                due: run.rate,
                ..Bin::default()
            };
            self.timeline.add(ms * MS, &bin);
            self.interval(ms).counts.offered += run.rate;
            self.own_waited += u64::from(waits);
        }
        if waits {
            return;
        }
        if ms - self.last_turn >= 60 {
            self.timeline.freeze(self.last_turn * MS, ms * MS);
        }
        self.last_turn = ms;
        for due in std::mem::take(&mut self.due) {
            let part = self.next % PARTS;
            self.next += 1;
            self.timeline.add(
                ms * MS,
                &Bin {
                    sent: 1,
                    ..Bin::default()
                },
            );
            let interval = self.interval(ms);
            interval.counts.sent += 1;
            interval
                .distributions
                .send_lateness
                .record((ms - due) * MS + 10_000);
            if self.queues[part].len() < run.room {
                self.queues[part].push((due, ms));
            } else {
                self.dropped += 1;
                self.interval(ms).counts.timeouts += 1;
                let bin = Bin {
                    unanswered: 1,
                    ..Bin::default()
                };
                self.timeline.add(ms * MS, &bin);
                self.timeline.lose(due * MS, 1);
            }
        }
    }

    /// Each part of the target answers what is there unless it is stopped or waits for its CPU.
    fn answer(&mut self, run: &Run, ms: u64, waits: bool) {
        let has_work = self.queues.iter().any(|it| !it.is_empty());
        let stopped = match run.event {
            Event::TargetStops(parts) if run.is_in_event(ms) => parts as usize,
            _ => 0,
        };
        self.target_waited += u64::from(waits && has_work && stopped < PARTS);
        if waits {
            return;
        }
        for part in stopped..PARTS {
            for (due, sent) in std::mem::take(&mut self.queues[part]) {
                let [latency_ns, service_ns] = [due, sent].map(|it| (ms - it) * MS + 100_000);
                let interval = self.interval(ms);
                interval.counts.responses += 1;
                interval.counts.rcodes.by_rcode[0] += 1;
                interval.distributions.latency.record(latency_ns);
                interval.distributions.service.record(service_ns);
                let bin = Bin {
                    responses: 1,
                    latency_us: latency_ns / 1_000,
                    ..Bin::default()
                };
                self.timeline.add(ms * MS, &bin);
            }
        }
    }

    fn into_record(self, run: &Run) -> RunRecord {
        let mut record = crate::example::record_without_experience(self.intervals);
        record.scenario.arrival = open_loop(&[(MS, 1)], 1_000.0 * run.rate as f64)
            .scenario
            .arrival;
        record.scenario.target = "127.0.0.1:53".into();
        record.timeline = Some(self.timeline);
        let others_ns = (RUN_MS * run.busy / 1_000 + run.length) * MS;
        record.workers[0] = WorkerFacts {
            cpu_ns: SECOND,
            wall_ns: RUN_MS * MS,
            cpu_wait_ns: Some(self.own_waited * MS),
            queries: record.total.counts.sent,
            ..WorkerFacts::default()
        };
        record.host_use = Some(CpuUse {
            wall_ns: RUN_MS * MS,
            is_target_here: true,
            target_ns: Some(SECOND),
            target_wait_ns: Some(self.target_waited * MS),
            target_udp_drops: Some(self.dropped),
            others_ns: others_ns.max(4 * SECOND),
            ..CpuUse::default()
        });
        record
    }
}

/// Runs with parameters that look random.
fn runs(event: impl Fn(u64) -> Event) -> impl Iterator<Item = Run> {
    (0..60).map(move |seed| {
        let mut random = Random(seed);
        (0..9).for_each(|_| _ = random.below(2));
        Run {
            seed,
            event: event(random.below(1_000)),
            length: 800 + random.below(1_200),
            rate: 1 + random.below(4),
            piece: 2 + random.below(30),
            busy: 50 + random.below(350),
            room: 64 + random.below(400) as usize,
        }
    })
}

#[test]
fn an_outage_on_a_host_that_is_busy_all_the_time_is_the_targets() {
    for run in runs(|_| Event::TargetStops(PARTS as u64)) {
        let verdict = judge(&run.record());
        assert_eq!(verdict.limit, Limit::Server, "{run:?} {verdict:#?}");
        let seen = &verdict.evidence[0];
        assert!(seen.contains("nothing came back"), "{run:?} {verdict:#?}");
    }
}

#[test]
fn an_outage_in_which_the_host_was_stopped_is_the_hosts() {
    for run in runs(|_| Event::HostStops) {
        let verdict = judge(&run.record());
        assert_eq!(verdict.limit, Limit::Generator, "{run:?} {verdict:#?}");
        let seen = &verdict.evidence[0];
        assert!(seen.contains("was not scheduled"), "{run:?} {verdict:#?}");
    }
}

#[test]
fn what_a_short_stop_of_the_host_lost_is_not_the_targets() {
    for run in runs(|_| Event::HostStops) {
        let short = Run {
            length: 40 + run.length % 200,
            room: 16,
            ..run
        };
        let verdict = judge(&short.record());
        let is_right = matches!(verdict.limit, Limit::Generator | Limit::Rate);
        assert!(is_right, "{short:?} {verdict:#?}");
    }
}

#[test]
fn an_outage_of_a_target_that_waited_alone_is_not_said_to_be_its_own() {
    for run in runs(|_| Event::TargetStarved) {
        let idle = Run { piece: 0, ..run };
        let verdict = judge(&idle.record());
        assert_eq!(verdict.limit, Limit::Unknown, "{idle:?} {verdict:#?}");
        let seen = "the target stopped, or other processes kept it from its CPU";
        assert!(verdict.evidence[0].contains(seen), "{idle:?} {verdict:#?}");
    }
}

#[test]
fn a_part_of_a_target_that_stops_on_a_busy_host_is_not_the_hosts() {
    for run in runs(|any| Event::TargetStops(1 + any % 3)) {
        let verdict = judge(&run.record());
        let idle = judge(&Run { piece: 0, ..run }.record()).limit;
        let wrong = match idle {
            Limit::Rate => Limit::Server,
            _ => Limit::Generator,
        };
        let is_right = idle != Limit::Generator && verdict.limit != wrong;
        assert!(is_right, "{run:?} {idle:?} {verdict:#?}");
    }
}

#[test]
fn what_a_busy_host_does_all_the_time_is_not_the_targets() {
    for run in runs(|_| Event::Nothing) {
        for room in [64, run.room] {
            let verdict = judge(&Run { room, ..run }.record());
            let is_right = matches!(verdict.limit, Limit::Generator | Limit::Rate);
            assert!(is_right, "{room} {run:?} {verdict:#?}");
        }
    }
}
