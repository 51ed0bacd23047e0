//! The threads: one renders snapshots as they come, one answers browsers.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::response::Response;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use http_body::Frame;
use lab::live::{Follower, ListenError, Live, Next, yield_to_workers};

use crate::connection::{Bounded, Peer};
use crate::events::{Cursor, Hub};
use crate::fragments::fragments;
use crate::page;
use crate::request::{Access, Answer, Asked, Refusal};
use crate::watched::Watched;

/// What pages of a command that goes on are called where they cannot be served.
const LIVE_PAGE: &str = "the live page";
/// How long the end of a command waits for browsers that are connected.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it waits for the newest snapshot to be rendered.
const RENDERING: Duration = Duration::from_secs(1);
/// Snapshots that came together and are rendered one by one. Of more only the newest is: they come
/// faster than they can be looked at.
const RENDERED_MAX: usize = 4;
/// The type of pages.
pub(crate) const HTML: &str = "text/html; charset=utf-8";
/// Random bytes of a token.
const TOKEN_BYTES: usize = 16;

/// Shows a page until it is finished or dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    access: Access,
    hub: Arc<Hub>,
    follower: Option<Follower>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Reads everything that is published from now on, and shows it at `address`.
    ///
    /// # Errors
    /// The address cannot be listened on, or the system gives no thread or token.
    pub fn start(live: &Live, address: SocketAddr, command: &str) -> Result<Server, ListenError> {
        let start = || {
            let Bound {
                listener,
                address: bound,
                access,
            } = Bound::new(address)?;
            let hub = Arc::new(Hub::default());
            live.want_groups();
            live.want_verdicts();
            let follower = follow(live, command, Arc::clone(&hub))?;
            let page = Arc::new(Shown {
                command: command.to_owned(),
                hub: Arc::clone(&hub),
                access: access.clone(),
                policy: page::content_security_policy(),
            });
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let thread = thread::Builder::new().name("web".to_owned());
            let thread = thread.spawn(move || {
                yield_to_workers();
                let hub = Arc::clone(&page.hub);
                let app = Router::new().fallback(answer).with_state(page);
                runtime.block_on(serve(listener, hub, app));
            })?;
            Ok(Server {
                address: bound,
                access,
                hub,
                follower: Some(follower),
                thread: Some(thread),
            })
        };
        start().map_err(|error| ListenError::new(LIVE_PAGE, address, error))
    }

    /// Where the page is. Where it needs a token, this is the only place that has it.
    pub fn url(&self) -> String {
        url(self.address, &self.access)
    }

    /// How many pages are connected.
    pub fn pages(&self) -> usize {
        self.hub.streams()
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
        if let Some(thread) = self.thread.take() {
            // It waits for browsers no longer than `PATIENCE`; a panic of it was printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    /// The command has ended without a report.
    fn drop(&mut self) {
        self.end(None);
    }
}

/// An address that is listened on, and who may see what is there.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) access: Access,
}

impl Bound {
    pub(crate) fn new(address: SocketAddr) -> io::Result<Bound> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Bound {
            listener,
            address,
            access: access(address)?,
        })
    }
}

/// Where the first page is, with its token if it needs one.
pub(crate) fn url(address: SocketAddr, access: &Access) -> String {
    let token = match access {
        Access::Loopback => String::new(),
        Access::Token(token) => format!("?token={token}"),
    };
    format!("http://{address}/{token}")
}

/// Elsewhere than on loopback, other hosts reach it.
fn access(address: SocketAddr) -> io::Result<Access> {
    if address.ip().is_loopback() {
        return Ok(Access::Loopback);
    }
    let mut token = [0; TOKEN_BYTES];
    getrandom::fill(&mut token).map_err(io::Error::other)?;
    Ok(Access::Token(HEXLOWER.encode(&token)))
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
            watched.add(snapshot);
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

/// Answers until the end is there and browsers have it, or their time is over.
pub(crate) async fn serve(listener: TcpListener, hub: Arc<Hub>, app: Router) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let bounded = Bounded {
        listener,
        hub: Arc::clone(&hub),
    };
    let app = app.into_make_service_with_connect_info::<Peer>();
    let mut serving = pin!(axum::serve(bounded, app).into_future());
    let mut ending = pin!(async {
        poll_fn(|context| hub.poll_end(context)).await;
        let idle = poll_fn(|context| hub.poll_idle(context));
        let _ = tokio::time::timeout(PATIENCE, idle).await;
    });
    poll_fn(|context| {
        let _ = serving.as_mut().poll(context);
        ending.as_mut().poll(context)
    })
    .await;
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
            let page = page::render(&shown.command, &fragments, number);
            respond(&shown.policy, (200, HTML), page.into())
        }
        Answer::Events { after } => {
            let body = match is_head {
                true => Body::empty(),
                false => {
                    peer.begin_stream(&shown.hub);
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
        Answer::Refusal(refusal) => refuse(&shown.policy, refusal),
    }
}

/// What decides how a request is answered.
pub(crate) fn asked<'a>(request: &'a Request, peer: &Peer) -> Asked<'a> {
    let headers = request.headers();
    let text = |name| headers.get(name).and_then(|it| it.to_str().ok());
    Asked {
        method: request.method().as_str(),
        path: request.uri().path(),
        query: request.uri().query().unwrap_or_default(),
        host: host(headers),
        last_event_id: text("last-event-id"),
        is_refused: peer.note_request(),
    }
}

/// Two headers are none: which of them was meant is not known.
fn host(headers: &HeaderMap) -> Option<&str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        _ => None,
    }
}

pub(crate) fn refuse(policy: &str, refusal: Refusal) -> Response {
    let (status, words) = refusal.words();
    let mut response = respond(policy, (status, "text/plain; charset=utf-8"), words.into());
    let headers = response.headers_mut();
    match refusal {
        Refusal::NotAllowed => {
            let allowed = header::HeaderValue::from_static("GET, HEAD");
            headers.insert(header::ALLOW, allowed);
        }
        Refusal::TooMany => {
            let close = header::HeaderValue::from_static("close");
            headers.insert(header::CONNECTION, close);
        }
        Refusal::Unauthorized | Refusal::WrongHost | Refusal::NotFound | Refusal::TooLong => {}
    }
    response
}

pub(crate) fn respond(
    policy: &str,
    (status, content_type): (u16, &'static str),
    body: Body,
) -> Response {
    let response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, content_type)
        .header(header::CONTENT_SECURITY_POLICY, policy)
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .header(header::CACHE_CONTROL, "no-store")
        .header(header::REFERRER_POLICY, "no-referrer")
        .header("cross-origin-resource-policy", "same-origin")
        .body(body);
    response.expect("all of them are valid headers")
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
