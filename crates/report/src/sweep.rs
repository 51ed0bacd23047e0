//! Charts over several runs: a figure against what varies.

use measure::notation::{count, decimal, latency, per_second, percent, rate};
use measure::{Metric, OverRuns, RunRecord};

use crate::chart::{Axis, Chart, Form, Point, SERIES_MAX, Scale, Series, Unit, names_fit};
use crate::collection::{CLIENTS, RATE, TRANSPORT};
use crate::collection::{Cell, Collection, Value, server_cpu};
use crate::distributions;
use crate::document::{Column, Sheet};

/// From this ratio of the greatest to the least value on, an axis runs by factors.
const LOG_FROM: f64 = 16.0;
/// Up to that many values on the x axis are marked themselves.
const TICKS_GIVEN_MAX: usize = 8;
/// Most bars of a chart.
const BARS_MAX: usize = 12;

/// Cells that differ in the x axis alone.
struct Row<'a> {
    name: String,
    cells: Vec<&'a Cell>,
    /// The values of all but the x axis.
    others: Vec<&'a Value>,
}

/// A sweep: what is on the x axis, and one row for each line.
pub(crate) struct Sweep<'a> {
    collection: &'a Collection,
    axis: usize,
    rows: Vec<Row<'a>>,
}

/// A figure of a cell with the words for it.
struct Figure<'f> {
    id: &'static str,
    title: String,
    y: Axis,
    of: &'f dyn Fn(&Cell, &Row<'_>) -> Option<OverRuns>,
    words: fn(f64) -> String,
}

impl<'a> Sweep<'a> {
    /// None if nothing that varies is a number.
    pub(crate) fn of(collection: &'a Collection) -> Option<Sweep<'a>> {
        let axis = collection.axis()?;
        let mut rows: Vec<Row<'a>> = Vec::new();
        for cell in &collection.cells {
            let others: Vec<&Value> = cell
                .values
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != axis)
                .map(|it| it.1)
                .collect();
            match rows.iter_mut().find(|row| row.others == others) {
                Some(row) => row.cells.push(cell),
                None => rows.push(Row {
                    name: row_name(collection, axis, cell),
                    cells: vec![cell],
                    others,
                }),
            }
        }
        for row in &mut rows {
            row.cells
                .sort_by(|a, b| number(&a.values[axis]).total_cmp(&number(&b.values[axis])));
        }
        Some(Sweep {
            collection,
            axis,
            rows,
        })
    }

    fn axis_name(&self) -> &str {
        &self.collection.varies[self.axis].name
    }

    /// The charts, each only where its figures are.
    pub(crate) fn charts(&self) -> Vec<Chart> {
        let all = [
            Some(self.throughput()),
            self.share_of_udp(),
            self.per_client(),
            Some(self.latency()),
        ];
        let all = all.into_iter().flatten();
        all.filter(Chart::is_worthwhile).collect()
    }

    /// Achieved rate; against the rate asked for with a line where they are the same.
    fn throughput(&self) -> Chart {
        let achieved = |cell: &Cell, _: &Row<'_>| self.collection.metric(cell, Metric::Qps);
        let title = match self.axis_name() {
            RATE => "Offered and achieved rate".to_owned(),
            name => format!("Throughput against {name}"),
        };
        let mut chart = self.chart(&Figure {
            id: "throughput",
            title,
            y: Axis::new("queries a second", Scale::FromZero, Unit::Number),
            of: &achieved,
            words: per_second,
        });
        chart.description = self.highest();
        if self.axis_name() == RATE {
            let all = self.rows.iter().flat_map(|row| &row.cells);
            let mut asked: Vec<f64> = all.map(|cell| number(&cell.values[self.axis])).collect();
            asked.sort_by(f64::total_cmp);
            asked.dedup();
            chart.series.push(Series {
                name: "as offered".into(),
                look: 0,
                form: Form::Guide,
                points: asked.into_iter().map(|qps| Point::new(qps, qps)).collect(),
            });
        }
        chart
    }

