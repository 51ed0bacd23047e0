//! Kubernetes objects as YAML, for people and their repositories.

use std::fmt::Write as _;

use serde_json::Value;

/// Documents of these objects, one after the other. Strings are written as JSON has them, which is
/// YAML, and never taken for another type.
pub fn to_yaml(objects: &[Value]) -> String {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        write_value(&mut text, object, 0);
    }
    text
}

fn write_value(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let _ = write!(text, "{:depth$}{}:", "", key(name));
                write_after(text, value, depth + 2);
            }
        }
        Value::Array(values) if !values.is_empty() => {
            for value in values {
                let _ = write!(text, "{:depth$}-", "");
                write_item(text, value, depth + 2);
            }
        }
        plain => {
            let _ = writeln!(text, "{:depth$}{plain}", "");
        }
    }
}

/// A value behind its name.
fn write_after(text: &mut String, value: &Value, depth: usize) {
    if is_block(value) {
        text.push('\n');
        write_value(text, value, depth);
    } else {
        let _ = writeln!(text, " {value}");
    }
}

/// A value of a list: the first field of an object stands beside the dash.
fn write_item(text: &mut String, value: &Value, depth: usize) {
    if !is_block(value) {
        let _ = writeln!(text, " {value}");
        return;
    }
    let mut block = String::new();
    write_value(&mut block, value, depth);
    text.push(' ');
    text.push_str(block.trim_start_matches(' '));
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(values) => !values.is_empty(),
        _ => false,
    }
}

/// A name, in quotes where it could be taken for something else.
fn key(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    let begins_plain = name
        .bytes()
        .next()
        .is_some_and(|it| it.is_ascii_alphabetic());
    match begins_plain && name.bytes().all(is_plain) && !matches!(name, "y" | "n" | "on" | "no") {
        true => name.to_owned(),
        false => Value::from(name).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_blocks_and_values_are_json() {
        let object = json!({
            "kind": "Job",
            "labels": {"a/b": "no", "0x": true},
            "list": [1, {"name": "one", "values": []}, ["x"]],
            "none": {},
        });
        let expected = "---\n\
            kind: \"Job\"\n\
            labels:\n  \"0x\": true\n  a/b: \"no\"\n\
            list:\n  - 1\n  - name: \"one\"\n    values: []\n  - - \"x\"\n\
            none: {}\n";
        assert_eq!(to_yaml(&[object]), expected);
    }
}
