//! Drawing a chart: SVG whose colours are those of the page.
//!
//! Text and lines have classes; the style sheet of the page gives them colour, and greater letters
//! on a small screen, for which the margins leave room.

use std::fmt::Write;

use super::scale::Range;
use super::{Chart, Form, SERIES_MAX, Scale, Series};
use crate::html::{STYLE, escape};

/// Width of a drawing in its own unit.
const WIDTH: f64 = 560.0;
/// Height of a drawing.
const HEIGHT: f64 = 290.0;

const LEFT: f64 = 70.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 50.0;

/// Height of a line of the legend, where the drawing has it.
const LEGEND_ROW: f64 = 18.0;

/// Width of a letter of the axes on a small screen.
const LETTER: f64 = 9.5;

/// Ticks of an axis that still read well on a small screen.
const TICKS_MAX: usize = 6;

/// Colours of the style sheet. Looks beyond them have the same ones, other dashes, and markers
/// that are not filled.
const COLORS: usize = 6;

/// Dashes of the looks; the first is solid.
const DASHES: [&str; SERIES_MAX] = [
    "",
    "7 4",
    "2 3",
    "10 3 2 3",
    "14 4",
    "4 2",
    "1 5",
    "20 3",
    "7 2 2 2 2 2",
    "",
    "3 7",
    "12 7",
];

/// The frame of a chart with its ranges.
struct Frame<'a> {
    x: Range<'a>,
    y: Range<'a>,
}

impl<'a> Frame<'a> {
    fn of(chart: &'a Chart) -> Self {
        let points = || chart.series.iter().flat_map(|series| &series.points);
        let xs = points().flat_map(|point| [Some(point.x), point.x_end]);
        let ends = chart.x.ends.map(|(low, high)| [Some(low), Some(high)]);
        let xs = xs.chain(ends.into_iter().flatten());
        let ys = points().flat_map(|point| {
            let (low, high) = point.band.unzip();
            [point.y, low, high]
        });
        Frame {
            x: Range::of(&chart.x.scale, chart.x.unit, xs.flatten(), false),
            y: Range::of(&chart.y.scale, chart.y.unit, ys.flatten(), true),
        }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(value) * (HEIGHT - TOP - BOTTOM)
    }
}

/// The chart as an SVG element.
pub(crate) fn draw(chart: &Chart) -> String {
    let mut svg = String::new();
    let id = escape(&chart.id);
    let _ = write!(
        svg,
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-labelledby=\"{id}-t {id}-d\">\n<title id=\"{id}-t\">{}</title>\n\
         <desc id=\"{id}-d\">{}</desc>\n",
        escape(&chart.title),
        escape(&chart.description)
    );
    content(&mut svg, chart);
    svg.push_str("</svg>\n");
    svg
}

