//! Clients that have used up their message IDs: 16 bits tell the queries of one client apart.

use crate::doctor::{Cure, Diagnosis, State};
use crate::limit::Limit;
use crate::notation::{count, counted, share};

use super::{Figures, Finding, Stage, enough, unserved};

/// Queries that one client may have open: 65,536 message IDs without those of the 4,096 queries
/// that timed out last.
const OPEN_MAX: u64 = 61_440;
/// Share of the offered queries that may be missing before it matters.
const SHORTFALL_MAX: f64 = 0.001;

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let number = figures.counts.not_sent.no_free_id;
    if number == 0 {
        return None;
    }
    let scenario = &figures.record.scenario;
    let seen = format!(
        "{} ({} of those offered) were not sent: {} had used up {} message IDs ({} queries open \
         each)",
        counted(number, "query"),
        share(number, figures.counts.offered),
        match scenario.clients {
            1 => "the only client".to_owned(),
            clients => format!("some of the {} clients", count(clients)),
        },
        match scenario.clients {
            1 => "its",
            _ => "their",
        },
        count(OPEN_MAX)
    );
    let matters = "a client tells responses apart by 16 bits: an ID is free again when its query \
                   is answered or has timed out";
    let diagnosis = Diagnosis::new("message IDs", State::Problem, seen, matters);
    let clients = Cure::throng(format!("--clients {}", clients_wanted(figures)));
    let stage = match figures.counts.responses {
        0 => Stage::TooLittle,
        _ => unserved::stage(figures),
    };
    let is_enough = enough::is_above(number, figures.counts.offered, SHORTFALL_MAX);
    Some(
        Finding::met(diagnosis.cure(clients))
            .limits(stage, Limit::Generator)
            .only_if(is_enough),
    )
}

/// As many that queries which are never answered have IDs until they time out, and twice as many as
/// there are.
fn clients_wanted(figures: &Figures<'_>) -> u64 {
    let scenario = &figures.record.scenario;
    let open = figures.record.offered_qps() * scenario.timeout_ns as f64 / 1e9;
    let for_all = (open / OPEN_MAX as f64).ceil() as u64;
    for_all.max(2 * scenario.clients)
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn exhausted_message_ids_are_the_generators_limit() {
        let mut record = saturated();
        change_last(&mut record, |interval| {
            interval.counts.offered += 1_000;
            interval.counts.not_sent.no_free_id += 1_000;
        });
        judged(
            &record,
            Limit::Generator,
            "1,000 queries (0.99 % of those offered) were not sent: some of the 10 clients had \
             used up",
            "--clients 20",
        );
    }

    #[test]
    fn clients_that_used_up_their_message_ids_are_too_few() {
        let mut record = saturated();
        change_last(&mut record, |interval| {
            interval.counts.offered += 1_000;
            interval.counts.not_sent.no_free_id += 1_000;
        });
        told(&record, "message IDs").problem("had used up their message IDs", "--clients 20");
    }
}
