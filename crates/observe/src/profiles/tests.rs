//! Every profile against what real servers said: samples recorded from the versions in their names.

use super::*;
use crate::profile::{Picker, Selector};
use crate::reading::Reading;
use crate::{bind, control, exposition, knot};
use measure::observation::{Observed, SeriesKind};

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("../../tests/samples/", $name))
    };
}

fn exposed(profile: &Profile, text: &str) -> Reading {
    let picker = Picker::new(profile, &[], Vec::new());
    exposition::parse(text, |name| picker.wants(name)).unwrap()
}

fn picked(profile: &Profile, reading: &Reading) -> Vec<Observed> {
    Picker::new(profile, &[], Vec::new()).pick(reading)
}

fn value(values: &[Observed], name: &str) -> f64 {
    let found = values.iter().find(|it| it.name == name);
    found.unwrap_or_else(|| panic!("no {name}")).value
}

/// Each row gives a series, but those that only other versions or settings have.
fn check(profile: &Profile, reading: &Reading, without: &[&str]) -> Vec<Observed> {
    let values = picked(profile, reading);
    for row in profile.rows {
        let is_there = values
            .iter()
            .any(|it| it.name.split('{').next() == Some(row.name) && it.unit == row.unit);
        let name = profile.name;
        let is_expected = !without.contains(&row.name);
        assert_eq!(is_there, is_expected, "{name}: {}", row.name);
    }
    values
}

#[test]
fn rows_are_named_once_and_say_what_they_mean() {
    for profile in ALL {
        let mut names = std::collections::BTreeSet::new();
        for row in profile.rows {
            let name = format!("{} {}", profile.name, row.name);
            assert!(names.insert(row.name), "{name} occurs twice");
            assert!(
                !row.meaning.is_empty() && !row.meaning.ends_with('.'),
                "{name}"
            );
            assert!(!row.unit.is_empty() && !row.from.is_empty(), "{name}");
            for selector in row.from {
                assert!(Selector::parse(selector).is_ok(), "{name}: {selector}");
            }
        }
        for program in profile.programs {
            assert!(
                program.len() <= 15,
                "{program}: the kernel keeps 15 bytes of a name"
            );
        }
        assert_eq!(by_name(profile.name).unwrap().name, profile.name);
    }
}

#[test]
fn bind_9_18_has_the_series_of_its_profile_in_both_forms() {
    let (mut json, mut xml) = (Reading::default(), Reading::default());
    for page in [
        sample!("bind-9.18-server.json"),
        sample!("bind-9.18-net.json"),
        sample!("bind-9.18-mem.json"),
    ] {
        bind::parse_json(page.as_bytes(), &mut json).unwrap();
    }
    for page in [
        sample!("bind-9.18-server.xml"),
        sample!("bind-9.18-net.xml"),
        sample!("bind-9.18-mem.xml"),
    ] {
        bind::parse_xml(page.as_bytes(), &mut xml).unwrap();
    }
    for reading in [json, xml] {
        let values = check(&BIND, &reading, &[]);
        assert_eq!(value(&values, "queries"), 7.0);
        assert_eq!(value(&values, "queries.tcp"), 1.0);
        assert_eq!(value(&values, "responses.nxdomain"), 1.0);
        assert_eq!(value(&values, "cache.hits"), 0.0);
        let facts = BIND.facts(&reading);
        assert_eq!(facts.version.as_deref(), Some("9.18.49-1~deb12u3-Debian"));
        assert!(facts.started.is_some());
    }
}

#[test]
fn unbound_1_17_has_the_series_of_its_profile() {
    let reading = control::parse(sample!("unbound-1.17.txt")).unwrap();
    let values = check(&UNBOUND, &reading, &[]);
    assert_eq!(value(&values, "queries"), 7.0);
    assert_eq!(value(&values, "queries.tcp"), 1.0);
    let threads = values
        .iter()
        .filter(|it| it.name.starts_with("thread.queries{"));
    assert_eq!(threads.map(|it| it.value).sum::<f64>(), 7.0);
}

#[test]
fn knot_3_2_has_the_series_of_its_profile() {
    let reading = knot::parse(sample!("knot-3.2.txt")).unwrap();
    let values = check(&KNOT, &reading, &[]);
    assert_eq!(value(&values, "queries"), 7.0);
    assert_eq!(value(&values, "queries.udp"), 6.0);
    assert_eq!(value(&values, "queries.doq"), 0.0);
    // Without its module it counts nothing, which is not zero.
    let bare = knot::parse("server.zone-count = 1\n").unwrap();
    let names: Vec<String> = picked(&KNOT, &bare).into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["zones"]);
}

#[test]
fn coredns_1_15_has_the_series_of_its_profile() {
    let reading = exposed(&COREDNS, sample!("coredns-1.15.txt"));
    let values = check(&COREDNS, &reading, &[]);
    assert_eq!(value(&values, "queries"), 7.0);
    assert_eq!(value(&values, "queries.udp"), 6.0);
    assert_eq!(value(&values, "queries.doq"), 0.0);
    assert_eq!(
        (value(&values, "cache.hits"), value(&values, "cache.misses")),
        (4.0, 3.0)
    );
    assert_eq!(COREDNS.facts(&reading).version.as_deref(), Some("1.15.0"));
}

