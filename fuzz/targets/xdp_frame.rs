//! A received frame: no datagram, or one that lies within it and is the same when written again.

#![no_main]

use driver::xdp::frame::{Checksum, Hop, Template, parse, sender};
use libfuzzer_sys::fuzz_target;

/// Frames of AF_XDP have a page at most; behind the headers of the longest there is room.
const FRAME_OCTETS_MAX: usize = 4_096;

fuzz_target!(|frame: &[u8]| {
    assert_eq!(sender(frame).is_some(), frame.len() >= 12);
    let frame = &frame[..frame.len().min(FRAME_OCTETS_MAX)];
    let Some(parsed) = parse(frame) else {
        return;
    };
    let end = parsed.start + parsed.octets;
    let payload = &frame[parsed.start..end];
    assert_eq!(parsed.from.is_ipv4(), parsed.to.is_ipv4());
    assert_eq!(
        parse(&frame[..end - 1]),
        None,
        "a datagram is whole or none"
    );
    let hop = Hop {
        from: sender(frame).expect("it has one"),
        to: [2; 6],
        vlan: (frame[12..14] == [0x81, 0]).then_some(1),
    };
    let template = Template::new(hop, parsed.from, parsed.to);
    let mut written = [0xa5; 2 * FRAME_OCTETS_MAX];
    template.write(payload, parsed.to.port(), &mut written);
    let written = &written[..template.frame_octets(payload.len())];
    let again = parse(written).expect("what was written is read");
    assert_eq!((again.from, again.to), (parsed.from, parsed.to));
    assert_eq!(again.checksum, Checksum::Right);
    assert_eq!(&written[again.start..][..again.octets], payload);
    assert_eq!(again.start, parsed.start, "the same headers");
});
