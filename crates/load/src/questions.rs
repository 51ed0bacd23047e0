//! The questions of a run, rendered once into message templates.

use proto::framing::PREFIX_OCTETS;
use proto::response::repeats_question;

/// Octets of the header of a message (RFC 1035, section 4.1.1).
const HEADER_OCTETS: usize = 12;
/// Octets of the message ID, with which it starts.
const ID_OCTETS: usize = 2;
/// Octets copied at once, which is faster than a loop over their number: most queries have fewer.
const COPIED_OCTETS: usize = 64;

/// Message templates with ID 0, ready to be copied and given an ID.
#[derive(Clone, Debug, Default)]
pub struct QuestionSet {
    /// Each message behind its length.
    octets: Vec<u8>,
    entries: Vec<Entry>,
    edns_uses: EdnsUses,
    has_messages_without_id: bool,
}

/// EDNS options of some query, which not every transport may carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdnsUses {
    /// Padding (RFC 7830), for transports that encrypt.
    pub padding: bool,
    /// edns-tcp-keepalive (RFC 7828), which is TCP's.
    pub keepalive: bool,
    /// NSID (RFC 5001): responses are counted by server instance.
    pub nsid: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u64,
    message_octets: u16,
    question_octets: u16,
}

/// One template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template<'a> {
    /// The whole message, ID 0, without TSIG.
    pub message: &'a [u8],
    /// Length of its question (or zone) section in octets, which starts at octet 12.
    pub question_octets: usize,
}

impl QuestionSet {
    /// An empty set.
    pub fn new() -> Self {
        QuestionSet::default()
    }

    /// Adds a whole message whose question section is `question_octets` long.
    ///
    /// # Panics
    /// If the message is longer than 65,535 octets or too short for header and question.
    pub fn push(&mut self, message: &[u8], question_octets: usize) {
        assert!(
            message.len() >= HEADER_OCTETS + question_octets,
            "a message holds its header and question"
        );
        self.add(message, question_octets);
    }

    /// Adds octets that need not be a DNS message, with their first two, the ID, set to 0. A
    /// message shorter than a header has no question that a response could repeat.
    ///
    /// # Panics
    /// If there are more than 65,535 octets.
    pub fn push_any(&mut self, octets: &[u8], question_octets: usize) {
        let start = self.add(octets, question_octets);
        if octets.len() >= ID_OCTETS {
            self.octets[start..start + ID_OCTETS].fill(0);
        }
    }

    /// Adds octets as they are; returns where they start.
    fn add(&mut self, octets: &[u8], question_octets: usize) -> usize {
        let message_octets = u16::try_from(octets.len()).expect("checked by the builder");
        self.octets.extend_from_slice(&message_octets.to_be_bytes());
        let start = self.octets.len();
        self.octets.extend_from_slice(octets);
        if octets.len() < ID_OCTETS {
            self.has_messages_without_id = true;
            // Copying writes a whole ID before it cuts the copy: there has to be room for one.
            self.octets.resize(start + COPIED_OCTETS, 0);
        }
        let question_octets = u16::try_from(question_octets).expect("less than the message");
        self.entries.push(Entry {
            start: start as u64,
            message_octets,
            question_octets,
        });
        start
    }

    /// Adds the templates of `other` behind its own.
    pub fn append(&mut self, other: &QuestionSet) {
        for template in other.iter() {
            self.add(template.message, template.question_octets);
        }
        self.note_edns_uses(other.edns_uses);
    }

    /// Records that a query has these EDNS options; raw messages record none.
    pub fn note_edns_uses(&mut self, uses: EdnsUses) {
        self.edns_uses.padding |= uses.padding;
        self.edns_uses.keepalive |= uses.keepalive;
        self.edns_uses.nsid |= uses.nsid;
    }

    /// The EDNS options recorded for any of the queries.
    pub fn edns_uses(&self) -> EdnsUses {
        self.edns_uses
    }

