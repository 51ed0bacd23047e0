//! What was watched as parts of a page: each has an element that it fills.

use std::fmt::Write;
use std::time::Duration;

use lab::live::{Judged, Phase, Place, RunFigures, ShownAgent};
use measure::notation::{count, counted, figure, latency, rate, seconds, share};
use measure::{Histogram, Interval};
use report::html::{escape, sentence};
use report::live::{self, RunPoint};

use crate::watched::Watched;

mod matrix;
#[cfg(test)]
mod tests;

/// Most agents that are listed: the first.
const AGENTS_MAX: usize = 100;
/// Most series of observed servers that are listed, of all sources together.
const SERIES_MAX: usize = 200;

/// Content of the element with this ID; empty if there is none, and the element is hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Of the element.
    pub id: &'static str,
    /// Its content.
    pub html: String,
}

/// All of them, in the order of the page.
pub fn fragments(watched: &Watched) -> Vec<Fragment> {
    let [rates, times] = live::charts(
        "",
        (&watched.bins.points(), &watched.bins.rows()),
        watched.bins.intervals_of_point(),
    );
    let all = [
        ("announcement", announcement(watched)),
        ("progress", progress(watched)),
        ("verdict", verdict(watched)),
        ("tiles", tiles(watched)),
        ("rates-legend", rates.legend),
        ("rates-drawing", rates.drawing),
        ("rates-table", rates.table),
        ("latency-legend", times.legend),
        ("latency-drawing", times.drawing),
        ("latency-table", times.table),
        ("each", each_run(watched)),
        ("matrix", matrix::matrix(&watched.runs)),
        ("groups", groups(watched)),
        ("agents", agents(watched)),
        ("observed", observed(watched)),
        ("runs", runs(watched)),
        ("earlier-note", watched.earlier_note()),
        ("counts", counts(watched)),
    ];
    let all = all.into_iter();
    all.map(|(id, html)| Fragment { id, html }).collect()
}

/// What a screen reader says: it changes with the phase and the limit, not with each interval.
fn announcement(watched: &Watched) -> String {
    let name = match watched.runs.place.name.as_str() {
        "" => String::new(),
        name => format!("{name}: "),
    };
    let limit = match judged(watched) {
        Some(judged) => format!("; {}", judged.verdict.limit.headline()),
        None => String::new(),
    };
    let phase = phase(watched.phase());
    escape(&format!("{}{limit}", sentence(&format!("{name}{phase}"))))
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Before => "preparing",
        Phase::Load => "load",
        Phase::Drain => "waiting for the last responses",
        Phase::Ended => "ended",
    }
}

fn progress(watched: &Watched) -> String {
    let mut html = String::new();
    let place = &watched.runs.place;
    let run = match place.of {
        Some(1) | None if place.run <= 1 => None,
        Some(of) => Some(format!("{} of {of}", place.run)),
        None => Some(place.run.to_string()),
    };
    let left = watched.newest().and_then(|it| it.shown.left);
    let facts = [
        ("command", Some(format!("throng {}", watched.command))),
        ("run", run),
        ("name", Some(place.name.clone()).filter(|it| !it.is_empty())),
        ("phase", Some(phase(watched.phase()).to_owned())),
        ("time left", left.map(time_left)),
    ];
    html.push_str("<dl class=\"state\">");
    for (name, value) in facts {
        if let Some(value) = value {
            let value = escape(&value);
            let _ = write!(html, "<div><dt>{name}</dt><dd>{value}</dd></div>");
        }
    }
    html.push_str("</dl>\n");
    let runs = &watched.runs;
    let all = runs.share_of_all().filter(|_| runs.are_several());
    for (what, share) in [("all runs", all), ("this run", runs.share())] {
        if let Some(share) = share {
            let done = 100.0 * share;
            let _ = writeln!(
                html,
                "<p class=\"share\"><span>{what}</span>\
                 <progress max=\"100\" value=\"{done:.1}\" aria-label=\"share of {what} that is \
                 done\"></progress><span>{done:.0} %</span></p>"
            );
        }
    }
    html
}

fn time_left(left: Duration) -> String {
    let all = left.as_secs_f64().round() as u64;
    let (hours, minutes, rest) = (all / 3_600, all / 60 % 60, all % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest} s"),
        (0, _) => format!("{minutes} min {rest} s"),
        _ => format!("{hours} h {minutes} min"),
    }
}

fn judged(watched: &Watched) -> Option<&Judged> {
    watched.newest()?.shown.judged.as_deref()
}

