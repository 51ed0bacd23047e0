//! DNS over HTTPS, the part that HTTP/2 and HTTP/3 have in common (RFC 8484).
//!
//! A [`DohRequest`] is made once from texts and says what every request of a run looks like; with
//! a DNS message it becomes one request. The versions of HTTP put it on the wire.

use crate::hpack;
use data_encoding::BASE64URL_NOPAD;
use std::fmt;

pub use settings::{HttpMethod as Method, HttpScheme as Scheme};

mod uri;

/// The media type of DNS messages (RFC 8484, section 6).
pub const DNS_MESSAGE: &str = "application/dns-message";

/// A media type that does not exist, which servers give in place of [`DNS_MESSAGE`].
pub const DNS: &str = "application/dns";

/// The longest DNS message.
pub const MESSAGE_OCTETS_MAX: usize = 65_535;

/// Octets of all additional fields of a request, each counted with 32 octets on top. Servers
/// refuse much less than a frame's 16,384.
const EXTRA_OCTETS_MAX: usize = 8_192;

/// Additional fields of a request.
const EXTRA_FIELDS_MAX: usize = 32;

/// Why a URI or a field cannot be used: an error for people, with its cure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidDohRequest {
    /// The fault, and where it is.
    pub fault: String,
    /// What to write instead.
    pub cure: &'static str,
}

impl InvalidDohRequest {
    fn new(fault: impl Into<String>, cure: &'static str) -> Self {
        InvalidDohRequest {
            fault: fault.into(),
            cure,
        }
    }
}

impl fmt::Display for InvalidDohRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.fault, self.cure)
    }
}

impl std::error::Error for InvalidDohRequest {}

/// Fields whose values are not secret; others, such as `authorization`, may be.
const HARMLESS_FIELDS: [&str; 6] = [
    "accept-encoding",
    "accept-language",
    "cache-control",
    "pragma",
    "user-agent",
    "x-tester",
];

/// True if the value of this field may be shown.
pub fn is_harmless(name: &str) -> bool {
    HARMLESS_FIELDS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
}

/// One field of a request; its name is in lower case.
#[derive(Clone, Debug)]
pub struct RequestField {
    /// The name; pseudo-header fields begin with a colon.
    pub name: Box<str>,
    /// The value.
    pub value: Box<str>,
    /// The field in HPACK.
    pub(crate) hpack: hpack::Field,
}

impl RequestField {
    fn new(name: &str, value: &str) -> Self {
        RequestField {
            name: name.into(),
            value: value.into(),
            hpack: hpack::Field::new(name, value),
        }
    }
}

/// The constant part of a run's requests: method, URI and fields.
#[derive(Clone, Debug)]
pub struct DohRequest {
    method: Method,
    scheme: Scheme,
    /// Host and port as the URI has them.
    authority: Box<str>,
    host: Box<str>,
    port: Option<u16>,
    /// The path of a POST, with its query if there is one.
    path: Box<str>,
    /// The text before and after the message in the path of a GET.
    get_path: (Box<str>, Box<str>),
    /// `:authority`, and of a POST `:path`.
    pseudo_fields: Box<[RequestField]>,
    /// `accept`, of a POST `content-type`, and the additional fields.
    regular_fields: Box<[RequestField]>,
}

impl DohRequest {
    /// Reads a URI template such as `https://dns.example/dns-query{?dns}`, or a plain URI, which
    /// means the same as with `{?dns}` (`{&dns}` if it has a query) at its end.
    ///
    /// `extra` are additional fields, name and value. Names are turned into lower case.
    ///
    /// # Errors
    /// The fault in the URI or a field.
    pub fn new(
        method: Method,
        uri: &str,
        extra: &[(String, String)],
    ) -> Result<Self, InvalidDohRequest> {
        let parts = uri::parse(uri)?;
        let mut pseudo_fields = vec![RequestField::new(":authority", parts.authority)];
        let mut regular_fields = vec![RequestField::new("accept", DNS_MESSAGE)];
        if method == Method::Post {
            pseudo_fields.push(RequestField::new(":path", &parts.path));
            regular_fields.push(RequestField::new("content-type", DNS_MESSAGE));
        }
        regular_fields.extend(extra_fields(extra)?);
        Ok(DohRequest {
            method,
            scheme: parts.scheme,
            authority: parts.authority.into(),
            host: parts.host.into(),
            port: parts.port,
            path: parts.path.into(),
            get_path: (parts.get_before.into(), parts.get_after.into()),
            pseudo_fields: pseudo_fields.into(),
            regular_fields: regular_fields.into(),
        })
    }

