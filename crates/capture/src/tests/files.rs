//! pcap and pcapng files, and what a query and its response become.

use super::writer::*;
use super::*;
use crate::{Format, QueryFlags, Question, Response};

fn exchange() -> Vec<(u64, Vec<u8>)> {
    vec![
        (START, udp(CLIENT, SERVER, &query(7, "Example.COM"))),
        (
            START + 3_000,
            udp(SERVER, CLIENT, &response(7, "example.com", 0, 60)),
        ),
    ]
}

fn expected() -> Observed {
    Observed {
        at_ns: START,
        client: address(CLIENT),
        server: Some(address(SERVER)),
        transport: proto::Transport::Udp,
        connection: None,
        question: Question {
            name: b"\x07example\x03com\0".to_vec().into(),
            qtype: 1,
            qclass: 1,
        },
        flags: QueryFlags {
            recursion_desired: true,
            ..QueryFlags::default()
        },
        response: Some(Response {
            rcode: 0,
            ttl_s_min: Some(60),
            latency_ns: Some(3_000),
        }),
    }
}

#[test]
fn both_byte_orders_and_resolutions_of_pcap_say_the_same() {
    for is_little in [true, false] {
        for has_nanoseconds in [true, false] {
            let pcap = Pcap {
                is_little,
                has_nanoseconds,
                link_type: 101,
            };
            let outcome = read(&pcap.write(&exchange()));
            assert_eq!(outcome.observed, [expected()]);
            assert!(outcome.skipped.is_empty());
            assert_eq!(outcome.end, None);
        }
    }
}

#[test]
fn pcapng_sections_have_their_own_byte_order_and_interfaces_their_clocks() {
    let mut file = Vec::new();
    let [asked, answered] = &exchange()[..] else {
        panic!("two packets");
    };
    for is_little in [true, false] {
        file.extend(section(is_little));
        // Name resolution, which is skipped.
        file.extend(block(is_little, 4, &[0; 4]));
        // Nanoseconds; microseconds after an offset; 2^-10 s.
        file.extend(interface(is_little, 101, (9, 0)));
        file.extend(interface(is_little, 101, (6, 1_000)));
        file.extend(enhanced(is_little, 0, asked.0, &asked.1));
        file.extend(enhanced(
            is_little,
            1,
            (answered.0 - 1_000 * S) / 1_000,
            &answered.1,
        ));
    }
    let outcome = read(&file);
    assert_eq!(outcome.observed, [expected(), expected()]);
    outcome.assert_skipped(&[(Skip::OtherBlock, 2)]);
    let mut file = [section(true), interface(true, 101, (0x80 | 10, 0))].concat();
    file.extend(enhanced(true, 0, 1_024 * 5 + 512, &asked.1));
    assert_eq!(read(&file).observed[0].at_ns, 5_500_000_000);
    // Before 1970, and after what 64 bits hold.
    for (clock, ticks) in [((9, -1), 5), ((0, 0), u64::MAX)] {
        let mut file = [section(true), interface(true, 101, clock)].concat();
        file.extend(enhanced(true, 0, ticks, &asked.1));
        read(&file).assert_skipped(&[(Skip::WithoutTime, 1)]);
    }
}

#[test]
fn packets_without_a_time_take_the_one_before_and_are_counted() {
    let packet = &exchange()[0].1;
    let other = udp(CLIENT, SERVER, &query(8, "b.example"));
    let mut simple = (packet.len() as u32).to_le_bytes().to_vec();
    simple.extend(packet);
    let mut file = [section(true), interface(true, 101, (9, 0))].concat();
    file.extend(enhanced(true, 0, START, &other));
    file.extend(block(true, 3, &simple));
    let outcome = read(&file);
    assert_eq!(outcome.names(), ["b.example", "example.com"]);
    assert_eq!(outcome.observed[1].at_ns, START);
    outcome.assert_skipped(&[(Skip::WithoutTime, 1)]);
}

#[test]
fn interfaces_of_unknown_link_types_are_counted_or_an_error_if_there_is_no_other() {
    let packet = &exchange()[0].1;
    let mut file = [section(true), interface(true, 147, (9, 0))].concat();
    file.extend(enhanced(true, 0, START, packet));
    let outcome = read(&file);
    assert_eq!(outcome.end, Some(CaptureError::UnknownLinkType(147)));
    file.extend(interface(true, 101, (9, 0)));
    file.extend(enhanced(true, 1, START, packet));
    let outcome = read(&file);
    assert_eq!((outcome.names().len(), outcome.end.clone()), (1, None));
    outcome.assert_skipped(&[(Skip::UnknownLinkType, 1)]);
}

