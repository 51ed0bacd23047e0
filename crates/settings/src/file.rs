//! The name of a file, in JSON as text wherever it is text.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of a file as it was given; `-` is standard input. In JSON a text, or the bytes of a
/// name that is none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileName(PathBuf);

/// The name in JSON.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Octets(Vec<u8>),
}

impl FileName {
    /// As the system has it.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl From<PathBuf> for FileName {
    fn from(path: PathBuf) -> Self {
        FileName(path)
    }
}

impl Serialize for FileName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let written = match self.0.to_str() {
            Some(text) => Written::Text(text.to_owned()),
            None => Written::Octets(self.0.as_os_str().as_bytes().to_vec()),
        };
        written.serialize(to)
    }
}

impl<'de> Deserialize<'de> for FileName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(FileName(match Written::deserialize(from)? {
            Written::Text(text) => text.into(),
            Written::Octets(octets) => OsString::from_vec(octets).into(),
        }))
    }
}

impl JsonSchema for FileName {
    fn schema_name() -> Cow<'static, str> {
        "FileName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The name of a file as it was given: a text, or the bytes of a name \
                            that is none",
            "anyOf": [
                { "type": "string" },
                {
                    "type": "array",
                    "items": { "type": "integer", "minimum": 0, "maximum": 255 }
                }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_the_system_has_them() {
        let text = FileName::from(PathBuf::from("names/a.txt"));
        assert_eq!(serde_json::to_string(&text).unwrap(), "\"names/a.txt\"");
        let octets = FileName::from(PathBuf::from(OsString::from_vec(vec![b'a', 0xff])));
        assert_eq!(serde_json::to_string(&octets).unwrap(), "[97,255]");
        for name in [text, octets] {
            let json = serde_json::to_string(&name).unwrap();
            assert_eq!(serde_json::from_str::<FileName>(&json).unwrap(), name);
        }
    }
}
