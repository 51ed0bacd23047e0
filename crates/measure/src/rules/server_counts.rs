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
        0 => "they were lost on the path, or it does not count what it drops".to_owned(),
        dropped => format!("its sockets had no room for {}", count(dropped)),
    };
    format!(
        "{name} counted {} of the {} that were sent, {} fewer: {why}",
        count(received),
        counted(sent, "query"),
        count(sent - received)
    )
}

#[cfg(test)]
mod tests {
    use crate::observation::SeriesKind;
    use crate::observation::{NoValue, Sample};
    use crate::rules::observed_situations::*;
    use crate::rules::situations::*;

    #[test]
    fn both_ends_are_compared() {
        let same = observing(in_time(10_000.0), &[server(10_000.0, &[])]);
        assert!(!said(&same).contains("counted"), "{}", said(&same));
        let all = met(&same);
        let both = all.iter().find(|it| it.topic == "queries at both ends");
        assert!(both.is_some_and(|it| it.seen.contains("counted 100,000 of the 100,000 queries")));

        let more = observing(in_time(10_000.0), &[server(11_000.0, &[])]);
        tells(
            &more,
            &["counted 110,000 queries, 10,000 more than were sent to it"],
        );
        let fewer = observing(in_time(10_000.0), &[server(9_000.0, &[])]);
        tells(
            &fewer,
            &["counted 90,000 of the 100,000 queries that were sent, 10,000 fewer"],
        );
        // A server that tells nothing before its first query has no count to compare.
        let mut late = server(9_000.0, &[]);
        late.series[0].samples[0] = Sample::Without(NoValue::Missing);
        let unknown = observing(in_time(10_000.0), &[late]);
        assert!(!said(&unknown).contains("counted"), "{}", said(&unknown));
        let drops = program(0.5, 0.3, &[("udp.drops", SeriesKind::Counter, 1_000.0)]);
        let dropped = observing(in_time(10_000.0), &[server(9_000.0, &[]), drops]);
        tells(
            &dropped,
            &["10,000 fewer: its sockets had no room for 10,000"],
        );
    }
}
