//! Faulty responses and connections that end, on the kernel's sockets.

use proto::Transport;
use responder::ConnectionEnd;

use crate::bench::{Load, ms};

#[test]
fn faulty_responses_are_told_apart() {
    for transport in [Transport::Udp, Transport::Tcp, Transport::Dot] {
        let load = Load::over(transport).rate(2_000.0).queries(1_000);
        let load = load.plan(|plan| plan.timeout = ms(2_000));
        let (ran, responder) = load.run_against(|config| {
            let faults = &mut config.behaviour.faults;
            faults.loss = 0.05;
            faults.wrong_id = 0.1;
            faults.wrong_question = 0.1;
            faults.garbage = 0.1;
            faults.rcodes = vec![(2, 0.1)];
            config.behaviour.duplicate_share = 0.1;
        });
        let counts = ran.counts();
        assert_eq!(responder.queries.get(transport), 1_000, "{transport}");
        let unanswered = responder.lost + responder.spoilt;
        let ended = counts.responses + counts.timeouts;
        assert_eq!(ended, 1_000, "{transport}: {counts:?}");
        // On a busy host a response takes two seconds too: it is late, or comes after the end.
        let too_late = counts.timeouts.checked_sub(unanswered);
        assert!(too_late >= Some(counts.late), "{transport}: {counts:?}");
        assert!(counts.unexpected.wrong_id > 50, "{transport}: {counts:?}");
        assert!(
            counts.unexpected.wrong_question > 50,
            "{transport}: {counts:?}"
        );
        assert!(counts.unexpected.queries > 20, "{transport}: {counts:?}");
        // Each duplicate is a second copy of a good or a spoilt response.
        let received = counts.responses + counts.duplicate + counts.unexpected.total();
        let sent = responder.responses.get(transport);
        assert!(received + counts.late <= sent, "{transport}: {counts:?}");
        if too_late == Some(0) {
            assert_eq!(received, sent, "{transport}: {counts:?}");
        }
        // The responder counts second copies too, and what came too late.
        let not_counted = counts.duplicate + 2 * too_late.unwrap_or(0);
        let servfail = responder.rcodes[2] - not_counted..=responder.rcodes[2];
        assert!(
            servfail.contains(&counts.rcodes.by_rcode[2]),
            "{transport}: {counts:?}"
        );
    }
}

#[test]
fn faulty_responses_on_streams_of_their_own_end_their_queries() {
    for transport in [Transport::Doh2, Transport::Doh3] {
        let load = Load::over(transport).rate(2_000.0).queries(1_000);
        let load = load.plan(|plan| plan.timeout = ms(2_000));
        let (ran, responder) = load.run_against(|config| {
            let faults = &mut config.behaviour.faults;
            faults.loss = 0.05;
            faults.wrong_id = 0.1;
            faults.wrong_question = 0.1;
            faults.reset = 0.1;
            faults.http_statuses = vec![(429, 0.1), (503, 0.1)];
        });
        let counts = ran.counts();
        let failures = &counts.exchange_failures;
        assert_eq!(responder.queries.get(transport), 1_000, "{transport}");
        // On a busy host an answer takes two seconds too, whatever it is.
        let too_late = counts.timeouts.checked_sub(responder.lost);
        let too_late = too_late.unwrap_or_else(|| panic!("{transport}: {counts:?}"));
        let spoilt = responder.spoilt.saturating_sub(too_late)..=responder.spoilt;
        assert!(
            spoilt.contains(&failures.malformed),
            "{transport}: {counts:?}"
        );
        assert!(
            failures.stream_reset.total() > 50,
            "{transport}: {counts:?}"
        );
        assert!(
            failures.http_status.get(429) > 50,
            "{transport}: {counts:?}"
        );
        assert!(
            failures.http_status.get(503) > 50,
            "{transport}: {counts:?}"
        );
        let ends = counts.responses + counts.timeouts + failures.total();
        assert_eq!(ends, 1_000, "{transport}: {counts:?}");
    }
}

#[test]
fn responses_of_64_kilobytes_arrive_whole() {
    for (transport, octets) in [
        (Transport::Udp, 65_507),
        (Transport::Tcp, 65_535),
        (Transport::Dot, 65_535),
    ] {
        let load = Load::over(transport).outstanding(4).queries(300);
        let load = load.edns_of_64_kb();
        let (ran, _) = load.run_against(|config| config.behaviour.faults.oversized = 1.0);
        ran.assert_all_answered(300);
        assert_eq!(ran.counts().received_octets, 300 * octets, "{transport}");
    }
}

#[test]
fn connections_that_end_are_counted_and_opened_again() {
    for transport in [Transport::Tcp, Transport::Dot] {
        for end in [
            ConnectionEnd::Close,
            ConnectionEnd::Reset,
            ConnectionEnd::HalfClose,
            ConnectionEnd::TlsAlert,
        ] {
            let load = Load::over(transport).queries(2_000);
            let (ran, responder) =
                load.run_against(|config| config.behaviour.end_after = Some((20, end)));
            let counts = ran.counts();
            assert_eq!(counts.offered, 2_000, "{transport} {end:?}");
            assert!(counts.responses > 1_200, "{transport} {end:?}: {counts:?}");
            let connections = ran.record.connections();
            let ended = connections.closed_by_target
                + connections.reset_by_target
                + connections.ended_by_tls;
            assert!(ended > 60, "{transport} {end:?}: {connections:?}");
            let accepted = responder.connections_accepted.get(transport);
            assert!(accepted <= connections.attempted, "{transport} {end:?}");
        }
    }
}

#[test]
fn target_that_stops_reading_does_not_hold_the_run() {
    for transport in [Transport::Tcp, Transport::Dot] {
        // More than the kernel's buffers at both ends hold.
        let load = Load::over(transport)
            .clients(2)
            .rate(300_000.0)
            .plan(|plan| {
                plan.timeout = ms(200);
                plan.sockets.buffer_octets = Some(4_096);
            });
        let (ran, responder) = load.run_against(|config| {
            config.behaviour.end_after = Some((10, ConnectionEnd::StopReading));
        });
        let counts = ran.counts();
        assert_eq!(counts.offered, 300_000);
        let sent = responder.responses.get(transport);
        assert!(sent >= 20, "{transport}: {responder}");
        assert!(counts.responses + counts.late <= sent, "{counts:?}");
        assert!(counts.timeouts > 0, "{counts:?}");
    }
}
