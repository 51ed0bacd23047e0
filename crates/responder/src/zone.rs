//! The responder's data: a zone from zone-file text, or an answer for any name.
//!
//! Everything after the question section is rendered when the zone is loaded, one octet string for
//! each (QNAME, QTYPE), so that answering is a table look-up and a copy. Owner names that equal
//! QNAME are the compression pointer 0xC00C (RFC 1035, section 4.1.4). Semantics: RFC 1034,
//! section 4.3.2; NODATA and NXDOMAIN with SOA as in RFC 2308; wildcards as in RFC 4592; a CNAME
//! is followed while its target is in the zone, and the RCODE is that of the last name (RFC 6604).
//! Not done: DNSSEC proofs, zone transfers, more than one zone.

mod load;
mod synthesised;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub use load::{ZoneError, survives_panics};
use synthesised::Synthesised;

pub(crate) const TYPE_A: u16 = 1;
pub(crate) const TYPE_NS: u16 = 2;
pub(crate) const TYPE_CNAME: u16 = 5;
pub(crate) const TYPE_SOA: u16 = 6;
pub(crate) const TYPE_TXT: u16 = 16;
pub(crate) const TYPE_AAAA: u16 = 28;
pub(crate) const TYPE_DS: u16 = 43;
pub(crate) const TYPE_ANY: u16 = 255;

/// RRSIG, NSEC and NSEC3, and the type that stands for all.
const NOT_ASKED: [u16; 4] = [46, 47, 50, TYPE_ANY];

pub(crate) const NOERROR: u8 = 0;
pub(crate) const NXDOMAIN: u8 = 3;
pub(crate) const REFUSED: u8 = 5;

/// The data that queries are answered from. Read-only once made; share it between workers.
#[derive(Debug)]
pub struct Zone {
    source: Source,
}

#[derive(Debug)]
enum Source {
    Table(Table),
    Synthesised(Synthesised),
}

/// What was appended for one question, and the header fields that go with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sections {
    pub(crate) rcode: u8,
    pub(crate) authoritative: bool,
    /// ANCOUNT, NSCOUNT, ARCOUNT.
    pub(crate) counts: [u16; 3],
}

impl Zone {
    /// Loads a zone from zone-file text (RFC 1035, section 5).
    ///
    /// `origin` is what relative names are completed with until the text has an `$ORIGIN`. The
    /// apex is the owner of the one SOA record.
    ///
    /// # Errors
    /// [`ZoneError`] says what in the text is wrong; nothing is loaded.
    pub fn from_text(text: &str, origin: Option<&str>) -> Result<Zone, ZoneError> {
        let table = load::load(text, origin)?;
        Ok(Zone {
            source: Source::Table(table),
        })
    }

    /// A zone in which every name exists: A, AAAA and TXT are derived from the name (the same
    /// name always has the same answer), every other type is NODATA. `ttl_s` is the TTL of all of
    /// it, in seconds.
    pub fn synthesised(ttl_s: u32) -> Zone {
        Zone {
            source: Source::Synthesised(Synthesised::new(ttl_s)),
        }
    }

    /// True if answers exist for any name, as from a recursive resolver (the RA bit is set).
    pub fn is_synthesised(&self) -> bool {
        matches!(self.source, Source::Synthesised(_))
    }

    /// Number of names with records, empty non-terminals included; `None` if every name has
    /// records.
    pub fn names(&self) -> Option<usize> {
        match &self.source {
            Source::Table(table) => Some(table.nodes.len()),
            Source::Synthesised(_) => None,
        }
    }

    /// The possible questions of a loaded zone: each owner, in lower-case wire format, with each of
    /// its types, unordered; without names at or below zone cuts, and without signatures and
    /// proofs.
    pub fn questions(&self) -> Vec<(&[u8], u16)> {
        let Source::Table(table) = &self.source else {
            return Vec::new();
        };
        let mut questions = Vec::new();
        for (name, at) in &table.names {
            let node = table.nodes[*at as usize];
            if node.is_delegated || name.starts_with(b"\x01*") {
                continue;
            }
            let own = &table.rendered[node.first as usize..][..node.count as usize];
            let types = own.iter().map(|rendered| rendered.qtype);
            let types = types.filter(|qtype| !NOT_ASKED.contains(qtype));
            questions.extend(types.map(|qtype| (&**name, qtype)));
        }
        questions
    }

