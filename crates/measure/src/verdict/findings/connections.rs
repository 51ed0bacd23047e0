//! What became of connections: caps on clients, listen queues, closures.

use super::{Figures, with_room};
use crate::doctor::{Cure, Diagnosis, State};
use crate::interval::per;
use crate::notation::{count, counted, latency, share};
use crate::scenario::Transport;
use crate::verdict::{load, target};

/// BIND serves that many TCP clients unless named.conf says otherwise.
const BIND_TCP_CLIENTS: u64 = 150;
/// BIND serves that many HTTP clients of a listener unless named.conf says otherwise.
const BIND_HTTP_CLIENTS: u64 = 300;
/// A cap counts as the one of BIND from this share of it on: connections come and go.
const NEAR: f64 = 0.9;
/// A SYN that was dropped is sent again after that long (RFC 6298, section 2).
const SYN_AGAIN_NS: u64 = 1_000_000_000;
/// Sets of queries after which servers built on miekg/dns, CoreDNS among them, close.
const MIEKG_QUERIES: u64 = 128;

pub(super) fn all(figures: &Figures<'_>) -> Vec<Diagnosis> {
    if !figures.record.scenario.transport.has_connections() {
        return Vec::new();
    }
    let found = [
        clients(figures),
        listen_queue(figures),
        closed(figures),
        streams(figures),
    ];
    found.into_iter().flatten().collect()
}

/// Clients that the target keeps away, or some of their attempts.
fn clients(figures: &Figures<'_>) -> Option<Diagnosis> {
    let failed = figures.record.connections().failed;
    let refused = failed.refused + failed.reset + failed.closed;
    let is_kept_away = target::kept_away(figures).is_some();
    if refused == 0 && !is_kept_away {
        return None;
    }
    let seen = target::connection_limit(figures)?;
    let state = match is_kept_away {
        true => State::Problem,
        false => State::Warning,
    };
    let open = figures
        .record
        .intervals
        .iter()
        .map(|it| it.connections_open);
    let open = open.max().unwrap_or(0);
    let near = |cap: u64| open <= cap && open as f64 >= NEAR * cap as f64;
    let mut matters = "clients without a connection ask nothing, and all figures are those of the \
                       others"
        .to_owned();
    let transport = figures.record.scenario.transport;
    let cap = match transport {
        Transport::Doh2 => (BIND_HTTP_CLIENTS, "http-listener-clients"),
        _ => (BIND_TCP_CLIENTS, "tcp-clients"),
    };
    if near(cap.0) && !transport.is_quic() {
        matters.push_str(&format!(
            "; {} is what BIND allows unless {} says otherwise",
            cap.0, cap.1
        ));
    }
    let diagnosis = Diagnosis::new("TCP clients", state, seen, matters);
    Some(diagnosis.cures(more_clients(figures)))
}

/// How servers take more clients.
fn more_clients(figures: &Figures<'_>) -> Vec<Cure> {
    use crate::doctor::Place::{KnotConf, UnboundConf};
    let scenario = &figures.record.scenario;
    let wanted = with_room(scenario.clients);
    let fewer = Cure::throng(format!("--clients {}", scenario.clients / 2));
    match scenario.transport {
        transport if transport.is_quic() => vec![
            Cure::words("raise the number of QUIC clients that the server accepts"),
            fewer,
        ],
        Transport::Doh2 => vec![
            Cure::named(format!("http-listener-clients {wanted};")),
            Cure::named(format!("tcp-clients {wanted};")),
            Cure::named("tcp-listen-queue 4096;"),
        ],
        _ => vec![
            Cure::named(format!("tcp-clients {wanted};")),
            Cure::named("tcp-listen-queue 4096;"),
            Cure::new(UnboundConf, format!("incoming-num-tcp: {wanted}")),
            Cure::new(KnotConf, format!("tcp-max-clients: {wanted}")),
        ],
    }
}

