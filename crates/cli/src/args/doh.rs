//! Flags about the requests of DNS over HTTPS.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use proto::Transport;
use proto::doh::{DohRequest, Method};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::inputs;

/// The path that RFC 8484 uses in its examples, and that most servers answer at.
const PATH: &str = "/dns-query";

/// What requests look like.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[command(next_help_heading = "DNS over HTTPS")]
pub(crate) struct DohArguments {
    /// How a query travels: get or post [default: post]
    #[arg(long, value_name = "METHOD")]
    pub(crate) doh_method: Option<Method>,
    /// Path of the URI, or its template such as `/dns-query{?dns}` [default: /dns-query]
    #[arg(long, value_name = "PATH")]
    pub(crate) doh_path: Option<String>,
    /// Host and port that requests name, if not those of --server
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) doh_authority: Option<String>,
    /// A further field of every request, `NAME: VALUE`, or a file of such lines, `@FILE`; may be
    /// repeated. Records have the values of harmless fields only, such as user-agent
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

impl DohArguments {
    /// The requests of a run against `server`; `None` on transports without HTTP.
    ///
    /// # Errors
    /// A URI on another transport, a path given twice, or a URI or field that is none.
    pub(crate) fn request(
        &self,
        transport: Transport,
        server: &Server,
    ) -> Result<Option<Arc<DohRequest>>, Failure> {
        self.check(transport, server)?;
        if !transport.is_doh() {
            return Ok(None);
        }
        let scheme = server.scheme.unwrap_or("https");
        let authority = match &self.doh_authority {
            Some(authority) => authority.clone(),
            None => bracketed(server.authority),
        };
        let path = match (&self.doh_path, server.path) {
            (Some(path), _) => path,
            (None, "") => PATH,
            (None, path) => path,
        };
        let uri = format!("{scheme}://{authority}{path}");
        let method = self.doh_method.unwrap_or_default();
        let fields = self.fields()?;
        let request = DohRequest::new(method, &uri, &fields)
            .map_err(|error| Failure::usage(error.fault, error.cure))?;
        Ok(Some(Arc::new(request)))
    }

    fn check(&self, transport: Transport, server: &Server) -> Result<(), Failure> {
        if let (Some(scheme), false) = (server.scheme, transport.is_doh()) {
            return Err(Failure::usage(
                format!("--server {scheme}://... is a URI, and transport {transport} has none"),
                "give HOST or HOST:PORT, or use --transport doh2 or doh3",
            ));
        }
        if let Some(scheme) = server.scheme
            && !["https", "http"].contains(&scheme)
        {
            return Err(Failure::usage(
                format!("--server {scheme}://...: `{scheme}` is not a scheme of DNS over HTTPS"),
                "give https://HOST/PATH, or http://HOST/PATH for HTTP/2 without TLS",
            ));
        }
        if server.is_plain_http() && transport == Transport::Doh3 {
            return Err(Failure::usage(
                "HTTP/3 has no http:// URIs: it is always encrypted",
                "give https://, or use --transport doh2",
            ));
        }
        if self.doh_path.is_some() && !server.path.is_empty() {
            return Err(Failure::usage(
                "the path is given twice, in --server and in --doh-path",
                "leave out one of them",
            ));
        }
        Ok(())
    }

    fn fields(&self) -> Result<Vec<(String, String)>, Failure> {
        // What is no field may still be a secret, and is not shown.
        let split = |field: &str, called: &str| match field.split_once(':') {
            Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
            None => Err(Failure::usage(
                format!("--doh-header: {called} is not a field"),
                "write it as `NAME: VALUE`, such as `user-agent: throng`",
            )),
        };
        let mut fields = Vec::new();
        for given in &self.doh_header {
            let Some(path) = given.strip_prefix('@') else {
                fields.push(split(given, "what was given")?);
                continue;
            };
            let text = inputs::text(Path::new(path)).map_err(|error| {
                Failure::usage(
                    format!("--doh-header: cannot read {path}: {error}"),
                    "give a file with a line `NAME: VALUE` for each field",
                )
            })?;
            let lines = text.lines().enumerate();
            for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
                fields.push(split(line, &format!("line {} of {path}", number + 1))?);
            }
        }
        Ok(fields)
    }
}

/// An IPv6 address without port gets the brackets that it has in a URI (RFC 3986, section 3.2.2).
fn bracketed(authority: &str) -> String {
    match authority.parse::<std::net::Ipv6Addr>() {
        Ok(address) => format!("[{address}]"),
        Err(_) => authority.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(server: &str, path: Option<&str>) -> String {
        let arguments = DohArguments {
            doh_path: path.map(str::to_owned),
            ..DohArguments::default()
        };
        match arguments.request(Transport::Doh2, &Server::parse(server)) {
            Ok(Some(request)) => {
                let scheme = request.scheme().name();
                format!("{scheme}://{}{}", request.authority(), request.path())
            }
            Ok(None) => "none".to_owned(),
            Err(failure) => failure.what().to_owned(),
        }
    }

    #[test]
    fn server_and_path_make_the_uri() {
        assert_eq!(uri("dns.test", None), "https://dns.test/dns-query");
        assert_eq!(uri("[::1]:8443", None), "https://[::1]:8443/dns-query");
        assert_eq!(uri("::1", Some("/q")), "https://[::1]/q");
        assert_eq!(
            uri("http://127.0.0.1:8053", None),
            "http://127.0.0.1:8053/dns-query"
        );
        assert_eq!(uri("https://dns.test/q", None), "https://dns.test/q");
        assert!(uri("https://dns.test/q", Some("/p")).contains("given twice"));
        assert!(uri("ftp://dns.test/q", None).contains("not a scheme"));
    }
}
