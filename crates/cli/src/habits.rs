//! What is typed by habit of another program, and what to type here: flags, letters and commands by
//! their meaning, before the parser suggests what is spelt alike.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory};
use proto::time::parse_duration_or_seconds;
use settings::number::parse_number;

use crate::args::Arguments;
use crate::args::values::refusal;

mod table;

use table::{COMMANDS, FLAGS, OF_COMMAND, SUBCOMMANDS};

/// Commands that make a run, whose flags are those of `throng run`.
const RUNS: [&str; 5] = ["run", "replay", "capacity", "ramp", "compare-transports"];
/// Commands that send a query now and then.
const PROBES: [&str; 3] = ["ping", "eval", "trace"];

/// A letter that is a flag here and another one elsewhere, with a value that only the other takes:
/// what is wrong, with the cure.
pub(crate) fn clash(arguments: &[OsString]) -> Option<String> {
    let mut words = arguments.iter().skip(1).map(|word| word.to_str());
    let command = words.next()??;
    let is_probe = PROBES.contains(&command);
    if !is_probe && !RUNS.contains(&command) {
        return None;
    }
    let words: Vec<&str> = words.map(Option::unwrap_or_default).collect();
    let end = words.iter().position(|word| *word == "--");
    let words = &words[..end.unwrap_or(words.len())];
    words.iter().enumerate().find_map(|(position, word)| {
        let letter = word.strip_prefix('-')?.chars().next()?;
        let attached = word.get(1 + letter.len_utf8()..)?;
        let value = match attached {
            "" => words.get(position + 1)?,
            attached => attached,
        };
        let cure = match is_probe {
            true => cure_of_probe(command, letter, value)?,
            false => cure_of_run(command, letter, value)?,
        };
        let meaning = match letter {
            'q' => "-q is --quiet",
            't' => "-t is --transport",
            'm' => "-m is --transport",
            'n' => "-n is --names",
            'i' => "-i is --names",
            'l' => "-l is --duration",
            'c' => "-c is --clients",
            _ => "the letter has no such meaning",
        };
        Some(refusal(
            format_args!("`-{letter} {value}`: {meaning} here"),
            cure,
        ))
    })
}

fn cure_of_run(command: &str, letter: char, value: &str) -> Option<String> {
    let is_number = parse_number(value).is_some();
    Some(match letter {
        'q' if is_number => {
            format!("for queries in flight, as dnsperf's -q, give --outstanding {value}")
        }
        't' => time_or_length(value)?,
        'm' if is_number && command == "ramp" => format!("for the highest rate give --to {value}"),
        'm' if is_number => format!("for a rate give --rate {value}"),
        'n' if is_number && !Path::new(value).exists() => {
            format!("to ask all names N times, as dnsperf's -n, give --loops {value}")
        }
        'l' if value.parse::<IpAddr>().is_ok() => {
            format!("for a source address, as kxdpgun's -l, give --local-address {value}")
        }
        _ => return None,
    })
}

fn cure_of_probe(command: &str, letter: char, value: &str) -> Option<String> {
    let is_number = parse_number(value).is_some();
    let is_trace = command == "trace";
    Some(match letter {
        'c' | 'n' if is_number && !is_trace => {
            format!("for that many queries give --count {value}")
        }
        'q' if is_number && is_trace => format!("for queries per hop give --probes {value}"),
        'm' if is_number && is_trace => format!("for the last hop give --max-hops {value}"),
        'i' if !is_trace => {
            let time = parse_duration_or_seconds(value)?;
            format!(
                "for the time between queries give --interval {}s",
                time.as_secs_f64()
            )
        }
        't' if is_number && command == "ping" => {
            format!("for a timeout give --timeout {value}s, for a type --type A")
        }
        't' => time_or_length(value)?,
        _ => return None,
    })
}

