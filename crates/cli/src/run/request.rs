//! From what is asked for to a decided run.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lab::observing::Sources;
use lab::run::{Description, RunRequest, TargetScope, default_workers, target_scope};
use load::arrival::Arrival;
use load::{Plan, QuestionSet, QuestionSource, Shape, names_file, stub};
use measure::scenario::{ProfileRecord, ReplayRecord};
use proto::Transport;
use proto::query::QueryOptions;
use settings::{DriverChoice, DriverKind, Names, Run};

use super::message::{query_options, tsig};
use super::names::{named_questions, read_questions};
use super::{doh, profile, questions, tls};
use crate::args::doh::Server;
use crate::conditions;
use crate::failure::Failure;
use crate::run::INTERVAL;
use crate::run::address::addresses_of;
use crate::run::group::Group;
use crate::secrets;

/// Clients unless told otherwise: enough sockets to reach several queues of a server.
pub(crate) const CLIENTS: u32 = 10;
/// Length of a run unless told otherwise.
const DURATION: Duration = Duration::from_secs(10);

/// A run against a server named by the user.
pub(crate) fn against(group: &Group) -> Result<RunRequest, Failure> {
    let run = &group.run;
    let has_names = run.questions.names.is_some() || run.questions.zone().is_some();
    let is_asked_otherwise = match &run.arrival {
        settings::Arrival::Script(_)
        | settings::Arrival::Profile { .. }
        | settings::Arrival::Replay(_) => true,
        _ => run.connections.asks_nothing(),
    };
    if !has_names && !is_asked_otherwise {
        return Err(Failure::usage(
            "no questions: --server needs --names FILE",
            "make some with `throng names records --zone example.org > names.txt`, or while they \
             are asked with --random-labels ZONE",
        ));
    }
    let asked = questions(group)?;
    let first = run.servers.first().map_or("", String::as_str);
    let parts = Server::parse(first);
    let servers = match &group.addresses {
        Some(addresses) => addresses.clone(),
        None => addresses_of(run)?,
    };
    let is_alike = |server: &&String| Server::parse(server).has_uri_of(&parts);
    if let Some(other) = run.servers.iter().find(|server| !is_alike(server)) {
        let (first, other) = (secrets::uri(first), secrets::uri(other));
        return Err(Failure::usage(
            format!("--server {first} and --server {other}: requests to both have one URI"),
            "give servers with the same scheme and path",
        ));
    }
    let (targets, hosts): (Vec<SocketAddr>, Vec<String>) = servers.into_iter().unzip();
    let mut request = build(run, (&targets, &parts), asked)?;
    if let Some(given) = &run.tls {
        request.tls = Some(tls::against(given, run.transport, &hosts)?);
    }
    Ok(request)
}

/// Everything that does not depend on who answers.
pub(crate) fn build(
    run: &Run,
    (targets, server): (&[SocketAddr], &Server),
    asked: Asked,
) -> Result<RunRequest, Failure> {
    reject_edns(run, &asked.questions)?;
    let (target, limits, generator) = (targets[0], &run.limits, &run.generator);
    let stub = stub::policy(&run.stub, targets.to_vec(), (run.transport, limits.timeout));
    let clients = asked.clients.unwrap_or(CLIENTS);
    let queries_max = queries_max(run, &asked);
    let duration = duration(run, queries_max);
    conditions::check_fits(&limits.abort_if, duration)?;
    let plan = Plan {
        target,
        transport: run.transport,
        questions: asked.questions,
        question_source: asked.source,
        clients,
        workers: match generator.workers {
            Some(workers) => workers,
            None => workers(run, target, clients, &asked.arrival),
        },
        arrival: asked.arrival,
        duration,
        warmup: limits.warmup,
        queries_max,
        timeout: stub.as_ref().map_or(limits.timeout, |stub| stub.timeout()),
        interval: limits.interval.unwrap_or_else(|| interval(duration)),
        seed: generator.seed,
        local_addresses: load::plan::expand_local_addresses(&generator.local_addresses)?,
        local_port: generator.local_port,
        presence: run.presence.clone(),
        shape: (run.shape.as_deref().map(Shape::parse).transpose()?).map(Arc::new),
        connections: run.connections,
        doh: doh::request(run, server)?,
        tcp_fallback: run.tcp_fallback,
        stub: stub.map(Arc::new),
        sockets: generator.sockets,
        client_statistics: true,
        matches_by_id_alone: false,
        tsig: tsig(run)?,
    };
    plan.validate()?;
    crate::script::check_loads(&plan)?;
    Ok(RunRequest {
        group: measure::experience::GroupRecord::PLAIN.to_owned(),
        plan,
        tls: None,
        cpus: generator.cpus.clone(),
        // Of a simulation, and where an interface is missing, which has been refused, nothing is.
        driver: DriverChoice::of(generator.driver, generator.interface).unwrap_or_default(),
        asked: Arc::new(secrets::left_out(run)),
        description: Description {
            questions_source: asked.words,
            profile: asked.profile,
            replay: asked.replay,
        },
        preflight: run.preflight,
        observer: None,
        observe: Sources::parse(&run.observe)?,
    })
}

