//! Compares the latency of several servers that get the same queries in turn.
//!
//! The servers are queried round robin, so that all see the same conditions. The service times of
//! each are compared with those of the server with the lowest median: by ranks (Mann and Whitney),
//! corrected for the number of servers (Holm), and by the bootstrap interval of the difference of
//! medians. A server is slower only if both agree, and if the whole interval exceeds the difference
//! that order and wake-ups alone cause; else the result is undecided.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::probe::ProbeStatistics;
use crate::statistics::{Bootstrap, holm, mann_whitney, median};

/// Fewest responses of each server for a result: the ranks of fewer decide nothing.
pub const RESPONSES_MIN: usize = 6;
/// A difference as unlikely as that by chance is one.
const LEVEL: f64 = 0.05;
/// Differences below this share of the fastest median are ignored: a server varies by as much over
/// time.
const SAME_SHARE: f64 = 0.05;
/// Nor are those below this, in nanoseconds: a thread that has slept needs as long to be awake,
/// more or less, at either end.
const WAKE_UP_NS: f64 = 50_000.0;
/// How often is drawn for an interval.
const RESAMPLES: usize = 1_000;

/// Servers side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evaluation {
    /// The question: name and type.
    pub questions: Vec<String>,
    /// How the servers were reached.
    pub transport: String,
    /// The servers, in the requested order.
    pub rows: Vec<Row>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// As it was given.
    pub server: String,
    /// Its address and port, if it has one.
    pub address: Option<String>,
    /// Why it was not queried.
    pub problem: Option<String>,
    /// Its responses; none if it was not queried.
    pub statistics: Option<ProbeStatistics>,
    /// How it compares with the fastest.
    pub versus: Versus,
}

/// A server beside the fastest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "finding")]
pub enum Versus {
    /// Its median is the lowest.
    Fastest,
    /// Its median is higher, and not by chance.
    Slower {
        /// By so much.
        difference_ns: f64,
        /// Lower end of the interval of 95 %.
        low_ns: f64,
        /// Its upper end.
        high_ns: f64,
    },
    /// The difference may be chance, or the responses are too few.
    CannotTell {
        /// By so much its median is higher.
        difference_ns: f64,
    },
    /// It answered nothing.
    NoResponse,
}

/// The results of a server before the comparison.
pub struct Asked {
    /// As it was given.
    pub server: String,
    /// Its address and port, if it has one.
    pub address: Option<String>,
    /// Its responses, with the service times in nanoseconds; or why it was not queried.
    pub outcome: Result<(ProbeStatistics, Vec<f64>), String>,
}

impl Evaluation {
    /// Compares servers; `seed` is that of the bootstrap.
    pub fn new(questions: Vec<String>, transport: String, asked: Vec<Asked>, seed: u64) -> Self {
        let times = asked.iter().map(|each| match &each.outcome {
            Ok((_, times)) => times.as_slice(),
            Err(_) => &[],
        });
        let versus = versus(&times.collect::<Vec<_>>(), seed);
        let row = |(asked, versus): (Asked, Versus)| {
            let (statistics, problem) = match asked.outcome {
                Ok((statistics, _)) => (Some(statistics), None),
                Err(problem) => (None, Some(problem)),
            };
            Row {
                server: asked.server,
                address: asked.address,
                problem,
                statistics,
                versus,
            }
        };
        let rows: Vec<Row> = asked.into_iter().zip(versus).map(row).collect();
        Evaluation {
            notes: notes(&rows),
            questions,
            transport,
            rows,
        }
    }

    /// Puts the fastest first; servers without response come last, in the order given.
    pub fn sort(&mut self) {
        let median = |row: &Row| {
            let time = row
                .statistics
                .as_ref()
                .and_then(|statistics| statistics.time);
            time.map_or(u64::MAX, |time| time.median_ns)
        };
        self.rows.sort_by_key(median);
    }

    /// Responses of all servers.
    pub fn received(&self) -> u64 {
        let statistics = self.rows.iter().filter_map(|row| row.statistics.as_ref());
        statistics.map(|statistics| statistics.received).sum()
    }
}

