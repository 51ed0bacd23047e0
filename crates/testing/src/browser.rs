//! Pages in a browser without a screen: Chromium, which Debian 12 packages as `chromium`.

use std::process::Command;

use crate::folder::Folder;

/// The longest that a browser may take, in seconds.
const SECONDS_MAX: &str = "300";

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
