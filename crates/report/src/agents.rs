//! A row for each of several agents, those that differ first.

use std::collections::BTreeSet;

use measure::RunRecord;
use measure::agent_series::AgentStep;
use measure::notation::{count, counted, decimal, latency, per_second, rate, share};
use measure::record::Agent;

use crate::chart::{Axis, Chart, Form, Point, SERIES_MAX, Scale, Series, Unit};
use crate::csv;
use crate::document::{Column, Sheet};
use crate::over_time::Timeline;
use crate::text::figures::or_dash;

/// Agents that the text has.
pub(crate) const IN_TEXT: usize = 10;
/// Where nothing is known.
const UNKNOWN: &str = "-";
/// Position of the column of nodes.
const NODE_COLUMN: usize = 1;

/// What is said of an agent.
struct AgentRow<'a> {
    agent: &'a Agent,
    position: usize,
    /// CPUs' worth of time that its workers used, and how many workers it has.
    cpus: Option<(f64, u64)>,
}

/// All agents by position; none of a run of one.
fn rows(record: &RunRecord) -> Vec<AgentRow<'_>> {
    if record.agents.len() < 2 {
        return Vec::new();
    }
    let mut rows: Vec<AgentRow<'_>> = (record.agents.iter().enumerate())
        .map(|(position, agent)| AgentRow {
            agent,
            position,
            cpus: None,
        })
        .collect();
    for worker in &record.workers {
        let own = worker.agent.and_then(|it| rows.get_mut(it as usize));
        if let Some(row) = own {
            let (cpus, workers) = row.cpus.get_or_insert_default();
            *cpus += worker.busy_share();
            *workers += 1;
        }
    }
    rows
}

impl AgentRow<'_> {
    /// Queries lost, and of how many.
    fn lost(&self) -> Option<(u64, u64)> {
        let counts = self.agent.counts?;
        Some((counts.lost?, counts.offered))
    }

    fn lost_share(&self) -> f64 {
        let counts = self.agent.counts;
        counts.and_then(|it| it.lost_share()).unwrap_or(0.0)
    }

    fn late_ns(&self) -> Option<u64> {
        self.agent.counts?.send_lateness_p99_ns
    }

    /// `node-7 (eu-1a)`.
    fn node(&self, record: &RunRecord) -> Option<String> {
        let node = record.node_name(self.agent)?;
        let placement = self.agent.placement.as_ref();
        let zone = placement.and_then(|it| it.zone.as_deref());
        Some(match zone {
            Some(zone) => format!("{node} ({zone})"),
            None => node.to_owned(),
        })
    }
}

/// All agents, those that differ first; of equals in the order of the record.
fn sorted_rows(record: &RunRecord) -> Vec<AgentRow<'_>> {
    let mut rows = rows(record);
    rows.sort_by(|a, b| {
        let is_free = |it: &AgentRow<'_>| it.agent.limited_by.is_none();
        let by_rule = is_free(a).cmp(&is_free(b));
        let by_lost = b.lost_share().total_cmp(&a.lost_share());
        by_rule.then(by_lost).then(b.late_ns().cmp(&a.late_ns()))
    });
    rows
}

/// A row for each agent, `most` at most; none where there is only one.
pub(crate) fn sheet(record: &RunRecord, prefix: &str, most: usize) -> Sheet {
    let columns = vec![
        Column::words("agent"),
        Column::words("node"),
        Column::figures("clock \u{b1}"),
        Column::figures("first query late"),
        Column::figures("late p99"),
        Column::figures("offered"),
        Column::figures("achieved"),
        Column::figures("lost"),
        Column::figures("CPUs"),
        Column::words("limited by"),
    ];
    let mut sheet = Sheet::new(&format!("{prefix}agents"), "Agents", columns);
    let rows = sorted_rows(record);
    let shown = rows.iter().take(most);
    sheet.rows = shown.map(|row| cells(record, row)).collect();
    drop_unknown(&mut sheet);
    let more = rows.len().saturating_sub(most);
    if more > 0 {
        let more = counted(more as u64, "agent");
        sheet.notes.push(format!(
            "{more} more; those that a rule names, or that lost most, are first."
        ));
    }
    sheet
}