/// The chart as a file of its own, with its legend and the colours of a light page.
pub(crate) fn file(chart: &Chart) -> String {
    let height = HEIGHT + LEGEND_ROW * chart.series.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\">\n\
         <title>{}</title>\n<style>\n{}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        escape(&chart.title),
        style()
    );
    content(&mut svg, chart);
    for (row, series) in chart.series.iter().enumerate() {
        let y = HEIGHT + LEGEND_ROW * row as f64;
        let sample = sample_content(series.form, series.look);
        let _ = writeln!(
            svg,
            "<g transform=\"translate({LEFT} {y})\">{sample}<text x=\"38\" y=\"10\">{}</text></g>",
            escape(&series.name)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The rules of the page's style sheet for drawings; its variables have the values of a light
/// page, for programs that know none.
fn style() -> String {
    let rules = STYLE.split_once("svg text {").map(|(_, rest)| rest);
    let rules = rules.and_then(|rest| rest.split_once(".sheets {"));
    let mut rules = format!("svg text {{{}", rules.map_or("", |(rules, _)| rules));
    let root = STYLE.split('}').next().unwrap_or_default();
    for line in root.lines() {
        if let Some((name, value)) = line.trim().split_once(": ") {
            rules = rules.replace(&format!("var({name})"), value.trim_end_matches(';'));
        }
    }
    rules
}

fn content(svg: &mut String, chart: &Chart) {
    let frame = Frame::of(chart);
    axes(svg, chart, &frame);
    for mark in &chart.marks {
        let x = number(frame.x(mark.x));
        let _ = writeln!(
            svg,
            "<line class=\"mark\" x1=\"{x}\" y1=\"{TOP}\" x2=\"{x}\" y2=\"{}\"/>\
             <text class=\"tick\" x=\"{x}\" y=\"{}\" dx=\"-4\" text-anchor=\"end\">{}</text>",
            HEIGHT - BOTTOM,
            TOP + 12.0,
            escape(&mark.name)
        );
    }
    for series in &chart.series {
        if matches!(series.form, Form::Line | Form::Marked) {
            band(svg, series, &frame);
        }
    }
    for series in &chart.series {
        match series.form {
            Form::Bars => bars(svg, series, &frame),
            Form::Line | Form::Marked | Form::Guide => line(svg, series, &frame),
            Form::Dots => {}
        }
        if matches!(series.form, Form::Marked | Form::Dots) {
            markers(svg, series, &frame);
        }
    }
}

/// A short piece of what a series looks like, for the legend.
pub(crate) fn sample(form: Form, look: usize) -> String {
    let drawn = sample_content(form, look);
    format!("<svg class=\"sample\" viewBox=\"0 0 30 12\" aria-hidden=\"true\">{drawn}</svg>")
}

fn sample_content(form: Form, look: usize) -> String {
    let look = look % SERIES_MAX;
    let color = look % COLORS;
    match form {
        Form::Bars => {
            format!("<rect class=\"b{color}\" x=\"6\" y=\"1\" width=\"18\" height=\"10\"/>")
        }
        Form::Dots => marker(look, 15.0, 6.0),
        Form::Guide => "<path class=\"guide\" d=\"M1 6H29\"/>".to_owned(),
        Form::Line | Form::Marked => {
            let marker = match form {
                Form::Marked => marker(look, 15.0, 6.0),
                _ => String::new(),
            };
            format!(
                "<path class=\"s{color}\"{} d=\"M1 6H29\"/>{marker}",
                dash(look)
            )
        }
    }
}

fn axes(svg: &mut String, chart: &Chart, frame: &Frame<'_>) {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    for (value, words) in frame.y.ticks(TICKS_MAX) {
        let y = number(frame.y(value));
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y}\" x2=\"{right}\" y2=\"{y}\"/>\
             <text class=\"tick\" x=\"{}\" y=\"{y}\" dy=\".33em\" text-anchor=\"end\">{}</text>",
            LEFT - 7.0,
            escape(&words)
        );
    }
    for (x, words) in x_ticks(chart, frame) {
        let x = number(x);
        let _ = writeln!(
            svg,
            "<line class=\"axis\" x1=\"{x}\" y1=\"{bottom}\" x2=\"{x}\" y2=\"{}\"/>\
             <text class=\"tick\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            bottom + 4.0,
            bottom + 19.0,
            escape(&words)
        );
    }
    let _ = writeln!(
        svg,
        "<line class=\"axis\" x1=\"{LEFT}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{bottom}\"/>\n\
         <text class=\"label\" x=\"4\" y=\"14\">{}</text>\n\
         <text class=\"label\" x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        escape(&chart.y.label),
        HEIGHT - 8.0,
        escape(&chart.x.label)
    );
}

/// The places of the ticks that have room for their words, also in the letters of a small screen.
fn x_ticks(chart: &Chart, frame: &Frame<'_>) -> Vec<(f64, String)> {
    let ticks = match chart.x.ticks.as_slice() {
        [] => frame.x.ticks(TICKS_MAX),
        given => frame.x.ticks_at(given),
    };
    let placed = ticks
        .into_iter()
        .map(|(value, words)| (frame.x(value), words));
    let placed: Vec<(f64, String)> = placed.collect();
    if matches!(chart.x.scale, Scale::Names(_)) {
        return placed;
    }
    let half = |words: &str| words.chars().count() as f64 * LETTER / 2.0;
    let has_room = |(left, left_words): &(f64, String), (right, right_words): &(f64, String)| {
        right - left >= half(left_words) + half(right_words) + LETTER
    };
    // The last one says how far the axis goes, and stays.
    let Some(last) = placed.last().cloned() else {
        return placed;
    };
    let mut kept: Vec<(f64, String)> = Vec::new();
    for tick in &placed[..placed.len() - 1] {
        if kept.last().is_none_or(|before| has_room(before, tick)) && has_room(tick, &last) {
            kept.push(tick.clone());
        }
    }
    kept.push(last);
    kept
}

/// True if names that stand side by side under a chart do not run into each other.
pub(crate) fn names_fit(names: &[String]) -> bool {
    let room = (WIDTH - LEFT - RIGHT) / names.len() as f64;
    let half = |name: &String| name.chars().count() as f64 * LETTER / 2.0;
    let mut pairs = names.windows(2);
    pairs.all(|pair| half(&pair[0]) + half(&pair[1]) + LETTER <= room)
}

fn dash(look: usize) -> String {
    match DASHES[look % SERIES_MAX] {
        "" => String::new(),
        dashes => format!(" stroke-dasharray=\"{dashes}\""),
    }
}

