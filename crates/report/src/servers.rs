//! What observed servers and hosts told of themselves: facts, costs and courses.

use measure::RunRecord;
use measure::notation::{count, counted, decimal, latency, percent};
use measure::observation::{Observation, ProgramUse, QueryUse, ServerFacts};

use crate::chart::{Axis, Chart, Form, Point, SERIES_MAX, Scale, Series, Unit};
use crate::document::{Block, Column, Section, Sheet};
use crate::over_time::Timeline;

/// Rows of a chart's table.
const ROWS_MAX: usize = 30;
/// Below this share of the time between two scrapes the load is hardly any part of it.
const LOADED_MIN: f64 = 0.2;
/// Digits of a hash that are shown.
const HASH_SHOWN: usize = 8;

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
        let known = of_facts(&observation.facts);
        if !known.is_empty() {
            facts.push((observation.name().to_owned(), known.join("; ")));
        }
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

/// What it is, as far as that is known. Of files the beginning of their hash tells two apart.
fn of_facts(facts: &ServerFacts) -> Vec<String> {
    let ServerFacts {
        product,
        version,
        version_bind,
        identity,
        started,
        process_id,
        configuration,
        configuration_sha256,
        binary,
        binary_sha256,
        threads,
        cpus,
        quota_cpus,
    } = facts;
    let file = |what: &str, path: &Option<String>, hash: &Option<String>| {
        let path = path.as_ref()?;
        let hash = hash.as_ref().and_then(|hash| hash.get(..HASH_SHOWN));
        let hash = hash.map_or(String::new(), |hash| format!(" (SHA-256 {hash}..)"));
        Some(format!("{what} {path}{hash}"))
    };
    let words = [
        match (product, version) {
            (Some(product), Some(version)) => Some(format!("{product} {version}")),
            (product, version) => product.clone().or(version.clone()),
        },
        // Where it is the version, it is there already.
        version_bind
            .as_ref()
            .filter(|it| version.as_ref() != Some(*it))
            .map(|it| format!("version.bind answers {it}")),
        identity.as_ref().map(|it| format!("it calls itself {it}")),
        started.as_ref().map(|it| format!("started {it}")),
        process_id.map(|it| format!("process {it}")),
        threads.map(|it| counted(it, "thread")),
        cpus.as_ref().map(|it| format!("CPUs {it}")),
        quota_cpus.map(|it| format!("a quota of {} CPUs", decimal(it, 2))),
        file("program", binary, binary_sha256),
        file("configuration", configuration, configuration_sha256),
    ];
    words.into_iter().flatten().collect()
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
    let mut words = vec![format!(
        "counted {}",
        counted(server.queries.max(0.0) as u64, "query")
    )];
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

/// The server's side of a report, without its charts; none if nothing was observed.
pub(crate) fn section(record: &RunRecord, prefix: &str) -> Option<Section> {
    if record.observations.is_empty() {
        return None;
    }
    let mut sheet = Sheet::facts(&format!("{prefix}servers"), "Server");
    for (name, words) in facts(record) {
        sheet.fact(name, words);
    }
    let sheets = [costs(record, prefix), counts(record, prefix), sheet];
    Some(Section::new("Server", sheets.map(Block::Sheet).into()))
}

/// CPU time for each response, of servers and generator.
fn costs(record: &RunRecord, prefix: &str) -> Sheet {
    let columns = vec![
        Column::words("who"),
        Column::figures("CPUs"),
        Column::figures("CPU s per 1,000"),
    ];
    let title = "CPU seconds per 1,000 queries";
    let mut sheet = Sheet::new(&format!("{prefix}costs"), title, columns);
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

/// What servers and hosts counted: queries, their caches, and drops by place.
fn counts(record: &RunRecord, prefix: &str) -> Sheet {
    let columns = vec![
        Column::words("counted"),
        Column::words("where"),
        Column::figures("number"),
    ];
    let title = "Queries, cache and drops by place";
    let mut sheet = Sheet::new(&format!("{prefix}counted"), title, columns);
    let mut row = |what: &str, place: &str, number: String| {
        sheet
            .rows
            .push(vec![what.to_owned(), place.to_owned(), number]);
    };
    for server in record.servers() {
        let name = server.name();
        row("queries", name, count(server.queries.max(0.0) as u64));
        if let Some(hits) = server.cache_hit_share {
            row("lookups answered from the cache", name, percent(hits));
        }
    }
    for program in record.programs() {
        let name = program.name();
        let sockets = format!("UDP sockets of {name}");
        row("dropped", &sockets, count(program.udp_drops));
        let queue = format!("listen queues beside {name}");
        row("dropped", &queue, count(program.listen_overflows));
    }
    let dropped = [
        ("queries.dropped", "itself"),
        ("softnet.dropped", "before sockets"),
    ];
    for observation in &record.observations {
        for (series, place) in dropped {
            let growth = observation.series(series).and_then(|it| it.growth);
            if let Some(growth) = growth {
                let place = format!("{}, {place}", observation.name());
                row("dropped", &place, count(growth.max(0.0) as u64));
            }
        }
    }
    row(
        "dropped",
        "this generator",
        count(record.network.receive_drops),
    );
    sheet
}

/// CPUs used, and queries counted, over the time of the run's other charts.
pub(crate) fn charts(record: &RunRecord, timeline: &Timeline<'_>) -> Vec<Chart> {
    let programs = record.programs();
    let cpus = programs
        .iter()
        .map(|it| (it.name().to_owned(), it.cpus_over_time()));
    let servers = record.servers();
    let queries = servers.iter();
    let queries = queries.map(|it| (it.name().to_owned(), it.observation().rates(&["queries"])));
    let of_cpus = ("server-cpu", "CPUs that servers used", "CPUs");
    let of_queries = (
        "server-queries",
        "Queries that servers counted",
        "queries a second",
    );
    let charts = [
        chart(record, timeline, of_cpus, cpus.collect()),
        chart(record, timeline, of_queries, queries.collect()),
    ];
    charts.into_iter().filter(Chart::is_worthwhile).collect()
}

/// A rate from scrape to scrape.
type Rates = Vec<(i64, i64, Option<f64>)>;

fn chart(
    record: &RunRecord,
    timeline: &Timeline<'_>,
    (id, title, unit): (&str, &str, &str),
    mut all: Vec<(String, Rates)>,
) -> Chart {
    for (_, rates) in &mut all {
        *rates = under_load(record, std::mem::take(rates));
    }
    let id = timeline.id(id);
    let mut columns = vec![Column::figures("until, s")];
    columns.extend(all.iter().map(|(name, _)| Column::figures(name)));
    let mut sheet = Sheet::new(&format!("{id}-figures"), "", columns);
    let first = all.first().map_or(&[][..], |(_, rates)| rates);
    for (number, (_, until, _)) in first.iter().enumerate().take(ROWS_MAX) {
        let of = |(_, rates): &(String, Rates)| {
            let rate = rates.get(number).and_then(|(_, _, rate)| *rate);
            rate.map_or_else(|| "-".to_owned(), figure)
        };
        let cells = all.iter().map(of);
        let until = decimal(*until as f64 / 1e9, 2);
        sheet
            .rows
            .push(std::iter::once(until).chain(cells).collect());
    }
    let most = all.iter().map(|(name, rates)| {
        let most = figure(highest(rates));
        format!("{name}: at most {most} {unit}")
    });
    let description = format!("{}.", most.collect::<Vec<_>>().join("; "));
    let until_ns = i64::try_from(record.measured_ns).unwrap_or(i64::MAX);
    let series = all.into_iter().enumerate().take(SERIES_MAX);
    // In the middle between two scrapes, as far as they are within the run.
    let point = |(from, until, rate): (i64, i64, Option<f64>)| {
        let (from, until) = (from.max(0), until.min(until_ns));
        Point {
            x: timeline.time(from.unsigned_abs().midpoint(until.unsigned_abs())),
            y: rate,
            ..Point::default()
        }
    };
    let series = series.map(|(look, (name, rates))| Series {
        name,
        form: Form::Line,
        look,
        points: rates.into_iter().map(point).collect(),
    });
    let series = series.collect();
    Chart {
        sheet,
        id,
        title: title.to_owned(),
        description,
        x: Axis {
            is_shared: true,
            ..timeline.time_axis()
        },
        y: Axis::new(unit, Scale::FromZero, Unit::Number),
        series,
        marks: Vec::new(),
        notes: vec!["each point is from one scrape to the next".to_owned()],
    }
}

/// With as many digits as it has use for.
fn figure(value: f64) -> String {
    decimal(value, if value < 100.0 { 2 } else { 0 })
}

/// What came from scrape to scrape while the load was offered, as if nothing had happened before
/// and after it. Without those of which the load is hardly any part.
fn under_load(record: &RunRecord, rates: Rates) -> Rates {
    let end = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let (load_from, until_ns) = (-end(record.phases.warmup_ns), end(record.measured_ns));
    let each = rates.into_iter().filter_map(|(from, until, rate)| {
        let loaded = until.min(until_ns).saturating_sub(from.max(load_from));
        let share = loaded as f64 / until.saturating_sub(from).max(1) as f64;
        let is_within = from < until_ns && until > 0 && share >= LOADED_MIN;
        is_within.then(|| (from, until, rate.map(|rate| rate / share)))
    });
    each.collect()
}

fn highest(rates: &Rates) -> f64 {
    let known = rates.iter().filter_map(|(_, _, rate)| *rate);
    known.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{csv, example, html, plain, run, text};

    #[test]
    fn the_servers_course_stands_below_the_loads_on_the_same_time() {
        let record = example::observed();
        let section = run::charts(&record, "").expect("has charts");
        let charts: Vec<&Chart> = section
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Chart(chart) => Some(chart.as_ref()),
                _ => None,
            })
            .collect();
        let ids: Vec<&str> = charts.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids[..3], ["rates", "server-cpu", "server-queries"]);
        let end = record.measured_ns as f64 / 1e9;
        for chart in &charts[..3] {
            assert_eq!(chart.x.ends, Some((0.0, end)), "{}", chart.id);
            let mut points = chart.series.iter().flat_map(|it| &it.points);
            assert!(points.all(|it| (0.0..=end).contains(&it.x)), "{}", chart.id);
        }
        let shared: Vec<bool> = charts.iter().map(|it| it.x.is_shared).collect();
        assert_eq!(shared[..4], [false, true, true, false]);
        let page = html::render(&run::document(&record, "run.json"));
        let places = ["id=\"rates\"", "id=\"server-cpu\" class=\"below\""];
        let [rates, below] = places.map(|it| page.find(it).expect("is there"));
        assert!(rates < below);
        // Drawn over the same values: the ticks of time are the same, and where they are.
        let ticks = |chart: &Chart| {
            let drawn = crate::chart::draw(chart);
            let ticks = drawn.split("<text class=\"tick\"").skip(1);
            let of_time = ticks.filter(|tick| tick.contains("text-anchor=\"middle\""));
            of_time
                .map(|tick| tick.split("</text>").next().map(str::to_owned))
                .collect()
        };
        let all: Vec<Vec<Option<String>>> = charts[..3].iter().map(|it| ticks(it)).collect();
        assert!(
            all[0].len() > 1 && all[0] == all[1] && all[0] == all[2],
            "{all:#?}"
        );
    }

    #[test]
    fn every_form_has_what_a_query_cost_and_what_the_server_is() {
        let record = example::observed();
        let document = run::document(&record, "run.json");
        for form in [html::render(&document), plain::markdown(&document)] {
            for words in [
                "CPU seconds per 1,000 queries",
                "this generator",
                "lookups answered from the cache",
                "75.0 %",
                "UDP sockets of named",
                "BIND 9.18.33; it calls itself ns1; 6 threads; CPUs 0-1; a quota of 1.50 CPUs",
                "(SHA-256 01234567..)",
                "(SHA-256 fedcba98..)",
            ] {
                assert!(form.contains(words), "no `{words}` in {form}");
            }
        }
        let text = text::render(&record);
        assert!(text.contains("BIND 9.18.33; it calls itself ns1"), "{text}");
        let csv = csv::render(&record);
        let rows: Vec<Vec<&str>> = csv.lines().map(|it| it.split(',').collect()).collect();
        let total = rows.last().expect("has a total");
        let cell = |name: &str| {
            let at = rows[0].iter().position(|it| *it == name);
            total[at.unwrap_or_else(|| panic!("no column {name}"))]
        };
        assert_eq!(cell("server_cpus"), "0.750");
        assert_eq!(cell("server_cache_hit_share"), "0.750000");
        assert!(cell("server_cpu_us_per_query").parse::<f64>().is_ok());
        assert!(cell("cpu_us_per_response").parse::<f64>().is_ok());
        assert_eq!(cell("server_listen_drops"), "0");
    }
}
