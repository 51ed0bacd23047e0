//! The dashboards and the alerts of `deploy`, asked of Prometheus while it scrapes real runs.

use std::fs;

use measure::RunRecord;
use serde_json::Value;
use testing::folder::Folder;
use testing::program::execute;
use testing::{wait, yaml};

use crate::lab::{Lab, address};
use crate::metrics::{NATIVE, Prometheus, Watched};
use crate::process::Responder;

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
const BOARDS: [&str; 4] = ["run", "fleet", "servers", "node"];
/// Metrics that only a run with agents or with groups of clients has begin so.
const OF_AGENTS_OR_GROUPS: [&str; 2] = ["throng_agent_", "throng_group_"];

/// A scrape that a busy host delays is late for the next: a rate needs two of them.
const RATE_INTERVAL: &str = "30s";

/// An expression, and where it is from.
struct Expression {
    of: String,
    text: String,
}

impl Expression {
    fn is_of_agents_or_groups(&self) -> bool {
        let mut metrics = OF_AGENTS_OR_GROUPS.iter();
        metrics.any(|metric| self.text.contains(metric))
    }
}

fn list<'a>(json: &'a Value, name: &str) -> &'a [Value] {
    json[name].as_array().map_or(&[], Vec::as_slice)
}

/// The expressions of all panels and variables, with values for the variables.
fn of_boards(run: &Watched) -> Vec<Expression> {
    let mut all = Vec::new();
    for board in BOARDS {
        let text = fs::read_to_string(format!("{DEPLOY}/grafana/{board}.json")).unwrap();
        let json: Value = serde_json::from_str(&text).unwrap();
        let mut add = |title: &Value, expression: &str| {
            let text = expression.replace("$__rate_interval", RATE_INTERVAL);
            let text = text.replace("$__range", "1m");
            let text = text.replace("$instance", &run.at.to_string());
            let text = text.replace("$job", "throng").replace("$source", ".*");
            assert!(!text.contains('$'), "{board}: {title}: {text}");
            let of = format!("{board}: {}", title.as_str().unwrap());
            all.push(Expression { of, text });
        };
        let top = list(&json, "panels").iter();
        // Collapsed rows have their panels within.
        for panel in top.flat_map(|panel| [panel].into_iter().chain(list(panel, "panels"))) {
            for target in list(panel, "targets") {
                add(&panel["title"], target["expr"].as_str().unwrap());
            }
        }
        for variable in list(&json["templating"], "list") {
            if let Some(query) = variable["query"]["query"].as_str() {
                let inner = query.strip_prefix("label_values(").unwrap();
                add(&variable["name"], inner.rsplit_once(',').unwrap().0);
            }
        }
    }
    all
}

/// The conditions of the alerts, without their thresholds, as Prometheus has read them.
fn of_alerts(prometheus: &Prometheus) -> Vec<Expression> {
    let json = prometheus.api("rules").unwrap();
    let rules = list(&json["data"], "groups").iter();
    let rules = rules.flat_map(|group| list(group, "rules"));
    let conditions = rules.map(|rule| {
        let of = rule["name"].as_str().unwrap().to_owned();
        let condition = rule["query"].as_str().unwrap();
        let (text, threshold) = [" > ", " == "]
            .iter()
            .find_map(|comparison| condition.rsplit_once(comparison))
            .unwrap_or_else(|| panic!("{of} has no threshold: {condition}"));
        assert!(threshold.parse::<f64>().is_ok(), "{of}: {condition}");
        let text = text.to_owned();
        Expression { of, text }
    });
    conditions.collect()
}

/// Waits until each expression has a number.
fn check(prometheus: &Prometheus, histograms: &str, expressions: &[Expression]) {
    assert!(!expressions.is_empty());
    for Expression { of, text } in expressions {
        let what = format!("a value of {of}, {histograms}: `{text}`");
        wait::until(&what, || {
            let values = prometheus.values(text);
            values.iter().any(|value| value.is_finite())
        });
    }
}

/// The only value of the panel with this title, which is missing after a scrape that timed out.
fn headline(prometheus: &Prometheus, boards: &[Expression], title: &str) -> f64 {
    let panel = boards.iter().find(|it| it.of == title).unwrap();
    wait::for_some(title, || match *prometheus.values(&panel.text) {
        [value] => Some(value),
        _ => None,
    })
}

