//! Update files: dynamic updates (RFC 2136) in the text format of dnsperf's `-u`.
//!
//! ```text
//! example.com                     the zone
//! require a                       a name exists
//! require a A                     an RRset exists
//! require a A 192.0.2.1           an RRset exists with this record
//! prohibit x                      a name does not exist
//! prohibit x A                    an RRset does not exist
//! add x 3600 A 192.0.2.2          adds a record; the number is its TTL in seconds
//! delete y A 192.0.2.3            deletes a record
//! delete z A                      deletes an RRset
//! delete w                        deletes all RRsets of a name
//! send                            ends the message
//! ```
//!
//! Names are relative to the zone unless they end in a dot; `@` is the zone itself. Prerequisites
//! stand before updates. Data is written as in zone files, for the types A, AAAA, NS, CNAME, PTR,
//! MX, TXT, SRV, SOA and CAA, and for all types as `\# LENGTH HEX` (RFC 3597). Comments start with
//! `;` where a word would start, or with `#` at the start of a line. The first fault makes the
//! file unusable.

use proto::query::{Edns, QueryOptions, write_query};
use proto::rr;

use crate::names_error::{Fault, FilePosition, NamesError, excerpt};
use crate::questions::QuestionSet;
use crate::rdata::{self, Compression, Fields, Origin};
use crate::words::{self, Quotes, Word};

const MESSAGE_OCTETS_MAX: usize = 65_535;
const HEADER_OCTETS: usize = 12;
/// Opcode UPDATE in its place in the header's flags (RFC 2136, section 1.3).
const FLAGS_UPDATE: u16 = 5 << 11;
const TYPE_SOA: u16 = 6;
const TYPE_ANY: u16 = 255;
const CLASS_IN: u16 = 1;
const CLASS_NONE: u16 = 254;
const CLASS_ANY: u16 = 255;
/// RFC 2181, section 8.
const TTL_MAX: u32 = (1 << 31) - 1;

const BLOCK_HINT: &str = "a block is the zone's name on a line of its own, then `require`, \
     `prohibit`, `add` and `delete` lines, then `send`";

/// Reads an update file into whole UPDATE messages; with `edns`, each carries that OPT record.
///
/// The question octets of a template are those of its zone section.
///
/// # Errors
/// The first line at fault, a block without `send`, or that there is no block at all.
pub fn parse_text(text: &[u8], edns: Option<&Edns>) -> Result<QuestionSet, NamesError> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = Reader {
        updates: QuestionSet::new(),
        opt: opt_record(edns)?,
        block: None,
    };
    let mut words = Vec::new();
    for (index, line) in text.split(|&octet| octet == b'\n').enumerate() {
        reader
            .read_line(index + 1, line, &mut words)
            .map_err(|fault| fault.at_line(index + 1, &String::from_utf8_lossy(line)))?;
    }
    if let Some(block) = reader.block {
        let what = format!("the block of zone `{}` does not end", block.zone);
        let place = FilePosition::Line {
            line: block.line,
            column: 1,
        };
        return Err(error(place, what, "end it by a line `send`"));
    }
    if reader.updates.is_empty() {
        return Err(error(
            FilePosition::Whole,
            "there is no update in it",
            BLOCK_HINT,
        ));
    }
    Ok(reader.updates)
}

fn error(place: FilePosition, what: impl Into<String>, hint: &str) -> NamesError {
    NamesError {
        place,
        what: what.into(),
        hint: hint.into(),
    }
}

/// The OPT record in wire format; empty if there is none.
fn opt_record(edns: Option<&Edns>) -> Result<Vec<u8>, NamesError> {
    let Some(edns) = edns else {
        return Ok(Vec::new());
    };
    let options = QueryOptions {
        edns: Some(edns.clone()),
        ..QueryOptions::default()
    };
    let mut query = Vec::new();
    write_query(&[0], TYPE_SOA, CLASS_IN, &options, &mut query).map_err(|_| {
        let what = "the EDNS options do not fit into a message";
        error(
            FilePosition::Whole,
            what,
            "give fewer or shorter EDNS options",
        )
    })?;
    // The query's question is the root's: one octet of name, four of type and class.
    Ok(query.split_off(HEADER_OCTETS + 5))
}

struct Reader {
    updates: QuestionSet,
    opt: Vec<u8>,
    block: Option<Block>,
}

/// The message under way.
struct Block {
    /// The zone as written, for messages to people.
    zone: String,
    /// The line of the zone's name.
    line: usize,
    origin: Origin,
    message: Vec<u8>,
    /// PRCOUNT (RFC 2136, section 2.2).
    prerequisites: u16,
    /// UPCOUNT.
    updates: u16,
}

impl Reader {
    fn read_line<'t>(
        &mut self,
        number: usize,
        line: &'t [u8],
        words: &mut Vec<Word<'t>>,
    ) -> Result<(), Fault> {
        let Some(line) = words::line_text(line)? else {
            return Ok(());
        };
        words::split(line, Quotes::Group, words)?;
        let Some((first, rest)) = words.split_first() else {
            return Ok(());
        };
        let fields = Fields::new(rest, first.column + first.text.len());
        let Some(mut block) = self.block.take() else {
            fields.end().map_err(|fault| Fault {
                hint: BLOCK_HINT.into(),
                ..fault
            })?;
            self.block = Some(Block::begin(number, first)?);
            return Ok(());
        };
        if first.text == "send" {
            fields.end()?;
            return self.send(block, first);
        }
        let octets_max = MESSAGE_OCTETS_MAX - self.opt.len();
        block.command(first, fields)?;
        if block.message.len() > octets_max {
            let what = "an update message of more than 65,535 bytes";
            return Err(first.fault(what, "send earlier"));
        }
        self.block = Some(block);
        Ok(())
    }

    fn send(&mut self, mut block: Block, word: &Word<'_>) -> Result<(), Fault> {
        block.message.extend_from_slice(&self.opt);
        if block.message.len() > MESSAGE_OCTETS_MAX {
            let what = "an update message of more than 65,535 bytes";
            return Err(word.fault(what, "give fewer or shorter EDNS options"));
        }
        let additional = u16::from(!self.opt.is_empty());
        let counts = [1, block.prerequisites, block.updates, additional];
        let header = [0, FLAGS_UPDATE].into_iter().chain(counts);
        for (place, field) in block.message.chunks_exact_mut(2).zip(header) {
            place.copy_from_slice(&field.to_be_bytes());
        }
        self.updates
            .push(&block.message, block.origin.wire().len() + 4);
        Ok(())
    }
}

