//! Progress on standard error: a bar on a terminal, plain lines elsewhere.
//!
//! A reader of [`Live`] on a thread of its own: a terminal that takes no more octets, or a pipe
//! that is full, delays neither the run nor its record.

mod line;
mod several;

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use engine::Control;
use lab::live::{Follower, Live, Next, Phase, Snapshot};
use lab::run::RunRequest;
use load::Plan;
use measure::{Counts, Interval, notation};

use crate::streams;
use crate::terminal::{self, Part};
use line::{Extent, Piece};
pub(crate) use several::follow_runs;

/// A run whose load has ended and that still waits is mentioned after this: most end sooner.
const WAIT_UNTOLD: Duration = Duration::from_millis(500);

/// How often a terminal shows how many clients are connected before the run, or records read.
const SHOWN_EACH: Duration = Duration::from_millis(200);
/// The same for lines: most runs start before the first.
const TOLD_EACH: Duration = Duration::from_secs(2);

/// How long the end of a run waits for what is still to be shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows, as the words of `how` say, how far the run is that is published next; none if it is quiet
/// or the system allows no further thread.
pub(super) fn follow(
    live: &Live,
    requests: &[RunRequest],
    control: Option<&Arc<Control>>,
    how: (bool, Duration),
) -> Option<Follower> {
    let mut display = Display::new(requests, control, how)?;
    live.follow(move |next| display.read(next)).ok()
}

/// The run is over: clears the line once everything has been shown.
pub(super) fn end(shown: Option<Follower>) {
    if let Some(shown) = shown {
        // One that goes on because the terminal is slow ends with the process.
        shown.end(PATIENCE);
    }
}

/// What shows how far the run is.
struct Display {
    form: Form,
    of: Progressing,
    end: End,
    /// Shows how many clients are connected before the run.
    connecting: Option<Speaker>,
    /// Says, unless it is ended before, what the run waits for.
    waiting: Option<Speaker>,
    /// No recursive server has been warned of yet. The built-in responder only looks like one.
    watches_recursion: bool,
}

enum Form {
    /// A bar with the live rate and p99.
    Bar,
    /// One line for each interval that is to be shown, which may be several of the record.
    Lines {
        each_ns: u64,
        /// What the next line is about, so far.
        gathered: Option<Box<Interval>>,
    },
}

/// What a run counts.
#[derive(Clone, Copy)]
pub(crate) enum Progressing {
    /// Queries and their responses.
    Queries,
    /// Connections that are asked nothing.
    Connections { has_handshakes: bool },
}

impl Progressing {
    fn of(request: &RunRequest) -> Progressing {
        match request.plan.connections.asks_nothing() {
            true => Progressing::Connections {
                has_handshakes: request.tls.is_some(),
            },
            false => Progressing::Queries,
        }
    }

    fn line(self, interval: &Interval) -> String {
        match self {
            Progressing::Queries => report::text::interval_line(interval),
            Progressing::Connections { has_handshakes } => {
                report::text::connections_line(interval, has_handshakes)
            }
        }
    }

    /// The figures beside the bar.
    fn figures(self, interval: &Interval) -> Vec<Piece> {
        let counts = &interval.counts;
        match self {
            Progressing::Queries => {
                let p99 = interval.distributions.latency.percentile(0.99);
                let p99 = p99.map_or_else(|| "-".to_owned(), |ns| notation::latency(ns as f64));
                vec![
                    Piece::first(notation::rate(interval.per_second(counts.responses))),
                    Piece::percentile(format!("p99 {p99}")),
                    Piece::failures("lost", counts.lost()),
                ]
            }
            Progressing::Connections { has_handshakes } => {
                let opened = counts.connections.usable(has_handshakes);
                let opened = notation::per_second(interval.per_second(opened));
                vec![
                    Piece::first(format!("{opened} connections a second")),
                    Piece::failures("failed", counts.connections.failed.total()),
                ]
            }
        }
    }
}

/// Shows how far the reading of records is, if it takes long.
pub(crate) struct Reading {
    began: Instant,
    shown: Instant,
    is_bar: bool,
}

impl Reading {
    pub(crate) fn new() -> Reading {
        let began = Instant::now();
        Reading {
            began,
            shown: began,
            is_bar: streams::columns_of_error().is_some(),
        }
    }

