//! Charts of distributions: latency, connection set-up, and figures over clients, on an axis of
//! percentiles that gives the slowest 1 % as much room as the other 99 %.

use measure::notation::{count, counted, decimal, latency};
use measure::{ClientExperience, Histogram, OverRuns, RunRecord};

use crate::chart::{Axis, Chart, Form, Point, Scale, Series, Unit};
use crate::document::{Column, Sheet};

/// Shares in the table of a distribution.
const SHARES: [(f64, &str); 8] = [
    (0.0, "least"),
    (0.5, "50 %"),
    (0.9, "90 %"),
    (0.95, "95 %"),
    (0.99, "99 %"),
    (0.999, "99.9 %"),
    (0.9999, "99.99 %"),
    (1.0, "greatest"),
];

/// Steps along the axis of percentiles that a curve is drawn in, for each factor of ten.
const STEPS_A_DECADE: f64 = 60.0;

/// With fewer clients than that, the table of the worst ones suffices.
const CLIENTS_MIN: u64 = 10;

/// A chart of distributions: names, words for the x axis, description.
pub(crate) struct Subject {
    pub(crate) id: String,
    pub(crate) title: &'static str,
    /// What the shares are of.
    pub(crate) of: &'static str,
    pub(crate) y: &'static str,
    pub(crate) description: String,
}

/// What a line shows: one distribution, or those of several runs, of which it shows the median at
/// each share.
pub(crate) type Line<'a> = (String, Vec<&'a Histogram>);

