//! The page around the fragments: it fetches nothing but events, and its script only puts them
//! where they belong.

use std::fmt::Write;

use data_encoding::BASE64;
use report::html::{STYLE, escape};
use sha2::{Digest, Sha256};

use crate::fragments::Fragment;

/// What the report's style lacks.
const LIVE_STYLE: &str = include_str!("page/live.css");
/// Puts fragments where they belong.
const SCRIPT: &str = include_str!("page/live.js");

/// A chart of the page.
struct Place {
    id: &'static str,
    title: &'static str,
}

const CHARTS: [Place; 2] = [
    Place {
        id: "rates",
        title: "Queries sent, completed and lost",
    },
    Place {
        id: "latency",
        title: "Latency percentiles over time",
    },
];

/// Tables that are there only at times, and what they are called for a screen reader.
const TABLES: [Place; 5] = [
    Place {
        id: "matrix",
        title: "cells of the experiment",
    },
    Place {
        id: "groups",
        title: "groups of clients",
    },
    Place {
        id: "agents",
        title: "agents",
    },
    Place {
        id: "observed",
        title: "observed servers",
    },
    Place {
        id: "runs",
        title: "runs of this command",
    },
];

/// Makes a page of the newest fragments and the runs that are over; `number` is that of the
/// newest snapshot.
pub(crate) fn render(
    command: &str,
    (fragments, earlier): (&[Fragment], &str),
    number: u64,
) -> String {
    let content = |id: &str| {
        let found = fragments.iter().find(|it| it.id == id);
        found.map_or("", |it| it.html.as_str())
    };
    let command = escape(command);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>throng {command}, live</title>\n<style>\n{STYLE}</style>\n<style>{LIVE_STYLE}\
         </style>\n</head>\n<body data-number=\"{number}\">\n<main>\n<header>\n\
         <h1>throng {command}</h1>\n<p class=\"subtitle\" id=\"connection\">Connecting.</p>\n\
         </header>\n<p class=\"unseen\" id=\"announcement\" role=\"status\">{}</p>\n",
        content("announcement")
    );
    for (id, label) in [("progress", "Progress"), ("verdict", "Verdict so far")] {
        let _ = writeln!(
            page,
            "<section id=\"{id}\" aria-label=\"{label}\">{}</section>",
            content(id)
        );
    }
    let _ = writeln!(
        page,
        "<section id=\"tiles\" aria-label=\"Newest interval\">{}</section>\n\
         <section class=\"part\">\n<h2>Over time</h2>\n<div class=\"charts\">",
        content("tiles")
    );
    charts(&mut page, content);
    for Place { id, title } in TABLES {
        let content = content(id);
        let hidden = if content.is_empty() { " hidden" } else { "" };
        let _ = writeln!(
            page,
            "<div class=\"scroll\" id=\"{id}\" role=\"region\" tabindex=\"0\" \
             aria-label=\"{title}\"{hidden}>{content}</div>"
        );
    }
    let _ = write!(
        page,
        "</div>\n<section class=\"part earlier\">\n<h2>Runs before this one</h2>\n\
         <p class=\"note\" id=\"earlier-note\">{}</p>\n<div id=\"earlier\">{earlier}</div>\n\
         </section>\n<footer><p id=\"missed\" hidden></p><div id=\"counts\">{}</div></footer>\n\
         </main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        content("earlier-note"),
        content("counts")
    );
    page
}

/// The charts, and the end of the part that has them.
fn charts<'a>(page: &mut String, content: impl Fn(&str) -> &'a str) {
    for Place { id, title } in CHARTS {
        let part = |part: &str| content(&format!("{id}-{part}"));
        let _ = writeln!(
            page,
            "<figure>\n<figcaption><h3>{title}</h3></figcaption>\n\
             <div id=\"{id}-legend\">{}</div>\n<div id=\"{id}-drawing\">{}</div>\n\
             <details class=\"figures\"><summary>Figures as a table</summary>\n\
             <div class=\"scroll\" id=\"{id}-table\" role=\"region\" tabindex=\"0\" \
             aria-label=\"{title}, as a table\">{}</div>\n</details>\n</figure>",
            part("legend"),
            part("drawing"),
            part("table")
        );
    }
    let each = content("each");
    let hidden = if each.is_empty() { " hidden" } else { "" };
    let _ = writeln!(
        page,
        "<figure id=\"each\"{hidden}>{each}</figure>\n</div>\n</section>\n<div class=\"lists\">"
    );
}

/// What the browser may do: apply the two styles, run the one script, fetch events from here.
pub(crate) fn content_security_policy() -> String {
    let hash = |text: &str| BASE64.encode(&Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{}' 'sha256-{}'; script-src 'sha256-{}'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
        hash(&format!("\n{STYLE}")),
        hash(LIVE_STYLE),
        hash(SCRIPT)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_fetches_nothing_and_has_no_inline_handler_or_style() {
        let page = render("run", (&[], ""), 7);
        for wrong in [
            "src=",
            " style=",
            " onclick=",
            "http://",
            "https://",
            "url(",
        ] {
            assert!(!page.contains(wrong), "{wrong}");
        }
        assert!(page.contains("data-number=\"7\""));
    }

    #[test]
    fn policy_has_the_hash_of_each_style_and_of_the_script() {
        let page = render("run", (&[], ""), 1);
        let policy = content_security_policy();
        let mut inline: Vec<&str> = page.split("<style>").skip(1).collect();
        assert_eq!(inline.len(), 2);
        let script = page.split("<script>").nth(1).unwrap();
        inline.push(script);
        for text in inline {
            let end = text.find("</").unwrap();
            let digest = BASE64.encode(&Sha256::digest(&text.as_bytes()[..end]));
            assert!(policy.contains(&format!("'sha256-{digest}'")), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
    }

    #[test]
    fn name_of_a_command_is_escaped() {
        let page = render("<script>", (&[], ""), 1);
        assert!(page.contains("throng &lt;script&gt;"));
    }
}
