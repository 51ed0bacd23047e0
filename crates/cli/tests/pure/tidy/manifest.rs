//! As much of TOML as the manifests of this repository use.
//!
//! Tables, dotted keys, strings, inline tables and arrays over several lines; values stay text.

use crate::source::line_of;

/// The settings of one manifest in order.
pub(crate) struct Manifest {
    settings: Vec<Setting>,
}

/// One `key = value`, under its table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Table and key, such as `dependencies.proto.workspace`.
    pub(crate) key: String,
    pub(crate) value: String,
    /// Counted from 1.
    pub(crate) line: usize,
}

impl Manifest {
    pub(crate) fn parse(text: &str) -> Self {
        let mut settings = Vec::new();
        let mut table = String::new();
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            let start = offset;
            offset += line.len();
            let line = without_comment(line);
            if let Some(header) = line.strip_prefix('[') {
                table = header.trim_matches(['[', ']']).to_owned();
            } else if let Some((key, value)) = line.split_once('=') {
                let value = match value.trim() {
                    "[" => array(&text[offset..]),
                    value => value.trim_matches('"').to_owned(),
                };
                let key = match table.as_str() {
                    "" => key.trim().to_owned(),
                    table => format!("{table}.{}", key.trim()),
                };
                settings.push(Setting {
                    key,
                    value,
                    line: line_of(text, start),
                });
            }
        }
        Manifest { settings }
    }

    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        let found = self.settings.iter().find(|setting| setting.key == key);
        found.map(|setting| setting.value.as_str())
    }

    /// Names of all dependencies, those of tests and of builds included, with their lines.
    pub(crate) fn dependencies(&self) -> Vec<(&str, usize)> {
        let mut found = Vec::new();
        for setting in &self.settings {
            let mut parts = setting.key.split('.');
            // Such as `target.'cfg(unix)'.dependencies`: the table's name may have a prefix.
            let table = parts.find(|part| part.ends_with("dependencies"));
            if let (Some(_), Some(name)) = (table, parts.next()) {
                found.push((name, setting.line));
            }
        }
        found
    }
}

/// The strings of an array from behind its opening bracket, one a line.
fn array(text: &str) -> String {
    let lines = text.lines().map(without_comment);
    let items = lines.take_while(|line| !line.starts_with(']'));
    let items: Vec<&str> = items
        .map(|line| line.trim_matches([',', '"', ' ']))
        .filter(|item| !item.is_empty())
        .collect();
    items.join("\n")
}

/// Values with a `#` within a string do not occur.
fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

#[test]
fn settings_are_read_under_their_tables() {
    let text = "members = [\n    \"crates/a\", # first\n    \"crates/b\",\n]\n\n[package]\n\
        name = \"a\" # short\n\n[dependencies]\nproto.workspace = true\n\
        serde = { version = \"1\" }\n\n[dev-dependencies.load]\npath = \"../load\"\n\
        [[bin]]\nname = \"throng\"\n";
    let manifest = Manifest::parse(text);
    assert_eq!(manifest.value("members"), Some("crates/a\ncrates/b"));
    assert_eq!(manifest.value("package.name"), Some("a"));
    assert_eq!(manifest.value("bin.name"), Some("throng"));
    assert_eq!(manifest.value("package.description"), None);
    let dependencies = [("proto", 10), ("serde", 11), ("load", 14)];
    assert_eq!(manifest.dependencies(), dependencies);
}
