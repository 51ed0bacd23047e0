//! The script of clients, as text.

use proto::query::QueryOptions;

/// A script that clients follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptText {
    /// Its file, for messages.
    pub file_name: String,
    /// Its content.
    pub text: String,
    /// The group of the clients, which scripts can read.
    pub group: String,
    /// Options of queries for names that the script generates.
    pub defaults: QueryOptions,
}
