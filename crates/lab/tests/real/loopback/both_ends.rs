//! Both ends compared: what a BIND that is observed counted, what was sent to it, and what explains
//! the difference; and what is known of the server itself.

use std::net::{SocketAddr, UdpSocket};

use lab::target::{BindOptions, BindTarget};
use load::arrival::Arrival;
use measure::RunRecord;
use measure::doctor::of_run;
use proto::Transport;

use crate::bench::{Load, ms};
use crate::target::zone;

/// A run that observes its target.
fn observed(target: &BindTarget, load: Load) -> RunRecord {
    let process = format!("process={},period=100ms", target.process_id());
    load.observe(&["auto", &process]).run_on(target).record
}

/// What the doctor says of the counts of both ends.
#[track_caller]
fn both_ends(record: &RunRecord) -> String {
    let all = of_run(record);
    let found = all.iter().find(|it| it.topic == "queries at both ends");
    found.unwrap_or_else(|| panic!("{all:#?}")).seen.clone()
}

/// Another client: it asks so often, one query after the other.
fn ask(target: SocketAddr, queries: u32) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(target).unwrap();
    socket.set_read_timeout(Some(ms(60_000))).unwrap();
    // A query for lab.test, SOA.
    let head = [0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let query = [&head[..], b"\x03lab\x04test\0", &[0, 6, 0, 1]].concat();
    for _ in 0..queries {
        socket.send(&query).unwrap();
        socket.recv(&mut [0; 512]).unwrap();
    }
}

#[test]
fn queries_of_others_are_counted_where_the_server_has_more_than_were_sent() {
    let target = BindTarget::start(&BindOptions::new(zone())).unwrap();
    let address = target.endpoints().do53();
    // No more in flight than any socket takes.
    let load = Load::over(Transport::Udp).plan(|plan| {
        plan.interval = ms(100);
        plan.queries_max = None;
        plan.duration = Some(ms(120_000));
        plan.arrival = Arrival::Closed {
            outstanding: 10,
            rate_qps_max: Some(500.0),
        };
    });
    let (mut asked, mut intervals) = (0, 0);
    let ran = load.observe(&["auto"]).run_watched(address, |_, control| {
        intervals += 1;
        if asked < 300 {
            ask(address, 100);
            asked += 100;
        } else if intervals >= 12 {
            // A verdict needs a second and ten intervals at least.
            control.stop();
        }
    });
    let seen = both_ends(&ran.record);
    assert!(seen.starts_with("BIND counted "), "{seen}");
    let more = " queries, 300 more than were sent to it: others ask it too";
    assert!(seen.contains(more), "{seen}");
    let evidence = &ran.record.verdict.evidence;
    assert!(evidence.contains(&seen), "{evidence:#?}");
}

#[test]
fn what_is_known_of_a_server_is_in_the_record() {
    let options = BindOptions {
        threads: 2,
        cpu: Some(0),
        extra_options: "  server-id \"lab-7\";".to_owned(),
        ..BindOptions::new(zone())
    };
    let target = BindTarget::start(&options).unwrap();
    let record = observed(&target, Load::over(Transport::Udp).queries(1_000));
    let configuration = target.folder().join("named.conf");
    for observation in [
        record.programs()[0].observation(),
        record.servers()[0].observation(),
    ] {
        let facts = &observation.facts;
        assert_eq!(facts.product.as_deref(), Some("BIND"));
        assert!(
            facts.version.as_ref().unwrap().starts_with("9."),
            "{facts:#?}"
        );
        assert_eq!(facts.identity.as_deref(), Some("lab-7"));
    }
    let facts = &record.programs()[0].observation().facts;
    assert_eq!(facts.process_id, Some(target.process_id()));
    assert_eq!(facts.configuration.as_deref(), configuration.to_str());
    assert_eq!(facts.cpus.as_deref(), Some("0"));
    assert!(facts.threads >= Some(2), "{facts:#?}");
    assert!(facts.binary.as_ref().unwrap().ends_with("/named"));
    for hash in [&facts.binary_sha256, &facts.configuration_sha256] {
        assert_eq!(hash.as_ref().map(String::len), Some(64));
    }
    let started = &record.servers()[0].observation().facts.started;
    assert!(started.is_some(), "{record:#?}");
}

#[test]
fn servers_that_are_not_the_same_are_a_doubt_in_a_comparison() {
    let run = |identity: &str| {
        let options = BindOptions {
            extra_options: format!("  server-id \"{identity}\";"),
            ..BindOptions::new(zone())
        };
        let target = BindTarget::start(&options).unwrap();
        observed(&target, Load::over(Transport::Udp).queries(1_000))
    };
    let (one, other) = (run("one"), run("other"));
    let facts = |record: &RunRecord| record.programs()[0].observation().facts.clone();
    let differing = facts(&one).differing(&facts(&other)).join("\n");
    assert!(differing.contains("identity one and other"), "{differing}");
    assert!(differing.contains("configuration "), "{differing}");
    assert!(!differing.contains("program"), "{differing}");
}
