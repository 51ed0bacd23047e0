//! The dashboards of Grafana in `deploy/grafana`: their structure, and that they use no metric and
//! no observed series that Throng does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use observe::profiles;
use serde_json::Value as Json;

use super::*;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/grafana");
const BOARDS: [&str; 4] = ["fleet.json", "node.json", "run.json", "servers.json"];
/// Columns of the grid of a dashboard.
const COLUMNS: u64 = 24;
const OBSERVED: [(&str, SeriesKind); 2] = [
    ("throng_observed_counter_total", SeriesKind::Counter),
    ("throng_observed_gauge", SeriesKind::Gauge),
];

/// A metric and its matchers, as an expression has them.
#[derive(Debug, PartialEq, Eq)]
struct Selector {
    metric: String,
    matchers: String,
}

fn boards() -> BTreeMap<String, Json> {
    let files = fs::read_dir(FOLDER).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let boards = files.filter(|path| path.extension().is_some_and(|it| it == "json"));
    let boards = boards.map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(path).unwrap();
        (name, serde_json::from_str(&text).unwrap())
    });
    boards.collect()
}

fn list<'a>(json: &'a Json, name: &str) -> &'a [Json] {
    json[name].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(json: &'a Json, name: &str) -> &'a str {
    json[name].as_str().unwrap_or_default()
}

/// The panels of a board that are no rows, those within collapsed rows included.
fn panels(board: &Json) -> impl Iterator<Item = &Json> {
    let all = list(board, "panels").iter();
    let all = all.flat_map(|panel| [panel].into_iter().chain(list(panel, "panels")));
    all.filter(|panel| panel["type"] != "row")
}

/// All expressions of a board, those of its variables included.
fn expressions(board: &Json) -> Vec<&str> {
    let targets = panels(board).flat_map(|panel| list(panel, "targets"));
    let asked = targets.map(|target| text(target, "expr"));
    let variables = list(&board["templating"], "list").iter();
    let variables = variables.filter(|it| it["type"] == "query");
    let variables = variables.map(|it| text(&it["query"], "query"));
    asked.chain(variables).collect()
}

/// What an expression selects: names before `{`, and all that begin as Throng's do.
fn selectors(expression: &str) -> Vec<Selector> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut selectors = Vec::new();
    let mut rest = expression;
    while let Some(start) = rest.find(|c| is_name(c) || c == '"' || c == '{') {
        rest = &rest[start..];
        if let Some(quoted) = rest.strip_prefix('"') {
            rest = quoted.split_once('"').unwrap().1;
            continue;
        }
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let name = &rest[..end];
        rest = &rest[end..];
        let matchers = rest.strip_prefix('{').map_or("", |rest| {
            // A brace in a matcher is in quotes.
            let parts = rest.split('"').scan(0, |at, part| {
                let begin = *at;
                *at += part.len() + 1;
                Some((begin, part))
            });
            let mut unquoted = parts.step_by(2);
            let end = unquoted.find_map(|(at, part)| Some(at + part.find('}')?));
            &rest[..end.unwrap()]
        });
        if rest.starts_with('{') {
            rest = &rest[matchers.len() + 2..];
        } else if !name.starts_with("throng_") {
            continue;
        }
        selectors.push(Selector {
            metric: name.to_owned(),
            matchers: matchers.to_owned(),
        });
    }
    selectors
}

/// The names of all samples.
fn sample_names() -> BTreeSet<String> {
    let families = every_family(&Accumulator::default(), ScrapeCounts::default());
    let names = families.iter().flat_map(|family| {
        let name = family.sample_name();
        let parts: &[&str] = match family.kind {
            Kind::Histogram => &["", "_bucket", "_sum", "_count"],
            Kind::Counter | Kind::Gauge => &[""],
        };
        parts.iter().map(move |part| format!("{name}{part}"))
    });
    names.collect()
}

/// What a matcher has in quotes; none without that matcher.
fn quoted<'a>(matchers: &'a str, matcher: &str) -> Option<&'a str> {
    let (_, value) = matchers.split_once(matcher)?;
    value.split('"').nth(1)
}

/// The observed series that matchers name, in the one form that the boards use: names joined by
/// `|`, with `[.]` for a dot and `[{].*` for any labels.
fn observed_series(matchers: &str) -> Vec<String> {
    let series = quoted(matchers, "series=");
    let names = series.into_iter().flat_map(|all| all.split('|'));
    let names = names.map(|name| name.trim_end_matches("[{].*").replace("[.]", "."));
    names.collect()
}

