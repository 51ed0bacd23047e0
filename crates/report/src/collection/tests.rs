use std::time::Duration;

use measure::{Arrival, RunRecord, Transport};

use super::*;
use crate::{example, plain, several};

fn collection(records: Vec<RunRecord>) -> Collection {
    let sources = records.into_iter().enumerate();
    let sources = sources.map(|(at, record)| Source::new(format!("{at}.json"), record));
    Collection::new(sources.collect()).expect("there are runs")
}

fn labelled(key: &str, value: &str, responses: u64) -> RunRecord {
    let mut record = example::full(Transport::Udp, responses);
    record.scenario.labels.insert(key.into(), value.into());
    record
}

/// A run against a server that the lab started for it.
fn of_lab(server: &str, labels: &[(&str, &str)], start: usize) -> RunRecord {
    let mut record = labelled("server", server, 10_000);
    record.scenario.target = format!("127.0.0.1:{}", 40_000 + start);
    record.scenario.questions.source = format!("/tmp/{start}/names");
    let all = labels.iter().chain(&[("data", "zone:1000,ttl=1h")]);
    let owned = all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    record.scenario.labels.extend(owned);
    record
}

fn varying(records: Vec<RunRecord>) -> Vec<String> {
    let varies = collection(records).varies;
    varies.into_iter().map(|it| it.name).collect()
}

#[test]
fn starts_of_a_server_are_repeats_wherever_it_listens() {
    let bind = [("product", "bind"), ("threads", "1")];
    let starts = collection((0..3).map(|start| of_lab("bind", &bind, start)).collect());
    assert!(starts.varies.is_empty());
    assert_eq!(starts.cells[0].runs.len(), 3);
}

#[test]
fn factors_of_a_server_are_what_varies_and_its_name_only_where_they_are_not() {
    let quotas = ["0.5", "1"].map(|quota| {
        let labels = [("product", "bind"), ("quota", quota)];
        of_lab(&format!("bind quota={quota}"), &labels, 0)
    });
    assert_eq!(varying(quotas.to_vec()), ["quota"]);
    let products = ["bind", "knot"].map(|product| {
        let factor = if product == "bind" {
            "threads"
        } else {
            "workers"
        };
        of_lab(product, &[("product", product), (factor, "1")], 0)
    });
    assert_eq!(varying(products.to_vec()), ["product"]);
    let named = [("as installed", "-"), ("tuned", "1000")].map(|(name, clients)| {
        let labels = [("product", "bind"), ("tcp-clients", clients)];
        of_lab(name, &labels, 0)
    });
    assert_eq!(varying(named.to_vec()), ["server"]);
    // The first of two twins has no label of its own.
    let first = of_lab("bind", &[("product", "bind"), ("quota", "1")], 0);
    let twin = of_lab(
        "bind",
        &[("product", "bind"), ("quota", "1"), ("aa", "twin")],
        0,
    );
    let other = of_lab("bind", &[("product", "bind"), ("quota", "2")], 0);
    let with_twin = collection(vec![first, twin, other]);
    let names = with_twin.cells.iter().map(|cell| with_twin.name(cell));
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert_eq!(names, ["quota=1", "quota=2", "twin, quota=1"]);
    let twins = ["bind", "bind again"].map(|name| of_lab(name, &[("product", "bind")], 0));
    assert_eq!(varying(twins.to_vec()), ["server"]);
}

#[test]
fn runs_of_the_same_scenario_are_repeats_of_one_cell() {
    let records = vec![
        labelled("repeat", "1", 10_000),
        labelled("repeat", "2", 30_000),
        labelled("repeat", "3", 20_000),
    ];
    let collection = collection(records);
    assert!(collection.varies.is_empty());
    let cell = &collection.cells[0];
    assert_eq!(cell.runs.len(), 3);
    let achieved = collection.metric(cell, Metric::Qps);
    let expected = OverRuns {
        value: 20_000.0,
        min: 10_000.0,
        max: 30_000.0,
    };
    assert_eq!(achieved, Some(expected));
    let text = plain::text(&several::document(&collection));
    assert!(text.contains("10,000 to 30,000"), "{text}");
}

#[test]
fn labels_and_fields_that_differ_are_what_varies_numbers_in_order() {
    let mut records: Vec<RunRecord> = ["10", "2", "1"]
        .map(|cpu| labelled("cpu", cpu, 10_000))
        .into();
    records[0].scenario.clients = 20;
    records[0].groups[0].clients = 20;
    let collection = collection(records);
    let names: Vec<&str> = collection
        .varies
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["cpu", "clients"]);
    let order: Vec<String> = collection
        .cells
        .iter()
        .map(|it| collection.name(it))
        .collect();
    assert_eq!(
        order,
        [
            "cpu=1, 10 clients",
            "cpu=2, 10 clients",
            "cpu=10, 20 clients"
        ]
    );
    assert_eq!(collection.axis(), Some(0));
}

