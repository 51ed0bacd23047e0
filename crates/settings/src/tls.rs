//! How TLS is asked for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::FileName;

/// What is asked of TLS, over TCP or within QUIC. Empty lists are those of the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Authorities (PEM) that the server's certificate is verified against; none for those of the
    /// web.
    pub authorities: Option<FileName>,
    /// Name for SNI and verification; none for the server as given.
    pub name: Option<String>,
    /// Any certificate is taken.
    pub accepts_any: bool,
    /// SPKI pins of the server's key, of which one has to fit, in base64.
    pub pins: Vec<String>,
    /// The only version offered, `1.2` or `1.3`; none for both.
    pub version: Option<String>,
    /// Cipher suites offered, preferred first.
    pub cipher_suites: Vec<String>,
    /// Groups of the key exchange offered, preferred first.
    pub groups: Vec<String>,
    /// Share of the connections that resume the session of their client, 0 to 1.
    pub resume_share: f64,
    /// Queries are sent in early data where a session allows it.
    pub early_data: bool,
    /// Certificate (PEM) of the clients; none without one.
    pub certificate: Option<FileName>,
    /// Its key (PEM).
    pub key: Option<FileName>,
    /// Protocols offered by ALPN, preferred first.
    pub alpn: Vec<String>,
    /// The server's name is not sent.
    pub no_sni: bool,
    /// The secrets of all sessions are written to this file; none for that of the environment.
    pub key_log: Option<FileName>,
    /// rustls does the records of streams to the end, not the lean record layer.
    pub stock_records: bool,
}
