use super::*;
use crate::example::{SECOND, interval, record};

const PLAN: RampPlan = RampPlan {
    rate_qps_max: 1_000.0,
    ramp_ns: 4 * SECOND,
    sustain_ns: 2 * SECOND,
    point_ns: SECOND,
    outstanding_max: 300,
    behind_max: Some(100),
    lost_share_max: 0.2,
    ignores_losses: false,
};

/// A second with these numbers of queries sent and answered.
fn second(index: u64, sent: u64, responses: u64) -> Interval {
    let mut second = interval(index, &[(1_000_000, responses)]);
    second.counts.sent = sent;
    second.counts.offered = sent;
    second
}

/// Why a ramp of these seconds stops, and after how many.
fn stop(plan: RampPlan, seconds: &[(u64, u64)]) -> Option<(usize, Stop)> {
    let mut watch = Watch::new(plan);
    let mut each = seconds.iter().enumerate();
    each.find_map(|(index, &(sent, responses))| {
        let stop = watch.look(&second(index as u64, sent, responses));
        stop.map(|stop| (index, stop))
    })
}

#[test]
fn rate_grows_to_its_maximum_and_stays_there() {
    let at = |seconds: f64| (seconds * SECOND as f64) as u64;
    for (seconds, rate, due) in [
        (0.0, 0.0, 0.0),
        (2.0, 500.0, 500.0),
        (4.0, 1_000.0, 2_000.0),
        (5.0, 1_000.0, 3_000.0),
        (9.0, 1_000.0, 4_000.0),
    ] {
        assert!((PLAN.rate_qps_at(at(seconds)) - rate).abs() < 0.01);
        assert!(
            (PLAN.due_until(at(seconds)) - due).abs() < 0.01,
            "{seconds}"
        );
    }
    let at_once = RampPlan { ramp_ns: 0, ..PLAN };
    assert_eq!(at_once.rate_qps_at(0), 1_000.0);
    assert_eq!(at_once.due_until(SECOND), 1_000.0);
}

#[test]
fn ramp_stops_at_the_first_limit_that_it_meets() {
    let due = [
        (125, 125),
        (375, 375),
        (625, 625),
        (875, 875),
        (1_000, 1_000),
    ];
    assert_eq!(stop(PLAN, &due), None);
    let queue = [(125, 125), (375, 375), (625, 600), (875, 600)];
    assert_eq!(stop(PLAN, &queue), Some((3, Stop::Outstanding(300))));
    let late = [(125, 125), (375, 375), (500, 500)];
    assert_eq!(stop(PLAN, &late), Some((2, Stop::Behind(125))));
    let patient = RampPlan {
        behind_max: None,
        ..PLAN
    };
    assert_eq!(stop(patient, &late), None);
    // Once may be a response that comes in the next second.
    let roomy = RampPlan {
        outstanding_max: 10_000,
        ..PLAN
    };
    let lossy = [(125, 125), (375, 200), (625, 800), (875, 600), (1_000, 500)];
    assert_eq!(stop(roomy, &lossy), Some((4, Stop::Lost(0.5))));
    let brave = RampPlan {
        ignores_losses: true,
        ..roomy
    };
    assert_eq!(stop(brave, &lossy), None);
}

#[test]
fn peak_is_the_most_responses_before_too_many_are_lost() {
    let seconds = [(125, 125), (375, 375), (625, 500), (875, 510), (1_000, 550)];
    let seconds = seconds.iter().zip(0..);
    let intervals: Vec<Interval> = seconds
        .map(|(&(sent, responses), index)| second(index, sent, responses))
        .collect();
    let points = points(&PLAN, &intervals, &[0]);
    assert_eq!(points.len(), 5);
    assert_eq!((points[1].target_qps, points[1].sent_qps), (375.0, 375.0));
    assert_eq!(points[2].service_mean_ns, Some(1e6));
    assert_eq!(points[2].failures_qps, 0.0);
    let most = |share| peak(&points, share).unwrap().responses_qps;
    assert_eq!(most(1.0), 550.0);
    assert_eq!(most(0.2), 500.0);
    assert_eq!(most(0.1), 375.0);
    assert_eq!(peak(&points[..0], 1.0), None);
}

#[test]
fn queries_still_open_when_a_ramp_is_interrupted_are_not_lost() {
    let mut run = record(vec![second(0, 125, 120)]);
    let counts = &mut run.total.counts;
    (
        counts.timeouts,
        counts.interrupted,
        counts.not_sent.run_ended,
    ) = (2, 3, 4);
    let ramp = Ramp::new(&PLAN, &run, None);
    assert_eq!((ramp.sent, ramp.responses, ramp.lost), (125, 120, 2));
}

#[test]
fn document_survives_json_and_fits_its_schema() {
    let run = record(vec![second(0, 125, 125), second(1, 375, 375)]);
    let ramp = Ramp::new(&PLAN, &run, None);
    assert_eq!(ramp.ended_by, Stop::Completed);
    assert_eq!(ramp.points.len(), 2);
    let json: serde_json::Value = serde_json::from_str(&ramp.to_json_pretty()).unwrap();
    let read: Ramp = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(read, ramp);
    let offences = crate::conforms::offences(&Ramp::json_schema(), &json);
    assert_eq!(offences, Vec::<String>::new());
}
