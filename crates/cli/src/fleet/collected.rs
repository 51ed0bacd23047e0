//! What a command that runs in another place reads, read here.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use lab::files;
use lab::kubernetes::FleetInputs;
use lab::observing::Sources;
use settings::{DriverKind, Run};

use crate::args::{Arguments, Command, RunCommand};
use crate::failure::Failure;
use crate::fit::Contents;
use crate::run::group::Group;
use crate::run::{self, captured};
use crate::{command_line, compare, inputs, replay, scenario};

/// Stands for the address of a server, which is looked up where the load is generated (RFC 5737).
const LATER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 53);

/// Flags of a run that the fleet decides.
const OF_FLEET: [&str; 6] = [
    "--agents",
    "--barrier-timeout",
    "--hosts",
    "--keys",
    "--listen",
    "--min-agents",
];

/// What the command of a lead needs of its pod.
pub(super) struct Collected {
    /// What it reads.
    pub(super) inputs: FleetInputs,
    /// The port at which Prometheus reaches its metrics.
    pub(super) metrics_port: Option<u16>,
}

/// Checks a command of `throng` as far as that can be done here, and returns what it needs.
///
/// # Errors
/// It is none that agents take part in, or something is wrong with it.
pub(super) fn collect(words: &[String]) -> Result<Collected, Failure> {
    inputs::keep_all();
    refuse_of_fleet(words)?;
    let parsed = parse(words)?;
    refuse_elsewhere(written(&parsed.command))?;
    let runs = match &parsed.command {
        Command::Run(command) => of_run_command(command)?,
        Command::Capacity(arguments) => vec![vec![Group::plain(&arguments.run)?]],
        Command::Ramp(arguments) => vec![vec![Group::plain(&arguments.run)?]],
        Command::CompareTransports(arguments) => vec![vec![Group::plain(&arguments.run)?]],
        Command::Compare(arguments) => {
            let sides = [&arguments.a, &arguments.b].into_iter().flatten();
            let runs: Vec<_> = sides.map(|side| runs_of(side)).collect::<Result<_, _>>()?;
            if runs.is_empty() {
                return Err(Failure::usage(
                    "records that are there are compared without agents",
                    "give two commands, --a and --b, or use `throng compare` here",
                ));
            }
            runs.concat()
        }
        Command::Replay(arguments) => {
            let run = arguments.run.settings()?;
            let source = replay::source(arguments, &run);
            captured::read(&run, &source, Contents::report)?;
            check(&run)?;
            Vec::new()
        }
        Command::Experiment(_) => {
            return Err(Failure::usage(
                "an experiment is led from here, where it starts its servers",
                "use `throng fleet run`",
            ));
        }
        _ => {
            return Err(Failure::usage(
                format!("`throng {}` has no agents", words[0]),
                "give run, replay, capacity, ramp, compare, compare-transports or experiment run, \
                 with its flags",
            ));
        }
    };
    refuse_elsewhere(runs.iter().flatten().flat_map(|group| {
        let conditions = &group.output.conditions;
        [
            ("--record", &group.output.record),
            ("--junit", &conditions.junit),
        ]
    }))?;
    let metrics_port = metrics_address(&parsed.command, &runs).and_then(reachable_port);
    for groups in runs {
        let groups: Vec<Group> = groups.into_iter().map(later).collect();
        for group in &groups {
            check(&group.run).map_err(|failure| group.blame(failure))?;
        }
        run::read_inputs(&groups)?;
    }
    let (paths, contents) = inputs::for_agents();
    Ok(Collected {
        inputs: FleetInputs { paths, contents },
        metrics_port,
    })
}

/// Where a command serves its metrics: `--metrics`, also as a key of a scenario.
fn metrics_address(command: &Command, runs: &[Vec<Group>]) -> Option<SocketAddr> {
    match command {
        Command::Compare(arguments) => arguments.serve_metrics,
        Command::Replay(arguments) => arguments.run.metrics,
        _ => runs.first()?.first()?.output.views.metrics,
    }
}

/// The port of an address that other pods reach; none if the system will choose it.
fn reachable_port(address: SocketAddr) -> Option<u16> {
    (!address.ip().is_loopback() && address.port() != 0).then_some(address.port())
}

/// What a command of `throng` is asked.
///
/// # Errors
/// It is none.
pub(super) fn parse(words: &[String]) -> Result<Arguments, Failure> {
    let line = ["throng".to_owned()]
        .into_iter()
        .chain(words.iter().cloned());
    let parsed = command_line::parse(line.map(Into::into).collect());
    parsed.map_err(|error| command_line::wrong(&error, &words[0]))
}

fn of_run_command(command: &RunCommand) -> Result<Vec<Vec<Group>>, Failure> {
    let source = scenario::Source::of_command(command)?;
    let runs = scenario::runs(source, &command.run)?;
    Ok(runs.into_iter().map(|(_, groups)| groups).collect())
}

