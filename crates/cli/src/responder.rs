//! `throng responder`: a synthetic target with programmable behaviour.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use driver::clock::Clock;
use lab::agents::{Carrier, Connection, serve_all, start_responders};
use lab::files::{self, Access};
use lab::run::{ResponderShare, Serving, SocketUse, TargetScope, target_scope};
use proto::Transport;
use proto::doq::MessageIds;
use proto::tls::{
    ClientCertificates, Group, ServerTlsOptions, Tickets, TlsConfigError, TlsSetting,
};
use responder::behaviour::{
    self, parse_connection_end, parse_http_status_shares, parse_rcode_shares, parse_share,
};
use responder::certificate::{Identity, SelfSigned, from_pem, self_signed};
use responder::{Behaviour, Counters, FaultShares, Limits, QuicShares, ResponderConfig, Zone};
use settings::{DriverChoice, DriverKind};
use signal_hook::consts::SIGUSR1;

use crate::agent::{self, AgentIndex, Setup, Shared, Work};
use crate::args::{
    BehaviourArguments, ClientCertificatePolicy, DOH2_HTTP, Listen, ResponderArguments,
    ServerTlsArguments,
};
use crate::failure::{Failure, print};
use crate::inputs;
use crate::run::tls::{self, EARLY_DATA_OCTETS_MAX};
use crate::signals;
use crate::views;

/// How long a responder without --duration may run: a forgotten one must end some day.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Tickets after a handshake unless told otherwise.
const TICKETS: u8 = 2;

/// The default response rate limit where any host may query.
const RATE_LIMIT: u32 = 1_000;

