//! Objects as YAML that people read: block style, texts of several lines as they are.
//!
//! Only what is certain to be read back as it was is written without quotes; all else is written
//! as JSON does, which is YAML too (YAML 1.2.2, sections 1.3 and 7.3.1). No anchors, tags or
//! comments, and nothing is read here.

use serde_json::Value;

/// Words that some readers take for something else than a text (YAML 1.1 among them).
const RESERVED: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];

/// A document for each of the values.
pub(super) fn documents(values: &[Value]) -> String {
    let mut out = String::new();
    for value in values {
        out.push_str("---\n");
        write(value, 0, &mut out);
    }
    out
}

/// Writes a value at the beginning of a line, or after the dash of a sequence.
fn write(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (place, (key, value)) in map.iter().enumerate() {
                if place > 0 {
                    indent(depth, out);
                }
                text(key, out);
                out.push(':');
                after_key(value, depth, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    indent(depth, out);
                }
                out.push_str("- ");
                write(item, depth + 1, out);
            }
        }
        _ => {
            scalar(value, out);
            out.push('\n');
        }
    }
}

fn after_key(value: &Value, depth: usize, out: &mut String) {
    let is_block = match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if is_block {
        out.push('\n');
        indent(depth + 1, out);
        write(value, depth + 1, out);
        return;
    }
    out.push(' ');
    match value {
        Value::String(lines) if is_lines(lines) => block(lines, depth + 1, out),
        _ => {
            scalar(value, out);
            out.push('\n');
        }
    }
}

fn indent(depth: usize, out: &mut String) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Several lines with nothing that a literal block would change (section 8.1.2).
fn is_lines(text: &str) -> bool {
    let is_plain = |it: char| it == '\n' || it == ' ' || it.is_ascii_graphic();
    text.trim_end().contains('\n')
        && text.chars().all(is_plain)
        && !text.starts_with([' ', '\n'])
        && text.trim_end_matches('\n').len() + 1 >= text.len()
}

fn block(text: &str, depth: usize, out: &mut String) {
    out.push_str(if text.ends_with('\n') { "|\n" } else { "|-\n" });
    for line in text.lines() {
        if !line.is_empty() {
            indent(depth, out);
            out.push_str(line);
        }
        out.push('\n');
    }
}

fn scalar(value: &Value, out: &mut String) {
    match value {
        Value::String(it) => text(it, out),
        other => out.push_str(&other.to_string()),
    }
}

fn text(text: &str, out: &mut String) {
    let is_inner = |it: char| it.is_ascii_alphanumeric() || "./_-".contains(it);
    let is_plain = text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '/')
        && text.chars().all(is_inner)
        && !RESERVED.contains(&text.to_ascii_lowercase().as_str());
    if is_plain {
        out.push_str(text);
        return;
    }
    // JSON leaves these as they are; YAML does not take them (section 5.1).
    for it in Value::from(text).to_string().chars() {
        match it {
            '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => out.push_str(&format!("\\u{:04x}", u32::from(it))),
            it => out.push(it),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_written_in_blocks() {
        let value = json!({
            "a": {"list": ["x", {"k": 1, "l": ["m"]}, []], "none": {}},
            "b": true, "c": null, "d": 1.5,
        });
        let expected = "---\na:\n  list:\n    - x\n    - k: 1\n      l:\n        - m\n    - []\n  \
                        none: {}\nb: true\nc: null\nd: 1.5\n";
        assert_eq!(documents(&[value]), expected);
    }

    #[test]
    fn what_could_be_read_as_something_else_is_quoted() {
        for (value, written) in [
            ("throng/role", "throng/role"),
            ("/keys", "/keys"),
            ("kubernetes.io", "kubernetes.io"),
            ("false", "\"false\""),
            ("No", "\"No\""),
            ("~", "\"~\""),
            ("", "\"\""),
            ("500m", "\"500m\""),
            ("1e3", "\"1e3\""),
            ("--keys", "\"--keys\""),
            ("[::]:7053", "\"[::]:7053\""),
            ("a: b", "\"a: b\""),
            ("a #b", "\"a #b\""),
            ("tab\t\u{7f}\u{85}", "\"tab\\t\\u007f\\u0085\""),
        ] {
            let document = documents(&[json!({"k": value})]);
            assert_eq!(document, format!("---\nk: {written}\n"), "{value:?}");
        }
    }

    #[test]
    fn lines_are_a_literal_block_only_if_it_keeps_them() {
        let of = |text: &str| documents(&[json!({"f": {"k": text}})]);
        assert_eq!(of("a\n\nb\n"), "---\nf:\n  k: |\n    a\n\n    b\n");
        assert_eq!(of("a\n b"), "---\nf:\n  k: |-\n    a\n     b\n");
        for text in [
            "a\n",
            " a\nb",
            "\na\nb",
            "a\nb\n\n",
            "a\r\nb\n",
            "a\tb\nc\n",
        ] {
            let expected = format!("---\nf:\n  k: {}\n", json!(text));
            assert_eq!(of(text), expected, "{text:?}");
        }
    }
}