/// The runs of a side of a comparison.
fn runs_of(side: &str) -> Result<Vec<Vec<Group>>, Failure> {
    let words = shlex::split(side).unwrap_or_default();
    refuse_of_fleet(&words)?;
    let is_name = |word: &&String| ["throng", "run"].contains(&word.as_str());
    let names = words.iter().take_while(is_name).count();
    let command = compare::run_command(&words[names..])?;
    of_run_command(&command)
}

/// The command with flags that are about its agents: those of both sides of a comparison, and
/// behind those of any other.
pub(super) fn led(words: &[String], flags: &[String]) -> Vec<String> {
    let mut led = words.to_vec();
    if words.first().is_none_or(|word| word != "compare") {
        led.extend_from_slice(flags);
        return led;
    }
    let flags = flags.join(" ");
    for at in 1..led.len() {
        let is_flag = |word: &str| ["--a", "--b"].contains(&word);
        if is_flag(&led[at - 1]) {
            led[at] = format!("{} {flags}", led[at]);
        } else if let Some((flag, side)) = led[at].split_once('=')
            && is_flag(flag)
        {
            led[at] = format!("{flag}={side} {flags}");
        }
    }
    led
}

/// The same, whose servers are looked up later.
fn later(group: Group) -> Group {
    let servers = group.run.servers.iter();
    let addresses = servers.map(|server| (LATER, server.clone())).collect();
    Group {
        addresses: Some(addresses),
        ..group
    }
}

/// Refuses what a fleet cannot do, or decides itself.
fn check(run: &Run) -> Result<(), Failure> {
    if run.is_self_test() || run.is_simulated() {
        return Err(Failure::usage(
            "the agents have no server to query",
            "give --server; the built-in responder and simulations need no other hosts",
        ));
    }
    let generator = &run.generator;
    if generator.driver == Some(DriverKind::Xdp) {
        return Err(Failure::usage(
            "--driver xdp needs capabilities, and pods have none",
            "leave out --driver and --interface",
        ));
    }
    if run.tls.as_ref().is_some_and(|tls| tls.key_log.is_some()) {
        return Err(Failure::usage(
            "--tls-keylog: each agent would write secrets to its pod, where nobody fetches them",
            "leave it out",
        ));
    }
    if let Some(path) = Sources::parse(&run.observe)?.files().next() {
        return Err(Failure::usage(
            format!("--observe reads {}, which no pod has", path.display()),
            "observe from here, by `throng fleet run` of an experiment, or without credentials",
        ));
    }
    let given = [
        ("--agents", generator.agents.is_some()),
        ("--hosts", generator.hosts.is_some()),
        ("--listen", generator.listen.is_some()),
        ("--keys", generator.keys.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((flag, _)) => Err(of_fleet(flag)),
    }
}

/// Refuses files, by the flags that name them, that the command would not write below the folder of
/// the lead, from which results are fetched: elsewhere the lead writes nothing.
fn refuse_elsewhere<'a>(
    written: impl IntoIterator<Item = (&'static str, &'a Option<PathBuf>)>,
) -> Result<(), Failure> {
    for (flag, path) in written {
        let Some(path) = path else { continue };
        let is_alone = path.components().count() <= 1 || flag == "--records";
        if !(files::is_below(path) && is_alone) {
            return Err(Failure::usage(
                format!("{flag} {} is not in the folder of the lead", path.display()),
                "give a name alone here, and the folder by --output before `--`",
            ));
        }
    }
    Ok(())
}

/// What a command writes beside its runs.
fn written(command: &Command) -> Vec<(&'static str, &Option<PathBuf>)> {
    match command {
        Command::Capacity(arguments) => vec![("--records", &arguments.records)],
        Command::CompareTransports(arguments) => vec![("--records", &arguments.records)],
        Command::Ramp(arguments) => vec![("--plot", &arguments.plot)],
        Command::Compare(arguments) => vec![
            ("--records", &arguments.records),
            ("--junit", &arguments.conditions.junit),
        ],
        Command::Replay(arguments) => vec![
            ("--record", &arguments.run.record),
            ("--junit", &arguments.run.conditions.junit),
        ],
        _ => Vec::new(),
    }
}

/// Refuses flags among the words of a command that the fleet decides.
fn refuse_of_fleet(words: &[String]) -> Result<(), Failure> {
    let name = |word: &String| word.split('=').next().unwrap_or_default().to_owned();
    let flag = words
        .iter()
        .map(name)
        .find(|it| OF_FLEET.contains(&it.as_str()));
    flag.map_or(Ok(()), |flag| Err(of_fleet(&flag)))
}

fn of_fleet(flag: &str) -> Failure {
    let hint = match flag {
        "--agents" | "--barrier-timeout" | "--min-agents" => "give it before `--`",
        _ => "leave it out: lead and agents have an address and keys of their own",
    };
    Failure::usage(format!("{flag} is decided by the fleet"), hint)
}
