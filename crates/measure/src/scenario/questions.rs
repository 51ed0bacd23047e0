//! What was asked, and how each question was chosen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where questions came from and how they were chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Questions {
    /// A file name, or a description of a built-in set or of generated names.
    pub source: String,
    /// How many there are; where all names were generated, the zone that they are under counts as
    /// one.
    pub count: u64,
    /// How questions were chosen, and what was changed in them.
    pub choice: QuestionChoice,
}

impl Questions {
    /// True if two runs asked alike: but for the seeds of their labels, which should differ.
    pub fn are_like(&self, other: &Questions) -> bool {
        let seedless = |questions: &Questions| {
            let mut questions = questions.clone();
            if let Some(labels) = &mut questions.choice.labels {
                labels.seed = 0;
            }
            questions
        };
        seedless(self) == seedless(other)
    }
}

/// How the question of each query was chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionChoice {
    /// Which question was next.
    pub order: QuestionOrder,
    /// QTYPEs that replaced the questions' own, with their shares; empty if none did.
    pub qtypes: Vec<QtypeShare>,
    /// Labels that were generated, another one for each query; none if none were.
    pub labels: Option<GeneratedLabels>,
    /// Repeated questions; none if questions were chosen otherwise.
    pub repeats: Option<RepeatedQuestions>,
}

/// Which question was next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum QuestionOrder {
    /// One after the other.
    #[default]
    InOrder,
    /// Any, all equally likely.
    Uniform,
    /// Each once in a random order, then each once in another random order.
    Shuffled,
    /// By Zipf's law: the `k`-th with a probability in proportion to `k^-exponent`.
    Zipf {
        /// 0 or more.
        exponent: f64,
    },
    /// By the popularity of names in the profile of the clients.
    Profile,
    /// The one that the capture has there.
    Capture,
}

/// A QTYPE of a mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QtypeShare {
    /// Its mnemonic, such as `AAAA` or `TYPE65280`.
    pub qtype: String,
    /// Share of the queries that had it, 0 to 1.
    pub share: f64,
}

/// Labels that were generated and put before a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneratedLabels {
    /// What they were made of.
    pub form: LabelForm,
    /// Bytes of the shortest, its length byte not counted.
    pub octets_min: u64,
    /// Bytes of the longest.
    pub octets_max: u64,
    /// Their seed; a run with the same seed asks for the same names. 0 for those counted up.
    pub seed: u64,
}

/// What generated labels were made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LabelForm {
    /// Letters and digits; those of ten bytes or more never came twice in a run.
    Random,
    /// Decimal numbers counted up from 0.
    Counted,
}

/// Repeated questions, by the requested share that a cache could answer.
///
/// How many there were is counted, see [`Counts::repeated`](crate::Counts::repeated).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepeatedQuestions {
    /// Share of the queries that was to repeat a question, 0 to 1.
    pub share: f64,
    /// How long after its query a question could be repeated; none for no limit.
    pub ttl_ns: Option<u64>,
    /// Most questions that could be repeated at a time.
    pub names_max: u64,
}
