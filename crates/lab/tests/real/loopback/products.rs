//! Whole runs against every server that is tried, over each transport.
//!
//! Each run asks for names that exist, names that do not and types that do not, and the RCODEs
//! counted are those of the zone, to the query.

use std::net::SocketAddr;
use std::sync::Arc;
use std::{env, fs};

use lab::target::{Cell, DOH_PATH, Product, RunningServer, Service, TLS_NAME, prepared, products};
use load::names_file;
use measure::observation::{Observation, Series};
use measure::{Counts, RunRecord};
use proto::Transport;
use proto::doh::Method;
use proto::query::QueryOptions;
use testing::host::is_root_for;

use crate::bench::Load;
use crate::target::zone;

/// One way of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) transport: Transport,
    /// What it is beside UDP and TCP.
    pub(crate) service: Option<Service>,
    /// For DNS over HTTPS.
    pub(crate) method: Method,
}

const fn way(transport: Transport, method: Method) -> Way {
    Way {
        transport,
        service: Service::of(transport),
        method,
    }
}

const UDP: Way = way(Transport::Udp, Method::Get);
const TCP: Way = way(Transport::Tcp, Method::Get);
const DOT: Way = way(Transport::Dot, Method::Get);
const DOH2_GET: Way = way(Transport::Doh2, Method::Get);
const DOH2_POST: Way = way(Transport::Doh2, Method::Post);
const H2C_GET: Way = Way {
    service: Some(Service::H2c),
    ..DOH2_GET
};
const H2C_POST: Way = Way {
    service: Some(Service::H2c),
    ..DOH2_POST
};
const DOH3_GET: Way = way(Transport::Doh3, Method::Get);
const DOH3_POST: Way = way(Transport::Doh3, Method::Post);
const DOQ: Way = way(Transport::Doq, Method::Get);

/// Who is asked in which ways.
pub(crate) const TABLE: [(&Product, &[Way]); 10] = [
    (
        &products::BIND,
        &[UDP, TCP, DOT, DOH2_GET, DOH2_POST, H2C_GET, H2C_POST],
    ),
    (&products::UNBOUND, &[UDP, TCP, DOT, DOH2_GET, DOH2_POST]),
    (&products::KNOT, &[UDP, TCP, DOT, DOQ]),
    (&products::NSD, &[UDP, TCP, DOT]),
    (
        &products::COREDNS,
        &[UDP, TCP, DOT, DOH2_GET, DOH2_POST, DOH3_GET, DOH3_POST, DOQ],
    ),
    (&products::PDNS_AUTH, &[UDP, TCP]),
    (&products::PDNS_RECURSOR, &[UDP, TCP]),
    (
        &products::KNOT_RESOLVER,
        &[UDP, TCP, DOT, DOH2_GET, DOH2_POST],
    ),
    (&products::DNSDIST, &[UDP, TCP, DOT, DOH2_GET, DOH2_POST]),
    (&products::HAPROXY, &[TCP, DOT]),
];

/// 100 names that exist, 20 without the type asked for, 30 that are not there.
const QUESTIONS: u64 = 100 + 20 + MISSING;
const MISSING: u64 = 30;
const ROUNDS: u64 = 70;

const NOERROR: usize = 0;
const NXDOMAIN: usize = 3;

fn questions() -> String {
    let existing = (1..=100).map(|number| format!("test-record-{number}.lab.test A\n"));
    let no_data = (1..=20).map(|number| format!("test-record-{number}.lab.test AAAA\n"));
    let missing = (1..=MISSING).map(|number| format!("missing-{number}.lab.test A\n"));
    existing.chain(no_data).chain(missing).collect()
}

impl Way {
    pub(crate) fn address(self, target: &RunningServer) -> SocketAddr {
        let endpoints = target.endpoints();
        let found = match self.service {
            None => endpoints.address(self.transport),
            Some(service) => endpoints.service(service),
        };
        found.unwrap_or_else(|| panic!("the target is not asked like this: {self:?}"))
    }

    /// Ten clients with five queries in flight each.
    pub(crate) fn load(self, address: SocketAddr) -> Load {
        let text = questions();
        let questions = names_file::parse_text(text.as_bytes(), &QueryOptions::default()).unwrap();
        let load = Load::over(self.transport)
            .outstanding(50)
            .queries(ROUNDS * QUESTIONS);
        let load = load.plan(|plan| plan.questions = Arc::new(questions));
        if !self.transport.is_doh() {
            return load;
        }
        let is_plain = self.service == Some(Service::H2c);
        let scheme = if is_plain { "http" } else { "https" };
        let uri = format!("{scheme}://{TLS_NAME}:{}{DOH_PATH}", address.port());
        load.doh(self.method, &uri)
    }
}

fn check(product: &'static Product) {
    check_cell(&telling(product));
}

/// The numbers that a version begins with.
fn numbers(version: &str) -> Vec<u32> {
    let parts = version.split(|it: char| !it.is_ascii_digit());
    parts.map_while(|part| part.parse().ok()).collect()
}

