//! `throng run` without a server: the self-test over each transport.

use measure::record::EndedBy;
use measure::scenario::DriverKind;

use crate::process::{measured, throng};

const TRANSPORTS: [&str; 3] = ["udp", "tcp", "dot"];

#[test]
fn self_test_names_the_built_in_responder_as_its_target() {
    for transport in TRANSPORTS {
        let text = throng(&format!("run --transport {transport} --queries 2000")).succeeded();
        let start = format!(": self-test, {transport} to the built-in responder (127.0.0.1:");
        assert!(text.lines().next().unwrap().contains(&start), "{text}");
        let target = "- the target is the responder built into this";
        assert!(text.contains(target), "no `{target}` in {text}");
    }
}

#[test]
fn counts_of_a_self_test_are_exact() {
    for transport in TRANSPORTS {
        let record = measured(&format!(
            "--transport {transport} --queries 2000 --clients 8"
        ));
        let counts = &record.total.counts;
        assert_eq!(record.scenario.transport.to_string(), transport);
        assert_eq!(record.driver, DriverKind::Epoll);
        assert_eq!(record.ended_by, EndedBy::Queries);
        assert!(record.self_test && record.scenario.server_name.is_none());
        assert_eq!(record.responder.unwrap().accepts_failed, 0);
        let all = [counts.offered, counts.sent, counts.responses];
        assert_eq!(all, [2000; 3], "{transport}");
        assert_eq!(counts.rcodes.by_rcode[0], 2000, "{transport}");
        assert_eq!(record.goodput(), 2000, "{transport}");
        let distributions = &record.total.distributions;
        let timed = [
            &distributions.latency,
            &distributions.service,
            &distributions.send_lateness,
        ];
        assert_eq!(timed.map(|times| times.count()), [2000; 3], "{transport}");
        let connections = record.connections();
        let expected = match transport {
            "udp" => [0, 0, 0],
            "tcp" => [8, 8, 0],
            _ => [8, 8, 8],
        };
        let set_up = [
            connections.attempted,
            connections.established,
            connections.handshakes.total(),
        ];
        assert_eq!(set_up, expected, "{transport}");
        let times = record.connection_times();
        let (connect, handshake) = (times.tcp_connect, times.tls_handshake);
        assert_eq!(
            [connect.count(), handshake.count()],
            expected[1..],
            "{transport}"
        );
    }
}