    /// `UDP: at most 304,266 qps at 200 clients` for each line.
    fn highest(&self) -> String {
        let each = self.rows.iter().filter_map(|row| {
            let all = row.cells.iter();
            let known = all.filter_map(|cell| Some((cell, self.collection.achieved(cell)?)));
            let (best, qps) = known.max_by(|a, b| a.1.total_cmp(&b.1))?;
            let name = match row.name.as_str() {
                "" => String::new(),
                name => format!("{name}: "),
            };
            let at = self.collection.varies[self.axis].words(&best.values[self.axis]);
            Some(format!("{name}at most {} at {at}", rate(qps)))
        });
        let words: Vec<String> = each.collect();
        match words.is_empty() {
            true => String::new(),
            false => format!("{}.", words.join("; ")),
        }
    }

    /// The cell over UDP that is otherwise like one of `row`.
    fn over_udp(&self, cell: &Cell, row: &Row<'_>) -> Option<&Cell> {
        let transport = self.collection.dimension(TRANSPORT)?;
        let udp = Value::Text("udp".into());
        if transport == self.axis || cell.values[transport] == udp {
            return None;
        }
        let is_alike = |other: &&&Cell| {
            let pairs = other.values.iter().zip(&cell.values).enumerate();
            other.values[transport] == udp
                && pairs
                    .into_iter()
                    .all(|(at, (a, b))| at == transport || a == b)
        };
        let rows = self
            .rows
            .iter()
            .filter(|other| other.others.len() == row.others.len());
        rows.flat_map(|other| &other.cells).find(is_alike).copied()
    }

    /// The rate over a transport as a share of that over UDP.
    pub(crate) fn share(&self, cell: &Cell, row_of: usize) -> Option<f64> {
        let udp = self.over_udp(cell, self.rows.get(row_of)?)?;
        let whole = self.collection.achieved(udp)?;
        let qps = self.collection.achieved(cell)?;
        (whole > 0.0).then(|| qps / whole)
    }

