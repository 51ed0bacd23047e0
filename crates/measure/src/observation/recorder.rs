//! An observation in progress, in bounded memory however long it is.

use std::collections::BTreeMap;

use super::{
    NoValue, Observation, ObservationMode, ObservationNote, Sample, Scrape, Series, SeriesKind,
    ServerFacts,
};
use crate::printable::on_one_line;

/// Most scrapes of a record: a run of a day at one a second has 675, of 128 each.
pub const SCRAPES_MAX: usize = 1_024;

/// Most values of all series together: 4 MiB of memory, and about 3 MB of a record.
pub const VALUES_MAX: usize = 1 << 18;

/// Most series of one source. Per thread and per CPU there may be many.
pub const SERIES_MAX: usize = 1_024;

/// Most notes: a source that fails in more ways is known by then.
pub const NOTES_MAX: usize = 32;

/// Fewer scrapes are not merged, however many series there are.
const SCRAPES_MIN: usize = 8;

/// One value of one scrape.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Name of its series.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Whether it only grows.
    pub kind: SeriesKind,
    /// The value; not a number is none.
    pub value: f64,
    /// The source says itself that it is not newer than the one before.
    pub is_stale: bool,
}

/// Makes an [`Observation`], scrape by scrape.
#[derive(Clone, Debug)]
pub struct Recorder {
    observation: Observation,
    places: BTreeMap<String, usize>,
    /// The latest value of each series.
    latest: Vec<Option<f64>>,
    /// The sample of each series in the scrape that was added last.
    column: Vec<Sample>,
    values_max: usize,
}

impl Recorder {
    /// Nothing yet.
    pub fn new(source: &str, profile: &str, mode: ObservationMode, period_ns: u64) -> Recorder {
        Recorder {
            observation: Observation {
                source: source.to_owned(),
                profile: profile.to_owned(),
                mode,
                period_ns,
                scrapes_merged: 1,
                ..Observation::default()
            },
            places: BTreeMap::new(),
            latest: Vec::new(),
            column: Vec::new(),
            values_max: VALUES_MAX,
        }
    }

    /// As [`Recorder::new`], with another limit.
    #[cfg(test)]
    pub(super) fn with_values_max(mut self, values_max: usize) -> Recorder {
        self.values_max = values_max;
        self
    }

    /// The facts of the source.
    pub fn facts(&mut self) -> &mut ServerFacts {
        &mut self.observation.facts
    }

    /// Adds what one scrape gave. Series that it lacks are missing in it.
    pub fn push(&mut self, scrape: Scrape, values: Vec<Observed>) {
        let merges = self.merges_into_last();
        let mut column = vec![Sample::Without(NoValue::Missing); self.observation.series.len()];
        for observed in values {
            let Some(place) = self.place(&observed) else {
                self.observation.overflow.values += 1;
                let text = format!("only {SERIES_MAX} series of a source are kept");
                self.note(scrape.at_ns, text);
                continue;
            };
            if place >= column.len() {
                column.push(Sample::Without(NoValue::Missing));
            }
            column[place] = self.sample(place, &observed);
        }
        self.append(merges, scrape, &column);
        self.column = column;
    }

    /// Adds a scrape that gave nothing, and why.
    pub fn fail(&mut self, mut scrape: Scrape, why: impl Into<String>) {
        scrape.failed = 1;
        self.note(scrape.at_ns, why.into());
        self.push(scrape, Vec::new());
    }

    /// Says something once, and counts how often it was said.
    pub fn note(&mut self, at_ns: i64, text: String) {
        let text = on_one_line(&text);
        let notes = &mut self.observation.notes;
        if let Some(known) = notes.iter_mut().find(|note| note.text == text) {
            known.times += 1;
            known.last_ns = at_ns;
        } else if notes.len() < NOTES_MAX {
            notes.push(ObservationNote {
                text,
                first_ns: at_ns,
                last_ns: at_ns,
                times: 1,
            });
        } else {
            self.observation.overflow.notes += 1;
        }
    }

    /// Counts scrapes that were due while an earlier one still went on.
    pub fn skip(&mut self, scrapes: u64) {
        self.observation.overflow.scrapes += scrapes;
    }

    /// The observation so far.
    pub fn observation(&self) -> &Observation {
        &self.observation
    }

    /// Each series with its sample in the scrape that was added last, merged with no other.
    pub fn newest(&self) -> impl Iterator<Item = (&Series, Sample)> {
        let series = self.observation.series.iter();
        series.zip(self.column.iter().copied())
    }

    /// The finished observation.
    pub fn finish(self) -> Observation {
        self.observation
    }

