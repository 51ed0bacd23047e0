use std::collections::BTreeSet;

use clap::CommandFactory;

use super::*;
use crate::args::{Arguments, Command};
use crate::failure::Failure;
use crate::run::unused;

/// The flags of a command but those that the parser adds, and a command's own flag that stands in
/// the place of one of a run.
fn flags_of(command: &str) -> Vec<Arg> {
    let all = Arguments::command();
    let command = all.find_subcommand(command).expect("a command");
    let is_own =
        |arg: &&Arg| matches!(arg.get_id().as_str(), "help" | "version" | "form" | "trust");
    let flags = command.get_arguments().filter(|arg| !is_own(arg));
    flags
        .filter(|arg| arg.get_long().is_some())
        .cloned()
        .collect()
}

#[test]
fn the_table_has_the_flags_of_the_parser() {
    let parsed = flags_of("run");
    let parsed: BTreeSet<&str> = parsed.iter().filter_map(Arg::get_long).collect();
    let rows: BTreeSet<&str> = FLAGS.iter().map(|flag| flag.name).collect();
    assert_eq!(rows, parsed);
    assert_eq!(rows.len(), FLAGS.len(), "a flag has one row");
    let needed: BTreeSet<&str> = FLAGS.iter().filter_map(|flag| flag.needed).collect();
    assert!(needed.is_subset(&rows), "{needed:?}");
}

#[test]
fn help_shows_the_flags_that_a_command_takes() {
    for (command, asker) in [("replay", Capture), ("capacity", Capacity), ("ramp", Ramp)] {
        for arg in flags_of(command) {
            let name = arg.get_long().unwrap_or_default();
            if let Some(flag) = find(name) {
                let is_refused = flag.refused_by(asker).is_some();
                assert_eq!(arg.is_hide_set(), is_refused, "{command} --{name}");
            }
        }
    }
}

/// A value that the parser takes; none for a switch.
fn sample(arg: &Arg) -> Option<String> {
    if !arg.get_action().takes_values() {
        return None;
    }
    let name = arg.get_long().unwrap_or_default();
    let of_name = match name {
        "label" => "a=b",
        "stall" => "at=3s,for=1s",
        "delay" | "sim-service-time" | "sim-miss-time" => "1ms",
        "transport" => "udp",
        "local-address" => "127.0.0.1",
        "edns-size" => "1232",
        "retry" => "3s",
        "server-order" => "rotate",
        "failover-rcodes" => "SERVFAIL",
        "doh-method" => "get",
        _ => "",
    };
    if !of_name.is_empty() {
        return Some(of_name.to_owned());
    }
    let default = arg.get_default_values().first();
    if let Some(default) = default {
        // What equals the default is given too.
        return Some(default.to_string_lossy().into_owned());
    }
    let choices = arg.get_possible_values();
    if let Some(first) = choices.first() {
        return Some(first.get_name().to_owned());
    }
    let value = arg.get_value_names().and_then(|names| names.first());
    let sample = match value.map_or("", |value| value.as_str()) {
        "TIME" => "1s",
        "ADDRESS:PORT" => "127.0.0.1:1",
        "SHARE" | "FACTOR" | "EXPONENT" => "0.5",
        _ => "1",
    };
    Some(sample.to_owned())
}

/// Whether a command line is refused for a flag that does nothing there, and why.
fn refusal(line: &str) -> Result<(), String> {
    let words = ["throng"].into_iter().chain(line.split_whitespace());
    let parsed = match crate::command_line::parse(words.map(Into::into).collect()) {
        Ok(parsed) => parsed,
        Err(error) => panic!("{line}: {error}"),
    };
    let words = |outcome: Result<(), Failure>| outcome.map_err(|it| it.what().to_owned());
    match parsed.command {
        Command::Run(command) => words(command.run.settings().map(drop)),
        Command::Replay(command) => words(crate::replay::reject(&command.run)),
        Command::Capacity(command) => words(unused::refuse(&command.run, Capacity, "here")),
        Command::Ramp(command) => words(unused::refuse(&command.run, Ramp, "here")),
        Command::CompareTransports(command) => {
            words(unused::refuse(&command.run, Transports, "here"))
        }
        Command::Ping(command) => words(crate::probe::reject_hidden("ping", &command.probe.run)),
        Command::Trace(command) => words(crate::probe::reject_hidden("trace", &command.probe.run)),
        other => panic!("{other:?}"),
    }
}