#[test]
fn dnsdist_1_7_has_the_series_of_its_profile() {
    let reading = exposed(&DNSDIST, sample!("dnsdist-1.7.txt"));
    let without = ["queries.dot", "queries.doh", "backend.latency"];
    let values = check(&DNSDIST, &reading, &without);
    assert_eq!(value(&values, "queries"), 6.0);
    assert_eq!(value(&values, "queries.udp"), 5.0);
    assert!(
        values
            .iter()
            .any(|it| it.name.starts_with("backend.queries{server="))
    );
    assert_eq!(DNSDIST.facts(&reading).version.as_deref(), Some("1.7.3"));
}

#[test]
fn haproxy_2_6_has_the_series_of_its_profile() {
    let reading = exposed(&HAPROXY, sample!("haproxy-2.6.txt"));
    let values = check(&HAPROXY, &reading, &[]);
    assert_eq!(value(&values, "frontend.sessions{proxy=\"dns\"}"), 0.0);
    let version = HAPROXY.facts(&reading).version.unwrap();
    assert!(version.starts_with("2.6.12"), "{version}");
}

#[test]
fn powerdns_authoritative_server_4_7_has_the_series_of_its_profile() {
    let reading = exposed(&PDNS_AUTH, sample!("pdns-auth-4.7.txt"));
    let values = check(&PDNS_AUTH, &reading, &[]);
    assert_eq!(value(&values, "queries"), 4.0);
    assert_eq!(value(&values, "queries.tcp"), 1.0);
    assert_eq!(PDNS_AUTH.facts(&reading).version.as_deref(), Some("4.7.3"));
}

#[test]
fn powerdns_recursor_4_8_has_the_series_of_its_profile() {
    let reading = exposed(&RECURSOR, sample!("pdns-recursor-4.8.txt"));
    let values = check(&RECURSOR, &reading, &[]);
    assert_eq!(value(&values, "queries"), 4.0);
    assert_eq!(value(&values, "queries.tcp"), 1.0);
    assert_eq!(value(&values, "cpu.user"), 0.012);
    assert_eq!(RECURSOR.facts(&reading).version.as_deref(), Some("4.8.8"));
}

#[test]
fn knot_resolver_5_6_has_the_series_of_its_profile() {
    let reading = exposed(&KNOT_RESOLVER, sample!("knot-resolver-5.6.txt"));
    let values = check(&KNOT_RESOLVER, &reading, &[]);
    assert_eq!(value(&values, "queries"), 6.0);
    assert_eq!(value(&values, "queries.tcp"), 1.0);
    assert_eq!(value(&values, "responses.nxdomain"), 3.0);
    assert_eq!(value(&values, "upstream.queries"), 2.0);
}

/// Rows whose meaning is a loss, and that no verdict reads, with the reason.
const NOT_JUDGED: [(&str, &str); 10] = [
    ("receive_errors", "of an interface, which others use too"),
    ("send_errors", "the same"),
    (
        "udp.receive_errors",
        "of the whole host: the program's own sockets are read",
    ),
    ("listen.drops", "of the whole host, and of other programs"),
    ("tcp.retransmissions", "of the whole host"),
    (
        "frontend.errors",
        "HAProxy counts no queries that these could be a share of",
    ),
    ("backend.errors", "the same"),
    ("backend.retries", "they were tried again"),
    (
        "responses.refused",
        "responses, which the generator counts too",
    ),
    ("responses.truncated", "the same"),
];

/// A counter of losses that lies unused in a record lets a verdict blame others.
#[test]
fn each_counter_of_losses_is_read_by_the_verdict() {
    use measure::observation::{DROPS, PROGRAM_LOSSES, UPSTREAM_FAILURES};
    let judged = [&DROPS[..], &UPSTREAM_FAILURES, &PROGRAM_LOSSES].concat();
    let words = [
        "drop",
        "did not answer",
        "not accept",
        "not be sent",
        "not forward",
        "no backend",
        "fail",
        "error",
        "gave up",
        "refus",
        "reject",
        "no room",
        "was full",
        "timed out",
        "in time",
        "killed",
        "room for others",
        "truncat",
        "again",
    ];
    let rows = ALL.iter().flat_map(|it| it.rows);
    let losses: Vec<_> = rows
        .filter(|row| row.kind == SeriesKind::Counter)
        .filter(|row| words.iter().any(|word| row.meaning.contains(word)))
        .collect();
    let is_known = |name| judged.contains(&name) || NOT_JUDGED.iter().any(|it| it.0 == name);
    let unread = losses.iter().filter(|row| !is_known(row.name));
    let unread: Vec<_> = unread.map(|row| (row.name, row.meaning)).collect();
    assert!(unread.is_empty(), "{unread:#?}");
    let rows: Vec<_> = ALL.iter().flat_map(|it| it.rows).collect();
    let named = NOT_JUDGED.iter().map(|it| it.0);
    for name in judged.iter().copied().chain(named) {
        assert!(
            rows.iter().any(|row| row.name == name),
            "{name} is in no profile"
        );
    }
}
