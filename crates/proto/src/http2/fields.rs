//! Fields of requests and responses (RFC 9113, section 8), as far as DoH needs them.

use crate::doh::{self, MediaType};

/// Collects the fields of a response, or of trailers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResponseFields {
    /// `:status`; 0 if there was none.
    pub(crate) status: u16,
    pub(crate) media_type: MediaType,
    pub(crate) content_length: ContentLength,
    pub(crate) is_malformed: bool,
    regular_seen: bool,
}

impl ResponseFields {
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) {
        if name == b":status" {
            match status(value) {
                Some(status) if self.status == 0 && !self.regular_seen => self.status = status,
                _ => self.is_malformed = true,
            }
            return;
        }
        self.regular_seen = true;
        match name {
            b"content-type" => self.media_type = MediaType::of(value),
            b"content-length" => self.content_length.add(value),
            _ => {}
        }
        self.is_malformed |= !is_field_allowed(name, value) || self.content_length.is_malformed;
    }
}

impl ResponseFields {
    /// True if they are those of a response with a message of this length.
    #[inline]
    pub(crate) fn has_message(&self, octets: usize) -> bool {
        let agrees = match self.content_length.octets {
            Some(said) => said == octets as u64,
            None => true,
        };
        let is_message = self.media_type == MediaType::DnsMessage && octets > 0;
        self.status == 200 && is_message && !self.is_malformed && agrees
    }
}

/// The value of `content-length`, said any number of times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ContentLength {
    pub(crate) octets: Option<u64>,
    is_malformed: bool,
}

impl ContentLength {
    fn add(&mut self, value: &[u8]) {
        let octets = decimal(value);
        let agrees = self.octets.is_none() || self.octets == octets;
        self.is_malformed |= octets.is_none() || !agrees;
        self.octets = octets;
    }

    /// The value as an open stream keeps it: whatever no message can have is as good as the
    /// largest.
    pub(crate) fn for_stream(self) -> Option<u32> {
        let octets = self.octets?;
        Some(u32::try_from(octets).unwrap_or(u32::MAX))
    }
}

fn decimal(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 18 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = value.iter().map(|digit| u64::from(digit - b'0'));
    Some(digits.fold(0, |number, digit| number * 10 + digit))
}

fn status(value: &[u8]) -> Option<u16> {
    let digits: &[u8; 3] = value.try_into().ok()?;
    let status = decimal(digits)? as u16;
    (status >= 100).then_some(status)
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestMethod {
    Get,
    Post,
    Other,
}

/// The query in a GET's path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DnsVariable {
    #[default]
    Absent,
    Invalid,
    /// The message is in the buffer.
    Decoded,
}

/// Collects the fields of a request, or of trailers.
#[derive(Debug, Default)]
pub(crate) struct RequestFields {
    pub(crate) method: Option<RequestMethod>,
    pub(crate) path_seen: bool,
    pub(crate) path_matches: bool,
    pub(crate) dns: DnsVariable,
    /// The message of a GET.
    pub(crate) message: Vec<u8>,
    pub(crate) is_dns_message: bool,
    pub(crate) content_length: ContentLength,
    scheme_seen: bool,
    authority_seen: bool,
    is_malformed: bool,
    regular_seen: bool,
    pseudo_seen: bool,
}

impl RequestFields {
    /// No fields yet; a GET's message will be in `message`.
    pub(crate) fn new(message: Vec<u8>) -> Self {
        RequestFields {
            message,
            ..RequestFields::default()
        }
    }

    /// Reads a field; `path` is that of the resource, without query.
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8], path: &str) {
        if name.first() == Some(&b':') {
            self.pseudo_seen = true;
            self.is_malformed |= self.regular_seen || !self.add_pseudo(name, value, path);
            return;
        }
        self.regular_seen = true;
        match name {
            b"content-type" => self.is_dns_message = MediaType::of(value) == MediaType::DnsMessage,
            b"content-length" => self.content_length.add(value),
            _ => {}
        }
        self.is_malformed |= !is_field_allowed(name, value) || self.content_length.is_malformed;
    }

    /// Reads a pseudo-header field (section 8.3.1); false if it is unknown or there twice.
    fn add_pseudo(&mut self, name: &[u8], value: &[u8], path: &str) -> bool {
        let seen_before = match name {
            b":method" => {
                let method = match value {
                    b"GET" => RequestMethod::Get,
                    b"POST" => RequestMethod::Post,
                    _ => RequestMethod::Other,
                };
                self.method.replace(method).is_some()
            }
            b":scheme" => std::mem::replace(&mut self.scheme_seen, true),
            b":authority" => std::mem::replace(&mut self.authority_seen, true),
            b":path" => {
                self.read_path(value, path);
                std::mem::replace(&mut self.path_seen, true)
            }
            _ => true,
        };
        !seen_before && is_value_valid(value)
    }

    fn read_path(&mut self, value: &[u8], path: &str) {
        let question_mark = value.iter().position(|&octet| octet == b'?');
        let (found, query) = value.split_at(question_mark.unwrap_or(value.len()));
        self.path_matches = found == path.as_bytes();
        let mut variables = query
            .get(1..)
            .unwrap_or_default()
            .split(|&octet| octet == b'&');
        let Some(encoded) = variables.find_map(|variable| variable.strip_prefix(b"dns=")) else {
            return;
        };
        self.dns = match doh::decode_message(encoded, &mut self.message) {
            true => DnsVariable::Decoded,
            false => DnsVariable::Invalid,
        };
    }

    /// True if it cannot be a request (section 8.1.1).
    pub(crate) fn is_malformed_request(&self) -> bool {
        let complete = match self.method {
            None => false,
            // CONNECT has neither scheme nor path (section 8.5).
            Some(RequestMethod::Other) => true,
            Some(_) => self.scheme_seen && self.path_seen,
        };
        self.is_malformed || !complete
    }

    /// True if these cannot be trailers (section 8.1).
    pub(crate) fn is_malformed_trailer(&self) -> bool {
        self.is_malformed || self.pseudo_seen
    }
}

/// False for what makes a message malformed (sections 8.2.1 and 8.2.2).
fn is_field_allowed(name: &[u8], value: &[u8]) -> bool {
    let is_allowed = match name {
        b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
            false
        }
        b"te" => value == b"trailers",
        b"content-type" | b"content-length" | b"cache-control" | b"date" | b"server" => true,
        _ => is_name_valid(name),
    };
    is_allowed && is_value_valid(value)
}

fn is_name_valid(name: &[u8]) -> bool {
    let is_valid = |octet: &u8| matches!(octet, 0x21..=0x39 | 0x3b..=0x40 | 0x5b..=0x7e);
    !name.is_empty() && name.iter().all(is_valid)
}

fn is_value_valid(value: &[u8]) -> bool {
    let is_blank = |octet: Option<&u8>| matches!(octet, Some(b' ' | b'\t'));
    // Without a branch for each octet: values are compared in every response.
    let has_forbidden = value.iter().fold(false, |found, &octet| {
        found | matches!(octet, 0 | b'\r' | b'\n')
    });
    !has_forbidden && !is_blank(value.first()) && !is_blank(value.last())
}
