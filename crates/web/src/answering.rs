//! What the servers of pages have in common: who may see them, and how their responses look.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use data_encoding::HEXLOWER;
use exporter::serving::{Bound, Limits, Peer, Server};
use lab::live::ListenError;

use crate::request::{Access, Asked, Refusal};

/// Most connections at a time; requests of further ones are answered with 503.
pub const CONNECTIONS_MAX: usize = 64;
const LIMITS: Limits = Limits {
    answered_max: CONNECTIONS_MAX,
    connections_max: 2 * CONNECTIONS_MAX,
    patience: Duration::from_secs(30),
};
/// The type of pages.
pub(crate) const HTML: &str = "text/html; charset=utf-8";
/// Random bytes of a token.
const TOKEN_BYTES: usize = 16;

/// A server of pages.
#[derive(Debug)]
pub(crate) struct PageServer {
    pub(crate) server: Server,
    access: Access,
}

impl PageServer {
    /// Serves `what`, by routes for those who may see it.
    ///
    /// # Errors
    /// The address cannot be listened on, the system gives no thread or token, or there are no
    /// routes.
    pub(crate) fn start(
        what: &'static str,
        address: SocketAddr,
        routes: impl FnOnce(&Access) -> io::Result<Router>,
    ) -> Result<PageServer, ListenError> {
        let start = || {
            let bound = Bound::new(address)?;
            let access = access(bound.address())?;
            let routes = routes(&access)?;
            let server = bound.serve("web", LIMITS, routes)?;
            Ok(PageServer { server, access })
        };
        start().map_err(|error| ListenError::new(what, address, error))
    }

    /// Where the first page is, with its token if it needs one.
    pub(crate) fn url(&self) -> String {
        let token = match &self.access {
            Access::Loopback => String::new(),
            Access::Token(token) => format!("?token={token}"),
        };
        format!("http://{}/{token}", self.server.address())
    }
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
