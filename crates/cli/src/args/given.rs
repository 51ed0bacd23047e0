//! A flag as it was given, on a command line or in a file.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

/// A flag with its values, wherever it was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Given {
    /// Its long name, such as `clients`.
    pub(crate) name: String,
    /// Its values; none for a switch.
    pub(crate) values: Vec<String>,
}

impl Given {
    /// As arguments of a command line.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        match self.values.as_slice() {
            [] => vec![format!("--{}", self.name).into()],
            values => {
                let argument = |value| format!("--{}={value}", self.name).into();
                values.iter().map(argument).collect()
            }
        }
    }
}
