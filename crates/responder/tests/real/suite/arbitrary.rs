//! The responder survives any input.

use std::time::Duration;

use hickory_proto::op::Message;
use proptest::prelude::*;
use proto::Transport;
use responder::answer::{Answered, Instead, Limit, answer};
use responder::{Delay, Zone};

use crate::network::{Target, at_ms, framed, query};

/// Octets, and valid queries with a few octets changed.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((0usize..64, any::<u8>()), 0..4);
    let changed = changes.prop_map(|changes| {
        let mut message = query(1, "some.name.example AAAA");
        message.extend_from_slice(&[0, 0, 41, 16, 0, 0, 0, 0, 0, 0, 0]);
        message[11] = 1;
        for (at, value) in changes {
            let at = at % message.len();
            message[at] = value;
        }
        message
    });
    prop_oneof![prop::collection::vec(any::<u8>(), 0..600), changed]
}

/// Texts that look like zones, here and there.
fn zone_texts() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "@",
        "a",
        "b.c",
        "a..b",
        ".",
        "\\",
        "\\0",
        "\\065",
        "\\999",
        "*",
        "60",
        "1h",
        "4294967296",
        "IN",
        "CH",
        "SOA",
        "A",
        "AAAA",
        "TXT",
        "MX",
        "SRV",
        "CNAME",
        "DS",
        "CAA",
        "NSEC",
        "SVCB",
        "TYPE1",
        "TYPE65535",
        "\\#",
        "4",
        "00ff",
        "0",
        "1.2.3.4",
        "::1",
        "(",
        ")",
        "\"",
        "\"a b\"",
        "\"\"",
        ";",
        "; (",
        "\n",
        "\n ",
        "\r\n",
        "\t",
        "$ORIGIN",
        "$TTL",
        "$INCLUDE",
        "$GENERATE",
        "\u{e9}",
        "alpn=h2",
        "no-default-alpn",
        "key1=\"x\"",
        "20260101000000",
        "AQID",
    ]);
    let separated = (
        words,
        prop_oneof![4 => Just(" "), 1 => Just(""), 1 => Just("\n")],
    );
    prop::collection::vec(separated, 0..40).prop_map(|words| {
        let begun = "@ 60 IN SOA ns h 1 2 3 4 5\n".to_owned();
        words
            .iter()
            .fold(begun, |text, (word, after)| text + word + after)
    })
}

fn zone() -> Zone {
    let text = "@ 5 SOA . . 1 1 1 1 1\n*.name 5 AAAA ::1\na 5 NS b\nc 5 CNAME *.name\n";
    Zone::from_text(text, Some("example.")).unwrap()
}

proptest! {
    #[test]
    fn a_text_is_a_zone_or_is_refused(text in zone_texts()) {
        let _ = Zone::from_text(&text, Some("example."));
    }

    #[test]
    fn every_response_is_well_formed_and_within_its_limit(message in messages(), udp: bool) {
        let limit = if udp { Limit::Datagram(1232) } else { Limit::Stream };
        for zone in [zone(), Zone::synthesised(1)] {
            let mut octets = Vec::new();
            match answer(&zone, &message, limit, Instead::Nothing, &mut octets) {
                Answered::Ignored => prop_assert!(octets.is_empty()),
                Answered::Response { .. } => {
                    prop_assert!(!udp || octets.len() <= 1232);
                    prop_assert_eq!(&octets[..2], &message[..2]);
                    prop_assert!(octets[2] & 0x80 != 0);
                    let opcode = (message[2] >> 3) & 15;
                    if opcode == 0 {
                        Message::from_vec(&octets).unwrap();
                    }
                }
            }
        }
    }

    #[test]
    fn datagrams_of_any_octets_are_survived(batch in prop::collection::vec(messages(), 1..8)) {
        let mut target = Target::new(|config| {
            let faults = &mut config.behaviour.faults;
            faults.garbage = 0.2;
            faults.oversized = 0.1;
            faults.wrong_question = 0.2;
            faults.wrong_id = 0.2;
            faults.rcodes = vec![(2, 0.1)];
            config.behaviour.duplicate_share = 0.3;
            config.behaviour.delay = Delay::Exponential { mean: Duration::from_millis(1) };
        });
        target.send_datagrams(1, &batch);
        target.run_until(at_ms(1000));
        let counters = target.worker.counters();
        let arrived = counters.queries.total() + counters.ignored;
        prop_assert_eq!(arrived, batch.len() as u64);
        let answered = counters.queries.total() + counters.duplicated;
        prop_assert_eq!(counters.responses.total(), answered);
        prop_assert_eq!(target.network.sent.len() as u64, answered);
    }

    #[test]
    fn zone_texts_of_any_characters_load_or_do_not(text in "[ -~\n\t]{0,200}") {
        let _ = Zone::from_text(&text, Some("example."));
    }

    #[test]
    fn streams_of_any_octets_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        let mut target = Target::new(|_| {});
        let socket = target.connect(Transport::Tcp);
        target.send_bytes(socket, &bytes);
        target.event(socket, driver::Event::EndOfStream);
        prop_assert!(target.stream(socket).closed.is_some());
    }

    #[test]
    fn pipelined_queries_are_answered_in_any_chunks(
        lengths in prop::collection::vec(1usize..60, 1..40),
        count in 1u16..30,
    ) {
        let mut target = Target::new(|_| {});
        let socket = target.connect(Transport::Tcp);
        let queries: Vec<_> = (0..count).map(|id| query(id, "pipelined.example A")).collect();
        let octets = framed(&queries);
        let mut rest = &octets[..];
        for length in lengths {
            let (chunk, after) = rest.split_at(length.min(rest.len()));
            target.send_bytes(socket, chunk);
            rest = after;
        }
        target.send_bytes(socket, rest);
        let messages = target.messages(socket);
        let ids: Vec<u16> = messages.iter().map(|message| crate::network::id(message)).collect();
        prop_assert_eq!(ids, (0..count).collect::<Vec<_>>());
        prop_assert_eq!(target.worker.counters().queries.get(Transport::Tcp), u64::from(count));
        prop_assert_eq!(target.worker.counters().octets_received.total(), octets.len() as u64);
    }
}
