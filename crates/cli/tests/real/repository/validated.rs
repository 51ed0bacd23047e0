//! Published schemas and the documents that they describe, validated by a program that is not ours:
//! Python's jsonschema.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use testing::folder::Folder;
use testing::program::execute;

const THRONG: &str = env!("CARGO_BIN_EXE_throng");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Debian's Python, which has Debian's jsonschema.
const PYTHON: &str = "/usr/bin/python3";

/// The schemas of what commands print, each with a required field of it.
const PRINTED: [(&str, &str); 6] = [
    ("run-record", "total"),
    ("run-record", "groups"),
    ("capacity", "trials"),
    ("ramp", "plan"),
    ("compare", "a"),
    ("compare-transports", "costs"),
];

/// Commands that print them, in that order.
const COMMANDS: [&str; 6] = [
    "run --driver sim --duration 1s",
    "run \"$root/scenarios/sinodun.toml\" --driver sim --warmup 0s --duration 2s",
    "capacity --driver sim --repeat 1 --trial-duration 1s --max 4k",
    "ramp --driver sim --to 2k --over 2s",
    "compare --a '--driver sim --duration 1s' --b '--driver sim --duration 1s' --repeat 3",
    "compare-transports --driver sim --duration 1s --transports udp,tcp,dot",
];

/// Scenarios that the schema has to refuse, and what is wrong.
const REFUSED_SCENARIOS: [(&str, &str); 4] = [
    ("type", "population = [\"1000\"]\n"),
    ("key", "populations = 1000\n"),
    ("choice", "arrival = \"even\"\n"),
    ("table", "clients = [3]\n"),
];

/// A document and the name of its schema.
pub(crate) struct Document {
    pub(crate) schema: &'static str,
    pub(crate) path: String,
}

/// Runs all commands; what they printed.
pub(crate) fn printed(folder: &Folder) -> Vec<Document> {
    let mut script = format!("set -eu\nroot={ROOT}\ncd {}\n", folder.path(""));
    let mut documents = Vec::new();
    for (number, command) in COMMANDS.iter().enumerate() {
        let path = folder.path(&format!("{number}.json"));
        script += &format!("{THRONG} {command} --format json >{path}\n");
        let schema = PRINTED[number].0;
        documents.push(Document { schema, path });
    }
    let script = folder.write("print.sh", script);
    execute(&format!("bash {script}")).succeeded();
    documents
}

/// All scenarios of the repository.
fn scenarios() -> Vec<Document> {
    let files = fs::read_dir(Path::new(ROOT).join("scenarios")).unwrap();
    let paths = files.map(|file| file.unwrap().path().to_str().unwrap().to_owned());
    let scenarios = paths.filter(|path| path.ends_with(".toml"));
    let scenario = |path| Document {
        schema: "scenario",
        path,
    };
    scenarios.map(scenario).collect()
}

/// Documents that lack a required field, have one of the wrong type, or one that there is not.
fn damaged(folder: &Folder, valid: &[Document]) -> Vec<Document> {
    let mut damaged = Vec::new();
    for (number, (document, (schema, field))) in valid.iter().zip(PRINTED).enumerate() {
        let text = fs::read_to_string(&document.path).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let mut write = |what: &str, change: &dyn Fn(&mut Map<String, Value>)| {
            let mut changed = value.clone();
            change(changed.as_object_mut().unwrap());
            let name = format!("{number}-{what}.json");
            let path = folder.write(&name, changed.to_string());
            damaged.push(Document { schema, path });
        };
        write("missing", &|it| drop(it.remove(field).unwrap()));
        write("type", &|it| drop(it.insert(field.to_owned(), json!(true))));
        write("more", &|it| drop(it.insert("more".to_owned(), json!(1))));
    }
    for (what, text) in REFUSED_SCENARIOS {
        let path = folder.write(&format!("{what}.toml"), text);
        damaged.push(Document {
            schema: "scenario",
            path,
        });
    }
    damaged
}

/// What the validator says of the schemas in a folder and of documents: name or path, and finding.
fn validate(schemas: &str, documents: &[&Document]) -> Vec<(String, String)> {
    let script = format!("{ROOT}/crates/cli/tests/real/repository/validate.py");
    let mut line = format!("{PYTHON} -I {script} {schemas}");
    for document in documents {
        line += &format!(" {} {}", document.schema, document.path);
    }
    let found = execute(&line).succeeded();
    let split = |line: &str| {
        let (name, finding) = line.split_once(' ').unwrap();
        (name.to_owned(), finding.to_owned())
    };
    found.lines().map(split).collect()
}

#[test]
fn independent_validator_accepts_schemas_and_documents_and_refuses_damaged_ones() {
    let folder = Folder::new("validated");
    let mut valid = printed(&folder);
    let damaged = damaged(&folder, &valid);
    valid.extend(scenarios());
    assert!(valid.len() > PRINTED.len(), "no scenarios");
    let all: Vec<&Document> = valid.iter().chain(&damaged).collect();
    let found = validate(&format!("{ROOT}/docs"), &all);
    let (schemas, documents) = found.split_at(found.len() - all.len());
    assert_eq!(schemas.len(), 6, "{schemas:?}");
    let (valid, damaged) = documents.split_at(valid.len());
    for (name, finding) in schemas.iter().chain(valid) {
        assert_eq!(finding, "valid", "{name}");
    }
    for (name, finding) in damaged {
        assert!(finding.starts_with("invalid: $"), "{name}: {finding}");
    }
}

#[test]
fn schema_of_no_draft_or_against_its_draft_is_refused() {
    let of_draft = |kind: &str| {
        let draft = "https://json-schema.org/draft/2020-12/schema";
        format!("{{\"$schema\": \"{draft}\", \"type\": \"{kind}\"}}")
    };
    let (wrong, right) = (of_draft("objekt"), of_draft("object"));
    let folder = Folder::with(
        "validated-schemas",
        &[
            ("a.schema.json", "{\"type\": \"object\"}"),
            ("b.schema.json", wrong.as_str()),
            ("c.schema.json", right.as_str()),
        ],
    );
    let found = validate(&folder.path(""), &[]);
    let findings: Vec<&str> = found.iter().map(|(_, finding)| finding.as_str()).collect();
    let [without, wrong, "valid"] = findings[..] else {
        panic!("{findings:?}");
    };
    assert!(without.contains("no known draft"), "{without}");
    assert!(wrong.starts_with("invalid: $.type"), "{wrong}");
}
