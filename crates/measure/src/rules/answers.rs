//! Rules about responses: RCODEs, truncation, and queries without a DNS message.
//!
//! A server that refuses is fast: such a run says nothing about one that answers. Who measures
//! REFUSED or NXDOMAIN names it as good (`--goodput`).

use super::finding::Finding;
use super::phrases::{
    at_instances, exempt_generator, lift_rate_limits, list, lower_rate, send_one, with_room,
};
use crate::counts::error_codes::http_status;
use crate::counts::{Counts, Unexpected, rcode_name};
use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::interval::per;
use crate::notation::{count, counted, share};
use crate::scenario::HttpMethod;
use crate::symptoms::answers::{ForOneReason, Useless, UselessResponses, is_most};
use crate::symptoms::{Figures, Symptoms};

/// A finding for each reason, the most frequent first.
pub(super) fn useless_responses(symptoms: &Symptoms<'_>) -> Vec<Finding> {
    let it = symptoms.useless_responses.as_ref();
    let each = it
        .iter()
        .flat_map(|it| it.by_reason.iter().map(move |each| (each, it.all)));
    let are_many = it.is_some_and(UselessResponses::are_many);
    each.map(|(each, all)| useless(symptoms, each, all, are_many))
        .collect()
}

/// The same where all are empty.
pub(super) fn empty_responses(symptoms: &Symptoms<'_>) -> Vec<Finding> {
    let it = symptoms.empty_responses.iter();
    let each = it.flat_map(|it| it.by_reason.iter().map(move |each| (each, it.all)));
    each.map(|(each, all)| useless(symptoms, each, all, true))
        .collect()
}

fn useless(symptoms: &Symptoms<'_>, each: &ForOneReason, all: u64, are_many: bool) -> Finding {
    let figures = &symptoms.figures;
    let (reason, number) = (each.reason, each.number);
    let (topic, what) = match reason {
        Useless::Rcode(rcode) => (rcode_name(rcode), rcode_name(rcode)),
        Useless::Truncated => ("truncated responses", "truncated"),
        Useless::NoName => ("NXDOMAIN", "NXDOMAIN"),
        Useless::NoData => ("NODATA", "NODATA"),
    };
    let mut seen = format!(
        "{} of the responses were {what} ({})",
        share(number, all),
        count(number)
    );
    if reason == Useless::Truncated {
        seen.push_str(&over_tcp(figures.counts));
    }
    if let Some(some) = &each.at {
        seen.push_str(&format!(", nearly all {}", at_instances(some)));
    }
    let mut state = State::Warning;
    // Truncated responses that were completed over TCP are useful.
    let is_lost = reason != Useless::Truncated || are_many;
    if is_lost && is_most(number, all) {
        seen.push_str(": the figures say nothing about queries that are answered");
        state = State::Problem;
    }
    let (matters, cures) = match reason {
        Useless::Rcode(REFUSED) if number < all => (
            "the server does not serve some of these names, or a limit on the rate refuses what \
             exceeds it: a refusal costs it next to nothing",
            refused_at_times(figures, 1.0 - number as f64 / all as f64),
        ),
        Useless::Rcode(rcode) => (meaning(rcode), cures(figures, rcode)),
        Useless::Truncated => truncated(figures),
        Useless::NoName => (
            "a name that does not exist costs a server less than one that does: the zone is not \
             loaded, or the questions are those of another zone",
            vec![
                send_one(figures),
                Cure::words("ask for names that exist: --names FILE"),
                Cure::throng("--goodput NXDOMAIN  (where that is what is measured)"),
            ],
        ),
        Useless::NoData => (
            "the names exist without a record of the type: a response without records is smaller, \
             and cheaper, than one with them",
            vec![
                Cure::words("ask for types that the names have: --names FILE"),
                Cure::throng("--goodput NOERROR  (where that is what is measured)"),
            ],
        ),
    };
    Diagnosis::new(topic, state, seen, matters)
        .cures(cures)
        .into()
}

