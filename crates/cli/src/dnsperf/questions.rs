//! The input file: questions, messages as on a TCP connection, or dynamic updates.
//!
//! What is no question or no update does not end the run: it is left out with a warning in the
//! words of dnsperf.

use std::borrow::Cow;
use std::io::Read;

use load::{QuestionSet, names_file, update_file};
use proto::query::QueryOptions;
use proto::{Transport, name, rr};

use super::args::{Input, Settings};
use super::complaint::{Complaint, Messages};
use super::options::SEND_FAILED;

use crate::streams;

/// Blanks between the words of a line.
const BLANKS: [char; 3] = [' ', '\t', '\n'];
/// What a query of a `-B` file is called in a line of `-v`.
const BINARY: &str = "binary input";
/// Octets of a word of an update's line that dnsperf has room for.
const WORD_OCTETS_MAX: usize = 255;
/// Octets that a datagram has room for (RFC 768; RFC 791 leaves 20 octets for the IP header).
const DATAGRAM_OCTETS_MAX: usize = 65_507;

/// What is to be sent.
#[derive(Debug, Default)]
pub(super) struct Questions {
    pub(super) set: QuestionSet,
    pub(super) lines: Lines,
    /// Lines or updates that were left out.
    pub(super) left_out: usize,
    /// Lines that start with `#`: comments here and to dnsperf nothing, configuration to queryperf.
    pub(super) configuration: Vec<String>,
}

/// The line of each question, kept if lines for single queries are printed.
#[derive(Debug, Default)]
pub(super) struct Lines {
    texts: Vec<Box<str>>,
}

impl Lines {
    /// The line of a question by its position.
    pub(super) fn get(&self, question: u32) -> &str {
        self.texts
            .get(question as usize)
            .map_or(BINARY, |text| text)
    }
}

/// Reads what is to be sent, which may be nothing that can be.
///
/// # Errors
/// The file cannot be read, or holds nothing at all; a `-B` file is cut off.
pub(super) fn read(settings: &Settings, messages: &Messages) -> Result<Questions, Complaint> {
    let octets = read_octets(&settings.input)?;
    let mut read = if settings.binary {
        read_messages(&octets)?
    } else {
        let blocks = match settings.updates {
            true => update_blocks(&octets),
            false => lines(&octets).collect(),
        };
        if blocks.is_empty() {
            return Err(no_data());
        }
        Reader::new(settings).read(&octets, &blocks, messages)
    };
    read.configuration = configuration(settings, &octets);
    if settings.transport == Transport::Udp {
        read.leave_out_long(settings, messages);
    }
    Ok(read)
}

impl Questions {
    /// Leaves out what no datagram has room for: the kernel would refuse it each time.
    fn leave_out_long(&mut self, settings: &Settings, messages: &Messages) {
        if self.set.message_octets_max() <= DATAGRAM_OCTETS_MAX {
            return;
        }
        let is_told = settings.verbose && !settings.long.suppresses(SEND_FAILED);
        let all = std::mem::take(&mut self.set);
        let mut texts = std::mem::take(&mut self.lines.texts).into_iter();
        for template in all.iter() {
            let text = texts.next();
            if template.message.len() <= DATAGRAM_OCTETS_MAX {
                self.set
                    .push_any(template.message, template.question_octets);
                self.lines.texts.extend(text);
                continue;
            }
            self.left_out += 1;
            if is_told {
                messages.warn("failed to send packet: Message too long");
            }
        }
    }
}

pub(super) fn no_data() -> Complaint {
    Complaint::plain("input file contains no data")
}

fn read_messages(octets: &[u8]) -> Result<Questions, Complaint> {
    let set = names_file::parse_any_stream(octets);
    let set = set.map_err(|error| no_data().with_hint(error.to_string()))?;
    Ok(Questions {
        set,
        ..Questions::default()
    })
}

/// The input's name for people.
pub(super) fn source(settings: &Settings) -> String {
    match &settings.data_file {
        Some(path) => path.display().to_string(),
        None => "standard input".to_owned(),
    }
}

fn read_octets(input: &Input) -> Result<Vec<u8>, Complaint> {
    let mut octets = Vec::new();
    let read = match input {
        Input::Standard => streams::input().read_to_end(&mut octets),
        Input::File(file) => (&**file).read_to_end(&mut octets),
    };
    match read {
        Ok(_) => Ok(octets),
        Err(error) => Err(Complaint::plain(format!("cannot read the input: {error}"))),
    }
}

/// The lines that hold something: neither empty nor a comment.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    text.split(|octet| *octet == b'\n')
        .filter(|line| !line.is_empty() && line[0] != b';')
}

/// Updates: from the line of a zone to that of its `send`, or to the end.
fn update_blocks(text: &[u8]) -> Vec<&[u8]> {
    let mut blocks = Vec::new();
    let place = |line: &[u8]| line.as_ptr() as usize - text.as_ptr() as usize;
    let mut begun: Option<usize> = None;
    let mut end = 0;
    for line in lines(text) {
        let start = *begun.get_or_insert(place(line));
        end = place(line) + line.len();
        if line.eq_ignore_ascii_case(b"send") {
            blocks.push(&text[start..end]);
            begun = None;
        }
    }
    blocks.extend(begun.map(|start| &text[start..end]));
    blocks
}

