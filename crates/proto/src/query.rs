//! Building query messages (RFC 1035, section 4.1) with EDNS (RFC 6891).

use std::net::IpAddr;

/// What goes into a query beside its question.
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
}

impl Default for QueryOptions {
    fn default() -> Self {
        QueryOptions {
            recursion_desired: true,
            checking_disabled: false,
            authentic_data: false,
            edns: None,
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
}

impl Default for Edns {
    fn default() -> Self {
        Edns {
            udp_payload_octets: 1232,
            dnssec_ok: false,
            options: Vec::new(),
        }
    }
}

/// Octets of the message header (RFC 1035, section 4.1.1).
const HEADER_OCTETS: usize = 12;

/// Octets of an OPT record without options: root, TYPE, CLASS, TTL, RDLENGTH.
const OPT_OCTETS: usize = 11;

/// The option code of EDNS Client Subnet (RFC 7871, section 6).
const OPTION_CLIENT_SUBNET: u16 = 8;

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
    let octets = HEADER_OCTETS + qname.len() + 4 + edns_octets;
    if octets > usize::from(u16::MAX) {
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
        write_opt(edns, message);
    }
    Ok(())
}

/// The second 16 bits of the header (RFC 1035, section 4.1.1; AD and CD from RFC 4035).
fn flags(options: &QueryOptions) -> u16 {
    u16::from(options.recursion_desired) << 8
        | u16::from(options.authentic_data) << 5
        | u16::from(options.checking_disabled) << 4
}

/// Octets of the options in the RDATA, each with its code and length.
fn options_octets(edns: &Edns) -> usize {
    edns.options.iter().map(|(_, data)| 4 + data.len()).sum()
}

/// Appends the OPT record (RFC 6891, section 6.1.2), whose size `write_query` has checked.
fn write_opt(edns: &Edns, message: &mut Vec<u8>) {
    let flags = u32::from(edns.dnssec_ok) << 15;
    message.push(0);
    message.extend_from_slice(&crate::rr::TYPE_OPT.to_be_bytes());
    message.extend_from_slice(&edns.udp_payload_octets.to_be_bytes());
    message.extend_from_slice(&flags.to_be_bytes());
    message.extend_from_slice(&(options_octets(edns) as u16).to_be_bytes());
    for (code, data) in &edns.options {
        message.extend_from_slice(&code.to_be_bytes());
        message.extend_from_slice(&(data.len() as u16).to_be_bytes());
        message.extend_from_slice(data);
    }
}

/// The message would be longer than 65,535 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageTooLong;

impl std::fmt::Display for MessageTooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the message would be longer than 65,535 octets")
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

    fn edns() -> impl Strategy<Value = Edns> {
        let option = (
            65_001_u16..65_534,
            prop::collection::vec(any::<u8>(), 0..40),
        );
        (
            any::<u16>(),
            any::<bool>(),
            prop::collection::vec(option, 0..3),
        )
            .prop_map(|(udp_payload_octets, dnssec_ok, mut options)| {
                options.sort();
                options.dedup_by_key(|(code, _)| *code);
                Edns {
                    udp_payload_octets,
                    dnssec_ok,
                    options,
                }
            })
    }

    proptest! {
        #[test]
        fn hickory_reads_what_was_written(
            (labels, qtype) in ("[a-z0-9]{1,20}(\\.[a-z0-9]{1,20}){0,4}", 1_u16..20),
            (recursion_desired, checking_disabled, authentic_data) in any::<(bool, bool, bool)>(),
            edns in prop::option::of(edns()),
        ) {
            let options = QueryOptions {
                recursion_desired, checking_disabled, authentic_data, edns: edns.clone(),
            };
            let message = Message::from_vec(&query(&labels, qtype, &options)).unwrap();
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
                for (code, data) in ours.options {
                    let option = theirs.option(EdnsCode::from(code));
                    prop_assert_eq!(option, Some(&EdnsOption::Unknown(code, data)));
                }
            }
        }
    }
}