/// What dnsperf's `-t 5` and kxdpgun's mean.
fn time_or_length(value: &str) -> Option<String> {
    let seconds = parse_duration_or_seconds(value)?.as_secs_f64();
    Some(format!(
        "for a timeout give --timeout {seconds}s, for the length of the run --duration {seconds}s"
    ))
}

/// What is wrong with a command line that the parser refuses, and what was meant by it.
pub(crate) fn meant(error: &clap::Error, subcommand: &str) -> Option<(String, String)> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let all = Arguments::command();
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = word(ContextKind::InvalidSubcommand)?;
            unknown_command(&all, word, subcommand)
        }
        ErrorKind::UnknownArgument => {
            let word = word(ContextKind::InvalidArg)?;
            let Some(command) = all.find_subcommand(subcommand) else {
                return outside_of_command(&all, word);
            };
            let cure = match word.starts_with('-') {
                true => flag(command, word).or_else(|| negative(word))?,
                false => bare_word(command, word)?,
            };
            Some((format!("unknown argument `{word}`"), cure))
        }
        _ => None,
    }
}

/// A flag by its meaning, in a command that has what the cure names.
pub(crate) fn flag(command: &Command, word: &str) -> Option<String> {
    let name = command.get_name();
    let own = OF_COMMAND
        .iter()
        .find(|(of, words, _)| *of == name && words.contains(&word));
    if let Some((.., cure)) = own {
        return Some((*cure).to_owned());
    }
    let takes = |flag: &str| {
        let mut arguments = command.get_arguments();
        flag.is_empty() || arguments.any(|it| it.get_long() == Some(flag) && !it.is_hide_set())
    };
    let mut rows = FLAGS.iter().filter(|(words, ..)| words.contains(&word));
    rows.find(|(_, flag, _)| takes(flag))
        .map(|(.., cure)| (*cure).to_owned())
}

/// A value that is taken for a flag, by its sign.
fn negative(word: &str) -> Option<String> {
    let number = word.strip_prefix('-')?;
    let is_number = number.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    is_number.then(|| "numbers and times are not negative: give one above zero".to_owned())
}

/// What an option of dig is here, if there is a flag for it.
pub(crate) fn dig_option(word: &str) -> Option<String> {
    let name = word.strip_prefix('+')?.split('=').next()?;
    Some(match name {
        "tcp" | "vc" => "give --transport tcp".to_owned(),
        "tls" => "give --transport dot".to_owned(),
        "https" | "https-post" | "https-get" => "give --transport doh2".to_owned(),
        "dnssec" | "do" => "give --dnssec".to_owned(),
        "norecurse" | "norec" | "nordflag" => "give --no-recursion".to_owned(),
        "bufsize" | "edns" => "give --edns-size 1232".to_owned(),
        "nsid" => "give --nsid".to_owned(),
        "timeout" | "time" => "give --timeout 2s".to_owned(),
        "retry" | "tries" => "give --retry 3s,3s".to_owned(),
        _ => return None,
    })
}

/// A word behind a command that takes none there.
fn bare_word(command: &Command, word: &str) -> Option<String> {
    if let Some(cure) = dig_option(word) {
        return Some(cure);
    }
    if PROBES.contains(&command.get_name()) {
        let bare = word.trim_start_matches('@');
        let is_host = word.starts_with('@') || bare.parse::<IpAddr>().is_ok();
        let server = if is_host { bare } else { "HOST" };
        return Some(format!(
            "one NAME is queried; the server is --server {server}, the type --type AAAA"
        ));
    }
    if command.get_name() == "compare" {
        return Some("two sides are compared: put several records of one into a folder".to_owned());
    }
    let takes_server = command
        .get_arguments()
        .any(|it: &Arg| it.get_long() == Some("server"));
    let server = word.trim_start_matches('@');
    (takes_server && is_server(word)).then(|| format!("give the server as --server {server}"))
}

