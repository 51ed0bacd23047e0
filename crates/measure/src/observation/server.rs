//! Figures of observed servers under load, for rules, metrics and reports.
//!
//! The first observed server is the target, further ones are behind it. Figures are those of the
//! measured window, as closely as the instants of the scrapes allow.

use std::net::SocketAddr;

use super::{Observation, Sample, Scrape, Series, SeriesKind};
use crate::interval::per;
use crate::record::RunRecord;

/// Most CPUs that a list may name: it comes from outside.
const CPUS_MAX: u64 = 4_096;

/// The time in which a load was offered, nanoseconds since the start of the measured run.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// When the warm-up began.
    load_from_ns: i64,
    until_ns: i64,
}

/// One program under load, or its control group.
#[derive(Clone, Debug)]
pub struct ProgramUse<'a> {
    observation: &'a Observation,
    /// CPUs' worth of time that it used.
    pub cpus_used: f64,
    /// CPUs' worth of time that it may use: its CPUs, or its quota; none if that is not known.
    pub cpus_allowed: Option<f64>,
    /// How much of a CPU its busiest thread used, on average.
    pub busiest_thread_cpus: Option<f64>,
    /// CPUs' worth of time for which its threads were ready to run and had none.
    pub waited_cpus: Option<f64>,
    /// In how many of its periods its quota had stopped it, 0 to 1; none without one.
    pub throttled_share: Option<f64>,
    /// Datagrams that its sockets had no room for, from before the run until after it.
    pub udp_drops: u64,
    /// Packets that the interface of its pod dropped.
    pub interface_drops: u64,
    /// Connections that a full listen queue dropped, from before the run until after it.
    pub listen_overflows: u64,
    /// The most memory that it had, in bytes.
    pub memory_bytes_max: Option<f64>,
    /// Memory usage of its control group, and its limit.
    pub memory: MemoryUse,
    /// Connections that its listen queue at the target's port has room for.
    pub listen_queue: Option<u64>,
    /// Bytes that its smallest UDP socket at the target's port has room for.
    pub udp_buffer_bytes: Option<u64>,
    /// Bytes by which the files grew that it writes, from before the run until after it.
    pub written_bytes: Option<f64>,
    /// Scrapes that found it stopped by a signal, of all.
    pub stopped: (u64, u64),
}

/// Memory under a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryUse {
    /// The most that its control group had, in bytes.
    pub bytes_max: Option<f64>,
    /// The limit; none without one.
    pub limit_bytes: Option<f64>,
    /// Processes of it that the kernel killed for lack of memory.
    pub killed: u64,
    /// Pages a second for which the program waited until they were read from a disk.
    pub pages_per_second: f64,
}

/// Counters of queries and connections that a server dropped.
pub const DROPS: [&str; 5] = [
    "queries.dropped",
    "requestlist.exceeded",
    "requestlist.overwritten",
    "connections.failed",
    "clients.tcp_gave_up",
];
/// Counter of the checks of servers behind it that failed.
const CHECKS_FAILED: &str = "upstream.checks_failed";
/// Counters of queries that it did not pass on to them.
const NOT_PASSED_ON: [&str; 3] = [
    "upstream.send_errors",
    "upstream.rejected",
    "queries.nobody",
];
/// Counters of queries that the servers behind it did not answer, or did not get.
pub const UPSTREAM_FAILURES: [&str; 5] = [
    "upstream.timeouts",
    CHECKS_FAILED,
    NOT_PASSED_ON[0],
    NOT_PASSED_ON[1],
    NOT_PASSED_ON[2],
];
/// Counters of what is lost before a program reads it, and of programs that end.
pub const PROGRAM_LOSSES: [&str; 5] = [
    "udp.drops",
    "group.receive_dropped",
    "listen.overflows",
    "softnet.dropped",
    "group.killed",
];