/// Serves until told to stop, then prints what was counted.
pub(crate) fn execute(arguments: &ResponderArguments) -> Result<ExitCode, Failure> {
    reject_interface(arguments)?;
    reject_of_one_process(arguments)?;
    let identity = identity(arguments, None)?;
    let config = config(arguments, identity.as_ref())?;
    if let (Some(rate), None) = (config.source_rate_max, arguments.rate_limit) {
        tell!(
            "note: response rate limit over UDP: {rate} per second to each /24 or /56; \
             --no-rate-limit lifts it"
        );
    }
    // A file that cannot be written is better known now than at the end.
    write_counters(arguments, &Counters::default())?;
    let stop = match &arguments.counters {
        None => signals::receiver()?,
        Some(_) => signals::receiver_also_of(SIGUSR1)?,
    };
    // Before anything listens: who waits for the addresses below finds the certificate.
    if let (Some(path), Some(identity)) = (&arguments.write_certificate, &identity) {
        let written = files::write(path, Access::Umask, &identity.certificate_pem);
        written.map_err(|error| {
            Failure::unwritable(
                format!("cannot write {}: {error}", path.display()),
                &error,
                "give --write-certificate a file in a folder that exists and may be written",
            )
        })?;
    }
    let end = Instant::now() + arguments.duration.unwrap_or(DURATION_MAX);
    // Either a signal or the end of the time ends it.
    let wait = |wait: Duration| {
        let left = end.saturating_duration_since(Instant::now());
        let waited = stop.recv_timeout(wait.min(left));
        (waited, wait >= left)
    };
    let counters = match arguments.processes {
        1 => {
            let serving = Arc::new(start(&config, arguments)?);
            let served = Arc::clone(&serving);
            {
                // It is the other owner.
                let _exporter =
                    views::serve_responder(arguments.metrics, move || served.counted())?;
                announce(arguments, serving.addresses())?;
                while let (Ok(SIGUSR1), _) = wait(DURATION_MAX) {
                    write_counters(arguments, &serving.counted())?;
                }
            }
            let serving = Arc::into_inner(serving).expect("nothing else serves metrics");
            serving.stop()
        }
        processes => {
            let shall_stop = |time: Duration| {
                let (waited, is_over) = wait(time);
                waited != Err(RecvTimeoutError::Timeout) || is_over
            };
            serve_in_processes(arguments, identity.as_ref(), processes, shall_stop)?
        }
    };
    write_counters(arguments, &counters)?;
    print(&format!("{counters}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses what only one process can count.
fn reject_of_one_process(arguments: &ResponderArguments) -> Result<(), Failure> {
    for (flag, is_given) in [
        ("--counters", arguments.counters.is_some()),
        ("--metrics", arguments.metrics.is_some()),
    ] {
        if is_given && arguments.processes > 1 {
            return Err(Failure::usage(
                format!("{flag} reports what one process counts"),
                format!("leave out --processes, or {flag}"),
            ));
        }
    }
    Ok(())
}

/// Writes the counters to their file, which a reader finds whole.
fn write_counters(arguments: &ResponderArguments, counters: &Counters) -> Result<(), Failure> {
    let Some(path) = &arguments.counters else {
        return Ok(());
    };
    let named: BTreeMap<&str, u64> = counters.named().into_iter().collect();
    let json = serde_json::to_string_pretty(&named).map_err(Failure::in_operation)?;
    files::write(path, Access::Umask, json + "\n").map_err(|error| {
        Failure::unwritable(
            format!("cannot write {}: {error}", path.display()),
            &error,
            "give --counters a file in a folder that exists and may be written",
        )
    })
}

/// The response rate limit for each network over UDP.
///
/// # Errors
/// Any host on the Internet may reach the responder, without the consent of the user.
fn rate_limit(arguments: &ResponderArguments) -> Result<Option<u32>, Failure> {
    let is_open = |it: &&Listen| {
        let address = it.address.ip();
        address.is_unspecified() || target_scope(address) == TargetScope::Public
    };
    let Some(open) = arguments.listen.iter().find(is_open) else {
        return Ok(arguments.rate_limit);
    };
    if !arguments.allow_public {
        return Err(Failure::usage(
            format!(
                "--listen {}:{}: any host on the Internet may reach the responder",
                open.transport, open.address
            ),
            "give a private address of this host, or add --allow-public; the response rate over \
             UDP is then limited per network, unless --no-rate-limit is given",
        ));
    }
    let rate = arguments.rate_limit.unwrap_or(RATE_LIMIT);
    Ok((!arguments.no_rate_limit).then_some(rate))
}

/// What AF_XDP cannot do, and what it needs.
fn reject_interface(arguments: &ResponderArguments) -> Result<(), Failure> {
    let is_xdp = arguments.driver == Some(DriverKind::Xdp);
    let any = |it: &&Listen| !it.transport.is_stream() && it.address.ip().is_unspecified();
    match (is_xdp, arguments.interface) {
        (true, None) => Err(Failure::usage(
            "--driver xdp needs an interface",
            "add --interface, with the one that queries come by",
        )),
        (false, Some(_)) => Err(Failure::usage(
            "--interface has no effect on sockets of the kernel",
            "add --driver xdp, or leave out --interface",
        )),
        (true, _) if arguments.processes > 1 => Err(Failure::usage(
            "--processes: only one process can have an interface for XDP",
            "leave out --processes; each of --cpus takes a queue of the interface",
        )),
        (true, _) => match arguments.listen.iter().find(any) {
            None => Ok(()),
            Some(it) => Err(Failure::usage(
                format!(
                    "--listen {}:{}: AF_XDP cannot listen on any address",
                    it.transport, it.address
                ),
                "give an address of the interface",
            )),
        },
        (false, None) => Ok(()),
    }
}

fn start(config: &ResponderConfig, arguments: &ResponderArguments) -> Result<Serving, Failure> {
    lab::run::serve(config, &arguments.cpus, sockets(arguments)).map_err(|error| {
        let hint = lab::run::serve_hint(&error);
        Failure::usage(format!("cannot start: {error}"), hint)
    })
}

fn sockets(arguments: &ResponderArguments) -> SocketUse {
    SocketUse {
        driver: DriverChoice::of(arguments.driver, arguments.interface).unwrap_or_default(),
        offload: !arguments.no_offload,
    }
}

/// Says where it listens.
fn announce(
    arguments: &ResponderArguments,
    addresses: &[(Transport, SocketAddr)],
) -> Result<(), Failure> {
    let listen = arguments.listen.iter();
    let listeners = listen.filter(|it| !it.is_http).count();
    for (index, (transport, address)) in addresses.iter().enumerate() {
        let name = match index < listeners {
            true => transport.name(),
            false => DOH2_HTTP,
        };
        print(&format!("listening on {name}:{address}\n"))?;
    }
    Ok(())
}

/// Leads processes that listen together, and adds up what they counted.
fn serve_in_processes(
    arguments: &ResponderArguments,
    identity: Option<&Identity>,
    processes: u32,
    shall_stop: impl FnMut(Duration) -> bool,
) -> Result<Counters, Failure> {
    let command = agent::command()?;
    let mut carrier = Carrier::new(processes, Clock::of_host());
    let addresses = start_responders(&mut carrier, &command, |addresses| {
        let work = Work::Responder(Box::new(arguments.clone()));
        Setup::new(work, identity).at(addresses).task()
    })?;
    announce(arguments, &addresses)?;
    Ok(serve_all(carrier, shall_stop)?)
}

/// Serves as one of several processes, until the lead ends it.
pub(crate) fn serve_share(
    connection: &mut Connection,
    arguments: &ResponderArguments,
    shared: Shared,
    place: AgentIndex,
) -> Result<(), Failure> {
    let (given, addresses) = (shared.identity, shared.addresses);
    let identity = identity(arguments, given)?;
    let config = config_of_share(config(arguments, identity.as_ref())?, place);
    let share = ResponderShare {
        index: place.index,
        count: place.count,
        addresses,
    };
    let sockets = sockets(arguments);
    lab::agents::serve_share(connection, &config, (&arguments.cpus, sockets), &share)?;
    Ok(())
}

/// The configuration of one of several processes: limits of all are divided.
pub(crate) fn config_of_share(mut config: ResponderConfig, place: AgentIndex) -> ResponderConfig {
    let share = |all: u32| load::plan::share(all.into(), place.index, place.count) as u32;
    let behaviour = &mut config.behaviour;
    behaviour.tcp_clients_max = behaviour.tcp_clients_max.map(share);
    config
}

fn config(
    arguments: &ResponderArguments,
    identity: Option<&Identity>,
) -> Result<ResponderConfig, Failure> {
    let at = |is_http: bool| {
        let listen = arguments.listen.iter();
        listen.filter(move |it| it.is_http == is_http)
    };
    let listen: Vec<_> = at(false).map(|it| (it.transport, it.address)).collect();
    let config = ResponderConfig {
        listen,
        source_rate_max: rate_limit(arguments)?,
        listen_http: at(true).map(|it| it.address).collect(),
        doh_path: arguments.doh_path.clone(),
        doh_streams_max: arguments.doh_streams,
        quic_streams_max: arguments.quic_streams,
        doq_message_ids: match arguments.doq_any_id {
            true => MessageIds::Any,
            false => MessageIds::Zero,
        },
        doq_stop_sending: arguments.doq_stop_sending,
        limits: limits(arguments),
        quic_streams_are_final: arguments.quic_streams_final,
        zone: Arc::new(zone(arguments)?),
        behaviour: behaviour(&arguments.behaviour)?,
        tls: identity.map(|identity| Arc::clone(&identity.server_config)),
        seed: arguments.seed,
        ..ResponderConfig::default()
    };
    config.validate().map_err(Failure::plain)?;
    Ok(config)
}

/// Connections have a quarter of this host's memory: a large population needs tens of KiB each.
fn limits(arguments: &ResponderArguments) -> Limits {
    let default = Limits::DEFAULT;
    let quarter = lab::host::facts().memory_octets.map(|octets| octets / 4);
    let quarter = quarter.and_then(|octets| usize::try_from(octets).ok());
    let given = arguments.memory.map(|mib| (mib as usize) << 20);
    let pending_octets_max = given.unwrap_or(default.pending_octets_max);
    let memory_octets_max = quarter.unwrap_or(default.memory_octets_max);
    Limits {
        pending_octets_max,
        memory_octets_max: memory_octets_max.max(pending_octets_max),
        ..default
    }
}

fn zone(arguments: &ResponderArguments) -> Result<Zone, Failure> {
    let Some(path) = &arguments.zone else {
        return Ok(Zone::synthesised(arguments.ttl));
    };
    let text = inputs::text(path)
        .map_err(|error| Failure::plain(format!("cannot read {}: {error}", path.display())))?;
    Zone::from_text(&text, arguments.origin.as_deref())
        .map_err(|error| Failure::plain(format!("{}: {error}", path.display())))
}

/// The certificate: that of the flags, or the one `made` by the parent, or a new one.
fn identity(
    arguments: &ResponderArguments,
    made: Option<Identity>,
) -> Result<Option<Identity>, Failure> {
    let has_tls = |it: &Listen| it.transport.has_tls() && !it.is_http;
    if !arguments.listen.iter().any(has_tls) {
        return match unused_tls(arguments) {
            None => Ok(None),
            Some(unused) => Err(Failure::usage(
                format!("{unused} has no effect: nothing listens with TLS"),
                format!("add --listen dot:127.0.0.1:0, doh2, doh3 or doq, or leave out {unused}"),
            )),
        };
    }
    let identity = match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(certificate), Some(key)) => {
            let read = |path: &std::path::Path| {
                inputs::text(path).map_err(|error| {
                    Failure::plain(format!("cannot read {}: {error}", path.display()))
                })
            };
            from_pem(&read(certificate)?, &read(key)?)
        }
        _ => made.map_or_else(|| self_signed(&SelfSigned::default()), Ok),
    };
    let mut identity = identity.map_err(Failure::plain)?;
    identity.server_config = identity
        .config(Transport::Dot, &tls_options(&arguments.tls)?)
        .map_err(|error| refused(&error))?;
    Ok(Some(identity))
}

fn refused(error: &TlsConfigError) -> Failure {
    match error.setting {
        TlsSetting::Roots => Failure::usage(
            format!("--tls-client-ca: {error}"),
            "give the PEM file of the CA",
        ),
        _ => tls::refused(error),
    }
}

/// A flag of TLS where nothing speaks it.
fn unused_tls(arguments: &ResponderArguments) -> Option<&'static str> {
    let flags = &arguments.tls;
    let given = [
        ("--write-certificate", arguments.write_certificate.is_some()),
        ("--tls-cert", arguments.tls_cert.is_some()),
        ("--tls-version", flags.tls_version.is_some()),
        ("--tls-ciphers", !flags.tls_ciphers.is_empty()),
        ("--tls-groups", !flags.tls_groups.is_empty()),
        ("--tls-tickets", flags.tls_tickets != TICKETS),
        ("--tls-early-data", flags.tls_early_data),
        ("--tls-client-ca", flags.tls_client_ca.is_some()),
    ];
    let mut given = given.iter().filter(|(_, is_given)| *is_given);
    given.next().map(|(flag, _)| *flag)
}

