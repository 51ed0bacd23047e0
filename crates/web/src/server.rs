//! The live page: one thread renders snapshots as they come, the server's sends them to browsers.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{Method, header};
use axum::response::Response;
use bytes::Bytes;
use exporter::serving::Peer;
use http_body::Frame;
use lab::live::{Follower, ListenError, Live, Next, yield_to_workers};

use crate::answering::{HTML, PageServer, asked, refuse, respond};
use crate::events::{Cursor, Hub};
use crate::fragments::fragments;
use crate::page;
use crate::request::{Access, Answer};
use crate::watched::Watched;

/// What pages of a command that goes on are called where they cannot be served.
const LIVE_PAGE: &str = "the live page";
/// How long it waits for the newest snapshot to be rendered.
const RENDERING: Duration = Duration::from_secs(1);
/// Snapshots that came together and are rendered one by one. Of more only the newest is: they come
/// faster than they can be looked at.
const RENDERED_MAX: usize = 4;

/// Shows a page until it is finished or dropped.
#[derive(Debug)]
pub struct Server {
    pages: PageServer,
    hub: Arc<Hub>,
    follower: Option<Follower>,
}

impl Server {
    /// Reads everything that is published from now on, and shows it at `address`.
    ///
    /// # Errors
    /// The address cannot be listened on, or the system gives no thread or token.
    pub fn start(live: &Live, address: SocketAddr, command: &str) -> Result<Server, ListenError> {
        let (hub, mut follower) = (Arc::new(Hub::default()), None);
        let pages = PageServer::start(LIVE_PAGE, address, |access| {
            live.want_groups();
            live.want_verdicts();
            follower = Some(follow(live, command, Arc::clone(&hub))?);
            let shown = Arc::new(Shown {
                command: command.to_owned(),
                hub: Arc::clone(&hub),
                access: access.clone(),
                policy: page::content_security_policy(),
            });
            Ok(Router::new().fallback(answer).with_state(shown))
        })?;
        Ok(Server {
            pages,
            hub,
            follower,
        })
    }

    /// Where the page is. Where it needs a token, this is the only place that has it.
    pub fn url(&self) -> String {
        self.pages.url()
    }

    /// How many pages are connected.
    pub fn pages(&self) -> usize {
        self.pages.server.streams()
    }

    /// Shows the report in place of the page. Waits for the browsers that are connected, but only
    /// for a short time.
    pub fn finish(mut self, report: &str) {
        self.end(Some(report));
    }

    fn end(&mut self, report: Option<&str>) {
        if let Some(follower) = self.follower.take() {
            follower.end(RENDERING);
        }
        self.hub.end(report);
        self.pages.server.end();
    }
}

impl Drop for Server {
    /// The command has ended without a report.
    fn drop(&mut self) {
        self.end(None);
    }
}

/// Renders each snapshot once, for all browsers.
fn follow(live: &Live, command: &str, hub: Arc<Hub>) -> io::Result<Follower> {
    let mut watched = Watched::new(command);
    hub.push(live.newest(), fragments(&watched));
    let mut is_nice = false;
    live.follow(move |next: &Next| {
        if !std::mem::replace(&mut is_nice, true) {
            yield_to_workers();
        }
        watched.note_missed(next);
        let is_shown = |at: usize| {
            let is_newest = at + 1 == next.snapshots.len();
            is_newest || next.snapshots.len() <= RENDERED_MAX
        };
        for (at, snapshot) in next.snapshots.iter().enumerate() {
            let before = watched.earlier_count;
            watched.add(snapshot);
            if watched.earlier_count > before {
                hub.set_earlier(watched.earlier());
            }
            if is_shown(at) {
                hub.push(snapshot.number, fragments(&watched));
            }
        }
    })
}

/// What answers need.
#[derive(Debug)]
struct Shown {
    command: String,
    hub: Arc<Hub>,
    access: Access,
    policy: String,
}

async fn answer(
    State(shown): State<Arc<Shown>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Response {
    let asked = asked(&request, &peer);
    let is_head = request.method() == Method::HEAD;
    match asked.answer(&shown.access) {
        Answer::Page => {
            let (fragments, number) = shown.hub.newest();
            let earlier = shown.hub.earlier();
            let earlier = String::from_utf8_lossy(&earlier);
            let page = page::render(&shown.command, (&fragments, &earlier), number);
            respond(&shown.policy, (200, HTML), page.into())
        }
        Answer::Events { after } => {
            let body = match is_head {
                true => Body::empty(),
                false => {
                    peer.begin_stream();
                    Body::new(EventStream {
                        hub: Arc::clone(&shown.hub),
                        cursor: Cursor::new(after),
                        has_begun: false,
                    })
                }
            };
            // The end of the stream is that of the connection: then all of it was sent.
            let mut response = respond(&shown.policy, (200, "text/event-stream"), body);
            let close = header::HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
            response
        }
        Answer::Earlier => respond(&shown.policy, (200, HTML), shown.hub.earlier().into()),
        Answer::Refusal(refusal) => refuse(&shown.policy, refusal),
    }
}

/// Events for one browser, each when its connection has room for it.
struct EventStream {
    hub: Arc<Hub>,
    cursor: Cursor,
    has_begun: bool,
}

impl http_body::Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !std::mem::replace(&mut self.has_begun, true) {
            let begin = Bytes::from_static(b"retry: 1000\n\n");
            return Poll::Ready(Some(Ok(Frame::data(begin))));
        }
        let this = &mut *self;
        let next = this.hub.poll_next(&mut this.cursor, context);
        next.map(|next| next.map(|event| Ok(Frame::data(event))))
    }
}
