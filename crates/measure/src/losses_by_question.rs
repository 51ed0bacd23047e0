//! Queries without a response, by question.
//!
//! A worker counts them by the question's position in its set ([`WorkerLosses`]); the record has
//! [`LossesByQuestion`], whose questions have names. Records merge by these names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counts::Counts;

/// Questions of a set whose losses are counted each.
pub const EACH_MAX: usize = 1_024;
/// Questions that a record lists.
const LISTED_MAX: usize = 20;
/// A question is silent if it lost this share of its queries: a few of its responses may be from
/// before it fell silent, and the number of its queries is exact to one a worker.
const SILENT_PERCENT: u64 = 95;

/// Losses of one worker, by the position of the question in its set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerLosses {
    /// Queries of the measured run without a response, of the first questions of the set; none if
    /// questions are not distinguished.
    pub each: Box<[u32]>,
    /// Those of all other questions.
    pub others: u64,
}

impl WorkerLosses {
    /// Counters of this many questions.
    pub fn of(questions: usize) -> Self {
        WorkerLosses {
            each: vec![0; questions].into(),
            others: 0,
        }
    }
}

/// Queries of the measured run that timed out or were lost with their connection, by question.
/// Questions are distinguished by name and type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LossesByQuestion {
    /// Questions in the set.
    pub questions: u64,
    /// Questions whose losses were counted each: those among the first 1,024 of a set.
    pub counted: u64,
    /// Number of queries of the counted questions; none unless questions were used in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedInTurn>,
    /// Queries without a response, of the counted questions.
    pub lost: u64,
    /// Queries without a response, of generated names and of questions that were not counted each.
    pub lost_of_others: u64,
    /// Counted questions of which at least one query got no response. After a merge of records that
    /// list only some of them: at least this many.
    pub questions_with_losses: u64,
    /// The questions with most losses, most first, at most 20; of no more questions than that, all.
    #[schemars(length(max = 20))]
    pub most: Vec<QuestionLosses>,
}

/// Number of queries of each question used in turn, to about one query a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskedInTurn {
    /// Queries sent for all counted questions.
    pub sent: u64,
    /// Queries of the least used question.
    pub sent_least: u64,
    /// Questions that lost at least 95 % of their queries.
    pub silent: u64,
    /// Queries sent for these.
    pub silent_sent: u64,
    /// Queries of these without a response.
    pub silent_lost: u64,
}

/// Losses of one question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionLosses {
    /// Its name, such as `www.example.com.`.
    pub name: String,
    /// Its type, such as `AAAA`.
    pub qtype: String,
    /// Queries sent for it; none unless questions were used in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Queries of these without a response.
    pub lost: u64,
}

impl QuestionLosses {
    /// True if it lost nearly all of its queries; false where it is unknown how many there were.
    pub fn is_silent(&self) -> bool {
        let sent = self.sent.unwrap_or(0);
        sent > 0 && self.lost * 100 >= sent * SILENT_PERCENT
    }

    fn is_of(&self, other: &QuestionLosses) -> bool {
        self.name == other.name && self.qtype == other.qtype
    }
}

impl LossesByQuestion {
    /// Of all counted questions, in any order, those with losses and those without; `others` are
    /// the questions that were not counted each, with their losses.
    pub fn of(each: Vec<QuestionLosses>, (others, lost_of_others): (u64, u64)) -> Self {
        let mut losses = LossesByQuestion {
            questions: each.len() as u64 + others,
            lost_of_others,
            most: each,
            ..LossesByQuestion::default()
        };
        losses.sum_up();
        losses
    }

    /// Computes all sums of a complete list.
    fn sum_up(&mut self) {
        let each = &mut self.most;
        each.sort_by(|a, b| {
            let more = b.lost.cmp(&a.lost);
            more.then_with(|| (&a.name, &a.qtype).cmp(&(&b.name, &b.qtype)))
        });
        self.counted = each.len() as u64;
        self.lost = each.iter().map(|it| it.lost).sum();
        self.questions_with_losses = each.iter().filter(|it| it.lost > 0).count() as u64;
        let sent: Option<Vec<u64>> = each.iter().map(|it| it.sent).collect();
        self.asked = sent.filter(|it| !it.is_empty()).map(|sent| {
            let silent = || each.iter().filter(|it| it.is_silent());
            AskedInTurn {
                sent: sent.iter().sum(),
                sent_least: sent.iter().copied().min().unwrap_or(0),
                silent: silent().count() as u64,
                silent_sent: silent().filter_map(|it| it.sent).sum(),
                silent_lost: silent().map(|it| it.lost).sum(),
            }
        });
    }

    /// Leaves the questions with most losses.
    pub fn shorten(&mut self) {
        self.most.truncate(LISTED_MAX);
    }

    /// Checks that no more queries were lost than the run counts.
    pub(crate) fn check(&self, counts: &Counts) -> Result<(), String> {
        let lost = counts.timeouts + counts.connection_losses;
        let by_question = self.lost.saturating_add(self.lost_of_others);
        match by_question <= lost {
            true => Ok(()),
            false => Err(format!(
                "{by_question} losses by question, but {lost} queries without a response"
            )),
        }
    }

    fn is_complete(&self) -> bool {
        self.most.len() as u64 == self.counted
    }

