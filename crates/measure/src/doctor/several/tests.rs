//! Tests of diagnoses from several runs together.

use crate::doctor::of_runs;
use crate::limit::Limit;
use crate::observation::SeriesKind;
use crate::rules::observed_situations::*;
use crate::rules::situations::*;

fn labelled(key: &str, value: &str, qps: u64) -> RunRecord {
    let mut record = record(vec![interval(0, &[(MS, qps)])]);
    record.scenario.labels.insert(key.into(), value.into());
    record
}

#[test]
fn query_logging_is_blamed_only_where_runs_without_it_are_faster() {
    let (on, off) = (
        labelled("querylog", "on", 10_000),
        labelled("querylog", "off", 15_000),
    );
    let found = of_runs(&[&on, &off]);
    assert_eq!((found.len(), found[0].state), (1, State::Problem));
    let seen = "10,000 qps with querylog=on, 15,000 qps with querylog=off: 50.0 % more";
    assert_eq!(found[0].seen, seen);
    let cures: Vec<&str> = found[0].cures.iter().map(|it| it.how.as_str()).collect();
    assert_eq!(cures[..2], ["rndc querylog off", "querylog no;"]);

    let same = labelled("querylog", "off", 10_100);
    let found = of_runs(&[&on, &same]);
    assert_eq!((found[0].state, found[0].cures.len()), (State::Ok, 0));
    // Runs that overlap show nothing either.
    let slow = labelled("querylog", "off", 9_000);
    assert_eq!(of_runs(&[&on, &off, &slow])[0].state, State::Ok);
    // One value, or another load, is no comparison.
    assert!(of_runs(&[&on, &on]).is_empty());
    let mut other = off;
    other.scenario.clients = 99;
    assert!(of_runs(&[&on, &other]).is_empty());
}

#[test]
fn busy_polling_caps_and_threads_are_compared_by_their_labels() {
    let runs = [
        labelled("busy_poll", "0", 250_000),
        labelled("busy_poll", "50", 260_000),
    ];
    let found = of_runs(&[&runs[0], &runs[1]]);
    assert_eq!(
        (found[0].topic.as_str(), found[0].state),
        ("busy polling", State::Problem)
    );
    assert_eq!(found[0].cures[0].how, "sysctl -w net.core.busy_read=50");

    let runs = [
        labelled("tcp-clients", "1000", 155_000),
        labelled("tcp-clients", "150", 114_000),
    ];
    let found = of_runs(&[&runs[0], &runs[1]]);
    assert_eq!(found[0].cures[0].how, "tcp-clients 1000;");

    let runs = [
        labelled("threads", "1", 10_000),
        labelled("threads", "4", 35_000),
    ];
    let found = of_runs(&[&runs[0], &runs[1]]);
    assert_eq!(found[0].cures[0].how, "named -n 4");
}

#[test]
fn the_same_share_lost_at_two_rates_is_the_paths() {
    let at = |rate_qps: f64, lost: u64| {
        let mut record = in_time(rate_qps);
        lose(&mut record, lost);
        record
    };
    let (slow, fast) = (at(10_000.0, 2_000), at(20_000.0, 2_000));
    let found = of_runs(&[&fast, &slow]);
    assert_eq!(
        (found[0].topic.as_str(), found[0].state),
        ("path", State::Problem)
    );
    assert!(
        found[0].cures[0]
            .how
            .contains("mtr --report --udp 192.0.2.1"),
        "{found:?}"
    );
    assert!(of_runs(&[&slow, &at(20_000.0, 20_000)]).is_empty());
    assert!(of_runs(&[&slow, &at(12_000.0, 2_000)]).is_empty());
    // Each second query is lost, at any rate; or one rate is admitted, and half of it has no loss.
    let (steady, mut half) = (limited(|_| 5), limited(|_| 5));
    half.scenario.arrival = in_time(500.0).scenario.arrival;
    assert_eq!(of_runs(&[&steady, &half])[0].topic, "path");
    let mut kept = limited(|_| 10);
    kept.scenario.arrival = in_time(500.0).scenario.arrival;
    assert!(of_runs(&[&steady, &kept]).is_empty());
    // Where a run shows why, that is the reason in both.
    let drops = server(15_000.0, &[("queries.dropped", SeriesKind::Counter, 200.0)]);
    let both = [slow, fast].map(|record| observing(record, std::slice::from_ref(&drops)));
    assert!(of_runs(&[&both[0], &both[1]]).is_empty());
}

#[test]
fn runs_that_say_nothing_about_the_target_show_nothing_together() {
    let runs = [("on", 10_000), ("off", 15_000)];
    let limited = |limit| {
        runs.map(|(value, qps)| {
            let mut record = labelled("querylog", value, qps);
            record.verdict.limit = limit;
            record
        })
    };
    let found = |limit| {
        let [on, off] = limited(limit);
        of_runs(&[&on, &off])
    };
    assert_eq!(found(Limit::Server).len(), 1);
    assert!(found(Limit::Generator).is_empty());
    // Each held its rate: the setting may have done nothing, or much.
    assert!(found(Limit::Rate).is_empty());
}
