//! Pages of made-up snapshots.

use std::sync::Arc;

use lab::live::{
    Live, NewestSample, NewestScrape, Next, Place, SeriesName, Shown, ShownGroup, Snapshot,
};
use measure::Limit;
use measure::observation::{Sample, SeriesKind};
use testing::measured::{SECOND, busy_server, second};

use super::*;
use crate::bins::POINTS_MAX;
use crate::page;

/// The interval of that number: a second with these responses and losses.
fn interval(number: u64, responses: u64, lost: u64) -> Arc<Interval> {
    Arc::new(second(number, responses, lost))
}

fn judged() -> Judged {
    Judged {
        verdict: busy_server(),
        until_ns: 5 * SECOND,
        is_provisional: true,
    }
}

fn agent(host: &str, is_lost: bool) -> ShownAgent {
    ShownAgent {
        host: Some(host.to_owned()),
        is_at_work: !is_lost,
        is_lost,
    }
}

fn shown(number: u64) -> Shown {
    let group = |name: &str, lost| ShownGroup {
        name: name.to_owned(),
        interval: interval(number, 500, lost),
    };
    Shown {
        phase: Phase::Load,
        left: Some(Duration::from_secs(3_725)),
        interval: Some(interval(number, 1_000, 4)),
        groups: vec![group("stub", 0), group("resolver", 4)],
        agents: vec![agent("alpha", false), agent("beta", true)],
        judged: Some(Arc::new(judged())),
        ..Shown::default()
    }
}

fn read(watched: &mut Watched, next: &Next) {
    watched.note_missed(next);
    next.snapshots.iter().for_each(|it| watched.add(it));
}

/// The content of one fragment.
fn content(watched: &Watched, id: &str) -> String {
    let all = fragments(watched);
    let found = all.into_iter().find(|it| it.id == id);
    found.unwrap_or_else(|| panic!("no {id}")).html
}

/// What ten snapshots of a run show.
fn watched() -> Watched {
    let live = Live::default();
    live.begin(Place::new("trial", 2, Some(7)));
    (0..10).for_each(|number| {
        live.publish(shown(number));
    });
    let mut watched = Watched::new("capacity");
    read(&mut watched, &live.after(0, Duration::ZERO));
    watched
}

#[test]
fn page_has_the_figures_of_the_newest_interval_and_of_the_run() {
    let watched = watched();
    let progress = content(&watched, "progress");
    for words in ["throng capacity", "2 of 7", "trial", "load", "1 h 2 min"] {
        assert!(progress.contains(words), "{words}: {progress}");
    }
    let tiles = content(&watched, "tiles");
    for words in ["answered", "1,000", "lost", "40 in the whole run", "2.00"] {
        assert!(tiles.contains(words), "{words}: {tiles}");
    }
    let table = content(&watched, "rates-table");
    assert!(table.contains(">1,004<"), "{table}");
    assert_eq!(table.matches("<tr>").count(), 11);
}

#[test]
fn verdict_so_far_is_marked_as_provisional() {
    let verdict = content(&watched(), "verdict");
    assert!(verdict.contains("Provisional"), "{verdict}");
    assert!(verdict.contains("busy for 99.0 %"), "{verdict}");
    assert!(verdict.contains(Limit::Server.headline().trim_start_matches('t')));
}

#[test]
fn groups_and_agents_have_a_row_each() {
    let watched = watched();
    let groups = content(&watched, "groups");
    assert!(groups.contains(">stub<") && groups.contains(">resolver<"));
    let agents = content(&watched, "agents");
    assert!(agents.contains(">0 on alpha<"), "{agents}");
    assert!(agents.contains(">1 on beta</th><td class=\"n\">lost<"));
    assert!(agents.contains("2 agents: 1 at work, 1 lost"));
}

