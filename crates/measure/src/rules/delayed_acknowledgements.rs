//! Responses that wait for an acknowledgement: an end that holds small segments back while earlier
//! ones are not acknowledged (Nagle's algorithm, RFC 9293, section 3.7.4) meets one that delays its
//! acknowledgements (section 3.8.6.3). Nobody is busy, and some responses take 40 ms.

use std::ops::Range;

use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::histogram::Histogram;
use crate::interval::per;
use crate::notation::{decimal, latency, share};

use super::{Figures, Finding, enough};

const MS: u64 = 1_000_000;
/// Linux delays an acknowledgement by 40 ms or more (TCP_DELACK_MIN), in steps of its clock, of up
/// to 10 ms.
const DELAYED: Range<u64> = 38 * MS..56 * MS;
/// Ranges as wide to both sides of that.
const FASTER: Range<u64> = 20 * MS..38 * MS;
const SLOWER: Range<u64> = 56 * MS..74 * MS;
/// So many times as many responses as to either side are a peak of its own.
const PEAK: u64 = 4;
/// From this share of the responses on, it is worth a word.
const SHARE_MIN: f64 = 0.005;
/// With fewer queries on a connection, there is nothing to hold back.
const QUERIES_EACH_MIN: f64 = 2.0;

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let (record, transport) = (figures.record, figures.record.scenario.transport);
    if !transport.has_connections() || transport.is_quic() {
        return None;
    }
    let connections = record.scenario.usable(&record.connections());
    let each = per(
        (record.warmup.counts.sent + figures.counts.sent) as f64,
        connections as f64,
    );
    let service = &record.total.distributions.service;
    let delayed = number_in(service, &DELAYED);
    let beside = number_in(service, &FASTER).max(number_in(service, &SLOWER));
    let p50_ns = figures.service_p50_ns?;
    let is_peak = delayed >= PEAK * beside && p50_ns < FASTER.start;
    let is_much = enough::is_above(delayed, service.count(), SHARE_MIN);
    if each < QUERIES_EACH_MIN || !is_peak || !is_much {
        return None;
    }
    let seen = format!(
        "{} of the responses took {} to {} ms, and hardly any slightly less or more (p50 {}; {} \
            queries a connection): the pattern of small segments that wait for an acknowledgement, \
            which Linux delays by 40 ms",
        share(delayed, service.count()),
        DELAYED.start / MS,
        DELAYED.end / MS,
        latency(p50_ns as f64),
        decimal(each, 0)
    );
    let matters = "meanwhile both server and network are idle: Nagle's algorithm at the server \
        waits for the acknowledgement that this host's kernel delays";
    let diagnosis = Diagnosis::new("delayed acknowledgements", State::Warning, seen, matters)
        .cure(Cure::words(
            "run the same over UDP to find out: what takes a server 40 ms takes as long there",
        ))
        .cure(Cure::words(
            "turn Nagle's algorithm off in the server: TCP_NODELAY on its connections",
        ))
        .cure(quick_route(figures));
    // Of several groups, those with connections.
    let streams = record
        .asked
        .iter()
        .filter(|it| it.run.transport.has_connections());
    let mut quick = streams
        .map(|it| it.run.generator.sockets.tcp_quickack)
        .peekable();
    let are_quick = quick.peek().is_some() && quick.all(|is_quick| is_quick);
    let diagnosis = match are_quick {
        // It waits for something else, then.
        true => diagnosis,
        false => diagnosis.cure(Cure::throng("--tcp-quickack")),
    };
    Some(Finding::met(diagnosis).beside())
}

fn number_in(times: &Histogram, range: &Range<u64>) -> u64 {
    let within = times.buckets().filter(|(low, ..)| range.contains(low));
    within.map(|(_, _, number)| number).sum()
}

/// Has this host acknowledge at once what comes from the target: an attribute of the route.
fn quick_route(figures: &Figures<'_>) -> Cure {
    let target = figures.record.scenario.target.as_str();
    let first = target.split(',').next().unwrap_or(target);
    let host = match first.parse::<std::net::SocketAddr>() {
        Ok(address) => address.ip().to_string(),
        Err(_) => first.to_owned(),
    };
    let how = format!(
        "ip route show table all to match {host}  (then ip route change with the last of them, \
         and quickack 1)"
    );
    Cure::new(Place::Root, how)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{interval, record};
    use crate::record::RunRecord;
    use crate::scenario::Transport;
    use crate::verdict::judge;

    /// Ten seconds over TCP, a connection for 1,000 queries; `latencies` in ms, and how many of
    /// 10,000.
    fn run(latencies: &[(u64, u64)]) -> RunRecord {
        let latencies: Vec<_> = latencies.iter().map(|&(ms, of)| (ms * MS, of)).collect();
        let mut record = record((0..10).map(|index| interval(index, &latencies)).collect());
        record.scenario.transport = Transport::Tcp.into();
        record.total.counts.connections.attempted = 100;
        record.total.counts.connections.established = 100;
        record
    }

    fn seen(record: &RunRecord) -> Option<String> {
        found(&Figures::of(record)).map(|it| it.evidence().to_owned())
    }

    #[test]
    fn a_peak_at_40_ms_over_streams_is_told_beside_the_verdict() {
        let record = run(&[(1, 9_700), (2, 80), (30, 10), (44, 200), (60, 10)]);
        let seen = seen(&record).expect("is found");
        assert!(
            seen.starts_with("2.00 % of the responses took 38 to 56 ms"),
            "{seen}"
        );
        assert!(seen.contains("1,000 queries a connection"), "{seen}");
        assert!(judge(&record).evidence.contains(&seen));
    }

    #[test]
    fn acknowledging_at_once_is_a_cure_that_is_not_offered_twice() {
        let mut record = run(&[(1, 9_800), (44, 200)]);
        let offers = |record: &RunRecord| {
            let finding = found(&Figures::of(record)).expect("is found");
            format!("{finding:?}").contains("--tcp-quickack")
        };
        assert!(offers(&record));
        let mut asked = crate::record::AskedGroup {
            name: "all".into(),
            run: settings::Run::default(),
        };
        asked.run.transport = Transport::Tcp;
        let without = asked.clone();
        asked.run.generator.sockets.tcp_quickack = true;
        record.asked = vec![asked.clone()];
        assert!(!offers(&record));
        // Of two groups, one does not.
        record.asked = vec![asked, without];
        assert!(offers(&record));
    }

    #[test]
    fn other_reasons_for_40_ms_are_not_taken_for_it() {
        // A path of 40 ms; a wide distribution; a server that is slow now and then.
        for latencies in [
            &[(42, 10_000)][..],
            &[(1, 9_000), (25, 300), (44, 400), (60, 300)],
            &[(1, 9_800), (44, 100), (65, 100)],
            &[(1, 9_999), (44, 1)],
        ] {
            assert_eq!(seen(&run(latencies)), None, "{latencies:?}");
        }
        let peak = [(1, 9_800), (44, 200)];
        let mut record = run(&peak);
        record.scenario.transport = Transport::Udp.into();
        assert_eq!(seen(&record), None);
        record.scenario.transport = Transport::Doq.into();
        assert_eq!(seen(&record), None);
        // A query for each connection.
        record.scenario.transport = Transport::Dot.into();
        record.total.counts.connections.attempted = 100_000;
        record.total.counts.connections.established = 100_000;
        record.total.counts.connections.handshakes.full = 100_000;
        assert_eq!(seen(&record), None);
    }
}
