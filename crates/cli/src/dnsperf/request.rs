//! From dnsperf's options to a decided run.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use engine::TlsSettings;
use lab::run::{Description, RunRequest, TlsRequest};
use load::arrival::Arrival;
use load::plan::OUTSTANDING_PER_CLIENT_MAX;
use load::{ConnectionPolicy, Plan, QuestionSet, QuestionSource, Resume, TlsAsked};
use proto::Transport;
use proto::tls::rustls::pki_types::ServerName;
use proto::tls::{ClientTlsOptions, client_config};

use settings::{Edns, Generator, Message, Run, SocketOptions};

use super::args::Settings;
use super::complaint::{Complaint, Messages};
use super::questions;

use crate::run::permission;
use crate::streams;

/// Set to anything but nothing, it allows public targets where the command line cannot be changed.
const ALLOW_PUBLIC_VARIABLE: &str = "THRONG_ALLOW_PUBLIC";
/// Intervals of the record if none are printed.
const INTERVAL: Duration = Duration::from_secs(1);

/// Decides everything; asks nothing of the server yet.
///
/// # Errors
/// Settings that contradict each other, or what cannot be offered.
pub(super) fn build(
    settings: &Settings,
    questions: QuestionSet,
    load: Load,
) -> Result<RunRequest, Complaint> {
    let target = settings.target;
    let runs = settings.runs.map(u64::from);
    let queries_max = runs.map(|runs| runs.saturating_mul(questions.len() as u64));
    let plan = Plan {
        target,
        transport: settings.transport,
        questions: Arc::new(questions),
        question_source: QuestionSource::default(),
        arrival: Arrival::Closed {
            outstanding: load.outstanding,
            rate_qps_max: settings.rate_qps_max.map(f64::from),
        },
        clients: settings.clients,
        workers: load.workers,
        duration: settings.time_limit,
        warmup: Duration::ZERO,
        queries_max,
        timeout: settings.timeout,
        interval: settings.stats_interval.unwrap_or(INTERVAL),
        seed: 1,
        local_addresses: settings.local_address.into_iter().collect(),
        local_port: settings.local_port,
        presence: load::Presence::default(),
        shape: None,
        connections: ConnectionPolicy {
            // There is no connection to close, and dnsperf takes no offence.
            queries_max: match settings.transport {
                Transport::Udp => None,
                _ => settings.long.queries_per_connection,
            },
            ..ConnectionPolicy::default()
        },
        doh: settings.doh.clone().filter(|_| settings.transport.is_doh()),
        tcp_fallback: false,
        stub: None,
        sockets: SocketOptions {
            buffer_octets: settings.buffer_octets,
            ..SocketOptions::default()
        },
        client_statistics: false,
        matches_by_id_alone: true,
        tsig: settings.tsig.clone(),
    };
    plan.validate()?;
    Ok(RunRequest {
        group: measure::experience::GroupRecord::PLAIN.to_owned(),
        tls: tls(settings, &plan)?,
        cpus: Vec::new(),
        driver: driver::kernel::DriverChoice::Auto,
        asked: Arc::new(asked(settings)),
        description: Description {
            questions_source: questions::source(settings),
            ..Description::default()
        },
        // dnsperf tries whether or not somebody listens, and counts what is lost.
        preflight: false,
        observer: None,
        observe: lab::observing::Sources::default(),
        plan,
    })
}

/// Refuses a public target, unless it is allowed or the load is light.
pub(super) fn check_scope(settings: &Settings, request: &RunRequest) -> Result<(), Complaint> {
    let by_environment =
        streams::variable(ALLOW_PUBLIC_VARIABLE).is_some_and(|value| !value.is_empty());
    if settings.long.allow_public || by_environment {
        return Ok(());
    }
    match permission::needed(std::slice::from_ref(request), 1) {
        None => Ok(()),
        Some(address) => Err(Complaint::new(
            format!("{address} is a public address"),
            permission::hint(&format!(
                "add -O allow-public or set {ALLOW_PUBLIC_VARIABLE}=1"
            )),
        )),
    }
}

/// Refuses a local address from which the target cannot be reached.
pub(super) fn check_families(settings: &Settings) -> Result<(), Complaint> {
    let local = settings.local_address;
    match local.is_some_and(|local| local.is_ipv4() != settings.target.is_ipv4()) {
        false => Ok(()),
        true => Err(Complaint::plain(
            "server and local addresses have different families",
        )),
    }
}

/// Threads and queries in flight that the other options leave room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Load {
    workers: u32,
    outstanding: u32,
}

impl Load {
    /// Lowers what does not fit, with a warning, the first two in the words of dnsperf.
    pub(super) fn fit(settings: &Settings, messages: &Messages) -> Load {
        let mut load = Load {
            workers: settings.threads,
            outstanding: settings.outstanding,
        };
        let open_max = OUTSTANDING_PER_CLIENT_MAX.saturating_mul(settings.clients.into());
        if u64::from(load.outstanding) > open_max {
            messages.warn(&format!(
                "{} queries in flight (-q) are more than the clients may have open, lowered to \
                 {open_max}",
                load.outstanding
            ));
            load.outstanding = u32::try_from(open_max).unwrap_or(u32::MAX);
        }
        let (threads, outstanding) = (load.workers, load.outstanding);
        let mut lower = |limit: Option<u32>, text: &dyn Fn(u32) -> String| {
            if let Some(limit) = limit.filter(|limit| *limit < load.workers) {
                let text = text(limit);
                messages.warn(&format!("{text}, lowering number of threads"));
                load.workers = limit;
            }
        };
        lower(settings.rate_qps_max, &|limit| {
            format!(
                "requested max QPS limit (-Q {limit}) is lower than number of threads \
                 (-T {threads})"
            )
        });
        lower(Some(settings.clients), &|limit| {
            format!(
                "requested number of threads (-T {threads}) exceeds number of clients (-c {limit})"
            )
        });
        lower(Some(outstanding), &|limit| {
            format!(
                "requested number of threads (-T {threads}) exceeds number of queries outstanding \
                 (-q {limit})"
            )
        });
        load
    }
}

