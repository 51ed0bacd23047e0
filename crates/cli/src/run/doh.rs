//! The requests of DNS over HTTPS.

use std::path::Path;
use std::sync::Arc;

use proto::Transport;
use proto::doh::DohRequest;
use settings::{Http, Run};

use crate::args::doh::Server;
use crate::failure::Failure;
use crate::inputs;

/// The path that RFC 8484 uses in its examples, and that most servers answer at.
const PATH: &str = "/dns-query";

/// The requests of a run against `server`; `None` on transports without HTTP.
///
/// # Errors
/// A URI on another transport, a path given twice, or a URI or field that is none.
pub(super) fn request(run: &Run, server: &Server) -> Result<Option<Arc<DohRequest>>, Failure> {
    check(run, server)?;
    let Some(asked) = &run.http else {
        return Ok(None);
    };
    let scheme = server.scheme().unwrap_or("https");
    let authority = match &asked.authority {
        Some(authority) => authority.clone(),
        None => bracketed(server.authority),
    };
    let path = match (&asked.path, server.path()) {
        (Some(path), _) => path,
        (None, "") => PATH,
        (None, path) => path,
    };
    let uri = format!("{scheme}://{authority}{path}");
    let request = DohRequest::new(asked.method, &uri, &fields(asked)?)
        .map_err(|error| Failure::usage(error.fault, error.cure))?;
    Ok(Some(Arc::new(request)))
}

fn check(run: &Run, server: &Server) -> Result<(), Failure> {
    let transport = run.transport;
    if let (Some(scheme), false) = (server.scheme(), transport.is_doh()) {
        return Err(Failure::usage(
            format!("--server {scheme}://... is a URI, and transport {transport} has none"),
            "give HOST or HOST:PORT, or use --transport doh2 or doh3",
        ));
    }
    if let Some(scheme) = server.scheme()
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
    let path = run.http.as_ref().and_then(|http| http.path.as_ref());
    if path.is_some() && !server.path().is_empty() {
        return Err(Failure::usage(
            "the path is given twice, in --server and in --doh-path",
            "leave out one of them",
        ));
    }
    Ok(())
}

fn fields(asked: &Http) -> Result<Vec<(String, String)>, Failure> {
    // What is no field may still be a secret, and is not shown.
    let split = |field: &str, called: &str| match field.split_once(':') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
        None => Err(Failure::usage(
            format!("--doh-header: {called} is not a field"),
            "write it as `NAME: VALUE`, such as `user-agent: throng`",
        )),
    };
    let mut fields = Vec::new();
    for given in &asked.headers {
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
        let run = Run {
            transport: Transport::Doh2,
            http: Some(Http {
                path: path.map(str::to_owned),
                ..Http::default()
            }),
            ..Run::default()
        };
        match request(&run, &Server::parse(server)) {
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
