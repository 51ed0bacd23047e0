//! What may follow the type on a line of a names file, to change the run's defaults for one query.
//!
//! | option | effect |
//! |---|---|
//! | `+rd`, `-rd` | sets, clears the RD bit |
//! | `+cd`, `-cd` | sets, clears the CD bit (RFC 4035) |
//! | `+ad`, `-ad` | sets, clears the AD bit (RFC 6840, section 5.7) |
//! | `+edns`, `+edns=SIZE` | adds an OPT record; SIZE is the UDP payload size, 0 to 65535 |
//! | `+noedns`, `-edns` | leaves the OPT record out; contradicts every EDNS option on the line |
//! | `+do`, `-do` | sets (adding an OPT record), clears the DO bit (RFC 3225) |
//! | `+ecs=ADDRESS/BITS` | Client Subnet (RFC 7871), replacing the default; without `/BITS` whole |
//! | `+padding`, `+padding=BLOCK` | pads to a multiple of BLOCK octets (RFC 8467), 128 without |
//! | `-padding` | leaves padding out |
//! | `+keepalive`, `-keepalive` | adds, leaves out edns-tcp-keepalive (RFC 7828) |
//! | `+opt=CODE:HEX` | adds an EDNS option of code CODE with the octets HEX, which may be empty |
//!
//! There is one Padding in a message (RFC 7830, section 3): `+padding` replaces `+opt=12:HEX` and
//! the other way round. Upper and lower case are the same. Options work from left to right.

use std::net::IpAddr;
use std::num::NonZeroU16;

use data_encoding::HEXLOWER_PERMISSIVE;
use proto::query::{
    Edns, OPTION_CLIENT_SUBNET, OPTION_KEEPALIVE, OPTION_PADDING, PADDING_BLOCK_OCTETS,
    QueryOptions, client_subnet,
};

use crate::names_error::Fault;
use crate::words::Word;

const HINT: &str = "known are +do -do +cd -cd +ad -ad +rd -rd +edns +edns=SIZE +noedns \
     +padding +padding=BLOCK -padding +keepalive -keepalive +ecs=ADDRESS/BITS +opt=CODE:HEX";