/// True if this is more likely a server than a file.
pub(crate) fn is_server(word: &str) -> bool {
    const FILES: [&str; 7] = ["toml", "json", "txt", "pcap", "pcapng", "csv", "log"];
    let bare = word.trim_start_matches('@');
    let host = bare.split(['#', ':']).next().unwrap_or(bare);
    let is_address = bare.parse::<IpAddr>().is_ok() || bare.parse::<SocketAddr>().is_ok();
    let is_file = FILES
        .iter()
        .any(|ending| host.ends_with(&format!(".{ending}")));
    let is_name = host == "localhost" || host.contains('.') && !host.contains('/') && !is_file;
    is_address || word.contains("://") || word.starts_with('@') || is_name
}

/// A command that does not exist.
fn unknown_command(all: &Command, word: &str, subcommand: &str) -> Option<(String, String)> {
    match all.find_subcommand(subcommand) {
        Some(command) => {
            let name = command.get_name();
            let what = format!("`throng {name} {word}` is not a command");
            Some((what, nested_command(command, word)))
        }
        None => {
            let row = COMMANDS.iter().find(|(words, _)| words.contains(&word));
            let cure = row.map(|(_, cure)| (*cure).to_owned());
            let nearest = || nearest(all, word).map(|it| format!("do you mean `throng {it}`?"));
            let cure = cure.or_else(nearest).or_else(|| of_file_or_server(word))?;
            Some((format!("`{word}` is not a command"), cure))
        }
    }
}

/// What to type instead of a command that `command` does not have.
fn nested_command(command: &Command, word: &str) -> String {
    let name = command.get_name();
    let mut rows = SUBCOMMANDS.iter().filter(|(of, ..)| *of == name);
    if let Some((.., cure)) = rows.find(|(_, words, _)| words.contains(&word)) {
        return (*cure).to_owned();
    }
    if name == "experiment" && word.ends_with(".toml") {
        return format!("run it with `throng experiment run {word}`");
    }
    if let Some(nearest) = nearest(command, word) {
        return format!("do you mean `throng {name} {nearest}`?");
    }
    let commands = command.get_subcommands().filter(|it| !it.is_hide_set());
    let commands: Vec<&str> = commands.map(Command::get_name).collect();
    format!("commands are {}", commands.join(", "))
}

/// The command that takes a file of this kind, or a server.
fn of_file_or_server(word: &str) -> Option<String> {
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    Some(match word {
        _ if ends(&[".toml"]) => format!("run a scenario with `throng run {word}`"),
        _ if ends(&[".pcap", ".pcapng", ".dnstap"]) => {
            format!("replay a capture with `throng replay {word} --server HOST`")
        }
        _ if ends(&[".json"]) => format!("show a record with `throng report {word}`"),
        _ if is_server(word) => {
            format!("measure a server with `throng run --server {word} --names FILE`")
        }
        _ => return None,
    })
}

/// A word before any command.
fn outside_of_command(all: &Command, word: &str) -> Option<(String, String)> {
    let run = all.find_subcommand("run")?;
    let is_flag = run.get_arguments().any(|it| {
        let long = it
            .get_long()
            .is_some_and(|name| word == format!("--{name}"));
        long || it
            .get_short()
            .is_some_and(|letter| word == format!("-{letter}"))
    });
    let what = format!("`{word}` comes before any command");
    match word {
        "-v" | "--v" | "-version" | "--ver" => {
            Some((what, "print the version with `throng --version`".to_owned()))
        }
        _ if is_flag => Some((
            what,
            format!("write the command first: `throng run {word} ...`"),
        )),
        _ => flag(run, word).map(|cure| (what, format!("`throng run` first; then {cure}"))),
    }
}

/// The visible command that is spelt almost like that.
fn nearest<'a>(command: &'a Command, word: &str) -> Option<&'a str> {
    let names = command
        .get_subcommands()
        .filter(|it| !it.is_hide_set())
        .map(Command::get_name);
    let distances = names.map(|name| (strsim::damerau_levenshtein(word, name), name));
    let (distance, name) = distances.min()?;
    let allowed = if name.len() < 5 { 1 } else { 2 };
    (distance <= allowed).then_some(name)
}