fn line(svg: &mut String, series: &Series, frame: &Frame<'_>) {
    let look = series.look % SERIES_MAX;
    let mut path = String::new();
    let mut is_down = false;
    for point in &series.points {
        let Some((x, y)) = point.visible() else {
            is_down = false;
            continue;
        };
        let verb = if is_down { 'L' } else { 'M' };
        let _ = write!(path, "{verb}{} {}", number(frame.x(x)), number(frame.y(y)));
        is_down = true;
    }
    let class = match series.form {
        Form::Guide => "guide".to_owned(),
        _ => format!("s{}", look % COLORS),
    };
    let dashes = match series.form {
        Form::Guide => String::new(),
        _ => dash(look),
    };
    let _ = writeln!(svg, "<path class=\"{class}\"{dashes} d=\"{path}\"/>");
}

fn markers(svg: &mut String, series: &Series, frame: &Frame<'_>) {
    for point in &series.points {
        if let Some((x, y)) = point.visible() {
            let look = series.look % SERIES_MAX;
            svg.push_str(&marker(look, frame.x(x), frame.y(y)));
        }
    }
    svg.push('\n');
}

/// The least to the greatest of each point: a band along a line, whiskers at markers.
fn band(svg: &mut String, series: &Series, frame: &Frame<'_>) {
    let look = series.look % COLORS;
    let banded = series
        .points
        .iter()
        .filter_map(|point| Some((point, point.band?)));
    if series.form == Form::Marked {
        for (point, (low, high)) in banded {
            whisker(svg, look, frame.x(point.x), (frame.y(low), frame.y(high)));
        }
        return;
    }
    let ends: Vec<(f64, f64, f64)> = banded
        .map(|(point, (low, high))| (frame.x(point.x), frame.y(low), frame.y(high)))
        .collect();
    if ends.len() < 2 {
        return;
    }
    let mut path = String::new();
    for (index, (x, _, high)) in ends.iter().enumerate() {
        let verb = if index == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{verb}{} {}", number(*x), number(*high));
    }
    for (x, low, _) in ends.iter().rev() {
        let _ = write!(path, "L{} {}", number(*x), number(*low));
    }
    let _ = writeln!(svg, "<path class=\"b{look} band\" d=\"{path}Z\"/>");
}

fn whisker(svg: &mut String, look: usize, x: f64, (low, high): (f64, f64)) {
    let (x, low, high) = (number(x), number(low), number(high));
    if low != high {
        let _ = writeln!(
            svg,
            "<path class=\"s{look} whisker\" d=\"M{x} {low}V{high}m-4 0h8M{x} {low}m-4 0h8\"/>"
        );
    }
}

fn bars(svg: &mut String, series: &Series, frame: &Frame<'_>) {
    let look = series.look % COLORS;
    let floor = HEIGHT - BOTTOM;
    for point in &series.points {
        let Some((x, value)) = point.visible() else {
            continue;
        };
        let (from, to) = (frame.x(x), frame.x(point.x_end.unwrap_or(x)));
        let top = frame.y(value);
        let _ = writeln!(
            svg,
            "<rect class=\"b{look}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
            number(from),
            number(top),
            number((to - from).max(1.0)),
            number(floor - top)
        );
        if let Some((low, high)) = point.band {
            let ends = (frame.y(low), frame.y(high));
            let (x, low, high) = (number((from + to) / 2.0), number(ends.0), number(ends.1));
            if low != high {
                let _ = writeln!(
                    svg,
                    "<path class=\"range\" d=\"M{x} {low}V{high}m-4 0h8M{x} {low}m-4 0h8\"/>"
                );
            }
        }
    }
}

/// The marker of a look.
fn marker(look: usize, x: f64, y: f64) -> String {
    let at = |dx: f64, dy: f64| format!("{} {}", number(x + dx), number(y + dy));
    let color = look % COLORS;
    let class = match look < COLORS {
        true => format!("m{color}"),
        false => format!("s{color} whisker"),
    };
    let path = match color {
        0 => {
            let (x, y) = (number(x), number(y));
            return format!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"3.5\"/>");
        }
        1 => format!("M{}h6.4v6.4h-6.4Z", at(-3.2, -3.2)),
        2 => format!("M{}l4.2 7.2h-8.4Z", at(0.0, -4.4)),
        3 => format!("M{}l4.4 4.4l-4.4 4.4l-4.4 -4.4Z", at(0.0, -4.4)),
        4 => format!("M{}l4.2 -7.2h-8.4Z", at(0.0, 4.4)),
        _ => format!("M{}h8v2.6h-8Z", at(-4.0, -1.3)),
    };
    format!("<path class=\"{class}\" d=\"{path}\"/>")
}

/// A coordinate: a tenth of a unit is finer than any screen.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}
