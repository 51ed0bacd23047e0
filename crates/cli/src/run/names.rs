//! Questions that somebody wrote, in a file or on a command line.

use std::path::Path;

use load::{QuestionSet, names_file};
use proto::query::QueryOptions;
use settings::Run;

use super::message::query_options;
use crate::failure::Failure;
use crate::records::shared_input;

/// The questions of a file, and its name.
pub(super) fn read_questions(
    run: &Run,
    (path, is_text): (&Path, bool),
) -> Result<(QuestionSet, String), Failure> {
    let octets = shared_input(path)?;
    let questions = match is_text {
        true => names_file::parse_text(&octets, &query_options(run)?),
        false => names_file::parse_stream(&octets),
    };
    let name = match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let questions =
        questions.map_err(|error| Failure::usage(format!("{name}: {error}"), &error.hint))?;
    Ok((questions, name))
}

/// Questions of the command line.
pub(crate) fn named_questions(
    lines: &str,
    options: &QueryOptions,
) -> Result<(QuestionSet, String), Failure> {
    let questions = names_file::parse_text(lines.as_bytes(), options);
    // There is but one name, and it is in the message: its line would tell nothing.
    let questions = questions.map_err(|error| Failure::usage(error.what, error.hint))?;
    Ok((questions, lines.trim_end().replace('\n', ", ")))
}
