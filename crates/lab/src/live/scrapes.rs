//! What is observed beside a run: the newest scrape of each source, and how fast counters grow.

use std::collections::BTreeMap;
use std::sync::Arc;

use measure::observation::{Sample, SeriesKind};
use observe::{NewestSample, NewestScrape};

/// Most sources of which scrapes are kept.
const SOURCES_MAX: usize = 64;

/// The newest scrapes of all sources.
#[derive(Debug, Default)]
pub struct Scrapes(BTreeMap<Arc<str>, Scrape>);

/// The newest scrape of a source, and the one before it.
#[derive(Debug)]
pub struct Scrape {
    /// The newest.
    pub newest: Arc<NewestScrape>,
    former: Option<Arc<NewestScrape>>,
}

/// A series of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShownSeries<'a> {
    /// Its name in the profile.
    pub name: &'a str,
    /// Its unit.
    pub unit: &'a str,
    /// What the newest scrape gave; none if that was nothing.
    pub value: Option<f64>,
    /// How much a counter has grown a second since the scrape before; none where it began again,
    /// or a scrape has no value.
    pub per_second: Option<f64>,
}

impl Scrapes {
    /// Adds the newest scrape of a source, which may be known.
    pub(super) fn add(&mut self, scrape: &Arc<NewestScrape>) {
        let has_room = self.0.len() < SOURCES_MAX;
        match self.0.get_mut(&scrape.source) {
            Some(known) if known.newest.at == scrape.at => {}
            Some(known) => {
                let former = std::mem::replace(&mut known.newest, Arc::clone(scrape));
                known.former = Some(former);
            }
            None if has_room => {
                let first = Scrape {
                    newest: Arc::clone(scrape),
                    former: None,
                };
                self.0.insert(Arc::clone(&scrape.source), first);
            }
            None => {}
        }
    }

    /// Those of each source, by its name.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = &Scrape> {
        self.0.values()
    }
}

impl Scrape {
    /// The series, in the order of the record.
    pub fn series(&self) -> impl Iterator<Item = ShownSeries<'_>> {
        let samples = self.newest.samples.iter().enumerate();
        samples.map(|(at, sample)| ShownSeries {
            name: &sample.series.name,
            unit: &sample.series.unit,
            value: value(sample.sample),
            per_second: self.growth(at, sample),
        })
    }

    fn growth(&self, at: usize, sample: &NewestSample) -> Option<f64> {
        let former = self.former.as_ref()?;
        let before = former.samples.get(at)?;
        let is_counter = sample.series.kind == SeriesKind::Counter;
        let seconds = self.newest.at.checked_sub(former.at)?.as_secs_f64();
        match sample.sample {
            Sample::Value(now) if is_counter && before.series == sample.series && seconds > 0.0 => {
                Some((now - value(before.sample)?) / seconds)
            }
            _ => None,
        }
    }
}

fn value(sample: Sample) -> Option<f64> {
    match sample {
        Sample::Value(value) | Sample::Reset { reset: value } => Some(value),
        Sample::Without(_) => None,
    }
}
