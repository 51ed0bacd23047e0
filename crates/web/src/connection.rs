//! Connections of browsers: how many there may be, and for how long without a request.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use crate::events::Hub;

/// Most connections at a time; requests of further ones are answered with 503.
pub const CONNECTIONS_MAX: usize = 64;
/// Above that many, they are closed at once.
const REFUSED_MAX: usize = 2 * CONNECTIONS_MAX;
/// How long a connection may take for a request, or be without one.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// How long none is accepted after the system refused one.
const PAUSE: Duration = Duration::from_secs(1);

/// What is known of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer(Arc<PeerState>);

#[derive(Debug)]
struct PeerState {
    is_refused: bool,
    is_stream: AtomicBool,
    requests: AtomicU64,
}

impl Peer {
    /// A request has come on it; true if there are too many connections with it.
    pub(crate) fn note_request(&self) -> bool {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        self.0.is_refused
    }

    /// Events are sent on it until it ends.
    pub(crate) fn begin_stream(&self, hub: &Hub) {
        if !self.0.is_stream.swap(true, Ordering::Relaxed) {
            hub.enter_stream();
        }
    }
}

impl Connected<IncomingStream<'_, Bounded>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Bounded>) -> Peer {
        stream.remote_addr().clone()
    }
}

/// Accepts a bounded number of connections.
#[derive(Debug)]
pub(crate) struct Bounded {
    pub(crate) listener: TcpListener,
    pub(crate) hub: Arc<Hub>,
}

impl Listener for Bounded {
    type Io = Connection;
    type Addr = Peer;

    async fn accept(&mut self) -> (Connection, Peer) {
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) =>
                {
                    continue;
                }
                // No file descriptor is left, say: it would fail again at once.
                Err(_) => {
                    let _ = timeout(PAUSE, std::future::pending::<()>()).await;
                    continue;
                }
            };
            let open = self.hub.enter();
            if open > REFUSED_MAX {
                self.hub.leave(false);
                continue;
            }
            // Events are small and must not wait for each other.
            let _ = stream.set_nodelay(true);
            let peer = Peer(Arc::new(PeerState {
                is_refused: open > CONNECTIONS_MAX,
                is_stream: AtomicBool::new(false),
                requests: AtomicU64::new(0),
            }));
            let connection = Connection {
                stream,
                peer: peer.clone(),
                hub: Arc::clone(&self.hub),
                requests: 0,
                idle: Box::pin(sleep_until(Instant::now() + IDLE_MAX)),
            };
            return (connection, peer);
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Err(io::Error::other("it has no peer"))
    }
}

/// A connection that is closed when it has no request for too long.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    peer: Peer,
    hub: Arc<Hub>,
    /// Requests when its time began.
    requests: u64,
    idle: Pin<Box<Sleep>>,
}

impl Connection {
    /// True if its time is over.
    fn is_idle(&mut self, context: &mut Context<'_>) -> bool {
        let state = &self.peer.0;
        if state.is_stream.load(Ordering::Relaxed) {
            return false;
        }
        let requests = state.requests.load(Ordering::Relaxed);
        if requests != self.requests {
            self.requests = requests;
            self.idle.as_mut().reset(Instant::now() + IDLE_MAX);
        }
        self.idle.as_mut().poll(context).is_ready()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let was_stream = self.peer.0.is_stream.load(Ordering::Relaxed);
        self.hub.leave(was_stream);
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Pending if self.is_idle(context) => Poll::Ready(Err(ErrorKind::TimedOut.into())),
            polled => polled,
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
