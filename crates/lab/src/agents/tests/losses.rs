//! What is lost with an agent, at every stage of a run.

use std::time::Duration;

use agents::{DeadMan, STOP_MAX, Why};
use engine::Progress;
use measure::record::EndedBy;
use measure::{Interval, RunRecord};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use settings::{Named, OnAgentLoss};

use super::fleet::{Came, Fault, STEP, Scene, Stage, VICTIM};

const STAGES: [Stage; 7] = [
    Stage::Greeting,
    Stage::Inputs,
    Stage::Ready,
    Stage::Armed,
    Stage::WarmUp,
    Stage::Middle,
    Stage::Drain,
];
const EIGHT_SECONDS: Duration = Duration::from_secs(8);
const TWENTY_SECONDS: Duration = Duration::from_secs(20);
const THIRTY_SECONDS: Duration = Duration::from_secs(30);
const FAULTS: [Fault; 13] = [
    Fault::AgentKilled,
    Fault::OutOfMemory,
    Fault::AgentStopped(EIGHT_SECONDS),
    Fault::AgentStopped(THIRTY_SECONDS),
    Fault::AgentStopped(Duration::MAX),
    Fault::CutBothWays,
    Fault::CutToAgent,
    Fault::CutFromAgent,
    Fault::Slow(Duration::from_secs(1)),
    Fault::LeadKilled,
    Fault::LeadStopped(EIGHT_SECONDS),
    Fault::LeadStopped(TWENTY_SECONDS),
    Fault::Corrupt,
];
/// How long an agent goes on without its lead at most: until it misses it, and has stopped.
const GOES_ON_MAX: Duration = DeadMan::FAR
    .pauses
    .saturating_add(STOP_MAX)
    .saturating_add(STEP);

/// What has to come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// The whole run.
    Whole,
    /// The last checkpoint of all.
    Checkpoint,
    /// No result: it happened before there was one.
    Nothing,
    /// No lead is left to report one.
    NoLead,
}

fn expected(fault: Fault, stage: Stage) -> Expected {
    match fault {
        Fault::LeadKilled => Expected::NoLead,
        Fault::Nothing | Fault::Slow(_) | Fault::LeadStopped(_) => Expected::Whole,
        Fault::AgentStopped(EIGHT_SECONDS) => Expected::Whole,
        // It is waited for while it prepares.
        Fault::AgentStopped(THIRTY_SECONDS) if stage < Stage::Ready => Expected::Whole,
        // Its record still arrives.
        Fault::CutToAgent if stage == Stage::Drain => Expected::Whole,
        // It is not missed before the first checkpoint.
        Fault::CutToAgent if stage == Stage::WarmUp => Expected::Checkpoint,
        _ if stage < Stage::Middle => Expected::Nothing,
        _ => Expected::Checkpoint,
    }
}

/// Nothing that was sent is missing, and nothing that was not is there.
fn check_counts(record: &RunRecord, received: u64) -> Result<(), String> {
    let mut known = record.warmup.counts.sent + record.total.counts.sent;
    let mut most = known;
    if let Some(degraded) = &record.degraded {
        let of_survivors = degraded.total.counts.sent;
        let told: u64 = degraded.lost.iter().map(|it| it.sent).sum();
        let unknown: u64 = degraded.lost.iter().map(|it| it.fate_unknown_max).sum();
        most = known + of_survivors + unknown;
        known += of_survivors + told;
    }
    match (known..=most).contains(&received) {
        true => Ok(()),
        false => Err(format!("received {received}, known {known} to {most}")),
    }
}

fn check(came: &Came, (fault, stage): (Fault, Stage)) -> Result<(), String> {
    let expected = expected(fault, stage);
    match (&came.result, expected) {
        (None, Expected::NoLead) | (Some(Err(_)), Expected::Nothing) => {}
        (Some(Ok(record)), Expected::Whole) => {
            check_counts(record, came.received)?;
            if let Some(degraded) = &record.degraded {
                return Err(format!("{:?} were lost", degraded.lost));
            }
        }
        (Some(Ok(record)), Expected::Checkpoint) => {
            check_counts(record, came.received)?;
            let lost = record.degraded.iter().flat_map(|it| &it.lost);
            let lost: Vec<u64> = lost.map(|it| it.agent).collect();
            if lost != [VICTIM as u64 + 1] || record.ended_by != EndedBy::AgentLost {
                return Err(format!("{lost:?} were lost, {:?}", record.ended_by));
            }
        }
        (result, _) => {
            let result = result.as_ref().map(|it| it.as_ref().map(|it| &it.degraded));
            return Err(format!("expected {expected:?}, came {result:?}"));
        }
    }
    // Others begin where one has said that it can, and does not hear that it is to: until it says
    // that it has not, a second later.
    let sent_max = match (fault, stage) {
        (Fault::CutToAgent, Stage::Armed) => 80,
        _ => 0,
    };
    if stage <= Stage::Armed && expected != Expected::Whole && came.received > sent_max {
        return Err(format!("{} queries were sent", came.received));
    }
    let Some(fault_at) = came.fault_at else {
        return Err("nothing happened".to_owned());
    };
    let last = came.last_sent[VICTIM].filter(|_| expected != Expected::Whole);
    match last.filter(|last| *last > fault_at + GOES_ON_MAX) {
        Some(last) => Err(format!("sent until {last:?}, after {fault_at:?}")),
        None => Ok(()),
    }
}

