//! Scrapes of servers that slow them down.

use super::Figures;
use crate::interval::per;
use crate::observation::Observation;
use crate::timeline::{Bin, Timeline};

/// Latency of queries while a source was scraped is this many times that of the others.
const SLOWER: f64 = 2.0;
/// By how much it is longer, at least: 1 ms.
const LONGER_NS_MIN: f64 = 1e6;
/// Scrapes that are enough to tell it from chance.
const SCRAPES_MIN: usize = 5;
/// Profiles of sources that read /proc.
const READERS_OF_PROC: [&str; 3] = ["process", "cgroup", "host"];
/// Scrapes are not the reason where this share of the other times is as slow.
const AS_SLOW: f64 = 0.02;
/// Where scrapes fill more of the run than this, there is nothing to compare with.
const FILLED_MAX: f64 = 0.5;

/// Sources during whose scrapes latency was longer.
pub(crate) struct SlowScrapes(pub(crate) Vec<SlowScrape>);

pub(crate) struct SlowScrape {
    pub(crate) source: String,
    pub(crate) scrapes: usize,
    /// Mean latency outside of scrapes, and during them.
    pub(crate) usual_ns: f64,
    pub(crate) meanwhile_ns: f64,
}

pub(super) fn slow_scrapes(figures: &Figures<'_>) -> Option<SlowScrapes> {
    let timeline = figures.record.timeline.as_ref()?;
    let until_ns = figures.record.measured_ns;
    // What reads /proc asks the server for nothing.
    let asks = |it: &&Observation| !READERS_OF_PROC.contains(&it.profile.as_str());
    let each = figures.record.observations.iter().filter(asks);
    let slow = each.filter_map(|it| slow_scrape(timeline, it, until_ns));
    let slow: Vec<SlowScrape> = slow.collect();
    (!slow.is_empty()).then_some(SlowScrapes(slow))
}

fn slow_scrape(
    timeline: &Timeline,
    observation: &Observation,
    until_ns: u64,
) -> Option<SlowScrape> {
    let width_ns = timeline.width_ns();
    let bins = (until_ns / width_ns) as usize;
    let mut is_scraped = vec![false; bins.min(timeline.bins().len())];
    let mut scrapes = 0;
    for scrape in observation.scrapes.iter().filter(|it| it.number == 1) {
        let (Ok(at), bound) = (u64::try_from(scrape.at_ns), scrape.bound_ns) else {
            continue;
        };
        let first = at.saturating_sub(bound) / width_ns;
        let last = at.saturating_add(bound) / width_ns;
        if last as usize >= is_scraped.len() {
            continue;
        }
        scrapes += 1;
        // What came after it was late for it.
        let last = (last as usize + 1).min(is_scraped.len() - 1);
        is_scraped[first as usize..=last].fill(true);
    }
    let filled = is_scraped.iter().filter(|it| **it).count();
    if scrapes < SCRAPES_MIN || per(filled as f64, is_scraped.len() as f64) > FILLED_MAX {
        return None;
    }
    let mut sums = [Bin::default(); 2];
    for (bin, scraped) in timeline.bins().iter().zip(&is_scraped) {
        sums[usize::from(*scraped)].add(bin);
    }
    let [outside, inside] = sums;
    let (usual_ns, meanwhile_ns) = outside.latency_ns_mean().zip(inside.latency_ns_mean())?;
    let is_slow = meanwhile_ns >= SLOWER * usual_ns && meanwhile_ns - usual_ns >= LONGER_NS_MIN;
    let is_like_others =
        || are_others_as_slow(timeline, &is_scraped, (usual_ns + meanwhile_ns) / 2.0);
    (is_slow && !is_like_others()).then(|| SlowScrape {
        source: observation.source.clone(),
        scrapes,
        usual_ns,
        meanwhile_ns,
    })
}

/// True if latency was as long at times as far apart as the scrapes, earlier or later in the run.
/// What has a period of its own, such as a CPU quota, meets scrapes at the same instant of it.
fn are_others_as_slow(timeline: &Timeline, is_scraped: &[bool], slow_ns: f64) -> bool {
    let length = is_scraped.len();
    let mut shifts: Vec<Shifted> = (0..length)
        .map(|shift| shifted(timeline, is_scraped, shift, slow_ns))
        .collect();
    // The server may be slow from before a scrape until after it.
    let both_ways = (1..length)
        .zip(0..)
        .chain((1..length).rev().map(|it| (it, (it + 1) % length)));
    for (at, neighbour) in both_ways {
        if shifts[at] == Shifted::Slow && shifts[neighbour] == Shifted::AtScrapes {
            shifts[at] = Shifted::AtScrapes;
        }
    }
    let number = |of| shifts.iter().filter(|it| **it == of).count() as f64;
    let slow = number(Shifted::Slow);
    slow > AS_SLOW * (slow + number(Shifted::Usual))
}

/// The times of the scrapes, all moved by the same.
#[derive(Clone, Copy, PartialEq)]
enum Shifted {
    /// Half of them are those of other scrapes.
    AtScrapes,
    Slow,
    Usual,
}

fn shifted(timeline: &Timeline, is_scraped: &[bool], shift: usize, slow_ns: f64) -> Shifted {
    let length = is_scraped.len();
    let scraped = (0..length).filter(|bin| is_scraped[*bin]);
    let (mut sum, mut scrapes, mut others) = (Bin::default(), 0, 0);
    for bin in scraped.map(|bin| (bin + shift) % length) {
        if is_scraped[bin] {
            scrapes += 1;
        } else {
            others += 1;
            sum.add(&timeline.bins()[bin]);
        }
    }
    match sum.latency_ns_mean() >= Some(slow_ns) {
        _ if scrapes >= others => Shifted::AtScrapes,
        true => Shifted::Slow,
        false => Shifted::Usual,
    }
}
