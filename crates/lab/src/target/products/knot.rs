//! Knot DNS (`knotd`) as the server under test.
//!
//! Uses the installed release if UDP and TCP are enough. DNS over TLS and over QUIC need 3.4, which
//! is in Debian 13 but not in Debian 12.

use std::fmt::Write as _;
use std::ops::Deref;
use std::time::Duration;

use crate::target::cell::{Cell, Factor};
use crate::target::control::HERE;
use crate::target::operation::{Act, Lines, Means};
use crate::target::place::{Place, Server};
use crate::target::process::{Program, Without};
use crate::target::signing::ttl_max;
use crate::target::start::Start;
use crate::target::{Families, Product, Resources, RunningServer, Service, Zone};

/// Knot DNS 3.4 of Debian 13.
pub const KNOT: Product = Product {
    name: "knot",
    title: "Knot DNS",
    factors: &[
        // It handles one TLS handshake at a time in each TCP worker, and blocks meanwhile; with
        // fewer workers than clients, waiting clients stall.
        Factor::number("workers", "16", 1_024, "UDP workers, and as many for TCP"),
        Factor::number("tcp-clients", "", 1_000_000, "TCP clients at once"),
        Factor::word(
            "statistics",
            &["off", "on"],
            "counts queries by protocol (mod-stats)",
        ),
        Factor::signing(),
        Factor::lines("more lines of the server section, indented by four spaces"),
    ],
    server: &SERVER,
    version_flag: "--version",
    reload: Some(Means {
        act: Act::Command(
            CONTROL,
            &["-b", "-s", "./control", "zone-reload", "{origin}"],
        ),
        until: [Lines::NONE; 2],
    }),
    key_roll: Some(Means {
        act: Act::Command(
            CONTROL,
            &[
                "-b",
                "-s",
                "./control",
                "zone-key-rollover",
                "{origin}",
                "zsk",
            ],
        ),
        // New key published, zone signed with it, old key removed.
        until: [Lines {
            with: &["DNSSEC, successfully signed"],
            number: 3,
        }; 2],
    }),
    gives_zone: true,
    start,
};

/// Its control program.
const CONTROL: Program = Program::Debian {
    name: "knotc",
    package: "knot",
};

/// A release with all transports that Knot DNS has.
const SERVER: Server = Server {
    program: Program::Debian13 {
        name: "knotd",
        path: "usr/sbin/knotd",
        since: (3, 4),
        without: Without {
            features: "DoT and no DoQ",
            instead: "do without (`--transports none`), install the Debian package `knot` of \
                      Debian 13",
        },
    },
    services: &[Service::Dot, Service::Doq],
    ..SERVER_OF_DEBIAN12
};

const SERVER_OF_DEBIAN12: Server = Server {
    program: Program::Debian {
        name: "knotd",
        package: "knot",
    },
    services: &[],
    ready_line: Some("server started"),
    // It keeps running and answers SERVFAIL.
    fatal_lines: &["zone event 'load' failed", "failed to load configuration"],
};

fn start(cell: &Cell) -> anyhow::Result<RunningServer> {
    let options = KnotOptions {
        workers: cell.number("workers").unwrap_or(1),
        services: cell.services.clone(),
        tcp_clients_max: cell.number("tcp-clients"),
        counts_queries: cell.text("statistics") == "on",
        signs: cell.signs().then(|| ttl_max(&cell.zone)).transpose()?,
        extra_options: cell.text("options").to_owned(),
        ..KnotOptions::new(cell.zone.clone())
    };
    let server = server_for(&options);
    let start = Start::of(cell);
    run(&options, Start { server, ..start })
}

/// Debian 12's release has no encrypted transports.
fn server_for(options: &KnotOptions) -> &'static Server {
    match options.services.is_empty() {
        true => &SERVER_OF_DEBIAN12,
        false => &SERVER,
    }
}

fn run(options: &KnotOptions, start: Start<'_>) -> anyhow::Result<RunningServer> {
    start.run(|place| {
        let file = place
            .folder
            .write("knot.conf", &configuration(options, place))?;
        Ok(vec!["-c".into(), file.into()])
    })
}

/// How to run `knotd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnotOptions {
    /// The zone it is authoritative for; the only one.
    pub zone: Zone,
    /// UDP workers, and as many TCP workers, at least 1.
    pub workers: u32,
    /// The one core to run on; `None` leaves it to `knotd`, which spreads its workers itself.
    pub cpu: Option<usize>,
    /// Where it listens.
    pub families: Families,
    /// What it offers beside UDP and TCP: DNS over TLS, over QUIC.
    pub services: Vec<Service>,
    /// The `tcp-max-clients` limit.
    pub tcp_clients_max: Option<u32>,
    /// Counts queries by protocol (`mod-stats`), which costs it some time for each.
    pub counts_queries: bool,
    /// Signs the zone; the greatest TTL in it.
    pub signs: Option<Duration>,
    /// More lines for the `server` section, indented by four spaces.
    pub extra_options: String,
}

