//! What is known of each test: a file with a line for each time that a test was run.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::binaries::Job;

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    Passed,
    Failed,
    /// It showed nothing: the host was never as quiet as it needs it, or what it asks was not
    /// there.
    Inconclusive,
}

/// One test, run once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RunOfTest {
    pub(crate) job: Job,
    pub(crate) outcome: Outcome,
    pub(crate) seconds: f64,
    /// Why it did not pass, in a line or more; empty if it did.
    pub(crate) why: String,
    /// What it printed; none if it passed the first time.
    pub(crate) output: Option<PathBuf>,
}

impl RunOfTest {
    /// Removes what it printed if it passed.
    pub(crate) fn without_output_if_passed(mut self) -> RunOfTest {
        if self.outcome == Outcome::Passed
            && let Some(output) = self.output.take()
        {
            let _ = fs::remove_file(output);
        }
        self
    }
}

/// The folder of results and outputs.
pub(crate) const FOLDER: &str = "target/tests";

/// Results are appended as they come, so that those of an interrupted run are there.
pub(crate) struct Results {
    file: Mutex<File>,
}

impl Results {
    /// Opens the file, after what is there.
    pub(crate) fn open() -> Result<Results, String> {
        let folder = Path::new(FOLDER);
        let outputs = folder.join("output");
        fs::create_dir_all(&outputs).map_err(|error| cannot(&outputs, &error))?;
        let path = folder.join("results.jsonl");
        let file = OpenOptions::new().create(true).append(true).open(&path);
        Ok(Results {
            file: Mutex::new(file.map_err(|error| cannot(&path, &error))?),
        })
    }

    pub(crate) fn add(&self, run: &RunOfTest) {
        let line = serde_json::to_string(run).unwrap() + "\n";
        self.file
            .lock()
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
    }
}

/// All runs so far, in order.
pub(crate) fn read() -> Result<Vec<RunOfTest>, String> {
    let path = Path::new(FOLDER).join("results.jsonl");
    let text = fs::read_to_string(&path).map_err(|error| cannot(&path, &error))?;
    let runs: Result<Vec<RunOfTest>, _> = text.lines().map(serde_json::from_str).collect();
    runs.map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn cannot(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
