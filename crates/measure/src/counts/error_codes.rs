//! Names of error codes and HTTP statuses, for people; the record keeps the numbers.

use settings::Transport;

use crate::scenario::transports::Transports;

/// HTTP/2 error codes from 0 (RFC 9113, section 7).
const HTTP2: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

/// HTTP/3 error codes from 0x100 (RFC 9114, section 8.1).
const HTTP3: [&str; 17] = [
    "H3_NO_ERROR",
    "H3_GENERAL_PROTOCOL_ERROR",
    "H3_INTERNAL_ERROR",
    "H3_STREAM_CREATION_ERROR",
    "H3_CLOSED_CRITICAL_STREAM",
    "H3_FRAME_UNEXPECTED",
    "H3_FRAME_ERROR",
    "H3_EXCESSIVE_LOAD",
    "H3_ID_ERROR",
    "H3_SETTINGS_ERROR",
    "H3_MISSING_SETTINGS",
    "H3_REQUEST_REJECTED",
    "H3_REQUEST_CANCELLED",
    "H3_REQUEST_INCOMPLETE",
    "H3_MESSAGE_ERROR",
    "H3_CONNECT_ERROR",
    "H3_VERSION_FALLBACK",
];

/// QPACK error codes from 0x200 (RFC 9204, section 6).
const QPACK: [&str; 3] = [
    "QPACK_DECOMPRESSION_FAILED",
    "QPACK_ENCODER_STREAM_ERROR",
    "QPACK_DECODER_STREAM_ERROR",
];

/// DoQ error codes from 0 (RFC 9250, section 4.3).
const DOQ: [&str; 6] = [
    "DOQ_NO_ERROR",
    "DOQ_INTERNAL_ERROR",
    "DOQ_PROTOCOL_ERROR",
    "DOQ_REQUEST_CANCELLED",
    "DOQ_EXCESSIVE_LOAD",
    "DOQ_UNSPECIFIED_ERROR",
];

/// QUIC transport error codes from 0 (RFC 9000, section 20.1; the last one RFC 9368).
const QUIC: [&str; 18] = [
    "NO_ERROR",
    "INTERNAL_ERROR",
    "CONNECTION_REFUSED",
    "FLOW_CONTROL_ERROR",
    "STREAM_LIMIT_ERROR",
    "STREAM_STATE_ERROR",
    "FINAL_SIZE_ERROR",
    "FRAME_ENCODING_ERROR",
    "TRANSPORT_PARAMETER_ERROR",
    "CONNECTION_ID_LIMIT_ERROR",
    "PROTOCOL_VIOLATION",
    "INVALID_TOKEN",
    "APPLICATION_ERROR",
    "CRYPTO_BUFFER_EXCEEDED",
    "KEY_UPDATE_ERROR",
    "AEAD_LIMIT_REACHED",
    "NO_VIABLE_PATH",
    "VERSION_NEGOTIATION_ERROR",
];

/// HTTP statuses that targets of DoH give (RFC 9110, section 15; 429 and 431: RFC 6585).
const STATUSES: [(u64, &str); 20] = [
    (301, "Moved Permanently"),
    (302, "Found"),
    (307, "Temporary Redirect"),
    (308, "Permanent Redirect"),
    (400, "Bad Request"),
    (401, "Unauthorized"),
    (403, "Forbidden"),
    (404, "Not Found"),
    (405, "Method Not Allowed"),
    (408, "Request Timeout"),
    (413, "Content Too Large"),
    (414, "URI Too Long"),
    (415, "Unsupported Media Type"),
    (421, "Misdirected Request"),
    (429, "Too Many Requests"),
    (500, "Internal Server Error"),
    (501, "Not Implemented"),
    (502, "Bad Gateway"),
    (503, "Service Unavailable"),
    (504, "Gateway Timeout"),
];

/// An error code of the application over `transport`, by its name, or in hexadecimal.
pub fn application_error(transport: impl Into<Transports>, code: u64) -> String {
    let name = match transport.into().only() {
        // With several protocols, the one of the code is unknown.
        None | Some(Transport::Udp | Transport::Tcp | Transport::Dot) => None,
        Some(Transport::Doh2) => from(&HTTP2, 0, code),
        Some(Transport::Doh3) => from(&HTTP3, 0x100, code).or_else(|| from(&QPACK, 0x200, code)),
        Some(Transport::Doq) => from(&DOQ, 0, code),
    };
    name.map_or_else(|| format!("{code:#x}"), str::to_owned)
}

/// An error code of QUIC itself by its name, or in hexadecimal.
pub fn quic_transport_error(code: u64) -> String {
    from(&QUIC, 0, code).map_or_else(|| format!("{code:#x}"), str::to_owned)
}

/// An HTTP status with its reason phrase, where it is a usual one: `429 Too Many Requests`.
pub fn http_status(status: u64) -> String {
    let known = STATUSES.iter().find(|(number, _)| *number == status);
    known.map_or_else(
        || status.to_string(),
        |(_, phrase)| format!("{status} {phrase}"),
    )
}

fn from(names: &[&'static str], first: u64, code: u64) -> Option<&'static str> {
    let position = usize::try_from(code.checked_sub(first)?).ok()?;
    names.get(position).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_named_by_the_registry_of_their_transport() {
        let cases = [
            (Transport::Doh2, 0x7, "REFUSED_STREAM"),
            (Transport::Doh2, 0xb, "ENHANCE_YOUR_CALM"),
            (Transport::Doh2, 0xd, "HTTP_1_1_REQUIRED"),
            (Transport::Doh2, 0xe, "0xe"),
            (Transport::Doh3, 0x10b, "H3_REQUEST_REJECTED"),
            (Transport::Doh3, 0x110, "H3_VERSION_FALLBACK"),
            (Transport::Doh3, 0x201, "QPACK_ENCODER_STREAM_ERROR"),
            (Transport::Doh3, 0x7, "0x7"),
            (Transport::Doq, 0x4, "DOQ_EXCESSIVE_LOAD"),
            (Transport::Doq, u64::MAX, "0xffffffffffffffff"),
        ];
        for (transport, code, name) in cases {
            assert_eq!(application_error(transport, code), name);
        }
        assert_eq!(quic_transport_error(0xa), "PROTOCOL_VIOLATION");
        assert_eq!(quic_transport_error(0x128), "0x128");
        assert_eq!(http_status(503), "503 Service Unavailable");
        assert_eq!(http_status(599), "599");
    }
}