/// Ends the run, and compares the panels of its result with its record, which is returned.
fn check_result(run: Watched, stores: &[(&str, f64, Prometheus)]) -> RunRecord {
    let boards = of_boards(&run);
    run.interrupt();
    let ended = r#"throng_run_phase{phase="ended"}"#;
    for (_, _, prometheus) in stores {
        wait::until("the last scrape", || prometheus.values(ended) == [1.0]);
    }
    let headlines: Vec<_> = stores
        .iter()
        .map(|(_, _, prometheus)| {
            let titles = ["Sent", "Completed", "Lost", "Lost share", "p99 so far"];
            titles.map(|title| headline(prometheus, &boards, &format!("run: {title}")))
        })
        .collect();
    let record = RunRecord::from_json(&run.result_with(130)).unwrap();
    let counts = &record.total.counts;
    let lost = counts.lost() as f64;
    let p99 = record.total.distributions.latency.percentile(0.99).unwrap() as f64 / 1e9;
    for ((histograms, bound, _), [sent, completed, lost_shown, share, p99_shown]) in
        stores.iter().zip(headlines)
    {
        assert_eq!(sent, counts.sent as f64, "{histograms}");
        assert_eq!(completed, counts.responses as f64, "{histograms}");
        assert_eq!(lost_shown, lost, "{histograms}");
        assert_eq!(share, lost / counts.offered as f64, "{histograms}");
        let factor = (p99_shown / p99).max(p99 / p99_shown);
        assert!(
            factor < *bound,
            "{histograms}: p99 {p99_shown} s, recorded {p99} s"
        );
    }
    record
}

