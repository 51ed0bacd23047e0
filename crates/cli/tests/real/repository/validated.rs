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
    "run --driver sim --duration 1s --fail-if 'p99 > 10s'",
    "run \"$root/scenarios/sinodun.toml\" --driver sim --warmup 0s --duration 2s",
    "capacity --driver sim --repeat 1 --trial-duration 1s --max 4k",
    "ramp --driver sim --to 2k --over 2s",
    "compare --a '--driver sim --duration 1s' --b '--driver sim --duration 1s' --repeat 3 \
     --fail-if 'p99 > 10s'",
    "compare-transports --driver sim --duration 1s --transports udp,tcp,dot",
];

/// Documents that commands print beside results: schema, a required field of the document or of the
/// first of a list, and command. `0.json` and `1.json` are records, `records` has one, and a
/// responder is at `$address`.
const FURTHER: [(&str, &str, &str); 13] = [
    ("report", "cells", "report 0.json 1.json --format json"),
    ("doctor", "diagnoses", "doctor --format json"),
    ("doctor", "runs", "doctor 0.json 1.json --format json"),
    ("ceilings", "ceilings", "ceiling --queries 100 --json"),
    (
        "history-list",
        "figures",
        "history list --records records --format json",
    ),
    (
        "history-trend",
        "groups",
        "history trend p99 --records records --by transport --format json",
    ),
    (
        "ping",
        "event",
        "ping example.org --server $address --count 1 --format json | head -n 1",
    ),
    (
        "ping",
        "statistics",
        "ping example.org --server $address --count 1 --format json | tail -n 1",
    ),
    (
        "eval",
        "rows",
        "eval example.org --server $address --count 2 --format json",
    ),
    (
        "trace",
        "hops",
        "trace example.org --server $address --format json",
    ),
    ("lab-list", "addresses", "lab list --format json"),
    (
        "experiment-results",
        "cells",
        "experiment results rates --format json",
    ),
    (
        "experiment-claims",
        "claims",
        "experiment claims rates claims.toml --format json",
    ),
];

/// The experiment whose results these are, and a claim.
const EXPERIMENT: &str = "repeat = 2\n[run]\ndriver = \"sim\"\nduration = \"1s\"\n\
                          [matrix]\nrate = [100, 200]\n";
const CLAIMS: &str = "source = \"x\"\n[[claim]]\nsays = \"x\"\ncell = { rate = 100 }\n\
                      holds-if = \"qps > 1\"\n";

