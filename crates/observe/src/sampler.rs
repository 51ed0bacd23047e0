//! The threads that ask: one a source, so that a slow one delays no other.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use measure::Observation;
use measure::observation::{ObservationMode, Recorder, Scrape, ServerFacts};

use crate::asked::{Asked, AskedError};
use crate::gap::Gap;
use crate::newest::{Newest, NewestScrape, Slot};
use crate::open::{Opened, limits, open};
use crate::profile::Picker;
use crate::query_api::{QueryApi, Span};
use crate::source::Source;
use crate::stream::{Allowance, Limits};

/// Most sources of a run.
pub const OBSERVATIONS_MAX: usize = 32;

/// What a source may take beyond its limit, before a run begins or ends without it: names that are
/// looked up, files that are hashed.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it is looked whether the run is over before it has begun.
const LOOK: Duration = Duration::from_millis(50);

/// What is the same for all sources of a run, unless a source says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// When sources are asked.
    pub mode: ObservationMode,
    /// Time between two scrapes.
    pub period: Duration,
    /// The CPU time of the calling thread, for the cost of a scrape.
    pub thread_cpu_time: fn() -> Duration,
}

/// Sources that are being asked.
pub struct Observer {
    epoch: (Instant, SystemTime),
    sources: Vec<Running>,
}

/// One source.
struct Running {
    recorder: Arc<Mutex<Recorder>>,
    /// Closed to end it.
    stop: Option<Sender<()>>,
    first: Receiver<()>,
    /// Closed when its last scrape is in.
    last: Receiver<()>,
    limits: Limits,
    later: Option<Box<QueryApi>>,
    newest: Slot,
}

/// What a thread works with.
struct Sampler {
    source: Box<dyn Source>,
    picker: Picker,
    recorder: Arc<Mutex<Recorder>>,
    settings: Settings,
    limits: Limits,
    epoch: Instant,
    /// The same, since 1970.
    unix_epoch: Duration,
    profile: &'static crate::Profile,
    newest: Slot,
}

impl Observer {
    /// Begins to ask: facts, then one scrape, for which this waits. `epoch` is the origin of all
    /// instants.
    ///
    /// # Errors
    /// A source cannot be asked however it behaves: what was typed is wrong.
    pub fn start(
        asked: &[Asked],
        epoch: Instant,
        settings: Settings,
    ) -> Result<Observer, AskedError> {
        Observer::start_unless(asked, epoch, settings, &|| false)
    }

    /// The same, which waits no longer once `is_over` says that the run is.
    ///
    /// # Errors
    /// Those of [`Observer::start`].
    pub fn start_unless(
        asked: &[Asked],
        epoch: Instant,
        settings: Settings,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Observer, AskedError> {
        if asked.len() > OBSERVATIONS_MAX {
            return Err(AskedError {
                what: format!(
                    "{} sources are observed, at most {OBSERVATIONS_MAX}",
                    asked.len()
                ),
                hint: "observe fewer of them".to_owned(),
            });
        }
        let is_on = |asked: &&Asked| asked.mode.unwrap_or(settings.mode) != ObservationMode::Off;
        let wall = SystemTime::now().checked_sub(epoch.elapsed());
        let epoch = (epoch, wall.unwrap_or(SystemTime::UNIX_EPOCH));
        let mut observer = Observer {
            epoch,
            sources: Vec::new(),
        };
        for asked in asked.iter().filter(is_on) {
            observer.sources.push(running(asked, epoch, settings)?);
        }
        for source in &observer.sources {
            // It has come, or it never will, or the run begins without it.
            let until = Instant::now() + source.limits.time + PATIENCE;
            while source.first.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout)
                && Instant::now() < until
                && !is_over()
            {}
        }
        Ok(observer)
    }

    /// What there is by now of each source.
    pub fn so_far(&self) -> Vec<Observation> {
        let each = self.sources.iter();
        each.map(|it| locked(&it.recorder).observation().clone())
            .collect()
    }

