//! `throng serve`: the records of a folder as pages for browsers, until a signal comes.

use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::thread;

use ::history::{HistoryError, Update};
use ::web::{Archive, ArchiveServer};
use measure::notation::counted;

use crate::args::ServeArguments;
use crate::failure::Failure;
use crate::run::progress::Reading;
use crate::{history, signals};

/// What is waited for.
enum Event {
    Indexed(Result<Update, HistoryError>),
    Signal,
}

/// Serves until a signal comes.
pub(crate) fn execute(arguments: &ServeArguments) -> Result<ExitCode, Failure> {
    let signals = signals::receiver()?;
    let archive = Archive::open(&arguments.folder)?;
    let server = ArchiveServer::start(&archive, arguments.web)
        .map_err(|error| Failure::usage(format!("--web: {error}"), error.cure()))?;
    // A port that the system chose, and a token, are known nowhere else.
    let folder = arguments.folder.display();
    tell!("records of {folder} at {}; Ctrl-C ends it", server.url());
    let (sender, events) = channel();
    let ends = sender.clone();
    thread::spawn(move || {
        let _ = signals.recv();
        // The receiver goes away when the command ends by itself.
        let _ = ends.send(Event::Signal);
    });
    // It may take long, and a signal does not wait for it: what it has not committed is read the
    // next time.
    thread::spawn(move || {
        let mut reading = Reading::new();
        let update = archive.update(|read, all| reading.show(read, all));
        reading.end();
        let _ = sender.send(Event::Indexed(update));
    });
    while let Ok(Event::Indexed(update)) = events.recv() {
        let update = update?;
        history::warn_of_unreadable(&update);
        tell!("{} in {folder}", counted(update.runs, "run record"));
    }
    Ok(ExitCode::SUCCESS)
}
