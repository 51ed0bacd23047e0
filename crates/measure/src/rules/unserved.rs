//! Clients that got no answer to any of their queries while others did: the target serves only so
//! many connections, or some addresses alone.

use crate::counts::Connections;
use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::experience::ClientExperience;
use crate::interval::per;
use crate::limit::Limit;
use crate::notation::{count, counted};
use crate::scenario::{Transport, Transports};

use super::figures::with_room;
use super::{Figures, Finding, Stage, handshakes, receive_buffers};

#[cfg(test)]
mod tests;

/// BIND serves that many TCP clients unless named.conf says otherwise.
const BIND_TCP_CLIENTS: u64 = 150;
/// BIND serves that many HTTP clients of a listener unless named.conf says otherwise.
const BIND_HTTP_CLIENTS: u64 = 300;
/// Unbound serves that many TCP clients with each thread unless unbound.conf says otherwise.
const UNBOUND_TCP_CLIENTS: u64 = 10;
/// Chance may leave that share of the clients without answer that there are.
const CHANCE_MAX: f64 = 0.05;

/// Clients that wanted an answer, and those of them that got none.
pub(super) struct Unserved {
    pub(super) all: u64,
    pub(super) without: u64,
}

/// The clients that got nothing, if that is no chance: they asked in vain, or never had a
/// connection on which they could.
pub(super) fn clients(figures: &Figures<'_>) -> Option<Unserved> {
    let experience = figures.record.experience()?;
    let (asked, served) = (experience.asked(), experience.answered());
    let in_vain = asked.saturating_sub(served);
    let unconnected = unconnected(figures, &experience);
    if served == 0 || in_vain.max(unconnected) == 0 {
        return None;
    }
    // Those without a connection may be among those that asked in vain.
    if unconnected >= in_vain {
        return Some(Unserved {
            all: served + unconnected,
            without: unconnected,
        });
    }
    let is_chance = by_chance(figures, &experience, in_vain) > CHANCE_MAX * in_vain as f64;
    (!is_chance).then_some(Unserved {
        all: asked,
        without: in_vain,
    })
}

/// True if there are such clients and a generator that is short of time is not the reason: the
/// target turned them away; or as many queries and handshakes as there are such clients were in
/// vain, and not even late responses came.
fn is_beyond_this_tool(figures: &Figures<'_>) -> bool {
    let Some(Unserved { without, .. }) = clients(figures) else {
        return false;
    };
    let (counts, warmup) = (figures.counts, &figures.record.warmup.counts);
    let connections = figures.record.connections();
    let failed = &connections.failed;
    let of_host = failed.no_local_port + failed.no_resources;
    if of_host >= without || figures.has_no_time_left() {
        return turned_away(&connections) >= without;
    }
    let read_late = counts.late + warmup.late + receive_buffers::received_but_dropped(figures);
    let queries = figures.unanswered() + counts.not_sent.timed_out_waiting;
    let handshakes = failed.timed_out + connections.abandoned;
    queries + handshakes >= without && 2 * read_late < queries + handshakes
}

/// How early findings decide that say why the load was not the one asked for: before anything is
/// said of the generator, if a lack of time there does not account for clients without any answer.
pub(super) fn stage(figures: &Figures<'_>) -> Stage {
    match is_beyond_this_tool(figures) {
        true => Stage::BeyondThisTool,
        false => Stage::NotTheLoad,
    }
}

/// Clients that tried to connect, and never had a usable connection.
fn unconnected(figures: &Figures<'_>, experience: &ClientExperience) -> u64 {
    if !figures.record.scenario.transport.has_connections() {
        return 0;
    }
    let mut buckets = experience.connections.buckets();
    let none = buckets.find(|(_, highest, _)| *highest == 0);
    let connections = figures.record.connections();
    let usable = figures.record.scenario.usable(&connections);
    let failed = connections.attempted.saturating_sub(usable);
    let none = none.map_or(0, |(_, _, clients)| clients).min(failed);
    // Records of old say nothing of connections: whoever got an answer had one.
    none.min(experience.clients().saturating_sub(experience.answered()))
}