/// TLS as dnsperf speaks it: any certificate is taken, and no name is sent unless one is given.
fn tls(settings: &Settings, plan: &Plan) -> Result<Option<TlsRequest>, Complaint> {
    if !settings.transport.has_tls() {
        return Ok(None);
    }
    let name = match &settings.long.tls_sni {
        Some(name) => ServerName::try_from(name.clone()).map_err(|_| {
            let what = format!("-O tls-sni: `{name}` is not a host name");
            Complaint::new(what, "give the name in the server's certificate")
        })?,
        None => ServerName::IpAddress(plan.target.ip().into()),
    };
    let options = ClientTlsOptions {
        verify: false,
        alpn: match settings.transport.is_doh() {
            true => vec![proto::http2::ALPN.to_vec()],
            false => Vec::new(),
        },
        ..ClientTlsOptions::default()
    };
    let config =
        client_config(&options).map_err(|what| Complaint::plain(format!("TLS: {what}")))?;
    let text = name.to_str().into_owned();
    Ok(Some(TlsRequest {
        asked: TlsAsked::of(&options, &text, Resume::NEVER),
        key_log: None,
        name: text,
        settings: TlsSettings {
            config,
            name,
            resume: Resume::NEVER,
        },
        verified: false,
    }))
}

/// What of it a run is asked for, as far as the record says it.
fn asked(settings: &Settings) -> Run {
    let edns = settings.edns.as_ref();
    let local = settings.local_address.iter();
    Run {
        servers: vec![settings.server.clone()],
        transport: settings.transport,
        message: Message {
            edns: edns.map(|edns| Edns {
                udp_payload_octets: Some(edns.udp_payload_octets),
                dnssec_ok: edns.dnssec_ok,
                ..Edns::default()
            }),
            ..Message::default()
        },
        generator: Generator {
            local_addresses: local.map(IpAddr::to_string).collect(),
            ..Generator::default()
        },
        preflight: false,
        ..Run::default()
    }
}

#[cfg(test)]
mod tests {
    use load::names_file;
    use proto::query::QueryOptions;

    use super::super::args::{Invocation, Options, parse};
    use super::*;

    fn settings(line: &str) -> Settings {
        let arguments: Vec<_> = line.split_whitespace().map(Into::into).collect();
        match parse::<Settings>(&arguments).unwrap() {
            Invocation::Run(mut settings) => {
                settings.complete().unwrap();
                *settings
            }
            other => panic!("{other:?}"),
        }
    }

    fn load(line: &str) -> (u32, u32) {
        let load = Load::fit(&settings(line), &Messages::default());
        (load.workers, load.outstanding)
    }

    #[test]
    fn threads_are_lowered_to_what_they_would_share() {
        assert_eq!(load("-T 4 -c 200"), (4, 100));
        assert_eq!(load("-T 4 -c 2"), (2, 100));
        assert_eq!(load("-T 4 -c 9 -q 3"), (3, 3));
        assert_eq!(load("-T 4 -c 9 -Q 2"), (2, 100));
        let (_, outstanding) = load("-q 100000");
        assert_eq!(u64::from(outstanding), OUTSTANDING_PER_CLIENT_MAX);
    }

    #[test]
    fn the_server_has_an_address_of_the_family_asked_for() {
        let target = |line| settings(line).target.to_string();
        assert_eq!(target("-s ::1 -p 5353"), "[::1]:5353");
        assert_eq!(target("-s localhost -f inet"), "127.0.0.1:53");
    }

    #[test]
    fn public_targets_need_permission() {
        let check = |line: &str, address: &str| {
            let mut settings = settings(line);
            settings.target.set_ip(address.parse().unwrap());
            let load = Load::fit(&settings, &Messages::default());
            let questions = names_file::parse_text(b"a.example A", &QueryOptions::default());
            let request = build(&settings, questions.unwrap(), load).unwrap();
            check_scope(&settings, &request)
        };
        assert!(check("", "192.0.2.1").is_ok());
        assert!(check("-O allow-public", "9.9.9.9").is_ok());
        let complaint = check("", "9.9.9.9").unwrap_err();
        assert_eq!(complaint.what, "9.9.9.9 is a public address");
        assert!(complaint.hint.unwrap().contains("permission"));
        for (line, is_light) in [
            ("-Q 99 -l 10", true),
            ("-Q 100 -l 10", false),
            ("-Q 50 -l 21", false),
            ("-l 1", false),
        ] {
            assert_eq!(check(line, "9.9.9.9").is_ok(), is_light, "{line}");
        }
    }
}
