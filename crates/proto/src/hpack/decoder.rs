//! From field blocks to fields (RFC 7541, sections 3 and 6).

use super::{ENTRY_OVERHEAD_OCTETS, TABLE_OCTETS_INITIAL, huffman, integer, static_table};
use std::collections::VecDeque;
use std::ops::Range;

/// Octets that the fields of one block may take when decoded, each with 32 on top, as
/// SETTINGS_MAX_HEADER_LIST_SIZE counts them. One octet of a block can stand for 4,096.
const LIST_OCTETS_MAX: usize = 65_536;

/// A scratch buffer larger than this is freed after its block.
const SCRATCH_OCTETS_KEPT: usize = 512;

/// The media type that every DoH message has, as every Huffman encoder writes it; comparing is
/// cheaper than decoding.
const MEDIA_TYPE: &[u8] = b"application/dns-message";
pub(super) const MEDIA_TYPE_HUFFMAN: &[u8] = &[
    0x1d, 0x75, 0xd0, 0x62, 0x0d, 0x26, 0x3d, 0x4c, 0x49, 0x52, 0x16, 0xa4, 0xa8, 0x40, 0xe6, 0x2f,
];

/// Why a field block cannot be decoded: a connection error of type COMPRESSION_ERROR, because
/// both dynamic tables are no longer the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The block ends within a field.
    Truncated,
    /// An index, a length or a size is larger than any that makes sense.
    IntegerTooLarge,
    /// An index of neither table (sections 2.3.3 and 6.1).
    Index,
    /// A string with wrong padding or EOS in it (section 5.2).
    Huffman,
    /// A dynamic table larger than allowed, or resized between fields (sections 4.2 and 6.3).
    TableSize,
    /// The fields take more than 64 KiB.
    ListTooLong,
}

impl DecodeError {
    /// The fault in words.
    pub fn what(self) -> &'static str {
        match self {
            DecodeError::Truncated => "a field block ends within a field",
            DecodeError::IntegerTooLarge => "an integer in a field block is too large",
            DecodeError::Index => "a field block names an index that is in no table",
            DecodeError::Huffman => "a string in a field block is no Huffman code",
            DecodeError::TableSize => "a field block sets a table size that is not allowed",
            DecodeError::ListTooLong => "a field block stands for more than 64 KiB of fields",
        }
    }
}

/// The decoding side of one connection.
///
/// Holds its dynamic table, which takes no memory until the peer inserts something, and a scratch
/// buffer of at most 512 octets.
#[derive(Debug)]
pub struct Decoder {
    table: DynamicTable,
    /// The largest size that the peer may set.
    table_octets_limit: u32,
    scratch: Vec<u8>,
    /// How often the table was changed.
    table_changes: u32,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder {
            table: DynamicTable {
                octets_max: TABLE_OCTETS_INITIAL as usize,
                ..DynamicTable::default()
            },
            table_octets_limit: TABLE_OCTETS_INITIAL,
            scratch: Vec::new(),
            table_changes: 0,
        }
    }
}

impl Decoder {
    /// Sets the largest size that the peer may set, once it has acknowledged
    /// SETTINGS_HEADER_TABLE_SIZE. A larger table stays until the peer resizes it (section 4.2).
    pub fn set_table_limit(&mut self, octets: u32) {
        self.table_octets_limit = octets;
    }

    /// How often the peer has changed its table so far: equal blocks have equal fields for as long
    /// as this stays the same.
    pub fn table_changes(&self) -> u32 {
        self.table_changes
    }

    /// True if the peer has fields in its table. A block that is decoded without, and does not
    /// change it, has the same fields for every decoder.
    pub fn has_table(&self) -> bool {
        !self.table.entries.is_empty()
    }

