//! Rules about the latency tail, and about servers that clients left for others.

use super::finding::Finding;
use super::phrases::at_instances;
use crate::doctor::{Cure, Diagnosis, State};
use crate::notation::{count, counted, latency, share};
use crate::symptoms::Symptoms;
use crate::symptoms::tail::TailPattern;

/// Spans that are named.
const NAMED_MAX: usize = 3;

pub(super) fn far_tail(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.far_tail.as_ref()?;
    let distributions = &symptoms.figures.record.total.distributions;
    let seen = format!(
        "{} of the responses ({}) took {} or longer, against a median of {}: {}",
        share(it.number, distributions.service.count()),
        count(it.number),
        latency(it.from_ns as f64),
        latency(it.p50_ns as f64),
        pattern(&it.pattern)
    );
    let matters = "most responses came on time, and these clients waited: a mean or a median does \
                   not show it, and a higher rate does not explain it";
    let state = match it.is_much() {
        true => State::Problem,
        false => State::Warning,
    };
    let diagnosis = Diagnosis::new("responses far late", state, seen, matters);
    Some(diagnosis.cure(Cure::words(cure(&it.pattern))).into())
}

fn at(ns: u64) -> String {
    format!("{:.2} s", ns as f64 / 1e9)
}

fn pattern(pattern: &TailPattern) -> String {
    match pattern {
        TailPattern::Spans(spans) => {
            let named = spans.iter().take(NAMED_MAX);
            let named = named.map(|(begin, end)| format!("from {} to {}", at(*begin), at(*end)));
            let named: Vec<String> = named.collect();
            let more = match spans.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(
                "nearly all in {}, {}{more}",
                counted(spans.len() as u64, "span"),
                named.join(", ")
            )
        }
        TailPattern::Periodic { spans, period_ns } => format!(
            "nearly all in {}, one every {}",
            counted(*spans, "span"),
            at(*period_ns)
        ),
        TailPattern::Clients { late, all } => format!(
            "at {} of {}, each with its source port or connection",
            count(*late),
            counted(*all, "client")
        ),
        TailPattern::Targets { late, all } => {
            format!("at {} of {}", count(*late), counted(*all, "target"))
        }
        TailPattern::Instances(some) => at_instances(some),
        TailPattern::Spread => "at all times, of all clients".to_owned(),
    }
}

fn cure(pattern: &TailPattern) -> &'static str {
    match pattern {
        TailPattern::Spans(_) => {
            "check what the target did in that time: its log, reloads, pauses of its process"
        }
        TailPattern::Periodic { .. } => {
            "check what the target does at that period: zone transfers, statistics, cleaning of \
             its cache, a quota of its container"
        }
        TailPattern::Clients { .. } => {
            "check the threads and the processes of the target: source ports and connections are \
             divided among them, and one of them is slow or stopped"
        }
        TailPattern::Targets { .. } => "measure that target alone",
        TailPattern::Instances(_) => {
            "measure that instance alone, at an address of its own, and look at its log and its \
             CPU; take it out of the service until then"
        }
        TailPattern::Spread => {
            "run the names apart: cache misses, slow upstreams or zones that do not answer take \
             longer than others; --observe the server to see its upstreams"
        }
    }
}

pub(super) fn failovers(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.failovers.as_ref()?;
    let failovers = &symptoms.figures.counts.stub.failovers;
    let causes = vec![
        (failovers.timed_out, "after a timeout".to_owned()),
        (failovers.refused, "because the port was closed".to_owned()),
        (failovers.rcode, "because of the RCODE".to_owned()),
        (failovers.connection, "because of the connection".to_owned()),
    ];
    let seen = format!(
        "clients went on to another server {} ({} of the queries): {}",
        counted(it.number, "time"),
        share(it.number, symptoms.figures.counts.sent),
        super::phrases::list(causes)
    );
    let matters = "a query that goes on to another server waits for its attempt first, and the \
                   servers do not have the load that was asked for";
    let state = match it.are_many() {
        true => State::Problem,
        false => State::Warning,
    };
    let diagnosis = Diagnosis::new("failovers", state, seen, matters);
    let cure = "measure each server alone: --server ADDRESS";
    Some(diagnosis.cure(Cure::words(cure)).into())
}
