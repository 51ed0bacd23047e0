//! From zone-file text to the look-up table.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use domain::base::iana::Class;
use domain::base::name::ToName;
use domain::base::rdata::ComposeRecordData;
use domain::zonefile::inplace::{Entry, ScannedRecord, Zonefile};

use super::{
    NO_WILDCARD, NOERROR, NXDOMAIN, Node, RENDERED_NODATA, Rendered, Sections, TYPE_A, TYPE_AAAA,
    TYPE_ANY, TYPE_CNAME, TYPE_DS, TYPE_NS, TYPE_SOA, Table,
};

/// CNAMEs followed for one answer; a longer chain (or a loop) ends there.
const CHAIN_MAX: usize = 8;

/// Most octets of a name's RRsets: they are answered in one message, with room for header,
/// question, aliases and OPT.
const RRSETS_OCTETS_MAX: usize = 65_000;
/// The longest message (RFC 1035, section 4.2.2).
const MESSAGE_OCTETS_MAX: usize = 65_535;

const TYPE_PTR: u16 = 12;
const TYPE_MX: u16 = 15;
const TYPE_SRV: u16 = 33;
const TYPE_DNAME: u16 = 39;

/// Why a text is not a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneError {
    /// The text breaks the syntax.
    Syntax {
        /// Counted from 1; 0 if not known.
        line: usize,
        /// What is wrong there.
        what: String,
    },
    /// The origin given is not a domain name.
    Origin(String),
    /// `$INCLUDE`, which is not followed; the file it names.
    Include(String),
    /// A name with an empty label, as the owner of this record or in its data; the owner.
    Name(String),
    /// There is no SOA record.
    NoSoa,
    /// There are SOA records at these two names.
    TwoSoas(String, String),
    /// A record outside the zone: its owner and the apex.
    Outside(String, String),
    /// A CNAME beside other records or a second CNAME (RFC 2181, section 10.1); the owner.
    CnameNotAlone(String),
    /// An RRset does not fit into a message; its owner.
    RrsetTooLong(String),
    /// All answers together do not fit into 4 GiB.
    ZoneTooLarge,
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ZoneError::Syntax { line, what } => write!(f, "zone file, line {line}: {what}"),
            ZoneError::Origin(text) => write!(f, "origin `{text}` is not a domain name"),
            ZoneError::Include(path) => {
                write!(
                    f,
                    "zone file: `$INCLUDE {path}` is not supported; put the records in line"
                )
            }
            ZoneError::Name(owner) => {
                write!(
                    f,
                    "zone file: a name of the record of `{owner}` has an empty label"
                )
            }
            ZoneError::NoSoa => {
                f.write_str("zone file: there is no SOA record, which would name the zone")
            }
            ZoneError::TwoSoas(first, second) => {
                write!(
                    f,
                    "zone file: SOA records at `{first}` and `{second}`; expected one zone"
                )
            }
            ZoneError::Outside(owner, apex) => {
                write!(f, "zone file: `{owner}` is outside the zone `{apex}`")
            }
            ZoneError::CnameNotAlone(owner) => {
                write!(f, "zone file: `{owner}` has a CNAME beside other records")
            }
            ZoneError::RrsetTooLong(owner) => {
                write!(
                    f,
                    "zone file: the records of `{owner}` do not fit into a message"
                )
            }
            ZoneError::ZoneTooLarge => f.write_str("zone file: more than 4 GiB of answers"),
        }
    }
}

impl std::error::Error for ZoneError {}

#[derive(Debug, Default)]
struct Rrset {
    ttl_s: u32,
    rdata: Vec<Vec<u8>>,
    /// Their octets in a message.
    octets: usize,
}

type Rrsets = BTreeMap<u16, Rrset>;

/// The zone as a tree of names (lower-case wire format), before rendering.
struct Tree {
    apex: Vec<u8>,
    names: BTreeMap<Vec<u8>, Rrsets>,
    /// The SOA record that negative answers carry.
    soa: Vec<u8>,
}

