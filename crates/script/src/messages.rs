//! The messages of a worker's scripted queries: any number can be sent, a bounded number is kept.
//!
//! A *template* is a message with ID 0: one of the questions of the run, or one rendered from a
//! name of the script. Each query holds a *record* with its template and its number in the script;
//! the record's index is what [`proto::pending`] calls its question.
//!
//! Records and templates are reused. A template stays while the script may use it again, until
//! `Messages::age`, and while a record holds it. A record stays for some time after its query has
//! ended, so that a late or duplicate response can be distinguished from an unsolicited one;
//! `ANSWERED_KEPT` and `TIMED_OUT_KEPT` limit this.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use load::QuestionSet;
use load::query_kind::QueryKind;
use load::questions::Template;
use proto::name;
use proto::query::{QueryOptions, write_query};

/// Records kept of queries that were answered: duplicates arrive soon if at all.
const ANSWERED_KEPT: usize = 1_024;
/// Records kept of queries without a response, which may arrive much later.
const TIMED_OUT_KEPT: usize = 65_536;
/// Most kinds of queries (type and options) that are kept parsed; further ones are parsed each
/// time.
const KINDS_MAX: usize = 256;
/// Octets of the QTYPE and QCLASS behind a QNAME.
const TYPE_AND_CLASS_OCTETS: usize = 4;

/// A rendered template.
#[derive(Debug, Default)]
struct Slot {
    message: Vec<u8>,
    question_octets: usize,
    /// Records that hold it.
    records: u32,
    /// The generation of names in which it was last asked; `None` if the script does not know it.
    generation: Option<u64>,
}

/// One query asked.
#[derive(Clone, Copy, Debug)]
struct Record {
    template: u32,
    tag: u32,
    /// Open queries of this record: 2 while a truncated response is repeated over TCP.
    open: u8,
}

/// Templates and records of one worker.
#[derive(Debug)]
pub struct Messages {
    questions: Arc<QuestionSet>,
    defaults: QueryOptions,
    kinds: HashMap<String, QueryKind>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots of the current generation of names, of the one before, and dropped ones that an action
    /// may still refer to.
    young: Vec<u32>,
    old: Vec<u32>,
    aged: Vec<u32>,
    generation: u64,
    records: Vec<Record>,
    answered: VecDeque<u32>,
    timed_out: VecDeque<u32>,
    qname: Vec<u8>,
}

impl Messages {
    pub(crate) fn new(questions: Arc<QuestionSet>, defaults: QueryOptions) -> Self {
        Messages {
            questions,
            defaults,
            kinds: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            young: Vec::new(),
            old: Vec::new(),
            aged: Vec::new(),
            generation: 0,
            records: Vec::new(),
            answered: VecDeque::new(),
            timed_out: VecDeque::new(),
            qname: Vec::new(),
        }
    }

