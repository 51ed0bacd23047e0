//! Mnemonics of TYPE, CLASS, RCODE and opcode (IANA DNS parameters; RFC 3597 for unknown types).

/// The number of a TYPE or QTYPE mnemonic, upper or lower case, or `TYPE123`.
pub fn type_from_text(text: &str) -> Option<u16> {
    let _ = text;
    None
}

/// The mnemonic of a TYPE or QTYPE, or `TYPE123`.
pub fn type_to_text(number: u16) -> String {
    format!("TYPE{number}")
}

/// The number of a CLASS mnemonic (`IN`, `CH`, `HS`, `ANY`, `NONE`, `CLASS123`).
pub fn class_from_text(text: &str) -> Option<u16> {
    let _ = text;
    None
}

/// The mnemonic of an RCODE (`NOERROR`, `NXDOMAIN`, ...), or `RCODE23`.
pub fn rcode_to_text(rcode: u16) -> String {
    format!("RCODE{rcode}")
}

/// The number of an RCODE mnemonic in upper or lower case, or `RCODE23`.
pub fn rcode_from_text(text: &str) -> Option<u16> {
    let _ = text;
    None
}