/// Clients that would have got nothing if each query had been lost as often as one of a client
/// that got something.
fn by_chance(figures: &Figures<'_>, experience: &ClientExperience, without: u64) -> f64 {
    let counts = figures.counts;
    // Those without response are the first of the worst.
    let unserved = experience.worst.iter().filter(|it| it.responses == 0);
    let queries: Vec<u64> = unserved.map(|it| it.queries).collect();
    let least = queries.iter().copied().min().unwrap_or(0);
    let mean = per(queries.iter().sum::<u64>() as f64, queries.len() as f64);
    let of_others = counts.offered as f64 - mean * without as f64;
    let lost = (1.0 - per(counts.responses as f64, of_others)).clamp(0.0, 1.0);
    let least = i32::try_from(least).unwrap_or(i32::MAX);
    experience.asked() as f64 * lost.powi(least)
}

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let Unserved { all, without } = clients(figures)?;
    let transport = figures.record.scenario.transport;
    let matters = "all figures are those of the clients that are served";
    if !transport.has_connections() {
        let seen = format!(
            "{} of {} got no response at all, while the others did",
            count(without),
            counted(all, "client")
        );
        let diagnosis = Diagnosis::new("clients", State::Problem, seen, matters).cure(Cure::words(
            "let the server answer all addresses of --local-address (BIND: allow-query { any; };)",
        ));
        return Some(decided(figures, diagnosis));
    }
    // Clients that took turns were not served at once.
    let intervals = figures.record.intervals.iter();
    let open_max = intervals.map(|it| it.connections_open).max();
    let at_once = open_max.filter(|open| *open > 0);
    let served = at_once.unwrap_or(u64::MAX).min(all - without);
    let kind = match transport.is_quic() {
        true => "QUIC",
        false => "TCP",
    };
    let connections = figures.record.connections();
    let how = match turned_away(&connections) >= without {
        true => "refused or reset",
        false => "left waiting",
    };
    let seen = format!(
        "the target serves no more than {} {kind} clients at once: {} of {} got no response at all \
         ({how})",
        count(served),
        count(without),
        count(all)
    );
    let mut matters = matters.to_owned();
    for (cap, name) in defaults(transport) {
        if served == cap {
            matters.push_str(&format!("; {cap} is what {name} says otherwise"));
        }
    }
    let diagnosis = Diagnosis::new("TCP clients", State::Problem, seen, matters);
    let diagnosis = diagnosis.cures(more_clients(figures));
    Some(decided(figures, diagnosis))
}

/// Handshakes that fail are the reason where they explain it.
fn decided(figures: &Figures<'_>, diagnosis: Diagnosis) -> Finding {
    let found = Finding::met(diagnosis).beside();
    found
        .limits(stage(figures), Limit::Server)
        .only_if(!handshakes::decides(figures))
}

/// Caps that servers have by default.
fn defaults(transport: Transports) -> Vec<(u64, &'static str)> {
    match transport {
        transport if transport.is_quic() => Vec::new(),
        Transports::One(Transport::Doh2) => vec![(
            BIND_HTTP_CLIENTS,
            "BIND allows unless http-listener-clients",
        )],
        _ => vec![
            (BIND_TCP_CLIENTS, "BIND allows unless tcp-clients"),
            (
                UNBOUND_TCP_CLIENTS,
                "Unbound allows a thread unless incoming-num-tcp",
            ),
        ],
    }
}

/// Connections that the target refused, reset or closed on its own.
fn turned_away(connections: &Connections) -> u64 {
    let failed = &connections.failed;
    let before = failed.refused + failed.reset + failed.closed;
    let after = connections.closed_by_target + connections.reset_by_target;
    before + after + connections.ended_by_goaway.total()
}

/// How servers take more clients.
pub(super) fn more_clients(figures: &Figures<'_>) -> Vec<Cure> {
    let scenario = &figures.record.scenario;
    let wanted = with_room(scenario.clients);
    let fewer = Cure::throng(format!("--clients {}", scenario.clients / 2));
    match scenario.transport {
        transport if transport.is_quic() => vec![
            Cure::words("raise the number of QUIC clients that the server accepts"),
            fewer,
        ],
        Transports::One(Transport::Doh2) => vec![
            Cure::named(format!("http-listener-clients {wanted};")),
            Cure::named(format!("tcp-clients {wanted};")),
            Cure::named("tcp-listen-queue 4096;"),
        ],
        _ => vec![
            Cure::named(format!("tcp-clients {wanted};")),
            Cure::named("tcp-listen-queue 4096;"),
            Cure::new(Place::UnboundConf, format!("incoming-num-tcp: {wanted}")),
            Cure::new(Place::KnotConf, format!("tcp-max-clients: {wanted}")),
        ],
    }
}
