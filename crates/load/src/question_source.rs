//! How the question of each query is chosen, and questions that are generated.
//!
//! A [`QuestionSource`] is the setting of a plan, a [`QuestionChooser`] applies it in a worker. It
//! yields [`Question`]s of a few bytes: a template, and the numbers of the QTYPE and label for the
//! template's copy. [`Plan::write_query`] renders the message, and [`Plan::is_answered_by`] renders
//! the question again to compare a response with it. So no generated name is stored while its query
//! is open.
//!
//! | module | contents |
//! |---|---|
//! | `chooser` | the choice of one worker |
//! | `zipf`, `permutation` | ranks by Zipf's law; shuffling without a table |
//! | `qtype_mix` | QTYPEs by weight |
//! | `labels` | from the number of a label to its octets |
//! | `repeats` | what a cache-hit ratio means, and how it is kept |

mod chooser;
mod labels;
mod permutation;
mod qtype_mix;
mod repeats;
#[cfg(test)]
mod tests;
mod validate;
mod zipf;

use std::sync::Arc;
use std::time::Duration;

use proto::framing;
use proto::name;
use proto::query::{QueryOptions, write_query};
use proto::response::question_matches;
use proto::rr::{CLASS_IN, TYPE_A};

use crate::names_file::edns_uses;
use crate::plan::Plan;
use crate::plan_error::PlanError;
use crate::profile::RankedNames;
use crate::questions::{QuestionSet, Template};

pub use chooser::{Choice, QuestionChooser};
pub use labels::{LabelForm, Labels, parse_label_octets};
pub use proto::pending::Question;
pub use qtype_mix::QtypeMix;

/// Octets of the header of a message (RFC 1035, section 4.1.1).
const HEADER_OCTETS: usize = 12;
/// Octets of QTYPE and QCLASS behind a QNAME.
const TYPE_AND_CLASS_OCTETS: usize = 4;

/// How questions are chosen; by default the plan's, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuestionSource {
    /// Which template is next.
    pub order: Order,
    /// Replaces the QTYPEs of all templates; `None` keeps them.
    pub qtypes: Option<QtypeMix>,
    /// Puts a new label before the name of each query; with `repeats` only of queries of the last
    /// template.
    pub labels: Option<Labels>,
    /// A share of the queries repeats earlier questions. The last template is then the zone of
    /// fresh names, those before it are the names to repeat.
    pub repeats: Option<Repeats>,
    /// Names are drawn by the popularity of a profile, instead of by `order`.
    pub ranked: Option<Arc<RankedNames>>,
    /// This plan's part of a list that others share; `None` uses all of it.
    pub part: Option<ListPart>,
}

/// A part of a list that several plans share, so that all questions are equally frequent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListPart {
    /// Queries of the other plans before this part begins; the list is cyclic.
    pub first: u64,
    /// Decides the order of a shuffled list for all of them.
    pub seed: u64,
}

/// Which template is next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Order {
    /// One after the other: worker `w` takes every `workers`-th from the `w`-th on.
    #[default]
    InOrder,
    /// Any, all equally likely.
    Uniform,
    /// Each once in an order given by the seed, then each once in another order.
    Shuffled,
    /// By Zipf's law: the `k`-th with a probability in proportion to `k^-exponent`.
    Zipf {
        /// Finite, 0 or more.
        exponent: f64,
    },
}

/// How many queries repeat a question, and which one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeats {
    /// Share of the queries, above 0 and below 1.
    pub share: f64,
    /// How long a question can be repeated after it was asked; `None` for ever.
    pub ttl: Option<Duration>,
    /// Without a list: how many generated names can be repeated, over all workers.
    pub names_max: u32,
}

impl QuestionSource {
    /// True if questions are not the templates themselves.
    pub fn generates(&self) -> bool {
        self.qtypes.is_some() || self.labels.is_some()
    }

    /// Octets that a generated label adds to a query at most, its length octet included.
    pub fn label_octets_max(&self) -> usize {
        let labels = self.labels.as_ref();
        labels.map_or(0, |labels| labels.wire_octets_max().into())
    }

