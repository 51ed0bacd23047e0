//! What real servers say of themselves, by each profile: their series are there, and they counted
//! what was asked.

use std::net::SocketAddr;
use std::time::Instant;

use lab::target::{
    BindOptions, BindTarget, KnotOptions, KnotTarget, RunningServer, UnboundOptions, UnboundTarget,
    products,
};
use measure::Observation;
use measure::observation::ObservationMode;
use observe::{Asked, Observer, PERIOD_MIN, Settings, auto};

use testing::wait;

use crate::query::{Answered, ask_tcp, ask_udp};
use crate::zone;

/// Queries over each transport.
const UDP: u32 = 200;
const TCP: u32 = 20;

/// Starts to ask, sends queries, and asks once more.
fn observed(server: &RunningServer, asked: &[Asked]) -> Vec<Observation> {
    let settings = Settings {
        mode: ObservationMode::During,
        period: PERIOD_MIN,
        thread_cpu_time: driver::clock::Clock::thread_cpu_time,
    };
    let observer = Observer::start(asked, Instant::now(), settings).unwrap();
    let address = server.endpoints().do53();
    // Some add the name servers behind the address.
    let is_answered = |it: Answered| it.rcode == 0 && it.answer_count == 1;
    for _ in 0..UDP {
        assert!(is_answered(ask_udp(address, "test-record-1.lab.test")));
    }
    for _ in 0..TCP {
        assert!(is_answered(ask_tcp(address, "test-record-1.lab.test")));
    }
    // CoreDNS counts a query after it has answered.
    wait::until("all queries to be counted", || {
        observer.so_far().iter().all(has_counted)
    });
    let observations = observer.finish();
    for observation in &observations {
        assert_eq!(observation.check(), Ok(()));
        assert_eq!(observation.notes, [], "{}", observation.source);
        assert!(observation.scrapes.len() >= 2);
        assert!(observation.scrapes[0].at_ns < observation.scrapes[1].at_ns);
    }
    observations
}

/// True if it has counted as many queries as were asked, or counts none.
fn has_counted(observation: &Observation) -> bool {
    let queries = observation.series("queries");
    queries.is_none_or(|queries| queries.growth >= Some(f64::from(UDP + TCP)))
}

fn growth(observation: &Observation, series: &str) -> f64 {
    let found = observation.series(series);
    let found = found.unwrap_or_else(|| panic!("{}: no {series}", observation.source));
    found
        .growth
        .unwrap_or_else(|| panic!("{}: {series} has no growth", observation.source))
}

/// The profile at that place counts what was asked.
fn check(server: &RunningServer, asked: &str) -> Observation {
    let asked = Asked::parse(asked).unwrap_or_else(|error| panic!("{asked}: {error}"));
    // What was asked to find it ready is counted by the second time.
    observed(server, std::slice::from_ref(&asked));
    let observation = observed(server, &[asked]).remove(0);
    assert_eq!(
        growth(&observation, "queries"),
        f64::from(UDP + TCP),
        "{}",
        observation.source
    );
    observation
}

/// It told those over UDP from those over TCP.
fn check_by_transport(observation: &Observation) {
    let counted = ["queries.udp", "queries.tcp"].map(|series| growth(observation, series));
    assert_eq!(counted, [UDP, TCP].map(f64::from), "{}", observation.source);
}

fn check_version(observation: &Observation, start: &str) {
    let version = observation.facts.version.as_ref().unwrap();
    assert!(version.starts_with(start), "{version}");
}

fn check_auto(server: &RunningServer, profile: &str) {
    let found = auto::find(server.endpoints().do53());
    assert_eq!(found.notes, [] as [String; 0], "{profile}");
    let profiles: Vec<&str> = found.asked.iter().map(|it| it.profile.name).collect();
    assert_eq!(profiles, ["host", "process", profile]);
    let observations = observed(server, &found.asked);
    let [host, process, product] = observations.as_slice() else {
        panic!("{} observations", observations.len());
    };
    assert!(growth(host, "softnet.packets") > 0.0);
    assert_eq!(process.facts.process_id, Some(server.process_id()));
    assert!(process.facts.binary_sha256.is_some());
    assert!(
        process.facts.configuration_sha256.is_some(),
        "{:?}",
        process.facts
    );
    assert!(growth(process, "switches.voluntary") > 0.0);
    assert_eq!(process.series("udp.drops").unwrap().growth, Some(0.0));
    assert_eq!(
        growth(product, "queries"),
        f64::from(UDP + TCP),
        "{profile}"
    );
}

#[test]
fn bind_counts_in_json_and_in_xml_what_was_asked() {
    let target = BindTarget::start(&BindOptions::new(zone())).unwrap();
    let channel = SocketAddr::from(([127, 0, 0, 1], target.other_ports()[0]));
    for path in ["/", "/json/v1", "/xml/v3"] {
        let observation = check(&target, &format!("bind=http://{channel}{path}"));
        check_by_transport(&observation);
        assert_eq!(
            growth(&observation, "responses.noerror"),
            f64::from(UDP + TCP),
            "{path}"
        );
        let facts = &observation.facts;
        assert_eq!(facts.product.as_deref(), Some("BIND"));
        check_version(&observation, "9.");
    }
    check_auto(&target, "bind");
    let facts = observe::dns::facts(target.endpoints().do53());
    assert!(facts.version_bind.unwrap().starts_with("9."));
}

#[test]
fn unbound_counts_what_was_asked() {
    let options = UnboundOptions {
        threads: 2,
        extra_options: "  extended-statistics: yes".to_owned(),
        ..UnboundOptions::new(zone())
    };
    let target = UnboundTarget::start(&options).unwrap();
    let folder = target.folder().display();
    for place in [
        format!("{folder}/control"),
        format!("command:{folder}/unbound.conf"),
    ] {
        let observation = check(&target, &format!("unbound={place}"));
        assert_eq!(growth(&observation, "queries.tcp"), f64::from(TCP));
        assert_eq!(observation.facts.threads, Some(2));
        check_version(&observation, "1.");
    }
    check_auto(&target, "unbound");
}

#[test]
fn knot_counts_what_was_asked() {
    let options = KnotOptions {
        counts_queries: true,
        ..KnotOptions::new(zone())
    };
    let target = KnotTarget::start(&options).unwrap();
    let observation = check(
        &target,
        &format!("knot={}/control", target.folder().display()),
    );
    check_by_transport(&observation);
    check_version(&observation, "3.");
    check_auto(&target, "knot");
}

#[test]
fn coredns_counts_what_was_asked() {
    let server = products::COREDNS.start(&zone()).unwrap();
    let exposition = server.other_ports()[0];
    let observation = check(&server, &format!("coredns=127.0.0.1:{exposition}"));
    check_by_transport(&observation);
    check_version(&observation, "1.");
    check_auto(&server, "coredns");
}
