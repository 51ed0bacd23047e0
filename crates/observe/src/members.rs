//! Sums of counters whose members come and go: threads of a process, sockets of a port, values of
//! a label.
//!
//! A sum over whatever is there falls when a member ends, as if the counter had begun anew. Here
//! the last value of a member stays in the sum, and the sum falls only if all members began anew:
//! then the server was started again.

use std::collections::BTreeMap;

/// Members that are known each. Of more, those that are gone are one sum.
const KNOWN_MAX: usize = 4_096;

/// A sum over members with these keys.
#[derive(Clone, Debug)]
pub(crate) struct MemberSum<K> {
    /// The last value of each member, of those that are gone too: they may come back.
    latest: BTreeMap<K, f64>,
    /// What members had counted that are not known any more, or that began anew.
    gone: f64,
}

impl<K: Ord> Default for MemberSum<K> {
    fn default() -> Self {
        MemberSum {
            latest: BTreeMap::new(),
            gone: 0.0,
        }
    }
}

impl<K: Ord> MemberSum<K> {
    /// Takes the counters of a reading; returns the sum.
    pub(crate) fn add(&mut self, members: BTreeMap<K, f64>) -> f64 {
        let goes_on = |key: &K, now: f64| self.latest.get(key).is_some_and(|was| now >= *was);
        let is_told = !members.is_empty();
        if is_told && !members.iter().any(|(key, now)| goes_on(key, *now)) {
            self.latest.clear();
            self.gone = 0.0;
        }
        if self.latest.len() + members.len() > KNOWN_MAX {
            let gone = self
                .latest
                .iter()
                .filter(|(key, _)| !members.contains_key(*key));
            self.gone += gone.map(|(_, was)| was).sum::<f64>();
            self.latest.retain(|key, _| members.contains_key(key));
        }
        for (key, now) in members {
            let was = self.latest.insert(key, now);
            self.gone += was.filter(|was| now < *was).unwrap_or(0.0);
        }
        self.gone + self.latest.values().sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sums(readings: &[&[(u32, f64)]]) -> Vec<f64> {
        let mut sum = MemberSum::default();
        let each = readings.iter();
        each.map(|it| sum.add(it.iter().copied().collect()))
            .collect()
    }

    #[test]
    fn member_that_ends_leaves_what_it_counted() {
        let readings: [&[(u32, f64)]; 4] = [
            &[(1, 10.0), (2, 90.0)],
            &[(1, 11.0)],
            &[(1, 11.0), (3, 2.0)],
            &[(1, 12.0), (2, 95.0), (3, 2.0)],
        ];
        assert_eq!(sums(&readings), [100.0, 101.0, 103.0, 109.0]);
    }

    #[test]
    fn member_that_begins_anew_counts_from_zero() {
        assert_eq!(
            sums(&[&[(1, 10.0), (2, 90.0)], &[(1, 11.0), (2, 3.0)]]),
            [100.0, 104.0]
        );
    }

    #[test]
    fn sum_begins_anew_with_all_members() {
        assert_eq!(
            sums(&[&[(1, 10.0), (2, 90.0)], &[(1, 1.0), (2, 2.0)]])[1],
            3.0
        );
        assert_eq!(sums(&[&[(1, 10.0), (2, 90.0)], &[(3, 4.0)]])[1], 4.0);
        assert_eq!(sums(&[&[(1, 10.0)], &[]])[1], 10.0);
    }

    proptest! {
        /// While one member stays, the sum grows by what members counted, however many others come
        /// and go.
        #[test]
        fn growth_is_that_of_the_members(
            lives in prop::collection::vec((0_u32..40, 1_u32..40, 0_u32..9), 0..6_000),
        ) {
            let mut sum = MemberSum::default();
            let mut before: Option<(f64, f64)> = None;
            for at in 0..60_u32 {
                let mut members = BTreeMap::from([(0, f64::from(at))]);
                let mut counted = f64::from(at);
                for (key, (born, length, rate)) in (1_u32..).zip(&lives) {
                    let value = f64::from((at.min(born + length).saturating_sub(*born)) * rate);
                    counted += value;
                    if (*born..=born + length).contains(&at) {
                        members.insert(key, value);
                    }
                }
                let now = sum.add(members);
                if let Some((summed, was)) = before {
                    prop_assert!((now - summed - (counted - was)).abs() < 1e-6, "{at}");
                }
                before = Some((now, counted));
            }
        }
    }
}
