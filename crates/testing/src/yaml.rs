//! YAML as values: read by Debian's Python, as no crate of the workspace reads it.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

const PYTHON: &str = "/usr/bin/python3";
/// Prints the documents of standard input as a list in JSON. Empty ones are left out.
const SCRIPT: &str = "import json, sys, yaml\n\
                      documents = yaml.safe_load_all(sys.stdin)\n\
                      json.dump([it for it in documents if it is not None], sys.stdout)\n";

/// The documents of a text, but for empty ones.
///
/// # Panics
/// It is not YAML.
pub fn documents(text: &str) -> Vec<Value> {
    let mut python = Command::new(PYTHON);
    python.args(["-I", "-c", SCRIPT]);
    python.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().unwrap();
    // It reads all before it prints anything.
    let written = child.stdin.take().unwrap().write_all(text.as_bytes());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && written.is_ok(), "{text}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The only document of a text.
///
/// # Panics
/// It is not YAML, or has another number of documents.
pub fn document(text: &str) -> Value {
    let [document] = <[Value; 1]>::try_from(documents(text)).unwrap();
    document
}
