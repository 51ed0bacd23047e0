//! Mnemonics of TYPE, CLASS, RCODE and opcode (IANA DNS parameters; RFC 3597 for unknown types).
//!
//! One table for each registry, read both ways. Reading ignores case; writing is upper case.

/// TYPE A (RFC 1035).
pub const TYPE_A: u16 = 1;
/// TYPE NS (RFC 1035).
pub const TYPE_NS: u16 = 2;
/// TYPE SOA (RFC 1035).
pub const TYPE_SOA: u16 = 6;
/// TYPE AAAA (RFC 3596).
pub const TYPE_AAAA: u16 = 28;
/// TYPE OPT (RFC 6891).
pub const TYPE_OPT: u16 = 41;
/// TYPE TSIG (RFC 8945).
pub const TYPE_TSIG: u16 = 250;
/// QTYPE ANY, also written `*` (RFC 1035, section 3.2.3).
pub const TYPE_ANY: u16 = 255;
/// CLASS IN (RFC 1035, section 3.2.4).
pub const CLASS_IN: u16 = 1;
/// CLASS NONE (RFC 2136, section 1.3).
pub const CLASS_NONE: u16 = 254;
/// QCLASS ANY (RFC 1035, section 3.2.5).
pub const CLASS_ANY: u16 = 255;
/// Opcode QUERY (RFC 1035, section 4.1.1).
pub const OPCODE_QUERY: u8 = 0;
/// Opcode UPDATE (RFC 2136, section 2.2).
pub const OPCODE_UPDATE: u8 = 5;

/// TYPEs and QTYPEs in the order of their numbers.
const TYPES: &[(u16, &str)] = &[
    (1, "A"),
    (2, "NS"),
    (3, "MD"),
    (4, "MF"),
    (5, "CNAME"),
    (6, "SOA"),
    (7, "MB"),
    (8, "MG"),
    (9, "MR"),
    (10, "NULL"),
    (11, "WKS"),
    (12, "PTR"),
    (13, "HINFO"),
    (14, "MINFO"),
    (15, "MX"),
    (16, "TXT"),
    (17, "RP"),
    (18, "AFSDB"),
    (19, "X25"),
    (20, "ISDN"),
    (21, "RT"),
    (22, "NSAP"),
    (23, "NSAP-PTR"),
    (24, "SIG"),
    (25, "KEY"),
    (26, "PX"),
    (27, "GPOS"),
    (28, "AAAA"),
    (29, "LOC"),
    (30, "NXT"),
    (31, "EID"),
    (32, "NIMLOC"),
    (33, "SRV"),
    (34, "ATMA"),
    (35, "NAPTR"),
    (36, "KX"),
    (37, "CERT"),
    (38, "A6"),
    (39, "DNAME"),
    (40, "SINK"),
    (41, "OPT"),
    (42, "APL"),
    (43, "DS"),
    (44, "SSHFP"),
    (45, "IPSECKEY"),
    (46, "RRSIG"),
    (47, "NSEC"),
    (48, "DNSKEY"),
    (49, "DHCID"),
    (50, "NSEC3"),
    (51, "NSEC3PARAM"),
    (52, "TLSA"),
    (53, "SMIMEA"),
    (55, "HIP"),
    (56, "NINFO"),
    (57, "RKEY"),
    (58, "TALINK"),
    (59, "CDS"),
    (60, "CDNSKEY"),
    (61, "OPENPGPKEY"),
    (62, "CSYNC"),
    (63, "ZONEMD"),
    (64, "SVCB"),
    (65, "HTTPS"),
    (66, "DSYNC"),
    (99, "SPF"),
    (100, "UINFO"),
    (101, "UID"),
    (102, "GID"),
    (103, "UNSPEC"),
    (104, "NID"),
    (105, "L32"),
    (106, "L64"),
    (107, "LP"),
    (108, "EUI48"),
    (109, "EUI64"),
    (128, "NXNAME"),
    (249, "TKEY"),
    (250, "TSIG"),
    (251, "IXFR"),
    (252, "AXFR"),
    (253, "MAILB"),
    (254, "MAILA"),
    (255, "ANY"),
    (256, "URI"),
    (257, "CAA"),
    (258, "AVC"),
    (259, "DOA"),
    (260, "AMTRELAY"),
    (261, "RESINFO"),
    (262, "WALLET"),
    (32768, "TA"),
    (32769, "DLV"),
];

/// CLASSes and QCLASSes in the order of their numbers.
const CLASSES: &[(u16, &str)] = &[(1, "IN"), (3, "CH"), (4, "HS"), (254, "NONE"), (255, "ANY")];

/// RCODEs in the order of their numbers; 16 is BADVERS in OPT and BADSIG in TSIG.
const RCODES: &[(u16, &str)] = &[
    (0, "NOERROR"),
    (1, "FORMERR"),
    (2, "SERVFAIL"),
    (3, "NXDOMAIN"),
    (4, "NOTIMP"),
    (5, "REFUSED"),
    (6, "YXDOMAIN"),
    (7, "YXRRSET"),
    (8, "NXRRSET"),
    (9, "NOTAUTH"),
    (10, "NOTZONE"),
    (11, "DSOTYPENI"),
    (16, "BADVERS"),
    (17, "BADKEY"),
    (18, "BADTIME"),
    (19, "BADMODE"),
    (20, "BADNAME"),
    (21, "BADALG"),
    (22, "BADTRUNC"),
    (23, "BADCOOKIE"),
];

