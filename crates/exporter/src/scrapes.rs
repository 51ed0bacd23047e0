//! Which requests of scrapers are answered, and with what.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use lab::live::{ListenError, Live, Next, yield_to_workers};

use crate::accumulator::{About, Accumulator};
use crate::family::ScrapeCounts;
use crate::format::Format;
use crate::serving::{self, Bound, Peer, Server};
use crate::table;

/// Most scrapes at a time; further ones are answered with 503. A Prometheus has one at a time.
pub const SCRAPES_MAX: usize = 16;
/// Most connections at a time, those that get a 503 included; further ones are closed at once.
pub const CONNECTIONS_MAX: usize = 2 * SCRAPES_MAX;
/// The type of texts for people.
const PLAIN: &str = "text/plain; charset=utf-8";

/// Limits of scrapes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From its connection to its request, and from that to the end of its response. Prometheus
    /// itself waits for 10 s.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            patience: Duration::from_secs(10),
        }
    }
}

/// Encodes what there is at the moment of a scrape.
type Encode = Box<dyn Fn(Format, ScrapeCounts) -> Vec<u8> + Send + Sync>;

/// Answers scrapes until it is dropped.
#[derive(Debug)]
pub struct Exporter(Server);

impl Exporter {
    /// Reads everything that is published from now on, and answers scrapes at `address`.
    ///
    /// # Errors
    /// The address cannot be listened on, or the system allows no further thread.
    pub fn start(
        live: &Live,
        address: SocketAddr,
        (about, limits): (About, Limits),
    ) -> Result<Exporter, ListenError> {
        let all = Arc::new(Mutex::new(Accumulator::new(about)));
        let encoded = Arc::clone(&all);
        let encode = move |format, scrapes| lock(&encoded).encode(format, scrapes);
        let exporter = Exporter::serve(address, limits, Box::new(encode))?;
        live.want_groups();
        let mut is_nice = false;
        // It ends with what is published.
        let follower = live.follow(move |next: &Next| {
            if !std::mem::replace(&mut is_nice, true) {
                yield_to_workers();
            }
            lock(&all).read(next);
        });
        follower.map_err(|error| ListenError::new("metrics", address, error))?;
        Ok(exporter)
    }

    /// Answers scrapes at `address` with what a responder has counted by then, by name.
    ///
    /// # Errors
    /// The address cannot be listened on, or the system allows no further thread.
    pub fn start_for_responder(
        address: SocketAddr,
        limits: Limits,
        counted: impl Fn() -> Vec<(&'static str, u64)> + Send + Sync + 'static,
    ) -> Result<Exporter, ListenError> {
        let encode = move |format, scrapes| table::encode_responder(counted(), format, scrapes);
        Exporter::serve(address, limits, Box::new(encode))
    }

    fn serve(address: SocketAddr, limits: Limits, encode: Encode) -> Result<Exporter, ListenError> {
        let start = || {
            let shown = Arc::new(Shown {
                encode,
                served: AtomicU64::new(0),
            });
            let routes = Router::new().fallback(answer).with_state(shown);
            let limits = serving::Limits {
                answered_max: SCRAPES_MAX,
                connections_max: CONNECTIONS_MAX,
                patience: limits.patience,
            };
            let server = Bound::new(address)?.serve("metrics", limits, routes)?;
            Ok(Exporter(server))
        };
        start().map_err(|error| ListenError::new("metrics", address, error))
    }

    /// Where it listens: with port 0, the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }
}

fn lock(all: &Mutex<Accumulator>) -> MutexGuard<'_, Accumulator> {
    // What was added up before a panic is still true.
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What answers need.
struct Shown {
    encode: Encode,
    served: AtomicU64,
}

async fn answer(
    State(shown): State<Arc<Shown>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Response {
    let is_refused = peer.note_request();
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    match request.uri().path() {
        _ if is_refused => refuse(StatusCode::SERVICE_UNAVAILABLE),
        "/metrics" | "/" if !is_read => refuse(StatusCode::METHOD_NOT_ALLOWED),
        "/metrics" => {
            let (served, counts) = (&shown.served, peer.counts());
            let scrapes = ScrapeCounts {
                served: served.fetch_add(1, Ordering::Relaxed),
                refused: counts.refused,
                timed_out: counts.timed_out,
            };
            let format = Format::negotiate(&accept(request.headers()));
            let body = (shown.encode)(format, scrapes);
            respond((StatusCode::OK, format.content_type()), body.into())
        }
        "/" => {
            let text = "throng: metrics of the command are at /metrics\n";
            respond((StatusCode::OK, PLAIN), text.into())
        }
        _ => refuse(StatusCode::NOT_FOUND),
    }
}

/// All that the scraper accepts.
fn accept(headers: &HeaderMap) -> String {
    let values = headers.get_all(header::ACCEPT).iter();
    let values: Vec<&str> = values.filter_map(|it| it.to_str().ok()).collect();
    values.join(",")
}

fn refuse(status: StatusCode) -> Response {
    let mut response = respond((status, PLAIN), format!("{status}\n").into());
    if status == StatusCode::METHOD_NOT_ALLOWED {
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}

fn respond((status, content_type): (StatusCode, &str), body: Body) -> Response {
    let response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, content_type)
        .header(header::CACHE_CONTROL, "no-store")
        .header(header::CONNECTION, "close")
        .body(body);
    response.expect("all of them are valid headers")
}