impl KnotOptions {
    /// One worker for each of UDP and TCP, IPv4, `knotd`'s own limits.
    pub fn new(zone: Zone) -> KnotOptions {
        KnotOptions {
            zone,
            workers: 1,
            cpu: None,
            families: Families::V4,
            services: Vec::new(),
            tcp_clients_max: None,
            counts_queries: false,
            signs: None,
            extra_options: String::new(),
        }
    }
}

/// A running `knotd`, gone when dropped.
#[derive(Debug)]
pub struct KnotTarget {
    pub(super) server: RunningServer,
}

impl Deref for KnotTarget {
    type Target = RunningServer;

    fn deref(&self) -> &RunningServer {
        &self.server
    }
}

impl KnotTarget {
    /// Starts `knotd` and waits until it answers for the zone, at most a minute.
    ///
    /// # Errors
    /// Knot DNS is not installed, its configuration or the zone is wrong (the message has the end
    /// of its log), its threads could not be moved to `cpu`, or no free ports were found.
    pub fn start(options: &KnotOptions) -> anyhow::Result<KnotTarget> {
        let start = Start {
            families: options.families,
            services: &options.services,
            resources: options.cpu.map(Resources::cpu).unwrap_or_default(),
            ..Start::new(server_for(options), &options.zone)
        };
        let server = run(options, start)?;
        Ok(KnotTarget { server })
    }
}

/// A new key waits only until caches have expired.
fn policy(ttl_max: Duration) -> String {
    format!(
        "policy:\n  - id: lab\n    algorithm: ecdsap256sha256\n    ksk-lifetime: 0\n    \
         zsk-lifetime: 0\n    dnskey-ttl: 1\n    zone-max-ttl: {}\n    propagation-delay: 0\n",
        ttl_max.as_secs().max(1)
    )
}

/// Signatures are stored only in the journal.
const SIGNED_ZONES: &str = "    zonefile-load: difference-no-serial
    journal-content: all
    dnssec-signing: on
    dnssec-policy: lab
";

fn configuration(options: &KnotOptions, place: &Place<'_>) -> String {
    let endpoints = place.endpoints;
    let folder = place.folder.path().display();
    let workers = options.workers;
    let listen: Vec<String> = endpoints
        .do53_all()
        .iter()
        .map(|at| format!("{}@{}", at.ip(), at.port()))
        .collect();
    let mut text = format!(
        "server:\n    rundir: \"{folder}\"\n    listen: [ {} ]\n    udp-workers: {workers}\n    \
         tcp-workers: {workers}\n    background-workers: 1\n",
        listen.join(", ")
    );
    for (service, at) in endpoints.services_all() {
        let key = match service {
            Service::Doq => "listen-quic",
            _ => "listen-tls",
        };
        // Writing to a String does not fail.
        let _ = writeln!(text, "    {key}: {}@{}", at.ip(), at.port());
    }
    if !options.services.is_empty() {
        let _ = write!(
            text,
            "    cert-file: \"{folder}/server.pem\"\n    key-file: \"{folder}/server.key\"\n"
        );
    }
    if let Some(clients) = options.tcp_clients_max {
        let _ = writeln!(text, "    tcp-max-clients: {clients}");
    }
    let (module, load_module) = match options.counts_queries {
        true => (
            "mod-stats:\n  - id: all\n    request-protocol: on\n",
            "    global-module: mod-stats/all\n",
        ),
        false => ("", ""),
    };
    let (policy, zones) = match options.signs {
        Some(ttl_max) => (policy(ttl_max), SIGNED_ZONES),
        None => (String::new(), "    journal-content: none\n"),
    };
    let _ = write!(
        text,
        "{}\nlog:\n  - target: stderr\n    any: info\n\
         database:\n    storage: \"{folder}\"\n\
         control:\n    listen: \"{HERE}/control\"\n{module}{policy}\
         acl:\n  - id: transfer\n    action: transfer\n\
         template:\n  - id: default\n    storage: \"{folder}\"\n    zonefile-sync: -1\n\
         {zones}    acl: transfer\n{load_module}\
         zone:\n  - domain: \"{}\"\n    file: \"zone.db\"\n",
        options.extra_options, options.zone.origin
    );
    text
}