/// Connections that waited too long for the target to accept them.
fn listen_queue(figures: &Figures<'_>) -> Option<Diagnosis> {
    let record = figures.record;
    let transport = record.scenario.transport;
    if transport.is_quic() {
        return None;
    }
    let overflows = match figures.target_is_local() {
        true => record.network.kernel_counter("TcpExt.ListenOverflows"),
        false => 0,
    };
    let dropped = record.simulation.as_ref().map(|it| it.network.syns_dropped);
    let dropped = dropped.unwrap_or(0).max(overflows);
    let timed_out = record.connections().failed.timed_out;
    let times = record.connection_times().tcp_connect;
    let (shortest, longest) = (times.min_ns().unwrap_or(0), times.max_ns().unwrap_or(0));
    let is_again = longest >= SYN_AGAIN_NS && shortest < SYN_AGAIN_NS / 4;
    let evidence = [
        (dropped > 0).then(|| {
            let syns = counted(dropped, "SYN");
            format!("{syns} found the target's listen queue full")
        }),
        (timed_out > 0).then(|| format!("{} timed out", counted(timed_out, "connection attempt"))),
        is_again.then(|| {
            format!(
                "some connections took {}, as when a SYN is sent again, and others {}",
                latency(longest as f64),
                latency(shortest as f64)
            )
        }),
    ];
    let evidence: Vec<String> = evidence.into_iter().flatten().collect();
    if evidence.is_empty() {
        return None;
    }
    let seen = evidence.join("; ");
    let matters = "connections wait in the listen queue until the server accepts them; it has \
                   room for 10 in BIND's default, and a SYN beyond it is sent again after a second";
    let diagnosis = Diagnosis::new("listen queue", State::Warning, seen, matters);
    if record.simulation.is_some() {
        return Some(diagnosis.cure(Cure::throng("--sim-backlog 4096")));
    }
    Some(
        diagnosis
            .cure(Cure::named("tcp-listen-queue 4096;"))
            .cure(Cure::server_sysctl("net.core.somaxconn", 4_096))
            .cure(Cure::server_sysctl("net.ipv4.tcp_max_syn_backlog", 8_192)),
    )
}

/// Connections that the target ended, and queries lost with them.
fn closed(figures: &Figures<'_>) -> Option<Diagnosis> {
    let (record, counts) = (figures.record, figures.counts);
    let connections = record.connections();
    let closed = connections.ended_by_target();
    let lost = counts.connection_losses;
    let is_habit = closed > record.scenario.clients;
    // Those that the target keeps away are ended too, again and again.
    if target::kept_away(figures).is_some() || (!is_habit && lost == 0) {
        return None;
    }
    let each = counts.sent / closed.max(1);
    let mut seen = format!("the target ended {}", counted(closed, "connection"));
    if is_habit {
        seen.push_str(&format!(", after {} queries each on average", count(each)));
    }
    if lost > 0 {
        seen.push_str(&format!(
            "; {} ({} of those sent) were lost with their connection",
            counted(lost, "query"),
            share(lost, counts.sent)
        ));
    }
    let state = match per(lost as f64, counts.sent as f64) {
        share if share >= 0.01 => State::Problem,
        _ => State::Warning,
    };
    let matters = "each end costs a new connection, with TLS a new handshake, and the queries that \
                   were on their way";
    let mut diagnosis = Diagnosis::new("closed connections", state, seen, matters);
    if is_habit && each > 0 {
        if each <= MIEKG_QUERIES && each as f64 >= NEAR * MIEKG_QUERIES as f64 {
            diagnosis = diagnosis.cure(Cure::words(
                "CoreDNS and other servers built on miekg/dns close after 128 queries: with them \
                 that is how they work",
            ));
        }
        let earlier = (each * 8 / 10).max(1);
        diagnosis = diagnosis.cure(Cure::throng(format!("--queries-per-connection {earlier}")));
    }
    Some(diagnosis.cure(Cure::words(
        "raise the server's limits on connections: idle time (BIND, Unbound and Knot DNS: \
         tcp-idle-timeout), queries each (dnsdist: setMaxTCPQueriesPerConnection)",
    )))
}

/// Queries that waited because connections may carry only so many at once.
fn streams(figures: &Figures<'_>) -> Option<Diagnosis> {
    let seen = load::waited_for_streams(figures)?;
    let matters = "latency from the scheduled instant has that wait in it";
    let clients = 4 * figures.record.scenario.clients;
    let cure = Cure::throng(format!("--clients {clients}"));
    let diagnosis = Diagnosis::new("streams", State::Warning, seen, matters).cure(cure);
    let statement = Cure::named("http-streams-per-connection 1000;");
    let is_http2 = figures.record.scenario.transport == Transport::Doh2;
    Some(diagnosis.cures(is_http2.then_some(statement)))
}