fn notes(rows: &[Row]) -> Vec<String> {
    let mut notes = Vec::new();
    let undecided = |row: &&Row| matches!(row.versus, Versus::CannotTell { .. });
    if rows.iter().filter(undecided).count() > 0 {
        notes.push(
            "`cannot tell`: the difference to the fastest may be chance, or is below 5 % or \
             50 us; more --count may tell"
                .to_owned(),
        );
    }
    let is_mixed = |row: &&Row| {
        let statistics = row.statistics.as_ref();
        statistics.is_some_and(|it| it.rcodes.iter().any(|(name, _)| is_failure(name)))
    };
    if rows.iter().filter(is_mixed).count() > 0 {
        notes.push("a failure such as SERVFAIL or REFUSED may come faster than an answer".into());
    }
    notes
}

fn is_failure(rcode: &str) -> bool {
    !matches!(rcode, "NOERROR" | "NXDOMAIN")
}

fn versus(times: &[&[f64]], seed: u64) -> Vec<Versus> {
    let medians: Vec<Option<f64>> = times.iter().map(|times| median(times)).collect();
    let with_median = medians.iter().enumerate();
    let fastest = with_median
        .filter_map(|(index, median)| Some((index, (*median)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let Some((fastest, least)) = fastest else {
        return vec![Versus::NoResponse; times.len()];
    };
    let others: Vec<usize> = (0..times.len())
        .filter(|index| *index != fastest && medians[*index].is_some())
        .collect();
    let p_value = |index: &usize| {
        let is_enough = times[fastest].len().min(times[*index].len()) >= RESPONSES_MIN;
        let test = is_enough.then(|| mann_whitney(times[fastest], times[*index]));
        test.flatten().map_or(1.0, |test| test.p_value)
    };
    let p_values = holm(&others.iter().map(p_value).collect::<Vec<_>>());
    let mut found = vec![Versus::NoResponse; times.len()];
    found[fastest] = Versus::Fastest;
    let floor_ns = WAKE_UP_NS.max(SAME_SHARE * least);
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
    let bootstrap = Bootstrap {
        resamples: RESAMPLES,
        level: 1.0 - LEVEL,
    };
    for (index, p_value) in others.into_iter().zip(p_values) {
        let difference_ns = medians[index].unwrap_or(least) - least;
        let (from, to) = (times[fastest], times[index]);
        let interval = (p_value < LEVEL)
            .then(|| bootstrap.difference_of_medians(from, to, &mut generator))
            .flatten();
        found[index] = match interval {
            Some(interval) if interval.low > floor_ns => Versus::Slower {
                difference_ns,
                low_ns: interval.low,
                high_ns: interval.high,
            },
            _ => Versus::CannotTell { difference_ns },
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use rand_core::Rng;

    use super::*;

    fn around(middle_ns: f64, count: usize, seed: u64) -> Vec<f64> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        let noise = || f64::from(generator.next_u32()) / f64::from(u32::MAX) - 0.5;
        let mut noise = noise;
        (0..count)
            .map(|_| middle_ns * (1.0 + 0.2 * noise()))
            .collect()
    }

    #[test]
    fn a_server_twice_as_slow_is_slower_and_its_interval_holds_the_difference() {
        let times = [around(1e6, 20, 1), around(2e6, 20, 2)];
        let found = versus(&[&times[0], &times[1]], 1);
        assert_eq!(found[0], Versus::Fastest);
        let Versus::Slower {
            low_ns, high_ns, ..
        } = found[1]
        else {
            panic!("{found:?}");
        };
        assert!((low_ns..high_ns).contains(&1e6), "{low_ns} {high_ns}");
    }

    #[test]
    fn servers_that_are_alike_are_rarely_told_apart() {
        let mut alarms = 0;
        for seed in 0..200 {
            let times = [around(1e6, 20, 2 * seed), around(1e6, 20, 2 * seed + 1)];
            let found = versus(&[&times[0], &times[1]], seed);
            alarms += found
                .iter()
                .filter(|each| matches!(each, Versus::Slower { .. }))
                .count();
        }
        assert!(alarms <= 16, "{alarms} of 200");
    }

    #[test]
    fn few_responses_cannot_tell_and_none_is_said() {
        let times = [around(1e6, 5, 1), around(9e6, 5, 2), Vec::new()];
        let found = versus(&[&times[0], &times[1], &times[2]], 1);
        assert!(matches!(found[1], Versus::CannotTell { difference_ns } if difference_ns > 7e6));
        assert_eq!(found[2], Versus::NoResponse);
        assert_eq!(versus(&[&[], &[]], 1), [Versus::NoResponse; 2]);
    }
}