#[test]
fn queries_come_out_in_order_also_if_their_responses_do_not() {
    let names = ["a.example", "b.example", "c.example"];
    let mut packets = Vec::new();
    for (id, name) in (0..).zip(names) {
        packets.push((START + u64::from(id), udp(CLIENT, SERVER, &query(id, name))));
    }
    for (id, name) in [(2, names[2]), (0, names[0])] {
        let response = response(id, name, 3, 0);
        packets.push((START + S, udp(SERVER, CLIENT, &response)));
    }
    // One response too late for the second query, and one without a query.
    packets.push((
        START + 9 * S,
        udp(SERVER, CLIENT, &response(1, names[1], 0, 1)),
    ));
    packets.push((
        START + 9 * S,
        udp(SERVER, CLIENT, &response(9, names[1], 0, 1)),
    ));
    let outcome = read(&RAW.write(&packets));
    assert_eq!(outcome.names(), names);
    let rcodes: Vec<_> = outcome
        .observed
        .iter()
        .map(|query| query.response.map(|r| r.rcode))
        .collect();
    assert_eq!(rcodes, [Some(3), None, Some(3)]);
    outcome.assert_skipped(&[(Skip::ResponseWithoutQuery, 2)]);
}

#[test]
fn queries_that_the_capture_holds_out_of_order_come_out_in_order() {
    let at = [0, 1_900, 700, 3_000, 2_500, 1_200, 6_000, 4_500];
    let packets = at.map(|ms| {
        let name = format!("n{ms}.example");
        (
            START + ms * S / 1_000,
            udp(CLIENT, SERVER, &query(ms as u16, &name)),
        )
    });
    let mut sorted = at;
    sorted.sort_unstable();
    let outcome = read(&RAW.write(&packets));
    assert_eq!(outcome.names(), sorted.map(|ms| format!("n{ms}.example")));
}

#[test]
fn repeats_of_a_query_are_counted_and_not_asked_twice() {
    let asked = udp(CLIENT, SERVER, &query(7, "a.example"));
    let answered = udp(SERVER, CLIENT, &response(7, "a.example", 0, 5));
    let packets = [
        (START, asked.clone()),
        (START + S, asked.clone()),
        (START + S, answered),
        // With its ID used again this is another.
        (START + 2 * S, asked.clone()),
        (START + 9 * S, asked),
    ];
    let outcome = read(&RAW.write(&packets));
    assert_eq!(outcome.observed.len(), 3);
    assert_eq!(outcome.observed[0].response.unwrap().latency_ns, Some(S));
    outcome.assert_skipped(&[(Skip::RepeatedQuery, 1)]);
}

#[test]
fn what_is_not_a_query_is_counted_by_its_reason() {
    let client = address(CLIENT);
    let mut notify = query(1, "example");
    notify[2] |= 4 << 3;
    let mut two_questions = query(1, "example");
    two_questions[5] = 2;
    let packets = [
        (Skip::NotDns, udp(CLIENT, SERVER, b"hello")),
        (Skip::OtherOpcode, udp(CLIENT, SERVER, &notify)),
        (Skip::NotOneQuestion, udp(CLIENT, SERVER, &two_questions)),
        (
            Skip::OtherPort,
            udp(CLIENT, "192.0.2.53:123", &query(1, "example")),
        ),
        (Skip::Encrypted, udp(CLIENT, "192.0.2.53:853", b"QUIC")),
        (Skip::NotUdpNorTcp, ip(client, address(SERVER), 1, b"ping")),
        (Skip::MalformedPacket, b"\x15".to_vec()),
        (
            Skip::MalformedPacket,
            ip(client, address(SERVER), 17, b"short"),
        ),
    ];
    let file = RAW.write(&packets.clone().map(|(_, packet)| (START, packet)));
    let outcome = read(&file);
    assert!(outcome.observed.is_empty());
    outcome.assert_skipped(&[
        (Skip::NotDns, 1),
        (Skip::OtherOpcode, 1),
        (Skip::NotOneQuestion, 1),
        (Skip::OtherPort, 1),
        (Skip::Encrypted, 1),
        (Skip::NotUdpNorTcp, 1),
        (Skip::MalformedPacket, 2),
    ]);
}