fn cells(record: &RunRecord, row: &AgentRow<'_>) -> Vec<String> {
    let agent = row.agent;
    let known = |cell: Option<String>| cell.unwrap_or_else(|| UNKNOWN.to_owned());
    let cpus = |(cpus, workers)| format!("{} of {}", decimal(cpus, 2), count(workers));
    let start_bound = agent.clock.map(|it| latency(it.start_bound_ns as f64));
    vec![
        record.agent_name(row.position),
        known(row.node(record)),
        known(start_bound),
        or_dash(agent.first_late_ns),
        or_dash(row.late_ns()),
        known(agent.counts.map(|it| count(it.offered))),
        known(agent.achieved_qps().map(rate)),
        known(row.lost().map(|(lost, offered)| share(lost, offered))),
        known(row.cpus.map(cpus)),
        known(agent.limited_by.clone()),
    ]
}

/// Leaves out columns that say nothing: a host's own agents have one clock and one node.
fn drop_unknown(sheet: &mut Sheet) {
    let last = sheet.columns.len() - 1;
    let is_kept = |column: usize| {
        let cells = sheet.rows.iter().map(|row| row[column].as_str());
        let cells: BTreeSet<&str> = cells.collect();
        match column {
            0 => true,
            NODE_COLUMN => cells.len() > 1 && sheet.rows.iter().any(|row| row[column] != row[0]),
            _ => column == last || cells != BTreeSet::from([UNKNOWN]),
        }
    };
    let is_kept: Vec<bool> = (0..=last).map(is_kept).collect();
    let mut kept = is_kept.iter();
    sheet.columns.retain(|_| kept.next() == Some(&true));
    for row in &mut sheet.rows {
        let mut kept = is_kept.iter();
        row.retain(|_| kept.next() == Some(&true));
    }
}

/// Columns of [`render_csv`].
const CSV_COLUMNS: [&str; 16] = [
    "agent",
    "name",
    "node",
    "zone",
    "pod",
    "clock_bound_us",
    "first_query_late_us",
    "send_late_p99_us",
    "offered_queries",
    "sent_queries",
    "achieved_qps",
    "lost_queries",
    "lost_share",
    "cpus",
    "workers",
    "limited_by",
];

/// The agents of a run as CSV, a row each in the order of the record; the header alone of a run
/// that has no rows of several agents. What is not known is empty.
pub fn render_csv(record: &RunRecord) -> String {
    let mut text = String::new();
    csv::push_row(&mut text, CSV_COLUMNS.into_iter().map(str::to_owned));
    for row in rows(record) {
        csv::push_row(&mut text, csv_cells(record, &row).into_iter());
    }
    text
}

fn csv_cells(record: &RunRecord, row: &AgentRow<'_>) -> [String; CSV_COLUMNS.len()] {
    let agent = row.agent;
    let counts = agent.counts;
    let placement = agent.placement.clone().unwrap_or_default();
    let us = |ns: Option<u64>| ns.map(|ns| format!("{:.3}", ns as f64 / 1e3));
    let number = |number: Option<u64>| number.map(|it| it.to_string());
    let cells = [
        Some((row.position + 1).to_string()),
        Some(record.agent_name(row.position)),
        record.node_name(agent).map(str::to_owned),
        placement.zone,
        placement.pod,
        us(agent.clock.map(|it| it.start_bound_ns)),
        us(agent.first_late_ns),
        us(row.late_ns()),
        number(counts.map(|it| it.offered)),
        number(counts.map(|it| it.sent)),
        agent.achieved_qps().map(|it| format!("{it:.3}")),
        number(row.lost().map(|it| it.0)),
        row.lost().map(|_| format!("{:.6}", row.lost_share())),
        row.cpus.map(|it| format!("{:.3}", it.0)),
        number(row.cpus.map(|it| it.1)),
        agent.limited_by.clone(),
    ];
    cells.map(Option::unwrap_or_default)
}

/// Columns of [`render_series_csv`].
const SERIES_COLUMNS: [&str; 8] = [
    "agent",
    "name",
    "start_s",
    "end_s",
    "sent_queries",
    "responses",
    "lost_queries",
    "latency_p99_us",
];

/// What each agent of a run did over time as CSV, a row for each agent and step; the header alone
/// where the record does not have it.
pub fn render_series_csv(record: &RunRecord) -> String {
    let mut text = String::new();
    csv::push_row(&mut text, SERIES_COLUMNS.into_iter().map(str::to_owned));
    let seconds = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    let us = |ns: u64| format!("{:.3}", ns as f64 / 1e3);
    for row in rows(record) {
        let name = record.agent_name(row.position);
        for step in steps(row.agent) {
            let cells: [String; SERIES_COLUMNS.len()] = [
                (row.position + 1).to_string(),
                name.clone(),
                seconds(step.start_us),
                seconds(step.end_us),
                step.sent.to_string(),
                step.responses.to_string(),
                step.lost.to_string(),
                step.latency_p99_max_ns.map_or_else(String::new, us),
            ];
            csv::push_row(&mut text, cells.into_iter());
        }
    }
    text
}

