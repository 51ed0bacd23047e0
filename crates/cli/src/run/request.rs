//! From flags to a decided run.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lab::observing::Sources;
use lab::run::{Description, RunRequest, default_workers, target_scope};
use load::arrival::{Arrival, parse_rate};
use load::profile::ProfiledClients;
use load::{Plan, QuestionSet, QuestionSource, StubPolicy, line_options, names_file};
use measure::scenario::ProfileRecord;
use proto::Transport;
use proto::query::{Edns, OPTION_KEEPALIVE, OPTION_PADDING, QueryOptions};
use settings::{DriverChoice, DriverKind};

use crate::args::doh::Server;
use crate::args::{NamesFormat, RunArguments};
use crate::failure::Failure;
use crate::inputs;
use crate::records::read_input;
use crate::run::address::address_of;
use crate::run::{INTERVAL, profile, questions, tls};
use crate::secrets;

/// Queries in flight unless told otherwise.
pub(crate) const OUTSTANDING: u32 = 100;
/// Clients unless told otherwise: enough sockets to reach several queues of a server.
pub(crate) const CLIENTS: u32 = 10;
/// Length of a run unless told otherwise.
const DURATION: Duration = Duration::from_secs(10);

/// A run against a server named by the user.
pub(crate) fn against(arguments: &RunArguments) -> Result<RunRequest, Failure> {
    let is_asked_otherwise = arguments.choice.zone().is_some()
        || arguments.replay.is_some()
        || arguments.profile.profile.is_some()
        || arguments.population.script.is_some()
        || arguments.connections.asks_nothing();
    if arguments.names.is_none() && arguments.lines.is_none() && !is_asked_otherwise {
        return Err(Failure::usage(
            "no questions: --server needs --names FILE",
            "make some with `throng names records --zone example.org > names.txt`, or while they \
             are asked with --random-labels ZONE",
        ));
    }
    let asked = match &arguments.population.script {
        // A script has names of its own.
        Some(script) if arguments.names.is_none() => Asked::of(
            arguments,
            (QuestionSet::new(), script.display().to_string()),
        )?,
        _ => questions(arguments)?,
    };
    let first = arguments.server.first().map_or("", String::as_str);
    let parts = Server::parse(first);
    let mut servers = Vec::new();
    for server in &arguments.server {
        servers.push(address_of(server, arguments)?);
    }
    let is_alike = |server: &&String| Server::parse(server).has_uri_of(&parts);
    if let Some(other) = arguments.server.iter().find(|server| !is_alike(server)) {
        let (first, other) = (secrets::uri(first), secrets::uri(other));
        return Err(Failure::usage(
            format!("--server {first} and --server {other}: requests to both have one URI"),
            "give servers with the same scheme and path",
        ));
    }
    let (targets, hosts): (Vec<SocketAddr>, Vec<String>) = servers.into_iter().unzip();
    let mut request = build(arguments, (&targets, &parts), asked)?;
    let servers = arguments.server.iter().map(|server| secrets::uri(server));
    request.description.server_name = Some(servers.collect::<Vec<_>>().join(", "));
    if arguments.transport.has_tls() && !parts.is_plain_http() {
        request.tls = Some(tls::against(arguments, &hosts)?);
    }
    Ok(request)
}

