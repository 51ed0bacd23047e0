//! Rules about runs that open connections without queries, and about slow connection set-up.

use super::connections::first_handshake;
use super::finding::{Conclusion, Finding};
use super::phrases::{attempts_by_cause, plain};
use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::notation::{chosen, count, counted, decimal, latency, per_second, share};
use crate::symptoms::set_up::is_short_of_connections;
use crate::symptoms::steps::{SlowestStep, slowest_step};
use crate::symptoms::{Figures, Symptoms};

/// Connections a second that were opened.
fn opened(figures: &Figures<'_>) -> String {
    per_second(figures.record.opened_per_second())
}

/// The requested rate that was not reached, as a sentence.
pub(crate) fn shortfall(figures: &Figures<'_>) -> Option<String> {
    let asked = figures.record.scenario.connections.rate_max?;
    is_short_of_connections(figures).then(|| {
        format!(
            "{} of the {} connections a second that --connect-rate asks for were opened",
            opened(figures),
            chosen(asked)
        )
    })
}

pub(super) fn nothing_opened(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let figures = &symptoms.figures;
    let connections = &figures.counts.connections;
    let scenario = &figures.record.scenario;
    let evidence = match (connections.attempted, connections.failed.total()) {
        (0, _) => "the run was over before the first connection".to_owned(),
        (attempted, 0) => format!(
            "none of {} was over",
            counted(attempted, "connection attempt")
        ),
        (_, failed) => format!(
            "no connection could be opened: {} failed: {}",
            counted(failed, "attempt"),
            attempts_by_cause(&connections.failed, scenario.transport)
        ),
    };
    let advice = first_handshake(symptoms).unwrap_or_else(|| {
        format!(
            "check that a DNS server listens at {} for {}",
            scenario.target, scenario.transport
        )
    });
    Some(Conclusion::new(evidence, advice))
}

pub(super) fn attempts_failed(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let figures = &symptoms.figures;
    let connections = &figures.counts.connections;
    let evidence = format!(
        "{} of {} failed: {}",
        share(connections.failed.total(), connections.attempted),
        counted(connections.attempted, "connection attempt"),
        attempts_by_cause(&connections.failed, figures.record.scenario.transport)
    );
    let rate = plain(0.8 * figures.record.opened_per_second());
    let advice = format!("find the rate that it takes: try --connect-rate {rate}");
    Some(Conclusion::new(evidence, advice))
}

/// Connections were opened at the requested rate.
pub(super) fn rate_held(figures: &Figures<'_>) -> Option<Conclusion> {
    let asked = figures.record.scenario.connections.rate_max?;
    let evidence = match figures.record.asks_nothing() {
        true => format!(
            "{} connections were opened a second, of the {} that --connect-rate asks for",
            opened(figures),
            chosen(asked)
        ),
        false => format!(
            "{} connections were opened a second, as many as --connect-rate allows",
            per_second(figures.record.attempts_per_second())
        ),
    };
    let advice = "raise --connect-rate to find the target's limit";
    Some(Conclusion::new(evidence, advice))
}

/// Every client sets up one connection after the other, which queue at the target.
pub(super) fn queued(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let figures = &symptoms.figures;
    let below = plain(0.7 * figures.record.opened_per_second());
    let advice = format!("for its latency below that limit run with --connect-rate {below}");
    let step = &symptoms.set_up_queued.as_ref()?.step;
    Some(queued_at(figures, step, advice))
}

/// Connections that queued at the target while clients set them up.
pub(super) fn queued_at(
    figures: &Figures<'_>,
    step: &SlowestStep,
    advice: impl Into<String>,
) -> Conclusion {
    let evidence = format!(
        "{}, and they queued at the target: {} p50 {} against the shortest {}",
        busy_with(figures),
        step.name,
        latency(step.p50_ns as f64),
        latency(step.shortest_ns as f64)
    );
    Conclusion::new(evidence, advice)
}

/// Connections that did not queue while clients set them up.
pub(super) fn not_queued(figures: &Figures<'_>, step: &SlowestStep) -> Conclusion {
    let evidence = format!(
        "{}, but nothing queued: {} p50 {} is near the shortest {}",
        busy_with(figures),
        step.name,
        latency(step.p50_ns as f64),
        latency(step.shortest_ns as f64)
    );
    Conclusion::new(evidence, more_clients(figures))
}

