//! Both ends compared: what a BIND that is observed counted, what was sent to it, and what explains
//! the difference; and what is known of the server itself.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use lab::target::{BindOptions, BindTarget};
use load::StubPolicy;
use load::stub::ServerOrder;
use measure::RunRecord;
use measure::doctor::of_run;
use proto::Transport;

use super::outages::signal;
use super::servers::{observed, tells};
use crate::bench::{Load, beside, ms};
use crate::servers::zone;

/// What is told of the counts of both ends.
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
fn queries_of_others_are_told_where_the_server_counts_more_than_were_sent() {
    let _beside = beside();
    let target = BindTarget::start(&BindOptions::new(zone())).unwrap();
    let address = target.endpoints().do53();
    let load = Load::over(Transport::Udp).rate(500.0).plan(|plan| {
        plan.duration = Some(ms(1_000));
        plan.interval = ms(100);
        plan.timeout = ms(20_000);
    });
    let mut asked = 0;
    let ran = load.observe(&["auto"]).run_watched(address, |_, _| {
        if asked < 300 {
            ask(address, 100);
            asked += 100;
        }
    });
    tells(
        &ran.record,
        &["BIND counted 800 queries, 300 more than were sent to it: others ask it too"],
    );
}

#[test]
fn queries_that_clients_sent_again_are_counted_at_both_ends() {
    let _beside = beside();
    let target = BindTarget::start(&BindOptions::new(zone())).unwrap();
    let address = target.endpoints().do53();
    let load = Load::over(Transport::Udp).rate(100.0).plan(|plan| {
        plan.duration = Some(ms(1_500));
        plan.interval = ms(100);
        plan.timeout = ms(20_000);
        plan.stub = Some(Arc::new(StubPolicy {
            servers: vec![address],
            order: ServerOrder::First,
            waits: vec![ms(300), ms(19_700)],
            failover_rcodes: Vec::new(),
            dead_for: ms(0),
            race_delay: None,
        }));
    });
    let process = target.process_id();
    // What comes while it stands still waits in its socket, the queries and those sent again.
    let ran = load
        .observe(&["auto"])
        .run_watched(address, |progress, _| match progress.index {
            3 => signal(process, "STOP"),
            10 => signal(process, "CONT"),
            _ => {}
        });
    let again = ran.counts().stub.retransmitted;
    assert!(again > 0, "{:?}", ran.counts());
    let counted = 150 + again;
    assert_eq!(
        both_ends(&ran.record),
        format!(
            "BIND counted {counted} of the {counted} queries that were sent to it, {again} of them \
             sent again"
        )
    );
}

#[test]
fn what_is_known_of_a_server_is_in_the_record() {
    let _beside = beside();
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
    let _beside = beside();
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