fn steps(agent: &Agent) -> impl Iterator<Item = AgentStep> {
    agent.series.iter().flat_map(|series| series.steps())
}

/// Responses a second of those agents that the table has first; none where the record does not say.
pub(crate) fn chart(record: &RunRecord, prefix: &str) -> Option<Chart> {
    let timeline = Timeline::new(record, prefix);
    let rows = sorted_rows(record);
    let shown = &rows[..rows.len().min(SERIES_MAX)];
    let id = timeline.id("agent-rates");
    let columns = [
        Column::words("agent"),
        Column::figures("least, qps"),
        Column::figures("greatest, qps"),
        Column::figures("highest p99"),
    ];
    let mut sheet = Sheet::new(&format!("{id}-figures"), "", columns.to_vec());
    let mut series = Vec::new();
    for (look, row) in shown.iter().enumerate() {
        let name = record.agent_name(row.position);
        let within = steps(row.agent).filter(|it| it.end_us <= record.measured_ns.div_ceil(1_000));
        let within: Vec<AgentStep> = within.filter(|it| it.seconds() > 0.0).collect();
        let rate = |step: &AgentStep| step.responses as f64 / step.seconds();
        let rates = || within.iter().map(rate);
        let slowest = within.iter().filter_map(|it| it.latency_p99_max_ns).max();
        let qps = |qps: Option<f64>| qps.map_or_else(|| UNKNOWN.to_owned(), per_second);
        sheet.rows.push(vec![
            name.clone(),
            qps(rates().reduce(f64::min)),
            qps(rates().reduce(f64::max)),
            or_dash(slowest),
        ]);
        let point = |step: &AgentStep| {
            let middle_ns = step.start_us.midpoint(step.end_us) * 1_000;
            Point::new(timeline.time(middle_ns), rate(step))
        };
        series.push(Series {
            name,
            form: Form::Line,
            look,
            points: within.iter().map(point).collect(),
        });
    }
    let mut notes = vec!["`throng report --format csv-agent-intervals` has every step".to_owned()];
    if let more @ 1.. = rows.len() - shown.len() {
        let more = counted(more as u64, "agent");
        notes.push(format!(
            "{more} more; those shown are the first of the table"
        ));
    }
    let chart = Chart {
        id,
        title: "Responses of each agent".to_owned(),
        description: "Responses a second, as each agent counted them.".to_owned(),
        x: timeline.time_axis(),
        y: Axis::new("responses a second", Scale::FromZero, Unit::Number),
        series,
        marks: Vec::new(),
        sheet,
        notes,
    };
    chart.is_worthwhile().then_some(chart)
}

#[cfg(test)]
mod tests {
    use measure::agent_series::SeriesBuilder;
    use measure::record::{AgentClock, Placement};
    use measure::{AgentCounts, AgentSeries, Interval, WorkerFacts};

    use super::*;
    use crate::example;

    /// A run of this number of agents, of which agent 11 lost a tenth and agent 12 was late.
    fn fleet(agents: usize) -> RunRecord {
        let mut record = example::dot();
        (record.agents, record.workers) = (Vec::new(), Vec::new());
        for position in 0..agents {
            let lost = u64::from(position == 11) * 100;
            record.agents.push(Agent {
                name: Some(format!("host-{position}")),
                clock: Some(AgentClock {
                    start_bound_ns: 15_000,
                    end_bound_ns: 15_000,
                    drift_ns: 0,
                }),
                placement: Some(Placement {
                    node: Some(format!("node-{}", position / 4)),
                    zone: Some("eu-1a".to_owned()),
                    pod: None,
                }),
                window_us: 2_000_000,
                first_late_ns: Some(40_000),
                limited_by: (position == 12).then(|| "queries left late".to_owned()),
                counts: Some(AgentCounts {
                    offered: 1_000,
                    sent: 1_000,
                    responses_in_window: Some(1_000 - lost),
                    lost: Some(lost),
                    send_lateness_p99_ns: Some(70_000),
                    ..AgentCounts::default()
                }),
                ..Agent::default()
            });
            for _ in 0..2 {
                record.workers.push(WorkerFacts {
                    cpu_ns: 400_000_000,
                    wall_ns: 1_000_000_000,
                    agent: Some(position as u64),
                    ..WorkerFacts::default()
                });
            }
        }
        record
    }

