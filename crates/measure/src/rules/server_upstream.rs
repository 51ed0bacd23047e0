//! Other servers for which an observed server waited: its latency is theirs.

use crate::doctor::{Cure, Diagnosis, State};
use crate::interval::per;
use crate::notation::{count, latency, percent};
use crate::observation::QueryUse;

use super::{Figures, Finding};

/// From this share of the queries on, those that went on to other servers matter.
const ASKED_ON: f64 = 0.01;
/// From this share of our latency on, the time that others took is why it is what it is.
const OF_LATENCY: f64 = 0.5;

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let servers = figures.record.servers();
    let server = servers.first()?;
    let asked = server.upstream_queries?;
    let share = per(asked, server.queries);
    if share < ASKED_ON {
        return None;
    }
    let waits = waits(figures, server);
    let mut seen = format!(
        "{} asked other servers {} times, for {} of its queries",
        server.name(),
        count(asked as u64),
        percent(share.min(1.0))
    );
    if let Some(mean_s) = server.upstream_s_mean {
        seen.push_str(&format!(
            ", which took {} on average",
            latency(mean_s * 1e9)
        ));
    }
    if server.upstream_timeouts > 0.0 {
        let lost = count(server.upstream_timeouts as u64);
        seen.push_str(&format!("; {lost} times nobody answered in time"));
    }
    if waits {
        seen.push_str(": it waited for them");
    }
    let state = match waits || server.upstream_timeouts > 0.0 {
        true => State::Problem,
        false => State::Ok,
    };
    let matters = "what a forwarder or a resolver waits for is another server's latency, and the \
                   queries that wait hold its memory, sockets and limits";
    let diagnosis = Diagnosis::new("servers behind the target", state, seen, matters).cure(
        Cure::words("measure those servers by themselves, with the same questions"),
    );
    let found = Finding::met(diagnosis);
    Some(match state {
        State::Problem => found.beside(),
        _ => found,
    })
}

/// Most of the latency of most queries is the time that others took.
fn waits(figures: &Figures<'_>, server: &QueryUse<'_>) -> bool {
    let mean_ns = figures.record.total.distributions.service.mean_ns();
    let upstream = server.upstream_s_mean.zip(server.upstream_queries);
    let Some(((mean_s, asked), own_ns)) = upstream.zip(mean_ns) else {
        return false;
    };
    let waited_ns = mean_s * 1e9 * per(asked, server.queries).min(1.0);
    waited_ns >= OF_LATENCY * own_ns
}

/// True if it waited for others most of the time.
pub(super) fn explains(figures: &Figures<'_>) -> bool {
    let servers = figures.record.servers();
    let Some(server) = servers.first() else {
        return false;
    };
    let asks_on = per(server.upstream_queries.unwrap_or(0.0), server.queries) >= ASKED_ON;
    asks_on && (waits(figures, server) || server.upstream_timeouts > 0.0)
}

#[cfg(test)]
mod tests {
    use crate::observation::SeriesKind;
    use crate::rules::observed_situations::*;
    use crate::rules::situations::*;

    #[test]
    fn a_server_that_waits_for_another_one_says_for_how_long() {
        let upstream = [
            ("upstream.queries", SeriesKind::Counter, 10_000.0),
            ("upstream.time", SeriesKind::Counter, 90.0),
        ];
        let observed = [program(0.2, 0.1, &[]), server(10_000.0, &upstream)];
        let record = observing(saturated(), &observed);
        tells(
            &record,
            &[
                "asked other servers 100,000 times",
                "9.000 ms on average: it waited for them",
            ],
        );
        assert!(
            !said(&record).contains("had CPU to spare"),
            "{}",
            said(&record)
        );
    }

    #[test]
    fn a_mean_time_of_other_servers_is_as_good_as_their_sum() {
        let upstream = [
            ("upstream.queries", SeriesKind::Counter, 10_000.0),
            ("upstream.time", SeriesKind::Gauge, 0.009),
        ];
        let record = observing(saturated(), &[server(10_000.0, &upstream)]);
        tells(&record, &["9.000 ms on average: it waited for them"]);
    }
}