    /// `read` of `all` were read.
    pub(crate) fn show(&mut self, read: u64, all: u64) {
        let pause = match self.is_bar {
            true => SHOWN_EACH,
            false => TOLD_EACH,
        };
        if self.shown.elapsed() < pause {
            return;
        }
        self.shown = Instant::now();
        let all_words = notation::counted(all, "new record");
        let words = format!("{} of {all_words} read", notation::count(read));
        match self.is_bar {
            true => {
                let extent = Extent::of_queries(read, all, nanos(self.began.elapsed()));
                let pieces = vec![Piece::first(words)];
                terminal::replace_line(&line::fitted(&extent, pieces, terminal::columns()));
            }
            false => tell!("{words}"),
        }
    }

    /// Clears the line.
    pub(crate) fn end(self) {
        if self.is_bar {
            terminal::end_line();
        }
    }
}

/// When a run has asked everything, and what it waits for then.
struct End {
    run_ns: u64,
    queries_max: Option<u64>,
    timeout: Duration,
    /// What was counted so far.
    so_far: Counts,
    is_told: bool,
}

impl End {
    fn of(requests: &[RunRequest]) -> End {
        let plans = || requests.iter().map(|request| &request.plan);
        End {
            run_ns: plans()
                .map(|plan| plan.duration.map_or(u64::MAX, nanos))
                .max()
                .unwrap_or(u64::MAX),
            queries_max: plans().map(|plan| plan.queries_max).sum(),
            timeout: plans().map(|plan| plan.timeout).max().unwrap_or_default(),
            so_far: Counts::default(),
            is_told: false,
        }
    }

    /// Counts an interval; what is waited for, if nothing more will be asked. Said once.
    fn count(&mut self, interval: &Interval) -> Option<String> {
        self.so_far.add(&interval.counts);
        let counts = &self.so_far;
        let ended = counts.responses + counts.lost() + counts.interrupted;
        let all_asked = self.queries_max.is_some_and(|most| counts.offered >= most);
        let open = counts.offered.saturating_sub(ended);
        if self.is_told || open == 0 || (interval.end_ns < self.run_ns && !all_asked) {
            return None;
        }
        self.is_told = true;
        Some(format!(
            "waiting for {}, at most {} (--timeout)",
            notation::counted(open, "response"),
            notation::seconds(nanos(self.timeout))
        ))
    }