    /// The place of its series, a new one while there is room.
    fn place(&mut self, observed: &Observed) -> Option<usize> {
        if let Some(place) = self.places.get(&observed.name) {
            return Some(*place);
        }
        let place = self.observation.series.len();
        if place == SERIES_MAX {
            return None;
        }
        let scrapes = self.observation.scrapes.len();
        self.places.insert(observed.name.clone(), place);
        self.latest.push(None);
        self.observation.series.push(Series {
            name: observed.name.clone(),
            unit: observed.unit.clone(),
            kind: observed.kind,
            samples: vec![Sample::Without(NoValue::Missing); scrapes],
            growth: None,
            resets: 0,
            lowest: None,
            highest: None,
        });
        Some(place)
    }

    /// The kind of sample that a value is for its series; updates the series' growth and bounds.
    fn sample(&mut self, place: usize, observed: &Observed) -> Sample {
        let value = observed.value;
        if !value.is_finite() {
            return Sample::Without(NoValue::Missing);
        }
        if observed.is_stale {
            return Sample::Without(NoValue::Stale);
        }
        let series = &mut self.observation.series[place];
        series.lowest = Some(series.lowest.map_or(value, |lowest| lowest.min(value)));
        series.highest = Some(series.highest.map_or(value, |highest| highest.max(value)));
        let before = self.latest[place].replace(value);
        let (SeriesKind::Counter, Some(before)) = (series.kind, before) else {
            return Sample::Value(value);
        };
        let ran_backwards = value < before;
        let grown = if ran_backwards { value } else { value - before };
        *series.growth.get_or_insert(0.0) += grown.max(0.0);
        if !ran_backwards {
            return Sample::Value(value);
        }
        series.resets += 1;
        Sample::Reset { reset: value }
    }

    /// True if the last scrape has room for another one. The first stays alone: it is the state
    /// before the run.
    fn merges_into_last(&self) -> bool {
        let scrapes = &self.observation.scrapes;
        let last = scrapes.last().filter(|_| scrapes.len() > 1);
        last.is_some_and(|last| last.number < self.observation.scrapes_merged)
    }

    fn append(&mut self, merges: bool, scrape: Scrape, column: &[Sample]) {
        let Observation {
            scrapes, series, ..
        } = &mut self.observation;
        match scrapes.last_mut().filter(|_| merges) {
            Some(last) => {
                *last = merged(last, &scrape);
                for (series, newer) in series.iter_mut().zip(column) {
                    if let Some(older) = series.samples.last_mut() {
                        *older = carried(*older, *newer);
                    }
                }
            }
            None => {
                scrapes.push(scrape);
                for (series, sample) in series.iter_mut().zip(column) {
                    series.samples.push(*sample);
                }
            }
        }
        while self.is_too_large() {
            self.thin();
        }
    }

    fn is_too_large(&self) -> bool {
        let scrapes = self.observation.scrapes.len();
        let values = scrapes * self.observation.series.len();
        scrapes > SCRAPES_MIN && (scrapes > SCRAPES_MAX || values > self.values_max)
    }

    /// Merges the scrapes in pairs, from the second one on.
    fn thin(&mut self) {
        self.observation.scrapes_merged *= 2;
        in_pairs(&mut self.observation.scrapes, |older, newer| {
            merged(older, newer)
        });
        for series in &mut self.observation.series {
            in_pairs(&mut series.samples, |older, newer| carried(*older, *newer));
        }
        let merged = self.observation.scrapes_merged;
        if merged == 2 {
            let at_ns = self.observation.scrapes.last().map_or(0, |last| last.at_ns);
            let text = "scrapes are merged: a record keeps a limited number of values".to_owned();
            self.note(at_ns, text);
        }
    }
}

/// Keeps the first sample, and merges the others in pairs.
fn in_pairs<T: Copy>(all: &mut Vec<T>, merge: impl Fn(&T, &T) -> T) {
    let mut kept: Vec<T> = all.first().copied().into_iter().collect();
    for pair in all.get(1..).unwrap_or_default().chunks(2) {
        match pair {
            [older, newer] => kept.push(merge(older, newer)),
            alone => kept.extend_from_slice(alone),
        }
    }
    *all = kept;
}

/// The instant of the later one, the cost of both.
fn merged(older: &Scrape, newer: &Scrape) -> Scrape {
    let mut both = *newer;
    both.add_cost(older);
    both
}

/// The later sample, or the earlier where the later one has no value. That the counter began again
/// between them is not forgotten.
fn carried(older: Sample, newer: Sample) -> Sample {
    match (older, newer) {
        (Sample::Reset { .. }, Sample::Value(value)) => Sample::Reset { reset: value },
        (older, Sample::Without(_)) if older.value().is_some() => older,
        (_, newer) => newer,
    }
}