    fn share_of_udp(&self) -> Option<Chart> {
        let of = |cell: &Cell, row: &Row<'_>| {
            let udp = self.collection.achieved(self.over_udp(cell, row)?)?;
            let each = self.collection.metric(cell, Metric::Qps)?;
            let share = |qps: f64| 100.0 * qps / udp;
            (udp > 0.0).then(|| OverRuns {
                value: share(each.value),
                min: share(each.min),
                max: share(each.max),
            })
        };
        let mut chart = self.chart(&Figure {
            id: "share",
            title: format!(
                "Throughput as a share of UDP's, against {}",
                self.axis_name()
            ),
            y: Axis::new("% of the rate over UDP", Scale::FromZero, Unit::Percent),
            of: &of,
            words: |share| format!("{share:.1} %"),
        });
        let last = self.last_shares().into_iter();
        let last: Vec<String> = last
            .map(|(name, at, share)| format!("{name} {} at {at}", percent(share)))
            .collect();
        chart.description = format!("{}.", last.join("; "));
        (!last.is_empty()).then_some(chart)
    }

    /// The share of each line that is not UDP's at its far end: its name, where, and the share.
    pub(crate) fn last_shares(&self) -> Vec<(String, String, f64)> {
        let each = self.rows.iter().enumerate().filter_map(|(at, row)| {
            let cell = row.cells.last()?;
            let share = self.share(cell, at)?;
            let x = self.collection.varies[self.axis].words(&cell.values[self.axis]);
            Some((row.name.clone(), x, share))
        });
        each.collect()
    }

    /// The rate of a single client.
    fn per_client(&self) -> Option<Chart> {
        if self.axis_name() != CLIENTS {
            return None;
        }
        let of = |cell: &Cell, _: &Row<'_>| self.collection.metric(cell, Metric::QpsPerClient);
        let y = Axis::new(
            "queries a second of a client (log scale)",
            Scale::Log,
            Unit::Number,
        );
        let mut chart = self.chart(&Figure {
            id: "per-client",
            title: "Queries a second of each client, against clients".into(),
            y,
            of: &of,
            words: |qps| decimal(qps, 2),
        });
        let each = self.rows.iter().filter_map(|row| {
            let last = row.cells.last()?;
            let qps = of(last, row)?.value;
            let clients = self.collection.varies[self.axis].words(&last.values[self.axis]);
            Some(format!("{} {} a client at {clients}", row.name, rate(qps)))
        });
        let words: Vec<String> = each.map(|words| words.trim_start().to_owned()).collect();
        chart.description = format!("{}.", words.join("; "));
        Some(chart)
    }

    fn latency(&self) -> Chart {
        let of = |cell: &Cell, _: &Row<'_>| self.collection.metric(cell, Metric::P99);
        let mut chart = self.chart(&Figure {
            id: "tail",
            title: format!("p99 latency against {}", self.axis_name()),
            y: Axis::new("p99 latency (log scale)", Scale::Log, Unit::Nanoseconds),
            of: &of,
            words: latency,
        });
        chart.description = "Latency from the instant at which a query was due.".into();
        chart
    }

    fn chart(&self, figure: &Figure<'_>) -> Chart {
        let mut columns = vec![Column::figures(self.axis_name())];
        let mut series = Vec::new();
        let mut figures: Vec<(f64, Vec<Option<f64>>)> = Vec::new();
        for (at, row) in self.rows.iter().enumerate() {
            let points = self.points(figure, row);
            columns.push(Column::figures(match row.name.as_str() {
                "" => figure.y.label.clone(),
                name => name.to_owned(),
            }));
            for point in &points {
                let known = figures.iter().position(|(x, _)| *x == point.x);
                let place = known.unwrap_or_else(|| {
                    figures.push((point.x, vec![None; self.rows.len()]));
                    figures.len() - 1
                });
                figures[place].1[at] = point.y;
            }
            if !points.is_empty() && series.len() < SERIES_MAX {
                series.push(Series {
                    name: row.name.clone(),
                    form: Form::Marked,
                    look: self.look(at, series.len()),
                    points,
                });
            }
        }
        figures.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sheet = Sheet::new(&format!("{}-figures", figure.id), "", columns);
        for (x, values) in figures {
            let mut cells = vec![Value::Number(x).words()];
            let words = values
                .into_iter()
                .map(|it| it.map_or_else(|| "-".into(), figure.words));
            cells.extend(words);
            sheet.rows.push(cells);
        }
        Chart {
            id: figure.id.to_owned(),
            title: figure.title.clone(),
            description: String::new(),
            x: self.x(),
            y: figure.y.clone(),
            series,
            marks: Vec::new(),
            sheet,
            notes: self.notes(),
        }
    }

    /// A line looks alike in all charts, as long as there are looks for all lines.
    fn look(&self, row: usize, shown: usize) -> usize {
        match self.rows.len() <= SERIES_MAX {
            true => row,
            false => shown,
        }
    }

    fn points(&self, figure: &Figure<'_>, row: &Row<'_>) -> Vec<Point> {
        let each = row.cells.iter().filter_map(|cell| {
            let spread = (figure.of)(cell, row)?;
            Some(Point {
                x: number(&cell.values[self.axis]),
                x_end: None,
                y: Some(spread.value),
                band: (cell.runs.len() > 1).then_some((spread.min, spread.max)),
            })
        });
        each.collect()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.collection.has_repeats() {
            notes.push("medians of the runs, with the least and the greatest".to_owned());
        }
        if self.rows.len() > SERIES_MAX {
            let more = count((self.rows.len() - SERIES_MAX) as u64);
            notes.push(format!("{more} more lines are in the table only"));
        }
        notes
    }

    fn x(&self) -> Axis {
        let cells = self.rows.iter().flat_map(|row| &row.cells);
        let mut values: Vec<f64> = cells.map(|cell| number(&cell.values[self.axis])).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (least, greatest) = (values[0], values[values.len() - 1]);
        let mut axis = match least > 0.0 && greatest >= LOG_FROM * least {
            true => {
                let label = format!("{} (log scale)", self.axis_name());
                Axis::new(label, Scale::Log, Unit::Number)
            }
            false => Axis::new(self.axis_name(), Scale::Even, Unit::Number),
        };
        if values.len() <= TICKS_GIVEN_MAX {
            axis.ticks = values;
        }
        axis
    }

    /// Sinodun's figures by client count, or those of any other sweep of several lines.
    pub(crate) fn sheet(&self) -> Option<Sheet> {
        if self.rows.len() < 2 && self.axis_name() != CLIENTS {
            return None;
        }
        let mut columns = vec![Column::figures(self.axis_name())];
        let of = |what: &str, row: &Row<'_>| match row.name.as_str() {
            "" => what.to_owned(),
            name => format!("{name}, {what}"),
        };
        let is_by_clients = self.axis_name() == CLIENTS;
        let has_share: Vec<bool> = self
            .rows
            .iter()
            .enumerate()
            .map(|(at, row)| row.cells.iter().any(|cell| self.share(cell, at).is_some()))
            .collect();
        for (row, has_share) in self.rows.iter().zip(&has_share) {
            columns.push(Column::figures(of("qps", row)));
            if *has_share {
                columns.push(Column::figures(of("of UDP", row)));
            }
            if is_by_clients {
                columns.push(Column::figures(of("qps a client", row)));
            }
        }
        let title = format!("Rates by {}", self.axis_name());
        let mut sheet = Sheet::new("by-axis", title, columns);
        for value in &self.collection.varies[self.axis].values {
            let mut line = vec![value.words()];
            for (at, row) in self.rows.iter().enumerate() {
                let cell = row
                    .cells
                    .iter()
                    .find(|cell| cell.values[self.axis] == *value);
                let or_dash = |words: Option<String>| words.unwrap_or_else(|| "-".into());
                let achieved = cell.and_then(|cell| self.collection.achieved(cell));
                line.push(or_dash(achieved.map(per_second)));
                if has_share[at] {
                    let share = cell.and_then(|cell| self.share(cell, at));
                    line.push(or_dash(share.map(percent)));
                }
                if is_by_clients {
                    let each = achieved.map(|qps| decimal(qps / number(value).max(1.0), 2));
                    line.push(or_dash(each));
                }
            }
            sheet.rows.push(line);
        }
        sheet.notes = self.notes();
        Some(sheet)
    }
}