impl Block {
    fn begin(line: usize, zone: &Word<'_>) -> Result<Block, Fault> {
        if ["require", "prohibit", "add", "delete", "send"].contains(&zone.text) {
            let what = format!("`{}` before the name of a zone", zone.text);
            return Err(zone.fault(what, BLOCK_HINT));
        }
        let origin = Origin::parse(zone)?;
        let mut message = vec![0; HEADER_OCTETS];
        message.extend_from_slice(origin.wire());
        message.extend_from_slice(&TYPE_SOA.to_be_bytes());
        message.extend_from_slice(&CLASS_IN.to_be_bytes());
        Ok(Block {
            zone: excerpt(zone.text),
            line,
            origin,
            message,
            prerequisites: 0,
            updates: 0,
        })
    }

    /// Appends the record that one line stands for.
    fn command(&mut self, command: &Word<'_>, mut fields: Fields<'_>) -> Result<(), Fault> {
        let is_update = match command.text {
            "require" | "prohibit" => false,
            "add" | "delete" => true,
            _ => {
                let what = format!("unknown command `{}`", command.text);
                return Err(command.fault(what, BLOCK_HINT));
            }
        };
        if !is_update && self.updates > 0 {
            let what = format!("`{}` after an update", command.text);
            return Err(command.fault(what, "write prerequisites before updates"));
        }
        let owner = fields.need("a name")?;
        self.origin
            .write_name(owner, Compression::Allowed, &mut self.message)?;
        match command.text {
            "add" => {
                let ttl = fields.number("the TTL", TTL_MAX)?;
                let rtype = take_type(fields.need("the type")?)?;
                self.record(rtype, (CLASS_IN, ttl), fields)?;
            }
            "require" => self.condition((CLASS_ANY, CLASS_IN), fields)?,
            "delete" => self.condition((CLASS_ANY, CLASS_NONE), fields)?,
            _ => self.absence(fields)?,
        }
        let count = if is_update {
            &mut self.updates
        } else {
            &mut self.prerequisites
        };
        // 65,535 octets hold fewer than 65,535 records, and their number is checked after each.
        *count += 1;
        Ok(())
    }

    /// `[TYPE [DATA]]`, with the class for no data and for data (RFC 2136, 2.4 and 2.5).
    fn condition(&mut self, classes: (u16, u16), mut fields: Fields<'_>) -> Result<(), Fault> {
        let rtype = match fields.next() {
            None => TYPE_ANY,
            Some(word) => take_type(word)?,
        };
        if fields.is_empty() {
            self.empty_record(rtype, classes.0);
            return Ok(());
        }
        self.record(rtype, (classes.1, 0), fields)
    }

    /// `[TYPE]` that must not be there (RFC 2136, sections 2.4.3 and 2.4.5).
    fn absence(&mut self, mut fields: Fields<'_>) -> Result<(), Fault> {
        let rtype = match fields.next() {
            None => TYPE_ANY,
            Some(word) => take_type(word)?,
        };
        fields.end().map_err(|fault| Fault {
            hint: "`prohibit` takes a name and at most a type".into(),
            ..fault
        })?;
        self.empty_record(rtype, CLASS_NONE);
        Ok(())
    }

    /// Type, class, TTL 0 and no RDATA, after an owner name.
    fn empty_record(&mut self, rtype: u16, class: u16) {
        for field in [rtype, class, 0, 0, 0] {
            self.message.extend_from_slice(&field.to_be_bytes());
        }
    }

    /// Type, class, TTL and RDATA, after an owner name.
    fn record(
        &mut self,
        rtype: u16,
        (class, ttl): (u16, u32),
        fields: Fields<'_>,
    ) -> Result<(), Fault> {
        let message = &mut self.message;
        message.extend_from_slice(&rtype.to_be_bytes());
        message.extend_from_slice(&class.to_be_bytes());
        message.extend_from_slice(&ttl.to_be_bytes());
        let length_at = message.len();
        message.extend_from_slice(&[0, 0]);
        rdata::write(rtype, fields, &self.origin, message)?;
        // RDATA too long for its length field is too long for the message; the caller says so.
        let octets = u16::try_from(message.len() - length_at - 2).unwrap_or(u16::MAX);
        message[length_at..length_at + 2].copy_from_slice(&octets.to_be_bytes());
        Ok(())
    }
}

fn take_type(word: &Word<'_>) -> Result<u16, Fault> {
    rr::type_from_text(word.text).ok_or_else(|| {
        let hint = "types are mnemonics such as A, AAAA, MX, TXT, or `TYPE` and a number";
        word.fault(format!("unknown type `{}`", word.text), hint)
    })
}

#[cfg(test)]
mod tests;
