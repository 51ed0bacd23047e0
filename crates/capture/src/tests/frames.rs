//! Link types, extension headers, fragments, and packets that are cut off.

use proptest::prelude::*;

use super::writer::*;
use super::*;

fn in_frame(before: &[u8], packet: &[u8]) -> Vec<u8> {
    [before, packet].concat()
}

fn ask(source: &str, destination: &str) -> Vec<u8> {
    udp(source, destination, &query(1, "example"))
}

#[test]
fn every_link_type_carries_both_versions_of_ip() {
    let mac = [0; 12];
    let vlan = [&mac[..], &[0x81, 0, 0, 7]].concat();
    let double = [&mac[..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8]].concat();
    let versions = [
        (ask(CLIENT, SERVER), [8, 0], [0, 0, 0, 2]),
        (
            ask("[2001:db8::1]:5353", "[2001:db8::53]:53"),
            [0x86, 0xdd],
            [0, 0, 0, 30],
        ),
    ];
    for (packet, ethertype, family) in versions {
        let mut little = family;
        little.reverse();
        let cases: [(u32, Vec<u8>); 11] = [
            (1, [&mac[..], &ethertype].concat()),
            (1, [&vlan[..], &ethertype].concat()),
            (1, [&double[..], &ethertype].concat()),
            (113, [&[0; 14][..], &ethertype].concat()),
            (276, [&ethertype[..], &[0; 18]].concat()),
            (0, family.to_vec()),
            (0, little.to_vec()),
            (108, family.to_vec()),
            (101, Vec::new()),
            (12, Vec::new()),
            (14, Vec::new()),
        ];
        for (link_type, before) in cases {
            let pcap = Pcap { link_type, ..RAW };
            let outcome = read(&pcap.write(&[(START, in_frame(&before, &packet))]));
            assert_eq!(outcome.names(), ["example"], "link type {link_type}");
            assert!(outcome.skipped.is_empty());
        }
        let only = if ethertype == [8, 0] { 228 } else { 229 };
        let pcap = Pcap {
            link_type: only,
            ..RAW
        };
        assert_eq!(read(&pcap.write(&[(START, packet)])).names(), ["example"]);
    }
}

#[test]
fn frames_without_ip_are_counted() {
    let pcap = |link_type, frame: &[u8]| {
        read(&Pcap { link_type, ..RAW }.write(&[(START, frame.to_vec())]))
    };
    let arp = [&[0; 12][..], &[8, 6], &[0; 28]].concat();
    pcap(1, &arp).assert_skipped(&[(Skip::NotIp, 1)]);
    pcap(1, &arp[..13]).assert_skipped(&[(Skip::MalformedPacket, 1)]);
    pcap(1, &[&[0; 12][..], &[0x81, 0, 0]].concat()).assert_skipped(&[(Skip::MalformedPacket, 1)]);
    pcap(0, &[9, 9, 9, 9, 9]).assert_skipped(&[(Skip::NotIp, 1)]);
    pcap(108, &[0]).assert_skipped(&[(Skip::MalformedPacket, 1)]);
    let unknown = Pcap {
        link_type: 147,
        ..RAW
    }
    .write(&[]);
    let error = read_with(&unknown, &Options::default()).err().unwrap();
    assert_eq!(error, CaptureError::UnknownLinkType(147));
    assert!(error.cure().contains("Ethernet"));
}

#[test]
fn octets_after_the_packet_and_lengths_left_to_the_card_are_understood() {
    let mut padded = ask(CLIENT, SERVER);
    padded.extend([0; 9]);
    let mut offloaded = ask(CLIENT, SERVER);
    offloaded[2..4].fill(0);
    offloaded[21] += 1; // another port
    let outcome = read(&RAW.write(&[(START, padded), (START, offloaded)]));
    assert_eq!(outcome.names().len(), 2);
}

#[test]
fn packets_cut_by_the_snapshot_length_are_read_if_the_question_is_there() {
    let whole = udp(SERVER, CLIENT, &response(1, "example", 0, 9));
    let asked = ask(CLIENT, SERVER);
    let question_end = 20 + 8 + 12 + 9 + 4;
    for octets in 20..whole.len() {
        let packets = [(START, asked.clone()), (START, whole[..octets].to_vec())];
        let outcome = read(&RAW.write(&packets));
        let response = outcome.observed[0].response;
        match octets < question_end {
            true => {
                assert_eq!(response, None);
                outcome.assert_skipped(&[(Skip::CutBySnapshotLength, 1)]);
            }
            false => {
                let response = response.unwrap();
                assert_eq!((response.rcode, response.ttl_s_min), (0, None));
                outcome.assert_skipped(&[]);
            }
        }
    }
}

/// The fragments of a datagram to the server, each with at most `octets` of payload.
fn fragments4(datagram: &[u8], identification: u16, octets: usize) -> Vec<Vec<u8>> {
    let count = datagram.len().div_ceil(octets);
    let pieces = datagram.chunks(octets).enumerate();
    let pieces = pieces.map(|(index, piece)| {
        let more = if index + 1 < count { 0x2000 } else { 0 };
        let field = more | (index * octets / 8) as u16;
        ipv4(
            address(CLIENT),
            address(SERVER),
            17,
            (identification, field, piece),
        )
    });
    pieces.collect()
}