#[test]
fn variants_that_are_the_transports_are_compared_as_transports() {
    let run = |transport, variant: &str| {
        let mut record = example::full(transport, 10_000);
        record
            .scenario
            .labels
            .insert("variant".into(), variant.into());
        record
    };
    let mut dot = example::dot();
    dot.scenario.labels.insert("variant".into(), "c".into());
    let records = vec![run(Transport::Udp, "a"), run(Transport::Tcp, "b"), dot];
    let names = |records| -> Vec<String> {
        let varies = collection(records).varies;
        varies.into_iter().map(|it| it.name).collect()
    };
    let found = names(records.clone());
    assert!(!found.contains(&"variant".to_owned()), "{found:?}");
    assert!(!found.contains(&"sessions resumed".to_owned()), "{found:?}");
    // Two variants of one transport, or one variant of two, say more.
    let mut two = records.clone();
    two.push(run(Transport::Udp, "d"));
    assert!(names(two).contains(&"variant".to_owned()));
    let mut one = records;
    one[1].scenario.labels.insert("variant".into(), "a".into());
    assert!(names(one).contains(&"variant".to_owned()));
}

#[test]
fn a_target_that_goes_with_the_transport_is_not_what_varies() {
    let mut tcp = example::full(Transport::Tcp, 10_000);
    tcp.scenario.target = "192.0.2.1:5353".into();
    let udp = example::full(Transport::Udp, 20_000);
    let both = collection(vec![udp.clone(), tcp.clone()]);
    assert_eq!(both.varies.len(), 1);
    let mut other = udp.clone();
    other.scenario.target = "192.0.2.2:53".into();
    let three = collection(vec![udp, tcp, other]);
    let names: Vec<&str> = three.varies.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["transport", "target"]);
}

#[test]
fn csv_has_a_row_a_run_and_quotes_what_needs_it() {
    let records = vec![
        labelled("note", "a,\"b\"", 10_000),
        labelled("note", "c", 20_000),
    ];
    let text = csv(&collection(records));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(
        lines[0].starts_with("file,started_at,note,duration_s,"),
        "{}",
        lines[0]
    );
    assert!(lines[1].contains(",\"a,\"\"b\"\"\",1,"), "{}", lines[1]);
    assert!(lines[2].ends_with(",server"), "{}", lines[2]);
}

#[test]
fn json_has_cells_runs_and_remarks() {
    let records = vec![labelled("cpu", "1", 10_000), labelled("cpu", "2", 20_000)];
    let value: serde_json::Value = serde_json::from_str(&json(&collection(records))).unwrap();
    assert_eq!(value["varies"][0], "cpu");
    assert_eq!(value["cells"][1]["values"]["cpu"], 2);
    assert_eq!(value["cells"][1]["median"]["achieved_qps"], 20_000);
    assert_eq!(value["runs"][0]["file"], "0.json");
    assert!(value["remarks"].as_array().unwrap().len() > 2);
}

#[test]
fn runs_that_differ_in_whatever_was_asked_are_no_repeats_of_each_other() {
    let mut other = example::full(Transport::Udp, 20_000);
    other.scenario.tsig_algorithm = Some("hmac-sha256".into());
    let runs = collection(vec![example::full(Transport::Udp, 20_000), other.clone()]);
    assert_eq!(runs.cells.len(), 2);
    let text = plain::text(&several::document(&runs));
    assert!(text.contains("tsig algorithm hmac-sha256"), "{text}");
    // Of many repeats with one setting changed, whatever it is, that one stands alone.
    let changes: [fn(&mut measure::ScenarioRecord); 6] = [
        |it| it.duration_ns = Some(8_000_000_000),
        |it| it.warmup_ns = 1,
        |it| it.connections.reconnect_delay = Duration::from_nanos(5),
        |it| it.offload = !it.offload,
        |it| it.socket_buffer_octets = Some(4_096),
        |it| {
            it.arrival = Arrival::Open {
                rate_qps: 20_000.0,
                process: measure::Process::Poisson,
                burst: 1,
            }
        },
    ];
    for change in changes {
        let mut other = example::full(Transport::Udp, 20_000);
        change(&mut other.scenario);
        let same = || example::full(Transport::Udp, 20_000);
        let runs = collection(vec![same(), other.clone(), same()]);
        let mut sizes: Vec<usize> = runs.cells.iter().map(|cell| cell.runs.len()).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [1, 2], "{:?}", other.scenario);
    }
    // What repeats may differ in.
    let mut other = example::full(Transport::Udp, 20_000);
    (other.scenario.seed, other.scenario.local_port) = (77, 5_353);
    let runs = collection(vec![example::full(Transport::Udp, 20_000), other]);
    assert_eq!(runs.cells.len(), 1);
}

#[test]
fn markdown_shows_names_as_they_are() {
    let records = vec![
        labelled("a|b", "<i>*x*</i>", 10_000),
        labelled("a|b", "y", 20_000),
    ];
    let text = plain::markdown(&several::document(&collection(records)));
    assert!(
        text.contains("a\\|b") && text.contains("&lt;i&gt;\\*x\\*&lt;/i&gt;"),
        "{text}"
    );
    assert!(!text.contains("<i>"));
}
