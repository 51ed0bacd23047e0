//! What the record says about octets is what was on the wire: options and signatures included.

use proto::Transport;
use proto::tsig::Key;

use crate::sim::{QUERY_OCTETS, Run, Sim};

/// Octets of the length prefix that each message has on a stream.
fn prefix(transport: Transport) -> u64 {
    if transport.is_stream() { 2 } else { 0 }
}

/// Asserts the size of each query at both ends; TLS, HTTP and QUIC add octets of their own.
fn assert_query_octets(run: &Run, transport: Transport, octets: u64) {
    assert_eq!(run.counts().sent_octets, run.sent() * octets, "{transport}");
    if !transport.has_tls() {
        let on_the_wire = run.sent() * (octets + prefix(transport));
        assert_eq!(
            run.responder.octets_received.get(transport),
            on_the_wire,
            "{transport}"
        );
        let responses = run.responder.octets_sent.get(transport);
        let received = run.counts().received_octets + run.responses() * prefix(transport);
        assert_eq!(received, responses, "{transport}");
    }
    assert_eq!(run.responder.malformed, 0);
    assert_eq!(run.responses(), run.sent());
}

#[test]
fn octets_of_queries_and_responses_agree_at_both_ends() {
    for transport in Transport::ALL {
        let run = Sim::seed(1).over(transport).clients(3).rate(200.0).run();
        assert_query_octets(&run, transport, QUERY_OCTETS);
        // Header, question, and one A record with a compressed owner name.
        assert_eq!(
            run.record.response_octets_mean(),
            Some((QUERY_OCTETS + 16) as f64)
        );
    }
}

#[test]
fn what_sockets_took_and_gave_is_what_both_ends_counted_and_what_protocols_add() {
    for transport in Transport::ALL {
        let run = Sim::seed(1).over(transport).clients(3).rate(200.0).run();
        let mut all = run.record.warmup.counts.clone();
        all.add(run.counts());
        let wire = all.wire;
        let sent = wire.sent_datagram_octets + wire.sent_stream_octets;
        let received = wire.received_datagram_octets + wire.received_stream_octets;
        let has_datagrams = transport == Transport::Udp || transport.is_quic();
        let kinds = (wire.sent_datagrams > 0, wire.sent_stream_octets > 0);
        assert_eq!(
            kinds,
            (has_datagrams, !has_datagrams),
            "{transport}: {wire:?}"
        );
        if !transport.has_tls() {
            let seen = (run.responder.octets_received.get(transport), received);
            assert_eq!(
                seen,
                (sent, run.responder.octets_sent.get(transport)),
                "{transport}"
            );
            continue;
        }
        // Messages, the handshakes, and records or packets around both.
        let connections = &all.connections;
        let least = all.sent_octets + connections.handshake_sent_octets;
        assert!(sent > least, "{transport}: {sent} bytes of {least}");
        let least = all.received_octets + connections.handshake_received_octets;
        assert!(received > least, "{transport}: {received} bytes of {least}");
        let rate = run.record.sent_wire_rate().unwrap();
        assert!(rate > run.record.sent_bit_rate(), "{transport}: {rate}");
    }
}

#[test]
fn datagrams_have_headers_on_the_wire() {
    let run = Sim::seed(1).rate(200.0).run();
    let sent = run.sent() * (QUERY_OCTETS + 8 + 20);
    assert_eq!(run.counts().wire.sent_octets(false), sent);
    assert_eq!(run.record.sent_wire_rate(), Some(8.0 * sent as f64));
}

#[test]
fn options_of_a_line_reach_the_wire() {
    // Name, type and class; an OPT record of 11 octets; option code and length, 4 octets.
    let plain = 12 + 13 + 4;
    for (line, octets) in [
        ("www.example. A", plain),
        ("www.example. A -rd", plain),
        ("www.example. A +do", plain + 11),
        ("www.example. A +edns=4096", plain + 11),
        // Family and two prefix lengths, and three octets of address.
        ("www.example. A +ecs=192.0.2.0/24", plain + 11 + 4 + 4 + 3),
        ("www.example. A +opt=65001:c0ffee", plain + 11 + 4 + 3),
    ] {
        for transport in Transport::ALL {
            let run = Sim::seed(1).over(transport).ask(50, line);
            assert_query_octets(&run, transport, octets);
        }
    }
}

#[test]
fn signed_queries_are_longer_by_their_tsig_record() {
    let key: Key = "hmac-sha256:lab-key:c2VjcmV0IG9mIHRoZSBsYWI="
        .parse()
        .unwrap();
    let signature = key.record_octets() as u64;
    assert!(signature > 60);
    for transport in Transport::ALL {
        let sim = Sim::seed(1).over(transport).clients(2).rate(200.0);
        let run = sim.plan(|plan| plan.tsig = Some(key.clone())).run();
        assert_query_octets(&run, transport, QUERY_OCTETS + signature);
        assert_eq!(
            run.record.scenario.tsig_algorithm.as_deref(),
            Some("hmac-sha256")
        );
    }
}

#[test]
fn bit_rates_are_those_of_the_messages() {
    let run = Sim::seed(1).rate(1_000.0).duration_ms(2_000).run();
    assert_eq!(
        run.record.sent_bit_rate(),
        (1_000 * QUERY_OCTETS * 8) as f64
    );
    let received = (1_000 * (QUERY_OCTETS + 16) * 8) as f64;
    assert_eq!(run.record.received_bit_rate(), received);
}

#[test]
fn messages_that_come_in_pieces_are_counted_over_streams_alone() {
    for transport in [Transport::Udp, Transport::Tcp, Transport::Dot] {
        let sim = || Sim::seed(1).over(transport).clients(3).rate(20.0);
        assert_eq!(
            sim().run().record.connections().messages_cut,
            0,
            "{transport}"
        );
        // Of 65,535 octets over a stream: no segment is as long.
        let run = sim().behaviour(|it| it.faults.oversized = 1.0).run();
        let cut = run.record.connections().messages_cut;
        let is_cut = cut >= run.responses() && cut > 0;
        assert_eq!(is_cut, transport != Transport::Udp, "{transport}: {cut}");
    }
}
