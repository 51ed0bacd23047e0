//! The newest scrape of each source, for readers that watch a run while it goes on.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use measure::observation::{Recorder, Sample, SeriesKind};
use serde::{Deserialize, Serialize};

/// The newest scrape of one source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewestScrape {
    /// The source as it was given, without secrets.
    pub source: Arc<str>,
    /// Its profile.
    pub profile: Arc<str>,
    /// When the source was scraped, since 1970: the middle of the scrape.
    pub at: Duration,
    /// The scrape failed: no series has a value in it.
    pub has_failed: bool,
    /// One of each series, in the order of the record.
    pub samples: Vec<NewestSample>,
}

/// One series in a scrape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewestSample {
    /// The series.
    pub series: Arc<SeriesName>,
    /// What this scrape gave; missing and stale are states of their own.
    pub sample: Sample,
    /// The newest value, of this scrape or an earlier one; none before the first.
    pub last: Option<LastValue>,
}

/// What identifies a series, as in the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesName {
    /// Its name in the profile.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Whether it only grows.
    pub kind: SeriesKind,
}

/// A value, and the scrape that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastValue {
    /// The value.
    pub value: f64,
    /// When that scrape was, since 1970.
    pub at: Duration,
}

impl NewestScrape {
    /// The scrape that a recorder was given last; `before` is the one before it.
    pub(crate) fn new(
        recorder: &Recorder,
        (at, has_failed): (Duration, bool),
        (profile, before): (&'static str, Option<&NewestScrape>),
    ) -> NewestScrape {
        let source = match before {
            Some(before) => Arc::clone(&before.source),
            None => recorder.observation().source.as_str().into(),
        };
        let known = before.map_or(&[][..], |before| &before.samples);
        let samples = recorder
            .newest()
            .enumerate()
            .map(|(place, (series, sample))| {
                let known = known.get(place);
                let value = sample.value().map(|value| LastValue { value, at });
                NewestSample {
                    series: match known {
                        Some(known) => Arc::clone(&known.series),
                        None => Arc::new(SeriesName {
                            name: series.name.clone(),
                            unit: series.unit.clone(),
                            kind: series.kind,
                        }),
                    },
                    sample,
                    last: value.or_else(|| known.and_then(|known| known.last)),
                }
            });
        NewestScrape {
            source,
            profile: profile.into(),
            at,
            has_failed,
            samples: samples.collect(),
        }
    }

    /// The series of that name.
    pub fn series(&self, name: &str) -> Option<&NewestSample> {
        self.samples.iter().find(|it| it.series.name == name)
    }
}

/// Where a sampler leaves its newest scrape. It is locked only to copy or replace a pointer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot(Arc<Mutex<Option<Arc<NewestScrape>>>>);

impl Slot {
    pub(crate) fn get(&self) -> Option<Arc<NewestScrape>> {
        // Nothing panics while it is held.
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn replace(&self, newest: NewestScrape) {
        let newest = Some(Arc::new(newest));
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let former = std::mem::replace(&mut *held, newest);
        // Memory is freed after the slot is: a reader may wait for it.
        drop(held);
        drop(former);
    }
}

/// The newest scrapes of all sources; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Newest(Arc<[Slot]>);

impl Newest {
    pub(crate) fn new(slots: impl Iterator<Item = Slot>) -> Newest {
        Newest(slots.collect())
    }

    /// The newest scrape of each source that has been scraped by now, in the order of the sources.
    pub fn scrapes(&self) -> Vec<Arc<NewestScrape>> {
        self.0.iter().filter_map(Slot::get).collect()
    }
}

#[cfg(test)]
mod tests {
    use measure::observation::{NoValue, ObservationMode, Observed, Scrape};

    use super::*;

    fn observed(name: &str, value: f64, is_stale: bool) -> Observed {
        Observed {
            name: name.to_owned(),
            unit: "queries".to_owned(),
            kind: SeriesKind::Counter,
            value,
            is_stale,
        }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn recorder() -> Recorder {
        Recorder::new("s", "p", ObservationMode::During, 1)
    }

    #[test]
    fn missing_and_stale_samples_are_no_zero_and_keep_their_last_value() {
        let mut recorder = recorder();
        recorder.push(
            Scrape::between(0, 0),
            vec![observed("a", 7.0, false), observed("b", 0.0, false)],
        );
        let first = NewestScrape::new(&recorder, (at(1), false), ("p", None));
        assert_eq!(
            (&*first.source, &*first.profile, first.at),
            ("s", "p", at(1))
        );
        let value = |value, seconds| {
            Some(LastValue {
                value,
                at: at(seconds),
            })
        };
        let zero = first.series("b").unwrap();
        assert_eq!(
            (zero.sample, zero.last),
            (Sample::Value(0.0), value(0.0, 1))
        );
        let second = vec![observed("a", 9.0, true), observed("c", f64::NAN, false)];
        recorder.push(Scrape::between(0, 0), second);
        let second = NewestScrape::new(&recorder, (at(2), false), ("p", Some(&first)));
        let state = |name: &str| {
            let it = second.series(name).unwrap();
            (it.sample, it.last)
        };
        assert_eq!(state("a"), (Sample::Without(NoValue::Stale), value(7.0, 1)));
        assert_eq!(
            state("b"),
            (Sample::Without(NoValue::Missing), value(0.0, 1))
        );
        assert_eq!(state("c"), (Sample::Without(NoValue::Missing), None));
        // What stays the same is in memory once.
        let names = |it: &NewestScrape| Arc::clone(&it.series("a").unwrap().series);
        assert!(Arc::ptr_eq(&names(&first), &names(&second)));
        recorder.fail(Scrape::between(0, 0), "closed");
        let third = NewestScrape::new(&recorder, (at(3), true), ("p", Some(&second)));
        assert!(third.has_failed && third.samples.len() == 3);
        assert!(third.samples.iter().all(|it| it.sample.value().is_none()));
        assert_eq!(third.series("a").unwrap().last, value(7.0, 1));
    }

    /// A record merges scrapes of a long run; a reader of the newest one sees that one alone.
    #[test]
    fn a_scrape_that_the_record_merges_is_shown_alone() {
        let mut recorder = recorder();
        for number in 0..3 * 1_024 {
            let values = vec![observed("a", f64::from(number), false)];
            recorder.push(Scrape::between(0, 0), values);
        }
        assert!(recorder.observation().scrapes_merged > 1);
        recorder.push(Scrape::between(0, 0), Vec::new());
        let newest = NewestScrape::new(&recorder, (at(1), false), ("p", None));
        let sample = newest.series("a").unwrap().sample;
        assert_eq!(sample, Sample::Without(NoValue::Missing));
    }

    #[test]
    fn a_reader_keeps_its_scrape_when_the_next_one_replaces_it() {
        let (slot, empty) = (Slot::default(), Slot::default());
        let newest = Newest::new([slot.clone(), empty].into_iter());
        assert!(newest.scrapes().is_empty());
        let scrape = |seconds| NewestScrape::new(&recorder(), (at(seconds), false), ("p", None));
        slot.replace(scrape(1));
        let held = newest.clone().scrapes();
        slot.replace(scrape(2));
        assert_eq!((held.len(), held[0].at), (1, at(1)));
        assert_eq!(newest.scrapes()[0].at, at(2));
    }
}
