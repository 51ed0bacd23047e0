//! RDATA from presentation format, for update files (RFC 1035, section 5.1; RFC 3597, section 5).
//!
//! Knows A, AAAA, NS, CNAME, PTR, MX, TXT, SRV (RFC 2782), SOA, CAA (RFC 8659) and, for every
//! type, the generic form `\# LENGTH HEX`. Does not know parentheses: an RDATA is one line.

use std::net::{Ipv4Addr, Ipv6Addr};

use data_encoding::HEXLOWER_PERMISSIVE;
use proto::name::{self, NAME_OCTETS_MAX, NameError};
use proto::rr;

use crate::names_error::{Fault, NAME_HINT, name_fault};
use crate::words::Word;

// TYPE numbers (IANA DNS parameters).
const A: u16 = 1;
const NS: u16 = 2;
const CNAME: u16 = 5;
const SOA: u16 = 6;
const PTR: u16 = 12;
const MX: u16 = 15;
const TXT: u16 = 16;
const AAAA: u16 = 28;
const SRV: u16 = 33;
const CAA: u16 = 257;

/// The octet of an update message at which its zone's name starts.
const ZONE_OFFSET: u8 = 12;

/// Whether a name may end in a pointer to the zone's name (RFC 3597, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Allowed,
    Forbidden,
}

/// The zone that relative names are completed with; its name stands at octet 12 of the message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    wire: Vec<u8>,
}

impl Origin {
    /// Reads the zone's name, which is fully qualified with or without its last dot.
    pub(crate) fn parse(word: &Word<'_>) -> Result<Origin, Fault> {
        let mut wire = Vec::new();
        parse_name(word, &mut wire)?;
        Ok(Origin { wire })
    }

    /// The zone's name in wire format.
    pub(crate) fn wire(&self) -> &[u8] {
        &self.wire
    }

    /// Appends the name `word`: relative to the zone unless it ends in a dot; `@` is the zone.
    pub(crate) fn write_name(
        &self,
        word: &Word<'_>,
        compression: Compression,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        if is_absolute(word.text) {
            return parse_name(word, out);
        }
        let start = out.len();
        if word.text != "@" {
            parse_name(word, out)?;
            out.pop(); // the root label; the zone's name comes in its place
        }
        if out.len() - start + self.wire.len() > NAME_OCTETS_MAX {
            out.truncate(start);
            return Err(word.fault(name_fault(word.text, NameError::NameTooLong), NAME_HINT));
        }
        if compression == Compression::Allowed && self.wire.len() > 2 {
            out.extend_from_slice(&[0xc0, ZONE_OFFSET]);
        } else {
            out.extend_from_slice(&self.wire);
        }
        Ok(())
    }
}

fn parse_name(word: &Word<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    name::parse(word.text, out).map_err(|error| word.fault(name_fault(word.text, error), NAME_HINT))
}

/// True if `text` ends in a dot that is not escaped.
fn is_absolute(text: &str) -> bool {
    text.strip_suffix('.').is_some_and(|before| {
        let backslashes = before.bytes().rev().take_while(|&octet| octet == b'\\');
        backslashes.count().is_multiple_of(2)
    })
}

/// Words of a line, taken one after the other.
pub(crate) struct Fields<'a> {
    words: &'a [Word<'a>],
    /// Just behind the last word taken, for faults about words that are missing.
    column: usize,
}

impl<'a> Fields<'a> {
    /// The fields `words`, which follow what ended before `column`.
    pub(crate) fn new(words: &'a [Word<'a>], column: usize) -> Self {
        Fields { words, column }
    }

    /// The next word, if there is one.
    pub(crate) fn next(&mut self) -> Option<&'a Word<'a>> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        self.column = first.column + first.text.len();
        Some(first)
    }

    /// True if all words are taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The next word, which must be there.
    pub(crate) fn need(&mut self, what: &str) -> Result<&'a Word<'a>, Fault> {
        let column = self.column;
        self.next()
            .ok_or_else(|| Fault::new(column, format!("{what} is missing"), FIELDS_HINT))
    }

    /// The next word as a decimal number of at most `max`.
    pub(crate) fn number(&mut self, what: &str, max: u32) -> Result<u32, Fault> {
        let word = self.need(what)?;
        let is_decimal = word.text.bytes().all(|octet| octet.is_ascii_digit());
        let number = word.text.parse().ok();
        number
            .filter(|number| is_decimal && *number <= max)
            .ok_or_else(|| {
                let fault = format!("{what} `{}` is not a number from 0 to {max}", word.text);
                word.fault(fault, "write it in decimal digits, times in seconds")
            })
    }

    /// Nothing may be left.
    pub(crate) fn end(&self) -> Result<(), Fault> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => {
                let what = format!("unexpected `{}`", word.text);
                Err(word.fault(what, "text with blanks in it is put in quotes"))
            }
        }
    }
}

const FIELDS_HINT: &str = "the forms are `require NAME [TYPE [DATA]]`, `prohibit NAME [TYPE]`, \
     `add NAME TTL TYPE DATA`, `delete NAME [TYPE [DATA]]`";