/// The text with the blanks in its first line escaped: dnsperf takes the whole line as the name of
/// the zone. A comment of our own ends it.
fn with_whole_zone(text: &[u8]) -> Cow<'_, [u8]> {
    let zone = lines(text).next().unwrap_or_default().trim_ascii();
    if zone.contains(&b';') || !zone.iter().any(u8::is_ascii_whitespace) {
        return Cow::Borrowed(text);
    }
    let start = zone.as_ptr() as usize - text.as_ptr() as usize;
    let mut escaped = text[..start].to_vec();
    for octet in zone {
        match octet.is_ascii_whitespace() {
            true => escaped.extend_from_slice(format!("\\{octet:03}").as_bytes()),
            false => escaped.push(*octet),
        }
    }
    escaped.extend_from_slice(&text[start + zone.len()..]);
    Cow::Owned(escaped)
}

fn configuration(settings: &Settings, octets: &[u8]) -> Vec<String> {
    if settings.binary {
        return Vec::new();
    }
    let found = lines(octets).filter(|line| line[0] == b'#');
    found
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect()
}

struct Reader<'s> {
    settings: &'s Settings,
    options: QueryOptions,
}

impl<'s> Reader<'s> {
    fn new(settings: &'s Settings) -> Self {
        let options = QueryOptions {
            edns: settings.edns.clone(),
            recursion_desired: settings.recursion,
            ..QueryOptions::default()
        };
        Reader { settings, options }
    }

    /// All at once where that is possible: a million lines one by one take longer.
    fn read(&self, text: &[u8], blocks: &[&[u8]], messages: &Messages) -> Questions {
        let is_plain = !blocks.iter().any(|block| starts_blank(block));
        if !self.settings.verbose
            && is_plain
            && let Some(set) = self.parse(text)
        {
            return Questions {
                set,
                ..Questions::default()
            };
        }
        let mut questions = Questions::default();
        for block in blocks {
            match self.parse(block).filter(|_| !starts_blank(block)) {
                Some(one) => {
                    questions.set.append(&one);
                    if self.settings.verbose {
                        let first = lines(block).next().unwrap_or_default();
                        let text = String::from_utf8_lossy(first).into_owned();
                        let texts = std::iter::repeat_n(text.into_boxed_str(), one.len());
                        questions.lines.texts.extend(texts);
                    }
                }
                None if self.is_comment(block) => {}
                None => {
                    questions.left_out += 1;
                    let faults = match self.settings.updates {
                        true => update_faults(block, |text| self.parse(text).is_some()),
                        false => vec![fault(&String::from_utf8_lossy(block))],
                    };
                    faults.iter().for_each(|fault| messages.warn(fault));
                }
            }
        }
        questions
    }

    fn parse(&self, text: &[u8]) -> Option<QuestionSet> {
        match self.settings.updates {
            true => {
                let edns = self.options.edns.as_ref();
                update_file::parse_text(&with_whole_zone(text), edns).ok()
            }
            false => names_file::parse_text(text, &self.options).ok(),
        }
    }

    /// Our own comments, with a number sign.
    fn is_comment(&self, block: &[u8]) -> bool {
        !self.settings.updates && block.trim_ascii_start().starts_with(b"#")
    }
}

/// dnsperf takes the name from the start of the line.
fn starts_blank(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'\t'))
}

/// Why a line is no question.
fn fault(line: &str) -> String {
    let mut words = line.split(BLANKS);
    let qname = words.next().unwrap_or_default();
    let qtype = words.find(|word| !word.is_empty());
    let unreadable = || format!("invalid query input format: {line}");
    if qname.is_empty() {
        return unreadable();
    }
    if name::parse(qname, &mut Vec::new()).is_err() {
        return format!("invalid domain name (or out of space): {qname}");
    }
    match qtype {
        Some(qtype) if rr::type_from_text(qtype).is_none() => format!("invalid qtype: {qtype}"),
        _ => unreadable(),
    }
}

/// Why a block is no update. `reads` says whether a whole one is.
fn update_faults(block: &[u8], reads: impl Fn(&[u8]) -> bool) -> Vec<String> {
    let text = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
    let mut lines = lines(block);
    let zone = lines.next().unwrap_or_default();
    let mut so_far = [zone, b"\n"].concat();
    if !reads(&[zone, b"\nsend\n"].concat()) {
        return vec![format!("Unable to parse domain name {}", text(zone))];
    }
    let mut has_updates = false;
    for line in lines {
        let word = text(line);
        let command = word.split(BLANKS).next().unwrap_or_default().to_lowercase();
        if command == "send" {
            break;
        }
        let is_update = ["add", "delete"].contains(&command.as_str());
        let is_known = is_update || ["require", "prohibit"].contains(&command.as_str());
        if !is_known {
            return vec![
                format!("invalid update command: {word}"),
                format!("error processing update command: {word}"),
            ];
        }
        if has_updates && !is_update {
            return vec!["prereqs must precede updates".to_owned()];
        }
        has_updates |= is_update;
        so_far.extend_from_slice(line);
        so_far.push(b'\n');
        if !reads(&[&so_far[..], b"send\n"].concat()) {
            let reason = command_fault(&command, &word);
            return vec![format!("invalid update command, {reason}: {word}")];
        }
    }
    vec![format!("incomplete update: {}", text(zone))]
}