    /// Appends the first `octets` octets of a template with label and QTYPE of `question`; says how
    /// many octets the label has added.
    #[inline(never)]
    fn write(
        &self,
        template: Template<'_>,
        octets: usize,
        question: Question,
        message: &mut Vec<u8>,
    ) -> usize {
        let start = message.len();
        let (header, rest) = template.message[..octets].split_at(HEADER_OCTETS);
        message.extend_from_slice(header);
        let label_octets = match (&self.labels, question.label().checked_sub(1)) {
            (Some(labels), Some(number)) => labels.write(number, message),
            _ => 0,
        };
        message.extend_from_slice(rest);
        let qtypes = self.qtypes.as_ref();
        if let Some(qtype) = qtypes.and_then(|qtypes| qtypes.qtype(question.qtype())) {
            let end = start + HEADER_OCTETS + label_octets + template.question_octets;
            let at = end - TYPE_AND_CLASS_OCTETS;
            message[at..at + 2].copy_from_slice(&qtype.to_be_bytes());
        }
        label_octets
    }
}

impl Plan {
    /// Appends the message that asks `question`, without TSIG.
    ///
    /// One copy of the template; a label costs some 350 instructions more. Allocates only where
    /// `message` has to grow.
    #[inline(always)]
    pub fn write_query(&self, question: Question, id: u16, message: &mut Vec<u8>) {
        match question.is_plain() {
            true => (self.questions).append_message(question.template as usize, id, message),
            false => self.write_made(question, id, message),
        }
    }

    /// The same behind the length that it has over streams (RFC 1035, section 4.2.2).
    #[inline(always)]
    pub fn write_framed_query(&self, question: Question, id: u16, stream: &mut Vec<u8>) {
        match question.is_plain() {
            true => (self.questions).append_framed(question.template as usize, id, stream),
            false => self.write_framed_made(question, id, stream),
        }
    }

    /// A message that is not the template alone.
    #[inline(never)]
    fn write_made(&self, question: Question, id: u16, message: &mut Vec<u8>) {
        let template = self.questions.get(question.template as usize);
        if self.questions.has_no_id(question.template as usize) {
            return message.extend_from_slice(template.message);
        }
        let (start, octets) = (message.len(), template.message.len());
        let source = &self.question_source;
        source.write(template, octets, question, message);
        message[start..start + 2].copy_from_slice(&id.to_be_bytes());
    }

    #[inline(never)]
    fn write_framed_made(&self, question: Question, id: u16, stream: &mut Vec<u8>) {
        let start = stream.len();
        stream.extend_from_slice(&[0; framing::PREFIX_OCTETS]);
        let message = stream.len();
        self.write_made(question, id, stream);
        // The plan's validation excludes longer messages.
        let octets = (stream.len() - message) as u16;
        stream[start..message].copy_from_slice(&octets.to_be_bytes());
    }

    /// True if `response` carries `question`, see [`question_matches`].
    ///
    /// A generated question is made in `scratch`, whose content is lost.
    #[inline(always)]
    pub fn is_answered_by(
        &self,
        question: Question,
        response: &[u8],
        scratch: &mut Vec<u8>,
    ) -> bool {
        let template = self.questions.get(question.template as usize);
        match question.is_plain() {
            true => question_matches(template.message, template.question_octets, response),
            false => self.made_is_answered_by(question, response, scratch),
        }
    }

    /// The same for a question that is not the template alone.
    #[inline(never)]
    fn made_is_answered_by(
        &self,
        question: Question,
        response: &[u8],
        scratch: &mut Vec<u8>,
    ) -> bool {
        let template = self.questions.get(question.template as usize);
        if self.questions.has_no_id(question.template as usize) {
            return false;
        }
        scratch.clear();
        let octets = HEADER_OCTETS + template.question_octets;
        let source = &self.question_source;
        let label_octets = source.write(template, octets, question, scratch);
        question_matches(scratch, template.question_octets + label_octets, response)
    }
}

/// The one template of names that are generated under `zone`: its own name with QTYPE A.
/// `setting` is what named the zone.
///
/// # Errors
/// The zone is not a name, or a query for it has no room for its EDNS options.
pub fn zone_question(
    setting: &'static str,
    zone: &str,
    options: &QueryOptions,
) -> Result<QuestionSet, PlanError> {
    let mut qname = Vec::new();
    name::parse(zone, &mut qname).map_err(|error| {
        let hint = "give the name of a zone, such as example.org";
        PlanError::new(setting, format!("`{zone}`: {error}"), hint)
    })?;
    let mut message = Vec::new();
    write_query(&qname, TYPE_A, CLASS_IN, options, &mut message).map_err(|error| {
        let hint = "give fewer or shorter EDNS options";
        PlanError::new(setting, error.to_string(), hint)
    })?;
    let mut questions = QuestionSet::new();
    questions.push(&message, qname.len() + TYPE_AND_CLASS_OCTETS);
    if let Some(edns) = &options.edns {
        questions.note_edns_uses(edns_uses(edns));
    }
    Ok(questions)
}
