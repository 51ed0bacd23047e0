//! The HTTP server of metrics and pages: a thread of low priority, a bounded number of connections,
//! and a time limit for each.
//!
//! Order of calls: [`Bound::new`]; [`Bound::serve`] with the routes, whose handlers call
//! [`Peer::note_request`] for each request; [`Server::end`].
//!
//! `connections`: how many there are, and the end that they wait for. `connection`: one of them,
//! and its time. `thread`: the server's.

mod connection;
mod connections;
mod thread;

pub use connection::Peer;
pub use connections::Counts;
pub use thread::{Bound, Limits, Server};