fn verdict(watched: &Watched) -> String {
    let Some(judged) = judged(watched) else {
        let remark = watched.interval.as_ref().zip(watched.total());
        let remark = remark.and_then(|(it, total)| report::text::so_far(&total.counts, it, None));
        let remark = remark.map(|it| format!(" {}.", sentence(&it)));
        return format!(
            "<div class=\"verdict\"><p><strong>No verdict yet.</strong>{}</p></div>\n",
            escape(&remark.unwrap_or_default())
        );
    };
    let verdict = &judged.verdict;
    let until = seconds(judged.until_ns);
    let state = match judged.is_provisional {
        true => format!("Provisional: of the first {until}, and may change"),
        false => "Of the whole run".to_owned(),
    };
    let name = escape(verdict.limit.name());
    let mut html = format!(
        "<div class=\"verdict {name}\">\n<p><strong>{}.</strong> {}.</p>\n",
        escape(&sentence(verdict.limit.headline())),
        escape(&sentence(verdict.limit.meaning())),
    );
    if let Some(evidence) = verdict.evidence.first() {
        let _ = writeln!(html, "<p>{}.</p>", escape(&sentence(evidence)));
    }
    let _ = writeln!(html, "<p class=\"note\">{}.</p>\n</div>", escape(&state));
    html
}

fn percentile(histogram: &Histogram, p: f64) -> String {
    let value = histogram.percentile(p);
    value.map_or_else(|| "-".to_owned(), |ns| latency(ns as f64))
}

fn tiles(watched: &Watched) -> String {
    let (Some(newest), Some(total)) = (&watched.interval, watched.total()) else {
        return "<p class=\"note\">No interval has ended yet.</p>\n".to_owned();
    };
    let rates = |name, of: fn(&Interval) -> u64| {
        let whole = total.per_second(of(total));
        let note = format!("{} in the whole run", rate(whole));
        (name, rate(newest.per_second(of(newest))), note)
    };
    let times = |name, p| {
        let of = |it: &Interval| percentile(&it.distributions.latency, p);
        let note = format!("{} in the whole run", of(total));
        (name, of(newest), note)
    };
    let lost = total.counts.lost();
    let of_all = share(lost, total.counts.offered);
    let tiles = [
        rates("answered", |it| it.counts.responses),
        rates("sent", |it| it.counts.sent),
        (
            "lost",
            rate(newest.per_second(newest.counts.lost())),
            format!("{} in the whole run, {of_all}", count(lost)),
        ),
        times("latency p50", 0.5),
        times("latency p99", 0.99),
    ];
    let mut html = String::from("<dl class=\"tiles\">\n");
    for (label, value, note) in tiles {
        let (number, unit) = value.split_once(' ').unwrap_or((&value, ""));
        let _ = writeln!(
            html,
            "<div><dt>{label}</dt><dd>{}<span class=\"unit\"> {}</span></dd>\
             <dd class=\"note\">{}</dd></div>",
            escape(number),
            escape(unit),
            escape(&note)
        );
    }
    html.push_str("</dl>\n");
    html
}