/// A scrape of a server that answers 100 queries a second more than a second before.
fn scrape(source: &str, at_s: u64) -> Arc<NewestScrape> {
    let sample = |name: &str, kind, value| NewestSample {
        series: Arc::new(SeriesName {
            name: name.to_owned(),
            unit: "queries".to_owned(),
            kind,
        }),
        sample: Sample::Value(value),
        last: None,
    };
    let answered = 100.0 * at_s as f64;
    Arc::new(NewestScrape {
        source: source.into(),
        profile: "bind".into(),
        at: Duration::from_secs(1_000 + at_s),
        has_failed: false,
        samples: vec![
            sample("answered", SeriesKind::Counter, answered),
            sample("waiting", SeriesKind::Gauge, 2.5),
        ],
    })
}

#[test]
fn observed_servers_have_values_and_what_counters_grow_by() {
    let live = Live::default();
    for second in 0..3 {
        let observations = vec![scrape("bind=192.0.2.1:8053", second)];
        live.publish(Shown {
            observations,
            ..shown(second)
        });
    }
    let mut watched = Watched::new("run");
    read(&mut watched, &live.after(0, Duration::ZERO));
    let observed = content(&watched, "observed");
    for part in [
        "<caption>bind bind=192.0.2.1:8053</caption>",
        ">answered</th><td class=\"n\">200</td><td class=\"n\">100</td>",
        ">waiting</th><td class=\"n\">2.500</td><td class=\"n\">-</td>",
    ] {
        assert!(observed.contains(part), "{part}: {observed}");
    }
    // Another run begins without what was observed beside this one.
    live.begin(Place::new("", 2, None));
    live.publish(shown(0));
    read(&mut watched, &live.after(3, Duration::ZERO));
    assert_eq!(content(&watched, "observed"), "");
}

#[test]
fn many_observed_series_are_bounded() {
    let live = Live::default();
    let observations = (0..150)
        .map(|it| scrape(&format!("bind={it}"), 0))
        .collect();
    live.publish(Shown {
        observations,
        ..shown(0)
    });
    let mut watched = Watched::new("run");
    read(&mut watched, &live.after(0, Duration::ZERO));
    let observed = content(&watched, "observed");
    assert!(observed.matches("<tr>").count() <= 64 + SERIES_MAX);
}

#[test]
fn trials_that_are_over_are_listed_with_what_limited_them() {
    let live = Live::default();
    for run in 1..=3 {
        live.begin(Place::new(format!("{run}0 kQ/s"), run, None));
        live.publish(shown(0));
    }
    let mut watched = Watched::new("capacity");
    read(&mut watched, &live.after(0, Duration::ZERO));
    let runs = content(&watched, "runs");
    let order = ["3: 30 kQ/s", "2: 20 kQ/s", "1: 10 kQ/s"].map(|it| runs.find(it).unwrap());
    assert!(order.is_sorted(), "{runs}");
    assert_eq!(runs.matches(">server<").count(), 3, "{runs}");
    assert_eq!(runs.matches(">1,004 qps<").count(), 3, "{runs}");
    assert_eq!(runs.matches(">ended<").count(), 2, "{runs}");
    let each = content(&watched, "each");
    assert!(
        each.contains("Rate of each run") && each.contains("<svg"),
        "{each}"
    );
    // The chart above them is that of the newest alone.
    assert_eq!(watched.bins.points().len(), 1);
}

/// A page that is opened late has them, and no event does.
#[test]
fn charts_of_the_newest_earlier_runs_stay_and_are_bounded() {
    let mut watched = Watched::new("experiment");
    let runs = 40;
    for run in 1..=runs {
        let place = Arc::new(Place::new(format!("<cell {run}>"), run, Some(runs)));
        for number in 0..500 {
            watched.add(&Arc::new(Snapshot {
                number: 500 * run + number,
                at: Duration::from_secs(number),
                place: Arc::clone(&place),
                shown: Shown {
                    interval: Some(interval(number, 1_000 + number % 97, number % 7)),
                    ..Shown::default()
                },
            }));
        }
    }
    let earlier = watched.earlier();
    assert_eq!(earlier.matches("<svg class=\"chart\"").count(), 2 * 12);
    let order = ["Run 39: &lt;cell 39&gt;", "Run 28: "].map(|it| earlier.find(it).unwrap());
    assert!(order.is_sorted() && !earlier.contains("Run 27: "));
    assert!(content(&watched, "earlier-note").starts_with("39 runs ended"));
    let all = fragments(&watched);
    let bytes: usize = all.iter().map(|it| it.html.len()).sum();
    assert!(bytes < 300_000, "{bytes} bytes an event");
    let page = page::render("experiment", (&all, &earlier), 1);
    assert!(page.len() < 3_000_000, "{} bytes a page", page.len());
    let mut ids: Vec<&str> = page.split(" id=\"").skip(1).collect();
    ids.iter_mut()
        .for_each(|it| *it = it.split('"').next().unwrap());
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "{ids:?}");
}

