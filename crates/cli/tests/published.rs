//! Files that are published are those that the code makes.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::path::Path;

#[test]
fn the_published_schema_of_the_run_record_is_the_one_that_the_code_makes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/run-record.schema.json");
    let published = std::fs::read_to_string(path).unwrap();
    let made = serde_json::to_string_pretty(&measure::RunRecord::json_schema()).unwrap();
    let cure = "write it anew: cargo run -- schema > docs/run-record.schema.json";
    assert!(published == format!("{made}\n"), "{cure}");
}
