//! What is known of a run at one moment.

use std::sync::Arc;
use std::time::Duration;

use measure::Interval;
use observe::{NewestSample, NewestScrape};
use serde::{Deserialize, Serialize};
use settings::Transport;

use super::{CellOf, Judged, ShownEvent};

/// A moment of a run.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its number among all of the command, from 1.
    pub number: u64,
    /// When it was published, since 1970.
    pub at: Duration,
    /// Which run it is.
    pub place: Arc<Place>,
    /// What the run shows.
    pub shown: Shown,
}

/// Which of a command's runs it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// What the run is called, such as its cell; empty if the command makes only one.
    pub name: String,
    /// Its position among the runs of the command, from 1.
    pub run: u64,
    /// How many runs the command makes, if that is known.
    pub of: Option<u64>,
    /// The cell that it measures, in an experiment.
    pub cell: Option<CellOf>,
}

impl Place {
    /// The run at this position.
    pub fn new(name: impl Into<String>, run: u64, of: Option<u64>) -> Place {
        Place {
            name: name.into(),
            run,
            of,
            cell: None,
        }
    }

    /// Its position, and its name if it has one: `7: transport dot`.
    pub fn title(&self) -> String {
        match self.name.as_str() {
            "" => self.run.to_string(),
            name => format!("{}: {name}", self.run),
        }
    }
}

/// What a run shows.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Shown {
    /// How far it is.
    pub phase: Phase,
    /// The transport of all its groups of clients; none if they differ.
    pub transport: Option<Transport>,
    /// Time until its load ends, if a duration ends it.
    pub left: Option<Duration>,
    /// The interval that has just ended, of all groups of clients and all agents together.
    pub interval: Option<Arc<Interval>>,
    /// The same of each group of clients, where there are several. Several agents send counts and
    /// latency alone, only if a reader wants groups
    /// ([`Live::want_groups`](super::Live::want_groups)), and no groups if there are too many.
    pub groups: Vec<ShownGroup>,
    /// The agents of the run, if it has any.
    pub agents: Vec<ShownAgent>,
    /// What is observed beside the run, such as its server: the newest scrape of each source that
    /// was scraped at least once.
    pub observations: Vec<Arc<NewestScrape>>,
    /// What limits the run, from its newest checkpoint, or at its end; none before the first, and
    /// unless a reader wants verdicts.
    pub judged: Option<Arc<Judged>>,
    /// The run itself, and what happened in it; empty before its end.
    #[serde(default)]
    pub events: Vec<ShownEvent>,
}

/// A group of clients.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShownGroup {
    /// Its name.
    pub name: String,
    /// Its interval that has just ended.
    pub interval: Arc<Interval>,
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownAgent {
    /// Its host; none if it is that of its lead.
    pub host: Option<String>,
    /// False once its result is there, or it was lost.
    pub is_at_work: bool,
    /// It was lost before its result was there.
    pub is_lost: bool,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// It prepares, connects its clients or warms up: no interval has ended.
    #[default]
    Before,
    /// It offers load.
    Load,
    /// It waits for the last responses.
    Drain,
    /// It is over.
    Ended,
}

/// How many buckets take as much memory as a sample of an observation.
const BUCKETS_OF_SAMPLE: usize = size_of::<NewestSample>() / size_of::<u64>();

impl Shown {
    /// With the least memory, which is counted in buckets of histograms. A scrape that several
    /// snapshots share counts for each of them.
    pub(super) fn compact(mut self) -> (usize, Shown) {
        let mut buckets = 0;
        if let Some(interval) = &mut self.interval {
            buckets += Arc::make_mut(interval).shrink_to_fit();
        }
        for group in &mut self.groups {
            buckets += Arc::make_mut(&mut group.interval).shrink_to_fit();
        }
        let scrapes = self.observations.iter();
        buckets += BUCKETS_OF_SAMPLE * scrapes.map(|it| it.samples.len()).sum::<usize>();
        (buckets, self)
    }
}
