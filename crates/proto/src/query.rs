//! Building query messages (RFC 1035, section 4.1) with EDNS (RFC 6891) and optional padding (RFC
//! 7830, RFC 8467).

use std::net::IpAddr;
use std::num::NonZeroU16;

/// Options of a query beside its question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryOptions {
    /// The RD bit.
    pub recursion_desired: bool,
    /// The CD bit (RFC 4035).
    pub checking_disabled: bool,
    /// The AD bit in a query (RFC 6840, section 5.7).
    pub authentic_data: bool,
    /// An OPT record, if any.
    pub edns: Option<Edns>,
    /// Octets that follow the message before it is sent, those of a TSIG record. Who watches the
    /// line sees them as well, so padding counts them.
    pub signature_octets: u16,
    /// Octets of the label that is put before the name in each copy of the message, its length
    /// octet included; 0 if there is none. Padding counts them.
    pub label_octets: u16,
}

impl Default for QueryOptions {
    fn default() -> Self {
        QueryOptions {
            recursion_desired: true,
            checking_disabled: false,
            authentic_data: false,
            edns: None,
            signature_octets: 0,
            label_octets: 0,
        }
    }
}

/// The OPT record of a query (RFC 6891).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edns {
    /// The UDP payload size advertised, in octets.
    pub udp_payload_octets: u16,
    /// The DO bit (RFC 3225).
    pub dnssec_ok: bool,
    /// Options in the order sent: code and data.
    pub options: Vec<(u16, Vec<u8>)>,
    /// Pads the message to a multiple of this number of octets (RFC 8467, section 4.1), by an
    /// option after all others; `options` may not have one of its own (RFC 7830, section 3).
    pub padding_block_octets: Option<NonZeroU16>,
}

impl Default for Edns {
    fn default() -> Self {
        Edns {
            udp_payload_octets: 1232,
            dnssec_ok: false,
            options: Vec::new(),
            padding_block_octets: None,
        }
    }
}

/// Octets of the message header (RFC 1035, section 4.1.1).
const HEADER_OCTETS: usize = 12;

/// Octets of an OPT record without options: root, TYPE, CLASS, TTL, RDLENGTH.
const OPT_OCTETS: usize = 11;

/// Octets of an EDNS option without data: code and length (RFC 6891, section 6.1.2).
const OPTION_OCTETS: usize = 4;

/// Longest message (RFC 1035, section 4.2.2).
const MESSAGE_OCTETS_MAX: usize = u16::MAX as usize;

/// The option code of NSID, which is empty in queries (RFC 5001, section 2.1).
pub const OPTION_NSID: u16 = 3;

/// The option code of EDNS Client Subnet (RFC 7871, section 6).
pub const OPTION_CLIENT_SUBNET: u16 = 8;

/// The option code of edns-tcp-keepalive, which is empty in queries (RFC 7828, section 3.1).
pub const OPTION_KEEPALIVE: u16 = 11;

/// The option code of Padding (RFC 7830, section 3).
pub const OPTION_PADDING: u16 = 12;

/// Default block length of padded queries (RFC 8467, section 4.1).
pub const PADDING_BLOCK_OCTETS: NonZeroU16 = NonZeroU16::new(128).expect("128 is not zero");

/// Appends a whole query message with ID 0 to `message`.
///
/// `qname` is in wire format.
///
/// # Errors
/// The octets of the EDNS options do not fit into a message of 65,535 octets; `message` is left
/// as it was.
pub fn write_query(
    qname: &[u8],
    qtype: u16,
    qclass: u16,
    options: &QueryOptions,
    message: &mut Vec<u8>,
) -> Result<(), MessageTooLong> {
    let edns_octets = options
        .edns
        .as_ref()
        .map_or(0, |edns| OPT_OCTETS + options_octets(edns));
    let unpadded = HEADER_OCTETS + qname.len() + 4 + edns_octets;
    let block = options
        .edns
        .as_ref()
        .and_then(|edns| edns.padding_block_octets);
    let padding = block
        .map(|block| {
            let added = usize::from(options.signature_octets) + usize::from(options.label_octets);
            padding_octets(unpadded + added, block)
        })
        .transpose()?;
    let octets = unpadded + padding.map_or(0, |octets| OPTION_OCTETS + octets);
    if octets > MESSAGE_OCTETS_MAX {
        return Err(MessageTooLong);
    }
    message.reserve(octets);
    message.extend_from_slice(&[0, 0]);
    message.extend_from_slice(&flags(options).to_be_bytes());
    message.extend_from_slice(&[0, 1, 0, 0, 0, 0, 0, u8::from(options.edns.is_some())]);
    message.extend_from_slice(qname);
    message.extend_from_slice(&qtype.to_be_bytes());
    message.extend_from_slice(&qclass.to_be_bytes());
    if let Some(edns) = &options.edns {
        write_opt(edns, padding, message);
    }
    Ok(())
}