#[test]
fn only_run_of_a_command_lists_no_runs() {
    let live = Live::default();
    live.begin(Place::new("", 1, Some(1)));
    live.publish(Shown::default());
    let mut watched = Watched::new("run");
    read(&mut watched, &live.after(0, Duration::ZERO));
    for id in ["runs", "each", "groups", "agents", "observed"] {
        assert_eq!(content(&watched, id), "", "{id}");
    }
    assert!(content(&watched, "tiles").contains("No interval"));
}

#[test]
fn screen_reader_hears_of_phases_and_not_of_intervals() {
    let live = Live::default();
    let mut watched = Watched::new("run");
    let mut said = Vec::new();
    for number in 0..20 {
        live.publish(shown(number));
        read(&mut watched, &live.after(number, Duration::ZERO));
        said.push(content(&watched, "announcement"));
    }
    said.dedup();
    assert_eq!(said.len(), 1, "{said:?}");
}

#[test]
fn names_of_groups_agents_and_runs_cannot_add_elements() {
    let name = "<img src=x onerror=alert(1)>\"'&\u{202e}\r\nid: 3\r\n";
    let live = Live::default();
    live.begin(Place::new(name, 1, Some(2)));
    let mut shown = shown(0);
    shown.groups[0].name = name.to_owned();
    shown.agents = vec![agent(name, false)];
    shown.observations = vec![scrape(name, 0)];
    let mut verdict = judged();
    verdict.verdict.evidence = vec![name.to_owned()];
    shown.judged = Some(Arc::new(verdict));
    live.publish(shown);
    let mut watched = Watched::new(name);
    read(&mut watched, &live.after(0, Duration::ZERO));
    let page = page::render(name, (&fragments(&watched), &watched.earlier()), 1);
    assert!(!page.contains("<img"), "{page}");
    assert!(page.matches("&lt;img src=x").count() >= 8, "{page}");
    assert!(!page.contains('\u{202e}') && !page.contains('\r'));
}

/// A day of intervals of one second, without a clock.
#[test]
fn page_of_a_day_is_bounded() {
    let place = Arc::new(Place::new("", 1, Some(1)));
    let mut watched = Watched::new("run");
    for number in 0..86_400 {
        let mut shown = shown(number);
        let responses = if number == 40_000 { 9_000 } else { 1_000 };
        shown.interval = Some(interval(number, responses, 4));
        watched.add(&Arc::new(Snapshot {
            number: number + 1,
            at: Duration::from_secs(number),
            place: Arc::clone(&place),
            shown,
        }));
    }
    let points = watched.bins.points();
    assert!(points.len() <= POINTS_MAX, "{}", points.len());
    let all = fragments(&watched);
    let bytes: usize = all.iter().map(|it| it.html.len()).sum();
    assert!(bytes < 300_000, "{bytes} bytes an event");
    let page = page::render("run", (&all, ""), 86_400);
    assert!(page.len() < 400_000, "{} bytes a page", page.len());
    let greatest = points.iter().filter_map(|it| it.responses.band);
    assert_eq!(greatest.map(|it| it.1).fold(0.0, f64::max), 9_000.0);
    assert!(content(&watched, "rates-drawing").contains("256 intervals together"));
}