/// Where a name lies.
enum NameStatus<'a> {
    /// Outside the zone, or delegated.
    Elsewhere,
    Exists(&'a Rrsets),
    Nonexistent,
}

pub(super) fn load(text: &str, origin: Option<&str>) -> Result<Table, ZoneError> {
    let names = read(text, origin)?;
    let tree = Tree::new(names)?;
    render(&tree)
}

/// As [`scan`], which may panic.
fn read(text: &str, origin: Option<&str>) -> Result<BTreeMap<Vec<u8>, Rrsets>, ZoneError> {
    let quote_ends = check_closed(text)?;
    if let Some(names) = survive(|| scan((text, &quote_ends), origin)) {
        return names;
    }
    // The panic has no position: find the shortest prefix that panics too; the fault is in its last
    // line.
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    let panics = |end: &usize| {
        let begun = &text[..*end];
        let quote_ends = check_closed(begun);
        quote_ends.is_ok_and(|ends| survive(|| scan((begun, &ends), origin)).is_none())
    };
    Err(ZoneError::Syntax {
        line: ends.partition_point(|end| !panics(end)) + 1,
        what: "this line, or the record that ends here, cannot be read".to_owned(),
    })
}

thread_local! {
    /// This thread catches panics.
    static SURVIVES: Cell<bool> = const { Cell::new(false) };
}

/// True while this thread catches panics; panic hooks must not end the process then.
pub fn survives_panics() -> bool {
    SURVIVES.get()
}

/// What `work` returns; nothing if it panics.
fn survive<T>(work: impl FnOnce() -> T) -> Option<T> {
    SURVIVES.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    SURVIVES.set(false);
    outcome.ok()
}

/// Reads a text in which quotes end at these places.
fn scan(
    (text, quote_ends): (&str, &[usize]),
    origin: Option<&str>,
) -> Result<BTreeMap<Vec<u8>, Rrsets>, ZoneError> {
    let mut zonefile = Zonefile::with_capacity(text.len() + quote_ends.len() + 1);
    let mut done = 0;
    // The scanner panics at a name directly after a quote.
    for &end in quote_ends {
        zonefile.extend_from_slice(&text.as_bytes()[done..end]);
        zonefile.extend_from_slice(b" ");
        done = end;
    }
    // The scanner requires a line end after the last line.
    zonefile.extend_from_slice(&text.as_bytes()[done..]);
    zonefile.extend_from_slice(b"\n");
    // Records of another class are errors of syntax from here on.
    zonefile.set_default_class(Class::IN);
    if let Some(origin) = origin {
        let name = origin
            .parse()
            .map_err(|_| ZoneError::Origin(origin.to_owned()))?;
        zonefile.set_origin(name);
    }
    let mut names = BTreeMap::new();
    loop {
        match zonefile.next_entry() {
            Ok(Some(Entry::Record(record))) => insert(&mut names, &record)?,
            Ok(Some(Entry::Include { path, .. })) => {
                return Err(ZoneError::Include(path.to_string()));
            }
            Ok(None) => return Ok(names),
            Err(error) => return Err(syntax_error(&error.to_string())),
        }
    }
}

/// Refuses parentheses and quotes that are not closed (RFC 1035, section 5.1): the scanner reads
/// beyond the end of the text looking for them. Returns where quotes end.
fn check_closed(text: &str) -> Result<Vec<usize>, ZoneError> {
    let refuse = |line, what: &str| {
        let what = what.to_owned();
        Err(ZoneError::Syntax { line, what })
    };
    let (mut line, mut quoted_at) = (1, None);
    let (mut open, mut quote_ends) = (Vec::new(), Vec::new());
    let mut octets = text.bytes();
    while let Some(octet) = octets.next() {
        match octet {
            b'\n' => line += 1,
            b'\\' => line += usize::from(octets.next() == Some(b'\n')),
            b'"' if quoted_at.is_some() => {
                quoted_at = None;
                quote_ends.push(text.len() - octets.len());
            }
            b'"' => quoted_at = Some(line),
            _ if quoted_at.is_some() => {}
            b';' => {
                let at_end = octets.by_ref().any(|octet| octet == b'\n');
                line += usize::from(at_end);
            }
            b'(' => open.push(line),
            b')' if open.pop().is_none() => {
                return refuse(line, "a closing parenthesis without an opening one");
            }
            _ => {}
        }
    }
    if let Some(line) = quoted_at {
        return refuse(line, "the quote that begins here is not closed");
    }
    match open.last() {
        Some(line) => refuse(*line, "the parenthesis that opens here is not closed"),
        None => Ok(quote_ends),
    }
}