    /// Hands the fields of a whole `block` to `on_field`, name and value, in order.
    ///
    /// Strings are passed on in place, or from a scratch buffer if they are Huffman codes.
    /// Allocates nothing unless the peer inserts into its dynamic table or a string is longer than
    /// any before.
    ///
    /// # Errors
    /// The connection cannot continue; fields before the fault have been passed on.
    pub fn decode(
        &mut self,
        block: &[u8],
        mut on_field: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), DecodeError> {
        let mut rest = block;
        let mut list_octets = 0;
        let mut resizable = true;
        while let Some(&first) = rest.first() {
            if first & 0xe0 == 0x20 {
                self.resize(&mut rest, resizable)?;
                continue;
            }
            resizable = false;
            list_octets += match first {
                0x80.. => self.indexed(&mut rest, &mut on_field)?,
                0x40.. => self.literal(&mut rest, true, &mut on_field)?,
                _ => self.literal(&mut rest, false, &mut on_field)?,
            };
            if list_octets > LIST_OCTETS_MAX {
                return Err(DecodeError::ListTooLong);
            }
        }
        if self.scratch.capacity() > SCRATCH_OCTETS_KEPT {
            self.scratch = Vec::new();
        }
        Ok(())
    }

    /// A change of the table's size (section 6.3).
    fn resize(&mut self, rest: &mut &[u8], allowed: bool) -> Result<(), DecodeError> {
        let octets = integer::read(rest, 5)?;
        if !allowed || octets > self.table_octets_limit {
            return Err(DecodeError::TableSize);
        }
        self.table.resize(octets as usize);
        self.table_changes = self.table_changes.wrapping_add(1);
        Ok(())
    }

    /// An indexed field (section 6.1); returns what it counts.
    fn indexed(
        &self,
        rest: &mut &[u8],
        on_field: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, DecodeError> {
        let index = integer::read(rest, 7)?;
        let (name, value) = entry(&self.table, index)?;
        on_field(name, value);
        Ok(counted_octets(name, value))
    }

    /// A literal (section 6.2), which `inserts` itself into the table or not.
    fn literal(
        &mut self,
        rest: &mut &[u8],
        inserts: bool,
        on_field: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, DecodeError> {
        let index = integer::read(rest, if inserts { 6 } else { 4 })?;
        self.scratch.clear();
        let name = match index {
            0 => read_string(rest, &mut self.scratch)?,
            1..=static_table::INDEX_MAX => {
                let (name, _) = static_table::entry(index).ok_or(DecodeError::Index)?;
                Text::InPlace(name.as_bytes())
            }
            _ => {
                // A copy: the insertion below may evict the entry (section 4.4).
                let (name, _) = entry(&self.table, index)?;
                self.scratch.extend_from_slice(name);
                Text::Scratch(0..name.len())
            }
        };
        let value = read_string(rest, &mut self.scratch)?;
        let (name, value) = (name.of(&self.scratch), value.of(&self.scratch));
        on_field(name, value);
        if inserts {
            self.table.insert(name, value);
            self.table_changes = self.table_changes.wrapping_add(1);
        }
        Ok(counted_octets(name, value))
    }

    /// Octets that the dynamic table counts now.
    #[cfg(test)]
    pub(super) fn table_octets(&self) -> usize {
        self.table.octets
    }

    /// The dynamic table from its newest entry on.
    #[cfg(test)]
    pub(super) fn table_entries(&self) -> Vec<(String, String)> {
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        (0..self.table.entries.len())
            .filter_map(|place| self.table.get(place))
            .map(|(name, value)| (text(name), text(value)))
            .collect()
    }
}

/// What a field counts in lists and tables (section 4.1).
fn counted_octets(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + ENTRY_OVERHEAD_OCTETS
}

/// A string of a block.
enum Text<'a> {
    InPlace(&'a [u8]),
    /// Where it is in the scratch buffer.
    Scratch(Range<usize>),
}

impl<'a> Text<'a> {
    fn of<'b>(self, scratch: &'b [u8]) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Text::InPlace(octets) => octets,
            Text::Scratch(range) => &scratch[range],
        }
    }
}

