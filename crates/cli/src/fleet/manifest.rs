//! `throng fleet manifest`: a run as objects of Kubernetes. The run and its files are in the Secret
//! beside the keys, so the lead begins by itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use data_encoding::BASE64;
use lab::kubernetes::manifest::yaml;
use lab::parts::{Files, make_keys};
use serde::{Deserialize, Serialize};

use super::cluster::options;
use super::status::setup_of;
use crate::args::RunCommand;
use crate::failure::{Failure, print};
use crate::part::Setup;
use crate::{inputs, run, scenario};

/// The file beside the keys.
pub(super) const SETUP: &str = "setup";
/// Bytes that a Secret may have: the API server takes 1 MiB of data, of which keys have some.
const SETUP_OCTETS_MAX: usize = 1_000_000;

/// A run with what is in its files.
#[derive(Serialize, Deserialize)]
struct Whole {
    setup: Setup,
    /// By their SHA-256, as Base64.
    files: BTreeMap<String, String>,
}

/// Prints the YAML.
pub(super) fn execute(command: &RunCommand) -> Result<ExitCode, Failure> {
    let groups = scenario::only_run(command.scenario.as_deref(), &command.run)?;
    let generator = &groups[0].run.generator;
    let Some(kubernetes) = generator.kubernetes.clone() else {
        return Err(Failure::usage(
            "a manifest is for Kubernetes",
            "add --kubernetes and --image IMAGE",
        ));
    };
    inputs::keep_all();
    run::check_groups(&groups)?;
    let (setup, files) = setup_of(groups);
    let of_one = |name: &lab::parts::FileName| {
        let octets = files.get(&name.sha256)?;
        Some((name.sha256.clone(), BASE64.encode(octets)))
    };
    let files = setup.inputs.iter().filter_map(of_one).collect();
    let whole = serde_json::to_string(&Whole { setup, files }).map_err(Failure::in_operation)?;
    if whole.len() > SETUP_OCTETS_MAX {
        return Err(Failure::usage(
            format!(
                "the run and its files have {} bytes, and a Secret takes {SETUP_OCTETS_MAX}",
                whole.len()
            ),
            "use `throng fleet run --detach`, which sends files of any size to the lead",
        ));
    }
    print(&yaml(&options(&kubernetes)?, &make_keys()?, Some(&whole)))?;
    Ok(ExitCode::SUCCESS)
}

/// The run that is beside the keys, if there is one.
///
/// # Errors
/// It is not what [`execute`] prints.
pub(super) fn beside(keys: &Path) -> Result<Option<(Setup, Files)>, Failure> {
    let path = keys.join(SETUP);
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Ok(None);
    };
    let wrong = |error: String| {
        Failure::usage(
            format!("{}: {error}", path.display()),
            "print it once more with `throng fleet manifest` of this version",
        )
    };
    let whole: Whole = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    let mut files = Files::default();
    for text in whole.files.values() {
        let octets = BASE64.decode(text.as_bytes());
        files.keep("", octets.map_err(|error| wrong(error.to_string()))?.into());
    }
    Ok(Some((whole.setup, files)))
}