/// From the scanner's `line:column: what`, where the position is that after the offending token:
/// after the last token of a line it is the start of the next one.
fn syntax_error(text: &str) -> ZoneError {
    let mut parts = text.splitn(3, ':');
    let mut number = || parts.next().and_then(|part| part.parse::<usize>().ok());
    let (line, column) = (number(), number());
    match (line, column, parts.next()) {
        (Some(line), Some(column), Some(what)) => ZoneError::Syntax {
            line: if column == 1 {
                line.saturating_sub(1).max(1)
            } else {
                line
            },
            what: what.trim().to_owned(),
        },
        _ => ZoneError::Syntax {
            line: 0,
            what: text.to_owned(),
        },
    }
}

fn insert(names: &mut BTreeMap<Vec<u8>, Rrsets>, record: &ScannedRecord) -> Result<(), ZoneError> {
    let mut owner = Vec::new();
    let Ok(()) = record.owner().compose(&mut owner);
    // Label lengths are at most 63, below `A`: lowering a whole name changes letters only.
    owner.make_ascii_lowercase();
    let mut rdata = Vec::new();
    let Ok(()) = record.data().compose_rdata(&mut rdata);
    if !is_name(&owner) || !names_are_whole(record.rtype().to_int(), &rdata) {
        return Err(ZoneError::Name(format!("{}.", record.owner())));
    }
    let rrset = names
        .entry(owner)
        .or_default()
        .entry(record.rtype().to_int())
        .or_default();
    rrset.ttl_s = record.ttl().as_secs();
    // Compares with all records of the RRset, whose number is limited by its octets.
    if !rrset.rdata.contains(&rdata) {
        rrset.octets += record_octets(&rdata);
        rrset.rdata.push(rdata);
    }
    match rrset.octets > RRSETS_OCTETS_MAX {
        true => Err(ZoneError::RrsetTooLong(format!("{}.", record.owner()))),
        false => Ok(()),
    }
}

/// The scanner accepts empty labels (`a..b`), which would make responses malformed.
fn is_name(wire: &[u8]) -> bool {
    proto::name::wire_length(wire) == Some(wire.len())
}

/// True unless the RDATA of this type contains an invalid name.
fn names_are_whole(rtype: u16, rdata: &[u8]) -> bool {
    match rtype {
        TYPE_NS | TYPE_CNAME | TYPE_PTR | TYPE_DNAME => is_name(rdata),
        TYPE_MX => rdata.get(2..).is_some_and(is_name),
        TYPE_SRV => rdata.get(6..).is_some_and(is_name),
        TYPE_SOA => proto::name::wire_length(rdata)
            .and_then(|mname_octets| {
                let numbers_at = rdata.len().checked_sub(20)?;
                rdata.get(mname_octets..numbers_at)
            })
            .is_some_and(is_name),
        _ => true,
    }
}

/// The presentation format, for messages.
fn text(wire: &[u8]) -> String {
    domain::base::Name::from_slice(wire).map_or_else(|_| String::new(), |name| format!("{name}."))
}

/// The name without its first label; `None` for the root.
fn parent(name: &[u8]) -> Option<&[u8]> {
    match name {
        [length @ (1..), tail @ ..] => Some(&tail[usize::from(*length)..]),
        _ => None,
    }
}

