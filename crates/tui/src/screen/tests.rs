//! Screens of made-up snapshots, read back from their buffers.

use std::sync::Arc;
use std::time::Duration;

use lab::live::{
    Judged, LastValue, Live, NewestSample, NewestScrape, Place, SeriesName, Shown, ShownAgent,
    ShownGroup,
};
use measure::observation::{Sample, SeriesKind};
use measure::{Interval, Verdict};
use proptest::prelude::*;
use testing::measured::{SECOND, busy_server, second};

use super::*;
use crate::Encoder;

/// The interval of that number: a second with these responses and losses.
fn interval(number: u64, responses: u64, lost: u64) -> Arc<Interval> {
    Arc::new(second(number, responses, lost))
}

fn scrape(at_s: u64, value: f64) -> Arc<NewestScrape> {
    let series = SeriesName {
        name: "queries".to_owned(),
        unit: "queries".to_owned(),
        kind: SeriesKind::Counter,
    };
    let at = Duration::from_secs(at_s);
    let sample = NewestSample {
        series: Arc::new(series),
        sample: Sample::Value(value),
        last: Some(LastValue { value, at }),
    };
    Arc::new(NewestScrape {
        source: "127.0.0.1:8053".into(),
        profile: "bind".into(),
        at,
        has_failed: false,
        samples: vec![sample],
    })
}

fn judged() -> Judged {
    Judged {
        verdict: busy_server(),
        until_ns: 5 * SECOND,
        is_provisional: true,
    }
}

fn shown(number: u64) -> Shown {
    let group = |name: &str, lost| ShownGroup {
        name: name.to_owned(),
        interval: interval(number, 500, lost),
    };
    let agent = |host: &str, is_lost: bool| ShownAgent {
        host: Some(host.to_owned()),
        is_at_work: !is_lost,
        is_lost,
    };
    Shown {
        phase: Phase::Load,
        left: Some(Duration::from_secs(50 - number)),
        interval: Some(interval(number, 1_000, 4)),
        groups: vec![group("stub", 0), group("resolver", 4)],
        agents: vec![agent("alpha", false), agent("beta", true)],
        observations: vec![scrape(number, 100.0 * number as f64)],
        judged: Some(Arc::new(judged())),
        ..Shown::default()
    }
}

/// A screen that has read ten snapshots.
fn screen() -> Screen {
    let live = Live::default();
    live.begin(Place::new("trial", 2, Some(7)));
    (0..10).for_each(|number| {
        live.publish(shown(number));
    });
    let mut screen = Screen::new("run");
    screen.read(&live.after(0, Duration::ZERO));
    screen
}

fn text(screen: &Screen, size: (u16, u16)) -> String {
    let buffer = screen.draw(size, "a note");
    let rows = buffer.content().chunks(usize::from(size.0).max(1));
    let rows = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
    rows.map(|row| format!("{}\n", row.trim_end())).collect()
}

fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

#[test]
fn views_show_their_key_figures_at_usual_widths() {
    for columns in [40, 80, 120] {
        let mut screen = screen();
        let mut view = |key: &[u8]| {
            screen.press(key);
            text(&screen, (columns, 40))
        };
        let run = view(b"1");
        assert_has(
            &run,
            &["throng run", "2/7", "responses", "1,000 qps", "a note", "█"],
        );
        assert_has(
            &run,
            &["latency p99", "2.0", "? help", "RCODEs", "NOERROR 100 %"],
        );
        assert_has(&view(b"2"), &["stub", "resolver", "500.0 qps"]);
        assert_has(&view(b"3"), &["bind 127.0.0.1:8053", "queries"]);
        assert_has(&view(b"4"), &["2 agents: 1 at work, 1 lost", "alpha"]);
        let verdict = view(b"5");
        assert_has(
            &verdict,
            &["Limit: server", "provisional: of the first 5.0 s", "99.0 %"],
        );
        assert_has(&verdict, &["give it more CPUs"]);
        assert_has(&view(b"?"), &["Ctrl-F", "freeze the screen"]);
    }
}

#[test]
fn wide_screen_has_all_columns() {
    let mut screen = screen();
    let run = text(&screen, (120, 40));
    assert_has(
        &run,
        &[
            "mixed",
            "load",
            "41.0 s left",
            "10,000",
            "0.40 %",
            "lost, at most 4",
        ],
    );
    screen.press(b"3");
    assert_has(&text(&screen, (120, 40)), &["900", "100 a second"]);
    screen.press(b"2");
    assert_has(&text(&screen, (120, 40)), &["40", "0.79 %"]);
}

#[test]
fn runs_of_a_comparison_are_listed_and_the_whole_has_a_bar() {
    let live = Live::default();
    for (run, name) in [(1, "A 1"), (2, "B 1"), (3, "B 2")] {
        live.begin(Place::new(name, run, Some(4)));
        let ended = Shown {
            phase: Phase::Ended,
            ..shown(0)
        };
        live.publish(ended);
    }
    let mut screen = Screen::new("compare");
    screen.read(&live.after(0, Duration::ZERO));
    for columns in [40, 80, 120] {
        screen.press(b"1");
        let run = text(&screen, (columns, 40));
        assert_has(&run, &["3/4", "B 2", "all runs  75 %", "2: B 1", "1: A 1"]);
        screen.press(b"6");
        let runs = text(&screen, (columns, 40));
        assert_has(&runs, &["2 of 4 ended", "3: B 2", "2: B 1", "1: A 1"]);
    }
    assert_has(
        &text(&screen, (120, 40)),
        &["1,000 qps", "0.40 %", "server"],
    );
}

