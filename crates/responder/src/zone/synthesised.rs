//! Answers for any name, computed from a hash of the name.

use super::{NOERROR, NameHasher, Sections, TYPE_A, TYPE_AAAA, TYPE_ANY, TYPE_SOA, TYPE_TXT};

/// The text of every TXT record.
const TEXT: &[u8] = b"synthesised";

/// See [`super::Zone::synthesised`].
#[derive(Debug)]
pub(super) struct Synthesised {
    /// TYPE to RDLENGTH of an A, an AAAA and a TXT record, owner name 0xC00C first.
    a: [u8; 12],
    aaaa: [u8; 12],
    txt: [u8; 12],
    /// The SOA record of NODATA answers, owned by the root.
    soa: Vec<u8>,
}

/// A record's octets up to its RDATA, with QNAME as owner.
fn record_head(rtype: u16, ttl_s: u32, rdata_octets: u16) -> [u8; 12] {
    let mut head = [0; 12];
    head[..2].copy_from_slice(&[0xc0, 0x0c]);
    head[2..4].copy_from_slice(&rtype.to_be_bytes());
    head[4..6].copy_from_slice(&1u16.to_be_bytes());
    head[6..10].copy_from_slice(&ttl_s.to_be_bytes());
    head[10..].copy_from_slice(&rdata_octets.to_be_bytes());
    head
}

impl Synthesised {
    pub(super) fn new(ttl_s: u32) -> Self {
        // MNAME and RNAME are the root; then SERIAL, REFRESH, RETRY, EXPIRE and MINIMUM.
        let mut rdata = vec![0, 0];
        for field in [1, 3600, 600, 86_400, ttl_s] {
            rdata.extend_from_slice(&u32::to_be_bytes(field));
        }
        let mut soa = vec![0];
        soa.extend_from_slice(&record_head(TYPE_SOA, ttl_s, rdata.len() as u16)[2..]);
        soa.extend_from_slice(&rdata);
        Synthesised {
            a: record_head(TYPE_A, ttl_s, 4),
            aaaa: record_head(TYPE_AAAA, ttl_s, 16),
            txt: record_head(TYPE_TXT, ttl_s, TEXT.len() as u16 + 1),
            soa,
        }
    }

    #[inline]
    pub(super) fn answer(&self, qname: &[u8], qtype: u16, out: &mut Vec<u8>) -> Sections {
        let counts = match qtype {
            TYPE_A | TYPE_ANY => {
                out.extend_from_slice(&self.a);
                out.extend_from_slice(&address(qname));
                [1, 0, 0]
            }
            TYPE_AAAA => {
                out.extend_from_slice(&self.aaaa);
                // 2001:db8::/32 is for documentation (RFC 3849).
                out.extend_from_slice(&[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0]);
                out.extend_from_slice(&NameHasher::hash(qname).to_be_bytes());
                [1, 0, 0]
            }
            TYPE_TXT => {
                out.extend_from_slice(&self.txt);
                out.push(TEXT.len() as u8);
                out.extend_from_slice(TEXT);
                [1, 0, 0]
            }
            _ => {
                out.extend_from_slice(&self.soa);
                [0, 1, 0]
            }
        };
        Sections {
            rcode: NOERROR,
            authoritative: true,
            counts,
        }
    }
}

/// An address of 192.0.2.1 to 192.0.2.254 (TEST-NET-1, RFC 5737).
fn address(qname: &[u8]) -> [u8; 4] {
    let host = NameHasher::hash(qname) % 254;
    [192, 0, 2, host as u8 + 1]
}
