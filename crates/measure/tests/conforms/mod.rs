//! Whether a document is as a JSON Schema says, for the part of draft 2020-12 that our schemas use.
//! A keyword that is not known here fails the test, so that none is skipped.
//!
//! Included by the tests of several crates by its path. The published schemas are what others read
//! our documents by, with validators of their own.

use serde_json::{Map, Value};

/// Keywords that say nothing about what is valid.
const WORDS: [&str; 6] = [
    "$schema",
    "$defs",
    "title",
    "description",
    "default",
    "format",
];

/// What of `value` is not as `schema` says, each with its place.
pub(crate) fn offences(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let check = Check { root: schema };
    check.value(schema, value, "", &mut found);
    found
}

struct Check<'a> {
    root: &'a Value,
}

impl Check<'_> {
    fn is_valid(&self, schema: &Value, value: &Value) -> bool {
        let mut found = Vec::new();
        self.value(schema, value, "", &mut found);
        found.is_empty()
    }

    fn value(&self, schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
        let keywords = match schema {
            Value::Bool(true) => return,
            Value::Object(keywords) => keywords,
            _ => return found.push(format!("{place}: nothing may be here")),
        };
        for (keyword, said) in keywords {
            let is_right = match (keyword.as_str(), said) {
                (word, _) if WORDS.contains(&word) => true,
                ("$ref", Value::String(path)) => {
                    let target = self.root.pointer(path.trim_start_matches('#'));
                    let target = target.unwrap_or_else(|| panic!("{path} leads nowhere"));
                    self.value(target, value, place, found);
                    true
                }
                ("allOf", Value::Array(all)) => {
                    all.iter()
                        .for_each(|it| self.value(it, value, place, found));
                    true
                }
                ("anyOf", Value::Array(any)) => any.iter().any(|it| self.is_valid(it, value)),
                ("oneOf", Value::Array(each)) => {
                    each.iter().filter(|it| self.is_valid(it, value)).count() == 1
                }
                ("type", Value::String(name)) => is_of_type(name, value),
                ("type", Value::Array(names)) => {
                    let mut names = names.iter().filter_map(Value::as_str);
                    names.any(|name| is_of_type(name, value))
                }
                ("const", said) => said == value,
                ("enum", Value::Array(each)) => each.contains(value),
                _ => self.of_its_type((keyword, said), keywords, value, (place, found)),
            };
            if !is_right {
                let mut text = value.to_string();
                text.truncate(text.floor_char_boundary(100));
                found.push(format!("{place}: {text} against `{keyword}`"));
            }
        }
    }

    /// Keywords that say something about values of one type alone.
    fn of_its_type(
        &self,
        (keyword, said): (&str, &Value),
        beside: &Map<String, Value>,
        value: &Value,
        (place, found): (&str, &mut Vec<String>),
    ) -> bool {
        match value {
            _ if !is_known(keyword) => panic!("this checks no keyword `{keyword}`"),
            Value::Object(members) => self.object((keyword, said), beside, members, (place, found)),
            Value::Array(elements) => self.array((keyword, said), elements, (place, found)),
            Value::Number(number) => {
                let number = number.as_f64().unwrap_or(f64::NAN);
                let bound = || said.as_f64().expect("a number");
                match keyword {
                    "minimum" => number >= bound(),
                    "maximum" => number <= bound(),
                    "exclusiveMinimum" => number > bound(),
                    _ => true,
                }
            }
            Value::String(text) => keyword != "pattern" || matches(said, text),
            _ => true,
        }
    }

    fn object(
        &self,
        (keyword, said): (&str, &Value),
        beside: &Map<String, Value>,
        members: &Map<String, Value>,
        (place, found): (&str, &mut Vec<String>),
    ) -> bool {
        let own = beside.get("properties").and_then(Value::as_object);
        match (keyword, said) {
            ("properties", Value::Object(own)) => {
                for (name, schema) in own {
                    if let Some(value) = members.get(name) {
                        self.value(schema, value, &format!("{place}/{name}"), found);
                    }
                }
            }
            ("additionalProperties", schema) => {
                let others = members.iter();
                for (name, value) in
                    others.filter(|it| own.is_none_or(|own| !own.contains_key(it.0)))
                {
                    self.value(schema, value, &format!("{place}/{name}"), found);
                }
            }
            ("required", Value::Array(names)) => {
                let mut names = names.iter().filter_map(Value::as_str);
                return names.all(|name| members.contains_key(name));
            }
            ("propertyNames", schema) => {
                let is_valid = |name: &String| self.is_valid(schema, &Value::String(name.clone()));
                return members.keys().all(is_valid);
            }
            _ => {}
        }
        true
    }

    fn array(
        &self,
        (keyword, said): (&str, &Value),
        elements: &[Value],
        (place, found): (&str, &mut Vec<String>),
    ) -> bool {
        let number = || said.as_u64().expect("a number") as usize;
        match keyword {
            "items" => {
                for (index, element) in elements.iter().enumerate() {
                    self.value(said, element, &format!("{place}/{index}"), found);
                }
                true
            }
            "prefixItems" => {
                let schemas = said.as_array().expect("a schema for each of the first");
                for (index, (schema, element)) in schemas.iter().zip(elements).enumerate() {
                    self.value(schema, element, &format!("{place}/{index}"), found);
                }
                true
            }
            "minItems" => elements.len() >= number(),
            "maxItems" => elements.len() <= number(),
            _ => true,
        }
    }
}

fn is_known(keyword: &str) -> bool {
    [
        "properties",
        "additionalProperties",
        "required",
        "propertyNames",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "pattern",
    ]
    .contains(&keyword)
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|it| it.fract() == 0.0),
        other => panic!("there is no type `{other}`"),
    }
}

/// The few patterns that there are, each by what it means.
fn matches(pattern: &Value, text: &str) -> bool {
    let digits = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    match pattern.as_str() {
        Some("^[0-9]{1,39}$") => digits && text.len() <= 39,
        Some("^(0|[1-9][0-9]{0,19}|other)$") => {
            let is_short = digits && text.len() <= 20;
            text == "other" || is_short && (text == "0" || !text.starts_with('0'))
        }
        _ => panic!("this checks no pattern {pattern}"),
    }
}