/// A server's count of queries, from before the run until after it.
#[derive(Clone, Debug)]
pub struct QueryUse<'a> {
    observation: &'a Observation,
    /// Queries that it received.
    pub queries: f64,
    /// Of its lookups in the cache, those that were answered from there, 0 to 1; none without
    /// lookups.
    pub cache_hit_share: Option<f64>,
    /// Queries that it sent to other servers.
    pub upstream_queries: Option<f64>,
    /// Mean time until those were answered, in seconds, where it adds them up.
    pub upstream_s_mean: Option<f64>,
    /// The longest mean time of those between two scrapes, in seconds.
    pub upstream_s_worst: Option<f64>,
    /// What it counted of those that failed, by the names of [`UPSTREAM_FAILURES`]; more than 0.
    pub upstream_failures: Vec<(&'static str, u64)>,
    /// The most TCP clients that it had at once: as it says itself, since it began, or at a scrape.
    pub tcp_clients_max: Option<f64>,
    /// It began again in the meantime: what it counted before is lost.
    pub was_reset: bool,
    /// Its count is complete: it was scraped before and after the run.
    pub is_whole: bool,
}

impl<'a> ProgramUse<'a> {
    fn of(observation: &'a Observation, window: Window, port: Option<u16>) -> Option<Self> {
        let used = |names: &[&str]| -> Option<f64> {
            let each = names
                .iter()
                .map(|name| observation.growth_per_second(name, window));
            each.sum()
        };
        // Those of a host have idle time too.
        if observation.series("cpu.idle").is_some() {
            return None;
        }
        let cpus_used = used(&["cpu.user", "cpu.system"]).or_else(|| used(&["group.cpu"]))?;
        Some(ProgramUse {
            observation,
            cpus_used,
            cpus_allowed: observation.cpus_allowed(),
            busiest_thread_cpus: observation.mean("cpu.busiest_thread", window),
            waited_cpus: observation.growth_per_second("cpu.wait", window),
            throttled_share: observation.throttled(window),
            udp_drops: observation.grown("udp.drops"),
            interface_drops: observation.grown("group.receive_dropped"),
            listen_overflows: observation.grown("listen.overflows"),
            memory_bytes_max: (observation.series("memory")).and_then(|memory| memory.highest),
            memory: MemoryUse {
                bytes_max: observation.series("group.memory").and_then(|it| it.highest),
                limit_bytes: (observation.least("group.memory_limit")).filter(|it| *it > 0.0),
                killed: observation.grown("group.killed"),
                pages_per_second: observation
                    .growth_per_second("faults.major", window)
                    .unwrap_or(0.0),
            },
            listen_queue: observation.room("tcp.room", port),
            udp_buffer_bytes: observation.room("udp.room", port),
            written_bytes: observation.series("files.written").and_then(|it| it.growth),
            stopped: observation.scrapes_with("processes.stopped"),
        })
    }

    /// The product, as its maker writes it, or the name of the program.
    pub fn product(&self) -> &'a str {
        let product = self.observation.facts.product.as_deref();
        product.unwrap_or_else(|| self.name())
    }

    /// Its name: that of its program, or of the source.
    pub fn name(&self) -> &'a str {
        self.observation.name()
    }

    /// Its number as a process of this host; none where it was not found as one.
    pub fn process_id(&self) -> Option<u32> {
        self.observation.facts.process_id
    }

    /// The CPUs that it may use, as a list: `0-3,8`.
    pub fn cpus(&self) -> Option<&'a str> {
        self.observation.facts.cpus.as_deref()
    }

    /// True if it was found by the port that it serves (`process=192.0.2.1:53`), as
    /// `--observe auto` finds servers, and not by its number or name.
    pub fn is_server(&self) -> bool {
        let place = self.observation.source.split_once('=');
        place.is_some_and(|(_, place)| match place.strip_prefix(':') {
            Some(port) => port.parse::<u16>().is_ok(),
            None => place.parse::<SocketAddr>().is_ok(),
        })
    }

    /// How much of what it may use it used, 0 to 1.
    pub fn cpu_share(&self) -> Option<f64> {
        self.cpus_allowed.map(|all| per(self.cpus_used, all))
    }

    /// CPUs' worth of time that it used from scrape to scrape, as [`Observation::rates`].
    pub fn cpus_over_time(&self) -> Vec<(i64, i64, Option<f64>)> {
        let of_threads = self.observation.rates(&["cpu.user", "cpu.system"]);
        match of_threads.is_empty() {
            true => self.observation.rates(&["group.cpu"]),
            false => of_threads,
        }
    }

    /// Where it was asked.
    pub fn observation(&self) -> &'a Observation {
        self.observation
    }
}

