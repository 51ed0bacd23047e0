//! What one scrape gave, of whatever source: samples with labels, and a few texts.

use std::collections::BTreeMap;

use measure::observation::SeriesKind;

/// Everything that one scrape gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The samples, in the order of the source.
    pub samples: Vec<RawSample>,
    /// Whether a sample of that name only grows, where the source says so.
    pub kinds: BTreeMap<String, SeriesKind>,
    /// What is text: versions, instants. A value that is empty is left out.
    pub texts: BTreeMap<String, String>,
}

/// One value as the source names it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawSample {
    /// Its name.
    pub name: String,
    /// Its labels, in the order of the source.
    pub labels: Vec<(String, String)>,
    /// Its value; may be infinite, or not a number.
    pub value: f64,
    /// When it was taken by the source's clock, seconds since 1970; none if the source is silent
    /// about it, as nearly all are.
    pub taken_s: Option<f64>,
}

impl RawSample {
    /// A value without labels.
    pub fn plain(name: impl Into<String>, value: f64) -> RawSample {
        RawSample {
            name: name.into(),
            value,
            ..RawSample::default()
        }
    }

    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        let found = self.labels.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The name with its labels, `name{label="value"}`.
    pub fn full_name(&self) -> String {
        if self.labels.is_empty() {
            return self.name.clone();
        }
        let labels = self.labels.iter();
        let labels: Vec<String> = labels
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        format!("{}{{{}}}", self.name, labels.join(","))
    }
}

fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}

impl Reading {
    /// Adds a text unless it is empty.
    pub(crate) fn say(&mut self, name: &str, text: &str) {
        let text = text.trim();
        if !text.is_empty() {
            self.texts.insert(name.to_owned(), text.to_owned());
        }
    }

    /// The first sample of that name, if it is alone or its labels do not matter.
    pub fn value(&self, name: &str) -> Option<f64> {
        let found = self.samples.iter().find(|sample| sample.name == name);
        found.map(|sample| sample.value)
    }
}
