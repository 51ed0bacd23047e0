//! Parts of a run that conditions are about: a group of clients, or all groups over a transport.

use settings::Transport;

use super::{Condition, ConditionError};
use crate::interval::Interval;
use crate::record::RunRecord;

impl Condition {
    /// The positions of the groups that it is about, by their names and transports; none for the
    /// whole run.
    ///
    /// # Errors
    /// It names none of them.
    pub fn positions<'a>(
        &self,
        groups: impl IntoIterator<Item = (&'a str, Transport)>,
    ) -> Result<Option<Vec<usize>>, ConditionError> {
        let Some(part) = &self.part else {
            return Ok(None);
        };
        let groups: Vec<(&str, Option<Transport>)> = groups
            .into_iter()
            .map(|(name, transport)| (name, Some(transport)))
            .collect();
        let found = positions(part, &groups);
        match found.is_empty() {
            false => Ok(Some(found)),
            true => Err(self.unknown_part(part, &groups)),
        }
    }

    fn unknown_part(&self, part: &str, groups: &[(&str, Option<Transport>)]) -> ConditionError {
        let mut known: Vec<&str> = Vec::new();
        let transports = groups.iter().filter_map(|it| it.1);
        let transports: Vec<&str> = transports.map(Transport::name).collect();
        for name in groups.iter().map(|it| it.0).chain(transports) {
            if !known.contains(&name) {
                known.push(name);
            }
        }
        ConditionError {
            what: format!(
                "`{}`: the run has no group of clients and no transport `{part}`",
                self.text
            ),
            hint: format!("groups and transports of this run are {}", known.join(", ")),
        }
    }
}

/// The groups with that name, else those over that transport.
fn positions(part: &str, groups: &[(&str, Option<Transport>)]) -> Vec<usize> {
    let over = part.parse::<Transport>().ok();
    let those = |by_name: bool| -> Vec<usize> {
        let is_meant = |group: &(&str, Option<Transport>)| match by_name {
            true => group.0 == part,
            false => over.is_some() && group.1 == over,
        };
        let each = groups.iter().enumerate();
        each.filter_map(|(position, group)| is_meant(group).then_some(position))
            .collect()
    };
    let named = those(true);
    match named.is_empty() {
        true => those(false),
        false => named,
    }
}

/// All queries of that part of a run, over its measured window; none if the record has no such
/// part.
pub(super) fn interval_of(part: &str, record: &RunRecord) -> Option<Interval> {
    let groups = record.groups.iter();
    let groups = groups.map(|group| (group.name.as_str(), group.scenario.transport.only()));
    let groups: Vec<_> = groups.collect();
    let found = positions(part, &groups);
    let mut totals = found.iter().map(|position| &record.groups[*position].total);
    let mut all = totals.next()?.clone();
    totals.for_each(|total| all.merge(total));
    all.end_ns = all.start_ns + record.measured_ns;
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: [(&str, Transport); 4] = [
        ("a", Transport::Udp),
        ("b", Transport::Dot),
        ("udp", Transport::Doh2),
        ("b", Transport::Dot),
    ];

    fn found(text: &str) -> Result<Option<Vec<usize>>, ConditionError> {
        Condition::fail_if(text).expect(text).positions(GROUPS)
    }

    #[test]
    fn name_of_a_group_comes_before_that_of_a_transport() {
        for (text, expected) in [
            ("p99 > 5ms", None),
            ("p99[a] > 5ms", Some(vec![0])),
            ("p99[ b ] > 5ms", Some(vec![1, 3])),
            ("p99[udp] > 5ms", Some(vec![2])),
            ("loss[tls] > 5%", Some(vec![1, 3])),
            ("SERVFAIL[doh] > 5%", Some(vec![2])),
        ] {
            assert_eq!(found(text), Ok(expected), "{text}");
        }
        let error = found("p99[c] > 5ms").unwrap_err();
        assert!(error.what.contains("no transport `c`"), "{error:?}");
        let hint = "groups and transports of this run are a, b, udp, dot, doh2";
        assert_eq!(error.hint, hint);
        assert!(found("p99[tcp] > 5ms").is_err());
    }
}