/// Everything that does not depend on who answers.
pub(crate) fn build(
    arguments: &RunArguments,
    (targets, server): (&[SocketAddr], &Server),
    asked: Asked,
) -> Result<RunRequest, Failure> {
    reject_edns(arguments, &asked.questions)?;
    let target = targets[0];
    let each = (arguments.transport, arguments.timeout);
    let stub = arguments.stub.policy(targets.to_vec(), each)?;
    let arrival = arrival(arguments, asked.profiled)?;
    let clients = asked.clients.unwrap_or(CLIENTS);
    let timestamps = arguments.timestamps;
    let queries_max = queries_max(arguments, asked.questions.len());
    let duration = duration(arguments, queries_max);
    let plan = Plan {
        target,
        transport: arguments.transport,
        questions: asked.questions,
        question_source: asked.source,
        clients,
        workers: arguments
            .workers
            .unwrap_or_else(|| workers(arguments, target, clients, &arrival)),
        arrival,
        duration,
        warmup: arguments.warmup,
        queries_max,
        timeout: timeout(stub.as_deref(), arguments),
        interval: arguments.interval.unwrap_or_else(|| interval(duration)),
        seed: arguments.seed,
        local_addresses: load::plan::expand_local_addresses(&arguments.local_address)?,
        local_port: arguments.local_port,
        presence: arguments.population.presence()?,
        shape: arguments.population.shape()?,
        connections: arguments.connections.policy()?,
        doh: arguments.doh.request(arguments.transport, server)?,
        tcp_fallback: arguments.tcp_fallback,
        stub,
        socket_buffer_octets: arguments.socket_buffer,
        offload: !arguments.no_offload && timestamps.is_none(),
        timestamps,
        client_statistics: true,
        tsig: tsig(arguments)?,
    };
    plan.validate()?;
    crate::script::check_loads(&plan)?;
    let description = describe(arguments, asked.words, asked.profile)?;
    let cpus = arguments.cpus.clone();
    Ok(RunRequest {
        group: measure::experience::GroupRecord::PLAIN.to_owned(),
        plan,
        tls: None,
        cpus,
        // Of a simulation, and where an interface is missing, which has been refused, nothing is.
        driver: DriverChoice::of(arguments.driver, arguments.interface).unwrap_or_default(),
        description,
        preflight: false,
        observer: None,
        observe: Sources::parse(&arguments.observe)?,
    })
}

/// What the record says beside the plan.
fn describe(
    arguments: &RunArguments,
    questions_source: String,
    profile: Option<ProfileRecord>,
) -> Result<Description, Failure> {
    let replay = arguments.replay.as_ref();
    Ok(Description {
        server_name: None,
        questions_source,
        profile,
        replay: replay.map(|source| source.record.clone()),
        edns: edns(arguments)?.map(|edns| describe_edns(&edns)),
        edns_padding_octets: arguments.edns_padding,
        local_addresses: arguments.local_address.clone(),
        goodput_rcodes: goodput(arguments)?,
        self_test: false,
        labels: arguments.label.iter().cloned().collect(),
    })
}

/// How long a query may take, with all its attempts.
fn timeout(stub: Option<&StubPolicy>, arguments: &RunArguments) -> Duration {
    stub.map_or(arguments.timeout, StubPolicy::timeout)
}

