//! Names files: questions in the two formats that dnsperf reads.
//!
//! Text: one question per line, `name type`, such as `www.example.com AAAA`. Types are mnemonics of
//! either case or `TYPE123` (RFC 3597); a class may stand on either side of the type and is IN if
//! left out; [options](crate::line_options) may follow. Names are always fully qualified, with or
//! without their last dot. Lines end with LF or CRLF. Empty lines are ignored, and so is text after
//! a `;` or `#` at the start of a line or after a blank.
//!
//! Stream: whole DNS messages as a client would write them to a TCP connection, each after its
//! length in two octets (RFC 1035, section 4.2.2).
//!
//! Nothing is ever skipped: the first fault makes the file unusable.

use proto::query::{
    Edns, OPTION_KEEPALIVE, OPTION_NSID, OPTION_PADDING, QueryOptions, write_query,
};
use proto::response::Header;
use proto::{name, rr};

use crate::line_options;
use crate::names_error::{Fault, FilePosition, NAME_HINT, NamesError, name_fault};
use crate::questions::{EdnsUses, QuestionSet};
use crate::words::{self, Quotes, Word};

/// CLASS IN (RFC 1035, section 3.2.4).
const CLASS_IN: u16 = 1;

const LINE_HINT: &str = "write a name and a type on each line, such as `www.example.com AAAA`";

/// Reads the text format; queries carry `defaults` unless options on their line say otherwise.
///
/// # Errors
/// The first line at fault, or that there is no question at all.
pub fn parse_text(text: &[u8], defaults: &QueryOptions) -> Result<QuestionSet, NamesError> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = TextReader {
        defaults,
        questions: QuestionSet::new(),
        qname: Vec::new(),
        message: Vec::new(),
    };
    let mut words = Vec::new();
    for (index, line) in text.split(|&octet| octet == b'\n').enumerate() {
        reader
            .read_line(line, &mut words)
            .map_err(|fault| fault.at_line(index + 1, &String::from_utf8_lossy(line)))?;
    }
    if reader.questions.is_empty() {
        return Err(empty(LINE_HINT));
    }
    Ok(reader.questions)
}

fn empty(hint: &str) -> NamesError {
    NamesError {
        place: FilePosition::Whole,
        what: "it has no questions".into(),
        hint: hint.into(),
    }
}

struct TextReader<'d> {
    defaults: &'d QueryOptions,
    questions: QuestionSet,
    // Reused, so that a million lines do not cost a million allocations.
    qname: Vec<u8>,
    message: Vec<u8>,
}

impl TextReader<'_> {
    fn read_line<'t>(&mut self, line: &'t [u8], words: &mut Vec<Word<'t>>) -> Result<(), Fault> {
        let Some(line) = words::line_text(line)? else {
            return Ok(());
        };
        words::split(line, Quotes::Plain, words)?;
        if let Some(comment) = words.iter().position(|word| word.text.starts_with('#')) {
            words.truncate(comment);
        }
        let Some((qname, rest)) = words.split_first() else {
            return Ok(());
        };
        let options_at = rest
            .iter()
            .position(|word| word.text.starts_with(['+', '-']))
            .unwrap_or(rest.len());
        let (kind, options) = rest.split_at(options_at);
        self.qname.clear();
        name::parse(qname.text, &mut self.qname)
            .map_err(|error| qname.fault(name_fault(qname.text, error), NAME_HINT))?;
        let (qtype, qclass) = type_and_class(qname, kind)?;
        if options.is_empty() {
            return self.push((qtype, qclass), self.defaults, qname);
        }
        let mut changed = self.defaults.clone();
        line_options::apply(options, &mut changed)?;
        self.push((qtype, qclass), &changed, qname)
    }

    fn push(
        &mut self,
        (qtype, qclass): (u16, u16),
        options: &QueryOptions,
        place: &Word<'_>,
    ) -> Result<(), Fault> {
        self.message.clear();
        write_query(&self.qname, qtype, qclass, options, &mut self.message).map_err(|_| {
            let what = "a query of more than 65,535 bytes";
            place.fault(what, "give fewer or shorter EDNS options")
        })?;
        self.questions.push(&self.message, self.qname.len() + 4);
        if let Some(edns) = &options.edns {
            self.questions.note_edns_uses(edns_uses(edns));
        }
        Ok(())
    }
}

/// The EDNS options of an OPT record, for [`QuestionSet::note_edns_uses`].
pub fn edns_uses(edns: &Edns) -> EdnsUses {
    let has = |wanted: u16| edns.options.iter().any(|(code, _)| *code == wanted);
    EdnsUses {
        padding: edns.padding_block_octets.is_some() || has(OPTION_PADDING),
        keepalive: has(OPTION_KEEPALIVE),
        nsid: has(OPTION_NSID),
    }
}