#[test]
fn keys_change_the_view_and_what_it_has() {
    let mut screen = screen();
    let title = "latency p99, at most";
    assert!(text(&screen, (80, 40)).contains(title));
    screen.press(b"c");
    assert!(!text(&screen, (80, 40)).contains(title));
    screen.press(b"\t");
    assert!(text(&screen, (80, 40)).contains("resolver"));
    screen.press(b"??\t\t\t\t\tc");
    assert!(text(&screen, (80, 40)).contains(title));
    screen.press(b"\x06");
    assert!(screen.is_frozen() && text(&screen, (80, 40)).contains("FROZEN"));
    screen.press(b"\x06");
    assert!(!screen.is_frozen());
}

#[test]
fn run_is_ended_once_however_often_q_is_pressed() {
    let mut screen = screen();
    assert_eq!(screen.press(b"1q"), Some(Action::EndRun));
    assert_eq!(screen.press(b"qq"), None);
}

#[test]
fn missed_snapshots_are_shown_on_any_width() {
    let live = Live::default();
    (0..605).for_each(|_| {
        live.publish(Shown::default());
    });
    let mut screen = Screen::new("run");
    screen.read(&live.after(0, Duration::ZERO));
    for columns in [40, 120] {
        assert_has(&text(&screen, (columns, 24)), &["missed 5 snapshots"]);
    }
}

#[test]
fn long_lists_are_scrolled_to_their_end_and_no_further() {
    let live = Live::default();
    let groups = (0..40).map(|number| ShownGroup {
        name: format!("group-{number:02}"),
        interval: interval(0, 1, 0),
    });
    live.publish(Shown {
        groups: groups.collect(),
        ..Shown::default()
    });
    let mut screen = Screen::new("run");
    screen.read(&live.after(0, Duration::ZERO));
    screen.press(b"2");
    assert_has(&text(&screen, (80, 24)), &["group-00", "more below"]);
    screen.press(&b"\x1b[B".repeat(500));
    let end = text(&screen, (80, 24));
    assert!(
        end.contains("group-39") && !end.contains("more below"),
        "{end}"
    );
}

#[test]
fn screen_without_a_snapshot_says_that_it_waits() {
    let mut screen = Screen::new("capacity");
    for key in [b"1", b"2", b"3", b"4", b"5", b"6"] {
        screen.press(key);
        assert_has(
            &text(&screen, (80, 24)),
            &["throng capacity", "waiting for the run"],
        );
    }
}

fn any_shown() -> impl Strategy<Value = Shown> {
    let counts = (0..u64::MAX / 4_096, 0..1_000u64, 0..70u64);
    let names = proptest::collection::vec(".{0,50}", 0..80);
    (
        counts,
        names,
        any::<[bool; 4]>(),
        0..u64::MAX / 4_096,
        any::<f64>(),
    )
        .prop_map(|((responses, lost, number), names, flags, left, value)| {
            let group = |name: &String| ShownGroup {
                name: name.clone(),
                interval: interval(number, responses, lost),
            };
            let agent = |name: &String| ShownAgent {
                host: flags[0].then(|| name.clone()),
                is_at_work: flags[1],
                is_lost: flags[2],
            };
            let named = |name: &String| {
                let mut scrape = Arc::unwrap_or_clone(scrape(number, value));
                (scrape.source, scrape.has_failed) = (name.as_str().into(), flags[3]);
                Arc::new(scrape)
            };
            let verdict = Judged {
                verdict: Verdict {
                    evidence: names.clone(),
                    ..Verdict::default()
                },
                ..judged()
            };
            Shown {
                phase: [Phase::Before, Phase::Load, Phase::Drain, Phase::Ended]
                    [(left % 4) as usize],
                left: flags[1].then(|| Duration::from_nanos(left)),
                interval: flags[2].then(|| interval(number, responses, lost)),
                groups: names.iter().map(group).collect(),
                agents: names.iter().map(agent).collect(),
                observations: names.iter().map(named).collect(),
                judged: flags[3].then(|| Arc::new(verdict)),
                ..Shown::default()
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_snapshots_keys_and_sizes_are_drawn(
        all in proptest::collection::vec(any_shown(), 0..5),
        keys in proptest::collection::vec(any::<u8>(), 0..20),
        note in ".{0,200}",
        size in (0..200u16, 0..60u16),
    ) {
        let live = Live::default();
        for shown in all {
            live.publish(shown);
        }
        let mut screen = Screen::new("run");
        screen.read(&live.after(0, Duration::ZERO));
        screen.press(&keys);
        let mut encoder = Encoder::new(true);
        for key in [b"1", b"2", b"3", b"4", b"5", b"6"] {
            screen.press(key);
            let written = encoder.encode(screen.draw(size, &note));
            let text = String::from_utf8(written).unwrap();
            // Nothing but what the encoder writes is an escape sequence or a control character.
            let plain = text.replace("\x1b[", "");
            prop_assert!(!plain.contains(char::is_control), "{:?}", plain);
        }
    }
}
