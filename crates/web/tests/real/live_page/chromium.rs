//! The page in Chromium: its script, under its own Content-Security-Policy.

use std::thread;

use lab::live::{Live, Place};
use testing::browser;
use testing::folder::Folder;
use web::Server;

use super::{REPORT, address, publish, publish_each, start};
use crate::browser::get;

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

#[test]
fn page_is_accessible_during_the_run_and_at_its_end() {
    let live = Live::default();
    let server = start(&live);
    publish_each(&live, &server, 5);
    live.begin(Place::new("second trial", 2, Some(3)));
    publish_each(&live, &server, 2);
    let response = get(address(&server), "/");
    let (_, during) = response.split_once("\r\n\r\n").unwrap();
    assert!(during.contains("id=\"run-1\""), "{during}");
    let end = watch("chromium-axe", |live, server| {
        publish(live, 7);
        drop(server);
    });
    let folder = Folder::new("axe-live");
    for page in [during, end.as_str()] {
        let found = browser::violations(&folder, page);
        assert!(found.is_empty(), "{found:#?}");
    }
}