/// The type and class that `kind`, the words between name and options, stand for.
pub(crate) fn type_and_class(qname: &Word<'_>, kind: &[Word<'_>]) -> Result<(u16, u16), Fault> {
    match kind {
        [] => {
            let column = qname.column + qname.text.len();
            Err(Fault::new(column, "no type after the name", LINE_HINT))
        }
        [qtype] => Ok((type_number(qtype)?, CLASS_IN)),
        [first, second] => {
            let numbers = |qtype: &Word<'_>, qclass: &Word<'_>| {
                Some((
                    rr::type_from_text(qtype.text)?,
                    rr::class_from_text(qclass.text)?,
                ))
            };
            match numbers(second, first).or_else(|| numbers(first, second)) {
                Some(numbers) => Ok(numbers),
                None if rr::class_from_text(first.text).is_some() => Err(unknown_type(second)),
                None => {
                    type_number(first)?;
                    Err(unexpected(second))
                }
            }
        }
        [first, _, third, ..] => {
            if rr::class_from_text(first.text).is_none() {
                type_number(first)?;
            }
            Err(unexpected(third))
        }
    }
}

fn type_number(word: &Word<'_>) -> Result<u16, Fault> {
    rr::type_from_text(word.text).ok_or_else(|| unknown_type(word))
}

fn unknown_type(word: &Word<'_>) -> Fault {
    let hint = "types are mnemonics such as A, AAAA, MX, TXT, or `TYPE` and a number";
    word.fault(format!("unknown type `{}`", word.text), hint)
}

fn unexpected(word: &Word<'_>) -> Fault {
    let hint = "after name, class and type only options follow, such as `+do`; comments start \
                with `;`";
    word.fault(format!("unexpected `{}`", word.text), hint)
}

const STREAM_HINT: &str = "the stream format is whole DNS queries, each after its two-byte length, \
    as a client writes them to a TCP connection";

/// Reads the stream format; messages stay as they are but for their ID, which becomes 0.
///
/// # Errors
/// The first message that is cut off, is a response, has not exactly one question, or whose
/// question is malformed; or that there is no message at all.
pub fn parse_stream(bytes: &[u8]) -> Result<QuestionSet, NamesError> {
    read_stream(bytes, |message, questions| {
        questions.push_any(message, question_octets(message)?);
        Ok(())
    })
}

fn read_stream(
    bytes: &[u8],
    mut push: impl FnMut(&[u8], &mut QuestionSet) -> Result<(), String>,
) -> Result<QuestionSet, NamesError> {
    let mut questions = QuestionSet::new();
    let mut offset = 0;
    while offset < bytes.len() {
        let read = take_message(&bytes[offset..]).and_then(|taken| {
            push(taken, &mut questions)?;
            Ok(2 + taken.len())
        });
        match read {
            Ok(octets) => offset += octets,
            Err(what) => {
                let number = questions.len() + 1;
                return Err(NamesError {
                    place: FilePosition::Message { number, offset },
                    what,
                    hint: STREAM_HINT.into(),
                });
            }
        }
    }
    if questions.is_empty() {
        return Err(empty(STREAM_HINT));
    }
    Ok(questions)
}

/// As [`parse_stream`], with messages of any content: empty ones, responses, no DNS messages.
///
/// # Errors
/// The first message that is cut off, or that there is no message at all.
pub fn parse_any_stream(bytes: &[u8]) -> Result<QuestionSet, NamesError> {
    read_stream(bytes, |message, questions| {
        questions.push_any(message, question_octets(message).unwrap_or(0));
        Ok(())
    })
}

/// The message at the start of `bytes`, without its length prefix.
fn take_message(bytes: &[u8]) -> Result<&[u8], String> {
    let (prefix, rest) = bytes
        .split_first_chunk::<2>()
        .ok_or("cut off within the length prefix")?;
    let octets = usize::from(u16::from_be_bytes(*prefix));
    rest.get(..octets)
        .ok_or_else(|| format!("cut off: {} of {octets} bytes are there", rest.len()))
}

/// The length of the one question of the query `message`.
fn question_octets(message: &[u8]) -> Result<usize, String> {
    let header = Header::parse(message)
        .ok_or_else(|| format!("{} bytes are too few for a header", message.len()))?;
    if header.is_response {
        return Err("a response (QR is 1), not a query".into());
    }
    if header.question_count != 1 {
        return Err(format!("{} questions, not one", header.question_count));
    }
    let qname_octets =
        name::wire_length(&message[12..]).ok_or("its question holds no whole domain name")?;
    let question_octets = qname_octets + 4;
    if message.len() < 12 + question_octets {
        return Err("cut off within the question".into());
    }
    Ok(question_octets)
}

#[cfg(test)]
mod tests;
