//! Unbound as the server under test: answers one zone of its own and resolves nothing else.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::ops::Deref;
use std::path::Path;

use super::process::Launch;
use super::ready::Readiness;
use super::running::{Prepared, RunningServer};
use super::{Endpoints, Families, StartFailure, Zone, start_on_free_ports};

/// What Unbound logs when the zone file is bad.
const FATAL_LINES: [&str; 2] = ["error: cannot parse", "fatal error"];

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
    /// Whether it also serves DNS over TLS (RFC 7858).
    pub dot: bool,
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
            dot: false,
            extra_options: String::new(),
        }
    }
}

/// A running `unbound`, gone when dropped.
#[derive(Debug)]
pub struct UnboundTarget {
    server: RunningServer,
}

impl Deref for UnboundTarget {
    type Target = RunningServer;

    fn deref(&self) -> &RunningServer {
        &self.server
    }
}

impl UnboundTarget {
    /// Starts `unbound` and waits until it answers for the zone on all its ports, at most 30 s.
    ///
    /// # Errors
    /// Unbound is not installed, its configuration or the zone is wrong (the message has the end
    /// of its log), or no free ports were found.
    pub fn start(options: &UnboundOptions) -> anyhow::Result<UnboundTarget> {
        let addresses = options.families.addresses();
        start_on_free_ports(&addresses, 2, |ports| {
            let endpoints = Endpoints {
                addresses: addresses.clone(),
                do53_port: ports[0],
                dot_port: options.dot.then_some(ports[1]),
            };
            UnboundTarget::start_on(options, endpoints)
        })
    }

    fn start_on(
        options: &UnboundOptions,
        endpoints: Endpoints,
    ) -> Result<UnboundTarget, StartFailure> {
        let prepared = Prepared::new("unbound", &options.zone, options.dot)?;
        let folder = &prepared.folder;
        let text = configuration(options, &endpoints, folder.path());
        let file = folder.write("unbound.conf", &text)?;
        let mut arguments: Vec<OsString> = ["-d", "-p", "-c"].map(OsString::from).into();
        arguments.push(file.into());
        let cpu = options.cpu;
        let launch = Launch {
            program: "unbound",
            package: "unbound",
            arguments,
            cpu,
        };
        let readiness = Readiness {
            endpoints: &endpoints,
            origin: &options.zone.origin,
            refused_is_ready: false,
            ready_line: None,
            fatal_lines: &FATAL_LINES,
        };
        let server = prepared.launch(launch, &readiness)?;
        Ok(UnboundTarget { server })
    }
}

fn configuration(options: &UnboundOptions, endpoints: &Endpoints, folder: &Path) -> String {
    let folder = folder.display();
    let origin = &options.zone.origin;
    // Refusing the root and binding outgoing sockets to loopback keep it from asking the Internet
    // for names outside the zone.
    let mut text = format!(
        "server:\n  directory: \"{folder}\"\n  chroot: \"\"\n  username: \"\"\n  pidfile: \"\"\n  \
         do-daemonize: no\n  use-syslog: no\n  logfile: \"\"\n  verbosity: 1\n  \
         num-threads: {}\n  module-config: \"iterator\"\n  access-control: 127.0.0.0/8 allow\n  \
         access-control: ::1 allow\n  outgoing-interface: 127.0.0.1\n  \
         local-zone: \".\" refuse\n  local-zone: \"{origin}\" transparent\n",
        options.threads
    );
    for address in &endpoints.addresses {
        for port in endpoints.tcp_ports() {
            // Writing to a String does not fail.
            let _ = writeln!(text, "  interface: {address}@{port}");
        }
    }
    if let Some(port) = endpoints.dot_port {
        let _ = write!(
            text,
            "  tls-port: {port}\n  tls-service-key: \"{folder}/server.key\"\n  \
             tls-service-pem: \"{folder}/server.pem\"\n"
        );
    }
    if let Some(clients) = options.tcp_clients_max {
        let _ = writeln!(text, "  incoming-num-tcp: {clients}");
    }
    let _ = write!(
        text,
        "{}\nremote-control:\n  control-enable: no\nauth-zone:\n  name: \"{origin}\"\n  \
         zonefile: \"{folder}/zone.db\"\n  for-downstream: yes\n  for-upstream: no\n",
        options.extra_options
    );
    text
}
