//! The run record as JSON, as [`measure::RunRecord::from_json`] reads it, and other JSON.

use measure::RunRecord;
use serde_json::Value;

/// The record with one field a line, ending in a line break; for files that people look into.
pub fn render(record: &RunRecord) -> String {
    let mut json = record.to_json_pretty();
    json.push('\n');
    json
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
        assert_eq!(RunRecord::from_json(&json).as_ref(), Ok(&record));
        let value: Value = serde_json::from_str(&json).expect("is JSON");
        assert_eq!(value["total"]["counts"]["rcodes"]["NXDOMAIN"], 900);
    }
}
