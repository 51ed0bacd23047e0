//! Pages in a browser without a screen, Chromium, which Debian 12 packages as `chromium`; and their
//! accessibility, which axe-core checks. `servers/prepare` unpacks that.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use crate::folder::Folder;
use crate::prepared;

/// The longest that a browser may take, in seconds.
const SECONDS_MAX: &str = "300";

/// The page around the frames; its script writes what axe-core finds in each.
const AROUND: &str = include_str!("axe.html");
/// Widths of the frames in pixels, and their colour schemes. Colours depend on the scheme and what
/// is beside what on the width; all eight pairs would take twice as long and find no more.
const FRAMES: [(u32, &str); 4] = [
    (360, "light"),
    (768, "dark"),
    (1024, "light"),
    (1280, "dark"),
];
/// Longer than axe-core's pauses; time does not pass while it works.
const CLOCK_MS: u32 = 100_000;
/// Rules of axe-core that any page passes at least: language, title, structure, contrast.
const RULES_MIN: usize = 10;

/// The browser, ready for a URL and more flags. Its profile is in that folder, which has one
/// browser at a time.
pub fn chromium(folder: &Folder) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", SECONDS_MAX, "chromium", "--headless"]);
    command.args(["--no-sandbox", "--disable-gpu", "--no-first-run"]);
    command.args(["--disable-background-networking", "--disable-dev-shm-usage"]);
    command.arg("--hide-scrollbars");
    command.arg(format!("--user-data-dir={}", folder.path("profile")));
    // It puts a socket there, whose path has at most 107 octets (unix(7)).
    if std::env::temp_dir().as_os_str().len() > 50 {
        command.current_dir(folder.folder());
        command.env("TMPDIR", "/proc/self/cwd");
    }
    command
}

/// Runs a browser to its end; what it wrote to standard output and to standard error.
pub fn printed(mut command: Command) -> (String, String) {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "is chromium installed? {errors}");
    (String::from_utf8(output.stdout).unwrap(), errors)
}

/// The elements of a page as its scripts leave them: its clock runs for this many milliseconds,
/// which pass as soon as nothing is left to do.
pub fn elements(folder: &Folder, url: &str, clock_ms: u32) -> String {
    let mut command = chromium(folder);
    command.arg("--dump-dom");
    command.arg(format!("--virtual-time-budget={clock_ms}"));
    command.arg(url);
    printed(command).0
}

/// The violations of axe-core's rules in a page at four widths, light or dark, a line for each
/// element: `360-dark: color-contrast: .note: Fix any of the following: ...`. Folded details are
/// opened. Then what keys do not reach, and focus that is not seen, as
/// `360-light: keyboard-reach: ...`. The page's own scripts and its policy for scripts are removed
/// first.
pub fn violations(folder: &Folder, page: &str) -> Vec<String> {
    let axe = prepared::path("axe/axe_playwright_python/axe.min.js");
    fs::copy(axe, folder.path("axe.min.js")).unwrap();
    let page = with_axe(page).replace('&', "&amp;").replace('"', "&quot;");
    let mut frames = String::new();
    for (width, scheme) in FRAMES {
        let _ = writeln!(
            frames,
            "<iframe id=\"{width}-{scheme}\" title=\"{width}-{scheme}\" \
             style=\"width:{width}px;color-scheme:{scheme}\" srcdoc=\"{page}\"></iframe>"
        );
    }
    let around = folder.write("axe.html", AROUND.replacen("FRAMES", &frames, 1));
    let printed = elements(folder, &format!("file://{around}"), CLOCK_MS);
    let found = printed.rsplit_once("<pre id=\"found\">").unwrap().1;
    let found = found.split("</pre>").next().unwrap();
    let mut lines: Vec<String> = found.lines().map(unescaped).collect();
    let last = lines.pop().unwrap_or_default();
    let start = format!("frames {}, rules passed ", FRAMES.len());
    let passed = last.strip_prefix(&start).and_then(|it| it.parse().ok());
    let passed: usize = passed.unwrap_or_else(|| panic!("axe-core did not end: {found}"));
    let all = FRAMES.len() * RULES_MIN;
    assert!(passed >= all, "{passed} rules passed, fewer than {all}");
    lines
}

/// The page with axe-core as its one script.
fn with_axe(page: &str) -> String {
    let page = without(page, "<meta http-equiv=\"Content-Security-Policy\"", ">");
    let page = without(&page, "<script", "</script>");
    let (before, after) = page.rsplit_once("</body>").unwrap();
    format!("{before}<script src=\"axe.min.js\"></script></body>{after}")
}

/// The text without any part from `start` to `end`.
fn without(text: &str, start: &str, end: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(start) {
        kept.push_str(before);
        rest = after.split_once(end).map_or("", |(_, it)| it);
    }
    kept + rest
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">");
    text.replace("&amp;", "&")
}
