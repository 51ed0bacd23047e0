//! The rules: what is concluded from the record of a run, a file each.
//!
//! A rule looks at the [`Figures`] of a run and gives what it found: evidence, cures and, where
//! that set the rate, the limit ([`Finding`]). The verdict is the first finding that decides; the
//! doctor and reports show what all of them found. Nothing is concluded anywhere else.
//!
//! A new rule is a file here, its module below and its place in [`RULES`].

use crate::doctor::{Cure, Diagnosis, Place};
use crate::limit::{Limit, Verdict};
use crate::record::RunRecord;

mod agents;
mod answers;
mod beyond_interface;
mod buffers_of_target;
mod conntrack;
mod delayed_acknowledgements;
mod ended;
mod enough;
mod exchanges;
mod figures;
mod finding;
mod handshakes;
mod held;
mod late;
mod lateness;
mod listen_queue;
mod load;
mod losses;
mod message_ids;
mod not_sent;
#[cfg(test)]
pub(crate) mod observed_situations;
mod outage;
mod packet_backlog;
mod path;
mod processor;
mod quota;
mod receive_buffers;
mod resources;
mod scrapes;
mod send_buffers;
mod server_cache;
mod server_clients;
mod server_counts;
mod server_idle;
mod server_log;
mod server_memory;
mod server_processor;
mod server_sockets;
mod server_stopped;
mod server_upstream;
mod set_up;
mod several;
mod simulated;
mod simulated_network;
#[cfg(test)]
pub(crate) mod situations;
mod steal;
mod streams;
mod too_little;
mod truncated;
mod unserved;
mod violations;
mod waits;
mod without_queries;

pub(crate) use figures::Figures;
pub(crate) use finding::Finding;
use finding::{Said, Stage};
pub(crate) use losses::said as losses_said;
pub use several::of_runs;
pub(crate) use simulated::marking;
pub(crate) use without_queries::shortfall;