/// How long queries are offered, if not a number of them ends the run.
fn duration(run: &Run, queries_max: Option<u64>) -> Option<Duration> {
    let given = run.limits.duration;
    given.or(queries_max.is_none().then_some(DURATION))
}

/// Lengths of an interval of a short run, milliseconds.
const INTERVALS_MS: [u64; 4] = [500, 200, 100, 50];
/// Intervals that show how a run was within, and how much its figures vary.
const INTERVALS_MIN: u32 = 20;

/// How long intervals are unless told: a second, or less in a short run.
fn interval(duration: Option<Duration>) -> Duration {
    let longest = duration.map_or(Duration::MAX, |all| all / INTERVALS_MIN);
    if longest >= INTERVAL {
        return INTERVAL;
    }
    let lengths = INTERVALS_MS.map(Duration::from_millis);
    let fits = lengths.into_iter().find(|length| *length <= longest);
    fits.unwrap_or(lengths[lengths.len() - 1])
}

/// After how many queries the run ends, if it is asked these questions.
fn queries_max(run: &Run, asked: &Asked) -> Option<u64> {
    match (run.limits.loops, &asked.arrival) {
        (_, Arrival::Replay(replay)) => Some(replay.queries_total()),
        (Some(loops), _) => Some(loops.saturating_mul(asked.questions.len() as u64)),
        (None, _) => run.limits.queries,
    }
}

fn workers(run: &Run, target: SocketAddr, clients: u32, arrival: &Arrival) -> u32 {
    if run.is_simulated() {
        // The record of a simulation must not depend on the host's CPUs.
        return 1;
    }
    let generator = &run.generator;
    let cpus = match generator.cpus.len() {
        0 => driver::cpu::allowed().len(),
        given => return u32::try_from(given).unwrap_or(1).min(clients),
    };
    // Each worker needs a queue of its own; if their number is unknown, the driver says so.
    let queues = match (generator.driver, generator.interface) {
        (Some(DriverKind::Xdp), Some(interface)) => {
            driver::xdp::receive_queues(interface).unwrap_or(1)
        }
        _ => u32::MAX,
    };
    let outstanding = match arrival {
        Arrival::Closed { outstanding, .. } => *outstanding,
        _ => u32::MAX,
    };
    let scope = match target_scope(target.ip()) {
        // In another network namespace, such as a container's.
        TargetScope::Private if observe::auto::is_served_here(target) => TargetScope::Loopback,
        scope => scope,
    };
    default_workers(scope, cpus)
        .min(clients)
        .min(outstanding)
        .min(queues)
        .max(1)
}

/// When queries are due, where neither a profile nor a capture says it.
fn arrival(run: &Run) -> Result<Arrival, Failure> {
    Ok(match &run.arrival {
        &settings::Arrival::Closed {
            outstanding,
            rate_qps_max,
        } => Arrival::Closed {
            outstanding,
            rate_qps_max,
        },
        &settings::Arrival::Open {
            rate_qps,
            process,
            burst,
        } => Arrival::Open {
            rate_qps,
            process,
            burst,
        },
        settings::Arrival::Clients(each) => Arrival::Clients(*each),
        settings::Arrival::Script(file) => Arrival::Script(crate::script::text(file, run)?),
        settings::Arrival::Profile { .. } | settings::Arrival::Replay(_) => {
            unreachable!("they come with their questions")
        }
    })
}