/// Opcodes in the order of their numbers.
const OPCODES: &[(u16, &str)] = &[
    (0, "QUERY"),
    (1, "IQUERY"),
    (2, "STATUS"),
    (4, "NOTIFY"),
    (5, "UPDATE"),
    (6, "DSO"),
];

/// The number of a TYPE or QTYPE mnemonic, upper or lower case, or `TYPE123`.
///
/// `*` is read as `ANY`.
pub fn type_from_text(text: &str) -> Option<u16> {
    if text == "*" {
        return Some(TYPE_ANY);
    }
    number_of(TYPES, text).or_else(|| numbered(text, "TYPE"))
}

/// The mnemonic of a TYPE or QTYPE, or `TYPE123`.
pub fn type_to_text(number: u16) -> String {
    mnemonic_or_numbered(TYPES, number, "TYPE")
}

/// The number of a CLASS mnemonic (`IN`, `CH`, `HS`, `ANY`, `NONE`, `CLASS123`).
pub fn class_from_text(text: &str) -> Option<u16> {
    number_of(CLASSES, text).or_else(|| numbered(text, "CLASS"))
}

/// The mnemonic of a CLASS or QCLASS, or `CLASS123`.
pub fn class_to_text(number: u16) -> String {
    mnemonic_or_numbered(CLASSES, number, "CLASS")
}

/// The mnemonic of an RCODE (`NOERROR`, `NXDOMAIN`, ...), or `RCODE23`.
///
/// RCODE 16 is BADVERS; the BADSIG of TSIG records shares the number.
pub fn rcode_to_text(rcode: u16) -> String {
    mnemonic_or_numbered(RCODES, rcode, "RCODE")
}

/// The number of an RCODE mnemonic in upper or lower case, or `RCODE23`.
pub fn rcode_from_text(text: &str) -> Option<u16> {
    if text.eq_ignore_ascii_case("BADSIG") {
        return Some(16);
    }
    number_of(RCODES, text).or_else(|| numbered(text, "RCODE"))
}

/// The mnemonic of an opcode (`QUERY`, `UPDATE`, ...), or `OPCODE15`.
pub fn opcode_to_text(opcode: u8) -> String {
    mnemonic_or_numbered(OPCODES, u16::from(opcode), "OPCODE")
}

/// The number that `text` stands for in `table`.
fn number_of(table: &[(u16, &str)], text: &str) -> Option<u16> {
    let found = table
        .iter()
        .find(|(_, mnemonic)| mnemonic.eq_ignore_ascii_case(text))?;
    Some(found.0)
}

/// The number in `<prefix><decimal digits>` (RFC 3597, section 5).
fn numbered(text: &str, prefix: &str) -> Option<u16> {
    let (head, digits) = text.split_at_checked(prefix.len())?;
    let is_decimal = digits.bytes().all(|octet| octet.is_ascii_digit());
    if !head.eq_ignore_ascii_case(prefix) || !is_decimal {
        return None;
    }
    digits.parse().ok()
}

fn mnemonic_or_numbered(table: &[(u16, &str)], number: u16, prefix: &str) -> String {
    match table.binary_search_by_key(&number, |&(known, _)| known) {
        Ok(index) => table[index].1.to_owned(),
        Err(_) => format!("{prefix}{number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::rr::{DNSClass, RecordType};
    use std::str::FromStr;

    #[test]
    fn tables_are_in_order_and_without_doubles() {
        for table in [TYPES, CLASSES, RCODES, OPCODES] {
            assert!(table.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }

    #[test]
    fn every_number_survives_the_way_through_text() {
        for number in 0..=u16::MAX {
            assert_eq!(type_from_text(&type_to_text(number)), Some(number));
            assert_eq!(class_from_text(&class_to_text(number)), Some(number));
            assert_eq!(rcode_from_text(&rcode_to_text(number)), Some(number));
        }
    }

    #[test]
    fn case_and_generic_forms_are_understood() {
        for (text, number) in [
            ("a", Some(1)),
            ("Aaaa", Some(28)),
            ("*", Some(255)),
            ("any", Some(255)),
            ("TYPE65535", Some(65535)),
            ("type1", Some(1)),
            ("TYPE65536", None),
            ("TYPE", None),
            ("TYPE+1", None),
            ("TYPÉ1", None),
            ("", None),
            ("A ", None),
        ] {
            assert_eq!(type_from_text(text), number, "{text}");
        }
        assert_eq!(class_from_text("ch"), Some(3));
        assert_eq!(class_from_text("CLASS42"), Some(42));
        assert_eq!(rcode_from_text("nxdomain"), Some(3));
        assert_eq!(rcode_from_text("badsig"), Some(16));
        assert_eq!(rcode_to_text(16), "BADVERS");
        assert_eq!(opcode_to_text(5), "UPDATE");
        assert_eq!(opcode_to_text(15), "OPCODE15");
    }

    #[test]
    fn mnemonics_agree_with_hickory() {
        let known = TYPES.iter().filter_map(|&(number, mnemonic)| {
            RecordType::from_str(mnemonic)
                .ok()
                .map(|theirs| (number, theirs))
        });
        let mut compared = 0;
        for (number, theirs) in known {
            assert_eq!(number, u16::from(theirs));
            compared += 1;
        }
        assert!(compared >= 30, "only {compared} types compared");
        for &(number, mnemonic) in CLASSES {
            assert_eq!(number, u16::from(DNSClass::from_str(mnemonic).unwrap()));
        }
    }
}