    /// What one of ten agents did in two intervals.
    fn series() -> AgentSeries {
        let mut series = SeriesBuilder::new(10);
        for number in 0..2 {
            let mut interval = Interval {
                start_ns: number * 1_000_000_000,
                end_ns: (number + 1) * 1_000_000_000,
                ..Interval::default()
            };
            (interval.counts.sent, interval.counts.responses) = (500, 490 + number);
            interval.counts.timeouts = number;
            series.push(&interval);
        }
        series.until(u64::MAX)
    }

    #[test]
    fn series_of_agents_are_rows_and_lines() {
        let mut record = fleet(16);
        assert!(chart(&record, "").is_none());
        assert_eq!(render_series_csv(&record).lines().count(), 1);
        for agent in &mut record.agents {
            agent.series = Some(series());
        }
        let csv = render_series_csv(&record);
        let rows: Vec<&str> = csv.split_terminator("\r\n").collect();
        assert_eq!(rows.len(), 33);
        assert_eq!(rows[4], "2,host-1,1.000000,2.000000,500,491,1,");
        let chart = chart(&record, "").unwrap();
        assert_eq!(chart.series.len(), SERIES_MAX);
        let points = chart.series[0].points.iter().map(|it| (it.x, it.y));
        let expected = [(0.5, Some(490.0)), (1.5, Some(491.0))];
        assert_eq!(points.collect::<Vec<_>>(), expected);
        assert_eq!(chart.sheet.rows[2], ["host-0", "490.0", "491.0", "-"]);
        assert!(
            chart.notes[1].starts_with("4 agents more"),
            "{:?}",
            chart.notes
        );
    }

    fn lines(record: &RunRecord, most: usize) -> Vec<String> {
        let mut text = String::new();
        crate::plain::columns(&mut text, &sheet(record, "", most));
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().map(words).collect()
    }

    #[test]
    fn agents_that_differ_are_first_and_the_others_are_counted() {
        let lines = lines(&fleet(20), 3);
        let expected = [
            "agent node clock \u{b1} first query late late p99 offered achieved lost CPUs \
             limited by",
            "host-12 node-3 (eu-1a) 15.00 us 40.00 us 70.00 us 1,000 500.0 qps 0 % 0.80 of 2 \
             queries left late",
            "host-11 node-2 (eu-1a) 15.00 us 40.00 us 70.00 us 1,000 450.0 qps 10.00 % 0.80 of 2 -",
            "host-0 node-0 (eu-1a) 15.00 us 40.00 us 70.00 us 1,000 500.0 qps 0 % 0.80 of 2 -",
            "17 agents more; those that a rule names, or that lost most, are first.",
        ];
        assert_eq!(lines, expected);
        assert!(sheet(&fleet(1), "", 10).rows.is_empty());
    }

    #[test]
    fn agents_of_one_host_have_no_columns_of_clock_and_node() {
        let mut record = fleet(3);
        for agent in &mut record.agents {
            (agent.name, agent.clock, agent.placement) = (None, None, None);
        }
        let lines = lines(&record, 10);
        let heads = "agent first query late late p99 offered achieved lost CPUs limited by";
        assert_eq!(lines[0], heads);
        assert!(lines[1].starts_with("agent 1 40.00 us"), "{lines:?}");
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn csv_has_a_row_for_each_agent_and_empty_cells_for_what_is_not_known() {
        let mut record = fleet(20);
        record.agents[1].counts = None;
        let csv = render_csv(&record);
        let rows: Vec<&str> = csv.split_terminator("\r\n").collect();
        assert_eq!(rows.len(), 21);
        for row in &rows {
            assert_eq!(row.split(',').count(), CSV_COLUMNS.len(), "{row}");
        }
        let known = "13,host-12,node-3,eu-1a,,15.000,40.000,70.000,1000,1000,500.000,0,0.000000,\
                     0.800,2,queries left late";
        assert_eq!(rows[13], known);
        let unknown = "2,host-1,node-0,eu-1a,,15.000,40.000,,,,,,,0.800,2,";
        assert_eq!(rows[2], unknown);
        assert_eq!(render_csv(&fleet(1)).lines().count(), 1);
    }
}