    /// Adds the losses of clients that asked at the same time: exactly where both list all
    /// questions, else as far as both asked the same ones.
    pub fn merge(&mut self, other: &LossesByQuestion) {
        let is_complete = self.is_complete() && other.is_complete();
        let asked = self.asked.zip(other.asked);
        let merged = LossesByQuestion {
            questions: self.questions.max(other.questions),
            counted: self.counted.max(other.counted),
            asked: asked.and_then(|(own, other)| own.joined(other)),
            lost: self.lost + other.lost,
            lost_of_others: self.lost_of_others + other.lost_of_others,
            questions_with_losses: (self.questions_with_losses).max(other.questions_with_losses),
            most: self.joined(other),
        };
        let not_counted = |it: &Self| it.questions.saturating_sub(it.counted);
        let not_counted = not_counted(self).max(not_counted(other));
        *self = merged;
        if is_complete {
            self.sum_up();
            self.questions = self.counted + not_counted;
        } else {
            self.most.sort_by_key(|it| std::cmp::Reverse(it.lost));
            self.shorten();
        }
    }

    /// The questions that both list, and those of one of them.
    fn joined(&self, other: &LossesByQuestion) -> Vec<QuestionLosses> {
        let mut joined = self.most.clone();
        let is_known = self.asked.is_some() && other.asked.is_some();
        for own in &mut joined {
            let found = other.most.iter().find(|it| it.is_of(own));
            own.lost += found.map_or(0, |it| it.lost);
            let more = other.sent_for(found);
            own.sent = own.sent.filter(|_| is_known).zip(more).map(|(a, b)| a + b);
        }
        for new in &other.most {
            if !self.most.iter().any(|it| it.is_of(new)) {
                let more = self.sent_for(None);
                let sent = new.sent.filter(|_| is_known).zip(more).map(|(a, b)| a + b);
                joined.push(QuestionLosses {
                    sent,
                    ..new.clone()
                });
            }
        }
        joined
    }

    /// Queries sent for a question that was found in the list or not. Of one that is not in it,
    /// as many as for the mean question, for the list lacks it for want of losses.
    fn sent_for(&self, found: Option<&QuestionLosses>) -> Option<u64> {
        match found {
            Some(found) => found.sent,
            None if self.is_complete() => Some(0),
            None => self.asked.map(|it| it.sent / self.counted.max(1)),
        }
    }
}

impl AskedInTurn {
    /// Both, where lists are not complete: known only if both asked for all names, and as many of
    /// them were silent.
    fn joined(self, other: AskedInTurn) -> Option<AskedInTurn> {
        let is_like = self.silent == other.silent && self.sent_least > 0 && other.sent_least > 0;
        is_like.then_some(AskedInTurn {
            sent: self.sent + other.sent,
            sent_least: self.sent_least + other.sent_least,
            silent: self.silent,
            silent_sent: self.silent_sent + other.silent_sent,
            silent_lost: self.silent_lost + other.silent_lost,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name 0` and so on, each with queries sent and lost.
    fn losses(each: &[(u64, u64)]) -> LossesByQuestion {
        let each = each
            .iter()
            .zip(0..)
            .map(|(&(sent, lost), number)| QuestionLosses {
                name: format!("n{number:02}.example."),
                qtype: "A".to_owned(),
                sent: Some(sent),
                lost,
            });
        LossesByQuestion::of(each.collect(), (0, 0))
    }

    fn merged(one: &LossesByQuestion, other: &LossesByQuestion) -> LossesByQuestion {
        let mut merged = one.clone();
        merged.merge(other);
        merged
    }

    #[test]
    fn workers_that_ask_for_different_names_add_up_to_all_of_them() {
        let merged = merged(&losses(&[(10, 10), (0, 0)]), &losses(&[(0, 0), (12, 0)]));
        assert_eq!(merged, losses(&[(10, 10), (12, 0)]));
        let asked = merged.asked.unwrap();
        assert_eq!(
            (asked.silent, asked.silent_sent, asked.sent_least),
            (1, 10, 10)
        );
    }

    #[test]
    fn name_that_one_agent_got_responses_for_is_not_silent() {
        let merged = merged(&losses(&[(10, 10), (10, 0)]), &losses(&[(10, 0), (10, 0)]));
        assert_eq!(merged.asked.unwrap().silent, 0);
    }

    #[test]
    fn long_lists_merge_as_far_as_both_lost_the_same_names() {
        let each = |silent: u64| -> Vec<(u64, u64)> {
            (0..60)
                .map(|number| (10, if number < silent { 10 } else { 0 }))
                .collect()
        };
        let short = |silent| {
            let mut losses = losses(&each(silent));
            losses.shorten();
            losses
        };
        let alike = merged(&short(30), &short(30));
        assert_eq!((alike.lost, alike.counted, alike.most.len()), (600, 60, 20));
        let asked = alike.asked.unwrap();
        assert_eq!(
            (asked.silent, asked.silent_lost, asked.sent),
            (30, 600, 1_200)
        );
        assert!(alike.most.iter().all(QuestionLosses::is_silent));
        // Which of them are silent for both is not in lists of 20.
        assert_eq!(merged(&short(30), &short(25)).asked, None);
    }

    #[test]
    fn unknown_numbers_of_queries_stay_unknown() {
        let mut unknown = losses(&[(10, 10), (10, 0)]);
        unknown.most.iter_mut().for_each(|it| it.sent = None);
        unknown.asked = None;
        let merged = merged(&losses(&[(10, 10), (10, 0)]), &unknown);
        assert_eq!((merged.lost, merged.asked), (20, None));
        assert!(merged.most.iter().all(|it| it.sent.is_none()));
    }
}
