//! Both ends compared: what the observed server counted, and what was sent to it.

use crate::doctor::{Diagnosis, State};
use crate::interval::per;
use crate::notation::{count, counted};
use crate::observation::QueryUse;

use super::{Figures, Finding};

/// Up to this share, and this number, a difference is nothing to tell: a look at the host, queries
/// of monitoring.
const SHARE_MAX: f64 = 0.001;
const NUMBER_MAX: u64 = 10;

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let servers = figures.record.servers();
    let server = servers.first().filter(|it| it.is_whole)?;
    let sent = sent(figures);
    let received = server.queries.max(0.0) as u64;
    let difference = sent.abs_diff(received);
    let is_much = difference > NUMBER_MAX && per(difference as f64, sent as f64) > SHARE_MAX;
    let seen = match is_much {
        false => format!(
            "{} counted {} of the {} that were sent to it",
            server.name(),
            count(received),
            counted(sent, "query")
        ),
        true => differing(figures, server, sent, received),
    };
    let state = match is_much {
        true => State::Warning,
        false => State::Ok,
    };
    let matters = "where both ends count the same, losses and rates are beyond doubt";
    let found = Finding::met(Diagnosis::new("queries at both ends", state, seen, matters));
    Some(match is_much {
        true => found.beside(),
        false => found,
    })
}

/// Queries that left this host while the server was observed.
fn sent(figures: &Figures<'_>) -> u64 {
    let (counts, warmup) = (figures.counts, &figures.record.warmup.counts);
    counts.sent + warmup.sent + counts.stub.retransmitted + warmup.stub.retransmitted
}

fn differing(figures: &Figures<'_>, server: &QueryUse<'_>, sent: u64, received: u64) -> String {
    let name = server.name();
    if server.was_reset {
        return format!(
            "{name} began to count again in mid-run: it knows of {} of the {} that were sent",
            count(received),
            counted(sent, "query")
        );
    }
    if received > sent {
        return format!(
            "{name} counted {}, {} more than were sent to it: others ask it too, or what was sent \
             came twice",
            counted(received, "query"),
            count(received - sent)
        );
    }
    let programs = figures.record.programs();
    let dropped = programs.first().map_or(0, |program| program.udp_drops);
    let why = match dropped {
        0 => "they were lost on the way, or it does not count what it drops".to_owned(),
        dropped => format!("its sockets had no room for {}", count(dropped)),
    };
    format!(
        "{name} counted {} of the {} that were sent, {} fewer: {why}",
        count(received),
        counted(sent, "query"),
        count(sent - received)
    )
}
