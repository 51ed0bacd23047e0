//! `--junit` of a command that failed before its conditions were read: a flag that is wrong, a
//! scenario that is missing. A CI then finds a file with one error.

use std::ffi::OsString;
use std::path::Path;

use crate::failure::Failure;
use crate::help;
use crate::records::{Destination, Links};
use crate::scenario;

/// The test case of a command without a result.
const NO_CONDITIONS: &[String] = &[];

/// Writes the failure of this command line to the file that its words name, or the scenario that
/// they trust, unless that has it. The words alone count: any of them may be what is wrong.
pub(crate) fn with_file(arguments: &[OsString], failure: Failure) -> Failure {
    let words = arguments.iter().skip(1).take_while(|word| *word != "--");
    let words: Vec<&str> = words.map(|it| it.to_str().unwrap_or_default()).collect();
    let path = value("--junit", &words).map(str::to_owned);
    let path = path.or_else(|| of_scenario(Path::new(value("--trust", &words)?)));
    let (Some(path), Some(command)) = (path, command(&words)) else {
        return failure;
    };
    if failure.is_in_junit() {
        return failure;
    }
    let text = report::junit::render_error(&command, NO_CONDITIONS, failure.what());
    let links = Links::with_force(words.contains(&"--force"));
    // That the file cannot be written says less than the failure itself.
    let _ =
        Destination::check("--junit", Path::new(&path), links).and_then(|it| it.write_text(&text));
    failure.in_junit()
}

/// The file that a scenario names, where the user trusts it with that.
fn of_scenario(path: &Path) -> Option<String> {
    let mut top = scenario::stated(path)?.top.into_iter();
    let given = top.find(|given| given.name == "junit")?;
    given.values.into_iter().next()
}

/// The value of a flag.
fn value<'a>(flag: &str, words: &[&'a str]) -> Option<&'a str> {
    let value = |(index, word): (usize, &&'a str)| match word.strip_prefix(flag)? {
        "" => words.get(index + 1).copied(),
        rest => rest.strip_prefix('='),
    };
    let mut values = words.iter().enumerate().filter_map(value);
    values.find(|it| !it.is_empty() && !it.starts_with('-'))
}

/// The command's name; none if it is one without that flag.
fn command(words: &[&str]) -> Option<String> {
    let all = help::commands();
    let (mut command, mut name) = (&all, vec!["throng"]);
    for word in words {
        match command.find_subcommand(word) {
            None => break,
            Some(below) => command = below,
        }
        name.push(word);
    }
    let has_flag = command
        .get_arguments()
        .any(|it| it.get_long() == Some("junit"));
    (has_flag || name.len() == 1).then(|| name.join(" "))
}
