//! The population of the article that asked for this tool, against servers in use.

use std::fs;
use std::path::Path;

use lab::target::{Product, Service, Zone, products};
use measure::{GroupRecord, RunRecord};
use testing::folder::Folder;

use crate::process::throng;

fn zone() -> Zone {
    Zone::with_records(100, 60)
}

/// Clients of each group, and the queries that they ask in five seconds, at the least and at the
/// most; where the connection sets the pace there is no most.
const EXPECTED: [(&str, u64, std::ops::Range<u64>); 3] = [
    ("full rate", 4, 100..u64::MAX),
    // 20 clients ask 2 a second for 5 s: 200, and four times the square root of that.
    ("busy", 20, 144..257),
    // 16 ask 0.1 a second: 8.
    ("quiet", 16, 1..20),
];

fn check_group(group: &GroupRecord, what: &str) {
    let (name, clients, queries) = EXPECTED.iter().find(|it| it.0 == group.name).unwrap();
    let what = format!("{what}, {name}");
    let counts = &group.total.counts;
    assert_eq!(group.clients, *clients, "{what}");
    assert!(queries.contains(&counts.offered), "{what}: {counts:?}");
    assert_eq!(counts.responses, counts.offered, "{what}: {counts:?}");
    assert_eq!(counts.rcodes.by_rcode[0], counts.responses, "{what}");
    let experience = group.experience.as_ref().unwrap();
    assert_eq!(experience.clients(), *clients, "{what}");
    // A server may end connections that idle (RFC 7766, section 6.2.3), and Knot does when it is
    // pressed for time; nothing is lost by it.
    let connections = &counts.connections;
    assert_eq!(connections.failed.total(), 0, "{what}: {connections:?}");
}

fn check(product: &'static Product) {
    let preset = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/sinodun.toml");
    let preset = preset.display();
    let target = product.start(&zone()).unwrap();
    let folder = Folder::new(&format!("sinodun-{}", product.name));
    let lines = (1..=100).map(|number| format!("test-record-{number}.lab.test A\n"));
    let names = folder.write("names.txt", lines.collect::<String>());
    let authority = folder.write("ca.pem", target.ca_pem().unwrap());
    let endpoints = target.endpoints();
    let tcp = endpoints.address(proto::Transport::Tcp).unwrap();
    let dot = endpoints.service(Service::Dot).unwrap();
    let tls = format!("--transport dot --tls-ca {authority} --tls-name localhost");
    for (what, flags) in [
        ("tcp", format!("--server {tcp}")),
        ("dot", format!("--server {dot} {tls}")),
    ] {
        let file = folder.path(&format!("{what}.json"));
        let length = "--clients 40 --duration 5s --warmup 500ms --workers 1 --quiet";
        let run = format!("run {preset} {flags} --names {names} {length} --record {file}");
        throng(&run).succeeded();
        let record = RunRecord::from_json(&fs::read_to_string(&file).unwrap()).unwrap();
        let what = format!("{} over {what}", product.name);
        record.check().unwrap();
        assert_eq!(record.groups.len(), EXPECTED.len(), "{what}");
        for group in &record.groups {
            check_group(group, &what);
        }
        let counts = &record.total.counts;
        assert_eq!(counts.lost(), 0, "{what}: {counts:?}");
        let besides = counts.unexpected.total() + counts.duplicate + counts.late;
        assert_eq!(besides, 0, "{what}: {counts:?}");
        // Each client has its connection, and those that fell idle had further ones.
        let opened = record.scenario.usable(&record.connections());
        assert!(opened >= 40, "{what}: {opened} connections");
    }
}

#[test]
fn sinodun_population_is_served_by_unbound_over_tcp_and_dot() {
    check(&products::UNBOUND);
}

#[test]
fn sinodun_population_is_served_by_knot_over_tcp_and_dot() {
    check(&products::KNOT);
}