/// Appends the RDATA of type `rtype` that `fields` describe, all of them.
pub(crate) fn write(
    rtype: u16,
    mut fields: Fields<'_>,
    origin: &Origin,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    if fields.words.first().is_some_and(|word| word.text == "\\#") {
        return write_generic(fields, out);
    }
    match rtype {
        A => write_address::<Ipv4Addr>(&mut fields, "IPv4", |a| out.extend(a.octets()))?,
        AAAA => write_address::<Ipv6Addr>(&mut fields, "IPv6", |a| out.extend(a.octets()))?,
        NS | CNAME | PTR => {
            origin.write_name(fields.need("a name")?, Compression::Allowed, out)?;
        }
        MX => {
            write_u16(fields.number("the preference", 0xffff)?, out);
            origin.write_name(fields.need("the exchange")?, Compression::Allowed, out)?;
        }
        TXT => write_txt(&mut fields, out)?,
        SRV => write_srv(&mut fields, origin, out)?,
        SOA => write_soa(&mut fields, origin, out)?,
        CAA => write_caa(&mut fields, out)?,
        _ => return Err(unsupported(rtype, &fields)),
    }
    fields.end()
}

fn unsupported(rtype: u16, fields: &Fields<'_>) -> Fault {
    let column = fields
        .words
        .first()
        .map_or(fields.column, |word| word.column);
    let mnemonic = rr::type_to_text(rtype);
    Fault::new(
        column,
        format!("data of type {mnemonic} cannot be written as text here"),
        "use the generic form, `\\# LENGTH HEX` (RFC 3597)",
    )
}

fn write_u16(number: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_be_bytes()[2..]);
}

fn write_address<T: std::str::FromStr>(
    fields: &mut Fields<'_>,
    family: &str,
    write: impl FnOnce(T),
) -> Result<(), Fault> {
    let word = fields.need("the address")?;
    let address = word.text.parse().map_err(|_| {
        let what = format!("`{}` is not an {family} address", word.text);
        word.fault(
            what,
            "type A takes an IPv4 address, type AAAA an IPv6 address",
        )
    })?;
    write(address);
    Ok(())
}

fn write_srv(fields: &mut Fields<'_>, origin: &Origin, out: &mut Vec<u8>) -> Result<(), Fault> {
    for what in ["the priority", "the weight", "the port"] {
        write_u16(fields.number(what, 0xffff)?, out);
    }
    origin.write_name(fields.need("the target")?, Compression::Forbidden, out)
}

fn write_soa(fields: &mut Fields<'_>, origin: &Origin, out: &mut Vec<u8>) -> Result<(), Fault> {
    for what in ["MNAME", "RNAME"] {
        origin.write_name(fields.need(what)?, Compression::Allowed, out)?;
    }
    for what in ["SERIAL", "REFRESH", "RETRY", "EXPIRE", "MINIMUM"] {
        out.extend_from_slice(&fields.number(what, u32::MAX)?.to_be_bytes());
    }
    Ok(())
}

fn write_txt(fields: &mut Fields<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut word = fields.need("a text")?;
    loop {
        let length_at = out.len();
        out.push(0);
        unescape(word, out)?;
        out[length_at] = u8::try_from(out.len() - length_at - 1).map_err(|_| {
            let hint = "split it into texts of at most 255 bytes, each in quotes";
            word.fault("a text of more than 255 bytes", hint)
        })?;
        match fields.next() {
            Some(next) => word = next,
            None => return Ok(()),
        }
    }
}

/// RFC 8659, section 4.1: flags, tag with its length, value.
fn write_caa(fields: &mut Fields<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    let flags = fields.number("the flags", 255)?;
    let tag = fields.need("the tag")?;
    let is_tag = tag.text.bytes().all(|octet| octet.is_ascii_alphanumeric());
    let tag_octets = u8::try_from(tag.text.len()).ok();
    let Some(tag_octets) = tag_octets.filter(|octets| is_tag && *octets > 0) else {
        let what = format!("tag `{}` is not letters and digits", tag.text);
        return Err(tag.fault(what, "tags are such as `issue` and `iodef`"));
    };
    out.extend_from_slice(&[flags as u8, tag_octets]);
    out.extend_from_slice(tag.text.as_bytes());
    unescape(fields.need("the value")?, out)
}

/// `\# LENGTH HEX`, the digits in any number of words (RFC 3597, section 5).
fn write_generic(mut fields: Fields<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    let mark = fields.need("`\\#`")?;
    let octets = fields.number("the length", 0xffff)?;
    let mut digits = String::new();
    while let Some(word) = fields.next() {
        digits.push_str(word.text);
    }
    let hint = "write `\\#`, the number of bytes, and two hexadecimal digits for each";
    let data = HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).map_err(|_| {
        let what = "generic data is not an even number of hexadecimal digits";
        mark.fault(what, hint)
    })?;
    if data.len() != octets as usize {
        let what = format!("generic data has {} bytes, not {octets}", data.len());
        return Err(mark.fault(what, hint));
    }
    out.extend_from_slice(&data);
    Ok(())
}

/// Appends the octets of a character string, with `\DDD` and `\X` resolved.
fn unescape(word: &Word<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut rest = word.text.as_bytes();
    while let Some((&octet, after)) = rest.split_first() {
        rest = after;
        if octet != b'\\' {
            out.push(octet);
            continue;
        }
        let (octet, taken) = escaped(rest).ok_or_else(|| {
            let what = format!("bad escape in `{}`", word.text);
            word.fault(
                what,
                "after a backslash comes one character or \\000 to \\255",
            )
        })?;
        out.push(octet);
        rest = &rest[taken..];
    }
    Ok(())
}

/// The octet that the text after a backslash stands for, and how long that text is.
fn escaped(text: &[u8]) -> Option<(u8, usize)> {
    let first = *text.first()?;
    if !first.is_ascii_digit() {
        return Some((first, 1));
    }
    let digits = text.get(..3)?;
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits
        .iter()
        .fold(0u16, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    Some((u8::try_from(value).ok()?, 3))
}
