//! The pages in a browser: Chromium without a screen, which Debian 12 packages as `chromium`.
//!
//! A page is put into frames of the sizes and colour schemes that readers have, by a page around it
//! that asks the browser what it made of them.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The longest that a browser may take, in seconds.
const SECONDS_MAX: &str = "300";

/// The page around it: it writes what it finds into its body as text, a line a frame.
const AROUND: &str = r#"<!DOCTYPE html><html><head><meta charset="utf-8"><style>
iframe { border: 0; display: block; height: 900px; }</style></head><body>FRAMES
<pre id="found">nothing</pre><script>
addEventListener("load", () => {
  const lines = [];
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, root = page.documentElement;
    const style = frame.contentWindow.getComputedStyle(page.body);
    const charts = [...page.querySelectorAll("svg.chart")];
    const seen = charts.filter(it => it.checkVisibility());
    const drawn = seen.filter(it => {
      const lines = it.querySelectorAll("path,rect,circle");
      return [...lines].some(line => {
        const box = line.getBoundingClientRect();
        return box.width + box.height > 5;
      });
    });
    const letters = seen.flatMap(it => [...it.querySelectorAll("text")])
      .filter(it => it.textContent)
      .map(it => it.getBoundingClientRect().height);
    const fetched = frame.contentWindow.performance.getEntriesByType("resource").length;
    lines.push([frame.id, root.scrollWidth - root.clientWidth, style.backgroundColor,
      seen.length - drawn.length, drawn.length, page.body.innerText.length > 500 ? "text" : "blank",
      fetched, Math.floor(Math.min(...letters))].join(" "));
  }
  document.getElementById("found").textContent = lines.join("\n");
});
</script></body></html>"#;

/// Width in pixels and colour scheme of each frame, and the background that it has to have.
const FRAMES: [(u32, &str, &str); 4] = [
    (1280, "light", "rgb(255, 255, 255)"),
    (1280, "dark", "rgb(20, 24, 29)"),
    (768, "light", "rgb(255, 255, 255)"),
    (360, "dark", "rgb(20, 24, 29)"),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// Runs the browser on a file; what it printed.
#[allow(clippy::disallowed_methods, reason = "a browser is a process")]
fn browse(page: &Path, name: &str, flags: &[String]) -> String {
    let profile = folder().join(format!("chromium-{}-{name}", std::process::id()));
    let mut command = Command::new("timeout");
    command.args([
        "--kill-after=5",
        SECONDS_MAX,
        "chromium",
        "--headless",
        "--no-sandbox",
    ]);
    // It puts a socket there, whose path has at most 107 octets (unix(7)).
    if std::env::temp_dir().as_os_str().len() > 50 {
        std::fs::create_dir_all(&profile).expect("the folder of this test can be written to");
        command
            .current_dir(&profile)
            .env("TMPDIR", "/proc/self/cwd");
    }
    command.args(["--disable-gpu", "--no-first-run", "--hide-scrollbars"]);
    command.args(["--disable-background-networking", "--disable-dev-shm-usage"]);
    command.arg(format!("--user-data-dir={}", profile.display()));
    command
        .args(flags)
        .arg(format!("file://{}", page.display()));
    let output = command.output().expect("coreutils are installed");
    let _ = std::fs::remove_dir_all(&profile);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "is chromium installed? {errors}\n{printed}"
    );
    printed
}

/// The page, its frames in it.
fn framed(page: &str, name: &str) -> PathBuf {
    let source = page.replace('&', "&amp;").replace('"', "&quot;");
    let mut frames = String::new();
    for (width, scheme, _) in FRAMES {
        let _ = writeln!(
            frames,
            "<iframe id=\"{width}-{scheme}\" style=\"width:{width}px;color-scheme:{scheme}\" \
             srcdoc=\"{source}\"></iframe>"
        );
    }
    put(
        &format!("{name}-framed.html"),
        &AROUND.replace("FRAMES", &frames),
    )
}

/// Writes a page as a whole, so that tests at work at the same time never read half of one.
#[allow(clippy::disallowed_methods, reason = "the browser reads a file")]
pub(crate) fn put(name: &str, page: &str) -> PathBuf {
    let path = folder().join(name);
    let new = folder().join(format!("{}-{name}", std::process::id()));
    std::fs::write(&new, page).expect("the folder can be written");
    std::fs::rename(&new, &path).expect("it is the same folder");
    path
}

/// Nothing sticks out, nothing is blank, nothing is fetched, in any size and colour scheme.
#[track_caller]
pub(crate) fn check_frames(name: &str, page: &str) {
    let printed = browse(&framed(page, name), name, &["--dump-dom".to_owned()]);
    let found = printed
        .split("<pre id=\"found\">")
        .nth(1)
        .unwrap_or_default();
    let found = found.split("</pre>").next().unwrap_or_default();
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), FRAMES.len(), "{name}: {found}");
    for (line, (width, scheme, background)) in lines.iter().zip(FRAMES) {
        let start = format!("{width}-{scheme} 0 {background} 0 ");
        assert!(line.starts_with(&start), "{name}: {line}, not {start}");
        let rest: Vec<&str> = line[start.len()..].split(' ').collect();
        let [drawn, "text", "0", letters] = rest[..] else {
            panic!("{name}: {line}");
        };
        assert!(drawn.parse::<u32>().unwrap_or(0) >= 2, "{name}: {line}");
        assert!(
            letters.parse::<u32>().unwrap_or(0) >= 10,
            "{name}: letters too small: {line}"
        );
    }
}

/// A picture of the page; a blank one would be far smaller.
#[allow(clippy::disallowed_methods, reason = "the browser writes a file")]
pub(crate) fn check_picture(name: &str, page: &Path) {
    let picture = folder().join(format!("{}-{name}.png", std::process::id()));
    let flags = [
        format!("--screenshot={}", picture.display()),
        "--window-size=1280,2000".to_owned(),
    ];
    browse(page, &format!("{name}-picture"), &flags);
    let octets = std::fs::metadata(&picture)
        .expect("there is a picture")
        .len();
    assert!(octets > 40_000, "{}: {octets} bytes", picture.display());
    std::fs::rename(&picture, folder().join(format!("{name}.png"))).expect("the same folder");
}
