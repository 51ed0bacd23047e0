//! Scrapes that disturbed the server: what observing costs is part of what was observed.

use crate::doctor::{Cure, Diagnosis, State};
use crate::interval::per;
use crate::notation::{counted, latency};
use crate::observation::Observation;
use crate::timeline::{Bin, Timeline};

use super::{Figures, Finding};

/// Latency of queries while a source was asked is so many times that of the others.
const SLOWER: f64 = 2.0;
/// By how much it is longer, at least: 1 ms.
const LONGER_NS_MIN: f64 = 1e6;
/// Scrapes that are enough to tell it from chance.
const SCRAPES_MIN: usize = 3;
/// Where scrapes fill more of the run than this, there is nothing to compare with.
const FILLED_MAX: f64 = 0.5;

pub(super) fn found(figures: &Figures<'_>) -> Vec<Finding> {
    let Some(timeline) = &figures.record.timeline else {
        return Vec::new();
    };
    let each = figures.record.observations.iter();
    each.filter_map(|it| slowed(timeline, it, figures.record.measured_ns))
        .collect()
}

fn slowed(timeline: &Timeline, observation: &Observation, until_ns: u64) -> Option<Finding> {
    let width_ns = timeline.width_ns();
    let bins = (until_ns / width_ns) as usize;
    let mut is_scraped = vec![false; bins.min(timeline.bins().len())];
    let mut within = 0;
    for scrape in observation.scrapes.iter().filter(|it| it.number == 1) {
        let (Ok(at), bound) = (u64::try_from(scrape.at_ns), scrape.bound_ns) else {
            continue;
        };
        let first = at.saturating_sub(bound) / width_ns;
        let last = at.saturating_add(bound) / width_ns;
        if last as usize >= is_scraped.len() {
            continue;
        }
        within += 1;
        // What came after it was late for it.
        let last = (last as usize + 1).min(is_scraped.len() - 1);
        is_scraped[first as usize..=last].fill(true);
    }
    let filled = is_scraped.iter().filter(|it| **it).count();
    if within < SCRAPES_MIN || per(filled as f64, is_scraped.len() as f64) > FILLED_MAX {
        return None;
    }
    let mut sums = [Bin::default(); 2];
    for (bin, scraped) in timeline.bins().iter().zip(&is_scraped) {
        sums[usize::from(*scraped)].add(bin);
    }
    let [outside, inside] = sums;
    let (usual, meanwhile) = outside.latency_ns_mean().zip(inside.latency_ns_mean())?;
    if meanwhile < SLOWER * usual || meanwhile - usual < LONGER_NS_MIN {
        return None;
    }
    let seen = format!(
        "while {} was asked for its statistics ({}), mean latency was {}, in the rest of the run \
         {}: the scrapes slow it down",
        observation.source,
        counted(within as u64, "time"),
        latency(meanwhile),
        latency(usual)
    );
    let matters = "a server that stops to count itself is slower for being observed";
    let diagnosis =
        Diagnosis::new("cost of a scrape", State::Problem, seen, matters).cure(Cure::words(
            "observe it less often (period=30s), or before and after only \
                           (mode=around)",
        ));
    Some(Finding::met(diagnosis).beside())
}

#[cfg(test)]
mod tests {
    use crate::observation::SeriesKind;
    use crate::observation::{ObservationMode, Observed, Recorder, Scrape};
    use crate::rules::observed_situations::*;
    use crate::rules::situations::*;

    #[test]
    fn scrapes_that_slow_the_server_down_are_told() {
        let mut record = in_time(10_000.0);
        let mut timeline = crate::timeline::Timeline::new();
        for bin in 0..1_000_u64 {
            // Each second the server stands still for 100 ms, as long as the scrape takes.
            let slow = bin % 100 < 10;
            let what = crate::timeline::Bin {
                due: 100,
                responses: 100,
                latency_us: 100 * if slow { 50_000 } else { 1_000 },
                ..crate::timeline::Bin::default()
            };
            timeline.add(bin * SECOND / 100, &what);
        }
        record.timeline = Some(timeline);
        let mut recorder = Recorder::new("bind=x", "bind", ObservationMode::During, SECOND);
        for second in 0..10 {
            let at_ns = second * SECOND as i64;
            let value = Observed {
                name: "queries".to_owned(),
                unit: "queries".to_owned(),
                kind: SeriesKind::Counter,
                value: second as f64 * 11_111.1,
                is_stale: false,
            };
            recorder.push(Scrape::between(at_ns, at_ns + 100 * MS as i64), vec![value]);
        }
        let record = observing(record, &[recorder.finish()]);
        tells(&record, &["the scrapes slow it down"]);
        let all = met(&record);
        let cures = all.iter().flat_map(|it| &it.cures);
        assert!(
            cures.into_iter().any(|it| it.how.contains("mode=around")),
            "{all:#?}"
        );
    }
}
