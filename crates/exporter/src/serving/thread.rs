//! The thread of a server.

use std::future::{Future, poll_fn};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use lab::live::yield_to_workers;

use super::connection::{Bounded, Peer};
use super::connections::Connections;

/// How long the end of a server waits for responses that end with it.
const ENDING: Duration = Duration::from_secs(2);
/// Handlers that work beside the server's thread at a time: a record of a day takes some 500 MB of
/// memory.
const WORKERS: usize = 2;

/// What connections may be and take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most connections at a time that are answered; requests of further ones get 503.
    pub answered_max: usize,
    /// Most connections at a time; further ones are closed at once.
    pub connections_max: usize,
    /// How long a connection may take for a request, and again from that to the end of its
    /// response, or be without one.
    pub patience: Duration,
}

/// An address that is listened on.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
}

impl Bound {
    /// Listens at `address`.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn new(address: SocketAddr) -> io::Result<Bound> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Bound { listener, address })
    }

    /// With port 0, with the port that the system chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves on a thread of that name.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn serve(self, name: &str, limits: Limits, routes: Router) -> io::Result<Server> {
        let connections = Arc::new(Connections::default());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(WORKERS)
            .enable_all()
            .build()?;
        let (listener, shared) = (self.listener, Arc::clone(&connections));
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || {
            yield_to_workers();
            runtime.block_on(serve(listener, (shared, limits), routes));
            // Handlers that work beside it are not waited for.
            runtime.shutdown_background();
        })?;
        Ok(Server {
            address: self.address,
            connections,
            thread: Some(thread),
        })
    }
}

/// Serves until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    connections: Arc<Connections>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many responses without an end go on.
    pub fn streams(&self) -> usize {
        self.connections.streams()
    }

    /// Ends it. Waits for responses without an end, but only for a short time.
    pub fn end(&mut self) {
        self.connections.end();
        if let Some(thread) = self.thread.take() {
            // A panic of it was printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

async fn serve(
    listener: TcpListener,
    (connections, limits): (Arc<Connections>, Limits),
    routes: Router,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let bounded = Bounded {
        listener,
        limits,
        connections: Arc::clone(&connections),
    };
    let routes = routes.into_make_service_with_connect_info::<Peer>();
    let mut serving = pin!(axum::serve(bounded, routes).into_future());
    let mut ending = pin!(async {
        poll_fn(|context| connections.poll_end(context)).await;
        let idle = poll_fn(|context| connections.poll_idle(context));
        let _ = tokio::time::timeout(ENDING, idle).await;
    });
    poll_fn(|context| {
        let _ = serving.as_mut().poll(context);
        ending.as_mut().poll(context)
    })
    .await;
}
