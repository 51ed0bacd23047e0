//! Responses that are no use: their RCODE is none of those that count as goodput.
//!
//! A server that refuses is fast: such a run says nothing about one that answers. Whoever measures
//! REFUSED or NXDOMAIN names it as good (`--goodput`).

use crate::counts::rcode_name;
use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::interval::per;
use crate::limit::Limit;
use crate::notation::{count, share};

use super::figures::with_room;
use super::{Figures, Finding, Stage};

/// From this share of the responses on, an RCODE is worth a word.
const SHARE_MIN: f64 = 0.01;
/// From this share on, responses of no use are what the run measured.
const MOST: f64 = 0.5;

/// The result is worthless: most responses are no use.
fn are_most(figures: &Figures<'_>) -> bool {
    let counts = figures.counts;
    let of_use = counts.goodput(&figures.record.scenario.goodput_rcodes);
    let no_use = counts.rcodes.total().saturating_sub(of_use);
    per(no_use as f64, counts.rcodes.total() as f64) >= MOST
}

/// A finding for each such RCODE, the most frequent first.
pub(super) fn found(figures: &Figures<'_>) -> Vec<Finding> {
    let rcodes = &figures.counts.rcodes;
    let all = rcodes.total();
    let good = &figures.record.scenario.goodput_rcodes;
    let named = rcodes.by_rcode.iter().zip(0_u16..);
    let named = named.filter(|(_, rcode)| !good.contains(rcode));
    let named = named.map(|(number, rcode)| (*number, rcode));
    let beyond = [(rcodes.other, rcodes.by_rcode.len() as u16)];
    let mut found: Vec<(u64, u16)> = named
        .chain(beyond)
        .filter(|(number, _)| *number > 0 && per(*number as f64, all as f64) >= SHARE_MIN)
        .collect();
    found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    let are_most = are_most(figures);
    let finding = |(number, rcode)| {
        let is_most = per(number as f64, all as f64) >= MOST;
        finding(figures, number, rcode, is_most).only_if(are_most)
    };
    found.into_iter().map(finding).collect()
}

fn finding(figures: &Figures<'_>, number: u64, rcode: u16, is_most: bool) -> Finding {
    let name = rcode_name(rcode);
    let all = figures.counts.rcodes.total();
    let mut seen = format!(
        "{} of the responses were {name} ({})",
        share(number, all),
        count(number)
    );
    if is_most {
        seen.push_str(": the figures say nothing about queries that are answered");
    }
    let state = match is_most {
        true => State::Problem,
        false => State::Warning,
    };
    let diagnosis = Diagnosis::new(name, state, seen, meaning(rcode));
    Finding::met(diagnosis.cures(cures(figures, rcode))).limits(Stage::NoUse, Limit::Unknown)
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
            ask_one(figures),
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
        _ => vec![ask_one(figures), Cure::throng(good)],
    }
}

/// Ten times those in flight, with room to spare.
fn recursive_clients(figures: &Figures<'_>) -> u64 {
    10 * with_room(figures.in_flight as u64)
}

/// One query by hand, without validation, so that the difference shows.
fn ask_one(figures: &Figures<'_>) -> Cure {
    let target = &figures.record.scenario.target;
    let at = match target.parse::<std::net::SocketAddr>() {
        Ok(address) => format!("@{} -p {}", address.ip(), address.port()),
        Err(_) => format!("@{target}"),
    };
    Cure::shell(format!("dig {at} +cd NAME"))
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn responses_of_no_use_are_said_first_unless_they_are_named_as_good() {
        let mut record = in_time(10_000.0);
        for (rcode, name, cure) in [
            (5, "REFUSED", "allow-query"),
            (2, "SERVFAIL", "rndc zonestatus"),
            (1, "FORMERR", "without EDNS"),
            (4, "NOTIMP", "--goodput NOTIMP"),
        ] {
            record.total.counts.rcodes = Default::default();
            record.total.counts.rcodes.record_many(rcode, 100_000);
            let evidence =
                format!("100.00 % of the responses were {name} (100,000): the figures say");
            judged(&record, Limit::Unknown, &evidence, cure);
            record.scenario.goodput_rcodes = vec![rcode];
            assert_eq!(judge(&record).limit, Limit::Rate);
            record.scenario.goodput_rcodes = vec![0, 3];
        }
    }

    #[test]
    fn rcodes_that_are_no_use_are_named_with_the_servers_settings() {
        let mut record = saturated();
        change_last(&mut record, |interval| {
            interval.counts.rcodes.by_rcode[0] -= 3_000;
            interval.counts.rcodes.by_rcode[2] += 1_500;
            interval.counts.rcodes.by_rcode[5] += 1_500;
        });
        told(&record, "SERVFAIL").warning("1.50 % of the responses", "recursive-clients 10000;");
        told(&record, "REFUSED").warning("(1,500)", "allow-query { any; };");
    }
}