/// A rule: what it finds in a run.
#[derive(Clone, Copy)]
enum Rule {
    /// At most one thing.
    One(fn(&Figures<'_>) -> Option<Finding>),
    /// One thing or several.
    Several(fn(&Figures<'_>) -> Vec<Finding>),
}

use Rule::{One, Several};

/// All rules, in the order in which what they found is told. What decides is a matter of the
/// finding's [`Stage`]; within a stage, of this order.
const RULES: &[Rule] = &[
    // Runs that only open connections.
    One(without_queries::found),
    // This tool and its host.
    One(resources::found),
    One(processor::found),
    One(lateness::found),
    One(agents::found),
    One(waits::found),
    One(steal::found),
    One(quota::found),
    Several(not_sent::found),
    // What was dropped on the way.
    One(receive_buffers::found),
    One(send_buffers::found),
    One(packet_backlog::found),
    One(conntrack::found),
    One(simulated::found),
    One(path::found),
    // What the target did.
    One(listen_queue::found),
    One(truncated::found),
    Several(answers::found),
    One(message_ids::found),
    One(late::found),
    One(outage::found),
    One(unserved::found),
    One(handshakes::found),
    One(violations::found),
    One(ended::found),
    One(exchanges::found),
    One(streams::found),
    One(held::found),
    One(delayed_acknowledgements::found),
    One(buffers_of_target::found),
    One(beyond_interface::found),
    One(losses::found),
    // What observed servers tell of themselves.
    Several(server_processor::found),
    Several(server_memory::found),
    Several(server_stopped::found),
    Several(server_sockets::found),
    One(server_clients::found),
    One(server_log::found),
    One(server_upstream::found),
    One(server_cache::found),
    One(server_idle::found),
    One(server_counts::found),
    Several(scrapes::found),
    // What is left to conclude.
    One(too_little::found),
    One(load::found),
];

impl Rule {
    fn find(self, figures: &Figures<'_>) -> Vec<Finding> {
        match self {
            One(found) => found(figures).into_iter().collect(),
            Several(found) => found(figures),
        }
    }
}

/// What all rules found, with the cures of those products that were observed.
pub(crate) fn all(figures: &Figures<'_>) -> Vec<Finding> {
    let each = RULES.iter().map(|rule| rule.find(figures));
    let mut all: Vec<Finding> = each.flatten().collect();
    let observed = products(figures.record);
    for finding in all.iter_mut().filter(|_| !observed.is_empty()) {
        let cures = &mut finding.diagnosis.cures;
        cures.retain(|cure| {
            let product = cure.place.product();
            product.is_none_or(|product| observed.contains(&product))
        });
    }
    all
}

/// Products that were observed and have a place for cures of their own.
fn products(record: &RunRecord) -> Vec<&'static str> {
    let facts = record.observations.iter().map(|it| &it.facts);
    let observed: Vec<&str> = facts.filter_map(|it| it.product.as_deref()).collect();
    let known = Place::OF_PRODUCTS.into_iter().filter_map(Place::product);
    known.filter(|it| observed.contains(it)).collect()
}

/// The finding that says what limited the run: of the earliest stage, the first.
pub(crate) fn decisive(findings: &[Finding]) -> Option<&Finding> {
    let decisive = findings.iter().filter(|it| it.is_decisive());
    decisive.min_by_key(|it| it.stage())
}

/// What the load says by itself, where an observed server's own evidence came before it.
pub(crate) fn of_load<'a>(findings: &'a [Finding], decisive: &Finding) -> Option<&'a Finding> {
    let is_observed = matches!(
        decisive.stage(),
        Some(Stage::ServersOwn | Stage::ServersCpu)
    );
    let mut findings = findings.iter().filter(|_| is_observed);
    findings.find(|it| it.stage() == Some(Stage::Load))
}

/// What one run met, the limit that the record's verdict names first.
pub fn of_run(record: &RunRecord) -> Vec<Diagnosis> {
    let figures = Figures::of(record);
    let all = all(&figures).into_iter();
    let met = all.filter(|it| it.said != Said::WhereDecisive);
    let mut found: Vec<Diagnosis> = met.map(|it| it.diagnosis).collect();
    let decisive = record.verdict.evidence.first();
    let limit = match found.iter().position(|it| Some(&it.seen) == decisive) {
        Some(place) => found.remove(place),
        None => of_verdict(&figures),
    };
    found.insert(0, limit);
    found
}

/// The limit itself, where no other finding is about it.
fn of_verdict(figures: &Figures<'_>) -> Diagnosis {
    let verdict = &figures.record.verdict;
    let seen = verdict.evidence.first().cloned().unwrap_or_default();
    let advice = verdict.advice.iter();
    let advice = advice.map(|words| Cure::words(words.clone()));
    let diagnosis = finding::of_limit(verdict.limit, seen).cures(advice);
    match is_busy_server(figures, verdict) {
        true => where_its_time_goes(diagnosis),
        false => diagnosis,
    }
}

/// A real server was driven to its limit, by queries that it answered.
fn is_busy_server(figures: &Figures<'_>, verdict: &Verdict) -> bool {
    let record = figures.record;
    let simulation = record.simulation.as_ref();
    let is_modelled = simulation.is_some_and(|it| it.server.is_some());
    let is_server = verdict.limit == Limit::Server && !verdict.evidence.is_empty();
    is_server && !record.self_test && !is_modelled && !exchanges::decides(figures)
}

/// How to see whether a busy server can do more.
fn where_its_time_goes(mut diagnosis: Diagnosis) -> Diagnosis {
    diagnosis.matters = "whether more threads or less work for each query help shows in the CPU \
                         time of the server: idle threads wait for locks, sockets or logs"
        .to_owned();
    let top = "top -H -n 1 -b -p $(pgrep -o named) | head -20";
    let status = "rndc status | grep -E 'worker threads|query logging|tcp clients'";
    diagnosis
        .cure(Cure::new(Place::Server, top))
        .cure(Cure::new(Place::Server, status))
        .cure(Cure::words(
            "label the runs (--label querylog=on), change one thing (rndc querylog off), \
             measure again (--label querylog=off), and pass both records to throng doctor",
        ))
}

#[cfg(test)]
mod tests {
    use crate::doctor::{Cure, worst};
    use crate::rules::situations::*;

    #[test]
    fn the_limit_comes_first_with_the_advice_of_the_verdict() {
        let found = met(&saturated());
        assert_eq!((found.len(), found[0].topic.as_str()), (1, "limit: server"));
        let cures: Vec<String> = found[0].cures.iter().map(Cure::sentence).collect();
        assert!(cures[0].contains("--rate 7000"), "{cures:?}");
        assert!(
            cures.iter().any(|it| it.contains("rndc status")),
            "{cures:?}"
        );
        assert_eq!(worst(&found), State::Ok);

        let found = met(&in_time(10_000.0));
        assert_eq!((found.len(), found[0].topic.as_str()), (1, "limit: rate"));
        assert!(found[0].cures[0].how.contains("raise --rate"), "{found:?}");
    }
}
