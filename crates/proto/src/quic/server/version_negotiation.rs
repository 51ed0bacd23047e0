//! Version Negotiation as a fault: the answer of a server that supports none of the client's
//! versions.

/// Reserved versions (RFC 9000, section 15).
const RESERVED_VERSION: u32 = 0x0a1a_2a3a;

/// Appends a Version Negotiation packet that answers the long header packet at the start of
/// `datagram` (RFC 9000, section 17.2.1); nothing if it is too short to have one.
pub(super) fn write(datagram: &[u8], buffer: &mut Vec<u8>) {
    if let Some((destination, source)) = connection_ids(datagram) {
        // The form bit is set; the rest of the octet is of no account. Version 0.
        buffer.extend_from_slice(&[0xc0, 0, 0, 0, 0]);
        for id in [source, destination] {
            buffer.push(id.len() as u8);
            buffer.extend_from_slice(id);
        }
        buffer.extend_from_slice(&RESERVED_VERSION.to_be_bytes());
    }
}

/// Destination and source connection ID of a long header (RFC 8999, section 5.1).
fn connection_ids(datagram: &[u8]) -> Option<(&[u8], &[u8])> {
    let (destination, rest) = connection_id(datagram.get(5..)?)?;
    let (source, _) = connection_id(rest)?;
    Some((destination, source))
}

fn connection_id(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = octets.split_first()?;
    rest.split_at_checked(usize::from(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9000_17_2_1_connection_ids_are_swapped() {
        let initial = [0xc3, 0, 0, 0, 1, 2, 11, 12, 1, 21, 0, 0];
        let mut packet = Vec::new();
        write(&initial, &mut packet);
        let expected = [0xc0, 0, 0, 0, 0, 1, 21, 2, 11, 12, 0x0a, 0x1a, 0x2a, 0x3a];
        assert_eq!(packet, expected);
    }

    #[test]
    fn short_datagram_is_not_answered() {
        let mut packet = Vec::new();
        for octets in 0..9 {
            write(&[0xc3, 0, 0, 0, 1, 2, 11, 12, 1][..octets], &mut packet);
        }
        assert_eq!(packet, b"");
    }
}
