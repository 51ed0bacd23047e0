//! `--web`: what a command shows while it goes on, as a page for browsers, and its report at the
//! end.

use std::net::SocketAddr;
use std::path::Path;

use ::web::Server;
use lab::live::Live;
use report::{Answer, Collection, Source};

use crate::experiment;
use crate::failure::Failure;
use crate::reports;

/// Serves what is published from now on until the command ends, and prints where; nothing without
/// an address.
pub(crate) fn begin(
    live: &Live,
    address: Option<SocketAddr>,
    command: &str,
) -> Result<Option<Server>, Failure> {
    let Some(address) = address else {
        return Ok(None);
    };
    let server = Server::start(live, address, command)
        .map_err(|error| Failure::usage(format!("--web: {error}"), error.cure()))?;
    // A port that the system chose, and a token, are known nowhere else: with --quiet, too.
    tell!("live page at {}", server.url());
    Ok(Some(server))
}

/// Shows the report in place of the page, if there is a page and a report.
pub(crate) fn finish(page: Option<Server>, report: impl FnOnce() -> Option<String>) {
    if let Some(page) = page
        && let Some(report) = report()
    {
        page.finish(&report);
    }
}

/// The report on these runs; none without runs.
pub(crate) fn report_of_runs(made: Vec<Source>) -> Option<String> {
    Some(page_of(&Collection::new(made)?))
}

fn page_of(collection: &Collection) -> String {
    report::html::render(&report::several::document(collection))
}

/// The report on the runs in a folder; none if it has none, which the command has said.
pub(crate) fn report_of_folder(folder: &Path) -> Option<String> {
    let sources = reports::sources(&[folder.to_owned()]).ok()?;
    let collection = Collection::new(sources)?.of_experiment(experiment::name_of(folder));
    Some(page_of(&collection))
}

/// The report on what a command has found.
pub(crate) fn report_of(answer: Answer) -> Option<String> {
    Some(report::html::render(&answer.document("its runs")))
}
