//! Unbound as the server under test: answers its own zone and resolves nothing else.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::ops::Deref;

use crate::target::cell::{CacheControl, Cell, Factor};
use crate::target::control::{self, HERE};
use crate::target::internet::{HINTS, start_resolver};
use crate::target::operation::{Act, Lines, Means};
use crate::target::place::{Place, Server};
use crate::target::process::Program;
use crate::target::start::Start;
use crate::target::{DOH_PATH, Families, Product, Resources, RunningServer, Service, Zone};

/// Unbound of Debian 12, as the authoritative server of a zone.
pub const UNBOUND: Product = Product {
    name: "unbound",
    title: "Unbound",
    factors: &[
        Factor::number("threads", "1", 1_024, "threads that answer"),
        // Its default, 10, is below what most loads need.
        Factor::number(
            "tcp-clients",
            "100",
            1_000_000,
            "TCP clients of each thread at once",
        ),
        Factor::internet(),
        Factor::cache(CacheControl {
            flush,
            forget: None,
        }),
        Factor::word(
            "statistics",
            &["off", "on"],
            "counts queries by type, transport and RCODE (extended-statistics)",
        ),
        Factor::lines("more lines of the server clause"),
    ],
    server: &SERVER,
    version_flag: "-V",
    reload: Some(Means {
        act: Act::Command(CONTROL, &["-c", CONFIGURATION, "reload"]),
        until: [Lines::NONE; 2],
    }),
    key_roll: None,
    gives_zone: false,
    start,
};

/// Its control program.
const CONTROL: Program = Program::Debian {
    name: "unbound-control",
    package: "unbound",
};

const SERVER: Server = Server {
    program: Program::Debian {
        name: "unbound",
        package: "unbound",
    },
    services: &[Service::Dot, Service::Doh2],
    ready_line: None,
    fatal_lines: &["error: cannot parse", "fatal error"],
};

const CONFIGURATION: &str = "unbound.conf";

fn start(cell: &Cell) -> anyhow::Result<RunningServer> {
    let mut extra_options = cell.text("options").to_owned();
    if cell.text("statistics") == "on" {
        extra_options.push_str("\n  extended-statistics: yes");
    }
    let options = UnboundOptions {
        threads: cell.number("threads").unwrap_or(1),
        tcp_clients_max: cell.number("tcp-clients"),
        services: cell.services.clone(),
        extra_options,
        resolves: !cell.text("internet").is_empty(),
        ..UnboundOptions::new(cell.zone.clone())
    };
    start_resolver(cell, &Start::of(cell), |place| configured(&options, place))
}

fn flush(server: &RunningServer) -> anyhow::Result<()> {
    let program = Program::Debian {
        name: "unbound-control",
        package: "unbound",
    };
    let words = ["-c", CONFIGURATION, "flush_zone", "."];
    control::run(server, program, &words).map(|_| ())
}

fn configured(options: &UnboundOptions, place: &Place<'_>) -> anyhow::Result<Vec<OsString>> {
    let text = configuration(options, place);
    let file = place.folder.write(CONFIGURATION, &text)?;
    Ok(vec!["-d".into(), "-p".into(), "-c".into(), file.into()])
}

/// How to run `unbound`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnboundOptions {
    /// The zone it answers from; queries for other names are REFUSED.
    pub zone: Zone,
    /// Worker threads, at least 1.
    pub threads: u32,
    /// The one core to run on; `None` leaves it to the kernel.
    pub cpu: Option<usize>,
    /// Where it listens.
    pub families: Families,
    /// The `incoming-num-tcp` limit for each thread (Unbound's default is 10).
    pub tcp_clients_max: Option<u32>,
    /// What it offers beside UDP and TCP: DNS over TLS, over HTTP/2.
    pub services: Vec<Service>,
    /// Resolves the zone from the root in `root.hints`, instead of serving it.
    pub resolves: bool,
    /// More lines for the `server` clause.
    pub extra_options: String,
}

