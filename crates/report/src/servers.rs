//! What observed servers and hosts told of themselves: facts, costs and courses.

use measure::RunRecord;
use measure::notation::{count, counted, decimal, latency, percent};
use measure::observation::{Observation, ProgramUse, QueryUse};

use crate::chart::{Axis, Chart, Form, Point, SERIES_MAX, Scale, Series, Unit};
use crate::document::{Block, Column, Section, Sheet};

/// Rows of a chart's table.
const ROWS_MAX: usize = 30;

/// What was observed, by name, for tables of two columns; empty if nothing was.
pub(crate) fn facts(record: &RunRecord) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    for program in record.programs() {
        facts.push((program.name().to_owned(), of_program(record, &program)));
    }
    for server in record.servers() {
        facts.push((server.name().to_owned(), of_server(&server)));
    }
    for observation in &record.observations {
        facts.push(("observed".to_owned(), of_source(observation)));
        for note in &observation.notes {
            let times = match note.times {
                1 => String::new(),
                times => format!(" ({} times)", count(times)),
            };
            facts.push((String::new(), format!("{}{times}", note.text)));
        }
    }
    facts
}

fn of_program(record: &RunRecord, program: &ProgramUse<'_>) -> String {
    let mut words = vec![match program.cpus_allowed {
        Some(all) => format!(
            "used {} of its {} CPUs ({})",
            decimal(program.cpus_used, 2),
            decimal(all, 2),
            percent(program.cpu_share().unwrap_or(0.0))
        ),
        None => format!("used {} CPUs", decimal(program.cpus_used, 2)),
    }];
    if record.achieved_qps() > 0.0 {
        let seconds = program.cpus_used * 1e3 / record.achieved_qps();
        words.push(format!(
            "{} CPU seconds per 1,000 queries",
            decimal(seconds, 4)
        ));
    }
    if let Some(thread) = program.busiest_thread_cpus {
        words.push(format!("its busiest thread {}", percent(thread)));
    }
    if let Some(share) = program.throttled_share {
        words.push(format!(
            "stopped by its quota in {} of the periods",
            percent(share)
        ));
    }
    if let Some(octets) = program.memory_bytes_max {
        words.push(format!(
            "{} MiB of memory",
            decimal(octets / f64::from(1 << 20), 1)
        ));
    }
    for (number, what) in [
        (program.udp_drops, "datagram dropped by its sockets"),
        (
            program.listen_overflows,
            "connection dropped by a full listen queue",
        ),
    ] {
        if number > 0 {
            words.push(format!("{} {what}", count(number)));
        }
    }
    words.join("; ")
}

fn of_server(server: &QueryUse<'_>) -> String {
    let version = server.observation().facts.version.iter();
    let mut words: Vec<String> = version.map(|it| format!("version {it}")).collect();
    words.push(format!(
        "counted {}",
        counted(server.queries.max(0.0) as u64, "query")
    ));
    if let Some(hits) = server.cache_hit_share {
        words.push(format!("its cache answered {}", percent(hits)));
    }
    if let Some(asked) = server.upstream_queries.filter(|asked| *asked > 0.0) {
        let mean = server.upstream_s_mean;
        let mean = mean.map_or(String::new(), |it| format!(", {} each", latency(it * 1e9)));
        words.push(format!(
            "asked other servers {} times{mean}",
            count(asked as u64)
        ));
    }
    words.join("; ")
}

/// When it was asked, and what that cost.
fn of_source(observation: &Observation) -> String {
    let cost = observation.cost();
    let mut words = format!(
        "{}: {} of {} each, {} of this host's CPU time",
        observation.source,
        counted(cost.number, "scrape"),
        latency(cost.took_ns as f64 / cost.number.max(1) as f64),
        latency(cost.cpu_ns as f64)
    );
    for (number, what) in [
        (cost.failed, "failed"),
        (
            observation.overflow.scrapes,
            "left out, the one before still went on",
        ),
        (
            observation.overflow.values,
            "values beyond what a record keeps",
        ),
        (
            observation.overflow.notes,
            "notes beyond what a record keeps",
        ),
    ] {
        if number > 0 {
            words.push_str(&format!("; {} {what}", count(number)));
        }
    }
    words
}