/// Refuses EDNS options that the transport must not carry, of flags or lines.
fn reject_edns(run: &Run, questions: &QuestionSet) -> Result<(), Failure> {
    let (transport, uses) = (run.transport, questions.edns_uses());
    if uses.keepalive && !transport.is_stream() {
        // RFC 7828, section 3.2.1; RFC 9250, section 5.5.2.
        let rule = match transport {
            Transport::Udp => "RFC 7828 forbids it over UDP",
            _ => "RFC 9250 forbids it over QUIC",
        };
        return Err(Failure::usage(
            format!("EDNS keepalive over {transport}: {rule}"),
            "leave out --edns-keepalive and +keepalive",
        ));
    }
    let plain_padding = uses.padding && !transport.has_tls();
    let is_allowed = run.message.allows_plain_padding;
    if plain_padding && !is_allowed {
        // RFC 7830, section 6.
        return Err(Failure::usage(
            format!("EDNS padding over {transport}: it hides nothing that is not encrypted"),
            "use an encrypted transport such as --transport dot, or add --allow-plain-padding",
        ));
    }
    if is_allowed && !plain_padding {
        return Err(Failure::usage(
            "--allow-plain-padding has no effect: nothing is padded in the clear",
            "leave it out",
        ));
    }
    Ok(())
}

/// What is asked, and what else decides on it.
pub(super) struct Asked {
    questions: Arc<QuestionSet>,
    source: QuestionSource,
    /// Where the questions come from.
    words: String,
    /// When they are asked.
    arrival: Arrival,
    /// How many clients ask; none if neither a flag nor a profile says it.
    clients: Option<u32>,
    profile: Option<ProfileRecord>,
    replay: Option<ReplayRecord>,
}

/// The questions of the capture or profile, those that the user gave or has made, or else those of
/// a self-test.
pub(super) fn questions(group: &Group) -> Result<Asked, Failure> {
    let run = &group.run;
    if let settings::Arrival::Replay(source) = &run.arrival {
        let captured = match &group.captured {
            Some(captured) => Arc::clone(captured),
            // What the process that the user started has told already.
            None => Arc::new(super::captured::read(run, source, |_| ())?),
        };
        return Ok(Asked {
            questions: Arc::clone(&captured.questions),
            source: questions::source(run)?,
            words: captured.words(),
            arrival: Arrival::Replay(Arc::clone(&captured.replay)),
            clients: Some(captured.replay.clients()),
            profile: None,
            replay: Some(captured.record.clone()),
        });
    }
    if let Some(profiled) = profile::of(run)? {
        return Ok(Asked {
            questions: Arc::new(profiled.questions),
            source: profiled.source,
            words: profiled.words,
            arrival: Arrival::Profile(profiled.clients),
            clients: run.clients.or(Some(profiled.count)),
            profile: Some(profiled.record),
            replay: None,
        });
    }
    let options = query_options(run)?;
    let (questions, words) = questions::with_zone(run, &options, || {
        match (&run.questions.names, &run.arrival) {
            (Some(Names::Lines(lines)), _) => named_questions(lines, &options),
            (Some(Names::Text(file)), _) => read_questions(run, (file.as_path(), true)),
            (Some(Names::Messages(file)), _) => read_questions(run, (file.as_path(), false)),
            // A script has names of its own.
            (None, settings::Arrival::Script(file)) if !run.is_self_test() => {
                Ok((QuestionSet::new(), file.as_path().display().to_string()))
            }
            (None, _) => self_test_questions(&options),
        }
    })?;
    Ok(Asked {
        questions: Arc::new(questions),
        source: questions::source(run)?,
        words,
        arrival: arrival(run)?,
        clients: run.clients,
        profile: None,
        replay: None,
    })
}

fn self_test_questions(options: &QueryOptions) -> Result<(QuestionSet, String), Failure> {
    let mut text = String::new();
    let set = load::name_sets::RecordSet::new("throng.test", 1_000, 1)?;
    set.write_names(&mut text).map_err(Failure::in_operation)?;
    let questions =
        names_file::parse_text(text.as_bytes(), options).map_err(Failure::in_operation)?;
    Ok((questions, "test-record-1..1000.throng.test A".to_owned()))
}
