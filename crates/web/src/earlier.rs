//! Runs of a command that are over, with their charts, for those who open the page later.
//!
//! They are drawn once, when the run is over, and no event has them: the page fetches them when one
//! is added.

use std::fmt::Write;
use std::sync::Arc;

use lab::live::Runs;
use measure::notation::{counted, latency, rate, share};
use report::html::escape;
use report::live::{self, LiveChart};

use crate::bins::Bins;
use crate::watched::Watched;

/// Most runs that have charts: the newest.
pub(crate) const EARLIER_MAX: usize = 12;

/// A run that is over.
#[derive(Clone, Debug)]
pub(crate) struct EarlierRun(Arc<str>);

impl EarlierRun {
    /// The run that `runs` has as the newest; `number` is its own on the page.
    pub(crate) fn draw(number: u64, runs: &Runs, bins: &Bins) -> EarlierRun {
        let (place, figures) = (&runs.place, runs.figures());
        let title = escape(&format!("Run {}", place.title()));
        let p99 = figures.p99_ns.map(|ns| latency(ns as f64));
        let words = format!(
            "{} answered, p99 {}, lost {}, limit: {}.",
            rate(figures.responses_qps),
            p99.unwrap_or_else(|| "-".to_owned()),
            share(figures.lost, figures.offered),
            figures.limit.unwrap_or("not judged")
        );
        let mut html = format!(
            "<section class=\"run\" id=\"run-{number}\">\n<h3>{title}</h3>\n\
             <p class=\"note\">{}</p>\n<div class=\"charts\">\n",
            escape(&words)
        );
        let (points, rows) = (bins.points(), bins.rows());
        let prefix = format!("run-{number}-");
        let charts = live::charts(&prefix, (&points, &rows), bins.intervals_of_point());
        for LiveChart {
            title: chart,
            legend,
            drawing,
            table,
        } in charts
        {
            let _ = writeln!(
                html,
                "<figure>\n<figcaption><h4>{chart}</h4></figcaption>\n{legend}{drawing}\
                 <details class=\"figures\"><summary>Figures as a table</summary>\n\
                 <div class=\"scroll\" role=\"region\" tabindex=\"0\" \
                 aria-label=\"{title}, {chart}, as a table ({number})\">{table}</div>\n\
                 </details>\n</figure>"
            );
        }
        html.push_str("</div>\n</section>");
        EarlierRun(html.into())
    }
}

impl Watched {
    /// The runs that are over, the newest first; empty without one.
    pub(crate) fn earlier(&self) -> String {
        let newest = self.earlier.iter().rev();
        newest.map(|run| &*run.0).collect()
    }

    /// How many there were; another text for each further one.
    pub(crate) fn earlier_note(&self) -> String {
        let ended = counted(self.earlier_count, "run");
        match self.earlier_count {
            0 => String::new(),
            count if count > EARLIER_MAX as u64 => {
                format!("{ended} ended; these are the newest {EARLIER_MAX}.")
            }
            _ => format!("{ended} ended."),
        }
    }
}
