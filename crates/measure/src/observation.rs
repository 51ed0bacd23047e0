//! Server and host metrics during a run, on the run's clock.
//!
//! An [`Observation`] is one source: its facts, its series, and the times and costs of its scrapes.
//! All series share the instants of [`Observation::scrapes`]. Counters are unmodified; a sample
//! that is missing, stale or after a reset is marked as such, and none of the three is zero.
//!
//! [`Recorder`] makes one, in bounded memory however long the run is: it merges successive scrapes
//! in pairs, as [`crate::intervals`] does, and counts what it leaves out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::printable::on_one_line;

mod recorder;
mod server;
#[cfg(test)]
mod tests;

pub use recorder::{NOTES_MAX, Observed, Recorder, SCRAPES_MAX, SERIES_MAX, VALUES_MAX};
pub use server::{DROPS, MemoryUse, PROGRAM_LOSSES, ProgramUse, QueryUse, UPSTREAM_FAILURES};

/// One source: its address, its facts, and its series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// The source as given, `bind=http://127.0.0.1:8053/`; without secrets.
    pub source: String,
    /// The profile: which series there are and what they mean.
    pub profile: String,
    /// When it was asked.
    pub mode: ObservationMode,
    /// Requested time between two scrapes, nanoseconds.
    pub period_ns: u64,
    /// Its facts, read once before the run.
    pub facts: ServerFacts,
    /// Every scrape in order, or several merged, the latest of which gave the samples.
    pub scrapes: Vec<Scrape>,
    /// Scrapes that were merged into each of `scrapes`, a power of two; the first one stays alone,
    /// and the last one may have fewer.
    #[schemars(range(min = 1))]
    pub scrapes_merged: u64,
    /// The series, each with as many samples as there are scrapes.
    pub series: Vec<Series>,
    /// What a reader must know: gaps and their reasons, limits that were met.
    pub notes: Vec<ObservationNote>,
    /// Series and samples dropped because of a limit.
    pub overflow: ObservationOverflow,
}

/// When a source is scraped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObservationMode {
    /// Before the run, periodically, and after it.
    #[default]
    During,
    /// Before and after it only.
    Around,
    /// Never.
    Off,
}

impl ObservationMode {
    /// All of them.
    pub const ALL: [ObservationMode; 3] = [
        ObservationMode::During,
        ObservationMode::Around,
        ObservationMode::Off,
    ];

    /// The name as it is typed and recorded.
    pub const fn name(self) -> &'static str {
        match self {
            ObservationMode::During => "during",
            ObservationMode::Around => "around",
            ObservationMode::Off => "off",
        }
    }
}

/// Facts of a source, as far as it or the host reports them. Unknown ones are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerFacts {
    /// The product, `BIND`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// Its version: of its statistics, or its answer to `version.bind` where it is no proxy that
    /// may forward that query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The answer to `version.bind`: any text that is configured, and that of a server behind this
    /// one where this one forwards the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_bind: Option<String>,
    /// Which server of several it is: NSID (RFC 5001), `id.server` (RFC 4892).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// When it began, as it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// The process; the first one where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_id: Option<u32>,
    /// Path of its configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// SHA-256 of that file, in hexadecimal. Its contents, which may hold keys, are not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration_sha256: Option<String>,
    /// Path of its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary: Option<String>,
    /// SHA-256 of the program, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_sha256: Option<String>,
    /// Threads, of all its processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// CPUs it may use, `0-3,8`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// CPUs' worth of time that its control group, or one above it, may use; none without a quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_cpus: Option<f64>,
}

impl ServerFacts {
    /// Takes from `other` whatever is not known yet.
    pub fn complete_with(&mut self, other: ServerFacts) {
        let ServerFacts {
            product,
            version,
            version_bind,
            identity,
            started,
            process_id,
            configuration,
            configuration_sha256,
            binary,
            binary_sha256,
            threads,
            cpus,
            quota_cpus,
        } = other;
        // A server says what it likes, and a process calls itself as it likes.
        let line = |text: Option<String>| text.as_deref().map(on_one_line);
        complete(&mut self.product, line(product));
        complete(&mut self.version, line(version));
        complete(&mut self.version_bind, line(version_bind));
        complete(&mut self.identity, line(identity));
        complete(&mut self.started, line(started));
        complete(&mut self.process_id, process_id);
        complete(&mut self.configuration, line(configuration));
        complete(&mut self.configuration_sha256, configuration_sha256);
        complete(&mut self.binary, line(binary));
        complete(&mut self.binary_sha256, binary_sha256);
        complete(&mut self.threads, threads);
        complete(&mut self.cpus, cpus);
        complete(&mut self.quota_cpus, quota_cpus);
    }
}

impl ServerFacts {
    /// What both know and what is not the same, `version 9.18 and 9.20`. Which process it is, and
    /// since when, is another one each time.
    pub fn differing(&self, other: &ServerFacts) -> Vec<String> {
        let words = |facts: &ServerFacts| {
            [
                ("product", facts.product.clone()),
                ("version", facts.version.clone()),
                ("version.bind", facts.version_bind.clone()),
                ("identity", facts.identity.clone()),
                (
                    "configuration",
                    facts.configuration_sha256.clone().map(shortened),
                ),
                ("program", facts.binary_sha256.clone().map(shortened)),
                ("threads", facts.threads.map(|it| it.to_string())),
                ("CPUs", facts.cpus.clone()),
                ("quota", facts.quota_cpus.map(|it| it.to_string())),
            ]
        };
        let both = words(self).into_iter().zip(words(other));
        both.filter_map(|((name, one), (_, two))| {
            let (one, two) = one.zip(two)?;
            (one != two).then(|| format!("{name} {one} and {two}"))
        })
        .collect()
    }
}