impl<'a> QueryUse<'a> {
    fn of(observation: &'a Observation) -> Option<Self> {
        let growth = |name: &str| observation.series(name).and_then(|series| series.growth);
        let queries = observation.series("queries")?;
        let (hits, misses) = (growth("cache.hits"), growth("cache.misses"));
        let lookups = hits.unwrap_or(0.0) + misses.unwrap_or(0.0);
        let upstream_queries = growth("upstream.queries");
        let asked = upstream_queries.filter(|number| *number > 0.0);
        let upstream_time = observation.series("upstream.time");
        // Some add up the times, others give their mean.
        let upstream_s_mean = asked
            .zip(upstream_time)
            .and_then(|(asked, time)| match time.kind {
                SeriesKind::Counter => Some(time.growth? / asked),
                SeriesKind::Gauge => time.samples.iter().rev().find_map(|sample| sample.value()),
            });
        Some(QueryUse {
            observation,
            queries: queries.growth?,
            cache_hit_share: hits.filter(|_| lookups > 0.0).map(|hits| hits / lookups),
            upstream_queries,
            upstream_s_mean,
            upstream_s_worst: observation.upstream_s_worst(),
            upstream_failures: observation.all_grown(&UPSTREAM_FAILURES),
            tcp_clients_max: ["clients.tcp_most", "clients.tcp"]
                .into_iter()
                .find_map(|name| observation.series(name)?.highest)
                .filter(|clients| *clients > 0.0),
            was_reset: queries.resets > 0,
            is_whole: is_told(queries.samples.first()) && is_told(queries.samples.last()),
        })
    }

    /// True if checks whether the servers behind it answer failed.
    pub(crate) fn has_failed_checks(&self) -> bool {
        self.upstream_failed(&[CHECKS_FAILED]) > 0
    }

    /// Queries that it did not pass on to servers behind it.
    pub(crate) fn not_passed_on(&self) -> u64 {
        self.upstream_failed(&NOT_PASSED_ON)
    }

    fn upstream_failed(&self, names: &[&str]) -> u64 {
        let failures = self.upstream_failures.iter();
        let named = failures.filter(|(name, _)| names.contains(name));
        named.map(|(_, number)| number).sum()
    }

    /// The name of its product, or of the source.
    pub fn name(&self) -> &'a str {
        let product = self.observation.facts.product.as_deref();
        product.unwrap_or_else(|| self.observation.name())
    }

    /// Where it was asked.
    pub fn observation(&self) -> &'a Observation {
        self.observation
    }
}

impl Observation {
    /// Its description: a program's name, a product, or the source.
    pub fn name(&self) -> &str {
        let binary = self.facts.binary.as_deref();
        let program = binary.and_then(|path| path.rsplit('/').next());
        let named = program.or(self.facts.product.as_deref());
        named.unwrap_or(&self.source)
    }

    /// Its available CPUs: those that it may run on, or fewer by a quota.
    fn cpus_allowed(&self) -> Option<f64> {
        let cpus = self.facts.cpus.as_deref().and_then(cpus_in);
        cpus.into_iter().chain(self.quota_cpus()).reduce(f64::min)
    }

    /// Its CPU quota, in CPUs, as read once or at each scrape.
    fn quota_cpus(&self) -> Option<f64> {
        let quota = self.facts.quota_cpus.or_else(|| self.least("group.quota"));
        quota.filter(|quota| *quota > 0.0)
    }

