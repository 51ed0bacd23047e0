//! The questions of a run, rendered once into message templates.

/// Message templates with ID 0, ready to be copied and given an ID.
#[derive(Clone, Debug, Default)]
pub struct QuestionSet {
    octets: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u64,
    message_octets: u16,
    question_octets: u16,
}

/// One template.
#[derive(Clone, Copy, Debug)]
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
    /// If the message is longer than 65,535 octets.
    pub fn push(&mut self, message: &[u8], question_octets: usize) {
        let start = self.octets.len() as u64;
        let message_octets = u16::try_from(message.len()).expect("checked by the builder");
        self.octets.extend_from_slice(message);
        let question_octets = question_octets as u16;
        self.entries.push(Entry {
            start,
            message_octets,
            question_octets,
        });
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
    #[inline]
    pub fn get(&self, index: usize) -> Template<'_> {
        let entry = self.entries[index];
        let message = &self.octets[entry.start as usize..][..usize::from(entry.message_octets)];
        Template {
            message,
            question_octets: usize::from(entry.question_octets),
        }
    }
}
