//! Flags about the requests of DNS over HTTPS.

use clap::Args;
use proto::Transport;
use proto::doh::Method;

/// What requests look like.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "DNS over HTTPS")]
pub(crate) struct DohArguments {
    /// HTTP method of a query: get or post [default: post]
    #[arg(long, value_name = "METHOD")]
    pub(crate) doh_method: Option<Method>,
    /// Path of the URI, or a URI template such as `/dns-query{?dns}` [default: /dns-query]
    #[arg(long, value_name = "PATH")]
    pub(crate) doh_path: Option<String>,
    /// Host and port named in the requests, if not those of --server
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) doh_authority: Option<String>,
    /// Header field to add to every request, `NAME: VALUE`, or a file of such lines, `@FILE`; may
    /// be repeated. Records keep only the values of harmless fields, such as user-agent
    #[arg(long, value_name = "FIELD")]
    pub(crate) doh_header: Vec<String>,
}

/// A server as it was given: `HOST`, `HOST:PORT`, an address, or for DoH a URI.
pub(crate) struct Server<'a> {
    /// Host and port, as they go into a URI.
    pub(crate) authority: &'a str,
    /// From the first slash on; empty if there is none.
    path: &'a str,
    /// `http` or `https`, if it is a URI.
    scheme: Option<&'a str>,
}

impl<'a> Server<'a> {
    /// Takes `text` apart.
    pub(crate) fn parse(text: &'a str) -> Self {
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme), rest),
            None => (None, text),
        };
        let (authority, path) = match (scheme, rest.find('/')) {
            (Some(_), Some(slash)) => rest.split_at(slash),
            _ => (rest, ""),
        };
        Server {
            authority,
            path,
            scheme,
        }
    }

    /// From the first slash on; empty if there is none.
    pub(crate) fn path(&self) -> &'a str {
        self.path
    }

    /// `http` or `https`, if it is a URI; what it is, else.
    pub(crate) fn scheme(&self) -> Option<&'a str> {
        self.scheme
    }

    /// True if its connections have no TLS.
    pub(crate) fn is_plain_http(&self) -> bool {
        self.scheme == Some("http")
    }

    /// True if requests to both have the same scheme and path.
    pub(crate) fn has_uri_of(&self, other: &Server<'_>) -> bool {
        (self.scheme, self.path) == (other.scheme, other.path)
    }

    /// The port of a server that names none.
    pub(crate) fn default_port(&self, transport: Transport) -> u16 {
        match self.is_plain_http() {
            true => 80,
            false => transport.default_port(),
        }
    }
}