    /// Those of these counters that grew, and by how much.
    pub(crate) fn all_grown(&self, names: &[&'static str]) -> Vec<(&'static str, u64)> {
        let each = names.iter().map(|name| (*name, self.grown(name)));
        each.filter(|(_, number)| *number > 0).collect()
    }

    fn grown(&self, name: &str) -> u64 {
        let growth = self.series(name).and_then(|series| series.growth);
        growth.unwrap_or(0.0).max(0.0) as u64
    }

    /// In how many of its periods within the window a quota had stopped it.
    fn throttled(&self, window: Window) -> Option<f64> {
        self.quota_cpus()?;
        let periods = self.growth_per_second("group.periods", window)?;
        let throttled = self.growth_per_second("group.throttled_periods", window)?;
        (periods > 0.0).then(|| (throttled / periods).min(1.0))
    }

    /// By how much a counter grew a second while the load was offered.
    ///
    /// Scrapes within the window count alone where they span half of it. Otherwise it is what came
    /// from before it until after it, as if nothing had happened but the load.
    fn growth_per_second(&self, name: &str, window: Window) -> Option<f64> {
        let counter = |series: &&Series| series.kind == SeriesKind::Counter;
        let series = self.series(name).filter(counter)?;
        let at = self.scrapes.iter().map(|scrape| scrape.at_ns);
        let all: Vec<(i64, Sample)> = at
            .zip(series.samples.iter().copied())
            .filter(|(_, sample)| sample.value().is_some())
            .collect();
        let first = all.iter().position(|(at, _)| *at >= 0);
        let last = all.iter().rposition(|(at, _)| *at <= window.until_ns);
        let within = first.zip(last).filter(|(first, last)| {
            let span = |&(first, last): &(usize, usize)| all[last].0.saturating_sub(all[first].0);
            first < last && span(&(*first, *last)) >= window.until_ns / 2
        });
        let (first, last) = match within {
            Some(within) => within,
            None => {
                let before = all.iter().rposition(|(at, _)| *at <= window.load_from_ns);
                let after = all.iter().position(|(at, _)| *at >= window.until_ns);
                (before.unwrap_or(0), after.unwrap_or(all.len().max(1) - 1))
            }
        };
        let span = all.get(first..=last).filter(|span| span.len() > 1)?;
        let loaded_ns = (span[span.len() - 1].0.min(window.until_ns))
            .saturating_sub(span[0].0.max(window.load_from_ns));
        let growth: f64 = span
            .windows(2)
            .map(|pair| grown(pair[0].1, pair[1].1))
            .sum();
        (loaded_ns > 0).then(|| growth * 1e9 / loaded_ns as f64)
    }

    /// Sum of the rates of counters per second, between scrapes, with the instants of both in
    /// nanoseconds since the start of the measured run. None if one of them has no value or was
    /// reset.
    pub fn rates(&self, names: &[&str]) -> Vec<(i64, i64, Option<f64>)> {
        let counters: Option<Vec<&Series>> = names.iter().map(|name| self.series(name)).collect();
        let Some(counters) = counters else {
            return Vec::new();
        };
        let pairs = self.scrapes.windows(2).enumerate();
        let rate = |(number, pair): (usize, &[Scrape])| {
            let (from, until) = (pair[0].at_ns, pair[1].at_ns);
            let grown = counters.iter().map(|series| {
                match (series.samples.get(number)?, series.samples.get(number + 1)?) {
                    (_, Sample::Reset { .. }) => None,
                    (before, after) => Some(after.value()? - before.value()?),
                }
            });
            let grown: Option<f64> = grown.sum();
            let seconds = until.saturating_sub(from) as f64 / 1e9;
            (
                from,
                until,
                grown.filter(|_| seconds > 0.0).map(|it| it / seconds),
            )
        };
        pairs.map(rate).collect()
    }

    /// The mean of a gauge that covers the time since the previous scrape. Only scrapes entirely
    /// under load count; without any, the highest value is used.
    fn mean(&self, name: &str, window: Window) -> Option<f64> {
        let series = self.series(name)?;
        let spans = self.scrapes.windows(2).zip(series.samples.iter().skip(1));
        let is_loaded = |span: &[Scrape]| {
            span[0].at_ns >= window.load_from_ns && span[1].at_ns <= window.until_ns
        };
        let within = spans.filter(|(span, _)| is_loaded(span));
        let values: Vec<f64> = within.filter_map(|(_, sample)| sample.value()).collect();
        match values.len() {
            0 => series.highest,
            number => Some(values.iter().sum::<f64>() / number as f64),
        }
    }

    fn least(&self, name: &str) -> Option<f64> {
        self.series(name)?.lowest
    }

    /// Capacity of its sockets at that port; of any port if it has none there.
    fn room(&self, name: &str, port: Option<u16>) -> Option<u64> {
        let at_port = port.and_then(|port| self.least(&format!("{name}{{port=\"{port}\"}}")));
        let ports = self.series.iter().filter(|it| {
            let labels = it.name.strip_prefix(name);
            labels.is_some_and(|labels| labels.starts_with('{'))
        });
        let least = ports.filter_map(|it| it.lowest).reduce(f64::min);
        at_port.or(least).map(|room| room as u64)
    }

    /// Scrapes at which a gauge was above zero, and all scrapes with the gauge.
    fn scrapes_with(&self, name: &str) -> (u64, u64) {
        let samples = self.series(name).map_or(&[][..], |series| &series.samples);
        let values: Vec<f64> = samples.iter().filter_map(|it| it.value()).collect();
        let with = values.iter().filter(|value| **value > 0.0).count();
        (with as u64, values.len() as u64)
    }

    /// The longest mean time of queries to other servers, from scrape to scrape.
    fn upstream_s_worst(&self) -> Option<f64> {
        let (times, asked) = (
            self.rates(&["upstream.time"]),
            self.rates(&["upstream.queries"]),
        );
        let is_sum = self.series("upstream.time")?.kind == SeriesKind::Counter;
        let each = times.iter().zip(&asked);
        let means = each.filter_map(|((_, _, time), (_, _, asked))| {
            let asked = asked.filter(|asked| *asked > 0.0)?;
            Some((*time)? / asked)
        });
        means.filter(|_| is_sum).reduce(f64::max)
    }
}

fn is_told(sample: Option<&Sample>) -> bool {
    sample.is_some_and(|it| it.value().is_some())
}

/// The growth of a counter between two samples.
fn grown(before: Sample, after: Sample) -> f64 {
    match (before.value(), after) {
        (_, Sample::Reset { reset }) => reset.max(0.0),
        (Some(before), after) => (after.value().unwrap_or(before) - before).max(0.0),
        (None, _) => 0.0,
    }
}

/// How many CPUs a list such as `0-3,8` names.
fn cpus_in(list: &str) -> Option<f64> {
    let mut cpus = 0;
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let first: u64 = first.trim().parse().ok()?;
        let last: u64 = last.trim().parse().ok()?;
        cpus += last.checked_sub(first)?.min(CPUS_MAX) + 1;
    }
    (cpus > 0).then_some(cpus as f64)
}

