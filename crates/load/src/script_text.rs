//! The script of clients, as text.

use proto::query::QueryOptions;

/// A script that clients follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptText {
    /// Its file, for messages.
    pub file_name: String,
    /// What is in it.
    pub text: String,
    /// The group of the clients, which it can ask for.
    pub group: String,
    /// What queries carry for the names that it makes up.
    pub defaults: QueryOptions,
}