    /// The newest scrape of each source, by now and while they go on.
    pub fn newest(&self) -> Newest {
        Newest::new(self.sources.iter().map(|it| it.newest.clone()))
    }

    /// Asks once more, and ends.
    pub fn finish(self) -> Vec<Observation> {
        self.finish_within(Duration::MAX)
    }

    /// The same, all sources together within that time: what has not answered then is left.
    pub fn finish_within(mut self, most: Duration) -> Vec<Observation> {
        let began = Instant::now();
        for source in &mut self.sources {
            source.stop = None;
        }
        let (epoch, wall) = self.epoch;
        let ended_ns = since(epoch, Instant::now());
        let mut observations = Vec::new();
        for mut source in self.sources {
            let left = most.saturating_sub(began.elapsed());
            let patience = left.min(source.limits.time * 2 + PATIENCE);
            let ended = source.last.recv_timeout(patience);
            let mut recorder = locked(&source.recorder);
            if ended == Err(RecvTimeoutError::Timeout) {
                recorder.note(
                    ended_ns,
                    "it did not end with the run, and was left".to_owned(),
                );
            }
            if let Some(later) = &mut source.later {
                let span = Span {
                    epoch: wall,
                    from_ns: 0,
                    until_ns: ended_ns,
                };
                let left = most.saturating_sub(began.elapsed());
                let allowance = Allowance::starting_now(Limits {
                    time: left.min(source.limits.time),
                    ..source.limits
                });
                later.ask(span, &allowance, &mut recorder);
            }
            observations.push(recorder.observation().clone());
        }
        observations
    }
}

/// Opens a source and starts its thread.
fn running(
    asked: &Asked,
    (epoch, wall): (Instant, SystemTime),
    settings: Settings,
) -> Result<Running, AskedError> {
    let settings = Settings {
        mode: asked.mode.unwrap_or(settings.mode),
        period: asked
            .period
            .unwrap_or(settings.period)
            .max(crate::PERIOD_MIN),
        ..settings
    };
    let period_ns = settings.period.as_nanos() as u64;
    let profile = asked.profile;
    let recorder = Recorder::new(&asked.shown(), profile.name, settings.mode, period_ns);
    let recorder = Arc::new(Mutex::new(recorder));
    let picker = Picker::new(profile, &asked.labels(), asked.allowed.clone());
    let limits = limits(asked);
    let (stop, stopped) = mpsc::channel();
    let (ready, first) = mpsc::channel();
    let (ended, last) = mpsc::channel();
    let mut running = Running {
        recorder: recorder.clone(),
        stop: Some(stop),
        first,
        last,
        limits,
        later: None,
        newest: Slot::default(),
    };
    match open(asked, &picker)? {
        Opened::Later(later) => running.later = Some(later),
        Opened::Source(source) => {
            let sampler = Sampler {
                source,
                picker,
                recorder: recorder.clone(),
                settings,
                limits,
                epoch,
                unix_epoch: wall
                    .duration_since(SystemTime::UNIX_EPOCH)
                    .unwrap_or_default(),
                profile,
                newest: running.newest.clone(),
            };
            let thread = thread::Builder::new().name(format!("observe-{}", profile.name));
            let started = thread.spawn(move || sampler.run(&ready, &stopped, ended));
            if let Err(error) = started {
                let at_ns = since(epoch, Instant::now());
                locked(&recorder).note(at_ns, format!("no thread for it: {error}"));
            }
        }
    }
    Ok(running)
}

