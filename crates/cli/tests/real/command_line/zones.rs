//! What is in the zones that servers under test serve: signatures and delegations.

use std::fs;

use measure::RunRecord;
use testing::folder::Folder;

use crate::experiments::experiment;

const RUNS: &str = r#"
repeat = 1
[run]
transport = "tcp"
dnssec = true
clients = 2
rate = 500
timeout = "2s"
queries = 200
"#;

fn server(label: &str, product: &str, data: &str, further: &str) -> String {
    format!(
        "[[server]]\nlabel = \"{label}\"\nproduct = \"{product}\"\ndata = \"{data}\"\n{further}"
    )
}

#[test]
fn servers_send_the_signatures_of_their_zone_and_refer_to_others() {
    let folder = Folder::new("zones-signed");
    let data = "zone:50,ttl=1s,delegations=10,signed";
    let mut text = RUNS.to_owned();
    let products = [
        "bind",
        "unbound",
        "knot",
        "nsd",
        "coredns",
        "pdns-auth",
        "dnsdist",
        "haproxy",
    ];
    for product in products {
        text.push_str(&server(product, product, data, ""));
    }
    let behind = "[server.factors]\nbehind = \"udp\"\n";
    text.push_str(&server("behind CoreDNS", "coredns", data, behind));
    // The gate compares signatures and referrals with the zone.
    experiment(&folder, &text, "run FILE --output OUT").succeeded();
    let entries = fs::read_dir(folder.path("out/records")).unwrap();
    let records: Vec<RunRecord> = entries
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .map(|text| RunRecord::from_json(&text).unwrap())
        .collect();
    assert_eq!(records.len(), products.len() + 1);
    for record in &records {
        let (label, counts) = (&record.scenario.labels["server"], &record.total.counts);
        // Five of six responses have a signature of 64 bytes in them, and more around it.
        let octets = counts.received_octets / counts.responses.max(1);
        assert!(octets > 100, "{label}: {octets} bytes a response");
    }
}

#[test]
fn servers_that_sign_by_themselves_send_signatures() {
    let folder = Folder::new("zones-signing");
    let signing = "[server.factors]\nsigning = \"on\"\n";
    let of = |product: &str| server(product, product, "zone:300,ttl=1s", signing);
    let text = format!("{RUNS}{}{}", of("bind"), of("knot"));
    experiment(&folder, &text, "run FILE --output OUT").succeeded();
    let records = fs::read_dir(folder.path("out/records")).unwrap();
    assert_eq!(records.count(), 2);
}

#[test]
fn signed_zones_that_a_server_cannot_have_are_refused_with_the_cure() {
    let folder = Folder::new("zones-refused");
    let signing = "[server.factors]\nsigning = \"on\"\n";
    let resolving = "[server.factors]\ninternet = \"0ms/0ms/0ms\"\n";
    for (product, data, factors, says) in [
        ("bind", "zone:5,signed", signing, "signed already"),
        ("knot", "zone:5,signed", signing, "signed already"),
        ("unbound", "zone:5,signed", resolving, "leave `signed`"),
    ] {
        let text = format!("{RUNS}{}", server("it", product, data, factors));
        let planned = experiment(&folder, &text, "plan FILE");
        assert_eq!(planned.code, Some(2), "{}", planned.stderr);
        assert!(planned.stderr.contains(says), "{}", planned.stderr);
    }
}