/// How truncated responses fared over TCP, and what was lost beside them.
fn over_tcp(counts: &Counts) -> String {
    let fallback = &counts.tcp_fallback;
    let lost = share(counts.timeouts, counts.sent);
    match fallback.sent {
        0 => format!(", and {lost} of the queries got no response"),
        sent => format!(
            ", and {} of the {} sent again over TCP got a response",
            share(fallback.responses, sent),
            count(sent)
        ),
    }
}

fn truncated(figures: &Figures<'_>) -> (&'static str, Vec<Cure>) {
    let counts = figures.counts;
    let larger = Cure::throng("--edns-size 1232");
    if counts.timeouts > counts.sent / 100 {
        let matters = "truncated responses tell clients to retry over TCP; together with losses, \
                       they are the sign of a limit on the rate of responses";
        return (matters, vec![exempt_generator()]);
    }
    if counts.tcp_fallback.sent > counts.tcp_fallback.responses {
        let matters = "truncated responses tell clients to retry over TCP, where these got no \
                       response: the server does not answer over TCP, or limits its connections";
        return (matters, vec![Cure::throng("--transport tcp"), larger]);
    }
    let matters = "truncated responses tell clients to retry over TCP: the answers are larger than \
                   what the client or the server allows over UDP, or a limit on the rate of \
                   responses sends them in place of answers";
    let mut cures = vec![larger, Cure::throng("--tcp-fallback"), exempt_generator()];
    if let Some(whole) = whole_and_small(figures) {
        let below = lower_rate(figures, whole);
        let below = format!("{below}: if fewer are truncated then, a limit on the rate does it");
        cures.insert(0, Cure::words(below));
    }
    (matters, cures)
}

/// Bytes of a response that fits into a datagram without EDNS (RFC 1035: 512), whatever its name.
const SMALL_OCTETS: f64 = 300.0;
/// Fewer whole responses are no sample.
const WHOLE_MIN: u64 = 100;

/// The share of the responses that were whole, where most were truncated though whole ones are
/// small: their size is not the reason. A truncated response is as long as its query at least.
fn whole_and_small(figures: &Figures<'_>) -> Option<f64> {
    let counts = figures.counts;
    let whole = counts.responses.saturating_sub(counts.truncated);
    let of_truncated = figures.record.query_octets_mean()? * counts.truncated as f64;
    let each = per(counts.received_octets as f64 - of_truncated, whole as f64);
    let is_half = 2 * counts.truncated > counts.responses;
    let are_small = whole >= WHOLE_MIN && each <= SMALL_OCTETS;
    (is_half && are_small).then(|| whole as f64 / counts.responses as f64)
}

/// If other queries are answered: how to find out whether the rate decides, and what to change.
fn refused_at_times(figures: &Figures<'_>, answered: f64) -> Vec<Cure> {
    let below = Cure::words(format!(
        "{}: if fewer are refused then, a limit on the rate refuses them",
        lower_rate(figures, answered)
    ));
    [below]
        .into_iter()
        .chain(lift_rate_limits())
        .chain(cures(figures, REFUSED))
        .collect()
}

