//! What axe-core finds in a page.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use testing::browser::violations;
use testing::folder::Folder;

/// Without violations; `BODY` stands for those of a test.
const PAGE: &str = include_str!("page.html");

fn found(name: &str, body: &str) -> Vec<String> {
    let folder = Folder::new(name);
    violations(&folder, &PAGE.replace("BODY", body))
}

#[test]
fn page_without_a_violation_has_none() {
    assert_eq!(found("axe-none", "<p>Words.</p>"), [""; 0]);
}

#[test]
fn violations_are_found_at_the_width_and_in_the_colours_that_have_them() {
    let body = "<div class=\"wide\"><img src=\"data:,\"></div>\n\
                    <p class=\"dim\">Words.</p>\n\
                    <details><summary>More</summary><input type=\"text\"></details>";
    let found = found("axe-some", body);
    let rules = ["image-alt", "color-contrast", "label"];
    let frames = [
        (360, "light"),
        (768, "dark"),
        (1024, "light"),
        (1280, "dark"),
    ];
    for (width, scheme) in frames {
        let has = |rule: &str| {
            let start = format!("{width}-{scheme}: {rule}: ");
            found.iter().any(|line| line.starts_with(&start))
        };
        let expected = [width > 1000, scheme == "dark", true];
        assert_eq!(rules.map(has), expected, "{width}-{scheme}: {found:#?}");
    }
    assert_eq!(found.len(), 2 + 2 + 4, "{found:#?}");
}

#[test]
fn what_keys_do_not_reach_and_focus_that_is_not_seen_are_found() {
    let body = "<p><a href=\"#a\">reached</a></p>\n\
                <p><a class=\"plain\" style=\"outline:none\" href=\"#a\">not seen</a></p>\n\
                <p id=\"fake\" style=\"cursor:pointer\">a button for a mouse</p>\n\
                <p><label style=\"cursor:pointer\"><input type=\"checkbox\"> named</label></p>\n\
                <p><a style=\"visibility:hidden\" href=\"#a\">hidden</a></p>";
    let found = found("axe-keys", body);
    let of_frame = |frame: &str| {
        let lines = found.iter().filter_map(|line| line.strip_prefix(frame));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    for frame in ["360-light: ", "1280-dark: "] {
        let expected = [
            "keyboard-focus: a.plain: shows no focus",
            "keyboard-reach: p#fake: keys do not reach it",
        ];
        assert_eq!(of_frame(frame), expected, "{found:#?}");
    }
}