/// Takes a string (section 5.2) from the front of `rest`.
fn read_string<'a>(rest: &mut &'a [u8], scratch: &mut Vec<u8>) -> Result<Text<'a>, DecodeError> {
    let is_huffman = rest.first().is_some_and(|first| first & 0x80 != 0);
    let octets = integer::read(rest, 7)? as usize;
    let (encoded, after) = rest
        .split_at_checked(octets)
        .ok_or(DecodeError::Truncated)?;
    *rest = after;
    if !is_huffman {
        return Ok(Text::InPlace(encoded));
    }
    if encoded == MEDIA_TYPE_HUFFMAN {
        return Ok(Text::InPlace(MEDIA_TYPE));
    }
    let start = scratch.len();
    huffman::decode(encoded, scratch).map_err(|_| DecodeError::Huffman)?;
    Ok(Text::Scratch(start..scratch.len()))
}

/// Name and value of `index` in both tables (section 2.3.3).
fn entry(table: &DynamicTable, index: u32) -> Result<(&[u8], &[u8]), DecodeError> {
    if let Some((name, value)) = static_table::entry(index) {
        return Ok((name.as_bytes(), value.as_bytes()));
    }
    let place = index.checked_sub(static_table::INDEX_MAX + 1);
    place
        .and_then(|place| table.get(place as usize))
        .ok_or(DecodeError::Index)
}

/// The fields that the peer inserted, newest first (section 2.3.2).
#[derive(Debug, Default)]
struct DynamicTable {
    /// Oldest first.
    entries: VecDeque<Entry>,
    /// Names and values; those of evicted entries stay in front until there are too many.
    text: Vec<u8>,
    octets: usize,
    octets_max: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where its name starts in `text`; its value follows.
    start: u32,
    name_octets: u16,
    value_octets: u16,
}

impl Entry {
    fn text_octets(self) -> usize {
        usize::from(self.name_octets) + usize::from(self.value_octets)
    }
}

impl DynamicTable {
    /// The entry inserted `place` insertions before the newest.
    fn get(&self, place: usize) -> Option<(&[u8], &[u8])> {
        let newest = self.entries.len().checked_sub(1)?;
        let entry = self.entries.get(newest.checked_sub(place)?)?;
        let text = &self.text[entry.start as usize..][..entry.text_octets()];
        Some(text.split_at(usize::from(entry.name_octets)))
    }

    /// Evicts entries that no longer fit (section 4.4); an entry larger than the table empties it.
    fn insert(&mut self, name: &[u8], value: &[u8]) {
        let octets = counted_octets(name, value);
        self.evict_to(self.octets_max.saturating_sub(octets));
        if octets > self.octets_max {
            return;
        }
        if self.text.len() > 2 * self.octets_max {
            self.drop_evicted_text();
        }
        // No field in the table is longer than the table, which is limited to 4,096 octets or to
        // what our own settings say.
        let (Ok(name_octets), Ok(value_octets)) = (name.len().try_into(), value.len().try_into())
        else {
            return;
        };
        self.entries.push_back(Entry {
            start: self.text.len() as u32,
            name_octets,
            value_octets,
        });
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        self.octets += octets;
    }

    fn evict_to(&mut self, octets: usize) {
        while self.octets > octets {
            let Some(entry) = self.entries.pop_front() else {
                return;
            };
            self.octets -= entry.text_octets() + ENTRY_OVERHEAD_OCTETS;
        }
    }

    fn drop_evicted_text(&mut self) {
        let start = match self.entries.front() {
            Some(oldest) => oldest.start,
            None => self.text.len() as u32,
        };
        self.text.drain(..start as usize);
        for entry in &mut self.entries {
            entry.start -= start;
        }
    }

    /// Changes the size that entries may take; a table of size zero frees its memory.
    fn resize(&mut self, octets_max: usize) {
        self.octets_max = octets_max;
        self.evict_to(octets_max);
        if octets_max == 0 {
            self.entries = VecDeque::new();
            self.text = Vec::new();
        }
    }
}