    /// The message of the query whose record is `question`.
    ///
    /// # Panics
    /// If there is no such record.
    #[inline]
    pub fn get(&self, question: u32) -> Template<'_> {
        let template = self.records[question as usize].template as usize;
        let questions = self.questions.len();
        if template < questions {
            return self.questions.get(template);
        }
        let slot = &self.slots[template - questions];
        Template {
            message: &slot.message,
            question_octets: slot.question_octets,
        }
    }

    /// Number of templates and records held.
    pub fn held(&self) -> (usize, usize) {
        (self.slots.len(), self.records.len())
    }

    /// Renders a new template of `name` and `kind`, which the script knows from now on.
    ///
    /// # Errors
    /// What is wrong with name or kind, and the cure.
    pub(crate) fn make(&mut self, name: &str, kind: &str) -> Result<u32, String> {
        self.qname.clear();
        name::parse(name, &mut self.qname).map_err(|error| {
            format!("`{name}` is not a domain name: {error}; labels have 1 to 63 bytes, names 255")
        })?;
        if !self.kinds.contains_key(kind) {
            let read = QueryKind::parse(kind, &self.defaults)?;
            if self.kinds.len() == KINDS_MAX {
                self.kinds.clear();
            }
            self.kinds.insert(kind.to_owned(), read);
        }
        let kind = &self.kinds[kind];
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            // Each slot is held by a name or a record, whose numbers are limited.
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.message.clear();
        let (qtype, qclass) = (kind.qtype, kind.qclass);
        if write_query(&self.qname, qtype, qclass, &kind.options, &mut slot.message).is_err() {
            self.free.push(index);
            return Err("a query of more than 65,535 bytes; give fewer EDNS options".into());
        }
        slot.question_octets = self.qname.len() + TYPE_AND_CLASS_OCTETS;
        slot.generation = Some(self.generation);
        self.young.push(index);
        Ok(self.questions.len() as u32 + index)
    }

    /// The script has used a name of the old generation again.
    pub(crate) fn keep(&mut self, template: u32) {
        if let Some(index) = self.slot_of(template) {
            self.slots[index].generation = Some(self.generation);
            self.young.push(index as u32);
        }
    }

    /// The script has dropped the old generation, and starts a new one.
    pub(crate) fn age(&mut self) {
        self.aged.append(&mut self.old);
        std::mem::swap(&mut self.old, &mut self.young);
        self.generation += 1;
    }

    /// Frees dropped templates, to which no action refers any more.
    pub(crate) fn settle(&mut self) {
        for index in self.aged.drain(..) {
            let slot = &mut self.slots[index as usize];
            // Used again since: it is listed in its new generation too.
            let is_kept = slot.generation.is_some_and(|it| it + 1 >= self.generation);
            if is_kept || slot.generation.is_none() {
                continue;
            }
            slot.generation = None;
            if slot.records == 0 {
                self.free.push(index);
            }
        }
    }

    fn slot_of(&self, template: u32) -> Option<usize> {
        let index = (template as usize).checked_sub(self.questions.len())?;
        (index < self.slots.len()).then_some(index)
    }

    /// A record for a query of `template`, number `tag` in the script.
    pub(crate) fn ask(&mut self, template: u32, tag: u32) -> u32 {
        let used = if self.answered.len() > ANSWERED_KEPT {
            self.answered.pop_front()
        } else if self.timed_out.len() > TIMED_OUT_KEPT {
            self.timed_out.pop_front()
        } else {
            None
        };
        if let Some(slot) = self.slot_of(template) {
            self.slots[slot].records += 1;
        }
        let record = Record {
            template,
            tag,
            open: 1,
        };
        let Some(question) = used else {
            self.records.push(record);
            return self.records.len() as u32 - 1;
        };
        let before = std::mem::replace(&mut self.records[question as usize], record);
        self.release(before.template);
        question
    }

    fn release(&mut self, template: u32) {
        if let Some(index) = self.slot_of(template) {
            let slot = &mut self.slots[index];
            slot.records -= 1;
            if slot.records == 0 && slot.generation.is_none() {
                self.free.push(index as u32);
            }
        }
    }

    /// The script's number of the query whose record is `question`.
    pub(crate) fn tag(&self, question: u32) -> u32 {
        self.records[question as usize].tag
    }

    /// The question is sent once more, beside the query that the script knows of.
    pub fn ask_again(&mut self, question: u32) {
        self.records[question as usize].open += 1;
    }

    /// A query of this record has ended. Its message stays for a while, for late responses.
    ///
    /// # Panics
    /// If it has no open query.
    pub fn end(&mut self, question: u32, was_answered: bool) {
        let record = &mut self.records[question as usize];
        assert!(record.open > 0, "a query that has ended was asked");
        record.open -= 1;
        match (record.open, was_answered) {
            (0, true) => self.answered.push_back(question),
            (0, false) => self.timed_out.push_back(question),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages() -> Messages {
        let mut questions = QuestionSet::new();
        questions.push(&[9; 17], 5);
        Messages::new(Arc::new(questions), QueryOptions::default())
    }

    #[test]
    fn a_question_of_the_run_and_a_name_of_a_script_are_both_messages() {
        let mut messages = messages();
        let first = messages.ask(0, 1);
        assert_eq!(messages.get(first).message, [9; 17]);
        let template = messages.make("a.bc", "AAAA").unwrap();
        let second = messages.ask(template, 2);
        let message = messages.get(second);
        assert_eq!(
            (&message.message[12..], message.question_octets),
            (&b"\x01a\x02bc\0\0\x1c\0\x01"[..], 10)
        );
        assert_eq!((messages.tag(first), messages.tag(second)), (1, 2));
    }

    #[test]
    fn names_that_are_no_longer_asked_make_room_for_others() {
        let mut messages = messages();
        for round in 0..200 {
            for number in 0..100 {
                let name = format!("n{round}-{number}.example");
                let template = messages.make(&name, "A").unwrap();
                let question = messages.ask(template, 1);
                messages.end(question, true);
            }
            messages.age();
            messages.settle();
        }
        // Two generations, and what the records of ended queries hold.
        let (templates, records) = messages.held();
        assert!(templates <= 300 + ANSWERED_KEPT, "{templates}");
        assert!(records <= ANSWERED_KEPT + 2, "{records}");
    }

    #[test]
    fn a_name_that_is_asked_again_and_again_stays() {
        let mut messages = messages();
        let template = messages.make("kept.example", "A").unwrap();
        let before = messages.ask(template, 1);
        let octets = messages.get(before).message.to_vec();
        for number in 0..10_000 {
            messages.make(&format!("n{number}.example"), "A").unwrap();
            if number % 100 == 0 {
                messages.age();
                messages.settle();
                messages.keep(template);
            }
        }
        let after = messages.ask(template, 2);
        assert_eq!(messages.get(after).message, octets);
        assert!(messages.held().0 < 400);
    }

    #[test]
    fn the_message_of_an_ended_query_is_still_known_for_its_late_response() {
        let mut messages = messages();
        let late = messages.make("late.example", "A").unwrap();
        let late = messages.ask(late, 1);
        let octets = messages.get(late).message.to_vec();
        messages.end(late, false);
        for number in 0..20_000 {
            let template = messages.make(&format!("n{number}.example"), "A").unwrap();
            let question = messages.ask(template, 1);
            messages.end(question, true);
            if number % 100 == 0 {
                messages.age();
                messages.settle();
            }
        }
        assert_eq!(messages.get(late).message, octets);
    }

    #[test]
    fn a_question_asked_again_over_tcp_is_held_until_both_have_ended() {
        let mut messages = messages();
        let question = messages.ask(0, 1);
        messages.ask_again(question);
        messages.end(question, true);
        assert!(messages.answered.is_empty());
        messages.end(question, true);
        assert_eq!(messages.answered, [question]);
    }

    #[test]
    fn what_cannot_be_asked_is_said() {
        let mut messages = messages();
        let error = messages.make("a..b", "A").unwrap_err();
        assert!(error.starts_with("`a..b` is not a domain name"), "{error}");
        let error = messages.make("a.b", "NOPE").unwrap_err();
        assert!(error.starts_with("unknown type `NOPE`"), "{error}");
    }
}
