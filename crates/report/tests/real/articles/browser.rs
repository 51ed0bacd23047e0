//! The pages in a browser.
//!
//! A page is put into frames of the sizes and colour schemes that readers have, by a page around it
//! that asks the browser what it made of them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use testing::folder::Folder;

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
fn browse(page: &Path, name: &str, flags: &[String]) -> String {
    let folder = Folder::new(&format!("chromium-{name}"));
    let mut command = testing::browser::chromium(&folder);
    command.args(flags);
    command.arg(format!("file://{}", page.display()));
    testing::browser::printed(command).0
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

/// axe-core finds no violation, in any size and colour scheme.
#[track_caller]
pub(crate) fn check_accessibility(name: &str, page: &str) {
    let folder = Folder::new(&format!("axe-{name}"));
    let found = testing::browser::violations(&folder, page);
    assert!(found.is_empty(), "{name}: {found:#?}");
}