/// How many octets the Padding option of a message has that is `octets` long without the option,
/// as sent. As many as there is room for, if that is less than the block asks for (RFC 8467,
/// section 3).
fn padding_octets(octets: usize, block: NonZeroU16) -> Result<usize, MessageTooLong> {
    let least = octets + OPTION_OCTETS;
    let padded = least.next_multiple_of(block.get().into());
    let padded = padded.min(MESSAGE_OCTETS_MAX);
    padded.checked_sub(least).ok_or(MessageTooLong)
}

/// The second 16 bits of the header (RFC 1035, section 4.1.1; AD and CD from RFC 4035).
fn flags(options: &QueryOptions) -> u16 {
    u16::from(options.recursion_desired) << 8
        | u16::from(options.authentic_data) << 5
        | u16::from(options.checking_disabled) << 4
}

/// Octets of the options in the RDATA, each with its code and length.
fn options_octets(edns: &Edns) -> usize {
    let options = edns.options.iter();
    options.map(|(_, data)| OPTION_OCTETS + data.len()).sum()
}

/// Appends the OPT record (RFC 6891, section 6.1.2), whose size `write_query` has checked.
fn write_opt(edns: &Edns, padding: Option<usize>, message: &mut Vec<u8>) {
    let flags = u32::from(edns.dnssec_ok) << 15;
    let padding_octets = padding.map_or(0, |octets| OPTION_OCTETS + octets);
    let rdata_octets = options_octets(edns) + padding_octets;
    message.push(0);
    message.extend_from_slice(&crate::rr::TYPE_OPT.to_be_bytes());
    message.extend_from_slice(&edns.udp_payload_octets.to_be_bytes());
    message.extend_from_slice(&flags.to_be_bytes());
    message.extend_from_slice(&(rdata_octets as u16).to_be_bytes());
    for (code, data) in &edns.options {
        message.extend_from_slice(&code.to_be_bytes());
        message.extend_from_slice(&(data.len() as u16).to_be_bytes());
        message.extend_from_slice(data);
    }
    if let Some(octets) = padding {
        // Of zeros, as RFC 7830, section 3 would have it.
        message.extend_from_slice(&OPTION_PADDING.to_be_bytes());
        message.extend_from_slice(&(octets as u16).to_be_bytes());
        message.resize(message.len() + octets, 0);
    }
}

/// The message would be longer than 65,535 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageTooLong;

impl std::fmt::Display for MessageTooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the message would be longer than 65,535 bytes")
    }
}

impl std::error::Error for MessageTooLong {}

/// The EDNS Client Subnet option (RFC 7871) for `address/prefix_bits`, as (code, data).
///
/// Address bits beyond the prefix are zeroed and trailing octets cut, as section 6 asks.
/// `None` if `prefix_bits` is more than the address has.
pub fn client_subnet(address: IpAddr, prefix_bits: u8) -> Option<(u16, Vec<u8>)> {
    match address {
        IpAddr::V4(address) => subnet_option(1, &address.octets(), prefix_bits),
        IpAddr::V6(address) => subnet_option(2, &address.octets(), prefix_bits),
    }
}

