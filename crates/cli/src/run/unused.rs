//! Flags that a run would ignore: a figure must not hide what it does not measure.

use std::time::Duration;

use proto::tls::Group;

use crate::args::{ArrivalProcess, DriverChoice, NamesFormat, RunArguments, TimestampChoice};
use crate::failure::Failure;
use crate::run::{questions, tls};

/// The default of `--sim-delay`.
const SIM_DELAY: Duration = Duration::from_millis(1);

/// Refuses flags that have no effect on this run.
pub(super) fn reject(arguments: &RunArguments) -> Result<(), Failure> {
    if arguments.arrival == ArrivalProcess::Poisson && arguments.rate.is_none() {
        return Err(unused("--arrival", "a load without a rate", "add --rate"));
    }
    if arguments.burst != 1 && arguments.rate.is_none() {
        return Err(unused("--burst", "a load without a rate", "add --rate"));
    }
    reject_tls(arguments)?;
    reject_doh(arguments)?;
    reject_questions(arguments)?;
    questions::reject(arguments)?;
    reject_interface(arguments)?;
    reject_timestamps(arguments)?;
    let is_simulated = arguments.driver == DriverChoice::Sim;
    let model = given(&arguments.simulation.server.given());
    match given(&simulation(arguments)).or(model) {
        Some(flag) if !is_simulated => {
            return Err(unused(flag, "sockets of the kernel", "add --driver sim"));
        }
        _ => {}
    }
    if let Some((flag, needed)) = arguments.simulation.server.incomplete() {
        let what = format!("a server without {needed}");
        return Err(unused(flag, &what, &format!("add {needed}")));
    }
    if is_simulated && !arguments.cpus.is_empty() {
        return Err(unused("--cpus", "a simulation", "use --driver epoll"));
    }
    if is_simulated && arguments.processes.is_some() {
        return Err(unused("--processes", "a simulation", "use --driver epoll"));
    }
    match (given(&behaviour(arguments)), arguments.server.first()) {
        (Some(flag), Some(server)) => Err(unused(
            flag,
            &format!("{server}: it is for the built-in responder"),
            "leave out --server",
        )),
        _ => Ok(()),
    }
}

/// What AF_XDP cannot do, and what it needs.
fn reject_interface(arguments: &RunArguments) -> Result<(), Failure> {
    let transport = arguments.transport;
    match (arguments.driver, arguments.interface) {
        (DriverChoice::Xdp, None) => Err(Failure::usage(
            "--driver xdp: which interface?",
            "add --interface, with the one that leads to the server; `ip route get ADDRESS` tells",
        )),
        (DriverChoice::Xdp, _) if transport.is_stream() => Err(Failure::usage(
            format!("--driver xdp moves datagrams, and {transport} is a stream"),
            "use --transport udp, doq or doh3, or another driver",
        )),
        (DriverChoice::Xdp, _) if arguments.server.is_empty() => Err(Failure::usage(
            "--driver xdp: the built-in responder is on this host, where no frame is sent",
            "give --server an address beyond the interface, or use another driver",
        )),
        (DriverChoice::Xdp, _) if arguments.processes.is_some_and(|it| it > 1) => {
            Err(Failure::usage(
                "--processes: only one process can have an interface for XDP",
                "leave out --processes; each worker takes a queue of the interface",
            ))
        }
        (DriverChoice::Xdp, Some(_)) | (_, None) => Ok(()),
        (_, Some(_)) => {
            let what = "sockets of the kernel";
            Err(unused("--interface", what, "add --driver xdp"))
        }
    }
}

