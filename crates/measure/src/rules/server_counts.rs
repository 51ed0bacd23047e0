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
    if figures.record.degraded.is_some() {
        // It went on counting after the result.
        return None;
    }
    let servers = figures.record.servers();
    let server = servers.first().filter(|it| it.is_whole)?;
    let sent = sent(figures);
    let received = server.queries.max(0.0) as u64;
    let difference = sent.abs_diff(received);
    let is_much = difference > NUMBER_MAX && per(difference as f64, sent as f64) > SHARE_MAX;
    let seen = match is_much {
        false => format!(
            "{} counted {} of the {} that were sent to it{}",
            server.name(),
            count(received),
            counted(sent, "query"),
            sent_again(figures)
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
pub(super) fn sent(figures: &Figures<'_>) -> u64 {
    let (counts, warmup) = (figures.counts, &figures.record.warmup.counts);
    counts.sent + warmup.sent + counts.stub.retransmitted + warmup.stub.retransmitted
}

/// Those of them that clients sent a second time.
fn sent_again(figures: &Figures<'_>) -> String {
    let warmup = &figures.record.warmup.counts;
    match figures.counts.stub.retransmitted + warmup.stub.retransmitted {
        0 => String::new(),
        number => format!(", {} of them sent again", count(number)),
    }
}

/// What is known of those that it did not count.
fn missing(figures: &Figures<'_>, number: u64) -> String {
    let programs = figures.record.programs();
    let of_sockets = programs.first().map_or(0, |program| program.udp_drops);
    let observations = figures.record.observations.iter();
    let backlogs = observations.filter_map(|it| it.series("softnet.dropped")?.growth);
    let of_host = backlogs.fold(0.0, f64::max) as u64;
    let rest = number.saturating_sub(of_sockets + of_host);
    let mut why = Vec::new();
    if of_sockets > 0 {
        why.push(format!("its sockets had no room for {}", count(of_sockets)));
    }
    if of_host > 0 {
        why.push(format!(
            "its host dropped {} before any socket",
            counted(of_host, "packet")
        ));
    }
    if rest > NUMBER_MAX {
        let which = match why.is_empty() {
            true => "they".to_owned(),
            false => format!("the other {}", count(rest)),
        };
        why.push(format!(
            "{which} were lost on the path, or it does not count what it drops"
        ));
    }
    why.join("; ")
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
    format!(
        "{name} counted {} of the {} that were sent, {} fewer: {}",
        count(received),
        counted(sent, "query"),
        count(sent - received),
        missing(figures, sent - received)
    )
}

#[cfg(test)]
mod tests {
    use crate::observation::SeriesKind;
    use crate::observation::{NoValue, Sample, ServerFacts};
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
        let drops = program(0.5, 0.3, &[("udp.drops", SeriesKind::Counter, 400.0)]);
        let host = ("softnet.dropped", SeriesKind::Counter, 100.0);
        let host = observation("host", ServerFacts::default(), &[host]);
        let partly = observing(in_time(10_000.0), &[server(9_000.0, &[]), drops, host]);
        tells(
            &partly,
            &[
                "10,000 fewer: its sockets had no room for 4,000; its host dropped 1,000 packets \
               before any socket; the other 5,000 were lost on the path",
            ],
        );
    }

    #[test]
    fn queries_that_clients_sent_again_are_among_those_that_a_server_counts() {
        let mut record = in_time(10_000.0);
        change_last(&mut record, |it| it.counts.stub.retransmitted = 500);
        let record = observing(record, &[server(10_050.0, &[])]);
        let both = told(&record, "queries at both ends");
        let seen = "counted 100,500 of the 100,500 queries that were sent to it, 500 of them sent \
                    again";
        assert!(both.seen.contains(seen), "{}", both.seen);
    }
}