impl Sampler {
    fn run(mut self, ready: &Sender<()>, stopped: &Receiver<()>, ended: Sender<()>) {
        let facts = self.source.facts();
        let at_ns = since(self.epoch, Instant::now());
        let mut recorder = locked(&self.recorder);
        recorder.facts().complete_with(facts);
        for gap in self.source.gaps() {
            recorder.note(at_ns, gap);
        }
        drop(recorder);
        self.scrape();
        // The receiver is gone if this took too long.
        let _ = ready.send(());
        let mut due = Instant::now() + self.settings.period;
        loop {
            let is_during = self.settings.mode == ObservationMode::During;
            let stop = match is_during {
                true => stopped.recv_timeout(due.saturating_duration_since(Instant::now())),
                false => stopped.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            if stop != Err(RecvTimeoutError::Timeout) {
                break;
            }
            self.scrape();
            due += self.settings.period;
            let late = Instant::now().saturating_duration_since(due);
            let missed = late.as_nanos() / self.settings.period.as_nanos();
            if late > Duration::ZERO && missed > 0 {
                locked(&self.recorder).skip(missed as u64);
                due += self.settings.period * u32::try_from(missed).unwrap_or(u32::MAX);
            }
        }
        self.scrape();
        drop(ended);
    }

    /// Asks once and writes down what came of it.
    fn scrape(&mut self) {
        let cpu = (self.settings.thread_cpu_time)();
        let began = Instant::now();
        let answer = self.source.read(&Allowance::starting_now(self.limits));
        let mut scrape =
            Scrape::between(since(self.epoch, began), since(self.epoch, Instant::now()));
        let values = answer.map(|answer| {
            scrape.octets = answer.octets;
            (
                self.profile.facts(&answer.reading),
                self.picker.pick(&answer.reading),
            )
        });
        let cpu = (self.settings.thread_cpu_time)().saturating_sub(cpu);
        scrape.cpu_ns = cpu.as_nanos() as u64;
        let mut recorder = locked(&self.recorder);
        let has_failed = !matches!(&values, Ok((_, values)) if !values.is_empty());
        match values {
            Ok((facts, values)) => {
                if let Some(restart) = restarted(recorder.facts(), &facts) {
                    recorder.note(scrape.at_ns, restart);
                }
                recorder.facts().complete_with(facts);
                if values.is_empty() {
                    let text = "none of the series is in the answer".to_owned();
                    recorder.fail(scrape, self.with_cure(text));
                } else {
                    recorder.push(scrape, values);
                }
            }
            Err(gap @ (Gap::Gone(_) | Gap::Refused(_))) => {
                recorder.fail(scrape, self.with_cure(gap.to_string()));
            }
            Err(gap) => recorder.fail(scrape, gap.to_string()),
        }
        self.show(&recorder, scrape.at_ns, has_failed);
    }

    /// Shows the scrape that was recorded last to readers that watch the run.
    fn show(&self, recorder: &Recorder, at_ns: i64, has_failed: bool) {
        let since_epoch = Duration::from_nanos(at_ns.unsigned_abs());
        let at = match at_ns < 0 {
            true => self.unix_epoch.saturating_sub(since_epoch),
            false => self.unix_epoch.saturating_add(since_epoch),
        };
        let before = self.newest.get();
        let before = (self.profile.name, before.as_deref());
        let newest = NewestScrape::new(recorder, (at, has_failed), before);
        self.newest.replace(newest);
    }

    /// What went wrong, and what the product wants in its configuration.
    fn with_cure(&self, what: String) -> String {
        match self.profile.set_up {
            "" => what,
            set_up => format!("{what} (it takes {set_up})"),
        }
    }
}

/// Says that the server is another one than it was.
fn restarted(known: &ServerFacts, now: &ServerFacts) -> Option<String> {
    let both = known.started.as_ref().zip(now.started.as_ref());
    let (before, after) = both.filter(|(before, after)| before != after)?;
    Some(format!(
        "it was restarted: started at {after}, before at {before}"
    ))
}

/// Nanoseconds from the epoch to an instant, negative before it.
fn since(epoch: Instant, at: Instant) -> i64 {
    let nanoseconds = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    match at.checked_duration_since(epoch) {
        Some(after) => nanoseconds(after),
        None => -nanoseconds(epoch.duration_since(at)),
    }
}

/// A thread that panicked leaves what it had written.
fn locked(recorder: &Mutex<Recorder>) -> MutexGuard<'_, Recorder> {
    recorder
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
