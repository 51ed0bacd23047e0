//! The page in Chromium: its script, under its own Content-Security-Policy.

use std::process::Command;
use std::thread;

use lab::live::Live;
use testing::folder::Folder;
use web::Server;

use super::{REPORT, publish, start};

/// The longest that the browser may take, in seconds.
const SECONDS_MAX: &str = "300";

/// A browser that prints the elements of a page, with a profile in that folder.
pub(crate) fn chromium(folder: &Folder) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", SECONDS_MAX, "chromium", "--headless"]);
    command.args(["--no-sandbox", "--disable-gpu", "--no-first-run"]);
    command.args(["--disable-background-networking", "--disable-dev-shm-usage"]);
    command.arg("--dump-dom");
    command.arg(format!("--user-data-dir={}", folder.path("profile")));
    command
}

/// What a browser makes of the page: its elements once no event follows any more. `end` ends the
/// server when the page is connected.
fn watch(name: &str, end: impl FnOnce(&Live, Server)) -> String {
    let folder = Folder::new(name);
    let live = Live::default();
    let server = start(&live);
    let mut command = chromium(&folder);
    // Its clock does not go on while events may come.
    command.arg("--virtual-time-budget=100000");
    command.arg(server.url());
    let browser = thread::spawn(move || command.output().unwrap());
    testing::wait::until("the page is connected", || server.pages() == 1);
    end(&live, server);
    let output = browser.join().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "is chromium installed? {errors}");
    String::from_utf8(output.stdout).unwrap()
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
