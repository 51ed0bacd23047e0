//! Files that are published are those that the code makes.

use std::path::Path;

fn published(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The schema of scenarios is made from the flags of the binary.
#[test]
fn the_published_schema_of_scenarios_is_the_one_that_the_code_makes() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_throng"));
    let made = command.args(["schema", "scenario"]).output().unwrap();
    let cure = "write it anew: cargo run -- schema scenario > docs/scenario.schema.json";
    assert!(
        published("scenario.schema.json").into_bytes() == made.stdout,
        "{cure}"
    );
}

#[test]
fn the_published_schema_of_the_run_record_is_the_one_that_the_code_makes() {
    let made = serde_json::to_string_pretty(&measure::RunRecord::json_schema()).unwrap();
    let cure = "write it anew: cargo run -- schema > docs/run-record.schema.json";
    assert!(
        published("run-record.schema.json") == format!("{made}\n"),
        "{cure}"
    );
}

#[test]
fn the_published_schema_of_capacities_is_the_one_that_the_code_makes() {
    let made = serde_json::to_string_pretty(&measure::Capacity::json_schema()).unwrap();
    let cure = "write it anew: cargo run -- schema capacity > docs/capacity.schema.json";
    assert!(
        published("capacity.schema.json") == format!("{made}\n"),
        "{cure}"
    );
}

#[test]
fn the_published_schema_of_ramps_is_the_one_that_the_code_makes() {
    let made = serde_json::to_string_pretty(&measure::Ramp::json_schema()).unwrap();
    let cure = "write it anew: cargo run -- schema ramp > docs/ramp.schema.json";
    assert!(
        published("ramp.schema.json") == format!("{made}\n"),
        "{cure}"
    );
}

#[test]
fn the_published_schemas_of_comparisons_are_those_that_the_code_makes() {
    for (name, schema) in [
        ("compare", measure::AbComparison::json_schema()),
        ("compare-transports", measure::Comparison::json_schema()),
    ] {
        let made = serde_json::to_string_pretty(&schema).unwrap();
        let file = format!("{name}.schema.json");
        assert!(
            published(&file) == format!("{made}\n"),
            "write it anew: cargo run -- schema {name} > docs/{file}"
        );
    }
}

#[test]
fn the_published_tables_are_those_that_the_code_makes() {
    let cure = "write it anew: cargo run -- schema verdict > docs/verdict.md";
    assert!(
        published("verdict.md") == measure::verdict_document(),
        "{cure}"
    );
    let cure = "write it anew: cargo run -- schema observations > docs/observations.md";
    assert!(
        published("observations.md") == observe::profiles::tables(),
        "{cure}"
    );
    let cure = "write it anew: cargo run -- schema metrics > docs/metrics.md";
    assert!(
        published("metrics.md") == measure::Metric::table(),
        "{cure}"
    );
}
