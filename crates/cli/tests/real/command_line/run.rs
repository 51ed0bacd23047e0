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
        assert!(
            text.starts_with("Self-test. ") && text.contains(&start),
            "{text}"
        );
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

/// The highest rate that can be asked for is a thousand times what a host can offer.
#[test]
fn a_billion_queries_a_second_end_in_time_with_a_record_and_every_query_accounted_for() {
    for (transport, flags) in [
        ("udp", "--clients 10 --arrival constant"),
        ("udp", "--clients 1 --arrival poisson --warmup 500ms"),
        ("tcp", "--clients 10"),
        ("dot", "--clients 300 --arrival poisson"),
        ("doq", "--clients 10"),
        ("doh2", "--clients 10"),
    ] {
        let record = measured(&format!(
            "--rate 1G --duration 2s --timeout 2s --transport {transport} {flags}"
        ));
        assert_eq!(record.ended_by, EndedBy::Duration, "{transport}");
        assert!(record.workers.iter().all(|worker| !worker.left_behind));
        let counts = &record.total.counts;
        assert_eq!(counts.check_identity(), Ok(()), "{transport}");
        // Some were sent; those that the generator did not come to count as not sent.
        assert!(
            counts.sent > 0 && counts.not_sent.run_ended > 0,
            "{transport}"
        );
        let two_seconds = 2_000_000_000_u64;
        let near = counts.offered.abs_diff(two_seconds) < two_seconds / 100;
        assert!(near, "{transport}: {}", counts.offered);
    }
}
