//! Frames written and read again; checksums against a sum done word by word.

use proptest::prelude::*;

use super::*;

/// RFC 1071, section 4.1, word by word.
fn slow_sum(octets: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in octets.chunks(2) {
        let low = pair.get(1).copied().unwrap_or(0);
        sum += u32::from(u16::from_be_bytes([pair[0], low]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn hop(vlan: Option<u16>) -> Hop {
    Hop {
        from: [2, 0, 0, 0, 0, 1],
        to: [2, 0, 0, 0, 0, 2],
        vlan,
    }
}

fn written(vlan: Option<u16>, from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let template = Template::new(hop(vlan), from, to);
    let mut frame = vec![0xa5; 2_048];
    template.write(payload, to.port(), &mut frame);
    frame.truncate(template.frame_octets(payload.len()));
    frame
}

const PAIRS: [(&str, &str); 2] = [
    ("10.1.2.3:40000", "192.0.2.53:53"),
    ("[fd00::1]:40000", "[2001:db8::53]:853"),
];

#[test]
fn a_datagram_is_read_as_it_was_written_with_a_tag_and_without() {
    for (from, to) in PAIRS {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        for vlan in [None, Some(100)] {
            for octets in [0, 1, 7, 8, 44, 511, 1_232] {
                let payload: Vec<u8> = (0..octets).map(|it| it as u8 ^ 0x5a).collect();
                let frame = written(vlan, from, to, &payload);
                let parsed = parse(&frame).unwrap();
                assert_eq!((parsed.from, parsed.to), (from, to));
                assert_eq!(parsed.checksum, Checksum::Right);
                assert_eq!(&frame[parsed.start..][..parsed.octets], payload);
                assert_eq!(sender(&frame), Some([2, 0, 0, 0, 0, 1]));
                let tagged = get(&frame, 12) == Some(ETHERTYPE_TAG);
                assert_eq!(tagged, vlan.is_some());
            }
        }
    }
}

#[test]
fn a_flipped_octet_is_noticed_and_padding_is_not_payload() {
    for (from, to) in PAIRS {
        let frame = written(None, from.parse().unwrap(), to.parse().unwrap(), b"query");
        let payload = parse(&frame).unwrap().start;
        for place in payload - 4..frame.len() {
            let mut spoilt = frame.clone();
            spoilt[place] ^= 0x10;
            let checksum = parse(&spoilt).map(|it| it.checksum);
            assert!(matches!(checksum, None | Some(Checksum::Wrong)), "{place}");
        }
        let mut padded = frame.clone();
        padded.resize(frame.len() + 20, 0);
        assert_eq!(parse(&padded), parse(&frame));
        for length in 0..frame.len() {
            assert_eq!(parse(&frame[..length]), None);
        }
    }
}

#[test]
fn checksums_left_out_and_unfinished_ones_are_told_apart() {
    for (from, to) in PAIRS {
        let mut frame = written(None, from.parse().unwrap(), to.parse().unwrap(), b"query");
        let parsed = parse(&frame).unwrap();
        let at = parsed.start - 2;
        put(&mut frame, at, 0);
        let expected = match parsed.to.is_ipv4() {
            true => Checksum::Right,
            false => Checksum::Wrong,
        };
        assert_eq!(parse(&frame).unwrap().checksum, expected);
        let addresses = match parsed.to.is_ipv4() {
            true => 26..34,
            false => 22..54,
        };
        let udp_octets = u64::from(UDP) + 8 + 5;
        let unfinished = fold(sum(&frame[addresses], udp_octets));
        put(&mut frame, at, unfinished);
        assert_eq!(parse(&frame).unwrap().checksum, Checksum::Unfinished);
    }
}

#[test]
fn fragments_options_and_other_protocols_are_not_datagrams() {
    let (from, to) = PAIRS[0];
    let frame = written(None, from.parse().unwrap(), to.parse().unwrap(), b"query");
    for (place, octet) in [(12, 0x86), (14, 0x46), (23, 6)] {
        let mut other = frame.clone();
        other[place] = octet;
        assert_eq!(parse(&other), None, "{place}");
    }
}

proptest! {
    #[test]
    fn sums_are_those_of_single_words(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        let folded = fold(sum(&octets, 0));
        // Both are zero in ones' complement.
        let same = |it: u16| if it == 0xffff { 0 } else { it };
        prop_assert_eq!(same(folded), same(slow_sum(&octets)));
    }

    #[test]
    fn no_octets_make_it_panic(octets in proptest::collection::vec(any::<u8>(), 0..120)) {
        parse(&octets);
    }

    #[test]
    fn damaged_frames_do_not_make_it_panic(at in 0_usize..80, octet: u8, vlan: bool, v6: bool) {
        let (from, to) = PAIRS[usize::from(v6)];
        let vlan = vlan.then_some(7);
        let mut frame = written(vlan, from.parse().unwrap(), to.parse().unwrap(), &[1; 40]);
        if let Some(place) = frame.get_mut(at) {
            *place = octet;
        }
        if let Some(parsed) = parse(&frame) {
            prop_assert!(parsed.start + parsed.octets <= frame.len());
        }
    }
}