    /// The zone cuts of a loaded zone, in lower-case wire format and in no order.
    pub fn zone_cuts(&self) -> Vec<&[u8]> {
        let Source::Table(table) = &self.source else {
            return Vec::new();
        };
        let is_cut = |name: &[u8]| {
            let above = name.get(usize::from(name[0]) + 1..).unwrap_or_default();
            let above = table.names.get(above).map(|at| table.nodes[*at as usize]);
            !above.is_some_and(|it| it.is_delegated)
        };
        let delegated = table.names.iter();
        let delegated = delegated.filter(|(_, at)| table.nodes[**at as usize].is_delegated);
        let names = delegated.map(|(name, _)| &**name);
        names.filter(|name| is_cut(name)).collect()
    }

    /// Appends the sections after the question to `out`.
    ///
    /// `qname` is in wire format, lower case, at offset 12 of the message. Does not allocate
    /// beyond the growth of `out`.
    #[inline]
    pub(crate) fn answer(&self, qname: &[u8], qtype: u16, out: &mut Vec<u8>) -> Sections {
        match &self.source {
            Source::Table(table) => {
                let rendered = table.find(qname, qtype);
                out.extend_from_slice(table.octets_of(rendered));
                rendered.sections
            }
            Source::Synthesised(synthesised) => synthesised.answer(qname, qtype, out),
        }
    }
}

/// The look-up table of a loaded zone.
#[derive(Debug)]
struct Table {
    names: HashMap<Box<[u8]>, u32, BuildHasherDefault<NameHasher>>,
    nodes: Vec<Node>,
    rendered: Vec<Rendered>,
    octets: Vec<u8>,
}

/// `Table::rendered` of a name that does not exist in the zone.
const RENDERED_NXDOMAIN: u32 = 0;
/// `Table::rendered` of a name without the type asked for.
const RENDERED_NODATA: u32 = 1;
/// No wildcard below this node.
const NO_WILDCARD: u32 = u32::MAX;

/// One name of the zone.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// Its answers by type are `rendered[first..first + count]`.
    first: u32,
    count: u32,
    /// The answer for all other types: NODATA, a CNAME, or a referral.
    other: u32,
    /// The node `*` below this one.
    wildcard: u32,
    /// At or below a zone cut: names below it are answered by `other`, the referral.
    is_delegated: bool,
}

#[derive(Clone, Copy, Debug)]
struct Rendered {
    qtype: u16,
    sections: Sections,
    start: u32,
    length: u32,
}

const OUTSIDE: Rendered = Rendered {
    qtype: 0,
    sections: Sections {
        rcode: REFUSED,
        authoritative: false,
        counts: [0; 3],
    },
    start: 0,
    length: 0,
};

impl Table {
    #[inline]
    fn octets_of(&self, rendered: Rendered) -> &[u8] {
        &self.octets[rendered.start as usize..][..rendered.length as usize]
    }

    #[inline]
    fn find(&self, qname: &[u8], qtype: u16) -> Rendered {
        match self.names.get(qname) {
            Some(&node) => self.pick(self.nodes[node as usize], qtype),
            None => self.find_above(qname, qtype),
        }
    }

    fn pick(&self, node: Node, qtype: u16) -> Rendered {
        let own = &self.rendered[node.first as usize..][..node.count as usize];
        match own.iter().find(|rendered| rendered.qtype == qtype) {
            Some(rendered) => *rendered,
            None => self.rendered[node.other as usize],
        }
    }

    /// The name does not exist: its closest encloser decides (RFC 4592, section 3.3.1).
    fn find_above(&self, qname: &[u8], qtype: u16) -> Rendered {
        let mut rest = qname;
        while let [length @ (1..), tail @ ..] = rest {
            rest = &tail[usize::from(*length)..];
            let Some(&encloser) = self.names.get(rest) else {
                continue;
            };
            let encloser = self.nodes[encloser as usize];
            if encloser.is_delegated {
                return self.rendered[encloser.other as usize];
            }
            return match self.nodes.get(encloser.wildcard as usize) {
                Some(&wildcard) => self.pick(wildcard, qtype),
                None => self.rendered[RENDERED_NXDOMAIN as usize],
            };
        }
        OUTSIDE
    }
}

/// Hashes a name eight octets at a time. The table is filled only from the zone, so that clients
/// cannot make it degenerate; SipHash would cost more than the rest of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NameHasher(u64);

impl NameHasher {
    #[inline]
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }

    /// A hash that is the same on every machine.
    #[inline]
    pub(crate) fn hash(name: &[u8]) -> u64 {
        let mut hasher = NameHasher(0);
        hasher.write_usize(name.len());
        hasher.write(name);
        hasher.finish()
    }
}

impl Hasher for NameHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.fold(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.fold(u64::from_le_bytes(last));
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.fold(number as u64 ^ 0x5bd1_e995);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