/// Changes `options` by the option words of one line.
pub(crate) fn apply(words: &[Word<'_>], options: &mut QueryOptions) -> Result<(), Fault> {
    let mut edns_word: Option<&Word<'_>> = None;
    let mut noedns_word: Option<&Word<'_>> = None;
    for word in words {
        match apply_one(word, options)? {
            Touched::Header => {}
            Touched::EdnsAdded => edns_word = Some(word),
            Touched::EdnsRemoved => noedns_word = Some(word),
        }
        if let (Some(edns), Some(noedns)) = (edns_word, noedns_word) {
            let what = format!("`{}` contradicts `{}`", noedns.text, edns.text);
            return Err(word.fault(what, "use one of them"));
        }
    }
    Ok(())
}

/// What an option changed, to find contradictions.
enum Touched {
    Header,
    EdnsAdded,
    EdnsRemoved,
}

fn apply_one(word: &Word<'_>, options: &mut QueryOptions) -> Result<Touched, Fault> {
    let lower = word.text.to_ascii_lowercase();
    let (key, value) = match lower.split_once('=') {
        Some((key, value)) => (key, Some(value)),
        None => (lower.as_str(), None),
    };
    let edns = &mut options.edns;
    match (key, value) {
        ("+rd", None) => options.recursion_desired = true,
        ("-rd", None) => options.recursion_desired = false,
        ("+cd", None) => options.checking_disabled = true,
        ("-cd", None) => options.checking_disabled = false,
        ("+ad", None) => options.authentic_data = true,
        ("-ad", None) => options.authentic_data = false,
        ("-do", None) => {
            if let Some(edns) = edns {
                edns.dnssec_ok = false;
            }
        }
        ("+noedns" | "-edns", None) => {
            *edns = None;
            return Ok(Touched::EdnsRemoved);
        }
        ("-padding" | "-keepalive", None) => {
            if let Some(edns) = edns {
                remove(key, edns);
            }
        }
        ("+do" | "+edns" | "+padding" | "+keepalive", None)
        | ("+edns" | "+ecs" | "+opt" | "+padding", Some(_)) => {
            let edns = edns.get_or_insert_default();
            change_edns(key, value, edns)
                .map_err(|what| word.fault(format!("{what} in option `{}`", word.text), HINT))?;
            return Ok(Touched::EdnsAdded);
        }
        _ => return Err(unknown(word)),
    }
    Ok(Touched::Header)
}

fn unknown(word: &Word<'_>) -> Fault {
    let what = if word.text.starts_with(['+', '-']) {
        format!("unknown option `{}`", word.text)
    } else {
        format!("unexpected `{}` after the type", word.text)
    };
    word.fault(what, HINT)
}

fn change_edns(key: &str, value: Option<&str>, edns: &mut Edns) -> Result<(), String> {
    match (key, value) {
        ("+do", _) => edns.dnssec_ok = true,
        ("+edns", Some(size)) => {
            edns.udp_payload_octets = decimal_u16(size)
                .ok_or_else(|| format!("`{size}` is not a size from 0 to 65535"))?;
        }
        ("+ecs", Some(subnet)) => {
            let option = parse_client_subnet(subnet)?;
            edns.options
                .retain(|(code, _)| *code != OPTION_CLIENT_SUBNET);
            edns.options.push(option);
        }
        ("+padding", block) => {
            let block = block.map_or(Ok(PADDING_BLOCK_OCTETS), parse_padding_block)?;
            remove("-padding", edns);
            edns.padding_block_octets = Some(block);
        }
        ("+keepalive", _) => {
            remove("-keepalive", edns);
            edns.options.push((OPTION_KEEPALIVE, Vec::new()));
        }
        ("+opt", Some(option)) => {
            let option = parse_edns_option(option)?;
            if option.0 == OPTION_PADDING {
                remove("-padding", edns);
            }
            edns.options.push(option);
        }
        _ => {}
    }
    Ok(())
}

/// Leaves out what `-padding` or `-keepalive` names.
fn remove(key: &str, edns: &mut Edns) {
    let removed = match key {
        "-padding" => {
            edns.padding_block_octets = None;
            OPTION_PADDING
        }
        _ => OPTION_KEEPALIVE,
    };
    edns.options.retain(|(code, _)| *code != removed);
}

fn parse_padding_block(text: &str) -> Result<NonZeroU16, String> {
    decimal_u16(text)
        .and_then(NonZeroU16::new)
        .ok_or_else(|| format!("`{text}` is not a block of 1 to 65535 bytes"))
}

/// Reads `CODE:HEX`, an EDNS option (RFC 6891, section 6.1.2), as (code, data).
///
/// CODE is decimal; HEX may be empty and of either case.
///
/// # Errors
/// What is wrong with the text, for the user who typed it.
pub fn parse_edns_option(text: &str) -> Result<(u16, Vec<u8>), String> {
    let (code, hex) = text
        .split_once(':')
        .ok_or_else(|| format!("`{text}` is not of the form CODE:HEX"))?;
    let code =
        decimal_u16(code).ok_or_else(|| format!("`{code}` is not a code from 0 to 65535"))?;
    let data = HEXLOWER_PERMISSIVE
        .decode(hex.as_bytes())
        .map_err(|_| format!("`{hex}` is not an even number of hexadecimal digits"))?;
    if data.len() > usize::from(u16::MAX) {
        return Err(format!(
            "{} bytes do not fit into an EDNS option",
            data.len()
        ));
    }
    Ok((code, data))
}

/// Reads `ADDRESS/BITS` or `ADDRESS`, an EDNS Client Subnet (RFC 7871), as (code, data).
///
/// Without `/BITS` the whole address is sent.
///
/// # Errors
/// What is wrong with the text, for the user who typed it.
pub fn parse_client_subnet(text: &str) -> Result<(u16, Vec<u8>), String> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = address
        .parse()
        .map_err(|_| format!("`{address}` is not an IPv4 or IPv6 address"))?;
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        None => Some(bits_max),
        Some(bits) => decimal_u16(bits).and_then(|bits| u8::try_from(bits).ok()),
    };
    bits.and_then(|bits| client_subnet(address, bits))
        .ok_or_else(|| format!("`{text}` needs a prefix length from 0 to {bits_max}"))
}

/// A decimal number without sign, 0 to 65535.
fn decimal_u16(text: &str) -> Option<u16> {
    text.bytes()
        .all(|octet| octet.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}