/// The name and its ancestors, up to the root.
fn upwards(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(name), |name| parent(name))
}

impl Tree {
    fn new(mut names: BTreeMap<Vec<u8>, Rrsets>) -> Result<Tree, ZoneError> {
        let apex = find_apex(&names)?;
        let mut between = Vec::new();
        for (owner, rrsets) in &names {
            if !upwards(owner).any(|name| name == apex) {
                return Err(ZoneError::Outside(text(owner), text(&apex)));
            }
            check(owner, rrsets)?;
            // Names without records that have names below them exist (RFC 8020).
            let above = upwards(owner).take_while(|name| *name != apex).skip(1);
            between.extend(
                above
                    .filter(|name| !names.contains_key(*name))
                    .map(<[u8]>::to_vec),
            );
        }
        for name in between {
            names.entry(name).or_default();
        }
        let soa = negative_soa(&apex, &names[&apex][&TYPE_SOA]);
        Ok(Tree { apex, names, soa })
    }

    /// The topmost zone cut at or above `name`.
    fn cut(&self, name: &[u8]) -> Option<&[u8]> {
        let mut topmost = None;
        for above in upwards(name).take_while(|above| *above != self.apex) {
            if let Some((key, rrsets)) = self.names.get_key_value(above)
                && rrsets.contains_key(&TYPE_NS)
            {
                topmost = Some(key.as_slice());
            }
        }
        topmost
    }

    fn place(&self, name: &[u8]) -> NameStatus<'_> {
        let is_inside = upwards(name).any(|above| above == self.apex);
        if !is_inside || self.cut(name).is_some() {
            return NameStatus::Elsewhere;
        }
        if let Some(rrsets) = self.names.get(name) {
            return NameStatus::Exists(rrsets);
        }
        let wildcard = upwards(name)
            .skip(1)
            .find(|above| self.names.contains_key(*above))
            .and_then(|encloser| self.names.get(&wildcard_below(encloser)));
        wildcard.map_or(NameStatus::Nonexistent, NameStatus::Exists)
    }

    /// The answer for (`owner`, `qtype`), with CNAMEs followed; the first owner is QNAME itself.
    fn resolve(&self, rrsets: &Rrsets, qtype: u16) -> Draft {
        let mut draft = Draft::default();
        let mut owner = vec![0xc0, 0x0c];
        let mut rrsets = rrsets;
        for _ in 0..CHAIN_MAX {
            if let Some(rrset) = rrsets.get(&qtype) {
                draft.push(0, &owner, qtype, rrset);
                return draft;
            }
            let Some(cname) = rrsets.get(&TYPE_CNAME) else {
                draft.push_soa(&self.soa);
                return draft;
            };
            draft.push(0, &owner, TYPE_CNAME, cname);
            owner = cname.rdata[0].clone();
            match self.place(&owner.to_ascii_lowercase()) {
                NameStatus::Exists(next) => rrsets = next,
                NameStatus::Elsewhere => return draft,
                NameStatus::Nonexistent => {
                    draft.sections.rcode = NXDOMAIN;
                    draft.push_soa(&self.soa);
                    return draft;
                }
            }
        }
        draft
    }

    /// The types that a query for a name with these records can find: its own, or those at the
    /// end of its CNAMEs.
    fn types(&self, rrsets: &Rrsets) -> Vec<u16> {
        let mut rrsets = rrsets;
        for _ in 0..CHAIN_MAX {
            let Some(cname) = rrsets.get(&TYPE_CNAME) else {
                break;
            };
            match self.place(&cname.rdata[0].to_ascii_lowercase()) {
                NameStatus::Exists(next) => rrsets = next,
                _ => return Vec::new(),
            }
        }
        rrsets.keys().copied().collect()
    }

    /// The referral to the servers of `cut`, with the addresses that the zone has for them. Stops
    /// once there are too many for a message, since the response will be truncated.
    fn referral(&self, cut: &[u8]) -> Draft {
        let mut draft = Draft::default();
        draft.sections.authoritative = false;
        let servers = &self.names[cut][&TYPE_NS];
        draft.push(1, cut, TYPE_NS, servers);
        for server in &servers.rdata {
            if draft.octets.len() > MESSAGE_OCTETS_MAX {
                break;
            }
            let Some(rrsets) = self.names.get(&server.to_ascii_lowercase()) else {
                continue;
            };
            for qtype in [TYPE_A, TYPE_AAAA] {
                if let Some(rrset) = rrsets.get(&qtype) {
                    draft.push(2, server, qtype, rrset);
                }
            }
        }
        draft
    }
}

