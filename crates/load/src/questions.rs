//! The questions of a run, rendered once into message templates.

/// Octets of the header of a message (RFC 1035, section 4.1.1).
const HEADER_OCTETS: usize = 12;

/// Message templates with ID 0, ready to be copied and given an ID.
#[derive(Clone, Debug, Default)]
pub struct QuestionSet {
    octets: Vec<u8>,
    entries: Vec<Entry>,
    edns_uses: EdnsUses,
}

/// EDNS options of some query, which not every transport may carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdnsUses {
    /// Padding (RFC 7830), which makes sense where the transport encrypts.
    pub padding: bool,
    /// edns-tcp-keepalive (RFC 7828), which is TCP's.
    pub keepalive: bool,
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
        let start = self.octets.len() as u64;
        let message_octets = u16::try_from(message.len()).expect("checked by the builder");
        self.octets.extend_from_slice(message);
        let question_octets = u16::try_from(question_octets).expect("less than the message");
        self.entries.push(Entry {
            start,
            message_octets,
            question_octets,
        });
    }

    /// Adds the templates of `other` behind its own.
    pub fn append(&mut self, other: &QuestionSet) {
        for template in other.iter() {
            self.push(template.message, template.question_octets);
        }
        self.note_edns_uses(other.edns_uses);
    }

    /// Notes that a query has these EDNS options; messages pushed as they are note none.
    pub fn note_edns_uses(&mut self, uses: EdnsUses) {
        self.edns_uses.padding |= uses.padding;
        self.edns_uses.keepalive |= uses.keepalive;
    }

    /// The EDNS options noted for any of the queries.
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

    /// All templates, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Template<'_>> {
        (0..self.len()).map(|index| self.get(index))
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
        assert_eq!(set.get(1).message, [2; 30]);
        let questions: Vec<usize> = set.iter().map(|t| t.question_octets).collect();
        assert_eq!(questions, [5, 18]);
    }

    #[test]
    #[should_panic(expected = "holds its header and question")]
    fn a_message_shorter_than_its_question_is_refused() {
        QuestionSet::new().push(&[0; 16], 5);
    }
}
