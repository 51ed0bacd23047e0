//! From fields to field blocks, for blocks that are nearly the same (RFC 7541, sections 4 and 6).
//!
//! The peer's dynamic table is filled and never evicted from: first with the fields that every
//! block has, then with values of numeric fields as they occur. So an entry's index is arithmetic,
//! and once the table is full the rest is sent as literals. The only loss is a table that the
//! peer makes smaller, which starts from nothing.

use super::{ENTRY_OVERHEAD_OCTETS, TABLE_OCTETS_INITIAL, huffman, integer, static_table};

/// Values of numeric fields that are kept in the table; with the fields before them they have
/// indices of one octet.
const NUMBERS_MAX: usize = 60;

/// A field as it is written, rendered in advance.
#[derive(Clone, Debug)]
pub struct Field {
    inserting: Box<[u8]>,
    plain: Box<[u8]>,
    table_octets: u32,
}

impl Field {
    /// Renders a field; `name` is in lower case.
    pub fn new(name: &str, value: &str) -> Self {
        Field {
            inserting: literal(0x40, 6, name, value).into(),
            plain: literal(0, 4, name, value).into(),
            table_octets: (name.len() + value.len() + ENTRY_OVERHEAD_OCTETS) as u32,
        }
    }

    /// The field as the encoder takes it.
    pub fn borrowed(&self) -> FieldRef<'_> {
        FieldRef {
            inserting: &self.inserting,
            plain: &self.plain,
            table_octets: self.table_octets,
        }
    }
}

/// A rendered field, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct FieldRef<'a> {
    /// With incremental indexing (section 6.2.1).
    pub inserting: &'a [u8],
    /// Without indexing (section 6.2.2).
    pub plain: &'a [u8],
    /// What its entry counts: name, value and 32.
    pub table_octets: u32,
}

/// A literal whose index has a prefix of `prefix_bits`; strings as Huffman codes if those are
/// shorter.
fn literal(flags: u8, prefix_bits: u8, name: &str, value: &str) -> Vec<u8> {
    let mut out = Vec::new();
    match static_table::name_index(name) {
        Some(index) => integer::write(flags, prefix_bits, index, &mut out),
        None => {
            out.push(flags);
            write_string(name.as_bytes(), &mut out);
        }
    }
    write_string(value.as_bytes(), &mut out);
    out
}

fn write_string(text: &[u8], out: &mut Vec<u8>) {
    let encoded_octets = huffman::encoded_octets(text);
    if encoded_octets < text.len() {
        integer::write(0x80, 7, encoded_octets as u32, out);
        huffman::encode(text, out);
    } else {
        integer::write(0, 7, text.len() as u32, out);
        out.extend_from_slice(text);
    }
}

/// A field whose value is a decimal number behind a fixed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberField {
    /// Its name's index in the static table.
    pub static_index: u8,
    /// Octets of its name.
    pub name_octets: u8,
    /// The text before the number.
    pub before: &'static str,
}

impl NumberField {
    /// `content-length: N`.
    pub const CONTENT_LENGTH: NumberField = NumberField {
        static_index: 28,
        name_octets: 14,
        before: "",
    };

    /// `cache-control: max-age=N`.
    pub const MAX_AGE: NumberField = NumberField {
        static_index: 24,
        name_octets: 13,
        before: "max-age=",
    };
}

/// The encoding side of one connection.
#[derive(Debug)]
pub struct Encoder {
    /// Size of our entries.
    octets: u32,
    /// Largest size of our entries: never more than the initial 4,096.
    octets_max: u32,
    /// The next block begins with a change of the table's size.
    resized: bool,
    /// Fields in the table; the first was inserted first.
    fields: u8,
    /// Numbers in the table after the fields.
    numbers: Vec<(u8, u32)>,
    /// How often the table was changed, or has to be.
    table_changes: u32,
}

impl Default for Encoder {
    fn default() -> Self {
        Encoder {
            octets: 0,
            octets_max: TABLE_OCTETS_INITIAL,
            resized: false,
            fields: 0,
            numbers: Vec::new(),
            table_changes: 0,
        }
    }
}

impl Encoder {
    /// Obeys the peer's SETTINGS_HEADER_TABLE_SIZE from the next block on.
    pub fn set_table_limit(&mut self, octets: u32) {
        let octets_max = octets.min(TABLE_OCTETS_INITIAL);
        if octets_max < self.octets_max {
            // Size zero comes first and empties the table (section 4.2).
            self.resized = true;
            self.note_change();
            self.octets = 0;
            self.fields = 0;
            self.numbers.clear();
        }
        // A raised limit only takes effect with a size update in a block, which is not worth it.
        self.octets_max = self.octets_max.min(octets_max);
    }