/// Messages of other IDs, questions or sources than those of any query.
pub(super) fn unmatched_messages(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.unmatched_messages.as_ref()?;
    // Names every field, so that a new one cannot be forgotten here.
    let Unexpected {
        wrong_id,
        wrong_question,
        wrong_source,
        malformed,
        queries,
    } = it.by_reason;
    let reasons = vec![
        (wrong_id, "with the ID of no query".to_owned()),
        (
            wrong_question,
            "with another question than that of their query".to_owned(),
        ),
        (
            wrong_source,
            "from another address than the target's".to_owned(),
        ),
        (malformed, "malformed".to_owned()),
        (
            queries,
            "queries (QR=0), not responses (RFC 1035, section 4.1.1)".to_owned(),
        ),
    ];
    let seen = format!(
        "{} matched no query: {}; {} of the queries got no response",
        counted(it.by_reason.total(), "message"),
        list(reasons),
        share(symptoms.figures.unanswered(), symptoms.figures.counts.sent)
    );
    let matters = match 2 * queries > it.by_reason.total() {
        true => {
            "a client takes no query for its response, however fast it comes: a server that does \
             not set the QR bit, or a device that sends the queries back"
        }
        false => {
            "a client drops such messages as forged (RFC 5452, section 9.1), however fast they \
             come: a server that mixes responses up, answers from another address than was asked, \
             or a middlebox that rewrites them"
        }
    };
    let topic = "messages that match no query";
    let diagnosis = Diagnosis::new(topic, State::Problem, seen, matters);
    let cure = match wrong_source > 0 {
        true => Cure::words(
            "let the server answer from the address that is asked (BIND: \
                             listen-on with each address; Unbound: interface-automatic: yes)",
        ),
        false => send_one(&symptoms.figures),
    };
    Some(diagnosis.cure(cure).into())
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
            Cure::words(
                "check the server's log: a zone that is not loaded, or an upstream that does not \
                 answer",
            ),
            Cure::new(Place::Rndc, "rndc zonestatus ZONE"),
            send_one(figures),
            Cure::new(Place::Rndc, "rndc recursing && rndc stats"),
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

/// The server, or a proxy before it, answers the requests with an HTTP error.
pub(super) fn http_errors(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.http_errors.as_ref()?, &symptoms.figures);
    let request = figures.record.scenario.http.as_ref();
    let wanted = request.map_or_else(String::new, |it| {
        format!(" to {} {}", it.method.name(), it.path)
    });
    let seen = format!(
        "HTTP {}{wanted} for {} of {}",
        http_status(it.status),
        count(it.number),
        counted(figures.counts.sent, "query")
    );
    let topic = "HTTP errors";
    let matters = "an HTTP error is no DNS response: the figures say nothing about queries that \
                   the server answers";
    let is_get = request.is_some_and(|it| it.method == HttpMethod::Get);
    let cures = cures_of_status(it.status, is_get);
    let diagnosis = Diagnosis::new(topic, State::Problem, seen, matters);
    Some(diagnosis.cures(cures).into())
}

fn cures_of_status(status: u64, is_get: bool) -> Vec<Cure> {
    let other_method = Cure::throng(match is_get {
        true => "--doh-method post",
        false => "--doh-method get",
    });
    let credentials = Cure::throng("--doh-header 'authorization: ...'");
    match status {
        300..=399 => vec![Cure::words(
            "give the URI that the server redirects to: --server https://HOST/PATH, or \
                 --doh-path /PATH",
        )],
        401 | 407 => vec![credentials],
        403 => vec![
            Cure::words("let the server accept queries from the generator's address"),
            credentials,
        ],
        404 | 410 => vec![Cure::words(
            "give the path at which the server answers DoH: --doh-path /PATH",
        )],
        421 => vec![Cure::throng(
            "--doh-authority HOST  (a name that the server serves)",
        )],
        400 | 405 | 411 | 413 | 414 | 415 | 501 => vec![other_method],
        500..=599 => vec![Cure::words(
            "check the logs of the server and of the proxy before it, and that the DNS server \
             behind the proxy answers",
        )],
        _ => vec![Cure::words(
            "check path (--doh-path), method (--doh-method) and the server's log",
        )],
    }
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
    let advice = match (it.are_turned_away, it.are_mistyped) {
        (true, _) => {
            "the target limits the rate of its clients, which is not what it can take: raise that \
             limit, or spread the clients over more addresses with --local-address"
        }
        (_, true) => {
            "let the server, or the proxy before it, send `content-type: application/dns-message`: \
             clients that check the media type drop its responses"
        }
        _ => {
            "the figures are of the other queries alone: look at path and method of the request, \
             and at the target's log"
        }
    };
    let diagnosis = Diagnosis::new(topic, State::Problem, seen, matters);
    Some(diagnosis.cure(Cure::words(advice)).into())
}