#[test]
fn other_ports_are_read_if_asked_for() {
    let packets = [(START, udp(CLIENT, "192.0.2.53:5300", &query(1, "example")))];
    let options = Options {
        ports: vec![5300],
        ..Options::default()
    };
    let outcome = read_with(&RAW.write(&packets), &options).unwrap();
    assert_eq!(outcome.names(), ["example"]);
}

#[test]
fn negative_responses_live_as_long_as_their_soa_says() {
    let mut negative = response(7, "example.com", 3, 0);
    negative[9] = 1;
    negative.extend([
        0xc0, 12, 0, 6, 0, 1, 0, 0, 14, 16, 0, 24, 0xc0, 12, 0xc0, 12,
    ]);
    for field in [1_u32, 2, 3, 4, 300] {
        negative.extend(field.to_be_bytes());
    }
    let mut failure = negative.clone();
    failure[3] = 0x82;
    for (message, ttl_s) in [(negative, Some(300)), (failure, None)] {
        let packets = [
            exchange()[0].clone(),
            (START, udp(SERVER, CLIENT, &message)),
        ];
        let outcome = read(&RAW.write(&packets));
        assert_eq!(outcome.observed[0].response.unwrap().ttl_s_min, ttl_s);
    }
}

#[test]
fn edns_is_seen_in_queries_and_extends_the_rcode_of_responses() {
    let mut asked = query(7, "example.com");
    asked[11] = 1;
    asked[3] |= 0x10;
    let mut answered = response(7, "example.com", 0, 60);
    answered[11] = 1;
    asked.extend([0, 0, 41, 4, 208, 0, 0, 0x80, 0, 0, 0]);
    answered.extend([0, 0, 41, 4, 208, 1, 0, 0, 0, 0, 0]);
    let packets = [
        (START, udp(CLIENT, SERVER, &asked)),
        (START, udp(SERVER, CLIENT, &answered)),
    ];
    let outcome = read(&RAW.write(&packets));
    let flags = QueryFlags {
        recursion_desired: true,
        checking_disabled: true,
        edns: true,
        dnssec_ok: true,
    };
    assert_eq!(outcome.observed[0].flags, flags);
    assert_eq!(outcome.observed[0].response.unwrap().rcode, 16, "BADVERS");
}

#[test]
fn a_response_without_its_question_still_belongs_to_its_query() {
    let mut header = response(7, "example.com", 1, 0);
    header.truncate(12);
    header[5] = 0;
    let packets = [exchange()[0].clone(), (START, udp(SERVER, CLIENT, &header))];
    let outcome = read(&RAW.write(&packets));
    assert_eq!(outcome.observed[0].response.unwrap().rcode, 1);
    outcome.assert_skipped(&[]);
}

#[test]
fn the_format_is_found_from_the_content_and_checked_if_it_is_said() {
    let file = RAW.write(&exchange());
    let with = |file: &[u8], format| {
        let options = Options {
            format,
            ..Options::default()
        };
        read_with(file, &options).err()
    };
    assert_eq!(with(&file, Some(Format::Pcap)), None);
    let wrong = with(&file, Some(Format::Dnstap)).unwrap();
    let error = CaptureError::WrongFormat {
        asked: Format::Dnstap,
        found: Some(Format::Pcap),
    };
    assert_eq!(wrong, error);
    assert_eq!(wrong.to_string(), "the file is not dnstap but pcap");
    assert_eq!(wrong.cure(), "give `--format pcap`, or leave --format out");
    assert_eq!(
        with(&file, Some(Format::Bind)).unwrap(),
        CaptureError::WrongFormat {
            asked: Format::Bind,
            found: Some(Format::Pcap),
        }
    );
    assert_eq!(
        with(b"hello\n", Some(Format::Bind)),
        None,
        "a log may start with anything"
    );
    assert_eq!(with(b"hello\n", None), Some(CaptureError::UnknownFormat));
    assert_eq!(with(b"", None), Some(CaptureError::Empty));
    assert_eq!(
        with(b"\x1f\x8b\x08", None),
        Some(CaptureError::Compressed("gzip"))
    );
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    assert!("tcpdump".parse::<Format>().is_err());
}
