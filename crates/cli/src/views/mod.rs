//! What shows a command while it goes on, and the records of a folder: with the crates `exporter`,
//! `tui` and `web`. A build without the feature `views` has `absent` in its place.

mod grafana;
mod metrics;
mod serve;
mod tui;
mod web;

use ::web::Server;
use exporter::{Annotator, Exporter};
use lab::live::Live;

use crate::args::Views as Asked;
use crate::failure::Failure;

pub(crate) use ::tui::{ENTER, LEAVE};
pub(crate) use metrics::serve_responder;
pub(crate) use serve::execute as serve;

/// What has to be there until it is dropped.
type Others = (Option<tui::Viewing>, Option<Annotator>, Option<Exporter>);

/// What is shown until this is dropped; the page ends first.
pub(crate) struct Views {
    page: Option<Server>,
    others: Others,
}

impl Views {
    /// Shows what `command` publishes from now on, as asked, and prints where.
    ///
    /// # Errors
    /// An address is not free, or a URL is none.
    pub(crate) fn begin(live: &Live, asked: &Asked, command: &str) -> Result<Views, Failure> {
        let exporter = metrics::serve(live, asked.metrics, command)?;
        let annotating = grafana::begin(live, asked.grafana.as_deref(), command)?;
        let viewing = tui::begin(live, asked.tui, command);
        Ok(Views {
            page: web::begin(live, asked.web, command)?,
            others: (viewing, annotating, exporter),
        })
    }

    /// True if a page is served, which can show a report at the end.
    pub(crate) fn has_page(&self) -> bool {
        self.page.is_some()
    }

    /// Nothing more is published: ends all but the page.
    pub(crate) fn keep_page(&mut self) {
        self.others = (None, None, None);
    }

    /// The command is over: shows the report in place of the page, if there is a page and a report.
    pub(crate) fn finish(self, report: impl FnOnce() -> Option<String>) {
        if let Some(page) = self.page
            && let Some(report) = report()
        {
            page.finish(&report);
        }
    }
}