/// Command lines in which a flag does nothing.
fn idle_lines(flag: &Flag) -> Vec<String> {
    let mut lines = Vec::new();
    let transports = [
        Transport::Udp,
        Transport::Tcp,
        Transport::Dot,
        Transport::Doh2,
        Transport::Doh3,
        Transport::Doq,
    ];
    let unsuited = transports.into_iter().filter(|it| !flag.suits(*it));
    lines.extend(unsuited.map(|transport| format!("run -t {transport}")));
    let suited = transports.into_iter().find(|it| flag.suits(*it));
    let suited = suited.expect("each flag suits a transport");
    lines.extend(match flag.at {
        At::Anywhere => None,
        At::Sockets => Some(format!("run -t {suited} --driver sim")),
        At::Interface | At::Simulation | At::Server => Some(format!("run -t {suited}")),
        At::Responder => Some(format!("run -t {suited} --server 192.0.2.1")),
    });
    if flag.is_of_tls() {
        lines.push("run -t doh2 --server http://192.0.2.1/dns-query".to_owned());
    }
    if flag.needed.is_some() {
        lines.push("run --driver sim".to_owned());
    }
    if flag.is_of_text {
        lines.push("run --names x --names-format stream".to_owned());
    }
    let of_command = |asker: &Asker| match asker {
        Capture => "replay x.pcap".to_owned(),
        Profile => "run --profile x".to_owned(),
        Capacity => "capacity".to_owned(),
        Ramp => "ramp --to 1k".to_owned(),
        Transports => "compare-transports".to_owned(),
    };
    lines.extend(flag.refused.iter().map(|(asker, _)| of_command(asker)));
    if flag.calls == Calls::None {
        lines.push("ping a.example --server 192.0.2.1".to_owned());
    }
    if flag.calls != Calls::All {
        lines.push("trace a.example --server 192.0.2.1".to_owned());
    }
    lines
}

#[test]
fn every_flag_is_refused_where_it_does_nothing() {
    let args = flags_of("run");
    let mut tried = 0;
    for flag in &FLAGS {
        let arg = args.iter().find(|arg| arg.get_long() == Some(flag.name));
        let arg = arg.expect("the table is that of the parser");
        for line in idle_lines(flag) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let name = format!("--{}", flag.name);
            // The command has it already, or the parser refuses both together; and the --format of
            // ping and trace has the name of that of a run.
            let is_there = words.contains(&name.as_str()) || flag.name == "transport";
            let is_replaced = flag.name == "format" && line.starts_with("trace");
            if is_there || is_replaced || is_refused_by_parser(flag.name, &line) {
                continue;
            }
            let given = match sample(arg) {
                Some(value) => format!("{line} {name}={value}"),
                None => format!("{line} {name}"),
            };
            // Two that are there only together.
            let given = match flag.name {
                "tls-cert" => format!("{given} --tls-key=1"),
                "tls-key" => format!("{given} --tls-cert=1"),
                "profile-zone" | "profile-mix" | "rate-factor" => format!("{given} --profile=1"),
                "cache-hit-ratio" => format!("{given} --random-labels=1"),
                "cache-ttl" | "hot-names" => {
                    format!("{given} --cache-hit-ratio=0.5 --random-labels=1")
                }
                _ => given,
            };
            let why = refusal(&given).expect_err(&given);
            assert!(
                why.contains("no effect") || why.contains("cannot be used"),
                "{given}: {why}"
            );
            tried += 1;
        }
    }
    assert!(tried > 300, "{tried}");
}

/// True where clap's own rules come first.
fn is_refused_by_parser(name: &str, line: &str) -> bool {
    let only_in_turn = ["record", "transport"];
    (line.starts_with("compare-transports") && only_in_turn.contains(&name))
        || (line.contains("--names x") && name == "hot-names")
}

#[test]
fn what_is_given_where_it_does_something_is_taken() {
    for line in [
        "run --rate 5k --arrival constant --burst 1",
        "run --driver sim --sim-delay 1ms --sim-loss 0",
        "run -t doh2 --server https://192.0.2.1/dns-query --tls-insecure --doh-method post",
        "run -t dot --tls-groups x25519 --tls-resume never",
        "run -t tcp --pipeline 5 --loss 0",
        "run --edns-size 1232 --no-offload --timestamps off",
        "capacity --search clients --rate-per-client 2 --burst 1",
        "ping a.example --server 192.0.2.1 --interval 1s --format json",
    ] {
        assert_eq!(refusal(line), Ok(()), "{line}");
    }
}
