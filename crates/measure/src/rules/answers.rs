//! What is said of what came back: RCODEs, truncation, and queries without a DNS message.
//!
//! A server that refuses is fast: such a run says nothing about one that answers. Who measures
//! REFUSED or NXDOMAIN names it as good (`--goodput`).

use super::finding::Finding;
use super::phrases::{exempt_generator, send_one, with_room};
use crate::counts::rcode_name;
use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::notation::{count, share};
use crate::symptoms::answers::is_most;
use crate::symptoms::{Figures, Symptoms};

pub(super) fn truncated(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.truncated.as_ref()?;
    let counts = symptoms.figures.counts;
    let seen = format!(
        "{} of the responses were truncated, and {} of the queries got none",
        share(counts.truncated, counts.responses),
        share(counts.timeouts, counts.sent)
    );
    let matters = "truncated responses tell clients to retry over TCP; together with losses, they \
        are the sign of a limit on the rate of responses";
    let diagnosis = Diagnosis::new("truncated responses", State::Warning, seen, matters);
    let diagnosis = match it.is_beside_losses {
        true => diagnosis.cure(exempt_generator()),
        false => diagnosis
            .cure(Cure::throng("--edns-size 1232"))
            .cure(Cure::throng("--tcp-fallback")),
    };
    Some(diagnosis.into())
}

/// A finding for each useless RCODE, the most frequent first.
pub(super) fn useless_responses(symptoms: &Symptoms<'_>) -> Vec<Finding> {
    let Some(it) = &symptoms.useless_responses else {
        return Vec::new();
    };
    let finding = |&(rcode, number): &(u16, u64)| {
        let name = rcode_name(rcode);
        let mut seen = format!(
            "{} of the responses were {name} ({})",
            share(number, it.all),
            count(number)
        );
        let mut state = State::Warning;
        if is_most(number, it.all) {
            seen.push_str(": the figures say nothing about queries that are answered");
            state = State::Problem;
        }
        let diagnosis = Diagnosis::new(name, state, seen, meaning(rcode));
        diagnosis.cures(cures(&symptoms.figures, rcode)).into()
    };
    it.by_rcode.iter().map(finding).collect()
}

/// RCODEs by number (RFC 6895, section 2.3).
const FORMERR: u16 = 1;
const SERVFAIL: u16 = 2;
const NXDOMAIN: u16 = 3;
const NOTIMP: u16 = 4;
const REFUSED: u16 = 5;
const NOTAUTH: u16 = 9;
const BADCOOKIE: u16 = 23;

fn meaning(rcode: u16) -> &'static str {
    match rcode {
        FORMERR => {
            "the server could not read the queries: most often it does not know EDNS, or a \
                    certain EDNS option"
        }
        SERVFAIL => {
            "the server has no answer: a zone that it could not load, upstreams that do \
                     not answer, DNSSEC that does not validate, or too many questions open at once"
        }
        NXDOMAIN => "these names do not exist, and --goodput does not count that as an answer",
        NOTIMP => "the server does not support such queries: the wrong opcode, type or server",
        REFUSED => {
            "the server does not serve these names, or not to this client: a refusal costs \
                    it next to nothing"
        }
        NOTAUTH => "the server is not authoritative for the zone, or does not accept the TSIG key",
        BADCOOKIE => "the server wants the DNS cookie that it gave, and the queries have none",
        _ => "--goodput does not count this RCODE as an answer",
    }
}

/// What to check and to change.
fn cures(figures: &Figures<'_>, rcode: u16) -> Vec<Cure> {
    let good = format!("--goodput {}", rcode_name(rcode));
    match rcode {
        FORMERR => vec![Cure::words(
            "ask without EDNS: leave out --edns-size, --dnssec, --edns-option",
        )],
        SERVFAIL => vec![
            Cure::new(Place::Server, "rndc zonestatus ZONE"),
            send_one(figures),
            Cure::new(Place::Server, "rndc recursing && rndc stats"),
            Cure::named(format!("recursive-clients {};", recursive_clients(figures))),
            Cure::new(Place::UnboundConf, "num-queries-per-thread: 4096"),
        ],
        NXDOMAIN => vec![
            Cure::words("ask for names that exist: --names FILE"),
            Cure::throng(good),
        ],
        REFUSED => vec![
            Cure::words("ask for names of a zone that the server serves: --names FILE"),
            Cure::named("allow-query { any; };"),
            Cure::named("allow-recursion { GENERATOR; };"),
            Cure::new(Place::UnboundConf, "access-control: GENERATOR/32 allow"),
        ],
        NOTAUTH => vec![Cure::words(
            "ask the server of that zone, with a key that it has: --tsig",
        )],
        BADCOOKIE => vec![Cure::named("require-server-cookie no;")],
        _ => vec![send_one(figures), Cure::throng(good)],
    }
}

/// Ten times those in flight, with room to spare.
fn recursive_clients(figures: &Figures<'_>) -> u64 {
    10 * with_room(figures.in_flight as u64)
}

/// Queries that HTTP or their stream ended: the target answers, but not with DNS.
pub(super) fn exchanges_failed(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.exchanges_failed.as_ref()?, &symptoms.figures);
    let failures = &figures.counts.exchange_failures;
    let causes = failures.by_cause(figures.record.scenario.transport);
    let causes = causes.iter();
    let causes = causes.map(|(cause, number)| format!("{} {cause}", count(*number)));
    let seen = format!(
        "{} of the queries were answered without a DNS message: {}",
        share(failures.total(), figures.counts.sent),
        causes.collect::<Vec<_>>().join(", ")
    );
    let matters = "they are not DNS responses: the figures are those of the other queries";
    let topic = "queries without a DNS message";
    if !it.are_many() {
        return Some(Diagnosis::new(topic, State::Warning, seen, matters).into());
    }
    let advice = match it.are_turned_away {
        true => {
            "the target limits the rate of its clients, which is not what it can take: raise that \
             limit, or spread the clients over more addresses with --local-address"
        }
        false => {
            "the figures are of the other queries alone: look at path and method of the request, \
             and at the target's log"
        }
    };
    let diagnosis = Diagnosis::new(topic, State::Problem, seen, matters);
    Some(diagnosis.cure(Cure::words(advice)).into())
}