/// Files that the schemas have to refuse: schema, what is wrong, text.
const REFUSED_FILES: [(&str, &str, &str); 8] = [
    ("scenario", "type", "population = [\"1000\"]\n"),
    ("scenario", "key", "populations = 1000\n"),
    ("scenario", "choice", "arrival = \"even\"\n"),
    ("scenario", "table", "clients = [3]\n"),
    ("experiment", "type", "repeat = \"often\"\n"),
    ("experiment", "key", "[run]\nduratoin = \"1s\"\n"),
    ("experiment", "choice", "[[server]]\nproduct = \"bnid\"\n"),
    ("experiment", "own", "[run]\nrecord = \"run.json\"\n"),
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

/// Runs the further commands; what they printed.
fn printed_further(folder: &Folder) -> Vec<Document> {
    folder.write("claims.toml", CLAIMS);
    let mut script = format!(
        "set -euo pipefail\ncd {folder}\nmkdir records\n\
         exec 3< <(exec {THRONG} responder --listen udp:127.0.0.1:0 2>&1)\n\
         trap \"kill $!; {THRONG} lab down validated-list\" EXIT\n\
         until [[ ${{address:-}} == 127.0.0.1:* ]]; do\n\
         read -r -u 3 line; address=$(grep -o '127.0.0.1:[0-9]*' <<<\"$line\" || true); done\n\
         {THRONG} lab up responder --name validated-list >lab.txt\n\
         {THRONG} experiment run {experiment} --output rates >experiment.txt\n\
         {THRONG} run --driver sim --duration 1s --quiet --record records/run.json >run.txt\n",
        experiment = folder.write("rates.toml", EXPERIMENT),
        folder = folder.path("")
    );
    let mut documents = Vec::new();
    for (number, (schema, _, command)) in FURTHER.into_iter().enumerate() {
        let path = folder.path(&format!("further-{number}.json"));
        // A problem that `doctor` finds has an exit code of its own.
        script += &format!("{THRONG} {command} >{path} || test $? = 3\n");
        documents.push(Document { schema, path });
    }
    let script = folder.write("further.sh", script);
    execute(&format!("bash {script}")).succeeded();
    documents
}

/// The scenarios of the repository, and its experiments.
fn files() -> Vec<Document> {
    let paths = |folder: &str| {
        let files = fs::read_dir(Path::new(ROOT).join(folder)).unwrap();
        files.map(|file| file.unwrap().path().to_str().unwrap().to_owned())
    };
    let scenarios = paths("scenarios").filter(|path| path.ends_with(".toml"));
    let experiments = paths("experiments").map(|path| format!("{path}/experiment.toml"));
    let experiments = experiments.filter(|path| Path::new(path).exists());
    let document = |schema| move |path| Document { schema, path };
    let mut all: Vec<Document> = scenarios.map(document("scenario")).collect();
    assert!(!all.is_empty(), "no scenarios");
    all.extend(experiments.map(document("experiment")));
    assert_eq!(all.last().unwrap().schema, "experiment");
    all
}

/// Documents that lack a required field, have one of the wrong type, or one that there is not.
fn damaged(folder: &Folder, valid: &[Document]) -> Vec<Document> {
    let fields = PRINTED.iter().map(|(_, field)| field);
    let fields = fields.chain(FURTHER.iter().map(|(_, field, _)| field));
    let mut damaged = Vec::new();
    for ((number, Document { schema, path }), field) in valid.iter().enumerate().zip(fields) {
        let text = fs::read_to_string(path).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let mut write = |what: &str, change: &dyn Fn(&mut Map<String, Value>)| {
            let mut changed = value.clone();
            let object = match &mut changed {
                Value::Array(all) => &mut all[0],
                one => one,
            };
            change(object.as_object_mut().unwrap());
            let name = format!("{number}-{what}.json");
            let path = folder.write(&name, changed.to_string());
            damaged.push(Document { schema, path });
        };
        write("missing", &|it| drop(it.remove(*field).unwrap()));
        write("type", &|it| {
            drop(it.insert((*field).to_owned(), json!(true)))
        });
        // Readers of the others pass over what they do not know.
        if number < PRINTED.len() {
            write("more", &|it| drop(it.insert("more".to_owned(), json!(1))));
        }
    }
    for (number, (schema, what, text)) in REFUSED_FILES.into_iter().enumerate() {
        let path = folder.write(&format!("{number}-{what}.toml"), text);
        damaged.push(Document { schema, path });
    }
    damaged
}

/// Writes all schemas into a folder; their names.
fn schemas(folder: &Folder) -> Vec<&'static str> {
    let mut names: Vec<&str> = PRINTED.iter().map(|(name, _)| *name).collect();
    names.extend(FURTHER.iter().map(|(name, ..)| *name));
    names.extend(["scenario", "experiment", "line"]);
    names.sort_unstable();
    names.dedup();
    for name in &names {
        let of = name.trim_start_matches("run-");
        let schema = execute(&format!("{THRONG} schema {of}")).succeeded();
        folder.write(&format!("{name}.schema.json"), schema);
    }
    names
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
    let names = schemas(&folder);
    let mut valid = printed(&folder);
    valid.extend(printed_further(&folder));
    let damaged = damaged(&folder, &valid);
    valid.extend(files());
    let all: Vec<&Document> = valid.iter().chain(&damaged).collect();
    let found = validate(&folder.path(""), &all);
    let (schemas, documents) = found.split_at(found.len() - all.len());
    assert_eq!(schemas.len(), names.len(), "{schemas:?}");
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
