//! The run record as JSON, as [`measure::RunRecord::from_json`] reads it, and other JSON.

use std::io::{self, Write};

use measure::RunRecord;
use serde_json::Value;

/// The record with one field a line, ending in a line break; for files that people look into.
pub fn render(record: &RunRecord) -> String {
    let mut json = record.to_json_pretty();
    json.push('\n');
    json
}

/// Writes the same piece by piece: of a long run it is tens of megabytes.
///
/// # Errors
/// Those of the writer.
pub fn write(record: &RunRecord, mut to: impl Write) -> io::Result<()> {
    record.write_json_pretty(&mut to)?;
    to.write_all(b"\n")
}

/// Any other JSON with one field a line, ending in a line break.
pub fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn it_is_the_whole_record() {
        let record = example::dot();
        let json = render(&record);
        assert!(json.ends_with("}\n"));
        let mut written = Vec::new();
        write(&record, &mut written).expect("memory takes it");
        assert_eq!(written, json.as_bytes());
        assert_eq!(RunRecord::from_json(&json).as_ref(), Ok(&record));
        let value: Value = serde_json::from_str(&json).expect("is JSON");
        assert_eq!(value["total"]["counts"]["rcodes"]["NXDOMAIN"], 900);
    }
}