/// What is wrong with the words after `add`, `delete`, `require` or `prohibit`.
fn command_fault(command: &str, line: &str) -> &'static str {
    let mut words = line.split(BLANKS).filter(|word| !word.is_empty()).skip(1);
    let owner = words.next().unwrap_or_default();
    if owner.len() > WORD_OCTETS_MAX {
        return "domain name too large";
    }
    if owner != "@" && name::parse(owner, &mut Vec::new()).is_err() {
        return "invalid name or out of memory";
    }
    let is_addition = command == "add";
    if is_addition {
        match words.next() {
            Some(ttl) if ttl.len() > WORD_OCTETS_MAX => return "TTL string too large",
            Some(ttl) if ttl.parse::<u64>().is_err() => return "TTL invalid",
            _ => {}
        }
    }
    match words.next() {
        None => "TYPE required",
        Some(rtype) if rtype.len() > WORD_OCTETS_MAX => "TYPE string too large",
        Some(rtype) if rr::type_from_text(rtype).is_none() => "TYPE invalid",
        Some(_) if is_addition && words.next().is_none() => "RDATA required",
        Some(_) => "invalid RDATA or out of memory",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_lines_have_the_words_of_dnsperf() {
        for (line, expected) in [
            ("invalid", "invalid query input format: invalid"),
            ("invalid invalid", "invalid qtype: invalid"),
            ("  a.example A", "invalid query input format:   a.example A"),
            ("a..b A", "invalid domain name (or out of space): a..b"),
            ("a..b", "invalid domain name (or out of space): a..b"),
            (
                r"bad\0name A",
                r"invalid domain name (or out of space): bad\0name",
            ),
        ] {
            assert_eq!(fault(line), expected);
        }
    }

    #[test]
    fn faults_of_updates_have_the_words_of_dnsperf() {
        let reads = |text: &[u8]| update_file::parse_text(text, None).is_ok();
        for (block, expected) in [
            ("zone.test", &["incomplete update: zone.test"][..]),
            (
                "zone.test\nwrong",
                &[
                    "invalid update command: wrong",
                    "error processing update command: wrong",
                ],
            ),
            (
                "zone.test\nadd x 60 A 1.2.3\nsend",
                &["invalid update command, invalid RDATA or out of memory: add x 60 A 1.2.3"],
            ),
            (
                "zone.test\nadd x 60 A\nsend",
                &["invalid update command, RDATA required: add x 60 A"],
            ),
            (
                "zone.test\nadd x 60\nsend",
                &["invalid update command, TYPE required: add x 60"],
            ),
            (
                "zone.test\nadd x never A 192.0.2.1\nsend",
                &["invalid update command, TTL invalid: add x never A 192.0.2.1"],
            ),
            (
                "zone.test\ndelete x nothing\nsend",
                &["invalid update command, TYPE invalid: delete x nothing"],
            ),
            (
                "zone.test\nrequire a..b\nsend",
                &["invalid update command, invalid name or out of memory: require a..b"],
            ),
            (
                "zone.test\nadd x 60 A 192.0.2.1\nrequire x\nsend",
                &["prereqs must precede updates"],
            ),
        ] {
            assert_eq!(update_faults(block.as_bytes(), reads), expected, "{block}");
        }
    }

    #[test]
    fn owner_of_256_octets_is_too_large() {
        let line = format!("delete {}", "o".repeat(256));
        assert_eq!(command_fault("delete", &line), "domain name too large");
    }

    #[test]
    fn zone_is_the_whole_line() {
        let text = b"; c\n-e zone x\nadd a 1 A 192.0.2.1\nsend\n";
        let escaped = b"; c\n-e\\032zone\\032x\nadd a 1 A 192.0.2.1\nsend\n";
        assert_eq!(&*with_whole_zone(text), escaped);
        assert!(update_file::parse_text(escaped, None).is_ok());
        for same in [
            &b"zone\nsend"[..],
            b"zone ; ours\nsend",
            b"zone \nsend",
            b"",
        ] {
            assert_eq!(&*with_whole_zone(same), same);
        }
    }

    #[test]
    fn a_file_of_updates_falls_apart_at_each_send() {
        let text = b"; c\na\nadd x\nSEND\n\nb\nsend\nc\n";
        let blocks = update_blocks(text);
        assert_eq!(blocks, [&b"a\nadd x\nSEND"[..], b"b\nsend", b"c"]);
    }
}