    /// How far the run was at the end of this interval.
    fn extent(&self, interval: &Interval) -> Extent {
        let elapsed_ns = interval.end_ns;
        match (self.run_ns, self.queries_max) {
            (u64::MAX, None) => Extent::Endless { elapsed_ns },
            (u64::MAX, Some(most)) => Extent::of_queries(self.so_far.offered, most, elapsed_ns),
            (end, _) => Extent::of_time(elapsed_ns, end),
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A thread that shows something while no interval ends.
struct Speaker {
    needed: Sender<()>,
    thread: JoinHandle<()>,
}

impl Speaker {
    /// Calls `speak` after each `pause` until it returns false or [`Speaker::end`] is called; none
    /// where the system allows no further thread.
    fn start(pause: Duration, mut speak: impl FnMut() -> bool + Send + 'static) -> Option<Speaker> {
        let (needed, over) = channel::<()>();
        let thread = Builder::new().spawn(move || {
            while over.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) && speak() {}
        });
        thread.ok().map(|thread| Speaker { needed, thread })
    }

    fn end(self) {
        drop(self.needed);
        // It only speaks.
        let _ = self.thread.join();
    }
}

/// Says the words unless there is no need for them any more.
fn say_later(words: String) -> Option<Speaker> {
    Speaker::start(WAIT_UNTOLD, move || {
        tell!("{words}");
        false
    })
}

/// Shows how many clients of these requests are connected, if they have connections before the
/// run, until that starts.
fn show_connecting(requests: &[RunRequest], form: &Form, control: Arc<Control>) -> Option<Speaker> {
    let plans = requests.iter().map(|request| &request.plan);
    let connects =
        |plan: &&Plan| plan.transport.has_connections() && !plan.connections.asks_nothing();
    let clients: u64 = plans
        .filter(connects)
        .map(|plan| u64::from(plan.clients))
        .sum();
    let (pause, is_bar) = match form {
        Form::Bar => (SHOWN_EACH, true),
        Form::Lines { .. } => (TOLD_EACH, false),
    };
    if clients == 0 {
        return None;
    }
    Speaker::start(pause, move || {
        if control.start().is_some() {
            return false;
        }
        let connected = notation::count(control.usable_connections());
        let words = format!(
            "connecting: {connected} of {}",
            notation::counted(clients, "client")
        );
        match is_bar {
            true => terminal::replace_line(&[Part::plain(words)]),
            false => tell!("{words}"),
        }
        true
    })
}

impl Display {
    /// The display that suits standard error; none if it is to be quiet.
    fn new(
        requests: &[RunRequest],
        control: Option<&Arc<Control>>,
        (quiet, each): (bool, Duration),
    ) -> Option<Self> {
        let first = requests.first().filter(|_| !quiet)?;
        let form = match streams::columns_of_error() {
            Some(_) => Form::Bar,
            None => Form::Lines {
                each_ns: nanos(each),
                gathered: None,
            },
        };
        let control = control.map(Arc::clone);
        Some(Display {
            connecting: control.and_then(|it| show_connecting(requests, &form, it)),
            form,
            of: Progressing::of(first),
            end: End::of(requests),
            waiting: None,
            watches_recursion: !first.asked.is_self_test(),
        })
    }

    fn read(&mut self, next: &Next) {
        next.snapshots.iter().for_each(|it| self.show(it));
        if next.is_over {
            self.finish();
        }
    }

    fn show(&mut self, snapshot: &Snapshot) {
        match (&snapshot.shown.interval, &self.form) {
            (Some(interval), _) => self.show_interval(interval, snapshot),
            (None, Form::Bar) if snapshot.shown.phase == Phase::Before => {
                terminal::replace_line(&[Part::plain("connecting")]);
            }
            (None, _) => {}
        }
    }

    fn show_interval(&mut self, interval: &Interval, snapshot: &Snapshot) {
        if let Some(connecting) = self.connecting.take() {
            connecting.end();
        }
        if self.watches_recursion && interval.counts.generated_recursed > 0 {
            self.watches_recursion = false;
            tell!(
                "warning: the server is recursive: it queries authoritative servers for each \
                 generated name, which may be third parties'"
            );
        }
        let waits = self.end.count(interval);
        let of = self.of;
        let extent = self.end.extent(interval);
        let extent = extent.of_all(interval.end_ns, &snapshot.place);
        match &mut self.form {
            // What comes after the run is the drain: part of the result, not of the progress.
            Form::Lines { .. } if interval.start_ns >= self.end.run_ns => {}
            Form::Lines { each_ns, gathered } => {
                let line = match gathered.take() {
                    None => Box::new(interval.clone()),
                    Some(mut line) => {
                        line.append_in_time(interval);
                        line
                    }
                };
                match line.length_ns() >= *each_ns || line.end_ns >= self.end.run_ns {
                    true => tell!("{}{}", of.line(&line), extent.left(line.end_ns)),
                    false => *gathered = Some(line),
                }
                self.waiting = self.waiting.take().or_else(|| say_later(waits?));
            }
            Form::Bar => {
                let mut pieces = Piece::position(&snapshot.place);
                match waits {
                    Some(words) => pieces.push(Piece::first(words)),
                    None => {
                        pieces.extend(of.figures(interval));
                        let verdict = snapshot.shown.judged.as_ref().map(|it| &it.verdict);
                        let remark = report::text::so_far(&self.end.so_far, interval, verdict);
                        pieces.extend(remark.map(Piece::remark));
                    }
                }
                terminal::replace_line(&line::fitted(&extent, pieces, terminal::columns()));
            }
        }
    }

    /// Clears the line.
    fn finish(&mut self) {
        let speakers = [self.connecting.take(), self.waiting.take()];
        speakers.into_iter().flatten().for_each(Speaker::end);
        match &mut self.form {
            Form::Bar => terminal::end_line(),
            Form::Lines { gathered, .. } => {
                if let Some(line) = gathered.take() {
                    tell!("{}", self.of.line(&line));
                }
            }
        }
    }
}
