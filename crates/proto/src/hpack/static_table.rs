//! The static table of HPACK (RFC 7541, appendix A).

/// Names and values, beginning with index 1.
#[rustfmt::skip]
const ENTRIES: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"),
    (":path", "/index.html"), (":scheme", "http"), (":scheme", "https"), (":status", "200"),
    (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""),
    ("accept", ""), ("access-control-allow-origin", ""), ("age", ""), ("allow", ""),
    ("authorization", ""), ("cache-control", ""), ("content-disposition", ""),
    ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""),
    ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""),
    ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""),
    ("vary", ""), ("via", ""), ("www-authenticate", ""),
];

/// Index of the last entry; the dynamic table's indices follow.
pub const INDEX_MAX: u32 = ENTRIES.len() as u32;

/// Name and value of entry `index`, which counts from 1.
pub fn entry(index: u32) -> Option<(&'static str, &'static str)> {
    let place = usize::try_from(index.checked_sub(1)?).ok()?;
    ENTRIES.get(place).copied()
}

/// The first entry with this name.
pub fn name_index(name: &str) -> Option<u32> {
    let place = ENTRIES.iter().position(|(known, _)| *known == name)?;
    Some(place as u32 + 1)
}