fn tls_options(flags: &ServerTlsArguments) -> Result<ServerTlsOptions, Failure> {
    let client_certificates = match &flags.tls_client_ca {
        None => ClientCertificates::Ignored,
        Some(path) => {
            let pem = tls::read("--tls-client-ca", path, "give the PEM file of the CA")?;
            match flags.tls_client_cert {
                ClientCertificatePolicy::Optional => ClientCertificates::Optional(pem),
                ClientCertificatePolicy::Required => ClientCertificates::Required(pem),
            }
        }
    };
    let groups = match flags.tls_groups.is_empty() {
        true => Group::ALL.to_vec(),
        false => tls::groups(&flags.tls_groups)?,
    };
    let (tickets, early_data_octets_max) = tickets(flags)?;
    Ok(ServerTlsOptions {
        versions: tls::versions(flags.tls_version.as_deref())?,
        cipher_suites: tls::cipher_suites(&flags.tls_ciphers)?,
        groups,
        tickets,
        early_data_octets_max,
        client_certificates,
        ..ServerTlsOptions::default()
    })
}

/// The tickets, and how much early data a session of one may begin with.
fn tickets(flags: &ServerTlsArguments) -> Result<(Tickets, u32), Failure> {
    let count = flags.tls_tickets;
    match (count, flags.tls_early_data) {
        (0, true) => Err(Failure::usage(
            "--tls-early-data: without tickets no session can be resumed",
            "leave out --tls-tickets 0",
        )),
        (0, false) => Ok((Tickets::None, 0)),
        (_, false) => Ok((Tickets::Stateless { count }, 0)),
        (_, true) => {
            let sessions_max = flags.tls_sessions as usize;
            let stored = Tickets::Stored {
                count,
                sessions_max,
            };
            Ok((stored, EARLY_DATA_OCTETS_MAX))
        }
    }
}

