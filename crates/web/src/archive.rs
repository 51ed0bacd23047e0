//! `throng serve`: the records of a folder as pages for browsers, read only.
//!
//! What a request asks for is a `question`, which names runs by their numbers in the index and
//! never by a path. `store` looks it up, `pages` has what is around it. Pages have no script.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::response::Response;
use exporter::serving::Peer;
use history::{HistoryError, Update};
use lab::live::ListenError;

use crate::answering::{HTML, PageServer, asked, refuse, respond};
use crate::request::Access;

mod pages;
mod question;
mod store;
#[cfg(test)]
mod tests;

use pages::{Links, content_security_policy};
use question::Question;
use store::Store;

/// What it is called where it cannot be served.
const ARCHIVE: &str = "the records";

/// The records of a folder.
#[derive(Clone)]
pub struct Archive(Arc<Store>);

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Archive").field(&self.0.folder()).finish()
    }
}

impl Archive {
    /// Opens the index of a folder, as it is.
    ///
    /// # Errors
    /// There is no such folder, or the index cannot be made.
    pub fn open(folder: &Path) -> Result<Archive, HistoryError> {
        Store::open(folder).map(|store| Archive(Arc::new(store)))
    }

    /// Brings the index up to date. It is brought up to date for requests too: this is for what
    /// takes long, the first time. `show` gets the number of new records that were read, and of
    /// all of them.
    ///
    /// # Errors
    /// The folder cannot be read, or the index cannot be written.
    pub fn update(&self, show: impl FnMut(u64, u64)) -> Result<Update, HistoryError> {
        self.0.update(show)
    }
}

/// Shows the records of a folder until it is dropped.
#[derive(Debug)]
pub struct ArchiveServer(PageServer);

impl ArchiveServer {
    /// Shows the records at `address`.
    ///
    /// # Errors
    /// The address cannot be listened on, or the system gives no thread or token.
    pub fn start(archive: &Archive, address: SocketAddr) -> Result<ArchiveServer, ListenError> {
        let pages = PageServer::start(ARCHIVE, address, |access| {
            let links = match access {
                Access::Loopback => Links::default(),
                Access::Token(token) => Links::with_token(token),
            };
            let shown = Arc::new(Shown {
                archive: archive.clone(),
                access: access.clone(),
                links,
                policy: content_security_policy(),
            });
            Ok(Router::new().fallback(answer).with_state(shown))
        });
        pages.map(ArchiveServer)
    }

    /// Where the list of runs is. Where it needs a token, this is the only place that has it.
    pub fn url(&self) -> String {
        self.0.url()
    }
}

/// What answers need.
struct Shown {
    archive: Archive,
    access: Access,
    links: Links,
    policy: String,
}

async fn answer(
    State(shown): State<Arc<Shown>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Response {
    let question = {
        let asked = asked(&request, &peer);
        if let Some(refusal) = asked.refusal(&shown.access) {
            return refuse(&shown.policy, refusal);
        }
        Question::parse(asked.path, asked.query)
    };
    let worker = Arc::clone(&shown);
    let answered = tokio::task::spawn_blocking(move || match question {
        Ok(question) => worker.archive.0.answer(&question, &worker.links),
        Err(wrong) => wrong.page(&worker.links),
    });
    let (status, page) = match answered.await {
        Ok(page) => (page.status, page.html),
        // It panicked, which was printed, or the server ends.
        Err(_) => (500, "this page could not be made\n".to_owned()),
    };
    respond(&shown.policy, (status, HTML), page.into())
}
