//! URIs and URI templates of DoH (RFC 3986, RFC 6570, RFC 8484 section 4.1).

use super::{InvalidDohRequest, Scheme};

/// Templates that mean something for DoH, and what a GET makes of them.
const EXPRESSIONS: [(&str, &str); 3] = [("{?dns}", "?dns="), ("{&dns}", "&dns="), ("{dns}", "")];

/// The longest path and query; servers take as much.
const PATH_OCTETS_MAX: usize = 4_096;

/// A URI in its parts.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) scheme: Scheme,
    pub(super) authority: &'a str,
    pub(super) host: &'a str,
    pub(super) port: Option<u16>,
    /// Path and query without any variable.
    pub(super) path: String,
    /// The text before and after the message in the path of a GET.
    pub(super) get_before: String,
    pub(super) get_after: String,
}

/// Parses a URI or a URI template.
pub(super) fn parse(uri: &str) -> Result<Parts<'_>, InvalidDohRequest> {
    let (scheme, rest) = scheme(uri)?;
    let path_start = rest.find(['/', '?', '{', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(path_start);
    let (host, port) = host_and_port(uri, authority)?;
    let (before, expression, after) = split_template(uri, path)?;
    check_characters(uri, before, after)?;
    let before = if before.starts_with('/') {
        before.to_owned()
    } else {
        format!("/{before}")
    };
    let is_query = before.contains('?');
    let expanded = match expression {
        Some(expanded) => expanded,
        None if is_query => "&dns=",
        None => "?dns=",
    };
    Ok(Parts {
        scheme,
        authority,
        host,
        port,
        path: format!("{before}{after}"),
        get_before: format!("{before}{expanded}"),
        get_after: after.to_owned(),
    })
}

fn scheme(uri: &str) -> Result<(Scheme, &str), InvalidDohRequest> {
    for scheme in [Scheme::Https, Scheme::Http] {
        let name = scheme.name();
        if let Some((found, rest)) = uri.split_once("://")
            && found.eq_ignore_ascii_case(name)
        {
            return Ok((scheme, rest));
        }
    }
    let shown = match uri.rsplit_once('@') {
        // What is before it may have a password.
        Some((_, rest)) => format!("...@{rest}"),
        None => uri.to_owned(),
    };
    Err(InvalidDohRequest::new(
        format!("`{shown}` is not a URI of DNS over HTTPS"),
        "write https://HOST/PATH, or http://HOST/PATH without TLS",
    ))
}

fn host_and_port<'a>(
    uri: &str,
    authority: &'a str,
) -> Result<(&'a str, Option<u16>), InvalidDohRequest> {
    let fault = |what: &str| format!("`{uri}`: {what}");
    if let Some((_, host)) = authority.rsplit_once('@') {
        let cure = "give an `authorization` field instead";
        // What is before it may have a password.
        let fault = format!("the URI of {host} has a user name, which is not sent");
        return Err(InvalidDohRequest::new(fault, cure));
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, port.strip_prefix(':').or(Some(""))),
            None => ("", None),
        },
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let is_ipv6 = authority.starts_with('[');
    let is_host = match is_ipv6 {
        true => host.parse::<std::net::Ipv6Addr>().is_ok(),
        false => {
            let is_fit = |octet: u8| octet.is_ascii_alphanumeric() || b"-._~".contains(&octet);
            !host.is_empty() && host.bytes().all(is_fit)
        }
    };
    if !is_host {
        let cure = "write a host name, an IPv4 address, or an IPv6 address in brackets";
        return Err(InvalidDohRequest::new(fault("it has no valid host"), cure));
    }
    let port = match port {
        None => None,
        Some(text) => match text.parse() {
            Ok(port @ 1..) => Some(port),
            _ => {
                let cure = "a port is a number from 1 to 65535";
                return Err(InvalidDohRequest::new(fault("it has no valid port"), cure));
            }
        },
    };
    Ok((host, port))
}

/// Splits a path at its template expression: the text before, the expansion, the text after.
fn split_template<'a>(
    uri: &str,
    path: &'a str,
) -> Result<(&'a str, Option<&'static str>, &'a str), InvalidDohRequest> {
    for (expression, expanded) in EXPRESSIONS {
        if let Some((before, after)) = path.split_once(expression)
            && !before.contains(['{', '}'])
            && !after.contains(['{', '}'])
        {
            return Ok((before, Some(expanded), after));
        }
    }
    match path.contains(['{', '}']) {
        false => Ok((path, None, "")),
        true => Err(InvalidDohRequest::new(
            format!("`{uri}`: the template has another variable than `dns`"),
            "use {?dns}, {&dns} or {dns}, once",
        )),
    }
}

fn check_characters(uri: &str, before: &str, after: &str) -> Result<(), InvalidDohRequest> {
    let is_fit =
        |octet: u8| octet.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&octet);
    if before.contains('#') || after.contains('#') {
        let cure = "leave out `#` and what follows";
        let fault = format!("`{uri}`: a fragment is not sent");
        return Err(InvalidDohRequest::new(fault, cure));
    }
    if !before.bytes().chain(after.bytes()).all(is_fit) {
        return Err(InvalidDohRequest::new(
            format!("`{uri}`: the path has characters that a URI cannot have"),
            "write them as `%` and two hexadecimal digits",
        ));
    }
    if before.len() + after.len() > PATH_OCTETS_MAX {
        return Err(InvalidDohRequest::new(
            format!(
                "the path of the URI has {} bytes",
                before.len() + after.len()
            ),
            "use at most 4,096",
        ));
    }
    Ok(())
}
