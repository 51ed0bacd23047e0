//! What a comparison of transports says in its first lines: how many servers each transport needs
//! for the rate that one server answers over the first, or why the runs do not tell.

use measure::Comparison;
use measure::comparison::{Contender, Cost};
use measure::notation::decimal;

use crate::summary::indented;

/// The conclusion in lines of at most 100 columns; the first is a sentence to quote.
pub(super) fn lines(comparison: &Comparison) -> Vec<String> {
    let mut lines = Vec::new();
    for sentence in sentences(comparison) {
        let kind = match (comparison.self_test, lines.is_empty()) {
            (true, true) => "Self-test. ",
            _ => "",
        };
        lines.extend(indented("", 2, &format!("{kind}{sentence}"), usize::MAX));
    }
    lines
}

fn sentences(comparison: &Comparison) -> Vec<String> {
    let Some((first, others)) = comparison.transports.split_first() else {
        return Vec::new();
    };
    let name = first.transport;
    if others.is_empty() {
        return vec![format!("Nothing to compare: only {name} was measured")];
    }
    if comparison.has_rate() {
        let why =
            "the rate was given, which is no capacity; leave out --rate to compare capacities";
        return vec![format!("No factor between the transports: {why}")];
    }
    let costs: Vec<(&Contender, &Cost)> = others
        .iter()
        .filter_map(|other| {
            let mut costs = comparison.costs.iter();
            let cost = costs.find(|it| it.from == name && it.to == other.transport)?;
            Some((other, cost))
        })
        .collect();
    let doubts = doubts(&costs);
    if costs.iter().all(|(_, cost)| cost.servers.is_none()) {
        let why = match doubts.as_str() {
            "" => "no rate to compare with",
            doubts => doubts,
        };
        return vec![format!("Undecided what the transports cost: {why}")];
    }
    let has_ranges = costs.iter().any(|(_, cost)| cost.ranges_overlap.is_some());
    let ranges = match has_ranges {
        true => ", with the range of the runs",
        false => "",
    };
    let each: Vec<String> = costs
        .iter()
        .map(|(other, cost)| factor(first, other, cost))
        .collect();
    let each = each.join(", ");
    let mut sentences = vec![format!(
        "Servers for the same rate, against {name}{ranges}: {each}"
    )];
    if !doubts.is_empty() {
        sentences.push(format!("In doubt: {doubts}"));
    }
    sentences
}

/// How many servers `other` needs for each of `first`.
fn factor(first: &Contender, other: &Contender, cost: &Cost) -> String {
    let name = other.transport;
    let digits = |factor: f64| decimal(factor, 2);
    let Some(factor) = cost.servers else {
        return format!("{name} unknown");
    };
    let least = first.min.achieved_qps / other.max.achieved_qps;
    let most = first.max.achieved_qps / other.min.achieved_qps;
    let range = format!("({} to {})", digits(least), digits(most));
    match cost.ranges_overlap {
        Some(true) => format!("{name} cannot be distinguished {range}"),
        Some(false) => format!("{name} {} times {range}", digits(factor)),
        None => format!("{name} {} times", digits(factor)),
    }
}

/// Why the factors may not be those of the target, each reason once.
fn doubts(costs: &[(&Contender, &Cost)]) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for (_, cost) in costs {
        for reason in cost.doubt.iter().flat_map(|doubt| doubt.split(", ")) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    reasons.join(", ")
}

#[cfg(test)]
mod tests {
    use measure::comparison::Cell;
    use measure::{RunRecord, Transport, judge};

    use super::*;
    use crate::example;

    fn concluded(records: &[RunRecord]) -> Vec<String> {
        let cell = |record| Cell { record, file: None };
        let cells: Vec<Cell<'_>> = records.iter().map(cell).collect();
        let lines = lines(&Comparison::new(&cells).expect("has runs"));
        assert!(
            lines.iter().all(|line| line.chars().count() <= 100),
            "{lines:?}"
        );
        lines
    }

    fn runs(of_each: &[(Transport, &[u64])]) -> Vec<RunRecord> {
        let each = of_each.iter().flat_map(|(transport, responses)| {
            responses
                .iter()
                .map(|number| example::full(*transport, *number))
        });
        each.collect()
    }

    fn measure_the_generator(record: &mut RunRecord) {
        record.workers[0].cpu_ns = record.measured_ns;
        record.workers[0].wall_ns = record.measured_ns;
        record.verdict = judge(record);
    }

    #[test]
    fn factors_have_two_decimals_and_the_range_of_several_runs() {
        let (udp, tcp, dot) = (Transport::Udp, Transport::Tcp, Transport::Dot);
        assert_eq!(
            concluded(&runs(&[
                (udp, &[300_000]),
                (tcp, &[250_000]),
                (dot, &[20_000])
            ])),
            ["Servers for the same rate, against udp: tcp 1.20 times, dot 15.00 times"]
        );
        assert_eq!(
            concluded(&runs(&[
                (udp, &[300_000, 303_000]),
                (tcp, &[250_000, 252_000]),
                (dot, &[299_000, 302_000]),
            ])),
            [
                "Servers for the same rate, against udp, with the range of the runs: tcp 1.20 \
                 times (1.19 to 1.21),",
                "  dot cannot be distinguished (0.99 to 1.01)",
            ]
        );
    }

    #[test]
    fn runs_that_measured_the_generator_are_named_once() {
        let (udp, tcp, dot) = (Transport::Udp, Transport::Tcp, Transport::Dot);
        let of_each: [(Transport, &[u64]); 3] = [
            (udp, &[300_000, 300_000]),
            (tcp, &[250_000]),
            (dot, &[190_000]),
        ];
        let mut records = runs(&of_each);
        measure_the_generator(&mut records[0]);
        assert_eq!(
            concluded(&records),
            [
                "Servers for the same rate, against udp: tcp 1.20 times, dot 1.58 times",
                "In doubt: udp measured the generator (1 of 2 runs)",
            ]
        );
        measure_the_generator(&mut records[1]);
        let why = "Undecided what the transports cost: udp measured the generator (2 of 2 runs)";
        assert_eq!(concluded(&records), [why]);
        // Only one of the others.
        let mut records = runs(&of_each);
        measure_the_generator(&mut records[3]);
        assert_eq!(
            concluded(&records),
            [
                "Servers for the same rate, against udp: tcp 1.20 times, dot unknown",
                "In doubt: dot measured the generator (1 of 1 run)",
            ]
        );
    }

    #[test]
    fn a_given_rate_and_a_single_transport_have_no_factor() {
        let mut records = vec![example::udp_self_test(), example::udp_self_test()];
        let alone = "Self-test. Nothing to compare: only udp was measured";
        assert_eq!(concluded(&records), [alone]);
        records[1].scenario.transport = Transport::Doq.into();
        let first = &concluded(&records)[0];
        let expected = "Self-test. No factor between the transports: the rate was given, ";
        assert!(first.starts_with(expected), "{first}");
    }
}