fn fragments6(datagram: &[u8], identification: u32, octets: usize) -> Vec<Vec<u8>> {
    let (client, server) = (address("[2001:db8::1]:5353"), address("[2001:db8::53]:53"));
    let count = datagram.len().div_ceil(octets);
    let pieces = datagram.chunks(octets).enumerate();
    let pieces = pieces.map(|(index, piece)| {
        let more = u16::from(index + 1 < count);
        let mut data = vec![17, 0];
        data.extend(((index * octets) as u16 | more).to_be_bytes());
        data.extend(identification.to_be_bytes());
        data.extend(piece);
        // Hop-by-hop options before it.
        ipv6(
            client,
            server,
            0,
            &[&[44, 0, 1, 4, 0, 0, 0, 0], &data[..]].concat(),
        )
    });
    pieces.collect()
}

fn long_query() -> Vec<u8> {
    let name = ["abcdefghijklmnopqrstuvwxyz0123456789"; 4].join(".");
    udp_header(address(CLIENT), address(SERVER), &query(1, &name))
}

#[test]
fn extension_headers_of_ipv6_are_passed_over() {
    let (client, server) = (address("[2001:db8::1]:5353"), address("[2001:db8::53]:53"));
    let datagram = udp_header(client, server, &query(1, "example"));
    let options = [0, 1, 4, 0, 0, 0, 0];
    // Hop-by-hop, destination, routing, AH (whose length counts in four octets, less two).
    let mut chain = Vec::new();
    for next in [60, 43, 51] {
        chain.push(next);
        chain.extend(options);
    }
    chain.extend([44, 1]);
    chain.extend([0; 10]);
    // An atomic fragment is whole.
    chain.extend([17, 0, 0, 0, 0, 0, 0, 1]);
    chain.extend(&datagram);
    let outcome = read(&RAW.write(&[(START, ipv6(client, server, 0, &chain))]));
    assert_eq!(outcome.names(), ["example"]);
    let cut = ipv6(client, server, 0, &chain[..3]);
    read(&RAW.write(&[(START, cut)])).assert_skipped(&[(Skip::MalformedPacket, 1)]);
}

#[test]
fn fragments_in_any_order_become_one_datagram() {
    let datagram = long_query();
    for mut pieces in [fragments4(&datagram, 9, 64), fragments6(&datagram, 9, 64)] {
        for turn in 0..pieces.len() {
            pieces.rotate_left(turn);
            let packets: Vec<_> = pieces.iter().map(|piece| (START, piece.clone())).collect();
            let outcome = read(&RAW.write(&packets));
            assert_eq!(outcome.names().len(), 1, "{turn}");
            outcome.assert_skipped(&[]);
        }
        let doubled: Vec<_> = pieces.iter().chain(&pieces[..1]).cloned().collect();
        let twice: Vec<_> = [&pieces[..1], &doubled[..]].concat();
        let packets: Vec<_> = twice.into_iter().map(|piece| (START, piece)).collect();
        let outcome = read(&RAW.write(&packets));
        assert_eq!(outcome.names().len(), 1);
        // One came twice in time, one when its datagram was complete.
        outcome.assert_skipped(&[(Skip::Fragment, 2)]);
    }
}

#[test]
fn fragments_that_overlap_or_lack_others_are_counted() {
    let datagram = long_query();
    let pieces = fragments4(&datagram, 9, 64);
    let packets: Vec<_> = pieces[1..]
        .iter()
        .map(|piece| (START, piece.clone()))
        .collect();
    let lost = packets.len() as u64;
    read(&RAW.write(&packets)).assert_skipped(&[(Skip::Fragment, lost)]);

    let shifted = ipv4(
        address(CLIENT),
        address(SERVER),
        17,
        (9, 0x2000 | 4, &datagram[32..96]),
    );
    let packets = [(START, pieces[0].clone()), (START, shifted)];
    read(&RAW.write(&packets)).assert_skipped(&[(Skip::Fragment, 2)]);

    // An identification that comes again after a minute is another datagram's.
    let mut packets = vec![(START, pieces[1].clone())];
    packets.extend(pieces.iter().map(|piece| (START + 61 * S, piece.clone())));
    let outcome = read(&RAW.write(&packets));
    assert_eq!(outcome.names().len(), 1);
    outcome.assert_skipped(&[(Skip::Fragment, 1)]);
}

#[test]
fn fragments_of_more_datagrams_than_there_is_room_for_are_counted() {
    let datagram = long_query();
    let mut packets = Vec::new();
    for identification in 0..10_000_u16 {
        let piece = fragments4(&datagram, identification, 64)[0].clone();
        packets.push((START + u64::from(identification), piece));
    }
    read(&RAW.write(&packets)).assert_skipped(&[(Skip::Fragment, 10_000)]);
}

proptest! {
    #[test]
    fn any_packet_is_survived(
        link_type in prop::sample::select(vec![0_u32, 1, 101, 108, 113, 276]),
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 0..8),
    ) {
        let packets: Vec<_> = packets.into_iter().map(|packet| (START, packet)).collect();
        let outcome = read(&Pcap { link_type, ..RAW }.write(&packets));
        prop_assert!(outcome.observed.len() <= packets.len());
        prop_assert_eq!(outcome.end, None);
    }

    #[test]
    fn any_cut_into_fragments_gives_the_datagram(
        octets in 1_usize..20,
        order in prop::collection::vec(any::<prop::sample::Index>(), 30),
    ) {
        let mut pieces = fragments4(&long_query(), 1, octets * 8);
        for index in order {
            let from = index.index(pieces.len());
            pieces.swap(0, from);
        }
        let packets: Vec<_> = pieces.into_iter().map(|piece| (START, piece)).collect();
        let outcome = read(&RAW.write(&packets));
        prop_assert_eq!(outcome.names().len(), 1);
        prop_assert!(outcome.skipped.is_empty());
    }
}
