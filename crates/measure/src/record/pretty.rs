//! JSON for people and for `diff`: one field a line, but no line break within arrays.
//!
//! A histogram has hundreds of numbers; on a line each, the record would be unreadable.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// `serde_json`'s pretty form with the compact form of arrays.
struct ArraysOnOneLine(PrettyFormatter<'static>);

impl Formatter for ArraysOnOneLine {
    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

/// A record as indented JSON.
pub(super) fn to_string(record: &impl Serialize) -> String {
    let mut octets = Vec::new();
    write(record, &mut octets).expect("all keys are strings and memory takes every byte");
    String::from_utf8(octets).expect("serde_json writes UTF-8")
}

/// Writes a record as indented JSON.
pub(super) fn write(record: &impl Serialize, to: impl Write) -> io::Result<()> {
    let formatter = ArraysOnOneLine(PrettyFormatter::new());
    let mut serializer = Serializer::with_formatter(to, formatter);
    Ok(record.serialize(&mut serializer)?)
}