/// Drivers whose datagrams nobody stamps.
fn reject_timestamps(arguments: &RunArguments) -> Result<(), Failure> {
    if arguments.timestamps == TimestampChoice::Off {
        return Ok(());
    }
    let what = match arguments.driver {
        DriverChoice::Auto | DriverChoice::Epoll => return Ok(()),
        DriverChoice::Sim => "a simulation, where nothing waits for this host",
        DriverChoice::Uring => "io_uring, which does not hand over the kernel's timestamps",
        DriverChoice::Xdp => "AF_XDP, whose frames do not pass where the kernel stamps them",
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

fn reject_tls(arguments: &RunArguments) -> Result<(), Failure> {
    let flags = &arguments.tls;
    let knows_server = [
        ("--tls-ca", flags.tls_ca.is_some()),
        ("--tls-name", flags.tls_name.is_some()),
        ("--tls-pin", !flags.tls_pin.is_empty()),
        ("--tls-cert", flags.tls_cert.is_some()),
    ];
    let any_server = [
        ("--tls-insecure", flags.tls_insecure),
        ("--tls-version", flags.tls_version.is_some()),
        ("--tls-ciphers", !flags.tls_ciphers.is_empty()),
        ("--tls-groups", flags.tls_groups != default_groups()),
        ("--tls-resume", flags.tls_resume != "never"),
        ("--tls-early-data", flags.tls_early_data),
        ("--tls-alpn", !flags.tls_alpn.is_empty()),
        ("--tls-no-sni", flags.tls_no_sni),
        ("--tls-keylog", flags.tls_keylog.is_some()),
        ("--tls-stock", flags.tls_stock),
    ];
    let transport = arguments.transport;
    if flags.tls_stock && transport.is_quic() {
        let what = format!("transport {transport}, which has no TLS records");
        return Err(unused("--tls-stock", &what, "use --transport dot or doh2"));
    }
    if !transport.has_tls() {
        let flag = given(&knows_server).or_else(|| given(&any_server));
        return flag.map_or(Ok(()), |flag| {
            let what = format!("transport {transport}");
            Err(unused(flag, &what, "use --transport dot"))
        });
    }
    tls::check(arguments)?;
    match given(&knows_server) {
        Some(flag) if arguments.server.is_empty() => Err(unused(
            flag,
            "a self-test, which verifies a certificate of its own",
            "give a server with --server",
        )),
        _ => Ok(()),
    }
}

fn reject_doh(arguments: &RunArguments) -> Result<(), Failure> {
    let transport = arguments.transport;
    match given(&arguments.doh.given()) {
        Some(flag) if !transport.is_doh() => {
            let what = format!("transport {transport}");
            Err(unused(flag, &what, "use --transport doh2 or doh3"))
        }
        _ => Ok(()),
    }
}

/// The default of `--tls-groups`, which a test compares with what is offered.
fn default_groups() -> [&'static str; 4] {
    Group::DEFAULT.map(Group::name)
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
    let flags = [
        ("--no-recursion", arguments.no_recursion),
        ("--edns-size", arguments.edns_size.is_some()),
        ("--dnssec", arguments.dnssec),
        ("--edns-option", !arguments.edns_option.is_empty()),
        ("--edns-padding", arguments.edns_padding.is_some()),
        ("--edns-keepalive", arguments.edns_keepalive),
        ("--qtypes", arguments.choice.qtypes.is_some()),
        ("--water-torture", arguments.choice.water_torture),
    ];
    given(&flags).map_or(Ok(()), |flag| {
        let what = "whole messages, which are sent as they are";
        Err(unused(flag, what, "use --names-format text"))
    })
}

fn given(flags: &[(&'static str, bool)]) -> Option<&'static str> {
    let mut given = flags.iter().filter(|(_, is_given)| *is_given);
    given.next().map(|(flag, _)| *flag)
}

fn simulation(arguments: &RunArguments) -> [(&'static str, bool); 5] {
    let flags = &arguments.simulation;
    [
        ("--sim-delay", flags.sim_delay != SIM_DELAY),
        ("--sim-jitter", !flags.sim_jitter.is_zero()),
        ("--sim-loss", flags.sim_loss != 0.0),
        ("--sim-duplicate", flags.sim_duplicate != 0.0),
        ("--sim-reorder", flags.sim_reorder != 0.0),
    ]
}

fn behaviour(arguments: &RunArguments) -> [(&'static str, bool); 20] {
    let flags = &arguments.behaviour.behaviour;
    [
        ("--delay", flags.delay.is_some()),
        ("--loss", flags.loss != 0.0),
        ("--rcodes", flags.rcodes.is_some()),
        ("--truncate", flags.truncate != 0.0),
        ("--duplicate", flags.duplicate != 0.0),
        ("--wrong-id", flags.wrong_id != 0.0),
        ("--wrong-question", flags.wrong_question != 0.0),
        ("--garbage", flags.garbage != 0.0),
        ("--reset-streams", flags.reset_streams != 0.0),
        ("--http-statuses", flags.http_statuses.is_some()),
        ("--quic-retry", flags.quic_retry != 0.0),
        (
            "--quic-version-negotiation",
            flags.quic_version_negotiation != 0.0,
        ),
        ("--quic-refuse", flags.quic_refuse != 0.0),
        ("--quic-ignore", flags.quic_ignore != 0.0),
        ("--oversize", flags.oversize != 0.0),
        ("--stall", !flags.stall.is_empty()),
        ("--ceiling", flags.ceiling.is_some()),
        ("--tcp-clients", flags.tcp_clients.is_some()),
        ("--idle-timeout", flags.idle_timeout.is_some()),
        ("--end-after", flags.end_after.is_some()),
    ]
}