#[test]
fn expression_is_taken_apart_into_its_selectors() {
    let found =
        selectors(r#"sum by (le) (rate(throng_a{b="}",c=~"d[{].*"}[5s])) / up{} + throng_e"#);
    let expected = [
        ("throng_a", r#"b="}",c=~"d[{].*""#),
        ("up", ""),
        ("throng_e", ""),
    ];
    let expected = expected.map(|(metric, matchers)| Selector {
        metric: metric.to_owned(),
        matchers: matchers.to_owned(),
    });
    assert_eq!(found, expected);
    let series = observed_series(r#"a="b",series=~"queries[.]udp|each_cpu[.]busy[{].*""#);
    assert_eq!(series, ["queries.udp", "each_cpu.busy"]);
}

#[test]
fn dashboards_use_metrics_and_observed_series_that_exist() {
    let boards = boards();
    assert_eq!(boards.keys().collect::<Vec<_>>(), BOARDS);
    let names = sample_names();
    let of_kind = |kind| {
        let rows = profiles::ALL.iter().flat_map(|profile| profile.rows);
        let rows = rows.filter(move |row| row.kind == kind);
        rows.map(|row| row.name).collect::<BTreeSet<_>>()
    };
    for (file, board) in &boards {
        let expressions = expressions(board);
        assert!(!expressions.is_empty(), "{file}");
        for expression in expressions {
            let selectors = selectors(expression);
            assert!(!selectors.is_empty(), "{file}: `{expression}`");
            for Selector { metric, matchers } in selectors {
                assert!(names.contains(&metric), "{file}: no metric `{metric}`");
                let Some((_, kind)) = OBSERVED.iter().find(|(name, _)| *name == metric) else {
                    continue;
                };
                let series = observed_series(&matchers);
                assert!(!series.is_empty(), "{file}: all series: `{expression}`");
                let known = of_kind(*kind);
                for series in series {
                    assert!(known.contains(&*series), "{file}: no {kind:?} `{series}`");
                }
            }
        }
    }
}

/// Of products, processes and control groups; the board of nodes is a choice.
#[test]
fn board_of_servers_shows_each_series_that_is_observed_of_them() {
    let board = &boards()["servers.json"];
    let expressions = expressions(board);
    let selectors: Vec<_> = expressions.into_iter().flat_map(selectors).collect();
    let is_shown = |profile: &str, series: &str| {
        selectors.iter().any(|it| {
            let profiles = quoted(&it.matchers, ",profile=");
            let of_profile = profiles.is_none_or(|all| all.split('|').any(|it| it == profile));
            of_profile && observed_series(&it.matchers).iter().any(|it| it == series)
        })
    };
    let others = ["host", "node", "kubelet"];
    for profile in profiles::ALL.iter().filter(|it| !others.contains(&it.name)) {
        for row in profile.rows {
            let name = profile.name;
            assert!(is_shown(name, row.name), "{name}: no panel of {}", row.name);
        }
    }
}

#[test]
fn dashboards_show_the_annotations_of_runs() {
    for (file, board) in boards() {
        let queries = list(&board["annotations"], "list");
        let is_of_runs = |query: &Json| {
            query["enable"] == true && query["target"]["tags"] == serde_json::json!(["throng"])
        };
        assert!(queries.iter().any(is_of_runs), "{file}");
    }
}

#[test]
fn panels_have_a_title_a_unit_and_a_description() {
    for (file, board) in boards() {
        assert!(!text(&board, "uid").is_empty(), "{file}");
        assert!(!text(&board, "title").is_empty(), "{file}");
        for panel in panels(&board) {
            let title = text(panel, "title");
            assert!(!title.is_empty(), "{file}: {panel}");
            assert!(text(panel, "description").ends_with('.'), "{file}: {title}");
            let unit = text(&panel["fieldConfig"]["defaults"], "unit");
            assert!(!unit.is_empty(), "{file}: {title}");
            assert_eq!(
                panel["datasource"]["uid"], "${datasource}",
                "{file}: {title}"
            );
            let targets = list(panel, "targets");
            let ids: BTreeSet<&str> = targets.iter().map(|it| text(it, "refId")).collect();
            assert!(
                !ids.is_empty() && ids.len() == targets.len(),
                "{file}: {title}"
            );
        }
    }
}

/// Quantiles of several sources come from their buckets, added up.
#[test]
fn no_expression_averages() {
    for (file, board) in boards() {
        for expression in expressions(&board) {
            assert!(!expression.contains("avg"), "{file}: `{expression}`");
            let is_quantile = expression.contains("histogram_quantile(");
            let both = expression.split(" or ").count();
            assert_eq!(is_quantile, both == 2, "{file}: `{expression}`");
        }
    }
}

#[test]
fn panels_have_distinct_ids_and_do_not_overlap() {
    let mut uids = BTreeSet::new();
    for (file, board) in boards() {
        assert!(uids.insert(text(&board, "uid").to_owned()), "{file}");
        let mut ids = BTreeSet::new();
        check_grid(&file, list(&board, "panels"), &mut ids);
        for row in list(&board, "panels") {
            check_grid(&file, list(row, "panels"), &mut ids);
        }
    }
}

/// Panels that are shown together: those within a collapsed row move what is below it.
fn check_grid(file: &str, panels: &[Json], ids: &mut BTreeSet<u64>) {
    let mut taken = BTreeSet::new();
    for panel in panels {
        let title = text(panel, "title");
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{file}: {title}");
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|it| panel["gridPos"][it].as_u64().unwrap());
        assert!(w > 0 && h > 0 && x + w <= COLUMNS, "{file}: {title}");
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(cell), "{file}: {title} overlaps at {cell:?}");
        }
    }
}