/// The behaviour that the flags describe.
pub(crate) fn behaviour(flags: &BehaviourArguments) -> Result<Behaviour, Failure> {
    let share = |flag: &str, share: f64| {
        parse_share(&share.to_string())
            .map_err(|error| Failure::of_value(&format!("{flag}: {error}")))
    };
    let rcodes = match &flags.rcodes {
        Some(text) => parse_rcode_shares(text)
            .map_err(|error| Failure::of_value(&format!("--rcodes: {error}")))?,
        None => Vec::new(),
    };
    let http_statuses = match &flags.http_statuses {
        Some(text) => parse_http_status_shares(text)
            .map_err(|error| Failure::of_value(&format!("--http-statuses: {error}")))?,
        None => Vec::new(),
    };
    let unlimited = Behaviour::default();
    let ceiling = flags.ceiling.as_deref().map(ceiling).transpose()?;
    let ceiling = ceiling.unwrap_or_default();
    let behaviour = Behaviour {
        delay: flags.delay.unwrap_or(Behaviour::default().delay),
        faults: FaultShares {
            loss: share("--loss", flags.loss)?,
            rcodes,
            truncated: share("--truncate", flags.truncate)?,
            wrong_id: share("--wrong-id", flags.wrong_id)?,
            wrong_question: share("--wrong-question", flags.wrong_question)?,
            wrong_qr: share("--wrong-qr", flags.wrong_qr)?,
            garbage: share("--garbage", flags.garbage)?,
            oversized: share("--oversize", flags.oversize)?,
            reset: share("--reset-streams", flags.reset_streams)?,
            http_statuses,
            wrong_media_type: share("--wrong-media-type", flags.wrong_media_type)?,
        },
        duplicate_share: share("--duplicate", flags.duplicate)?,
        stalls: flags.stall.clone(),
        rate_qps_max: ceiling.rate_qps_max,
        rate_queue_max: ceiling.queue_max.unwrap_or(unlimited.rate_queue_max),
        rate_burst: ceiling.burst,
        tcp_clients_max: flags.tcp_clients,
        idle_timeout: flags.idle_timeout,
        quic: QuicShares {
            retry: share("--quic-retry", flags.quic_retry)?,
            version_negotiation: share(
                "--quic-version-negotiation",
                flags.quic_version_negotiation,
            )?,
            refuse: share("--quic-refuse", flags.quic_refuse)?,
            ignore: share("--quic-ignore", flags.quic_ignore)?,
        },
        end_after: flags.end_after.as_deref().map(end_after).transpose()?,
        ..Behaviour::default()
    };
    behaviour::validate(&behaviour).map_err(Failure::plain)?;
    Ok(behaviour)
}

