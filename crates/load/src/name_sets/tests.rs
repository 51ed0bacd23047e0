use std::collections::HashSet;

use hickory_proto::op::Message;
use proto::query::QueryOptions;

use super::*;
use crate::{QuestionSet, names_file, update_file};

fn written(write: impl FnOnce(&mut String) -> std::fmt::Result) -> String {
    let mut text = String::new();
    write(&mut text).unwrap();
    text
}

fn questions(text: &str) -> QuestionSet {
    names_file::parse_text(text.as_bytes(), &QueryOptions::default()).unwrap()
}

#[test]
fn record_sets_have_names_zone_updates_and_commands_that_agree() {
    let set = RecordSet::new("melmac.univ.", 2, 1).unwrap();
    assert_eq!(
        written(|out| set.write_names(out)),
        "test-record-1.melmac.univ A\ntest-record-2.melmac.univ A\n"
    );
    assert_eq!(
        written(|out| set.write_zone(out)),
        "$ORIGIN melmac.univ.\n$TTL 1\n@ IN SOA ns1 hostmaster 1 3600 600 86400 1\n\
         @ IN NS ns1\nns1 IN A 192.0.2.1\n\
         test-record-1 IN A 10.0.0.1\ntest-record-2 IN A 10.0.0.2\n"
    );
    assert_eq!(
        written(|out| set.write_updates(out)),
        "melmac.univ.\nadd test-record-1 1 A 10.0.0.1\nsend\n\
         melmac.univ.\nadd test-record-2 1 A 10.0.0.2\nsend\n"
    );
    assert_eq!(
        written(|out| set.write_nsupdate(out)),
        "zone melmac.univ.\nupdate add test-record-1.melmac.univ. 1 A 10.0.0.1\n\
         update add test-record-2.melmac.univ. 1 A 10.0.0.2\nsend\n"
    );
    assert_eq!(
        written(|out| set.write_ipa(out)),
        "ipa dnsrecord-add melmac.univ test-record-1 --a-rec=10.0.0.1 --ttl=1\n\
         ipa dnsrecord-add melmac.univ test-record-2 --a-rec=10.0.0.2 --ttl=1\n"
    );
}

#[test]
fn record_sets_of_a_thousand_are_read_by_the_parsers_here() {
    let set = RecordSet::new("melmac.univ", 1_000, 300).unwrap();
    assert_eq!(questions(&written(|out| set.write_names(out))).len(), 1_000);
    let updates = written(|out| set.write_updates(out));
    let updates = update_file::parse_text(updates.as_bytes(), None).unwrap();
    assert_eq!(updates.len(), 1_000);
    let last = Message::from_vec(updates.get(999).message).unwrap();
    let record = &last.authorities[0];
    assert_eq!(record.name.to_string(), "test-record-1000.melmac.univ.");
    assert_eq!((record.ttl, &*record.data.to_string()), (300, "10.0.3.232"));
    let nsupdate = written(|out| set.write_nsupdate(out));
    let sends = nsupdate.lines().filter(|line| *line == "send").count();
    let zones = nsupdate
        .lines()
        .filter(|line| line.starts_with("zone "))
        .count();
    assert_eq!((sends, zones), (5, 5));
    assert!(nsupdate.ends_with("send\n"));
}

#[test]
fn record_sets_that_cannot_be_made_are_refused() {
    let long = "a.".repeat(120);
    for zone in [
        "",
        ".",
        "a..b",
        ".a",
        "a b",
        "$(reboot).test",
        "a;b",
        &*long,
    ] {
        let error = RecordSet::new(zone, 1, 1).unwrap_err();
        assert_eq!(error.setting, "zone", "{zone}");
    }
    assert_eq!(RecordSet::new("a.test", 0, 1).unwrap_err().setting, "count");
    let many = RecordSet::new("a.test", records::RECORDS_MAX + 1, 1);
    assert_eq!(many.unwrap_err().setting, "count");
    assert_eq!(
        RecordSet::new("a.test", 1, 1 << 31).unwrap_err().setting,
        "ttl"
    );
}