/// Prometheus with native histograms and without, each with the width of its buckets, and 1 % more
/// for those of the record.
fn stores(folder: &Folder, run: &Watched) -> [(&'static str, f64, Prometheus); 2] {
    let start = |flags: &[&str]| Prometheus::start(folder, run.at, flags);
    [
        ("native histograms", 1.022 * 1.01, start(&[NATIVE])),
        ("classic histograms", 2.5 * 1.01, start(&[])),
    ]
}

/// Every product that has a profile, BIND behind CoreDNS among them.
const SERVERS: [&str; 8] = [
    "coredns --set behind=udp --set options=cache",
    "unbound --set statistics=on",
    "knot --set statistics=on",
    "knot-resolver",
    "pdns-auth",
    "pdns-recursor",
    "dnsdist",
    "haproxy",
];

/// The servers, and that a run queries and observes each of them. HAProxy passes on TCP alone, and
/// is observed only.
fn observed(lab: &Lab) -> String {
    std::thread::scope(|scope| {
        for server in SERVERS {
            let flags = format!("{server} --data zone:20,ttl=1s --transports none");
            scope.spawn(move || lab.up(&flags));
        }
    });
    let servers = lab.list();
    let is_asked = |server: &Value| server["front"].is_null() && server["name"] != "haproxy";
    let asked = servers.iter().filter(|it| is_asked(it));
    let asked = asked.map(|it| format!(" --server {}", address(it, "udp")));
    let is_shown = |server: &Value| server["front"].is_null() || server["name"] == "coredns-bind";
    let shown = servers.iter().filter(|it| is_shown(it));
    let shown = shown.map(|it| format!(" --observe auto={}", address(it, "tcp")));
    let all: String = asked.chain(shown).collect();
    let names = servers[0]["folder"].as_str().unwrap();
    format!("--names {names}/names --server-order rotate{all}")
}

#[test]
fn dashboards_and_alerts_have_values_of_a_run_and_its_result_is_that_of_the_record() {
    let folder = Folder::new("dashboards-run");
    let lab = Lab::new("dashboards-lab");
    let run = Watched::start(&format!(
        "run --rate 300 --duration 10m --format json --metrics 127.0.0.1:0 {}",
        observed(&lab)
    ));
    let stores = stores(&folder, &run);
    for (histograms, _, prometheus) in &stores {
        let mut expressions = of_boards(&run);
        expressions.extend(of_alerts(prometheus));
        expressions.retain(|it| !it.is_of_agents_or_groups());
        check(prometheus, histograms, &expressions);
    }
    check_result(run, &stores);
}

#[test]
fn dashboards_and_alerts_have_values_of_agents_and_groups() {
    let folder = Folder::new("dashboards-agents");
    let responder = Responder::start("udp:127.0.0.1:0", "--loss 0.1");
    let names = folder.write("names.txt", "a.example A\n");
    let scenario = folder.write(
        "s.toml",
        "duration = '10m'\n[[clients]]\nname = 'a'\nrate = '200'\n\
         [[clients]]\nname = 'b'\nrate = '100'\n",
    );
    let run = Watched::start(&format!(
        "run {scenario} --server {} --names {names} --timeout 2s --agents 2 --format json \
         --metrics 127.0.0.1:0",
        responder.address()
    ));
    let stores = stores(&folder, &run);
    for (histograms, _, prometheus) in &stores {
        let mut expressions = of_boards(&run);
        expressions.extend(of_alerts(prometheus));
        expressions.retain(Expression::is_of_agents_or_groups);
        check(prometheus, histograms, &expressions);
    }
    let boards = of_boards(&run);
    for (_, _, prometheus) in &stores {
        wait::until("lost queries", || {
            headline(prometheus, &boards, "run: Lost") > 0.0
        });
    }
    let record = check_result(run, &stores);
    assert!(record.total.counts.lost() > 0);
}

/// A series, and its values each 10 s.
type Series = (&'static str, &'static str);

/// Alerts, when they fire, and the series with which they do.
const FIRING: [(&str, &str, &[Series]); 9] = [
    (
        "ThrongQueriesLost",
        "5m",
        &[
            ("throng_queries_sent_total{}", "0+100x30"),
            ("throng_queries_timed_out_total{}", "0+1x30"),
            ("throng_queries_connection_lost_total{}", "0x30"),
            ("throng_queries_exchange_failed_total{}", "0x30"),
        ],
    ),
    (
        "ThrongResponsesUseless",
        "5m",
        &[
            (r#"throng_responses_total{rcode="NOERROR"}"#, "0+98x30"),
            (r#"throng_responses_total{rcode="SERVFAIL"}"#, "0+2x30"),
        ],
    ),
    (
        "ThrongServerMemoryGrows",
        "1h",
        &[(
            r#"throng_observed_gauge{profile="bind",series="memory"}"#,
            "1000+1x360",
        )],
    ),
    (
        "ThrongLatencyHigh",
        "5m",
        &[
            (r#"throng_latency_seconds_bucket{le="0.1"}"#, "0+98x30"),
            (r#"throng_latency_seconds_bucket{le="0.2"}"#, "0+100x30"),
            (r#"throng_latency_seconds_bucket{le="+Inf"}"#, "0+100x30"),
        ],
    ),
    (
        "ThrongGeneratorLate",
        "5m",
        &[
            (
                r#"throng_send_lateness_seconds_bucket{le="0.01"}"#,
                "0+98x30",
            ),
            (
                r#"throng_send_lateness_seconds_bucket{le="0.02"}"#,
                "0+100x30",
            ),
            (
                r#"throng_send_lateness_seconds_bucket{le="+Inf"}"#,
                "0+100x30",
            ),
        ],
    ),
    (
        "ThrongQueriesNotSent",
        "5m",
        &[(
            r#"throng_queries_not_sent_total{reason="no_free_id"}"#,
            "0+1x30",
        )],
    ),
    (
        "ThrongAgentLost",
        "5m",
        &[(r#"throng_agent_up{agent="1"}"#, "1x5 0x25")],
    ),
    (
        "ThrongSnapshotsMissed",
        "5m",
        &[("throng_snapshots_missed_total{}", "0x20 1+1x10")],
    ),
    (
        "ThrongObservationStale",
        "5m",
        &[(r#"throng_observed_up{source="host"}"#, "1x5 0x25")],
    ),
];

/// A rule that never fires would be found in a soak that needed it.
#[test]
fn each_alert_fires_for_its_reason_alone() {
    let folder = Folder::new("dashboards-alerts");
    let rules = format!("{DEPLOY}/prometheus/alerts.yml");
    execute(&format!("promtool check rules {rules}")).succeeded();
    let known = fs::read_to_string(&rules).unwrap();
    assert_eq!(known.matches("- alert: ").count(), FIRING.len());
    let mut tests = format!("rule_files: ['{rules}']\nevaluation_interval: 10s\ntests:\n");
    for (alert, at, series) in FIRING {
        tests.push_str("  - interval: 10s\n    input_series:\n");
        for (series, values) in series {
            tests.push_str(&format!(
                "      - {{series: '{series}', values: '{values}'}}\n"
            ));
        }
        let expression = r#"count by (alertname) (ALERTS{alertstate="firing"})"#;
        tests.push_str(&format!(
            "    promql_expr_test:\n      - expr: '{expression}'\n        eval_time: {at}\n        \
             exp_samples: [{{labels: '{{alertname=\"{alert}\"}}', value: 1}}]\n"
        ));
    }
    let tests = folder.write("tests.yml", &tests);
    execute(&format!("promtool test rules {tests}")).succeeded();
}

fn deployed(path: &str) -> String {
    fs::read_to_string(format!("{DEPLOY}/{path}")).unwrap()
}

#[test]
fn provisioning_names_the_dashboards_and_has_the_interval_of_scrapes() {
    let text = deployed("grafana/provisioning/dashboards/throng.yaml");
    let provisioned = yaml::document(&text);
    assert_eq!(provisioned["apiVersion"], 1);
    let [provider] = list(&provisioned, "providers") else {
        panic!("{text}");
    };
    assert_eq!(provider["type"], "file");
    let folder = provider["options"]["path"].as_str().unwrap();
    let page = include_str!("../../../../../docs/grafana.md");
    assert!(page.contains(&format!("`{folder}`")), "{folder}");
    // It says which files belong there.
    let words = text.split(|c: char| c.is_whitespace() || c == ',');
    let mut named: Vec<&str> = words.filter_map(|it| it.strip_suffix(".json")).collect();
    let mut there: Vec<String> = fs::read_dir(format!("{DEPLOY}/grafana"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
        .collect();
    named.sort_unstable();
    there.sort_unstable();
    assert_eq!(named, there);
    assert_eq!(named.len(), BOARDS.len());

    let text = deployed("grafana/provisioning/datasources/throng.yaml");
    let sources = yaml::document(&text);
    assert_eq!(sources["apiVersion"], 1);
    let [source] = list(&sources, "datasources") else {
        panic!("{text}");
    };
    assert_eq!(source["type"], "prometheus");
    let scrapes = yaml::document(&deployed("prometheus/scrape.yaml"));
    let interval = &list(&scrapes, "scrape_configs")[0]["scrape_interval"];
    assert_eq!(&source["jsonData"]["timeInterval"], interval);
}

/// Panels that the table of docs/grafana.md names, and lines that each has at least.
const RED_HAT: [(&str, &str, &[&str]); 4] = [
    ("run", "Queries per second", &["sent", "completed", "lost"]),
    ("run", "Latency", &["p50", "p95", "p99"]),
    ("servers", "Queries", &["{{source}}"]),
    ("servers", "CPU", &["{{source}}"]),
];

#[test]
fn boards_have_the_figures_of_red_hat() {
    let page = include_str!("../../../../../docs/grafana.md");
    for (board, title, expected) in RED_HAT {
        let json: Value =
            serde_json::from_str(&deployed(&format!("grafana/{board}.json"))).unwrap();
        let mut panels = list(&json, "panels").iter();
        let panel = panels.find(|it| it["title"] == title && it["type"] == "timeseries");
        let panel = panel.unwrap_or_else(|| panic!("{board}: no {title}"));
        let targets = list(panel, "targets").iter();
        let lines: Vec<&str> = targets
            .filter_map(|it| it["legendFormat"].as_str())
            .collect();
        for line in expected {
            assert!(lines.contains(line), "{board}, {title}: {lines:?}");
        }
        let row = page
            .lines()
            .find(|row| row.contains(&format!("`{board}.json`: {title}")));
        assert!(row.is_some(), "{board}, {title}");
    }
}

#[test]
fn config_map_has_all_dashboards_and_the_label_that_grafana_looks_for() {
    let kubectl = format!("{DEPLOY}/../target/servers/kubernetes/kubectl");
    let made = execute(&format!("{kubectl} kustomize {DEPLOY}/grafana")).succeeded();
    assert!(made.contains("\nkind: ConfigMap\n"), "{made}");
    assert!(made.contains("    grafana_dashboard: \"1\"\n"), "{made}");
    for board in BOARDS {
        assert!(made.contains(&format!("\n  {board}.json: |\n")), "{board}");
    }
}