impl RunRecord {
    /// Observed programs, in order: the first is the target.
    pub fn programs(&self) -> Vec<ProgramUse<'_>> {
        let window = Window {
            load_from_ns: -i64::try_from(self.phases.warmup_ns).unwrap_or(i64::MAX),
            until_ns: i64::try_from(self.measured_ns).unwrap_or(i64::MAX),
        };
        let target: Option<SocketAddr> = self.scenario.target.parse().ok();
        let port = target.map(|target| target.port());
        let mut programs: Vec<ProgramUse<'_>> = Vec::new();
        for observation in &self.observations {
            // A program observed twice, by its number and by its port, counts once.
            let process = observation.facts.process_id;
            let is_known = |it: &ProgramUse<'_>| it.observation.facts.process_id == process;
            if process.is_none() || !programs.iter().any(is_known) {
                programs.extend(ProgramUse::of(observation, window, port));
            }
        }
        programs
    }

    /// Servers with counts, in order: the first is the target.
    pub fn servers(&self) -> Vec<QueryUse<'_>> {
        self.observations.iter().filter_map(QueryUse::of).collect()
    }

    /// CPU time of the server for each response, nanoseconds.
    pub fn server_cpu_ns_per_response(&self) -> Option<f64> {
        let qps = self.achieved_qps();
        let programs = self.programs();
        let program = programs.first().filter(|_| qps > 0.0)?;
        Some(program.cpus_used * 1e9 / qps)
    }
}