/// The beginning of a hash, which is enough to tell two from each other.
fn shortened(hash: String) -> String {
    hash.chars().take(8).collect()
}

fn complete<T>(known: &mut Option<T>, other: Option<T>) {
    if known.is_none() {
        *known = other;
    }
}

/// When a source was scraped, and the cost for this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scrape {
    /// The instant of the samples: nanoseconds after the run's epoch, the middle of the latest
    /// scrape. Negative before the epoch.
    pub at_ns: i64,
    /// Its maximum error: half of the duration of the latest scrape, which began this long before
    /// and ended this long after `at_ns`.
    pub bound_ns: u64,
    /// Total duration of scrapes.
    pub took_ns: u64,
    /// CPU time of the scraping thread, without commands that it started.
    pub cpu_ns: u64,
    /// Bytes that were read.
    pub octets: u64,
    /// Scrapes that are merged here.
    #[schemars(range(min = 1))]
    pub number: u64,
    /// Those of them that failed.
    pub failed: u64,
}

impl Scrape {
    /// One that began and ended at these instants, nanoseconds after the run's epoch.
    pub fn between(began_ns: i64, ended_ns: i64) -> Scrape {
        let took_ns = ended_ns.saturating_sub(began_ns).max(0);
        Scrape {
            at_ns: began_ns.saturating_add(took_ns / 2),
            bound_ns: (took_ns as u64).div_ceil(2),
            took_ns: took_ns as u64,
            number: 1,
            ..Scrape::default()
        }
    }
}

/// One figure over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Its name in the profile, `queries.udp`; of any exposition its name with its labels.
    pub name: String,
    /// Its unit: `queries`, `seconds`, `bytes`, `cpus`.
    pub unit: String,
    /// Whether it only grows.
    pub kind: SeriesKind,
    /// One for each scrape.
    pub samples: Vec<Sample>,
    /// Of a counter: by how much it grew between its first and its last sample, what was counted
    /// before and after a reset added up. None with fewer than two samples, or of a gauge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<f64>,
    /// How often the counter ran backwards.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resets: u64,
    /// The lowest of all samples, those that were merged included; none if all are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest: Option<f64>,
    /// The highest of all samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest: Option<f64>,
}

/// Whether a series only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeriesKind {
    /// It counts from some instant on; what matters is by how much it grew.
    Counter,
    /// It is what it is at an instant.
    Gauge,
}

/// One value of a series, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Sample {
    /// As the source gave it.
    Value(f64),
    /// The first value after the counter began again, at 0 or somewhere else.
    Reset {
        /// The value.
        reset: f64,
    },
    /// None.
    Without(NoValue),
}

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoValue {
    /// The scrape failed, or the series was not in it.
    Missing,
    /// The source gave a value that is not newer than the one before.
    Stale,
}

impl Sample {
    /// The value, if there is one.
    pub fn value(self) -> Option<f64> {
        match self {
            Sample::Value(value) | Sample::Reset { reset: value } => Some(value),
            Sample::Without(_) => None,
        }
    }
}

/// One thing that a reader must know, said once however often it happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObservationNote {
    /// What happened, a sentence without a full stop.
    pub text: String,
    /// When first, nanoseconds after the run's epoch.
    pub first_ns: i64,
    /// When last.
    pub last_ns: i64,
    /// How often.
    #[schemars(range(min = 1))]
    pub times: u64,
}

/// What was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObservationOverflow {
    /// Values of series beyond the most that are kept.
    pub values: u64,
    /// Notes beyond the most that are kept.
    pub notes: u64,
    /// Scrapes that were due while an earlier one still went on.
    pub scrapes: u64,
}

impl Observation {
    /// The series of that name.
    pub fn series(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.name == name)
    }

    /// Moves the origin of its instants to `by_ns` after the present one.
    pub fn move_origin(&mut self, by_ns: i64) {
        for scrape in &mut self.scrapes {
            scrape.at_ns = scrape.at_ns.saturating_sub(by_ns);
        }
        for note in &mut self.notes {
            note.first_ns = note.first_ns.saturating_sub(by_ns);
            note.last_ns = note.last_ns.saturating_sub(by_ns);
        }
    }

    /// What all scrapes cost together; its instant says nothing.
    pub fn cost(&self) -> Scrape {
        let mut sum = Scrape::default();
        for scrape in &self.scrapes {
            sum.add_cost(scrape);
        }
        sum
    }

    /// Says what in it contradicts itself.
    ///
    /// # Errors
    /// A series has another number of samples than there are scrapes, or scrapes are out of order.
    pub fn check(&self) -> Result<(), String> {
        let scrapes = self.scrapes.len();
        for Series { name, samples, .. } in &self.series {
            if samples.len() != scrapes {
                let samples = samples.len();
                let source = &self.source;
                return Err(format!(
                    "observation `{source}`: series `{name}` has {samples} samples of \
                     {scrapes} scrapes"
                ));
            }
        }
        match self.scrapes.is_sorted_by_key(|scrape| scrape.at_ns) {
            true => Ok(()),
            false => Err(format!(
                "observation `{}`: scrapes out of order",
                self.source
            )),
        }
    }
}

impl Scrape {
    fn add_cost(&mut self, other: &Scrape) {
        self.took_ns += other.took_ns;
        self.cpu_ns += other.cpu_ns;
        self.octets += other.octets;
        self.number += other.number;
        self.failed += other.failed;
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