/// What tells a line from the others.
fn row_name(collection: &Collection, axis: usize, cell: &Cell) -> String {
    collection.words(cell, Some(axis)).join(", ")
}

pub(crate) fn number(value: &Value) -> f64 {
    match value {
        Value::Number(number) => *number,
        Value::None | Value::Text(_) => f64::NAN,
    }
}

/// Bars of the achieved rate, one a cell, where nothing that varies is a number.
pub(crate) fn bars(collection: &Collection) -> Option<Chart> {
    if collection.cells.len() < 2 || collection.cells.len() > BARS_MAX {
        return None;
    }
    let cells = collection.cells.iter();
    let mut names: Vec<String> = cells.map(|it| collection.name(it)).collect();
    let mut marks = names.clone();
    if !names_fit(&names) {
        marks = (1..=names.len()).map(|number| number.to_string()).collect();
        let numbered = marks.iter().zip(&names);
        names = numbered
            .map(|(mark, name)| format!("{mark}: {name}"))
            .collect();
    }
    let mut sheet = Sheet::new(
        "throughput-figures",
        "",
        ["", "median qps", "least qps", "greatest qps"]
            .map(Column::figures)
            .into(),
    );
    let (mut points, mut shown) = (Vec::new(), Vec::new());
    for (at, cell) in collection.cells.iter().enumerate() {
        let Some(spread) = collection.metric(cell, Metric::Qps) else {
            continue;
        };
        points.push(Point {
            x: at as f64 - 0.3,
            x_end: Some(at as f64 + 0.3),
            y: Some(spread.value),
            band: (cell.runs.len() > 1).then_some((spread.min, spread.max)),
        });
        shown.push(names[at].clone());
        let words = [spread.value, spread.min, spread.max].map(per_second);
        let [median, least, greatest] = words;
        sheet
            .rows
            .push(vec![names[at].clone(), median, least, greatest]);
    }
    let each = points.iter().zip(&shown);
    let words: Vec<String> = each
        .map(|(point, name)| format!("{name} {}", rate(point.y.unwrap_or(0.0))))
        .collect();
    if points.is_empty() {
        return None;
    }
    Some(Chart {
        id: "throughput".into(),
        title: "Throughput".into(),
        description: format!("{}.", words.join("; ")),
        x: Axis::new("", Scale::Names(marks), Unit::Number),
        y: Axis::new("queries a second", Scale::FromZero, Unit::Number),
        series: vec![Series {
            name: "achieved rate".into(),
            look: 0,
            form: Form::Bars,
            points,
        }],
        marks: Vec::new(),
        sheet,
        notes: match collection.has_repeats() {
            true => vec!["medians of the runs; the lines go from least to greatest".into()],
            false => Vec::new(),
        },
    })
}