/// Each fault at each stage: what comes of the run, what the target has received, and when the
/// agent sent last.
#[test]
fn each_fault_at_each_stage_has_its_outcome() {
    let mut wrong = Vec::new();
    for fault in FAULTS {
        for stage in STAGES {
            let came = Scene::new(fault, stage).play();
            if let Err(why) = check(&came, (fault, stage)) {
                wrong.push(format!("{fault:?} at {stage:?}: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Agents whose clocks are days apart begin at one instant, within the bounds that are claimed.
#[test]
fn all_begin_at_once_whatever_their_clocks_show() {
    let came = Scene::new(Fault::Nothing, Stage::Greeting).play();
    let record = came.result.unwrap().unwrap();
    assert_eq!(record.agent_count, 3);
    // Messages take a millisecond each way, and are looked at every ten.
    assert!(
        came.start_spread <= Duration::from_millis(20),
        "{:?}",
        came.start_spread
    );
    assert_eq!(
        came.received,
        record.warmup.counts.sent + record.total.counts.sent
    );
}

/// An agent that receives the start too late does not begin.
#[test]
fn an_agent_that_hears_too_late_of_the_start_does_not_begin() {
    let mut scene = Scene::new(Fault::Nothing, Stage::Armed);
    // It reports that it is awake, and is stopped when the start should reach it.
    let later = Duration::from_millis(30);
    scene.faults = vec![(
        VICTIM,
        Stage::Armed,
        later,
        Fault::AgentStopped(EIGHT_SECONDS),
    )];
    let found = (1..40).find_map(|number| {
        let mut scene = scene.clone();
        scene.faults[0].2 = Duration::from_millis(10 * number);
        let came = scene.play();
        let Some(Err(failure)) = came.result else {
            return None;
        };
        Some((failure, came.last_sent[VICTIM]))
    });
    let (failure, sent) = found.expect("some instant is between both");
    assert!(matches!(failure.why, Why::Late(_)), "{failure:?}");
    assert_eq!((failure.agent, sent), (VICTIM, None));
}

/// One that pauses before the start, at any instant, puts it off, or begins behind its schedule.
#[test]
fn an_agent_that_pauses_before_the_start_is_waited_for() {
    let pauses = [250, 1_000].map(Duration::from_millis);
    for (number, pause) in (0..40).flat_map(|number| pauses.map(|pause| (number, pause))) {
        let mut scene = Scene::new(Fault::Nothing, Stage::Armed);
        let pause = Fault::AgentStopped(pause);
        scene.faults = vec![(VICTIM, Stage::Armed, number * STEP, pause)];
        let came = scene.play();
        let record = came.result.as_ref().unwrap();
        let record = record.as_ref();
        let record = record.unwrap_or_else(|why| panic!("after {number} steps: {why:?}"));
        check_counts(record, came.received).unwrap();
    }
}

/// A host that pauses with all that runs on it, and gives its CPU to the lead last.
#[test]
fn a_pause_of_the_whole_host_loses_no_agent() {
    let pause = Duration::from_secs(12);
    for stage in [Stage::WarmUp, Stage::Middle, Stage::Drain] {
        for lead_is_later_by in [0, 300, 1_500, 1_900] {
            let mut scene = Scene::new(Fault::Nothing, stage);
            let lead_pause = pause + Duration::from_millis(lead_is_later_by);
            scene.faults = vec![(
                VICTIM,
                stage,
                Duration::ZERO,
                Fault::LeadStopped(lead_pause),
            )];
            let agents = 0..scene.agents;
            let agents = agents.map(|it| (it, stage, Duration::ZERO, Fault::AgentStopped(pause)));
            scene.faults.extend(agents);
            let came = scene.play();
            let case = format!("{stage:?}, {lead_is_later_by} ms");
            let record = came.result.as_ref().unwrap();
            let record = record
                .as_ref()
                .unwrap_or_else(|why| panic!("{case}: {why:?}"));
            assert!(record.degraded.is_none(), "{case}");
            check_counts(record, came.received).unwrap();
        }
    }
}

/// SIGTERM at an agent loses nothing of what it did.
#[test]
fn an_agent_that_leaves_says_all_that_it_has_done() {
    let came = Scene::new(Fault::Leave, Stage::Middle).play();
    let record = came.result.as_ref().unwrap().as_ref().unwrap();
    let degraded = record.degraded.as_ref().unwrap();
    let how = "it was asked to end (SIGTERM) on host-1";
    assert_eq!(degraded.lost[0].how, how);
    assert_eq!(degraded.lost[0].fate_unknown_max, degraded.lost[0].sent);
    check_counts(record, came.received).unwrap();
}

/// Kubernetes kills a pod some time after SIGTERM, however busy it is.
#[test]
fn an_agent_that_leaves_and_is_killed_may_have_sent_more_than_it_said() {
    let mut cut_short = 0;
    for after in 0..40 {
        let killed = Duration::from_millis(5 * after);
        let scene = Scene {
            faults: vec![
                (VICTIM, Stage::Middle, Duration::ZERO, Fault::Leave),
                (VICTIM, Stage::Middle, killed, Fault::AgentKilled),
            ],
            ..Scene::new(Fault::Nothing, Stage::Middle)
        };
        let came = scene.play();
        let record = came.result.as_ref().unwrap().as_ref().unwrap();
        check_counts(record, came.received).unwrap_or_else(|why| panic!("{killed:?}: {why}"));
        let lost = &record.degraded.as_ref().unwrap().lost[0];
        cut_short += u32::from(
            lost.how
                .contains("(SIGTERM), and ended before it was ready"),
        );
    }
    assert!((1..40).contains(&cut_short), "{cut_short}");
}

/// Any number of faults at any time, with agents that go on after losses.
#[test]
fn whatever_is_lost_when_nothing_is_counted_wrong() {
    for seed in 0..100 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut below = |bound: usize| random.next_u64() as usize % bound;
        let agents = 2 + below(4);
        let faults = (0..1 + below(3)).map(|_| {
            let stage = STAGES[below(STAGES.len())];
            let later = Duration::from_millis(below(20_000) as u64);
            let fault = match FAULTS[below(FAULTS.len())] {
                Fault::LeadKilled => Fault::Leave,
                fault => fault,
            };
            (below(agents), stage, later, fault)
        });
        let scene = Scene {
            agents,
            faults: faults.collect(),
            on_loss: OnAgentLoss::ALL[below(3)],
            duration: Duration::from_secs(10 + below(40) as u64),
            seed,
            ..Scene::new(Fault::Nothing, Stage::Middle)
        };
        let came = scene.play();
        if let Some(Ok(record)) = &came.result {
            check_counts(record, came.received).unwrap_or_else(|why| panic!("{scene:?}: {why}"));
        }
    }
}

/// With one agent that is lost on the way.
#[test]
fn groups_of_clients_are_shown_while_agents_run_if_a_reader_wants_them() {
    let scene = |shows_groups| Scene {
        groups: 2,
        shows_groups,
        on_loss: OnAgentLoss::Continue,
        ..Scene::new(Fault::AgentKilled, Stage::Middle)
    };
    let shown = scene(true).play().shown;
    assert!(shown.len() >= 50, "{}", shown.len());
    for progress in &shown {
        let interval = &progress.interval;
        assert_eq!(progress.groups.len(), 2);
        let sum = |of: fn(&Interval) -> u64| progress.groups.iter().map(of).sum::<u64>();
        assert_eq!(sum(|it| it.counts.sent), interval.counts.sent);
        assert_eq!(sum(|it| it.counts.responses), interval.counts.responses);
        assert_eq!(
            sum(|it| it.distributions.latency.count()),
            interval.distributions.latency.count()
        );
        for group in &progress.groups {
            let time = (group.start_ns, group.end_ns);
            assert_eq!(time, (interval.start_ns, interval.end_ns));
            assert!(group.distributions.send_lateness.is_empty());
        }
    }
    let not_wanted = scene(false).play().shown;
    assert!(not_wanted.iter().all(|it| it.groups.is_empty()));
    // That they are shown changes nothing of what was measured.
    let intervals = |shown: Vec<Progress>| -> Vec<Interval> {
        shown.into_iter().map(|it| it.interval).collect()
    };
    assert_eq!(intervals(shown), intervals(not_wanted));
}