fn find_apex(names: &BTreeMap<Vec<u8>, Rrsets>) -> Result<Vec<u8>, ZoneError> {
    let mut owners = names
        .iter()
        .filter(|(_, rrsets)| rrsets.contains_key(&TYPE_SOA))
        .map(|(owner, _)| owner);
    let apex = owners.next().ok_or(ZoneError::NoSoa)?;
    if let Some(second) = owners.next() {
        return Err(ZoneError::TwoSoas(text(apex), text(second)));
    }
    if names[apex][&TYPE_SOA].rdata.len() > 1 {
        return Err(ZoneError::TwoSoas(text(apex), text(apex)));
    }
    Ok(apex.clone())
}

/// Octets of a record in a message: its RDATA, and its other fields with a pointer for its owner.
fn record_octets(rdata: &[u8]) -> usize {
    rdata.len() + 12
}

fn check(owner: &[u8], rrsets: &Rrsets) -> Result<(), ZoneError> {
    let octets = rrsets.values().map(|rrset| rrset.octets);
    if octets.sum::<usize>() > RRSETS_OCTETS_MAX {
        return Err(ZoneError::RrsetTooLong(text(owner)));
    }
    match rrsets.get(&TYPE_CNAME) {
        Some(cname) if rrsets.len() > 1 || cname.rdata.len() > 1 => {
            Err(ZoneError::CnameNotAlone(text(owner)))
        }
        _ => Ok(()),
    }
}

/// The apex SOA with the TTL of a negative answer: the lesser of its own and MINIMUM (RFC 2308,
/// section 3).
fn negative_soa(apex: &[u8], rrset: &Rrset) -> Vec<u8> {
    let rdata = &rrset.rdata[0];
    let minimum = rdata
        .last_chunk()
        .map_or(0, |octets| u32::from_be_bytes(*octets));
    let mut soa = Vec::new();
    write_record(&mut soa, apex, TYPE_SOA, rrset.ttl_s.min(minimum), rdata);
    soa
}

fn wildcard_below(name: &[u8]) -> Vec<u8> {
    [&[1, b'*'], name].concat()
}

fn write_record(octets: &mut Vec<u8>, owner: &[u8], rtype: u16, ttl_s: u32, rdata: &[u8]) {
    octets.extend_from_slice(owner);
    octets.extend_from_slice(&rtype.to_be_bytes());
    octets.extend_from_slice(&Class::IN.to_int().to_be_bytes());
    octets.extend_from_slice(&ttl_s.to_be_bytes());
    octets.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
    octets.extend_from_slice(rdata);
}

/// The sections after the question, being rendered.
struct Draft {
    sections: Sections,
    octets: Vec<u8>,
}

impl Default for Draft {
    fn default() -> Self {
        Draft {
            sections: Sections {
                rcode: NOERROR,
                authoritative: true,
                counts: [0; 3],
            },
            octets: Vec::new(),
        }
    }
}

impl Draft {
    fn push(&mut self, section: usize, owner: &[u8], rtype: u16, rrset: &Rrset) {
        for rdata in &rrset.rdata {
            write_record(&mut self.octets, owner, rtype, rrset.ttl_s, rdata);
        }
        self.sections.counts[section] += rrset.rdata.len() as u16;
    }

    fn push_soa(&mut self, soa: &[u8]) {
        self.octets.extend_from_slice(soa);
        self.sections.counts[1] += 1;
    }
}

