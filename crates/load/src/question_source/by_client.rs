//! What each client of a population asks: it depends on the seed, the client and how many queries
//! it has asked, and on nothing else. So a population asks the same questions however many workers,
//! processes or hosts it is divided among.

use std::sync::Arc;

use rand_core::Rng;

use super::chooser::{ORDER_STREAM, QTYPE_STREAM};
use super::permutation::Permutation;
use super::zipf::Zipf;
use super::{Order, QtypeMix};
use crate::plan::Plan;
use crate::profile::RankedNames;
use crate::questions::QuestionSet;
use crate::random::{self, Draws};
use proto::pending::{LABEL_MAX, Question};

/// The choice of the clients of one worker.
#[derive(Debug)]
pub(super) struct ByClient {
    /// Number of the first of them in the population.
    first: u32,
    /// Queries that each has asked.
    asked: Vec<u32>,
    /// Clients of the population.
    clients: u64,
    /// Templates.
    count: u64,
    seed: u64,
    picks: Picks,
    qtypes: Option<QtypeMix>,
    has_labels: bool,
    /// The set, if it has messages without room for an ID.
    without_id: Option<Arc<QuestionSet>>,
}

/// Which template is next.
#[derive(Debug)]
enum Picks {
    /// Each client goes through all of them, and is so many further with each query.
    InOrder {
        step: u64,
    },
    Uniform,
    /// Each time around in another order: that of the round which was asked last.
    Shuffled {
        round: u64,
        permutation: Permutation,
    },
    Zipf(Zipf),
    Ranked(Arc<RankedNames>),
}

impl ByClient {
    /// That of a worker; none if the plan's questions are not the clients' own to choose: there is
    /// no population, questions are repeated within their TTL, or a number of queries of all
    /// clients together is to be spread evenly over a list.
    pub(super) fn of(plan: &Plan, worker: u32) -> Option<ByClient> {
        let source = &plan.question_source;
        let is_shared = source.repeats.is_some() || source.part.is_some();
        if !plan.arrival.is_of_clients() || is_shared || plan.queries_max.is_some() {
            return None;
        }
        let (clients, count) = (u64::from(plan.clients), plan.questions.len().max(1) as u64);
        let picks = match (&source.ranked, source.order) {
            (Some(names), _) => Picks::Ranked(Arc::clone(names)),
            (None, Order::InOrder) => Picks::InOrder {
                step: step(clients, count),
            },
            (None, Order::Uniform) => Picks::Uniform,
            (None, Order::Shuffled) => Picks::Shuffled {
                round: 0,
                permutation: Permutation::new(count, plan.seed ^ ORDER_STREAM),
            },
            (None, Order::Zipf { exponent }) => Picks::Zipf(Zipf::new(count, exponent)),
        };
        Some(ByClient {
            first: (0..worker).map(|before| plan.worker_clients(before)).sum(),
            asked: vec![0; plan.worker_clients(worker) as usize],
            clients,
            count,
            seed: plan.seed,
            picks,
            qtypes: source.qtypes.clone(),
            has_labels: source.labels.is_some(),
            without_id: (plan.questions.has_messages_without_id())
                .then(|| Arc::clone(&plan.questions)),
        })
    }

    /// What a client of the worker asks next.
    pub(super) fn next(&mut self, client: u32) -> Question {
        // One that asks for others again, over TCP, has no questions of its own.
        let asked = match self.asked.get_mut(client as usize) {
            Some(asked) => {
                *asked = asked.wrapping_add(1);
                u64::from(asked.wrapping_sub(1))
            }
            None => 0,
        };
        let number = u64::from(self.first) + u64::from(client);
        // Its place among the queries of all clients, if all ask equally often.
        let place = number + asked * self.clients;
        let mut draws = Draws::of(self.seed ^ ORDER_STREAM, place);
        let label = match self.has_labels {
            true => place % LABEL_MAX + 1,
            false => 0,
        };
        let (template, label) = match &mut self.picks {
            Picks::InOrder { step } => ((number + asked * *step) % self.count, label),
            Picks::Uniform => (random::below(&mut draws, self.count), label),
            Picks::Zipf(zipf) => (zipf.next(&mut draws), label),
            Picks::Shuffled { round, permutation } => {
                let own = place / self.count;
                if own != *round {
                    *round = own;
                    let seed = (self.seed ^ ORDER_STREAM).wrapping_add(own);
                    *permutation = Permutation::new(self.count, seed);
                }
                (permutation.at(place % self.count), label)
            }
            Picks::Ranked(names) => {
                let (template, label) = names.draw(&mut draws, || label);
                (u64::from(template), label.min(LABEL_MAX))
            }
        };
        let question = Question::plain(template as u32);
        if let Some(mix) = &self.qtypes {
            let draw = Draws::of(self.seed ^ QTYPE_STREAM, place).next_u64();
            return question.with_qtype(mix.pick(draw)).with_label(label);
        }
        match &self.without_id {
            Some(set) if label == 0 && set.has_no_id(template as usize) => {
                question.with_label(LABEL_MAX)
            }
            _ => question.with_label(label),
        }
    }
}

