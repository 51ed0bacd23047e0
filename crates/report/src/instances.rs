//! What each server instance answered, told apart by its NSID.

use measure::RunRecord;
use measure::histogram::Histogram;
use measure::instances::Instance;
use measure::notation::{count, counted, share};

use crate::document::{Column, Sheet};
use crate::text::figures::or_dash;

/// A row for each instance; none where queries did not ask for identifiers.
pub(crate) fn sheet(record: &RunRecord, prefix: &str) -> Sheet {
    let columns = vec![
        Column::words("server instance (NSID)"),
        Column::figures("responses"),
        Column::figures("of all"),
        Column::figures("p50"),
        Column::figures("p99"),
        Column::words("RCODEs"),
    ];
    let title = "Server instances";
    let mut sheet = Sheet::new(&format!("{prefix}instances"), title, columns);
    let Some(instances) = &record.instances else {
        return sheet;
    };
    let all = record.total.counts.responses;
    sheet.rows = instances.each.iter().map(|it| row(it, all)).collect();
    for (responses, who) in [
        (instances.responses_without, "named no instance"),
        (instances.responses_of_others, "came from further instances"),
    ] {
        if responses > 0 {
            let note = format!("{} {who}.", counted(responses, "response"));
            sheet.notes.push(note);
        }
    }
    sheet
        .notes
        .push("Latencies count from the sending of a query.".to_owned());
    sheet
}

fn row(instance: &Instance, all: u64) -> Vec<String> {
    let of = |times: &Histogram, p| or_dash(times.percentile(p));
    let rcodes = instance.rcodes.named();
    let rcodes = rcodes.map(|(name, number)| format!("{name} {}", count(number)));
    vec![
        instance.nsid.clone(),
        count(instance.responses),
        share(instance.responses, all),
        of(&instance.service, 0.5),
        of(&instance.service, 0.99),
        rcodes.collect::<Vec<_>>().join(", "),
    ]
}

#[cfg(test)]
mod tests {
    use measure::instances::Instances;

    use super::*;
    use crate::example;

    #[test]
    fn each_instance_says_what_it_answered() {
        let mut record = example::dot();
        assert!(sheet(&record, "").rows.is_empty());
        let mut one = Instance::new("ns1".to_owned());
        one.count(0, 2_000_000);
        one.count(2, 2_000_000);
        record.total.counts.responses = 8;
        record.instances = Some(Instances {
            each: vec![one],
            responses_of_others: 5,
            responses_without: 1,
        });
        let mut text = String::new();
        crate::plain::columns(&mut text, &sheet(&record, ""));
        let lines = text.lines().map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.join(" ")
        });
        let expected = [
            "server instance (NSID) responses of all p50 p99 RCODEs",
            "ns1 2 25.00 % 2.000 ms 2.000 ms NOERROR 1, SERVFAIL 1",
            "1 response named no instance.",
            "5 responses came from further instances.",
            "Latencies count from the sending of a query.",
        ];
        assert_eq!(lines.collect::<Vec<String>>(), expected, "{text}");
    }
}