fn render(tree: &Tree) -> Result<Table, ZoneError> {
    let mut table = Table {
        names: HashMap::default(),
        nodes: Vec::with_capacity(tree.names.len()),
        rendered: Vec::new(),
        octets: Vec::new(),
    };
    let mut nxdomain = Draft::default();
    nxdomain.push_soa(&tree.soa);
    nxdomain.sections.rcode = NXDOMAIN;
    store(&mut table, 0, &nxdomain)?;
    let mut nodata = Draft::default();
    nodata.push_soa(&tree.soa);
    store(&mut table, 0, &nodata)?;
    let mut referrals = HashMap::new();
    for (name, rrsets) in &tree.names {
        let node = match tree.cut(name) {
            Some(cut) => render_delegated(tree, &mut table, (cut, name, rrsets), &mut referrals)?,
            None => render_name(tree, &mut table, rrsets)?,
        };
        let index = table.nodes.len() as u32;
        table.nodes.push(node);
        table.names.insert(name.clone().into_boxed_slice(), index);
    }
    for name in tree.names.keys() {
        if let Some(&wildcard) = table.names.get(wildcard_below(name).as_slice()) {
            let index = table.names[name.as_slice()];
            table.nodes[index as usize].wildcard = wildcard;
        }
    }
    Ok(table)
}

fn render_name(tree: &Tree, table: &mut Table, rrsets: &Rrsets) -> Result<Node, ZoneError> {
    let first = table.rendered.len() as u32;
    for qtype in tree.types(rrsets) {
        store(table, qtype, &tree.resolve(rrsets, qtype))?;
    }
    let mut every = Draft::default();
    for (&rtype, rrset) in rrsets {
        every.push(0, &[0xc0, 0x0c], rtype, rrset);
    }
    if rrsets.contains_key(&TYPE_CNAME) {
        store(table, TYPE_CNAME, &every)?;
    }
    if !rrsets.is_empty() {
        store(table, TYPE_ANY, &every)?;
    }
    let count = table.rendered.len() as u32 - first;
    let other = if rrsets.contains_key(&TYPE_CNAME) {
        // Type 0 is reserved: nothing at the end of the chain has it.
        store(table, 0, &tree.resolve(rrsets, 0))?
    } else {
        RENDERED_NODATA
    };
    Ok(Node {
        first,
        count,
        other,
        wildcard: NO_WILDCARD,
        is_delegated: false,
    })
}

/// A name at or below a zone cut. All of one cut have one referral.
fn render_delegated<'t>(
    tree: &'t Tree,
    table: &mut Table,
    (cut, name, rrsets): (&'t [u8], &[u8], &Rrsets),
    referrals: &mut HashMap<&'t [u8], u32>,
) -> Result<Node, ZoneError> {
    let first = table.rendered.len() as u32;
    // The parent answers for DS at the cut itself (RFC 4035, section 3.1.4.1).
    if cut == name {
        store(table, TYPE_DS, &tree.resolve(rrsets, TYPE_DS))?;
    }
    let count = table.rendered.len() as u32 - first;
    let other = match referrals.get(cut) {
        Some(&other) => other,
        None => store(table, 0, &tree.referral(cut))?,
    };
    referrals.insert(cut, other);
    Ok(Node {
        first,
        count,
        other,
        wildcard: NO_WILDCARD,
        is_delegated: true,
    })
}

/// Adds the draft to the table; returns its index.
fn store(table: &mut Table, qtype: u16, draft: &Draft) -> Result<u32, ZoneError> {
    let start = u32::try_from(table.octets.len()).map_err(|_| ZoneError::ZoneTooLarge)?;
    table.octets.extend_from_slice(&draft.octets);
    table.rendered.push(Rendered {
        qtype,
        sections: draft.sections,
        start,
        length: draft.octets.len() as u32,
    });
    u32::try_from(table.rendered.len() - 1).map_err(|_| ZoneError::ZoneTooLarge)
}
