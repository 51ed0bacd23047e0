//! Outages: spans in which nothing came back, each with its beginning, its end and its kind. The
//! rate outside of them is what the run sustained; no rate is advised for the sake of them.

use crate::doctor::{Cure, Diagnosis, State};
use crate::interval::per;
use crate::limit::Limit;
use crate::notation::{count, counted, decimal, rate, share};
use crate::timeline::{Outage, OutageKind};

use super::{Figures, Finding, Stage, enough, handshakes, resources, violations};

/// From this share of the queries on, those that an outage met decide.
const MET_MAX: f64 = 0.001;
/// From this share of the window on, outages decide.
const LENGTH_MAX: f64 = 0.01;

/// An instant or a length, to 10 ms.
fn seconds(ns: u64) -> String {
    format!("{} s", decimal(ns as f64 / 1e9, 2))
}

/// True if there was one that decides.
pub(super) fn decides(figures: &Figures<'_>) -> bool {
    found(figures).is_some_and(|it| it.is_decisive())
}

/// They are more of the run than can be ignored.
fn are_much(figures: &Figures<'_>) -> bool {
    let all = &figures.outages.each;
    let met = all.iter().map(|it| it.lost + it.late).sum();
    let length_ns: u64 = all.iter().map(Outage::length_ns).sum();
    let is_long = per(length_ns as f64, figures.record.measured_ns as f64) >= LENGTH_MAX;
    is_long || enough::is_above(met, figures.counts.offered, MET_MAX)
}

/// One finding for all outages of the kind that took longest.
pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let all = &figures.outages.each;
    let longest = all.iter().max_by_key(|it| it.length_ns())?;
    let is_ours = violations::decides(figures);
    if is_ours && matches!(longest.kind, OutageKind::Silence | OutageKind::Reset) {
        return None;
    }
    let alike: Vec<&Outage> = all.iter().filter(|it| it.kind == longest.kind).collect();
    let mut seen = words(longest, figures);
    if alike.len() > 1 {
        let together = alike.iter().map(|it| it.length_ns()).sum();
        seen.push_str(&format!(
            "; with {} similar ones, {} in all",
            count(alike.len() as u64 - 1),
            seconds(together)
        ));
    }
    if figures.outages.omitted > 0 {
        let omitted = count(figures.outages.omitted);
        seen.push_str(&format!("; {omitted} shorter ones are not in the record"));
    }
    seen.push_str(&outside(figures));
    let (limit, matters) = meaning(longest.kind);
    let diagnosis = Diagnosis::new("outage", State::Problem, seen, matters);
    let found = Finding::met(diagnosis.cures(cures(longest, figures))).beside();
    Some(
        found
            .limits(Stage::Outage, limit)
            .only_if(are_much(figures)),
    )
}

fn words(outage: &Outage, figures: &Figures<'_>) -> String {
    let who = match outage.kind {
        OutageKind::OwnFreeze => "this tool did not get to run",
        OutageKind::Unsendable => "this host could send nothing (interface down, or no route)",
        OutageKind::NoResources => {
            "this host ran out of file descriptors, memory or local ports for new connections"
        }
        OutageKind::Refusal => "the target refused everything",
        OutageKind::Handshakes => "every handshake failed",
        OutageKind::Errors => "every response was an error",
        OutageKind::Reset => "the target reset or closed every connection",
        OutageKind::Silence => "nothing came back",
    };
    let until = match outage.lasts {
        true => "the end".to_owned(),
        false => seconds(outage.end_ns),
    };
    let mut text = format!(
        "an outage of {}: from {} to {until} of the run {who}",
        seconds(outage.length_ns()),
        seconds(outage.begin_ns)
    );
    if figures.outstanding.is_none() {
        text.push_str(&format!(
            "; of {} due in it, {} got no response",
            counted(outage.due, "query"),
            count(outage.lost)
        ));
    }
    text
}

/// What was sustained without them.
fn outside(figures: &Figures<'_>) -> String {
    let outside = &figures.outages.outside;
    if outside.due == 0 {
        return String::new();
    }
    format!(
        "; outside of it {} were answered, {} of the queries lost",
        rate(outside.responses_qps),
        share(outside.lost, outside.due)
    )
}

