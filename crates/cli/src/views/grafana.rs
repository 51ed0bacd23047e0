//! `--grafana`: what a command measures, as annotations in Grafana.

use exporter::{Annotator, Grafana};
use lab::live::Live;

use crate::failure::Failure;
use crate::streams;

/// The environment variable that has the token: a command line can be read by others.
const TOKEN: &str = "GRAFANA_TOKEN";

/// Annotates what is published from now on until the command ends; nothing without a URL.
pub(super) fn begin(
    live: &Live,
    url: Option<&str>,
    command: &str,
) -> Result<Option<Annotator>, Failure> {
    let Some(url) = url else {
        return Ok(None);
    };
    let token = streams::variable(TOKEN).filter(|token| !token.is_empty());
    let token = token.map(|token| token.to_string_lossy().trim().to_owned());
    let grafana = Grafana::new(url, token).map_err(|what| {
        Failure::usage(
            format!("--grafana: {what}"),
            format!("give a URL such as http://127.0.0.1:3000, and the token in {TOKEN}"),
        )
    })?;
    let warn = |what: &str, cure: &str| {
        tell!("warning: --grafana: {what}");
        tell!("hint: {cure}");
    };
    let annotator = Annotator::start(live, grafana, command, warn);
    annotator.map(Some).map_err(Failure::in_operation)
}
