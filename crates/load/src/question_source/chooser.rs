//! Chooses each worker's next question.

use std::sync::Arc;

use proto::Instant;
use proto::pending::{LABEL_MAX, Question};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Order;
use super::permutation::Permutation;
use super::qtype_mix::QtypeMix;
use super::repeats::RepeatChooser;
use super::zipf::Zipf;
use crate::plan::Plan;
use crate::profile::RankedNames;
use crate::questions::QuestionSet;
use crate::random;

/// Keeps the random numbers of the order apart from others that are drawn with the same seed.
const ORDER_STREAM: u64 = 0x6f72_6465_7200_0000; // "order"
/// The same for QTYPEs.
const QTYPE_STREAM: u64 = 0x7174_7970_6573_0000; // "qtypes"

/// The next question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The question.
    pub question: Question,
    /// The same worker asked it before, within the TTL: a cache could answer it. Only known with
    /// `QuestionSource::repeats`.
    pub is_repeat: bool,
}

/// One worker's choice of questions: the same for the same plan and worker. Does not allocate once
/// it is made.
#[derive(Debug)]
pub struct QuestionChooser {
    picks: Picks,
    variations: Variations,
}

/// Which template is next.
#[derive(Debug)]
enum Picks {
    /// In order, templates unchanged: the fast path.
    Plain {
        next: u64,
        step: u64,
        count: u64,
    },
    /// Every `step`-th, from `next` on.
    InOrder {
        next: u64,
        step: u64,
        count: u64,
    },
    Uniform {
        generator: Xoshiro256PlusPlus,
        count: u64,
    },
    /// Like `InOrder`, but in another order each cycle, the same for all workers.
    Shuffled {
        next: u64,
        step: u64,
        count: u64,
        seed: u64,
        permutation: Permutation,
    },
    Zipf {
        generator: Xoshiro256PlusPlus,
        zipf: Zipf,
    },
    Repeats(Box<RepeatChooser>),
    Ranked {
        generator: Xoshiro256PlusPlus,
        names: Arc<RankedNames>,
    },
}

impl QuestionChooser {
    /// The questions of `worker` of the plan.
    pub fn new(plan: &Plan, worker: u32) -> Self {
        // A script may run without questions.
        let count = plan.questions.len().max(1) as u64;
        let worker_of = (worker, plan.workers);
        QuestionChooser {
            picks: Picks::new(plan, count, worker_of),
            variations: Variations::new(plan, worker_of),
        }
    }

    /// The next question, for a query that is due at `now`; instants may not go back.
    #[inline(always)]
    pub fn next(&mut self, now: Instant) -> Choice {
        let (question, is_repeat) = match &mut self.picks {
            Picks::Plain { next, step, count } => {
                let template = take_in_order(next, *step, *count);
                (Question::plain(template), false)
            }
            _ => {
                let made = self.next_made(now);
                (made.question, made.is_repeat)
            }
        };
        Choice {
            question,
            is_repeat,
        }
    }

    #[inline(never)]
    fn next_made(&mut self, now: Instant) -> Choice {
        if let Picks::Repeats(repeats) = &mut self.picks {
            return repeats.next(now, &mut self.variations);
        }
        if let Picks::Ranked { generator, names } = &mut self.picks {
            return Choice {
                question: self.variations.ranked(names, generator),
                is_repeat: false,
            };
        }
        let template = self.picks.take();
        Choice {
            question: self.variations.of(template),
            is_repeat: false,
        }
    }
}

/// `next`, and then the one `step` further; both are below `count`.
#[inline]
fn take_in_order(next: &mut u64, step: u64, count: u64) -> u32 {
    let template = *next;
    let after = template + step;
    *next = if after >= count { after - count } else { after };
    template as u32
}

impl Picks {
    fn new(plan: &Plan, count: u64, (worker, workers): (u32, u32)) -> Self {
        let (source, seed) = (&plan.question_source, plan.seed);
        let is_plain = !source.generates() && !plan.questions.has_messages_without_id();
        let generator = || random::generator(seed, ORDER_STREAM, worker);
        if let Some(repeats) = &source.repeats {
            let chooser = RepeatChooser::new(repeats, count as u32, seed, (worker, workers));
            return Picks::Repeats(Box::new(chooser));
        }
        if let Some(names) = &source.ranked {
            return Picks::Ranked {
                generator: generator(),
                names: Arc::clone(names),
            };
        }
        let (first, seed) = source
            .part
            .map_or((0, seed), |part| (part.first, part.seed));
        let (next, step) = (first + u64::from(worker), u64::from(workers));
        match source.order {
            Order::InOrder if is_plain => Picks::Plain {
                next: next % count,
                step: step % count,
                count,
            },
            Order::InOrder => Picks::InOrder {
                next: next % count,
                step: step % count,
                count,
            },
            Order::Uniform => Picks::Uniform {
                generator: generator(),
                count,
            },
            Order::Shuffled => Picks::Shuffled {
                next: next % count,
                step,
                count,
                seed: (seed ^ ORDER_STREAM).wrapping_add(next / count),
                permutation: Permutation::new(
                    count,
                    (seed ^ ORDER_STREAM).wrapping_add(next / count),
                ),
            },
            Order::Zipf { exponent } => Picks::Zipf {
                generator: generator(),
                zipf: Zipf::new(count, exponent),
            },
        }
    }

