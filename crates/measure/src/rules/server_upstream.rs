//! Other servers for which an observed server waited: its latency is theirs.

use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::interval::per;
use crate::notation::{count, counted, latency, percent};
use crate::observation::QueryUse;
use crate::timeline::{Outage, OutageKind};

use super::{Figures, Finding};

/// From this share of the queries on, those that went on to other servers matter.
const ASKED_ON: f64 = 0.01;
/// From this share of our latency on, the time that others took is why it is what it is.
const OF_LATENCY: f64 = 0.5;
/// Where queries of an outage waited for others for that share of its length, it is theirs.
const OF_OUTAGE: f64 = 0.2;
/// So many times the mean is worth a word.
const MUCH_WORSE: f64 = 3.0;

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
    seen.push_str(&took(server));
    if server.upstream_timeouts > 0.0 {
        let lost = count(server.upstream_timeouts.round() as u64);
        seen.push_str(&format!("; {lost} times nobody answered in time"));
    }
    if server.upstream_checks_failed > 0.0 {
        let failed = counted(server.upstream_checks_failed.round() as u64, "check");
        seen.push_str(&format!("; {failed} whether they answer failed"));
    }
    if waits {
        seen.push_str(": it waited for them");
    }
    let is_problem = waits || fails(server);
    let state = match is_problem {
        true => State::Problem,
        false => State::Ok,
    };
    let matters = "what a forwarder or a resolver waits for is another server's latency, and the \
                   queries that wait hold its memory, sockets and limits";
    let diagnosis = Diagnosis::new("servers behind the target", state, seen, matters);
    let found = Finding::met(diagnosis.cures(cures()));
    Some(match is_problem {
        true => found.beside(),
        false => found,
    })
}

/// How long they took.
fn took(server: &QueryUse<'_>) -> String {
    let Some(mean_s) = server.upstream_s_mean else {
        return String::new();
    };
    let mut words = format!(", which took {} on average", latency(mean_s * 1e9));
    let worst = server.upstream_s_worst;
    if let Some(worst_s) = worst.filter(|worst_s| *worst_s >= MUCH_WORSE * mean_s) {
        words.push_str(&format!(
            ", {} from one scrape to the next at worst",
            latency(worst_s * 1e9)
        ));
    }
    words
}

fn cures() -> [Cure; 4] {
    [
        Cure::words("measure those servers by themselves, with the same questions"),
        Cure::new(Place::Corefile, "cache 300"),
        Cure::new(Place::UnboundConf, "serve-expired: yes"),
        Cure::named("stale-cache-enable yes; stale-answer-enable yes;"),
    ]
}

/// Some of them did not answer.
fn fails(server: &QueryUse<'_>) -> bool {
    server.upstream_timeouts > 0.0 || server.upstream_checks_failed > 0.0
}

/// Most of the latency of most queries is the time that others took, or an outage is theirs.
fn waits(figures: &Figures<'_>, server: &QueryUse<'_>) -> bool {
    is_in_their_outage(figures, server) || takes_their_time(figures, server)
}

fn takes_their_time(figures: &Figures<'_>, server: &QueryUse<'_>) -> bool {
    let mean_ns = figures.record.total.distributions.service.mean_ns();
    let upstream = server.upstream_s_mean.zip(server.upstream_queries);
    let Some(((mean_s, asked), own_ns)) = upstream.zip(mean_ns) else {
        return false;
    };
    let waited_ns = mean_s * 1e9 * per(asked, server.queries).min(1.0);
    waited_ns >= OF_LATENCY * own_ns
}

/// While nothing came back, queries waited for the others for much of that time.
fn is_in_their_outage(figures: &Figures<'_>, server: &QueryUse<'_>) -> bool {
    let of_target = [OutageKind::Silence, OutageKind::Errors];
    let outages = figures.outages.each.iter();
    let outages = outages.filter(|it| of_target.contains(&it.kind));
    let Some(longest_ns) = outages.map(Outage::length_ns).max() else {
        return false;
    };
    // Those that come evenly in it wait for half of it on average, others in the same scrape less.
    let waited_s = server.upstream_s_worst.unwrap_or(0.0);
    server.upstream_checks_failed > 0.0 || waited_s * 1e9 >= OF_OUTAGE * longest_ns as f64
}

/// True if it waited for others most of the time.
pub(super) fn explains(figures: &Figures<'_>) -> bool {
    let servers = figures.record.servers();
    let Some(server) = servers.first() else {
        return false;
    };
    let asks_on = per(server.upstream_queries.unwrap_or(0.0), server.queries) >= ASKED_ON;
    asks_on && (waits(figures, server) || fails(server))
}

#[cfg(test)]
mod tests {
    use crate::observation::{Sample, SeriesKind};
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

    #[test]
    fn an_outage_of_other_servers_is_told_by_their_time_or_by_checks_that_failed() {
        let upstream = [
            ("upstream.queries", SeriesKind::Counter, 10_000.0),
            ("upstream.time", SeriesKind::Counter, 3.0),
        ];
        let mut behind = server(10_000.0, &upstream);
        let record = observing(in_time(10_000.0), &[behind.clone()]);
        assert!(
            !said(&record).contains("waited for them"),
            "{}",
            said(&record)
        );
        // In the sixth second those that were asked took 800 ms each.
        let times = &mut behind.series[2].samples;
        for sample in &mut times[6..] {
            *sample = Sample::Value(sample.value().unwrap() + 8_000.0);
        }
        behind.series[2].growth = behind.series[2].growth.map(|it| it + 8_000.0);
        let worst = observing(in_time(10_000.0), &[behind]).servers()[0].upstream_s_worst;
        assert!(
            worst.is_some_and(|it| (it - 0.8003).abs() < 1e-3),
            "{worst:?}"
        );
        let checks = [
            ("upstream.queries", SeriesKind::Counter, 10_000.0),
            ("upstream.checks_failed", SeriesKind::Counter, 0.3),
        ];
        let record = observing(in_time(10_000.0), &[server(10_000.0, &checks)]);
        tells(&record, &["3 checks whether they answer failed"]);
    }
}