/// A table whose first column names its rows.
fn table(caption: &str, columns: &[&str], rows: &[Vec<String>]) -> String {
    let mut html = format!("<table>\n<caption>{caption}</caption>\n<thead><tr>");
    for (at, column) in columns.iter().enumerate() {
        let class = if at == 0 { "" } else { " class=\"n\"" };
        let _ = write!(html, "<th scope=\"col\"{class}>{column}</th>");
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let cell = escape(cell);
            let _ = match at {
                0 => write!(html, "<th scope=\"row\" class=\"k\">{cell}</th>"),
                _ => write!(html, "<td class=\"n\">{cell}</td>"),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>\n");
    html
}

fn groups(watched: &Watched) -> String {
    let sums = &watched.runs.sums;
    if sums.groups.is_empty() {
        return String::new();
    }
    let shown = watched.newest().map(|it| it.shown.groups.as_slice());
    let shown = shown.unwrap_or_default();
    let rows = sums.groups.iter().map(|(name, total)| {
        let newest = shown.iter().find(|group| group.name == *name);
        let newest = newest.map(|it| &it.interval);
        let now = |of: fn(&Interval) -> u64| {
            newest.map_or_else(|| "-".to_owned(), |it| rate(it.per_second(of(it))))
        };
        let lost = total.counts.lost();
        vec![
            name.clone(),
            now(|it| it.counts.responses),
            now(|it| it.counts.sent),
            percentile(&total.distributions.latency, 0.5),
            percentile(&total.distributions.latency, 0.99),
            count(lost),
            share(lost, total.counts.offered),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let columns = ["group", "answered", "sent", "p50", "p99", "lost", "share"];
    let mut html = table("Groups of clients", &columns, &rows);
    if sums.group_intervals_dropped > 0 {
        html.push_str("<p class=\"note\">There are more groups than are listed.</p>\n");
    }
    html
}

fn agents(watched: &Watched) -> String {
    let agents = watched.newest().map(|it| it.shown.agents.as_slice());
    let agents = agents.unwrap_or_default();
    if agents.is_empty() {
        return String::new();
    }
    let rows = agents.iter().take(AGENTS_MAX).enumerate();
    let rows = rows.map(|(number, agent)| {
        let host = agent.host.as_deref().unwrap_or("this host");
        let name = format!("{number} on {host}");
        vec![name, state_of(agent).to_owned()]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let lost = agents.iter().filter(|it| it.is_lost).count();
    let at_work = agents.iter().filter(|it| it.is_at_work).count();
    let all = counted(agents.len() as u64, "agent");
    let caption = format!("{all}: {at_work} at work, {lost} lost");
    let mut html = table(&caption, &["agent", "state"], &rows);
    if agents.len() > AGENTS_MAX {
        let more = agents.len() - AGENTS_MAX;
        let _ = writeln!(html, "<p class=\"note\">{more} more are not listed.</p>");
    }
    html
}

fn state_of(agent: &ShownAgent) -> &'static str {
    match (agent.is_lost, agent.is_at_work) {
        (true, _) => "lost",
        (false, true) => "at work",
        (false, false) => "finished",
    }
}

/// What is observed beside the run: a table for each source.
fn observed(watched: &Watched) -> String {
    let (mut html, mut left_out) = (String::new(), 0);
    let mut room = SERIES_MAX;
    for scrape in watched.runs.sums.scrapes.sources() {
        let newest = &scrape.newest;
        let state = match newest.has_failed {
            true => ": the newest scrape failed",
            false => "",
        };
        let rows = scrape.series().map(|series| {
            let or_none = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figure);
            vec![
                series.name.to_owned(),
                or_none(series.value),
                or_none(series.per_second),
                series.unit.to_owned(),
            ]
        });
        let mut rows: Vec<Vec<String>> = rows.collect();
        left_out += rows.len().saturating_sub(room);
        rows.truncate(room);
        room -= rows.len();
        let caption = escape(&format!("{} {}{state}", newest.profile, newest.source));
        let columns = ["series", "value", "a second", "unit"];
        html.push_str(&table(&caption, &columns, &rows));
    }
    if left_out > 0 {
        let _ = writeln!(
            html,
            "<p class=\"note\">{left_out} more are not listed.</p>"
        );
    }
    html
}

/// The rate of each run that has measured anything, for a command that makes several.
fn each_run(watched: &Watched) -> String {
    let point = |number: u64, figures: RunFigures| RunPoint {
        number,
        sent_qps: figures.sent_qps,
        responses_qps: figures.responses_qps,
    };
    let runs = &watched.runs;
    // In the order in which they were made: repetitions are numbered anew.
    let figures = runs.finished.iter().map(|it| it.figures);
    let all = (runs.unlisted + 1..).zip(figures.chain([runs.figures()]));
    let measured = all.filter(|(_, figures)| figures.offered > 0);
    let points: Vec<RunPoint> = measured.map(|(number, it)| point(number, it)).collect();
    live::runs(&points)
}

/// The runs of a command that makes several, the newest first.
fn runs(watched: &Watched) -> String {
    let shown = &watched.runs;
    if shown.finished.is_empty() && shown.place.of == Some(1) {
        return String::new();
    }
    let row = |place: &Place, figures: RunFigures, state: &str| {
        let measured = |text: String| match figures.offered {
            0 => "-".to_owned(),
            _ => text,
        };
        let p99 = figures.p99_ns.map(|ns| latency(ns as f64));
        vec![
            place.title(),
            state.to_owned(),
            measured(rate(figures.sent_qps)),
            measured(rate(figures.responses_qps)),
            p99.unwrap_or_else(|| "-".to_owned()),
            measured(share(figures.lost, figures.offered)),
            figures.limit.unwrap_or("-").to_owned(),
        ]
    };
    let mut rows = Vec::new();
    if watched.newest().is_some() {
        let (place, state) = (&shown.place, phase(watched.phase()));
        rows.push(row(place, shown.figures(), state));
    }
    let finished = shown.finished.iter().rev();
    rows.extend(finished.map(|it| row(&it.place, it.figures, "ended")));
    if rows.is_empty() {
        return String::new();
    }
    let columns = ["run", "state", "sent", "answered", "p99", "lost", "limit"];
    let mut html = table("Runs of this command", &columns, &rows);
    if shown.unlisted > 0 {
        let more = counted(shown.unlisted, "earlier run");
        let _ = writeln!(html, "<p class=\"note\">{more} not listed.</p>");
    }
    html
}

fn counts(watched: &Watched) -> String {
    let mut text = counted(watched.read, "snapshot");
    if watched.missed > 0 {
        let _ = write!(text, ", {} missed by this server", count(watched.missed));
    }
    format!("<p>{text}</p>\n")
}