/// The server's side of a report; none if nothing was observed.
pub(crate) fn section(record: &RunRecord, prefix: &str) -> Option<Section> {
    if record.observations.is_empty() {
        return None;
    }
    let mut blocks: Vec<Block> = charts(record, prefix)
        .into_iter()
        .map(Block::from)
        .collect();
    blocks.push(Block::Sheet(costs(record, prefix)));
    let mut sheet = Sheet::facts(&format!("{prefix}servers"), "Server");
    for (name, words) in facts(record) {
        sheet.fact(name, words);
    }
    blocks.push(Block::Sheet(sheet));
    Some(Section::new("Server", blocks))
}

/// CPU time for each response, of servers and generator.
fn costs(record: &RunRecord, prefix: &str) -> Sheet {
    let columns = vec![
        Column::words("who"),
        Column::figures("CPUs used"),
        Column::figures("CPU seconds per 1,000 queries"),
    ];
    let mut sheet = Sheet::new(&format!("{prefix}costs"), "What a query cost", columns);
    let mut row = |name: &str, cpus: f64| {
        let each = cpus * 1e3 / record.achieved_qps();
        sheet
            .rows
            .push(vec![name.to_owned(), decimal(cpus, 2), decimal(each, 4)]);
    };
    if record.achieved_qps() > 0.0 {
        for program in record.programs() {
            row(program.name(), program.cpus_used);
        }
        let seconds = record.measured_seconds();
        row(
            "this generator",
            record.total.cpu_ns as f64 / 1e9 / seconds.max(1e-9),
        );
    }
    sheet
}

/// CPUs used, and queries counted, over time.
fn charts(record: &RunRecord, prefix: &str) -> Vec<Chart> {
    let programs = record.programs();
    let cpus = programs
        .iter()
        .map(|it| (it.name().to_owned(), it.cpus_over_time()));
    let servers = record.servers();
    let queries = servers.iter();
    let queries = queries.map(|it| (it.name().to_owned(), it.observation().rates(&["queries"])));
    let charts = [
        chart(
            record,
            (prefix, "server-cpu", "CPUs that servers used", "CPUs"),
            cpus.collect(),
        ),
        chart(
            record,
            (
                prefix,
                "server-queries",
                "Queries that servers counted",
                "queries a second",
            ),
            queries.collect(),
        ),
    ];
    charts.into_iter().filter(Chart::is_worthwhile).collect()
}

/// A rate from scrape to scrape.
type Rates = Vec<(i64, i64, Option<f64>)>;

fn chart(
    record: &RunRecord,
    (prefix, id, title, unit): (&str, &str, &str, &str),
    mut all: Vec<(String, Rates)>,
) -> Chart {
    // What came after the load is none of its course.
    let until_ns = i64::try_from(record.measured_ns).unwrap_or(i64::MAX);
    for (_, rates) in &mut all {
        rates.retain(|(from, _, _)| *from < until_ns);
    }
    let in_minutes = record.measured_ns >= 600_000_000_000;
    let (length, time) = if in_minutes {
        (60e9, "min")
    } else {
        (1e9, "s")
    };
    let id = format!("{prefix}{id}");
    let mut columns = vec![Column::figures(format!("until, {time}"))];
    columns.extend(all.iter().map(|(name, _)| Column::figures(name)));
    let mut sheet = Sheet::new(&format!("{id}-figures"), "", columns);
    let first = all.first().map_or(&[][..], |(_, rates)| rates);
    for (number, (_, until, _)) in first.iter().enumerate().take(ROWS_MAX) {
        let of = |(_, rates): &(String, Rates)| {
            let rate = rates.get(number).and_then(|(_, _, rate)| *rate);
            rate.map_or_else(|| "-".to_owned(), |rate| decimal(rate, 2))
        };
        let cells = all.iter().map(of);
        let until = decimal(*until as f64 / length, 2);
        sheet
            .rows
            .push(std::iter::once(until).chain(cells).collect());
    }
    let series = all.into_iter().enumerate().take(SERIES_MAX);
    let series = series.map(|(look, (name, rates))| Series {
        name,
        form: Form::Line,
        look,
        points: rates.into_iter().map(|rate| point(rate, length)).collect(),
    });
    Chart {
        sheet,
        id,
        title: title.to_owned(),
        description: String::new(),
        x: Axis::new(format!("time, {time}"), Scale::Even, Unit::Number),
        y: Axis::new(unit, Scale::FromZero, Unit::Number),
        series: series.collect(),
        marks: Vec::new(),
        notes: vec!["each point is from one scrape to the next".to_owned()],
    }
}

/// In the middle between two scrapes.
fn point((from, until, rate): (i64, i64, Option<f64>), length: f64) -> Point {
    Point {
        x: (from as f64 + until as f64) / 2.0 / length,
        y: rate,
        ..Point::default()
    }
}