    /// How messages travel.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Whether the connection is encrypted.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Host and port as the URI has them, for `:authority`.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The host without port and without the brackets of an IPv6 address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port of the URI, or that of its scheme.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(self.scheme.default_port())
    }

    /// `:path` of a POST.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The fields that all requests share, in their order, up to the path: `:authority`, and
    /// `:path` if it is the same for all (POST). `:method` and `:scheme` come before them.
    pub fn pseudo_fields(&self) -> &[RequestField] {
        &self.pseudo_fields
    }

    /// The other fields that all requests share. `content-length` is not among them.
    pub fn regular_fields(&self) -> &[RequestField] {
        &self.regular_fields
    }

    /// Octets of the path of a GET with a message of `message_octets`.
    pub fn get_path_octets(&self, message_octets: usize) -> usize {
        let (before, after) = &self.get_path;
        before.len() + BASE64URL_NOPAD.encode_len(message_octets) + after.len()
    }

    /// Appends the path of a GET: [`DohRequest::get_path_octets`] octets. Allocates nothing
    /// itself.
    pub fn write_get_path(&self, message: &[u8], out: &mut Vec<u8>) {
        let (before, after) = &self.get_path;
        out.extend_from_slice(before.as_bytes());
        let start = out.len();
        out.resize(start + BASE64URL_NOPAD.encode_len(message.len()), 0);
        BASE64URL_NOPAD.encode_mut(message, &mut out[start..]);
        out.extend_from_slice(after.as_bytes());
    }
}

/// Checks the additional fields of a request.
fn extra_fields(extra: &[(String, String)]) -> Result<Vec<RequestField>, InvalidDohRequest> {
    let octets: usize = extra
        .iter()
        .map(|(name, value)| name.len() + value.len() + 32)
        .sum();
    if octets > EXTRA_OCTETS_MAX || extra.len() > EXTRA_FIELDS_MAX {
        return Err(InvalidDohRequest::new(
            format!(
                "{} header fields of {octets} bytes are too many",
                extra.len()
            ),
            "give at most 32 fields of 8,192 bytes in all",
        ));
    }
    extra
        .iter()
        .map(|(name, value)| extra_field(name, value))
        .collect()
}

fn extra_field(name: &str, value: &str) -> Result<RequestField, InvalidDohRequest> {
    let fault = |what: &str| format!("header field `{name}`: {what}");
    let lower = name.to_ascii_lowercase();
    let is_token = |octet: u8| octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&octet);
    if lower.is_empty() || !lower.bytes().all(is_token) {
        return Err(InvalidDohRequest::new(
            fault("not a field name"),
            "names are made of letters, digits and `-`",
        ));
    }
    match lower.as_str() {
        "connection" | "proxy-connection" | "keep-alive" | "transfer-encoding" | "upgrade"
        | "te" => {
            let cure = "leave it out, HTTP/2 and HTTP/3 forbid it (RFC 9113, section 8.2.2)";
            return Err(InvalidDohRequest::new(fault("belongs to HTTP/1.1"), cure));
        }
        "host" | "accept" | "content-type" | "content-length" => {
            let cure = "leave it out, it follows from the URI and the message";
            return Err(InvalidDohRequest::new(fault("is set already"), cure));
        }
        _ => {}
    }
    let is_clean = |octet: u8| octet == b'\t' || (octet >= b' ' && octet != 0x7f);
    if !value.bytes().all(is_clean) || value.trim_matches([' ', '\t']) != value {
        return Err(InvalidDohRequest::new(
            fault("its value has control characters, or spaces at an end"),
            "take them out",
        ));
    }
    Ok(RequestField::new(&lower, value))
}

/// The media type in the `content-type` of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MediaType {
    /// Neither of the other two, or the response has no `content-type`.
    #[default]
    Other,
    /// [`DNS`].
    Dns,
    /// [`DNS_MESSAGE`].
    DnsMessage,
}

impl MediaType {
    /// Reads a `content-type`, in any case and with any parameters (RFC 9110, section 8.3.1).
    pub fn of(content_type: &[u8]) -> MediaType {
        if content_type == DNS_MESSAGE.as_bytes() {
            return MediaType::DnsMessage;
        }
        let end = content_type.iter().position(|&octet| octet == b';');
        let media_type = content_type[..end.unwrap_or(content_type.len())].trim_ascii();
        let known = [(DNS_MESSAGE, MediaType::DnsMessage), (DNS, MediaType::Dns)];
        let found = known
            .into_iter()
            .find(|(name, _)| media_type.eq_ignore_ascii_case(name.as_bytes()));
        found.map_or(MediaType::Other, |(_, known)| known)
    }
}

/// Decodes the `dns` variable of a GET into `message`, which is overwritten. False if that is not
/// base64url without padding (RFC 8484, section 6), is empty, or is longer than a message.
pub fn decode_message(encoded: &[u8], message: &mut Vec<u8>) -> bool {
    message.clear();
    match BASE64URL_NOPAD.decode_len(encoded.len()) {
        Ok(octets @ 1..=MESSAGE_OCTETS_MAX) => message.resize(octets, 0),
        _ => return false,
    }
    BASE64URL_NOPAD.decode_mut(encoded, message).is_ok()
}

#[cfg(test)]
mod tests;
