//! What scripts count and observe by themselves.

use std::collections::BTreeMap;

use measure::Histogram;

/// What [`measure::Histogram`] counts an observed value in: thousandths, so that its range of 1 to
/// 68 * 10^9 is 0.001 to 68 million.
pub const OBSERVED_PER_UNIT: f64 = 1e3;

/// The custom metrics of the scripts of one worker, or of several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Of `count(name, n)`.
    pub counters: BTreeMap<String, f64>,
    /// Of `observe(name, value)`, in thousandths.
    pub observed: BTreeMap<String, Histogram>,
}

impl Metrics {
    pub(crate) fn observe(&mut self, name: &str, values: &[f64]) {
        if !self.observed.contains_key(name) {
            self.observed.insert(name.to_owned(), Histogram::on_demand());
        }
        let histogram = self.observed.get_mut(name).expect("it was put there");
        for value in values {
            // Saturates: what is negative counts as 0, what is too large as overflow.
            histogram.record((value * OBSERVED_PER_UNIT).round() as u64);
        }
    }

    /// Adds those of another worker, exactly.
    pub fn merge(&mut self, other: &Metrics) {
        for (name, number) in &other.counters {
            *self.counters.entry(name.clone()).or_default() += number;
        }
        for (name, histogram) in &other.observed {
            match self.observed.get_mut(name) {
                Some(mine) => mine.merge(histogram),
                None => {
                    self.observed.insert(name.clone(), histogram.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_workers_are_merged_exactly() {
        let mut left = Metrics::default();
        left.observe("ms", &[1.0, 2.5]);
        left.counters.insert("pages".into(), 2.0);
        let mut right = Metrics::default();
        right.observe("ms", &[-1.0, 0.001]);
        right.observe("other", &[7.0]);
        right.counters.insert("pages".into(), 0.5);
        left.merge(&right);
        assert_eq!(left.counters["pages"], 2.5);
        let ms = &left.observed["ms"];
        assert_eq!((ms.count(), ms.min_ns(), ms.max_ns()), (4, Some(0), Some(2_500)));
        assert_eq!(left.observed["other"].count(), 1);
    }
}