    /// How often the table was changed so far, or has to be: equal fields have equal octets for as
    /// long as this stays the same.
    #[inline]
    pub fn table_changes(&self) -> u32 {
        self.table_changes
    }

    fn note_change(&mut self) {
        self.table_changes = self.table_changes.wrapping_add(1);
    }

    /// The octet that stands for a numeric field; `None` if there is no such.
    #[inline]
    pub fn known_number(&self, field: NumberField, value: u32) -> Option<u8> {
        let entry = (field.static_index, value);
        let place = self.numbers.iter().position(|known| *known == entry)?;
        // The newest entry is the first behind the static table.
        let index = static_table::INDEX_MAX as usize + self.numbers.len() - place;
        (index < 127).then_some(0x80 | index as u8)
    }

    /// Begins a block.
    pub fn start_block(&mut self, out: &mut Vec<u8>) {
        if self.resized {
            self.resized = false;
            self.note_change();
            out.push(0x20);
            if self.octets_max > 0 {
                integer::write(0x20, 5, self.octets_max, out);
            }
        }
    }

    /// Appends an entry of the static table.
    pub fn static_entry(&self, index: u8, out: &mut Vec<u8>) {
        out.push(0x80 | index);
    }

    /// Appends field number `ordinal` of those that the blocks of this connection have in common.
    ///
    /// The same ordinal must always be the same field. Fields enter the table in the order of
    /// their ordinals, before any number; those for which there is no room stay literals.
    pub fn field(&mut self, ordinal: u8, field: FieldRef<'_>, out: &mut Vec<u8>) {
        if ordinal < self.fields {
            self.write_index(u32::from(ordinal), out);
        } else if ordinal == self.fields && self.numbers.is_empty() && self.admits(&field) {
            self.fields += 1;
            self.octets += field.table_octets;
            self.note_change();
            out.extend_from_slice(field.inserting);
        } else {
            out.extend_from_slice(field.plain);
        }
    }

    /// Appends a numeric field, which enters the table as long as there is room.
    pub fn number(&mut self, field: NumberField, value: u32, out: &mut Vec<u8>) {
        let entry = (field.static_index, value);
        if let Some(place) = self.numbers.iter().position(|known| *known == entry) {
            self.write_index(u32::from(self.fields) + place as u32, out);
            return;
        }
        let mut digits = [0; 10];
        let digits = decimal(value, &mut digits);
        let value_octets = field.before.len() + digits.len();
        let octets = usize::from(field.name_octets) + value_octets + ENTRY_OVERHEAD_OCTETS;
        let enters = self.numbers.len() < NUMBERS_MAX && self.has_room(octets as u32);
        match enters {
            true => integer::write(0x40, 6, u32::from(field.static_index), out),
            false => integer::write(0, 4, u32::from(field.static_index), out),
        }
        integer::write(0, 7, value_octets as u32, out);
        out.extend_from_slice(field.before.as_bytes());
        out.extend_from_slice(digits);
        if enters {
            self.octets += octets as u32;
            self.numbers.push(entry);
            self.note_change();
        }
    }

    /// Appends a literal that is not indexed and not Huffman-coded, with a name of the static
    /// table; `write_value` appends the value, of `octets`.
    pub fn literal(
        &self,
        static_index: u8,
        octets: usize,
        out: &mut Vec<u8>,
        write_value: impl FnOnce(&mut Vec<u8>),
    ) {
        integer::write(0, 4, u32::from(static_index), out);
        integer::write(0, 7, octets as u32, out);
        write_value(out);
    }

    fn admits(&self, field: &FieldRef<'_>) -> bool {
        self.fields < u8::MAX && self.has_room(field.table_octets)
    }

    fn has_room(&self, octets: u32) -> bool {
        self.octets + octets <= self.octets_max
    }

    /// The index of the entry that was inserted after `before` others.
    fn write_index(&self, before: u32, out: &mut Vec<u8>) {
        let entries = u32::from(self.fields) + self.numbers.len() as u32;
        let index = static_table::INDEX_MAX + entries - before;
        integer::write(0x80, 7, index, out);
    }
}

/// The decimal digits of `value`, in `digits`.
fn decimal(value: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut rest = value;
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            return &digits[start..];
        }
    }
}
