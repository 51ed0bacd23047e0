//! What a run on real sockets publishes while it goes on.

use std::time::Duration;

use lab::live::{Live, Phase};
use proto::Transport;

use crate::bench::{Load, Responder, ms};

#[test]
fn snapshots_have_the_newest_samples_of_what_the_record_observes() {
    let target = Responder::start(|_| {});
    let load = Load::over(Transport::Udp).rate(100.0).observe(&["host"]);
    let load = load.plan(|plan| plan.interval = ms(100));
    let request = load.request(target.address(Transport::Udp));
    let groups = [request];
    let (live, control) = (Live::default(), lab::run::control(&groups));
    let record = lab::run::run_groups(&groups, &control, &live).unwrap();
    let snapshots = live.after(0, Duration::ZERO).snapshots;
    let during = snapshots.iter().filter(|it| it.shown.phase == Phase::Load);
    for snapshot in during {
        let scrape = &snapshot.shown.observations[0];
        assert_eq!((&*scrape.source, &*scrape.profile), ("host", "host"));
        assert!(
            !scrape.has_failed && !scrape.samples.is_empty(),
            "{scrape:?}"
        );
    }
    // The last one has the scrape after the run.
    let last = snapshots.last().unwrap();
    assert_eq!(last.shown.phase, Phase::Ended);
    let (shown, recorded) = (&last.shown.observations[0], &record.observations[0]);
    assert_eq!(recorded.scrapes_merged, 1);
    let shown = shown.samples.iter().map(|it| (&it.series.name, it.sample));
    let recorded = recorded.series.iter();
    let recorded = recorded.map(|it| (&it.name, *it.samples.last().unwrap()));
    assert_eq!(shown.collect::<Vec<_>>(), recorded.collect::<Vec<_>>());
}