#[test]
fn service_sets_hold_existing_missing_and_external_names() {
    let set = ServiceSet::default();
    set.validate().unwrap();
    let names = written(|out| set.write_names(out));
    assert_eq!(questions(&names).len(), 1_100);
    let lines: Vec<&str> = names.lines().collect();
    assert_eq!(lines[0], "service-1.coredns-services.svc.cluster.local A");
    assert_eq!(lines[500], "missing-1.coredns-services.svc.cluster.local A");
    assert!(!lines[1_000].contains("cluster.local"));
    assert_eq!(lines.iter().collect::<HashSet<_>>().len(), 1_100);
}

#[test]
fn service_zones_and_manifests_hold_the_existing_services_only() {
    let set = ServiceSet {
        existing: 2,
        ..ServiceSet::default()
    };
    assert_eq!(
        written(|out| set.write_zone(out)),
        "$ORIGIN cluster.local.\n$TTL 5\n@ IN SOA ns.dns hostmaster 1 7200 1800 86400 5\n\
         @ IN NS ns.dns\nns.dns IN A 10.96.0.10\n\
         service-1.coredns-services.svc IN A 10.96.1.1\n\
         service-2.coredns-services.svc IN A 10.96.1.2\n"
    );
    let manifests = written(|out| set.write_manifests(out));
    assert!(manifests.starts_with(
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Namespace\n  metadata:\n    \
         name: coredns-services\n- apiVersion: v1\n  kind: Service\n  metadata:\n    \
         name: service-1\n    namespace: coredns-services\n  spec:\n    type: ClusterIP\n"
    ));
    assert_eq!(manifests.matches("kind: Service\n").count(), 2);
}

#[test]
fn service_sets_that_cannot_be_made_are_refused() {
    let default = ServiceSet::default();
    let cases = [
        (
            "existing",
            ServiceSet {
                existing: services::SERVICES_MAX + 1,
                ..default
            },
        ),
        (
            "missing",
            ServiceSet {
                missing: u32::MAX,
                ..default
            },
        ),
        (
            "external",
            ServiceSet {
                external: 101,
                ..default
            },
        ),
        (
            "ttl",
            ServiceSet {
                ttl_s: u32::MAX,
                ..default
            },
        ),
        (
            "existing",
            ServiceSet {
                existing: 0,
                missing: 0,
                external: 0,
                ..default
            },
        ),
    ];
    for (setting, set) in cases {
        assert_eq!(set.validate().unwrap_err().setting, setting);
    }
}

#[test]
fn shuffling_keeps_every_line_and_depends_on_the_seed_alone() {
    let names = written(|out| ServiceSet::default().write_names(out));
    let shuffled = |seed| written(|out| write_shuffled(&names, seed, out));
    assert_eq!(shuffled(1), shuffled(1));
    assert_ne!(shuffled(1), shuffled(2));
    assert_ne!(shuffled(1), names);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&shuffled(1)), sorted(&names));
}

#[test]
fn shuffling_puts_comments_first_and_drops_empty_lines() {
    let text = "a A\r\n; one\n\n  b A\n# two\nc A";
    let shuffled = written(|out| write_shuffled(text, 3, out));
    assert!(shuffled.starts_with("; one\n# two\n"));
    let mut rest: Vec<&str> = shuffled.lines().skip(2).collect();
    rest.sort();
    assert_eq!(rest, ["a A", "b A", "c A"]);
    assert_eq!(written(|out| write_shuffled("", 3, out)), "");
}

#[test]
fn every_order_comes_up_about_equally_often() {
    let mut counts = std::collections::HashMap::<String, u32>::new();
    for seed in 0..6_000 {
        let order = written(|out| write_shuffled("a\nb\nc\n", seed, out));
        *counts.entry(order).or_default() += 1;
    }
    assert_eq!(counts.len(), 6);
    // 1,000 each with a standard deviation of 29.
    assert!(
        counts.values().all(|count| (880..1_120).contains(count)),
        "{counts:?}"
    );
}