/// What `--ceiling` says.
#[derive(Default)]
struct Ceiling {
    rate_qps_max: Option<f64>,
    queue_max: Option<usize>,
    /// What exceeds the ceiling is dropped, beyond bursts so long.
    burst: Option<Duration>,
}

/// Bursts that a ceiling lets pass which drops: a generator sends what is due in batches.
const CEILING_BURST: Duration = Duration::from_millis(5);

/// Reads `37000`, `37000,then=delay,queue=1000` or `37000,then=drop,burst=5ms`.
fn ceiling(text: &str) -> Result<Ceiling, Failure> {
    let form = |part: &str| {
        Failure::usage(
            format!("--ceiling {text}: `{part}` is not part of a ceiling"),
            "give 37000, 37000,then=delay,queue=1000 or 37000,then=drop,burst=5ms",
        )
    };
    let mut parts = text.split(',');
    let rate = load::arrival::parse_rate(parts.next().unwrap_or_default())
        .map_err(|error| Failure::usage(format!("--ceiling: {}", error.what), error.hint))?;
    let mut ceiling = Ceiling {
        rate_qps_max: Some(rate),
        ..Ceiling::default()
    };
    let (mut drops, mut burst) = (None, None);
    for part in parts {
        match part.split_once('=') {
            Some(("then", "delay")) if drops.is_none() => drops = Some(false),
            Some(("then", "drop")) if drops.is_none() => drops = Some(true),
            Some(("queue", number)) if ceiling.queue_max.is_none() => {
                ceiling.queue_max = Some(number.parse().map_err(|_| form(part))?);
            }
            Some(("burst", time)) if burst.is_none() => {
                burst = Some(proto::time::parse_duration(time).ok_or_else(|| form(part))?);
            }
            _ => return Err(form(part)),
        }
    }
    let contradiction = |part: &str, cure: &str| {
        let what = format!("--ceiling {text}: {part} has no effect without {cure}");
        Failure::usage(what, format!("add {cure}, or leave out {part}"))
    };
    match (drops.unwrap_or(false), ceiling.queue_max, burst) {
        (true, Some(_), _) => return Err(contradiction("queue=", "then=delay")),
        (false, _, Some(_)) => return Err(contradiction("burst=", "then=drop")),
        (true, None, burst) => ceiling.burst = Some(burst.unwrap_or(CEILING_BURST)),
        (false, _, None) => {}
    }
    Ok(ceiling)
}

fn end_after(text: &str) -> Result<(u64, responder::ConnectionEnd), Failure> {
    let form = || {
        Failure::usage(
            format!("--end-after {text}: not of the form N:HOW"),
            "give for example 100:close, 100:goaway or 100:error=4",
        )
    };
    let (queries, how) = text.split_once(':').ok_or_else(form)?;
    let queries = queries.parse().map_err(|_| form())?;
    Ok((queries, parse_connection_end(how).map_err(Failure::plain)?))
}
