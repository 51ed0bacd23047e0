//! The grammar of getopt: `-c 4`, `-c4`, `-eD`, `--` ends the options.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::complaint::Complaint;
use super::usage::ShortOption;

/// One option as it stands on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given<'a> {
    pub(super) letter: char,
    /// Its value; empty if it takes none.
    pub(super) value: &'a OsStr,
    /// The argument that holds the value, and the octet in it where the value starts.
    place: (usize, usize),
}

impl Given<'_> {
    /// The same value for the option that another program calls by this letter.
    pub(super) fn with_letter(self, letter: char) -> Self {
        Given { letter, ..self }
    }
}

/// A command line taken apart.
#[derive(Debug)]
pub(super) struct Split<'a> {
    /// The options, in order.
    pub(super) given: Vec<Given<'a>>,
    /// What stopped it, after those options; as dnsperf, which reads option by option.
    pub(super) fault: Option<Complaint>,
}

/// Takes the arguments of a program with these options apart. Arguments that belong to no option
/// may stand anywhere, and are the last to be complained of: neither program has any.
pub(super) fn split<'a>(
    program: &str,
    arguments: &'a [OsString],
    options: &[ShortOption],
) -> Split<'a> {
    let mut given = Vec::new();
    let mut strangers = Vec::new();
    let mut index = 0;
    while let Some(argument) = arguments.get(index) {
        let octets = argument.as_bytes();
        if octets == b"--" {
            strangers.extend(&arguments[index + 1..]);
            break;
        }
        if octets.len() < 2 || octets[0] != b'-' {
            strangers.push(argument);
            index += 1;
            continue;
        }
        match split_one((arguments, index), options, &mut given) {
            Ok(next) => index = next,
            Err(what) => {
                let fault = Some(Complaint::usage(format!("{program}: {what}")));
                return Split { given, fault };
            }
        }
    }
    let fault = strangers.first().map(|argument| {
        let argument = argument.to_string_lossy();
        Complaint::usage(format!("unexpected argument {argument}"))
    });
    Split { given, fault }
}

/// Takes one argument apart, `-eD` or `-c4`; returns the index of the next.
fn split_one<'a>(
    (arguments, index): (&'a [OsString], usize),
    options: &[ShortOption],
    all: &mut Vec<Given<'a>>,
) -> Result<usize, String> {
    let octets = arguments[index].as_bytes();
    for (at, letter) in octets.iter().copied().enumerate().skip(1) {
        let Some(option) = options.iter().find(|option| option.letter == letter) else {
            return Err(format!("invalid option -- '{}'", char::from(letter)));
        };
        let letter = char::from(letter);
        if !option.takes_value() {
            let value = OsStr::new("");
            all.push(Given {
                letter,
                value,
                place: (index, at),
            });
            continue;
        }
        if at + 1 < octets.len() {
            let value = OsStr::from_bytes(&octets[at + 1..]);
            all.push(Given {
                letter,
                value,
                place: (index, at + 1),
            });
            return Ok(index + 1);
        }
        let Some(value) = arguments.get(index + 1) else {
            return Err(format!("option requires an argument -- '{letter}'"));
        };
        all.push(Given {
            letter,
            value,
            place: (index + 1, 0),
        });
        return Ok(index + 2);
    }
    Ok(index + 1)
}

/// The command line as one text, with what `-y` holds of a secret replaced.
pub(super) fn echo(program: &str, arguments: &[OsString], given: &[Given<'_>]) -> String {
    let mut words: Vec<String> = vec![program.to_owned()];
    words.extend(
        arguments
            .iter()
            .map(|argument| argument.to_string_lossy().into_owned()),
    );
    for key in given.iter().filter(|given| given.letter == 'y') {
        let (index, start) = key.place;
        let before = String::from_utf8_lossy(&arguments[index].as_bytes()[..start]).into_owned();
        let value = key.value.to_string_lossy();
        let shown = match value.rsplit_once(':') {
            Some((name, _)) => format!("{name}:<secret>"),
            None => "<secret>".to_owned(),
        };
        words[index + 1] = before + &shown;
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::usage::SHORT_OPTIONS;
    use super::*;

    fn split(arguments: &[OsString]) -> Split<'_> {
        super::split("dnsperf", arguments, &SHORT_OPTIONS)
    }

    fn arguments(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn values_may_be_attached_and_switches_joined() {
        let arguments = arguments(&["-c4", "-eDq", "7", "-d", "-x", "--"]);
        let given = split(&arguments).given;
        let pairs: Vec<_> = given
            .iter()
            .map(|g| (g.letter, g.value.to_str().unwrap()))
            .collect();
        assert_eq!(
            pairs,
            [('c', "4"), ('e', ""), ('D', ""), ('q', "7"), ('d', "-x")]
        );
    }

    #[test]
    fn strange_arguments_are_named_in_the_words_of_getopt() {
        for (words, what) in [
            (&["-z"][..], "dnsperf: invalid option -- 'z'"),
            (&["-e9"], "dnsperf: invalid option -- '9'"),
            (&["--clients", "4"], "dnsperf: invalid option -- '-'"),
            (&["-e", "names.txt"], "unexpected argument names.txt"),
            (
                &["names.txt", "-e", "more"],
                "unexpected argument names.txt",
            ),
            (&["names.txt", "-z"], "dnsperf: invalid option -- 'z'"),
            (&["--", "-e"], "unexpected argument -e"),
            (&["-"], "unexpected argument -"),
            (&["-l"], "dnsperf: option requires an argument -- 'l'"),
        ] {
            let arguments = arguments(words);
            assert_eq!(split(&arguments).fault.unwrap().what, what);
        }
    }

    #[test]
    fn the_echoed_command_line_holds_no_secret() {
        for (words, expected) in [
            (
                &["-u", "-y", "hmac-sha256:key:c2VjcmV0"][..],
                "-u -y hmac-sha256:key:<secret>",
            ),
            (&["-uykey:c2VjcmV0", "-e"], "-uykey:<secret> -e"),
            (&["-y", "c2VjcmV0"], "-y <secret>"),
        ] {
            let arguments = arguments(words);
            let given = split(&arguments).given;
            assert_eq!(
                echo("dnsperf", &arguments, &given),
                format!("dnsperf {expected}")
            );
        }
    }
}
