//! Connections that ended before they should, and the queries lost with them.

use crate::counts::Connections;
use crate::doctor::{Cure, Diagnosis, State};
use crate::interval::per;
use crate::limit::Limit;
use crate::notation::{count, counted, share};

use super::figures::list;
use super::{Figures, Finding, Stage, enough, unserved, violations};

/// From this share of the queries sent on, those lost with their connection decide.
const LOST_MAX: f64 = 0.001;
/// A number of queries is that of a server's limit from this share of it on.
const NEAR: f64 = 0.9;
/// Sets of queries after which servers built on miekg/dns, CoreDNS among them, close.
const MIEKG_QUERIES: u64 = 128;

/// The target ended connections with so many queries on them that it decides.
pub(super) fn decides(figures: &Figures<'_>) -> bool {
    found(figures).is_some_and(|it| it.is_decisive())
}

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let (record, counts) = (figures.record, figures.counts);
    let connections = record.connections();
    let ended = connections.ended_by_target();
    let lost = counts.connection_losses;
    // One for each client at the end is normal; a habit is not.
    let is_habit = ended > record.scenario.clients;
    // Those that the target keeps away are ended repeatedly, too.
    let is_other = unserved::clients(figures).is_some() || violations::decides(figures);
    if ended == 0 || is_other || (!is_habit && lost == 0) {
        return None;
    }
    let each = counts.sent / ended.max(1);
    let mut seen = format!(
        "the target ended {} ({})",
        counted(ended, "connection"),
        list(ways(&connections))
    );
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
    let matters = "each one costs a new connection, with TLS a new handshake, and the queries in \
        flight";
    let mut diagnosis = Diagnosis::new("closed connections", state, seen, matters);
    if is_habit && each > 0 {
        if each <= MIEKG_QUERIES && each as f64 >= NEAR * MIEKG_QUERIES as f64 {
            diagnosis = diagnosis.cure(Cure::words(
                "CoreDNS and other servers built on miekg/dns close after 128 queries: for them \
                    that is normal",
            ));
        }
        let earlier = (each * 8 / 10).max(1);
        diagnosis = diagnosis.cure(Cure::throng(format!("--queries-per-connection {earlier}")));
    }
    let limits = Cure::words(
        "raise the server's limits on connections: idle time (BIND, Unbound and Knot DNS: \
         tcp-idle-timeout), queries each (dnsdist: setMaxTCPQueriesPerConnection)",
    );
    let found = Finding::met(diagnosis.cure(limits)).beside();
    let is_enough = enough::is_above(lost, counts.sent, LOST_MAX);
    Some(found.limits(Stage::Ended, Limit::Server).only_if(is_enough))
}

/// How they ended, by number.
fn ways(connections: &Connections) -> Vec<(u64, String)> {
    let Connections {
        closed_by_target,
        reset_by_target,
        ended_by_tls,
        ended_by_goaway,
        ended_by_http,
        quic_application,
        quic_transport,
        quic_idle_timeouts,
        ..
    } = connections;
    vec![
        (*reset_by_target, "reset".into()),
        (*closed_by_target, "closed in order".into()),
        (*ended_by_tls, "ended by TLS".into()),
        (ended_by_goaway.total(), "ended by GOAWAY".into()),
        (*ended_by_http, "ended by HTTP".into()),
        (quic_application.total(), "QUIC application error".into()),
        (quic_transport.total(), "QUIC transport error".into()),
        (*quic_idle_timeouts, "silent until QUIC gave up".into()),
    ]
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn target_that_closes_connections_after_some_queries_is_reported() {
        let mut record = saturated();
        record.scenario.transport = Transport::Tcp.into();
        change_last(&mut record, |interval| {
            interval.connections_open = 10;
            interval.counts.connections.closed_by_target = 781;
        });
        let line = "the target ended 781 connections (781 closed in order), after 128 queries \
                    each on average";
        assert!(
            judge(&record)
                .evidence
                .iter()
                .any(|evidence| evidence == line)
        );
    }

    #[test]
    fn connections_that_the_target_ends_are_a_habit_or_a_loss() {
        let mut record = saturated();
        record.scenario.transport = Transport::Tcp.into();
        change_last(&mut record, |interval| {
            interval.connections_open = 10;
            interval.counts.connections.closed_by_target = 781;
        });
        let seen = "ended 781 connections (781 closed in order), after 128 queries each";
        let topic = "closed connections";
        told(&record, topic).warning(seen, "--queries-per-connection 102");
        told(&record, topic).warning(seen, "miekg/dns");
        change_last(&mut record, |interval| {
            interval.counts.offered += 5_000;
            interval.counts.sent += 5_000;
            interval.counts.connection_losses += 5_000;
        });
        told(&record, topic).problem("5,000 queries (4.76 %", "tcp-idle-timeout");
    }
}