impl UnboundOptions {
    /// One thread, IPv4, UDP and TCP only, Unbound's own limits.
    pub fn new(zone: Zone) -> UnboundOptions {
        UnboundOptions {
            zone,
            threads: 1,
            cpu: None,
            families: Families::V4,
            tcp_clients_max: None,
            services: Vec::new(),
            resolves: false,
            extra_options: String::new(),
        }
    }
}

/// A running `unbound`, gone when dropped.
#[derive(Debug)]
pub struct UnboundTarget {
    pub(super) server: RunningServer,
}

impl Deref for UnboundTarget {
    type Target = RunningServer;

    fn deref(&self) -> &RunningServer {
        &self.server
    }
}

impl UnboundTarget {
    /// Starts `unbound` and waits until it answers for the zone on all its ports, at most a minute.
    ///
    /// # Errors
    /// Unbound is not installed, its configuration or the zone is wrong (the message has the end
    /// of its log), or no free ports were found.
    pub fn start(options: &UnboundOptions) -> anyhow::Result<UnboundTarget> {
        let start = Start {
            families: options.families,
            services: &options.services,
            resources: options.cpu.map(Resources::cpu).unwrap_or_default(),
            ..Start::new(&SERVER, &options.zone)
        };
        let server = start.run(|place| configured(options, place))?;
        Ok(UnboundTarget { server })
    }
}

fn configuration(options: &UnboundOptions, place: &Place<'_>) -> String {
    let endpoints = place.endpoints;
    let folder = place.folder.path().display();
    let origin = &options.zone.origin;
    // Refusing the root and binding outgoing sockets to loopback prevent queries to the Internet
    // for names outside the zone.
    let mut text = format!(
        "server:\n  directory: \"{folder}\"\n  chroot: \"\"\n  username: \"\"\n  pidfile: \"\"\n  \
         do-daemonize: no\n  use-syslog: no\n  logfile: \"\"\n  verbosity: 1\n  \
         num-threads: {}\n  module-config: \"iterator\"\n  access-control: 0.0.0.0/0 allow\n  \
         access-control: ::/0 allow\n  outgoing-interface: 127.0.0.1\n  \
         local-zone: \"{origin}\" transparent\n",
        options.threads
    );
    text.push_str(&match options.resolves {
        true => format!("  do-not-query-localhost: no\n  root-hints: \"{folder}/{HINTS}\"\n"),
        false => "  local-zone: \".\" refuse\n".to_owned(),
    });
    for address in &endpoints.addresses {
        for port in endpoints.tcp_ports() {
            // Writing to a String does not fail.
            let _ = writeln!(text, "  interface: {address}@{port}");
        }
    }
    // A port is for TLS or for HTTP because one of these says so.
    if let Some(port) = endpoints.service_port(Service::Dot) {
        let _ = writeln!(text, "  tls-port: {port}");
    }
    if let Some(port) = endpoints.service_port(Service::Doh2) {
        let _ = writeln!(
            text,
            "  https-port: {port}\n  http-endpoint: \"{DOH_PATH}\""
        );
    }
    if !options.services.is_empty() {
        let _ = write!(
            text,
            "  tls-service-key: \"{folder}/server.key\"\n  \
             tls-service-pem: \"{folder}/server.pem\"\n"
        );
    }
    if let Some(clients) = options.tcp_clients_max {
        let _ = writeln!(text, "  incoming-num-tcp: {clients}");
    }
    let _ = write!(
        text,
        "{}\nremote-control:\n  control-enable: yes\n  \
         control-interface: \"{HERE}/control\"\n",
        options.extra_options
    );
    if !options.resolves {
        let _ = write!(
            text,
            "auth-zone:\n  name: \"{origin}\"\n  zonefile: \"{folder}/zone.db\"\n  \
             for-downstream: yes\n  for-upstream: no\n"
        );
    }
    text
}
