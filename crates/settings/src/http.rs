//! How a request of DoH carries its query (RFC 8484).

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Named;

/// What the requests of DoH look like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// How a query travels.
    pub method: HttpMethod,
    /// Path of the URI, or its template; none for that of the server, or `/dns-query`.
    pub path: Option<String>,
    /// Host and port that requests name; none for those of the server.
    pub authority: Option<String>,
    /// Further fields of every request, `NAME: VALUE`, or files of them, `@FILE`. Records have the
    /// values of harmless ones only.
    pub headers: Vec<String>,
}

/// A method of HTTP that carries DNS queries (RFC 8484, section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// The query in the URI, in base64url; caches like it.
    Get,
    /// The query as the content of the request.
    #[default]
    Post,
}

impl HttpMethod {
    /// `GET` or `POST`.
    pub const fn name(self) -> &'static str {
        match self {
            HttpMethod::Get => "GET",
            HttpMethod::Post => "POST",
        }
    }
}

impl Named for HttpMethod {
    const WHAT: &'static str = "DoH method";
    const ALL: &'static [Self] = &[HttpMethod::Get, HttpMethod::Post];

    fn name(self) -> &'static str {
        HttpMethod::name(self)
    }

    fn meaning(self) -> &'static str {
        match self {
            HttpMethod::Get => "The query in the URI",
            HttpMethod::Post => "The query as the content",
        }
    }
}

impl FromStr for HttpMethod {
    type Err = String;

    /// Reads a name in any case.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = HttpMethod::ALL.iter().copied();
        let found = all.find(|method| method.name().eq_ignore_ascii_case(text));
        found.map_or_else(|| HttpMethod::named(text), Ok)
    }
}

impl fmt::Display for HttpMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A scheme of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HttpScheme {
    /// Over TLS or QUIC.
    #[default]
    Https,
    /// Over TCP alone: HTTP/2 with prior knowledge, to a server behind a proxy.
    Http,
}

impl HttpScheme {
    /// `https` or `http`.
    pub const fn name(self) -> &'static str {
        match self {
            HttpScheme::Https => "https",
            HttpScheme::Http => "http",
        }
    }

    /// The port of a URI that names none.
    pub const fn default_port(self) -> u16 {
        match self {
            HttpScheme::Https => 443,
            HttpScheme::Http => 80,
        }
    }
}