/// How long queries are offered, if not a number of them ends the run.
fn duration(arguments: &RunArguments, queries_max: Option<u64>) -> Option<Duration> {
    let given = arguments.duration;
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

/// After how many queries the run ends, if it is asked `questions` questions.
fn queries_max(arguments: &RunArguments, questions: usize) -> Option<u64> {
    match (arguments.loops, &arguments.replay) {
        (_, Some(source)) => Some(source.replay.queries_total()),
        (Some(loops), _) => Some(loops.saturating_mul(questions as u64)),
        (None, _) => arguments.queries,
    }
}

fn workers(arguments: &RunArguments, target: SocketAddr, clients: u32, arrival: &Arrival) -> u32 {
    if arguments.driver == Some(DriverKind::Sim) {
        // The record of a simulation must not depend on the host's CPUs.
        return 1;
    }
    let cpus = match arguments.cpus.len() {
        0 => driver::cpu::allowed().len(),
        given => return u32::try_from(given).unwrap_or(1).min(clients),
    };
    // Each worker needs a queue of its own; where nobody can tell, the driver says so.
    let queues = match (arguments.driver, arguments.interface) {
        (Some(DriverKind::Xdp), Some(interface)) => {
            driver::xdp::receive_queues(interface).unwrap_or(1)
        }
        _ => u32::MAX,
    };
    let outstanding = match arrival {
        Arrival::Closed { outstanding, .. } => *outstanding,
        _ => u32::MAX,
    };
    default_workers(target_scope(target.ip()), cpus)
        .min(clients)
        .min(outstanding)
        .min(queues)
        .max(1)
}

fn arrival(
    arguments: &RunArguments,
    profiled: Option<Arc<ProfiledClients>>,
) -> Result<Arrival, Failure> {
    if let Some(source) = &arguments.replay {
        return Ok(Arrival::Replay(Arc::clone(&source.replay)));
    }
    if let Some(clients) = profiled {
        return Ok(Arrival::Profile(clients));
    }
    if let Some(path) = &arguments.population.script {
        return Ok(Arrival::Script(crate::script::text(path, arguments)?));
    }
    if let Some(each) = arguments.population.arrival()? {
        return Ok(Arrival::Clients(each));
    }
    let Some(rate) = &arguments.rate else {
        let outstanding = arguments.outstanding.unwrap_or(OUTSTANDING);
        let max_rate = arguments.max_rate.as_deref().map(parse_rate);
        return Ok(Arrival::Closed {
            outstanding,
            rate_qps_max: max_rate.transpose()?,
        });
    };
    Ok(Arrival::Open {
        rate_qps: parse_rate(rate)?,
        process: arguments.arrival,
        burst: arguments.burst,
    })
}

fn edns(arguments: &RunArguments) -> Result<Option<Edns>, Failure> {
    let wanted = arguments.edns_size.is_some()
        || arguments.dnssec
        || !arguments.edns_option.is_empty()
        || arguments.edns_padding.is_some()
        || arguments.edns_keepalive;
    if !wanted {
        return Ok(None);
    }
    let mut edns = Edns {
        dnssec_ok: arguments.dnssec,
        ..Edns::default()
    };
    if let Some(octets) = arguments.edns_size {
        edns.udp_payload_octets = octets;
    }
    for option in &arguments.edns_option {
        let parsed = line_options::parse_edns_option(option)
            .map_err(|reason| Failure::plain(format!("--edns-option {option}: {reason}")))?;
        edns.options.push(parsed);
    }
    if arguments.edns_keepalive {
        let given = ("--edns-keepalive", OPTION_KEEPALIVE);
        reject_twice(given, &edns)?;
        edns.options.push((OPTION_KEEPALIVE, Vec::new()));
    }
    if let Some(octets) = arguments.edns_padding {
        reject_twice(("--edns-padding", OPTION_PADDING), &edns)?;
        edns.padding_block_octets = NonZeroU16::new(octets);
    }
    Ok(Some(edns))
}

/// An option that a message has but once.
fn reject_twice((flag, code): (&str, u16), edns: &Edns) -> Result<(), Failure> {
    if edns.options.iter().any(|(given, _)| *given == code) {
        return Err(Failure::usage(
            format!("{flag} contradicts --edns-option {code}"),
            "use one of them",
        ));
    }
    Ok(())
}

/// Refuses EDNS options that the transport must not carry, of flags or lines.
fn reject_edns(arguments: &RunArguments, questions: &QuestionSet) -> Result<(), Failure> {
    let (transport, uses) = (arguments.transport, questions.edns_uses());
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
    if plain_padding && !arguments.allow_plain_padding {
        // RFC 7830, section 6.
        return Err(Failure::usage(
            format!("EDNS padding over {transport}: it hides nothing that is not encrypted"),
            "use an encrypted transport such as --transport dot, or add --allow-plain-padding",
        ));
    }
    if arguments.allow_plain_padding && !plain_padding {
        return Err(Failure::usage(
            "--allow-plain-padding has no effect: nothing is padded in the clear",
            "leave it out",
        ));
    }
    Ok(())
}

fn describe_edns(edns: &Edns) -> String {
    let mut words = format!("{} octets", edns.udp_payload_octets);
    if edns.dnssec_ok {
        words.push_str(", DO");
    }
    for (code, data) in &edns.options {
        words.push_str(&format!(", option {code} ({} octets)", data.len()));
    }
    words
}

/// How queries are built unless a line of the names file says otherwise.
pub(crate) fn query_options(arguments: &RunArguments) -> Result<QueryOptions, Failure> {
    Ok(QueryOptions {
        recursion_desired: !arguments.no_recursion,
        edns: edns(arguments)?,
        signature_octets: signature_octets(arguments)?,
        label_octets: questions::label_octets(arguments)?,
        ..QueryOptions::default()
    })
}

/// Octets of the TSIG record of each query.
fn signature_octets(arguments: &RunArguments) -> Result<u16, Failure> {
    let key = tsig(arguments)?;
    let octets = key.as_ref().map_or(0, proto::tsig::Key::record_octets);
    // Two names and a digest are far below that; the plan refuses what does not fit.
    Ok(u16::try_from(octets).unwrap_or(u16::MAX))
}

pub(super) fn read_questions(
    arguments: &RunArguments,
    path: &Path,
) -> Result<(QuestionSet, String), Failure> {
    let octets = read_input(path)?;
    let options = query_options(arguments)?;
    let questions = match arguments.names_format {
        NamesFormat::Text => names_file::parse_text(&octets, &options),
        NamesFormat::Stream => names_file::parse_stream(&octets),
    };
    let name = match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let questions =
        questions.map_err(|error| Failure::usage(format!("{name}: {error}"), &error.hint))?;
    Ok((questions, name))
}

/// What is asked, and what else decides on it.
pub(super) struct Asked {
    questions: Arc<QuestionSet>,
    source: QuestionSource,
    /// Where the questions come from.
    words: String,
    /// How many clients ask; none if nobody says it.
    clients: Option<u32>,
    profiled: Option<Arc<ProfiledClients>>,
    profile: Option<ProfileRecord>,
}

impl Asked {
    /// Questions and words for them, of which one is chosen as the flags say.
    fn of(
        arguments: &RunArguments,
        (questions, words): (QuestionSet, String),
    ) -> Result<Self, Failure> {
        Ok(Asked {
            questions: Arc::new(questions),
            source: questions::source(arguments)?,
            words,
            clients: arguments.clients,
            profiled: None,
            profile: None,
        })
    }
}

/// The questions of the capture or profile, those that the user gave or has made, or else those of
/// a self-test.
pub(super) fn questions(arguments: &RunArguments) -> Result<Asked, Failure> {
    if let Some(replay) = &arguments.replay {
        return Ok(Asked {
            questions: Arc::clone(&replay.questions),
            ..Asked::of(arguments, (QuestionSet::new(), replay.words()))?
        });
    }
    if let Some(profiled) = profile::of(arguments)? {
        return Ok(Asked {
            questions: Arc::new(profiled.questions),
            source: profiled.source,
            words: profiled.words,
            clients: arguments.clients.or(Some(profiled.count)),
            profiled: Some(profiled.clients),
            profile: Some(profiled.record),
        });
    }
    let options = query_options(arguments)?;
    let questions = questions::with_zone(arguments, &options, || {
        match (&arguments.lines, &arguments.names) {
            (Some(lines), _) => named_questions(lines, &options),
            (None, Some(path)) => read_questions(arguments, path),
            (None, None) => self_test_questions(arguments),
        }
    });
    Asked::of(arguments, questions?)
}

/// Questions of the command line.
pub(crate) fn named_questions(
    lines: &str,
    options: &QueryOptions,
) -> Result<(QuestionSet, String), Failure> {
    let questions = names_file::parse_text(lines.as_bytes(), options);
    // There is but one name, and it is in the message: its line would tell nothing.
    let questions = questions.map_err(|error| Failure::usage(error.what, error.hint))?;
    Ok((questions, lines.trim_end().replace('\n', ", ")))
}

fn self_test_questions(arguments: &RunArguments) -> Result<(QuestionSet, String), Failure> {
    let mut text = String::new();
    let set = load::name_sets::RecordSet::new("throng.test", 1_000, 1)?;
    set.write_names(&mut text).map_err(Failure::in_operation)?;
    let questions = names_file::parse_text(text.as_bytes(), &query_options(arguments)?)
        .map_err(Failure::in_operation)?;
    Ok((questions, "test-record-1..1000.throng.test A".to_owned()))
}

fn tsig(arguments: &RunArguments) -> Result<Option<proto::tsig::Key>, Failure> {
    if let Some(text) = &arguments.tsig {
        let key = text.parse();
        return key
            .map(Some)
            .map_err(|reason: String| Failure::plain(format!("--tsig: {reason}")));
    }
    let Some(path) = &arguments.tsig_file else {
        return Ok(None);
    };
    let text = inputs::text(path).map_err(|error| {
        Failure::usage(
            format!("cannot read --tsig-file {}: {error}", path.display()),
            "make one with `tsig-keygen NAME > FILE`",
        )
    })?;
    let key = proto::tsig::Key::from_key_file(&text)
        .map_err(|reason| Failure::plain(format!("{}: {reason}", path.display())))?;
    Ok(Some(key))
}

fn goodput(arguments: &RunArguments) -> Result<Vec<u16>, Failure> {
    let rcode = |text: &String| {
        proto::rr::rcode_from_text(text).ok_or_else(|| {
            Failure::usage(
                format!("--goodput: unknown RCODE `{text}`"),
                "give RCODEs by name, such as NOERROR,NXDOMAIN",
            )
        })
    };
    arguments.goodput.iter().map(rcode).collect()
}
