//! The figures of a run by name, so that readers of a record need not decode its buckets.
//!
//! They follow from the rest of the record; nothing is read back from here. Which they are, and how
//! they are written, is in `metric`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// What a run amounts to; in JSON one map.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "BTreeMap<String, Value>")]
pub struct Summary {
    pub(crate) values: BTreeMap<String, Value>,
}

impl Summary {
    /// What it says under this key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }
}

impl From<BTreeMap<String, Value>> for Summary {
    fn from(values: BTreeMap<String, Value>) -> Self {
        Summary { values }
    }
}
