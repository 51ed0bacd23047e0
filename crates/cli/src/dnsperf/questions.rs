//! The input file: questions, messages as on a TCP connection, or dynamic updates.
//!
//! A line that is no question does not end the run: it is left out with a warning, as in dnsperf.

use std::fs;
use std::io::{self, Read};

use load::names_error::Place;
use load::{NamesError, QuestionSet, names_file, update_file};
use proto::query::QueryOptions;

use super::args::Settings;
use super::complaint::{Complaint, Messages};

/// Lines that are named when they are left out; more are counted.
const LINES_NAMED_MAX: usize = 10;

/// Reads what is to be sent.
///
/// # Errors
/// The file cannot be read, holds nothing that can be sent, or (`-B`, `-u`) is malformed.
pub(super) fn read(settings: &Settings, messages: &Messages) -> Result<QuestionSet, Complaint> {
    let octets = read_octets(settings)?;
    let edns = settings.edns.as_ref();
    let read = if settings.binary {
        names_file::parse_stream(&octets)
    } else if settings.updates {
        update_file::parse_text(&octets, edns)
    } else {
        let options = QueryOptions {
            edns: edns.cloned(),
            ..QueryOptions::default()
        };
        parse_lines(&octets, &options, messages)
    };
    read.map_err(|error| {
        let name = source(settings);
        match error.place {
            Place::Whole => {
                Complaint::new(format!("input file contains no data: {name}"), error.hint)
            }
            _ => Complaint::new(format!("{name}: {error}"), error.hint),
        }
    })
}

/// The input's name for people.
pub(super) fn source(settings: &Settings) -> String {
    match &settings.data_file {
        Some(path) => path.display().to_string(),
        None => "standard input".to_owned(),
    }
}

fn read_octets(settings: &Settings) -> Result<Vec<u8>, Complaint> {
    let Some(path) = &settings.data_file else {
        let mut octets = Vec::new();
        let read = io::stdin().lock().read_to_end(&mut octets);
        return match read {
            Ok(_) => Ok(octets),
            Err(error) => Err(Complaint::plain(format!(
                "cannot read standard input: {error}"
            ))),
        };
    };
    fs::read(path).map_err(|error| {
        let what = format!("unable to open file: {}: {error}", path.display());
        Complaint::new(what, "give the file of the questions with -d")
    })
}

/// Questions of a text; lines that hold none are left out with a warning.
fn parse_lines(
    text: &[u8],
    options: &QueryOptions,
    messages: &Messages,
) -> Result<QuestionSet, NamesError> {
    let whole = names_file::parse_text(text, options);
    if !matches!(&whole, Err(error) if error.place != Place::Whole) {
        return whole;
    }
    let mut questions = QuestionSet::new();
    let mut left_out = 0;
    for (index, line) in text.split(|octet| *octet == b'\n').enumerate() {
        match names_file::parse_text(line, options) {
            Ok(one) => one
                .iter()
                .for_each(|template| questions.push(template.message, template.question_octets)),
            Err(error) if error.place == Place::Whole => {}
            Err(error) => {
                left_out += 1;
                if left_out <= LINES_NAMED_MAX {
                    messages.warn(&format!("line {} left out: {}", index + 1, error.what));
                }
            }
        }
    }
    if left_out > LINES_NAMED_MAX {
        messages.warn(&format!("{left_out} lines left out in all"));
    }
    match questions.is_empty() {
        true => whole,
        false => Ok(questions),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> Result<usize, Place> {
        let parsed = parse_lines(
            text.as_bytes(),
            &QueryOptions::default(),
            &Messages::default(),
        );
        parsed
            .map(|questions| questions.len())
            .map_err(|error| error.place)
    }

    #[test]
    fn bad_lines_are_left_out_and_good_ones_asked() {
        assert_eq!(
            count("a.example A\nb.example NOSUCHTYPE\n\n; c\nd.example AAAA\n"),
            Ok(2)
        );
        assert_eq!(count("a.example A\nb.example MX"), Ok(2));
    }

    #[test]
    fn a_file_without_any_question_is_refused() {
        assert_eq!(count(""), Err(Place::Whole));
        assert!(matches!(
            count("only\nnames\n"),
            Err(Place::Line { line: 1, .. })
        ));
    }
}
