use super::*;
use crate::collection::{Collection, Source};
use crate::{example, run, several};

fn pages() -> Vec<String> {
    let records = [
        example::udp_self_test(),
        example::dot(),
        example::doh2(),
        example::observed(),
        example::without_queries(),
    ];
    let mut documents: Vec<Document> = records
        .iter()
        .map(|record| run::document(record, "run.json"))
        .collect();
    let sources = records.into_iter().enumerate();
    let sources = sources.map(|(at, record)| Source::new(format!("{at}.json"), record));
    let collection = Collection::new(sources.collect()).expect("there are runs");
    documents.push(several::document(&collection));
    documents.iter().map(render).collect()
}

#[test]
fn names_from_outside_are_text_and_never_markup() {
    let mut record = example::observed();
    let evil = "<script>alert(\"1\")</script> & '\u{7}\u{202e}";
    record.scenario.server_name = Some(evil.into());
    record.scenario.questions.source = evil.into();
    record.scenario.labels.insert("<b>".into(), evil.into());
    record.warnings = vec![evil.into()];
    record.observations[0].source = evil.into();
    record.observations[0].notes[0].text = evil.into();
    record.observations[0].facts.binary = Some(evil.into());
    record.verdict.evidence = vec![evil.into(), format!("--rate{evil}")];
    record.groups[0].name = evil.into();
    record.hosts[0].cpu_model = Some(evil.into());
    let page = render(&run::document(&record, evil));
    assert!(!page.contains("<script") && !page.contains("<b>"), "{page}");
    assert!(!page.contains(['\u{7}', '\u{202e}']));
    let escaped = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;\\u0007\\u202e";
    assert!(page.matches(escaped).count() >= 5, "{page}");
}

#[test]
fn page_fetches_nothing_and_runs_nothing() {
    for page in pages() {
        for forbidden in ["src=", "url(", "@import", "<script", "<link rel=\"s"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        let links = page.split("href=\"").skip(1);
        for link in links {
            assert!(
                link.starts_with('#') || link.starts_with("data:"),
                "{link:.30}"
            );
        }
    }
}

#[test]
fn links_lead_to_charts_and_tables_of_the_page_and_ids_are_unique() {
    for page in pages() {
        let ids: Vec<&str> = page
            .split(" id=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let mut unique = ids.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), ids.len(), "{ids:?}");
        for link in page.split("href=\"#").skip(1) {
            let id = link.split('"').next().unwrap_or_default();
            assert!(ids.contains(&id), "{id}");
        }
    }
}

#[test]
fn every_chart_is_named_described_and_has_its_table() {
    for page in pages() {
        let figures = page.matches("<figure").count();
        assert!(figures >= 2, "{figures} charts");
        for part in [
            "<title id=",
            "<desc id=",
            "role=\"img\"",
            "<summary>Figures as a table",
        ] {
            assert_eq!(page.matches(part).count(), figures, "{part}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf\""));
        assert!(!page.contains("<desc id=\"\"></desc>"));
    }
}

#[test]
fn regions_have_labels_of_their_own() {
    for page in pages() {
        let labels = page.split(" aria-label=\"").skip(1);
        let mut labels: Vec<&str> = labels.filter_map(|rest| rest.split('"').next()).collect();
        let all = labels.len();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), all, "{labels:?}");
        assert!(all > 0 && labels.iter().all(|label| !label.starts_with(':')));
    }
}

#[test]
fn headings_come_in_order() {
    for page in pages() {
        let levels = page.match_indices("<h").filter_map(|(at, _)| {
            let level = page[at + 2..].chars().next()?.to_digit(10)?;
            page[at + 3..].starts_with(['>', ' ']).then_some(level)
        });
        let levels: Vec<u32> = levels.collect();
        assert_eq!(levels.first(), Some(&1));
        assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1);
        assert!(
            levels.windows(2).all(|pair| pair[1] <= pair[0] + 1),
            "{levels:?}"
        );
    }
}

/// Relative luminance of WCAG 2 of `#rrggbb`.
fn luminance(colour: &str) -> f64 {
    let part = |at: usize| {
        let value = u8::from_str_radix(&colour[at..at + 2], 16).expect("is hexadecimal");
        let value = f64::from(value) / 255.0;
        match value <= 0.04045 {
            true => value / 12.92,
            false => ((value + 0.055) / 1.055).powf(2.4),
        }
    };
    0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
}

fn contrast(a: &str, b: &str) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// The colours of a palette in the style sheet: the light, the dark, and that of paper.
fn palette(which: usize) -> impl Fn(&str) -> String {
    let from = STYLE
        .match_indices(":root {")
        .nth(which)
        .expect("there is one")
        .0;
    let block = STYLE[from..].split('}').next().unwrap_or_default();
    move |name: &str| {
        let rest = block.split(&format!("--{name}: ")).nth(1).expect("is set");
        rest[..7].to_owned()
    }
}

#[test]
fn text_and_lines_stand_out_in_each_palette() {
    for which in 0..3 {
        let colour = palette(which);
        let page = colour("page");
        for text in ["ink", "soft", "link"] {
            let contrast = contrast(&colour(text), &page);
            assert!(contrast >= 4.5, "{text} of palette {which}: {contrast:.1}");
        }
        // Of the lines, those of the first three looks do by colour alone.
        for line in ["s0", "s1", "s2"] {
            let contrast = contrast(&colour(line), &page);
            assert!(contrast >= 3.0, "{line} of palette {which}: {contrast:.1}");
        }
    }
}

#[test]
fn lines_have_the_colours_of_okabe_and_ito() {
    const SAFE: [&str; 8] = [
        "#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7",
    ];
    for which in 0..3 {
        let colour = palette(which);
        let all = (0..6).map(|look| colour(&format!("s{look}")));
        let mut all: Vec<String> = all.collect();
        assert!(
            all.iter().all(|colour| SAFE.contains(&colour.as_str())),
            "{all:?}"
        );
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 6);
    }
}

#[test]
fn sentence_begins_with_a_capital_but_not_a_name() {
    assert_eq!(sentence("the rate"), "The rate");
    assert_eq!(sentence("p99 rose"), "p99 rose");
    assert_eq!(sentence("cpu=1: server"), "cpu=1: server");
    assert_eq!(
        prose("run with --rate 5, now"),
        "run with <code>--rate</code> 5, now"
    );
}

#[test]
fn figures_can_be_saved_with_their_legend_and_as_rows() {
    let page = render(&run::document(&example::udp_self_test(), "run.json"));
    let address = |ending: &str| {
        let link = format!("download=\"figure-1.{ending}\" href=\"data:");
        let rest = page.split(&link).nth(1).expect("there is a link");
        decoded(rest.split('"').next().unwrap_or_default())
    };
    let svg = address("svg");
    assert!(svg.starts_with("image/svg+xml,<svg xmlns="), "{svg}");
    assert!(
        svg.contains(">from scheduled</text>") && svg.contains("stroke: #0072b2"),
        "{svg}"
    );
    assert!(!svg.contains("var("), "{svg}");
    let csv = address("csv");
    assert!(
        csv.starts_with("text/csv,\"") && csv.lines().count() > 2,
        "{csv}"
    );
}

/// Text of a `data:` address.
fn decoded(address: &str) -> String {
    let mut parts = address.split('%');
    let mut octets = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at(2);
        octets.push(u8::from_str_radix(code, 16).expect("two digits"));
        octets.extend(rest.bytes());
    }
    String::from_utf8(octets).expect("it is text")
}
