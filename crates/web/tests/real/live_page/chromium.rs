//! The page in Chromium: its script, under its own Content-Security-Policy.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lab::live::{
    Cell, CellOf, Judged, Live, Matrix, NewestSample, NewestScrape, Phase, Place, SeriesName,
    Shown, ShownAgent, ShownGroup,
};
use measure::observation::{Sample, SeriesKind};
use testing::browser;
use testing::folder::Folder;
use testing::measured::{SECOND, busy_server, second};
use web::Server;

use super::{REPORT, address, publish, start};
use crate::browser::{Browser, get};

/// What a browser makes of the page: its elements once no event follows any more. `end` ends the
/// server when the page is connected.
fn watch(name: &str, end: impl FnOnce(&Live, Server)) -> String {
    let folder = Folder::new(name);
    let live = Live::default();
    let server = start(&live);
    let mut command = browser::chromium(&folder);
    // Its clock does not go on while events may come.
    command.args(["--dump-dom", "--virtual-time-budget=100000"]);
    command.arg(server.url());
    let prints = thread::spawn(move || browser::printed(command).0);
    testing::wait::until("the page is connected", || server.pages() == 1);
    end(&live, server);
    prints.join().unwrap()
}

#[test]
fn page_shows_the_newest_snapshot_and_says_that_there_is_no_report() {
    let page = watch("chromium-end", |live, server| {
        publish(live, 7);
        drop(server);
    });
    assert!(page.contains("ended without a report"), "{page}");
    assert!(page.contains("<svg class=\"chart\""), "{page}");
    assert!(page.contains("1,006"), "{page}");
    assert!(page.contains("7 snapshots"), "{page}");
}

#[test]
fn page_becomes_the_report() {
    let page = watch("chromium-report", |live, server| {
        publish(live, 2);
        server.finish(REPORT);
    });
    assert!(page.contains("The report</h1>"), "{page}");
    assert!(!page.contains("id=\"tiles\""), "{page}");
}

/// A snapshot with something for each part of the page.
fn everything(number: u64) -> Shown {
    let sample = NewestSample {
        series: Arc::new(SeriesName {
            name: "waiting".to_owned(),
            unit: "queries".to_owned(),
            kind: SeriesKind::Gauge,
        }),
        sample: Sample::Value(2.5),
        last: None,
    };
    let interval = Arc::new(second(number, 1_000, 4));
    let agent = |host: &str, is_lost: bool| ShownAgent {
        host: Some(host.to_owned()),
        is_at_work: !is_lost,
        is_lost,
    };
    let group = |name: &str| ShownGroup {
        name: name.to_owned(),
        interval: Arc::clone(&interval),
    };
    Shown {
        phase: Phase::Load,
        left: Some(Duration::from_secs(3_725)),
        groups: vec![group("stub"), group("resolver")],
        agents: vec![agent("alpha", false), agent("beta", true)],
        judged: Some(Arc::new(Judged {
            verdict: busy_server(),
            until_ns: 5 * SECOND,
            is_provisional: true,
        })),
        observations: vec![Arc::new(NewestScrape {
            source: "bind=192.0.2.1:8053".into(),
            profile: "bind".into(),
            at: Duration::from_secs(number),
            has_failed: false,
            samples: vec![sample],
        })],
        interval: Some(interval),
        ..Shown::default()
    }
}

/// The cell of that number, of two.
fn cell(cell: usize) -> CellOf {
    let of = |server: &str| Cell {
        values: vec![server.to_owned()],
        made_before: 0,
    };
    CellOf {
        matrix: Arc::new(Matrix {
            factors: vec!["server".to_owned()],
            cells: vec![of("bind"), of("knot")],
            repetitions: 1,
        }),
        cell,
        repetition: 1,
    }
}

#[test]
fn page_is_accessible_during_the_run_and_at_its_end() {
    let live = Live::default();
    let server = start(&live);
    let mut follows = Browser::open(address(&server), "/events", "");
    for run in 0..2 {
        live.begin(Place {
            cell: Some(cell(run as usize)),
            ..Place::new("trial", run + 1, Some(2))
        });
        for number in 0..5 {
            live.publish(everything(number));
            follows.until(live.newest());
        }
    }
    let response = get(address(&server), "/");
    let (_, during) = response.split_once("\r\n\r\n").unwrap();
    for part in [
        ">server knot<",
        "id=\"run-1\"",
        ">resolver<",
        ">1 on beta<",
        "bind=192.0.2.1",
        "Provisional",
    ] {
        assert!(during.contains(part), "{part}: {during}");
    }
    let end = watch("chromium-axe", |live, server| {
        live.publish(everything(0));
        drop(server);
    });
    let folder = Folder::new("axe-live");
    for page in [during, end.as_str()] {
        let found = browser::violations(&folder, page);
        assert!(found.is_empty(), "{found:#?}");
    }
}