/// The latency of each cell: of several runs, the median of theirs at each share.
pub(crate) fn distributions(collection: &Collection) -> Option<Chart> {
    if collection.cells.len() > SERIES_MAX {
        return None;
    }
    let named: Vec<_> = collection
        .cells
        .iter()
        .map(|cell| (collection.name(cell), collection.latencies(cell)))
        .collect();
    let p99 = |cell: &Cell| {
        let p99 = latency(collection.metric(cell, Metric::P99)?.value);
        Some(format!("{}: 99 % within {p99}", collection.name(cell)))
    };
    let words: Vec<String> = collection.cells.iter().filter_map(p99).collect();
    let subject = distributions::Subject {
        id: "distributions".into(),
        title: "Latency distributions",
        of: "share of responses",
        y: "latency",
        description: format!("{}.", words.join("; ")),
    };
    let mut chart = distributions::chart(subject, &named)?;
    if collection.has_repeats() {
        let note = "of several runs the median of theirs at each share".to_owned();
        chart.notes.push(note);
    }
    Some(chart)
}

/// What a record says of one figure.
type FigureOf = fn(&RunRecord) -> Option<f64>;

/// CPU against rate: the generator's, and the target's where labels say it.
pub(crate) fn cpu(collection: &Collection) -> Option<Chart> {
    let named: [(&str, FigureOf); 2] = [
        ("target", server_cpu),
        ("generator, busiest worker", |it| {
            Metric::GeneratorCpu.of(it).map(|share| 100.0 * share)
        }),
    ];
    let mut series = Vec::new();
    let mut columns = vec![Column::words("file"), Column::figures("qps")];
    for (name, of) in named {
        let runs = collection.runs.iter().map(|source| &source.record);
        let points = runs.filter_map(|record| Some(Point::new(record.achieved_qps(), of(record)?)));
        let mut points: Vec<Point> = points.collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        if points.len() > 1 {
            columns.push(Column::figures(name));
            series.push((name, of, points));
        }
    }
    if series.is_empty() {
        return None;
    }
    let mut sheet = Sheet::new("cpu-figures", "", columns);
    for source in &collection.runs {
        let record = &source.record;
        let mut row = vec![source.file.clone(), per_second(record.achieved_qps())];
        let shares = series.iter().map(|(_, of, _)| of(record));
        row.extend(shares.map(|it| it.map_or_else(|| "-".into(), |it| percent(it / 100.0))));
        sheet.rows.push(row);
    }
    let series = series
        .into_iter()
        .enumerate()
        .map(|(look, (name, _, points))| Series {
            name: name.into(),
            form: Form::Dots,
            look,
            points,
        });
    Some(Chart {
        id: "cpu".into(),
        title: "CPU against rate".into(),
        description: "One point a run.".into(),
        x: Axis::new("achieved, queries a second", Scale::FromZero, Unit::Number),
        y: Axis::new("CPU, % of what it may use", Scale::FromZero, Unit::Percent),
        series: series.collect(),
        marks: Vec::new(),
        sheet,
        notes: Vec::new(),
    })
}
