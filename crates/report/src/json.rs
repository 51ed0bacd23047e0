//! The run record as JSON, as [`measure::RunRecord::from_json`] reads it.

use measure::RunRecord;

/// The record with one field a line, ending in a line break; for files that people look into.
pub fn render(record: &RunRecord) -> String {
    let mut json = record.to_json_pretty();
    json.push('\n');
    json
}

/// The record on a single line, ending in a line break; for logs and streams of records.
pub fn render_compact(record: &RunRecord) -> String {
    let mut json = record.to_json();
    json.push('\n');
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn both_forms_are_the_whole_record() {
        let record = example::dot();
        let compact = render_compact(&record);
        assert_eq!(compact.lines().count(), 1);
        for json in [compact, render(&record)] {
            assert!(json.ends_with("}\n"));
            assert_eq!(RunRecord::from_json(&json).as_ref(), Ok(&record));
            let value: serde_json::Value = serde_json::from_str(&json).expect("is JSON");
            assert_eq!(value["total"]["counts"]["rcodes"]["NXDOMAIN"], 900);
        }
    }
}
