//! A connection: accepted if there are not too many, and closed when it takes too long.

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

use super::connections::{Connections, Counts, Entry};
use super::thread::Limits;

/// How long none is accepted after the system refused one.
const PAUSE: Duration = Duration::from_secs(1);

/// What is known of a connection: the `ConnectInfo` of its requests.
#[derive(Clone, Debug)]
pub struct Peer(Arc<PeerState>);

#[derive(Debug)]
struct PeerState {
    is_refused: bool,
    is_stream: AtomicBool,
    requests: AtomicU64,
    connections: Arc<Connections>,
}

impl Peer {
    /// A request has come on it, for which its time begins anew; true if there are too many
    /// connections with it.
    pub fn note_request(&self) -> bool {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        self.0.is_refused
    }

    /// Its response goes on until the server ends: it may take as long as that.
    pub fn begin_stream(&self) {
        if !self.0.is_stream.swap(true, Ordering::Relaxed) {
            self.0.connections.enter_stream();
        }
    }

    /// Connections of its server that were not served.
    pub fn counts(&self) -> Counts {
        self.0.connections.counts()
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
    pub(crate) limits: Limits,
    pub(crate) connections: Arc<Connections>,
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
            let entry = self.connections.enter(&self.limits);
            if entry == Entry::Closed {
                continue;
            }
            // Parts of a stream are small and must not wait for each other.
            let _ = stream.set_nodelay(true);
            let peer = Peer(Arc::new(PeerState {
                is_refused: entry == Entry::Refused,
                is_stream: AtomicBool::new(false),
                requests: AtomicU64::new(0),
                connections: Arc::clone(&self.connections),
            }));
            let connection = Connection {
                stream,
                peer: peer.clone(),
                patience: self.limits.patience,
                requests: 0,
                end: Box::pin(sleep_until(Instant::now() + self.limits.patience)),
                is_over: false,
            };
            return (connection, peer);
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Err(io::Error::other("it has no peer"))
    }
}

/// A connection that is closed when it takes too long.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    peer: Peer,
    patience: Duration,
    /// Requests when its time began.
    requests: u64,
    /// When its time is over.
    end: Pin<Box<Sleep>>,
    is_over: bool,
}

impl Connection {
    /// True if its time is over, which is counted once.
    fn has_expired(&mut self, context: &mut Context<'_>) -> bool {
        let Connection {
            peer: Peer(state),
            patience,
            requests: known,
            end,
            is_over,
            ..
        } = self;
        if state.is_stream.load(Ordering::Relaxed) {
            return false;
        }
        let requests = state.requests.load(Ordering::Relaxed);
        if requests != *known {
            *known = requests;
            end.as_mut().reset(Instant::now() + *patience);
        }
        if !*is_over && end.as_mut().poll(context).is_ready() {
            *is_over = true;
            state.connections.note_timeout();
        }
        *is_over
    }

    /// What became of an attempt to receive or send: an error where it has to wait for too long.
    fn within_time<T>(
        &mut self,
        polled: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        match polled {
            Poll::Pending if self.has_expired(context) => {
                Poll::Ready(Err(ErrorKind::TimedOut.into()))
            }
            polled => polled,
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let was_stream = self.peer.0.is_stream.load(Ordering::Relaxed);
        self.peer.0.connections.leave(was_stream);
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.within_time(polled, context)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within_time(polled, context)
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
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.within_time(polled, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