/// The release of it that Debian 13 has: at least that with which it was released, since updates
/// for security bring newer ones.
fn check_debian13(product: &'static Product, program: &str, released: &str) {
    let mut cell = telling(product);
    cell.path = Some(prepared::debian13_server(program).unwrap());
    for record in check_cell(&cell) {
        let mut observations = record.observations.iter();
        let observation = observations.find(|it| it.profile == product.name).unwrap();
        let told = observation.facts.version.as_ref().unwrap();
        assert!(numbers(told) >= numbers(released), "{told}");
    }
}

fn check_cell(cell: &Cell) -> Vec<RunRecord> {
    let product = cell.product;
    let (_, ways) = TABLE
        .iter()
        .find(|(each, _)| each.name == product.name)
        .unwrap();
    let target = cell.start().unwrap();
    check_rights(&target);
    let run = |way: &Way| {
        let address = way.address(&target);
        let load = way.load(address).preflight().observe(&["auto"]);
        let load = match target.ca_pem() {
            Some(ca_pem) => load.ca_pem(ca_pem),
            None => load,
        };
        let ran = load.run_at(address);
        let (counts, name) = (ran.counts(), format!("{}, {way:?}", product.name));
        check_counts(counts, &name);
        check_observed(product, &ran.record, &name);
        ran.record
    };
    ways.iter().map(run).collect()
}

/// All queries were answered as the zone says, but for those on connections that a server closed:
/// on a busy host it may take a client for one that does not read.
fn check_counts(counts: &Counts, name: &str) {
    let total = ROUNDS * QUESTIONS;
    let connections = &counts.connections;
    let closed = connections.closed_by_target + connections.reset_by_target;
    let lost = match closed {
        0 => 0,
        _ => counts.connection_losses,
    };
    let seen = (counts.offered, counts.sent, counts.responses + lost);
    assert_eq!(seen, (total, total, total), "{name}: {counts:?}");
    assert_eq!(counts.lost(), lost, "{name}: {counts:?}");
    let besides = counts.unexpected.total() + counts.duplicate + counts.late;
    assert_eq!(besides, 0, "{name}: {counts:?}");
    let by_rcode = &counts.rcodes.by_rcode;
    let (noerror, nxdomain) = (by_rcode[NOERROR], by_rcode[NXDOMAIN]);
    assert_eq!(noerror + nxdomain, counts.responses, "{name}: {counts:?}");
    let most = (ROUNDS * (QUESTIONS - MISSING), ROUNDS * MISSING);
    let missing = (most.0.checked_sub(noerror), most.1.checked_sub(nxdomain));
    let missing = missing
        .0
        .zip(missing.1)
        .map(|(of_names, of_others)| of_names + of_others);
    assert_eq!(missing, Some(lost), "{name}: {counts:?}");
}

/// It and what stands behind it have no rights of root, and no variables of the caller.
fn check_rights(target: &RunningServer) {
    const PASSED_ON: [&str; 5] = ["PATH", "LANG", "TZ", "TMPDIR", "HOME"];
    let process = format!("/proc/{}", target.process_id());
    let variables = fs::read(format!("{process}/environ")).unwrap();
    let variables = String::from_utf8_lossy(&variables).into_owned();
    for (name, value) in env::vars() {
        let is_passed_on = PASSED_ON.contains(&&*name) || name.starts_with("LC_");
        let of_caller = format!("{name}={value}");
        let is_there = variables.split('\0').any(|it| it == of_caller);
        assert!(is_passed_on || !is_there, "{name}: {variables}");
    }
    if is_root_for("the user of servers") {
        let status = fs::read_to_string(format!("{process}/status")).unwrap();
        let of = |field: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(field));
            value.unwrap().split_whitespace().collect::<Vec<_>>()
        };
        for field in ["Uid:", "Gid:"] {
            assert!(!of(field).contains(&"0"), "{status}");
        }
        for field in ["CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
            assert_eq!(of(field), ["0000000000000000"], "{status}");
        }
        assert_eq!((of("NoNewPrivs:"), of("Groups:")), (vec!["1"], vec![]));
    }
    target.behind().into_iter().for_each(check_rights);
}

/// Servers count a query after they have answered it: this many may still be uncounted.
const BEING_COUNTED: u64 = 10;

/// The product, configured to count queries if it does not by default.
fn telling(product: &'static Product) -> Cell {
    let cell = Cell::new(product, zone());
    match product.factors.iter().any(|it| it.name == "statistics") {
        true => cell.set("statistics=on").unwrap(),
        false => cell,
    }
}

/// The program behind the port is the product's, and one of its processes worked. The time of a
/// thread is counted in nanoseconds; that of a process in hundredths of a second, of which an idle
/// second between two scrapes may have none.
fn check_program(product: &Product, observation: &Observation, name: &str) {
    let program = product.program_name();
    assert_eq!(
        observation.name(),
        program,
        "{name}: {:?}",
        observation.facts
    );
    let busiest = observation.series("cpu.busiest_thread").unwrap();
    assert!(busiest.highest > Some(0.0), "{name}: {observation:#?}");
    let facts = &observation.facts;
    if !product.servers_behind().is_empty() && facts.version.is_some() {
        assert_ne!(facts.version, facts.version_bind, "{name}: {facts:?}");
    }
}