/// One line for each that has values; nothing without any.
pub(crate) fn chart(subject: Subject, named: &[Line<'_>]) -> Option<Chart> {
    let filled: Vec<&Line<'_>> = named
        .iter()
        .filter(|(_, runs)| runs.iter().any(|values| !values.is_empty()))
        .collect();
    if filled.is_empty() {
        return None;
    }
    let series = filled
        .iter()
        .enumerate()
        .map(|(look, (name, runs))| Series {
            look,
            name: name.clone(),
            form: Form::Line,
            points: match runs.as_slice() {
                [only] => curve(only),
                several => curve_of_several(several),
            },
        });
    let mut columns = vec![Column::words(subject.of)];
    columns.extend(filled.iter().map(|(name, _)| Column::figures(name.clone())));
    let mut sheet = Sheet::new(&format!("{}-figures", subject.id), "", columns);
    for (share, words) in SHARES {
        let mut row = vec![words.to_owned()];
        row.extend(filled.iter().map(|(_, runs)| at_median(runs, share)));
        sheet.rows.push(row);
    }
    Some(Chart {
        id: subject.id,
        title: subject.title.to_owned(),
        description: subject.description,
        x: Axis::new(
            format!("{} (tail on a log scale)", subject.of),
            Scale::Tail,
            Unit::Number,
        ),
        y: Axis::new(
            format!("{} (log scale)", subject.y),
            Scale::Log,
            Unit::Nanoseconds,
        ),
        series: series.collect(),
        marks: Vec::new(),
        sheet,
        notes: Vec::new(),
    })
    .filter(Chart::is_worthwhile)
}

/// The value below which `share` of the values are, in words.
fn at(values: &Histogram, share: f64) -> String {
    at_median(&[values], share)
}

/// The median of what [`at`] says of several.
fn at_median(runs: &[&Histogram], share: f64) -> String {
    median_at(runs, share).map_or_else(|| "-".into(), latency)
}

fn median_at(runs: &[&Histogram], share: f64) -> Option<f64> {
    let each = runs.iter().filter_map(|values| match share {
        0.0 => values.min_ns(),
        1.0 => values.max_ns(),
        _ => values.percentile(share),
    });
    OverRuns::median(each.map(|ns| ns as f64)).map(|it| it.value)
}

/// Several distributions as points of one line.
fn curve_of_several(runs: &[&Histogram]) -> Vec<Point> {
    let fewest = runs
        .iter()
        .map(|values| values.count())
        .filter(|it| *it > 0);
    let last = 1.0 - 0.5 / fewest.min().unwrap_or(1) as f64;
    let steps = (-(1.0 - last).log10() * STEPS_A_DECADE).ceil() as u32;
    let shares = (0..steps).map(|step| 1.0 - 10_f64.powf(-f64::from(step) / STEPS_A_DECADE));
    let points = shares.filter_map(|share| Some((share, median_at(runs, share)?)));
    let end = median_at(runs, 1.0).map(|value| (last, value));
    points
        .chain(end)
        .map(|(share, value)| Point::new(share, value.max(1.0)))
        .collect()
}

/// The distribution as points: share of the values, and the value below which they are.
fn curve(values: &Histogram) -> Vec<Point> {
    let all = values.count() as f64;
    let mut points = Vec::new();
    let mut last_step = f64::NEG_INFINITY;
    let mut add = |share: f64, value: u64, is_kept: bool| {
        // The greatest value has none above it, and an axis by what is left has no place for that.
        let share = share.min(1.0 - 0.5 / all);
        let step = (-(1.0 - share).log10() * STEPS_A_DECADE).floor();
        if step > last_step || is_kept {
            last_step = step;
            points.push(Point::new(share, value.max(1) as f64));
        }
    };
    if let Some(least) = values.min_ns() {
        add(0.0, least, true);
    }
    let mut below = 0;
    for (low, high, number) in values.buckets() {
        let middle = low.midpoint(high);
        // A bucket that holds many is flat: its both ends are needed.
        add(below as f64 / all, middle, number as f64 > 0.02 * all);
        below += number;
        add(below as f64 / all, middle, number as f64 > 0.02 * all);
    }
    if let Some(greatest) = values.max_ns() {
        add(1.0, greatest, true);
    }
    points
}

/// Latency of all responses, from the scheduled instant and from sending.
pub(crate) fn latencies(record: &RunRecord, prefix: &str) -> Option<Chart> {
    let distributions = &record.total.distributions;
    let (scheduled, service) = (&distributions.latency, &distributions.service);
    let mut named = vec![("from scheduled".to_owned(), vec![scheduled])];
    let p99 = |values: &Histogram| values.percentile(0.99).unwrap_or(0) as f64;
    if p99(scheduled) > 1.02 * p99(service) {
        named.push(("service time, from sending".to_owned(), vec![service]));
    }
    let description = format!(
        "{}: median {}, 99 % within {}, 99.9 % within {}, longest {}.",
        counted(scheduled.count(), "response"),
        at(scheduled, 0.5),
        at(scheduled, 0.99),
        at(scheduled, 0.999),
        at(scheduled, 1.0)
    );
    let subject = Subject {
        id: format!("{prefix}distribution"),
        title: "Latency distribution",
        of: "share of responses",
        y: "latency",
        description,
    };
    chart(subject, &named)
}

/// How long connections took to set up, step by step.
pub(crate) fn set_up(record: &RunRecord, prefix: &str) -> Option<Chart> {
    let times = record.connection_times();
    let steps = times.steps().into_iter();
    let first = ("set-up and first query", &times.set_up_and_first_query);
    let named: Vec<(&str, &Histogram)> = steps.chain([first]).collect();
    let each = named.iter().filter(|(_, values)| !values.is_empty());
    let words: Vec<String> = each
        .map(|(name, values)| format!("{name} p50 {}, p99 {}", at(values, 0.5), at(values, 0.99)))
        .collect();
    let named = named.into_iter();
    let named: Vec<Line<'_>> = named
        .map(|(name, it)| (name.to_owned(), vec![it]))
        .collect();
    let subject = Subject {
        id: format!("{prefix}set-up"),
        title: "Connection set-up",
        of: "share of connections",
        y: "time",
        description: format!("{}.", words.join("; ")),
    };
    chart(subject, &named)
}

/// Each client's own percentiles, over clients.
pub(crate) fn over_clients(experience: &ClientExperience, prefix: &str) -> Option<Chart> {
    if experience.answered() < CLIENTS_MIN {
        return None;
    }
    let over = &experience.latency;
    let named = [
        ("each client's p50".to_owned(), vec![&over.p50]),
        ("each client's p90".to_owned(), vec![&over.p90]),
        ("each client's p99".to_owned(), vec![&over.p99]),
        ("each client's longest".to_owned(), vec![&over.max]),
    ];
    let subject = Subject {
        id: format!("{prefix}clients"),
        title: "Latency as single clients saw it",
        of: "share of clients",
        y: "latency",
        description: format!(
            "Of {}, half had a p99 within {}, and 99 in 100 one within {}.",
            counted(experience.answered(), "client"),
            at(&over.p99, 0.5),
            at(&over.p99, 0.99)
        ),
    };
    chart(subject, &named)
}

/// Bars for each factor of ten of a client's rate.
const BARS_A_DECADE: i32 = 5;

/// How many clients asked at which rate.
pub(crate) fn client_rates(
    experience: &ClientExperience,
    window_s: f64,
    prefix: &str,
) -> Option<Chart> {
    if experience.asked() < CLIENTS_MIN || window_s <= 0.0 {
        return None;
    }
    let mut bars: std::collections::BTreeMap<i32, u64> = std::collections::BTreeMap::new();
    let mut silent = 0;
    for (low, high, clients) in experience.queries.buckets() {
        let queries = low.midpoint(high) as f64;
        if queries < 1.0 {
            silent += clients;
            continue;
        }
        let bar = ((queries / window_s).log10() * f64::from(BARS_A_DECADE)).floor();
        *bars.entry(bar as i32).or_default() += clients;
    }
    let edge = |bar: i32| 10_f64.powf(f64::from(bar) / f64::from(BARS_A_DECADE));
    let (first, last) = (*bars.keys().next()?, *bars.keys().next_back()?);
    // An empty bar on either side, so that a population of one rate does not fill the chart.
    let all = (first - 1..=last + 1).map(|bar| Point {
        x: edge(bar),
        x_end: Some(edge(bar + 1)),
        y: Some(bars.get(&bar).copied().unwrap_or(0) as f64),
        band: None,
    });
    let id = format!("{prefix}client-rates");
    let columns = ["from, qps", "to, qps", "clients"].map(Column::figures);
    let mut sheet = Sheet::new(&format!("{id}-figures"), "", columns.into());
    for (bar, clients) in &bars {
        let ends = [edge(*bar), edge(bar + 1)].map(|qps| decimal(qps, 3));
        let [from, to] = ends;
        sheet.rows.push(vec![from, to, count(*clients)]);
    }
    let mut notes = Vec::new();
    if silent > 0 {
        notes.push(format!("{} sent no query", counted(silent, "client")));
    }
    Some(Chart {
        description: rates_in_words(experience, window_s),
        id,
        title: "Clients by the rate at which they asked".into(),
        x: Axis::new(
            "queries a second of a client (log scale)",
            Scale::Log,
            Unit::Number,
        ),
        y: Axis::new("clients", Scale::FromZero, Unit::Number),
        series: vec![Series {
            name: "clients".into(),
            look: 0,
            form: Form::Bars,
            points: all.collect(),
        }],
        marks: Vec::new(),
        sheet,
        notes,
    })
}

fn rates_in_words(experience: &ClientExperience, window_s: f64) -> String {
    let rate = |share| {
        let qps = experience.rate_qps(share, window_s).unwrap_or(0.0);
        decimal(qps, if qps < 10.0 { 2 } else { 1 })
    };
    format!(
        "Of {}, the median client asked {} queries a second, the least active {} and the most \
            active {}.",
        counted(experience.clients(), "client"),
        rate(0.5),
        rate(0.0),
        rate(1.0)
    )
}