fn more_clients(figures: &Figures<'_>) -> String {
    let clients = figures.record.scenario.clients;
    format!("use more clients: --clients {}", 4 * clients)
}

fn busy_with(figures: &Figures<'_>) -> String {
    let rate = match figures.record.asks_nothing() {
        true => opened(figures),
        false => per_second(figures.record.attempts_per_second()),
    };
    format!(
        "{} of {} clients on average were setting up a connection ({rate} a second)",
        decimal(figures.record.setting_up_mean(), 1),
        count(figures.record.scenario.clients)
    )
}

/// Every client sets up one connection after the other, or waits for --reconnect-delay.
pub(super) fn clients_in_use(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let (it, figures) = (symptoms.clients_in_use.as_ref()?, &symptoms.figures);
    let Some(waiting) = it.waiting else {
        return Some(not_queued(figures, &slowest_step(figures)?));
    };
    let evidence = format!(
        "{} of {} clients on average waited for --reconnect-delay ({} connections a second)",
        decimal(waiting, 1),
        count(figures.record.scenario.clients),
        opened(figures)
    );
    Some(Conclusion::new(evidence, more_clients(figures)))
}

pub(super) fn unclear(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let figures = &symptoms.figures;
    let evidence = format!(
        "only {} of {} clients on average were setting up a connection ({} a second), with no \
         worker out of CPU and {} failed",
        decimal(figures.record.setting_up_mean(), 1),
        count(figures.record.scenario.clients),
        opened(figures),
        counted(figures.counts.connections.failed.total(), "attempt")
    );
    Some(Conclusion::new(evidence, "run for longer, on an idle host"))
}

/// Of the admitted connections, a rate of attempts that stays below the limit.
const BELOW: f64 = 0.8;
/// Times more queries on each connection that have fewer of them opened.
const MORE_QUERIES: u32 = 100;

/// Something turns attempts to connect away, and it is not a server that is busy.
pub(super) fn attempts_turned_away(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.attempts_turned_away.as_ref()?;
    let (unanswered, refused) = (it.unanswered > 0, it.refused > 0);
    let what = match it.admitted {
        Some(admitted) => format!(
            "{} new connections were admitted a second, however many were attempted, by a limit on \
             new connections",
            per_second(admitted)
        ),
        None => {
            let others = match (unanswered, refused) {
                (true, false) => " or a full listen queue",
                (false, _) => " or one of several servers behind the address",
                (true, true) => {
                    ", a full listen queue or one of several servers behind the address"
                }
            };
            format!("a limit on new connections{others} turned attempts away all through the run")
        }
    };
    let how = [
        unanswered.then(|| format!("{} got no answer to their SYN", count(it.unanswered))),
        refused.then(|| format!("{} were refused", count(it.refused))),
    ];
    let how: Vec<String> = how.into_iter().flatten().collect();
    let seen = format!(
        "{what}: of {}, {}{}",
        counted(it.attempted, "attempt"),
        how.join(" and "),
        it.p50_ns.map_or(String::new(), |p50_ns| format!(
            "; those that were established answered at once (p50 {})",
            latency(p50_ns as f64)
        ))
    );
    let matters = "the kernel of the target's host answers a SYN, not the server: a firewall or a \
                   load balancer limits new connections, and what the server can do was not \
                   measured";
    let look = "nft list ruleset; iptables -nvL; nstat -az TcpExtListenDrops  (limits on tcp flags \
                syn, and what a full listen queue dropped)";
    let connections = &symptoms.figures.record.scenario.connections;
    let with_queries = connections.queries_max.filter(|each| *each > 0);
    let more = with_queries.map(|each| {
        let each = each.saturating_mul(MORE_QUERIES);
        Cure::throng(format!(
            "--queries-per-connection {each}  (fewer new connections)"
        ))
    });
    let slower = match (it.admitted, connections.rate_max) {
        (Some(admitted), _) => {
            let rate = plain((BELOW * admitted).max(1.0));
            Some(Cure::throng(format!("--connect-rate {rate}")))
        }
        (None, Some(rate)) => Some(Cure::throng(format!(
            "--connect-rate {}  (a limit on new connections admits as many as at this rate; if the \
             share is the same, it is no limit)",
            plain((rate / 2.0).max(1.0))
        ))),
        (None, None) => None,
    };
    let diagnosis = Diagnosis::new("connection attempts", State::Problem, seen, matters)
        .cure(Cure::new(Place::Server, look))
        .cures(more.or(slower));
    Some(diagnosis.into())
}