fn meaning(kind: OutageKind) -> (Limit, &'static str) {
    match kind {
        OutageKind::OwnFreeze => (
            Limit::Generator,
            "what a stalled generator sends late is answered late: latencies and losses of that \
                time are its own",
        ),
        OutageKind::NoResources => (
            Limit::Generator,
            "clients without a connection send nothing, which says nothing about the target",
        ),
        OutageKind::Unsendable => (
            Limit::Network,
            "what never left this host says nothing about the target",
        ),
        _ => (
            Limit::Server,
            "an outage is not overload: a lower rate does not prevent it, and percentiles of the \
                whole run mix two states",
        ),
    }
}

fn cures(outage: &Outage, figures: &Figures<'_>) -> Vec<Cure> {
    let when = format!(
        "{} after {}",
        seconds(outage.begin_ns),
        figures.record.started_at
    );
    match outage.kind {
        OutageKind::OwnFreeze => vec![
            Cure::busiest_processes(),
            Cure::words("run again where nothing suspends or starves this tool"),
        ],
        OutageKind::Unsendable => vec![Cure::shell("ip -s link; ip route")],
        OutageKind::NoResources => {
            resources::found(figures).map_or_else(Vec::new, |it| it.diagnosis.cures)
        }
        OutageKind::Handshakes => {
            handshakes::found(figures).map_or_else(Vec::new, |it| it.diagnosis.cures)
        }
        _ => vec![Cure::words(format!(
            "find out why the target stopped: its log at {when}, restarts, reloads, pauses of its \
             process"
        ))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::situations::*;
    use crate::timeline::Outages;

    const TENTH: u64 = SECOND / 10;

    /// Nothing came back from so many tenths of a second on to so many.
    fn outage(kind: OutageKind, begin: u64, end: u64) -> Outage {
        Outage {
            begin_ns: begin * TENTH,
            end_ns: end * TENTH,
            recovered_ns: end * TENTH,
            kind,
            due: 1_000 * (end - begin),
            lost: 1_000 * (end - begin),
            late: 0,
            lasts: false,
        }
    }

    fn found_of(each: &[Outage]) -> Finding {
        let record = in_time(10_000.0);
        let mut figures = Figures::of(&record);
        figures.outages = Outages {
            each: each.to_vec(),
            ..Outages::default()
        };
        found(&figures).expect("is found")
    }

    #[test]
    fn the_longest_outage_is_told_and_those_alike_are_added_up() {
        let silent = |begin, end| outage(OutageKind::Silence, begin, end);
        let reset = outage(OutageKind::Reset, 80, 90);
        let found = found_of(&[silent(5, 15), silent(20, 50), reset]);
        let seen = found.evidence();
        for part in ["3.00 s: from 2.00 s to 5.00 s", "30,000", "4.00 s in all"] {
            assert!(seen.contains(part), "{seen}");
        }
    }

    #[test]
    fn an_outage_is_the_fault_of_whoever_was_in_the_way() {
        for (kind, limit) in [
            (OutageKind::OwnFreeze, Limit::Generator),
            (OutageKind::NoResources, Limit::Generator),
            (OutageKind::Unsendable, Limit::Network),
            (OutageKind::Refusal, Limit::Server),
            (OutageKind::Handshakes, Limit::Server),
            (OutageKind::Errors, Limit::Server),
            (OutageKind::Reset, Limit::Server),
            (OutageKind::Silence, Limit::Server),
        ] {
            let found = found_of(&[outage(kind, 20, 50)]);
            assert_eq!(found.limit(), Some(limit), "{kind:?}");
        }
    }

    #[test]
    fn an_outage_that_is_short_and_met_hardly_a_query_decides_nothing() {
        let mut short = outage(OutageKind::Silence, 20, 21);
        short.end_ns = short.begin_ns + TENTH / 2;
        (short.due, short.lost) = (5, 5);
        assert_eq!(found_of(&[short]).limit(), None);
        short.lost = 5_000;
        assert_eq!(found_of(&[short]).limit(), Some(Limit::Server));
    }
}