    /// Number of templates.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The template at `index`.
    ///
    /// # Panics
    /// If `index` is not below [`QuestionSet::len`].
    #[inline]
    pub fn get(&self, index: usize) -> Template<'_> {
        let entry = self.entries[index];
        let message = &self.octets[entry.start as usize..][..usize::from(entry.message_octets)];
        Template {
            message,
            question_octets: usize::from(entry.question_octets),
        }
    }

    /// Appends the message of the template at `index`, with a message ID. Allocates only where
    /// `message` has to grow.
    ///
    /// # Panics
    /// If `index` is not below [`QuestionSet::len`].
    #[inline(always)]
    pub fn append_message(&self, index: usize, id: u16, message: &mut Vec<u8>) {
        self.append_template(index, 0, id, message);
    }

    /// The same behind the message's length, as streams have it (RFC 1035, section 4.2.2).
    ///
    /// # Panics
    /// If `index` is not below [`QuestionSet::len`].
    #[inline(always)]
    pub fn append_framed(&self, index: usize, id: u16, stream: &mut Vec<u8>) {
        self.append_template(index, PREFIX_OCTETS, id, stream);
    }

    /// Appends a template, with `prefix_octets` octets before its message.
    #[inline(always)]
    fn append_template(&self, index: usize, prefix_octets: usize, id: u16, to: &mut Vec<u8>) {
        let entry = self.entries[index];
        let from = &self.octets[entry.start as usize - prefix_octets..];
        let octets = prefix_octets + usize::from(entry.message_octets);
        let start = to.len();
        match from.first_chunk::<COPIED_OCTETS>() {
            Some(chunk) if octets <= COPIED_OCTETS => to.extend_from_slice(chunk),
            _ => to.extend_from_slice(&from[..octets]),
        }
        to[start + prefix_octets..][..ID_OCTETS].copy_from_slice(&id.to_be_bytes());
        to.truncate(start + octets);
    }

    /// True if `response` repeats the question of the template at `index` octet for octet.
    ///
    /// # Panics
    /// If `index` is not below [`QuestionSet::len`].
    #[inline(always)]
    pub fn is_repeated_by(&self, index: usize, response: &[u8]) -> bool {
        let entry = self.entries[index];
        let query = &self.octets[entry.start as usize..];
        repeats_question(query, entry.question_octets.into(), response)
    }

    /// All templates, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Template<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// True if some template is too short for a message ID.
    pub fn has_messages_without_id(&self) -> bool {
        self.has_messages_without_id
    }

    /// True if the template at `index` is too short for a message ID: it is sent unchanged, and
    /// cannot be answered.
    pub fn has_no_id(&self, index: usize) -> bool {
        usize::from(self.entries[index].message_octets) < ID_OCTETS
    }

    /// Length of the longest message in octets; 0 for an empty set. Looks at every template.
    pub fn message_octets_max(&self) -> usize {
        let octets = self.entries.iter().map(|entry| entry.message_octets);
        usize::from(octets.max().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_come_back_as_they_were_pushed() {
        let mut set = QuestionSet::new();
        assert!(set.is_empty());
        assert_eq!(set.message_octets_max(), 0);
        set.push(&[1; 17], 5);
        set.push(&[2; 30], 18);
        assert_eq!((set.len(), set.message_octets_max()), (2, 30));
        assert_eq!(set.get(0).message, [1; 17]);
        set.push(&[3; 65], 5);
        let (mut messages, mut stream) = (vec![0], vec![0]);
        for index in 0..3 {
            set.append_message(index, 0x0708, &mut messages);
            set.append_framed(index, 0x090a, &mut stream);
        }
        let expected = [
            &[0, 7, 8][..],
            &[1; 15],
            &[7, 8],
            &[2; 28],
            &[7, 8],
            &[3; 63],
        ]
        .concat();
        assert_eq!(messages, expected);
        let framed = |octets, rest: &[u8]| [&[0, octets, 9, 10][..], rest].concat();
        let messages = [
            framed(17, &[1; 15]),
            framed(30, &[2; 28]),
            framed(65, &[3; 63]),
        ];
        assert_eq!(stream, [&[0][..], &messages.concat()].concat());
        assert_eq!(set.get(1).message, [2; 30]);
        let questions: Vec<usize> = set.iter().map(|t| t.question_octets).collect();
        assert_eq!(questions, [5, 18, 5]);
    }

    #[test]
    fn octets_that_are_no_message_are_copied_as_they_are() {
        let mut set = QuestionSet::new();
        for octets in [&b""[..], b"x", b"xyz", &[7; 100]] {
            set.push_any(octets, 0);
        }
        let (mut messages, mut stream) = (Vec::new(), Vec::new());
        for index in 0..set.len() {
            set.append_message(index, 0x0102, &mut messages);
            set.append_framed(index, 0x0102, &mut stream);
        }
        let long = [&[1, 2][..], &[7; 98]].concat();
        // The ID overwrites a single octet; `Plan::write_query` therefore copies such a template
        // unchanged.
        assert_eq!(messages, [&[1, 1, 2, b'z'][..], &long].concat());
        let framed = [&[0, 0, 0, 1, 1, 0, 3, 1, 2, b'z', 0, 100][..], &long].concat();
        assert_eq!(stream, framed);
        assert_eq!(set.get(0).message, b"");
        assert_eq!(set.get(1).message, b"x");
        assert!(set.has_messages_without_id());
        assert_eq!([0, 1, 2].map(|at| set.has_no_id(at)), [true, true, false]);
    }

    #[test]
    #[should_panic(expected = "holds its header and question")]
    fn a_message_shorter_than_its_question_is_refused() {
        QuestionSet::new().push(&[0; 16], 5);
    }
}