/// What the server tells of itself is what it was asked, in all series of its profile.
fn check_observed(product: &Product, record: &RunRecord, name: &str) {
    let programs = record.programs();
    check_program(product, programs[0].observation(), name);
    assert!(programs[0].cpus_allowed >= Some(1.0), "{name}");
    let Some(profile) = observe::profiles::by_name(product.name) else {
        return;
    };
    let mut observations = record.observations.iter();
    let observation = observations.find(|it| it.profile == profile.name);
    let Some(observation) = observation else {
        panic!("{name} was not found: {:#?}", record.warnings);
    };
    let facts = &observation.facts;
    assert_eq!(facts.product.as_deref(), Some(profile.product), "{name}");
    for row in profile.rows {
        let of_row = |it: &Series| it.name.split('{').next() == Some(row.name);
        let is_there = observation.series.iter().any(of_row);
        assert!(is_there, "{name}: {}", row.name);
    }
    // What passes connections on counts those, and no queries.
    let (series, all) = match profile.rows.iter().any(|row| row.name == "queries") {
        true => ("queries", ROUNDS * QUESTIONS),
        false => (
            "frontend.connections{proxy=\"lab\"}",
            record.connections().attempted,
        ),
    };
    let counted = observation.series(series).and_then(|it| it.growth);
    let counted = counted.unwrap_or_else(|| panic!("{name}: no {series}")) as u64;
    let is_same = (all.saturating_sub(BEING_COUNTED)..=all).contains(&counted);
    assert!(is_same, "{name}: {counted} of {all}: {observation:#?}");
}

#[test]
fn bind_answers_whole_runs_as_its_zone_says() {
    check(&products::BIND);
}

#[test]
fn bind_of_debian_13_answers_whole_runs_as_its_zone_says() {
    check_debian13(&products::BIND, "named", "9.20");
}

#[test]
fn unbound_of_debian_13_answers_whole_runs_as_its_zone_says() {
    check_debian13(&products::UNBOUND, "unbound", "1.22");
}

#[test]
fn dnsdist_of_debian_13_answers_whole_runs_as_its_zone_says() {
    check_debian13(&products::DNSDIST, "dnsdist", "1.9");
}

#[test]
fn unbound_answers_whole_runs_as_its_zone_says() {
    check(&products::UNBOUND);
}

#[test]
fn knot_answers_whole_runs_as_its_zone_says() {
    check(&products::KNOT);
}

/// Knot DNS 3.4 allows 1,024 streams on a connection and never another: ten times 1,024 of the
/// 10,500 queries need a further connection. With ten open at once it answers none.
#[test]
fn knot_answers_a_whole_run_of_one_client_over_doq() {
    let target = products::KNOT.start(&zone()).unwrap();
    let address = DOQ.address(&target);
    let load = DOQ.load(address).clients(1).outstanding(5);
    let ran = load.ca_pem(target.ca_pem().unwrap()).run_at(address);
    let counts = ran.counts();
    assert_eq!(counts.responses, ROUNDS * QUESTIONS, "{counts:?}");
    assert_eq!(counts.lost(), 0, "{counts:?}");
    let connections = ran.record.connections();
    assert_eq!(connections.attempted, 11, "{connections:?}");
    assert_eq!(connections.closed_by_client_for.no_streams, 10);
}

#[test]
fn nsd_answers_whole_runs_as_its_zone_says() {
    check(&products::NSD);
}

#[test]
fn coredns_answers_whole_runs_as_its_zone_says() {
    check(&products::COREDNS);
}

#[test]
fn powerdns_authoritative_server_answers_whole_runs_as_its_zone_says() {
    check(&products::PDNS_AUTH);
}

#[test]
fn powerdns_recursor_answers_whole_runs_as_its_zone_says() {
    check(&products::PDNS_RECURSOR);
}

#[test]
fn knot_resolver_answers_whole_runs_as_its_zone_says() {
    check(&products::KNOT_RESOLVER);
}

#[test]
fn dnsdist_answers_whole_runs_as_its_zone_says() {
    check(&products::DNSDIST);
}

#[test]
fn haproxy_answers_whole_runs_as_its_zone_says() {
    check(&products::HAPROXY);
}

#[test]
fn haproxy_before_unbound_answers_whole_runs_as_its_zone_says() {
    check_cell(&telling(&products::HAPROXY).set("backend=unbound").unwrap());
}

#[test]
fn table_has_all_that_servers_offer() {
    for product in products::ALL {
        let (_, ways) = TABLE
            .iter()
            .find(|(each, _)| each.name == product.name)
            .unwrap();
        assert!(ways.contains(&TCP), "{}", product.name);
        for service in product.services() {
            let tried = ways.iter().filter(|way| way.service == Some(*service));
            let methods = match service {
                Service::Doh2 | Service::H2c | Service::Doh3 => 2,
                _ => 1,
            };
            assert_eq!(tried.count(), methods, "{} {service:?}", product.name);
        }
    }
}
