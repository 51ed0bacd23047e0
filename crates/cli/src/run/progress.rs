//! Progress on standard error: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use engine::Progress;
use indicatif::{ProgressBar, ProgressStyle};
use lab::run::RunRequest;
use measure::{Interval, notation};

/// What shows how far the run is.
pub(crate) enum Display {
    /// A bar with the live rate and p99.
    Bar {
        bar: ProgressBar,
        by_queries: bool,
        of: Progressing,
    },
    /// One line for each interval that is to be shown, which may be several of the record.
    Lines {
        run_ns: u64,
        each_ns: u64,
        /// What the next line is about, so far.
        gathered: Option<Box<Interval>>,
        of: Progressing,
    },
    /// Nothing.
    Quiet,
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

    /// The words beside the bar.
    fn message(self, interval: &Interval) -> String {
        let counts = &interval.counts;
        match self {
            Progressing::Queries => {
                let p99 = interval.distributions.latency.percentile(0.99);
                format!(
                    "{}  p99 {}  lost {}",
                    notation::rate(interval.per_second(counts.responses)),
                    p99.map_or_else(|| "-".to_owned(), |ns| notation::latency(ns as f64)),
                    notation::count(counts.lost()),
                )
            }
            Progressing::Connections { has_handshakes } => {
                let opened = counts.connections.usable(has_handshakes);
                format!(
                    "{} connections a second  failed {}",
                    notation::decimal(interval.per_second(opened), 1),
                    notation::count(counts.connections.failed.total()),
                )
            }
        }
    }
}

impl Display {
    /// The display that suits standard error.
    pub(crate) fn new(request: &RunRequest, quiet: bool, each: Duration) -> Self {
        if quiet {
            return Display::Quiet;
        }
        if !std::io::stderr().is_terminal() {
            let run = request
                .plan
                .duration
                .map_or(u128::MAX, |run| run.as_nanos());
            return Display::Lines {
                run_ns: u64::try_from(run).unwrap_or(u64::MAX),
                each_ns: u64::try_from(each.as_nanos()).unwrap_or(u64::MAX),
                gathered: None,
                of: Progressing::of(request),
            };
        }
        let plan = &request.plan;
        let by_queries = plan.duration.is_none();
        let length = match (plan.duration, plan.queries_max) {
            (Some(duration), _) => duration.as_millis() as u64,
            (None, Some(queries)) => queries,
            (None, None) => 0,
        };
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}");
        let bar = ProgressBar::new(length);
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.set_message("connecting");
        bar.enable_steady_tick(Duration::from_millis(250));
        Display::Bar {
            bar,
            by_queries,
            of: Progressing::of(request),
        }
    }

    /// Shows one interval.
    pub(crate) fn show(&mut self, progress: &Progress) {
        let interval = &progress.interval;
        match self {
            Display::Quiet => {}
            // What comes after the run is the drain: part of the result, not of the progress.
            Display::Lines { run_ns, .. } if interval.start_ns >= *run_ns => {}
            Display::Lines {
                run_ns,
                each_ns,
                gathered,
                of,
            } => {
                let line = match gathered.take() {
                    None => Box::new(interval.clone()),
                    Some(mut line) => {
                        line.append_in_time(interval);
                        line
                    }
                };
                match line.length_ns() >= *each_ns || line.end_ns >= *run_ns {
                    true => tell!("{}", of.line(&line)),
                    false => *gathered = Some(line),
                }
            }
            Display::Bar {
                bar,
                by_queries,
                of,
            } => {
                match by_queries {
                    true => bar.inc(interval.counts.offered),
                    false => bar.set_position(interval.end_ns / 1_000_000),
                }
                bar.set_message(of.message(interval));
            }
        }
    }

    /// Clears the line.
    pub(crate) fn finish(&mut self) {
        match self {
            Display::Bar { bar, .. } => bar.finish_and_clear(),
            Display::Lines { gathered, of, .. } => {
                if let Some(line) = gathered.take() {
                    tell!("{}", of.line(&line));
                }
            }
            Display::Quiet => {}
        }
    }
}
