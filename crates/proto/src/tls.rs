//! TLS for DNS (RFC 7858, RFC 8310): the one module that knows rustls.
//!
//! [`ClientTls`] and [`ServerTls`] are sessions as "feed octets, take octets": after each
//! `handle_bytes`, `write` or `close`, drain `poll_transmit` into the socket. rustls makes the
//! handshake; the records after it are our own unless the configuration says otherwise
//! (`stock_records`). rustls 0.24 changes its interface; nothing outside this module names a rustls
//! type except through the re-exports here. Certificates are checked against the time of rustls'
//! time provider, which `client_config` lets the caller set; nothing else here looks at a clock.
//!
//! A client that resumes sessions owns a [`ClientSession`], on streams and over QUIC alike.

pub use client::ClientTls;
pub use client_session::ClientSession;
pub use config::{
    ClientCertificate, ClientTlsOptions, Roots, TlsConfigError, TlsSetting, TlsVersions,
    client_config, quic_initial_suite,
};
pub use failure::{CertificateFault, TlsFailure};
pub use handshake::{Alpn, EarlyData, Handshake, HandshakeKind, Negotiated};
pub use pins::SpkiPin;
pub use registry::{CipherSuite, Group, UnknownName};
pub use rustls;
pub use server::ServerTls;
pub use server_config::{
    ClientCertificates, ServerTlsOptions, Tickets, server_config, server_config_with,
};
pub use stream::PeerState;

mod accepted_chain;
mod channel;
mod client;
mod client_session;
mod config;
mod failure;
mod handshake;
mod pins;
mod record_layer;
mod records;
mod registry;
mod server;
mod server_config;
mod stream;
mod verifier;

#[cfg(test)]
mod tests;