/// FAMILY, SOURCE PREFIX-LENGTH, SCOPE PREFIX-LENGTH 0 and the octets of the prefix.
fn subnet_option(family: u8, address: &[u8], prefix_bits: u8) -> Option<(u16, Vec<u8>)> {
    let octets = usize::from(prefix_bits).div_ceil(8);
    let mut data = vec![0, family, prefix_bits, 0];
    data.extend_from_slice(address.get(..octets)?);
    let unused_bits = octets * 8 - usize::from(prefix_bits);
    if unused_bits > 0 {
        data[3 + octets] &= 0xff << unused_bits;
    }
    Some((OPTION_CLIENT_SUBNET, data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name;
    use hickory_proto::op::{Message, MessageType, OpCode};
    use hickory_proto::rr::rdata::opt::{EdnsCode, EdnsOption};
    use proptest::prelude::*;

    fn query(text: &str, qtype: u16, options: &QueryOptions) -> Vec<u8> {
        let mut qname = Vec::new();
        name::parse(text, &mut qname).unwrap();
        let mut message = Vec::new();
        write_query(&qname, qtype, 1, options, &mut message).unwrap();
        message
    }

    #[test]
    fn plain_query_has_the_octets_of_the_rfc() {
        assert_eq!(
            query("a.bc", 28, &QueryOptions::default()),
            b"\0\0\x01\0\0\x01\0\0\0\0\0\0\x01a\x02bc\0\0\x1c\0\x01"
        );
    }

    #[test]
    fn options_that_do_not_fit_are_refused_and_leave_nothing_behind() {
        let room = 65_535 - HEADER_OCTETS - 1 - 4 - OPT_OCTETS - 4;
        let with = |octets: usize| QueryOptions {
            edns: Some(Edns {
                options: vec![(65_001, vec![7; octets])],
                ..Edns::default()
            }),
            ..QueryOptions::default()
        };
        let mut message = b"before".to_vec();
        let refused = write_query(b"\0", 1, 1, &with(room + 1), &mut message);
        assert_eq!(
            (refused, &message[..]),
            (Err(MessageTooLong), &b"before"[..])
        );
        assert_eq!(write_query(b"\0", 1, 1, &with(room), &mut message), Ok(()));
        assert_eq!(message.len() - 6, 65_535);
    }

    #[test]
    fn client_subnet_is_cut_and_masked() {
        for (address, bits, data) in [
            ("192.0.2.129", 24, Some(&[0, 1, 24, 0, 192, 0, 2][..])),
            ("192.0.2.255", 25, Some(&[0, 1, 25, 0, 192, 0, 2, 128])),
            ("192.0.2.255", 32, Some(&[0, 1, 32, 0, 192, 0, 2, 255])),
            ("192.0.2.255", 0, Some(&[0, 1, 0, 0])),
            ("192.0.2.255", 33, None),
            (
                "2001:db8:ffff::",
                33,
                Some(&[0, 2, 33, 0, 0x20, 1, 0x0d, 0xb8, 0x80]),
            ),
            ("::1", 129, None),
        ] {
            let option = client_subnet(address.parse().unwrap(), bits);
            assert_eq!(
                option,
                data.map(|data| (8, data.to_vec())),
                "{address}/{bits}"
            );
        }
    }

    fn padded(block: u16, signature_octets: u16, data_octets: usize) -> QueryOptions {
        QueryOptions {
            edns: Some(Edns {
                options: vec![(65_001, vec![7; data_octets])],
                padding_block_octets: NonZeroU16::new(block),
                ..Edns::default()
            }),
            signature_octets,
            ..QueryOptions::default()
        }
    }

    #[test]
    fn rfc7830_section_3_option_12_of_zeros_comes_last_and_may_be_empty() {
        let bare = query("a.bc", 1, &padded(1, 0, 3));
        assert!(bare.ends_with(&[0xfd, 0xe9, 0, 3, 7, 7, 7, 0, 12, 0, 0]));
        let octets = bare.len() as u16;
        assert_eq!(
            query("a.bc", 1, &padded(octets, 0, 3)),
            bare,
            "exactly a block"
        );
        let more = query("a.bc", 1, &padded(octets + 2, 0, 3));
        assert!(more.ends_with(&[7, 7, 7, 0, 12, 0, 2, 0, 0]));
    }

    #[test]
    fn rfc8467_section_4_1_queries_are_padded_to_128_octets() {
        assert_eq!(PADDING_BLOCK_OCTETS.get(), 128);
        for (data_octets, octets) in [(0, 128), (80, 128), (87, 128), (88, 256), (300, 384)] {
            let message = query("a.bc", 1, &padded(128, 0, data_octets));
            assert_eq!(message.len(), octets, "{data_octets}");
        }
    }

    #[test]
    fn rfc8467_section_4_1_what_is_sent_is_padded_with_its_tsig_record() {
        let key: crate::tsig::Key = "key.example:c2VjcmV0".parse().unwrap();
        let signature_octets = key.record_octets() as u16;
        for data_octets in 0..300 {
            let mut message = query("a.bc", 1, &padded(128, signature_octets, data_octets));
            key.sign(
                &mut message,
                0,
                std::time::Duration::from_secs(1_780_000_000),
            );
            assert_eq!(message.len() % 128, 0, "{data_octets}");
        }
    }

    #[test]
    fn rfc8467_section_3_padding_never_makes_a_message_too_long() {
        let room = 65_535 - HEADER_OCTETS - 6 - 4 - OPT_OCTETS - 4;
        for (data_octets, padding) in [(room - 4, 0), (room - 5, 1), (room - 100, 96)] {
            let message = query("a.bc", 1, &padded(1_000, 0, data_octets));
            assert_eq!(message.len(), 65_535);
            let length = message[message.len() - padding - 2..][..2].to_vec();
            assert_eq!(length, (padding as u16).to_be_bytes());
        }
        let mut message = Vec::new();
        let options = padded(128, 0, room - 3);
        let refused = write_query(b"\x01a\x02bc\0", 1, 1, &options, &mut message);
        assert_eq!((refused, message.len()), (Err(MessageTooLong), 0));
    }

    fn edns() -> impl Strategy<Value = Edns> {
        let option = (
            65_001_u16..65_534,
            prop::collection::vec(any::<u8>(), 0..40),
        );
        (
            any::<u16>(),
            any::<bool>(),
            prop::collection::vec(option, 0..3),
            prop::option::of(any::<NonZeroU16>()),
        )
            .prop_map(|(udp_payload_octets, dnssec_ok, mut options, block)| {
                options.sort();
                options.dedup_by_key(|(code, _)| *code);
                Edns {
                    udp_payload_octets,
                    dnssec_ok,
                    options,
                    padding_block_octets: block,
                }
            })
    }

    proptest! {
        #[test]
        fn hickory_reads_what_was_written(
            (labels, qtype) in ("[a-z0-9]{1,20}(\\.[a-z0-9]{1,20}){0,4}", 1_u16..20),
            (recursion_desired, checking_disabled, authentic_data) in any::<(bool, bool, bool)>(),
            edns in prop::option::of(edns()),
            signature_octets in 0_u16..300,
        ) {
            let options = QueryOptions {
                recursion_desired, checking_disabled, authentic_data, edns: edns.clone(),
                signature_octets, label_octets: 0,
            };
            let octets = query(&labels, qtype, &options);
            let message = Message::from_vec(&octets).unwrap();
            let head = message.metadata;
            prop_assert_eq!(head.message_type, MessageType::Query);
            prop_assert_eq!(head.op_code, OpCode::Query);
            prop_assert_eq!(
                (head.recursion_desired, head.checking_disabled, head.authentic_data),
                (recursion_desired, checking_disabled, authentic_data)
            );
            prop_assert_eq!(message.queries.len(), 1);
            prop_assert_eq!(message.queries[0].name().to_ascii(), labels + ".");
            prop_assert_eq!(u16::from(message.queries[0].query_type()), qtype);
            prop_assert_eq!(message.edns.is_some(), edns.is_some());
            if let (Some(theirs), Some(ours)) = (message.edns, edns) {
                // hickory raises payload sizes below the 512 octets of RFC 6891, section 6.2.3.
                prop_assert_eq!(theirs.max_payload(), ours.udp_payload_octets.max(512));
                prop_assert_eq!(theirs.flags().dnssec_ok, ours.dnssec_ok);
                let padding = theirs.option(EdnsCode::Padding);
                prop_assert_eq!(padding.is_some(), ours.padding_block_octets.is_some());
                if let Some(block) = ours.padding_block_octets {
                    let sent = octets.len() + usize::from(signature_octets);
                    prop_assert!(sent.is_multiple_of(block.get().into()) || sent == 65_535);
                }
                for (code, data) in ours.options {
                    let option = theirs.option(EdnsCode::from(code));
                    prop_assert_eq!(option, Some(&EdnsOption::Unknown(code, data)));
                }
            }
        }
    }
}