    /// The next template, for all but repeats.
    fn take(&mut self) -> u32 {
        let template = match self {
            Picks::Uniform { generator, count } => random::below(generator, *count),
            Picks::Shuffled {
                next,
                step,
                count,
                seed,
                permutation,
            } => {
                let template = permutation.at(*next);
                *next += *step;
                if *next >= *count {
                    *seed = seed.wrapping_add(*next / *count);
                    *next %= *count;
                    *permutation = Permutation::new(*count, *seed);
                }
                template
            }
            Picks::Zipf { generator, zipf } => zipf.next(generator),
            Picks::Plain { next, step, count } | Picks::InOrder { next, step, count } => {
                return take_in_order(next, *step, *count);
            }
            Picks::Repeats(_) | Picks::Ranked { .. } => 0,
        };
        template as u32
    }
}

/// What is put into the copies of templates: QTYPEs and labels, of one worker.
#[derive(Debug)]
pub(super) struct Variations {
    qtypes: Option<(QtypeMix, Xoshiro256PlusPlus)>,
    labels: Option<LabelNumbers>,
    /// The set, if it has messages without room for an ID.
    without_id: Option<Arc<QuestionSet>>,
}

/// Numbers of labels, from 1 and apart from those of other workers.
#[derive(Debug)]
struct LabelNumbers {
    next: u64,
    step: u64,
}

impl Variations {
    fn new(plan: &Plan, (worker, workers): (u32, u32)) -> Self {
        let (source, seed) = (&plan.question_source, plan.seed);
        let qtypes = source.qtypes.as_ref().map(|mix| {
            let generator = random::generator(seed, QTYPE_STREAM, worker);
            (mix.clone(), generator)
        });
        let labels = source.labels.as_ref().map(|_| LabelNumbers {
            next: worker.into(),
            step: workers.into(),
        });
        Variations {
            qtypes,
            labels,
            without_id: { plan.questions.has_messages_without_id() }
                .then(|| Arc::clone(&plan.questions)),
        }
    }

    /// The question that a copy of `template` asks.
    #[inline]
    fn of(&mut self, template: u32) -> Question {
        match (&self.qtypes, &self.labels) {
            (None, None) => self.without_id(template),
            _ => self.labelled(template),
        }
    }

    /// The template unchanged; marked if it has no room for a message ID.
    fn without_id(&self, template: u32) -> Question {
        let plain = Question::plain(template);
        match &self.without_id {
            Some(set) if set.has_no_id(template as usize) => plain.with_label(LABEL_MAX),
            _ => plain,
        }
    }

    /// Draws by the popularity of names; a new name gets a new number.
    fn ranked(&mut self, names: &RankedNames, generator: &mut Xoshiro256PlusPlus) -> Question {
        let numbers = &mut self.labels;
        let fresh = || numbers.as_mut().map_or(0, LabelNumbers::take);
        let (template, label) = names.draw(generator, fresh);
        // It takes years to come to the last one.
        self.typed(template).with_label(label.min(LABEL_MAX))
    }

    /// With a QTYPE of the mix, if there is one.
    pub(super) fn typed(&mut self, template: u32) -> Question {
        let qtype = match &mut self.qtypes {
            Some((mix, generator)) => mix.pick(generator.next_u64()),
            None => 0,
        };
        Question::plain(template).with_qtype(qtype)
    }

    /// With a QTYPE of the mix and a label that was not used before, if there are such.
    pub(super) fn labelled(&mut self, template: u32) -> Question {
        let question = self.typed(template);
        match &mut self.labels {
            Some(numbers) => question.with_label(numbers.take()),
            None => question,
        }
    }
}

impl LabelNumbers {
    fn take(&mut self) -> u64 {
        let number = self.next;
        // Wraps around after some years.
        self.next = (self.next + self.step) % LABEL_MAX;
        number + 1
    }
}
