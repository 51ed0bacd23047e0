//! What can go wrong with an index.

use std::fmt;
use std::path::Path;

use rusqlite::ErrorCode;

/// Why a question to the history has no answer.
#[derive(Debug)]
pub struct HistoryError {
    /// What, and where.
    pub what: String,
    /// The cure, if there is one.
    pub hint: Option<String>,
}

impl HistoryError {
    pub(crate) fn of_folder(folder: &Path, error: &std::io::Error) -> Self {
        HistoryError {
            what: format!("cannot read the folder {}: {error}", folder.display()),
            hint: Some("give a folder with run records (--record, throng experiment)".to_owned()),
        }
    }

    pub(crate) fn damaged() -> Self {
        HistoryError {
            what: "the index of the records is damaged".to_owned(),
            hint: Some("delete the index file: it is made again from the records".to_owned()),
        }
    }
}

impl From<rusqlite::Error> for HistoryError {
    fn from(error: rusqlite::Error) -> Self {
        let cure = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => "free some space where the index is",
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen) => {
                "the index is beside the records: let this user write there"
            }
            _ => "delete the index file: it is made again from the records",
        };
        HistoryError {
            what: format!("the index of the records: {error}"),
            hint: Some(cure.to_owned()),
        }
    }
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for HistoryError {}
