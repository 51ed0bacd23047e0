//! Which instances of the server have responded (NSID), a row each: text, pages and Markdown.

use measure::RunRecord;
use measure::notation::{count, percent};

/// The columns; the first is words.
pub(crate) const COLUMNS: [&str; 3] = ["instance", "responses", "share"];
/// Instances that are listed: those with the most responses.
const LISTED: usize = 20;

/// A row for each instance, the busiest first; none if queries did not ask who responds.
pub(crate) fn rows(record: &RunRecord) -> Vec<[String; 3]> {
    let Some(instances) = &record.instances else {
        return Vec::new();
    };
    let total = instances.total().max(1);
    let row = |name: String, responses: u64| {
        let share = percent(responses as f64 / total as f64);
        [name, count(responses), share]
    };
    let mut named: Vec<(&String, u64)> = instances.by_name.iter().map(|(n, r)| (n, *r)).collect();
    named.sort_by_key(|(_, responses)| std::cmp::Reverse(*responses));
    let more = named.split_off(named.len().min(LISTED));
    let mut rows: Vec<_> = named
        .into_iter()
        .map(|(name, responses)| row(name.clone(), responses))
        .collect();
    let others = more.iter().map(|(_, responses)| responses).sum::<u64>() + instances.others;
    if others > 0 {
        rows.push(row("others".to_owned(), others));
    }
    if instances.unnamed > 0 {
        rows.push(row("without a name".to_owned(), instances.unnamed));
    }
    rows
}

#[cfg(test)]
mod tests {
    use measure::instances::Instances;

    use super::*;

    #[test]
    fn instances_are_listed_with_the_busiest_first_and_nobody_is_left_out() {
        let mut record = crate::example::udp_self_test();
        assert_eq!(rows(&record), Vec::<[String; 3]>::new());
        let mut instances = Instances::default();
        for (name, responses) in [("ns1", 1), ("ns2", 2), ("", 1)] {
            (0..responses).for_each(|_| instances.count(Some(name.as_bytes())));
        }
        record.instances = Some(instances.clone());
        let written = text(&rows(&record));
        assert_eq!(written, "ns2 2 50.0 %|ns1 1 25.0 %|without a name 1 25.0 %");
        (0..40).for_each(|it| instances.count(Some(format!("x{it}").as_bytes())));
        record.instances = Some(instances);
        assert_eq!(rows(&record).len(), LISTED + 2);
        assert_eq!(rows(&record)[LISTED][0], "others");
    }

    fn text(rows: &[[String; 3]]) -> String {
        let rows: Vec<String> = rows.iter().map(|row| row.join(" ")).collect();
        rows.join("|")
    }
}
