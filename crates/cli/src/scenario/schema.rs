//! The JSON Schema of scenario files, for editors: made from the flags, so that it cannot differ
//! from them.

use clap::Arg;
use serde_json::{Map, Value, json};

use super::file::{OF_CLIENTS, OF_EVENTS, OF_TARGETS, POPULATION};
use super::keys::{self, Keys, has_optional_value, is_list, is_of_run, is_switch};

/// The schema (2020-12).
pub(crate) fn schema() -> Value {
    let keys = Keys::new();
    let mut top = properties(keys.flags());
    let of_groups = properties(keys.flags().filter(|flag| !is_of_run(flag)));
    let group = table(&of_groups, &own(&OF_CLIENTS), &[]);
    let number = top.remove("clients").unwrap_or_default();
    top.insert(
        "clients".to_owned(),
        json!({ "description": "Number of clients, or their groups", "anyOf": [
            number, { "type": "array", "items": group } ] }),
    );
    top.insert(
        POPULATION.to_owned(),
        json!({ "description": "Clients of all groups with a weight", "type": "integer",
            "minimum": 1 }),
    );
    let event = table(&of_groups, &own(&OF_EVENTS), &["at"]);
    top.insert("events".to_owned(), list("What happens on the way", event));
    let target = table(&Map::new(), &own(&OF_TARGETS), &["server"]);
    top.insert(
        "targets".to_owned(),
        list("Servers and their weights", target),
    );
    top.insert("sweep".to_owned(), sweep(&keys));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Scenario of throng run",
        "type": "object",
        "properties": top,
        "additionalProperties": false,
    })
}

pub(crate) fn properties<'a>(flags: impl Iterator<Item = &'a Arg>) -> Map<String, Value> {
    let property = |flag: &Arg| {
        let name = flag.get_long().unwrap_or_default().to_owned();
        (name, property(flag))
    };
    flags.map(property).collect()
}

fn property(flag: &Arg) -> Value {
    let mut help = flag.get_help().map(ToString::to_string).unwrap_or_default();
    if keys::reserved_for_user(flag).is_some() {
        help.push_str(" (in a scenario only with --trust on the command line)");
    }
    let choices: Vec<String> = (flag.get_possible_values().iter())
        .map(|value| value.get_name().to_owned())
        .collect();
    let one = match choices.is_empty() {
        true => json!({ "type": ["string", "number"] }),
        false => json!({ "enum": choices }),
    };
    let mut property = if is_switch(flag) {
        json!({ "const": true })
    } else if is_list(flag) {
        json!({ "anyOf": [one, { "type": "array", "items": one }] })
    } else if has_optional_value(flag) {
        json!({ "anyOf": [one, { "const": true }] })
    } else {
        one
    };
    property["description"] = help.into();
    property
}

/// The keys of a table that are no flags.
fn own(keys: &[&str]) -> Map<String, Value> {
    let property = |key: &&str| {
        let (kind, help) = match *key {
            "name" => (json!({ "type": "string" }), "Its name in the record"),
            "count" => (
                json!({ "type": "integer", "minimum": 0 }),
                "Number of clients",
            ),
            "share" => (
                json!({ "type": "number", "minimum": 0, "maximum": 1 }),
                "Share of the clients",
            ),
            "at" => (
                json!({ "type": "string" }),
                "Time after the start, such as 60s",
            ),
            "clients" => (
                json!({ "type": "string" }),
                "The group meant; all if left out",
            ),
            "reset" => (json!({ "const": true }), "Their connections are reset"),
            "leave" => (json!({ "const": true }), "They ask nothing more"),
            "server" => (
                json!({ "type": "string" }),
                "The server, as --server has it",
            ),
            _ => (
                json!({ "type": "number", "exclusiveMinimum": 0 }),
                "Part of the clients, relative to the others",
            ),
        };
        let mut property = kind;
        property["description"] = help.into();
        ((*key).to_owned(), property)
    };
    keys.iter().map(property).collect()
}

pub(crate) fn table(
    flags: &Map<String, Value>,
    own: &Map<String, Value>,
    required: &[&str],
) -> Value {
    let mut properties = flags.clone();
    properties.extend(own.clone());
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

pub(crate) fn list(description: &str, items: Value) -> Value {
    json!({ "description": description, "type": "array", "items": items })
}

/// Lists of values, or ranges, of any flag with a value.
fn sweep(keys: &Keys) -> Value {
    let varied = keys.flags().filter(|flag| !is_switch(flag));
    let property = |flag: &Arg| {
        let name = flag.get_long().unwrap_or_default().to_owned();
        let values = json!({ "anyOf": [
            { "type": "array", "items": { "type": ["string", "number"] } },
            { "type": "string", "description": "FIRST..LAST+STEP or FIRST..LAST*FACTOR" },
        ] });
        (name, values)
    };
    let properties: Map<String, Value> = varied.map(property).collect();
    json!({
        "description": "One run for each combination of these values",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}
