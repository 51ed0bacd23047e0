//! Flags that a run would ignore: a figure must not hide what it does not measure.

use settings::{DriverKind, Run};

use crate::args::doh::Server;
use crate::args::flags::{self, Asker, Situation};
use crate::args::{NamesFormat, RunArguments};
use crate::failure::Failure;
use crate::run::{questions, tls};

/// Refuses flags that have no effect where this run is.
pub(super) fn reject_idle(arguments: &RunArguments) -> Result<(), Failure> {
    match idle(arguments).next() {
        Some((name, what, cure)) => Err(unused(&format!("--{name}"), &what, &cure)),
        None => Ok(()),
    }
}

/// Flags without effect where this run is: name, what they have no effect on, and the cure.
pub(crate) fn idle(arguments: &RunArguments) -> impl Iterator<Item = (&str, String, String)> {
    let situation = situation(arguments);
    arguments.given.iter().filter_map(move |given| {
        let flag = flags::find(&given.name)?;
        let (what, cure) = flag.idle(&situation)?;
        Some((given.name.as_str(), what, cure))
    })
}

/// Refuses what contradicts the rest of the run, or has no effect beside it.
pub(super) fn reject(arguments: &RunArguments, run: &Run) -> Result<(), Failure> {
    tls::check(run)?;
    reject_questions(arguments)?;
    questions::reject(arguments)?;
    reject_interface(arguments)?;
    reject_timestamps(arguments)
}

fn situation(arguments: &RunArguments) -> Situation<'_> {
    let server = arguments.server.first().map(String::as_str);
    Situation {
        transport: arguments.transport,
        is_plain_http: server.is_some_and(|server| Server::parse(server).is_plain_http()),
        is_simulated: arguments.driver == Some(DriverKind::Sim),
        is_xdp: arguments.driver == Some(DriverKind::Xdp),
        is_profile: arguments.profile.profile.is_some(),
        are_messages: arguments.names_format == NamesFormat::Stream,
        server,
        given: &arguments.given,
    }
}

/// Refuses the first flag that has no place where `asker` decides what it would say.
pub(crate) fn refuse(run: &RunArguments, asker: Asker, place: &str) -> Result<(), Failure> {
    let cure = |name: &str| flags::find(name).and_then(|flag| flag.refused_by(asker));
    let mut given = run.given.iter();
    match given.find_map(|given| Some((&given.name, cure(&given.name)?))) {
        None => Ok(()),
        Some((name, cure)) => Err(Failure::usage(
            format!("--{name} cannot be used {place}"),
            format!("leave it out: {cure}"),
        )),
    }
}

/// What AF_XDP cannot do, and what it needs.
fn reject_interface(arguments: &RunArguments) -> Result<(), Failure> {
    let transport = arguments.transport;
    match (arguments.driver, arguments.interface) {
        (Some(DriverKind::Xdp), None) => Err(Failure::usage(
            "--driver xdp needs an interface",
            "add --interface with that to the server; `ip route get ADDRESS` shows it",
        )),
        (Some(DriverKind::Xdp), _) if transport.is_stream() => Err(Failure::usage(
            format!("--driver xdp moves datagrams, and {transport} is a stream"),
            "use --transport udp, doq or doh3, or another driver",
        )),
        (Some(DriverKind::Xdp), _) if arguments.server.is_empty() => Err(Failure::usage(
            "--driver xdp: the built-in responder is on this host, where no frame is sent",
            "give --server an address beyond the interface, or use another driver",
        )),
        (Some(DriverKind::Xdp), _) if arguments.agents.is_some_and(|it| it > 1) => {
            Err(Failure::usage(
                "--agents: only one process can have an interface for XDP",
                "leave out --agents; each worker takes a queue of the interface",
            ))
        }
        _ => Ok(()),
    }
}

/// Drivers whose datagrams the kernel does not timestamp.
fn reject_timestamps(arguments: &RunArguments) -> Result<(), Failure> {
    if arguments.sockets.timestamps.is_none() {
        return Ok(());
    }
    let what = match arguments.driver {
        None | Some(DriverKind::Epoll) => return Ok(()),
        Some(DriverKind::Sim) => "a simulation, where nothing waits for this host",
        Some(DriverKind::Uring) => "io_uring, which does not hand over the kernel's timestamps",
        Some(DriverKind::Xdp) => "AF_XDP, whose frames do not pass where the kernel stamps them",
    };
    Err(unused("--timestamps", what, "use --driver epoll"))
}

/// `cure` is one of two: the other is to do without the flag.
fn unused(flag: &str, what: &str, cure: &str) -> Failure {
    Failure::usage(
        format!("{flag} has no effect on {what}"),
        format!("{cure}, or leave out {flag}"),
    )
}

fn reject_questions(arguments: &RunArguments) -> Result<(), Failure> {
    if arguments.names_format == NamesFormat::Text {
        return Ok(());
    }
    if arguments.names.is_none() {
        let cure = "give the messages with --names FILE";
        let names = match arguments.choice.zone() {
            None => "the self-test's own names",
            Some(_) => "names that are generated",
        };
        return Err(unused("--names-format", names, cure));
    }
    Ok(())
}
