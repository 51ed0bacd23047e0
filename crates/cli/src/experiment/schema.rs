//! JSON Schema of experiment files, made from the flags of `throng run` and the keys of
//! [`super::file`].

use clap::Arg;
use lab::target::{Operation, Product, Resources, products};
use serde_json::{Map, Value, json};

use super::file::{OF_EXPERIMENT, OF_HOOKS, OF_LAB, OF_TOP, REPETITIONS};
use super::operation::NONE;
use super::servers::OF_SERVER;
use crate::scenario::keys::Keys;
use crate::scenario::schema::{list, properties, table};

const TIME: &str = "such as 10s";

/// The schema (2020-12).
pub(crate) fn schema() -> Value {
    let keys = Keys::new();
    let is_varied = |flag: &&Arg| !OF_EXPERIMENT.contains(&flag.get_long().unwrap_or_default());
    let mut run = properties(keys.flags().filter(is_varied));
    run.insert("scenario".to_owned(), text("Scenario file of these runs"));
    let mut hooked = run.clone();
    hooked.extend(own(&OF_HOOKS));
    hooked.insert("label".to_owned(), text("Its name in records and reports"));
    let matrix = run.iter().map(|(name, it)| (name.clone(), varied(it)));
    let matrix: Map<String, Value> = matrix.collect();
    let none = Map::new();
    let lab = table(&none, &own(&OF_LAB), &[]);
    let server = table(&none, &own(&OF_SERVER), &[]);
    let hooks = table(&none, &own(&OF_HOOKS), &[]);
    let hooked = table(&hooked, &none, &["label"]);
    let mut top = own(&OF_TOP);
    top.extend(own(&[REPETITIONS]));
    for (name, about, value) in [
        ("run", "Flags of all runs", table(&run, &none, &[])),
        (
            "matrix",
            "Flags that vary, each with a list of values: every combination is a cell",
            table(&matrix, &none, &[]),
        ),
        ("lab", "How servers are started and changed", lab),
        ("hooks", "Shell commands around each run", hooks),
    ] {
        let mut value = value;
        value["description"] = about.into();
        top.insert(name.to_owned(), value);
    }
    for (name, about, items) in [
        ("server", "Servers that the experiment starts", server),
        ("servers", "Servers that run already", hooked.clone()),
        (
            "variants",
            "Sets of flags and hooks, each with a label",
            hooked,
        ),
    ] {
        top.insert(name.to_owned(), list(about, items));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Experiment of throng experiment",
        "type": "object",
        "properties": top,
        "additionalProperties": false,
    })
}

/// A list of values of a flag.
fn varied(flag: &Value) -> Value {
    let about = flag["description"].as_str().unwrap_or_default();
    let one = json!({ "type": ["string", "number", "boolean"] });
    let mut values = list(about, one);
    values["minItems"] = 1.into();
    values
}

fn text(about: &str) -> Value {
    json!({ "description": about, "type": "string" })
}

fn whole(about: &str, least: u64) -> Value {
    json!({ "description": about, "type": "integer", "minimum": least })
}

fn switch(about: &str) -> Value {
    json!({ "description": about, "type": "boolean" })
}

/// One value, or a list of those that vary.
fn values(about: &str, one: Value) -> Value {
    let list = json!({ "type": "array", "items": one, "minItems": 1 });
    json!({ "description": about, "anyOf": [one, list] })
}

/// The keys that are no flags of `throng run`.
fn own(keys: &[&str]) -> Map<String, Value> {
    let property = |key: &&str| ((*key).to_owned(), property(key));
    keys.iter().map(property).collect()
}

fn property(key: &str) -> Value {
    let operations = Operation::ALL.map(Operation::name);
    let operations: Vec<&str> = [NONE].into_iter().chain(operations).collect();
    match key {
        "name" => text("Name of the experiment; that of its file if left out"),
        "about" => text("What it is for, for readers of the file"),
        "repeat" => whole(
            "Runs of each cell, or starts of its server; 5 if left out",
            1,
        ),
        REPETITIONS => {
            let mut former = whole("Former name of `repeat`", 1);
            former["deprecated"] = true.into();
            former
        }
        "short" => switch("Only try the file: two runs of a second of the first and the last cell"),
        "order" => json!({ "description": "Order of the cells in each repetition",
            "enum": ["random", "listed"] }),
        "seed" => whole("Seed of the random order", 0),
        "cool-down" => text(&format!("Pause between two runs, {TIME}")),
        "starts" => whole(
            "How often each server is started: another name for `repeat`",
            1,
        ),
        "runs-per-start" => whole("Runs after each start of a server", 1),
        "aa" => whole("Cells that are measured twice, and must not differ", 0),
        "ceilings" => switch("Measure first what the generator could send at most"),
        "topology" => values(
            "What is between generator and server: loopback, veth, line:DELAY,LOSS or kubernetes",
            json!({ "type": "string" }),
        ),
        "operation" => values(
            "What is done to the server in mid-run",
            json!({ "enum": operations }),
        ),
        "at" => text("When that is done: a share of the run such as 40%, or a time such as 4s"),
        "outage" => text(&format!("How long an outage takes, {TIME}")),
        "before" | "ready" | "after" => values(
            match key {
                "before" => "Commands before a run; each has to succeed",
                "ready" => "Commands that are repeated before a run until all succeed",
                _ => "Commands after a run, whatever became of it",
            },
            json!({ "type": "string" }),
        ),
        "hook-timeout" => text(&format!("How long each command may take, {TIME}")),
        _ => property_of_server(key),
    }
}

/// Keys of `[[server]]`.
fn property_of_server(key: &str) -> Value {
    let each = json!({ "type": ["string", "number", "boolean"] });
    let of_each = values("One value, or a list of those that vary", each);
    let products: Vec<&str> = products::all().map(|it: &Product| it.name).collect();
    match key {
        "product" => json!({ "description": "What is started", "enum": products }),
        "data" => text("What it serves, such as zone:1000,ttl=1h"),
        "program" => text("Path of its program"),
        "image" => text("Image of its container, in Kubernetes"),
        "user" => text("User that it runs as"),
        "change" => text("What of a cluster is changed, as NAMESPACE/KIND/NAME"),
        "factors" => json!({ "description": "Settings of the product",
            "type": "object", "additionalProperties": of_each }),
        "resources" => {
            let limits = Resources::NAMES.map(|name| (name, of_each.clone()));
            let limits: Map<String, Value> = limits
                .into_iter()
                .map(|(name, it)| (name.to_owned(), it))
                .collect();
            table(&limits, &Map::new(), &[])
        }
        _ => text("Its name in records and reports"),
    }
}