/// How far a client goes in the list with each query: so that its next ones are those that other
/// clients have not begun with, and that it comes to all of them.
fn step(clients: u64, count: u64) -> u64 {
    let fits = |step: &u64| greatest_common_divisor(*step, count) == 1;
    (clients..clients + count).find(fits).unwrap_or(1)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => greatest_common_divisor(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proto::Transport;
    use settings::ClientArrival;

    use super::*;
    use crate::arrival::Arrival;
    use crate::question_source::{Labels, QuestionSource};

    const QUERIES: usize = 40;

    fn plan(clients: u32, workers: u32, count: usize, order: Order) -> Plan {
        let mut questions = QuestionSet::new();
        for number in 0..count {
            let mut message = vec![0; 12];
            message.extend_from_slice(&[1, b'a' + number as u8, 0, 0, 1, 0, 1]);
            questions.push(&message, 7);
        }
        Plan {
            arrival: Arrival::Clients(ClientArrival::Constant { rate_qps: 1.0 }),
            clients,
            workers,
            question_source: QuestionSource {
                order,
                ..QuestionSource::default()
            },
            seed: 7,
            ..Plan::new(
                ([127, 0, 0, 1], 53).into(),
                Transport::Udp,
                Arc::new(questions),
            )
        }
    }

    /// What each client asks, by its number in the population.
    fn asked(plan: &Plan) -> BTreeMap<u32, Vec<Question>> {
        let mut all = BTreeMap::new();
        for worker in 0..plan.workers {
            let mut chooser = ByClient::of(plan, worker).unwrap();
            for client in 0..plan.worker_clients(worker) {
                let own = (0..QUERIES).map(|_| chooser.next(client)).collect();
                all.insert(chooser.first + client, own);
            }
        }
        all
    }

    #[test]
    fn clients_ask_the_same_however_many_workers_they_are_divided_among() {
        let orders = [
            Order::InOrder,
            Order::Uniform,
            Order::Shuffled,
            Order::Zipf { exponent: 1.0 },
        ];
        for order in orders {
            let alone = asked(&plan(12, 1, 10, order));
            assert_eq!(alone.len(), 12);
            for workers in [2, 5, 12] {
                assert_eq!(asked(&plan(12, workers, 10, order)), alone, "{order:?}");
            }
        }
    }

    #[test]
    fn in_order_each_client_comes_to_all_and_all_are_asked_alike() {
        for (clients, count) in [(1, 10), (10, 10), (12, 8), (7, 20), (40, 4)] {
            let all = asked(&plan(clients, 3.min(clients), count, Order::InOrder));
            let mut each: BTreeMap<u32, usize> = BTreeMap::new();
            for own in all.values() {
                let own: Vec<u32> = own.iter().map(|it| it.template).collect();
                let different: BTreeSet<u32> = own[..count].iter().copied().collect();
                assert_eq!(different.len(), count, "{clients} clients, {count} names");
                own.iter().for_each(|it| *each.entry(*it).or_default() += 1);
            }
            let (least, most) = (each.values().min().unwrap(), each.values().max().unwrap());
            assert!(most - least <= clients as usize, "{each:?}");
        }
    }

    #[test]
    fn labels_are_used_once() {
        let mut plan = plan(12, 5, 1, Order::InOrder);
        plan.question_source.labels = Some(Labels::unique(None, 7).unwrap());
        let labels: Vec<u64> = (asked(&plan).into_values().flatten())
            .map(|it| it.label())
            .collect();
        let different: BTreeSet<u64> = labels.iter().copied().collect();
        assert_eq!(different.len(), labels.len());
        assert!(!different.contains(&0));
    }

    #[test]
    fn a_number_of_queries_is_spread_evenly_over_the_list_and_not_by_client() {
        let mut plan = plan(12, 1, 10, Order::InOrder);
        assert!(ByClient::of(&plan, 0).is_some());
        plan.queries_max = Some(100);
        assert!(ByClient::of(&plan, 0).is_none());
        plan.queries_max = None;
        plan.arrival = Arrival::Closed {
            outstanding: 1,
            rate_qps_max: None,
        };
        assert!(ByClient::of(&plan, 0).is_none());
    }
}
