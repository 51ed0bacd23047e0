//! Knot DNS (`knotd`) as the server under test, over UDP and TCP.
//!
//! No DNS over TLS: `knotd` has it from version 3.4 on, and Debian 12 ships 3.2.

use std::fmt::Write as _;
use std::fs;
use std::ops::Deref;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::process::Launch;
use super::ready::Readiness;
use super::running::{Prepared, RunningServer};
use super::{Endpoints, Families, StartFailure, Zone, start_on_free_ports};

/// What `knotd` logs when the zone is bad; it runs on and answers SERVFAIL.
const FATAL_LINES: [&str; 2] = ["zone event 'load' failed", "failed to load configuration"];

/// Rounds of moving threads before pinning counts as failed.
const PIN_ROUNDS_MAX: usize = 10;

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
    /// The `tcp-max-clients` limit.
    pub tcp_clients_max: Option<u32>,
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
            tcp_clients_max: None,
            extra_options: String::new(),
        }
    }
}

/// A running `knotd`, gone when dropped.
#[derive(Debug)]
pub struct KnotTarget {
    server: RunningServer,
}

impl Deref for KnotTarget {
    type Target = RunningServer;

    fn deref(&self) -> &RunningServer {
        &self.server
    }
}

impl KnotTarget {
    /// Starts `knotd` and waits until it answers for the zone, at most 30 s.
    ///
    /// # Errors
    /// Knot DNS is not installed, its configuration or the zone is wrong (the message has the end
    /// of its log), its threads could not be moved to `cpu`, or no free ports were found.
    pub fn start(options: &KnotOptions) -> anyhow::Result<KnotTarget> {
        let addresses = options.families.addresses();
        start_on_free_ports(&addresses, 1, |ports| {
            let endpoints = Endpoints {
                addresses: addresses.clone(),
                do53_port: ports[0],
                dot_port: None,
            };
            KnotTarget::start_on(options, endpoints)
        })
    }

    fn start_on(options: &KnotOptions, endpoints: Endpoints) -> Result<KnotTarget, StartFailure> {
        let prepared = Prepared::new("knotd", &options.zone, false)?;
        let folder = &prepared.folder;
        let text = configuration(options, &endpoints, folder.path());
        let file = folder.write("knot.conf", &text)?;
        let arguments = vec!["-c".into(), file.into()];
        let cpu = options.cpu;
        let launch = Launch {
            program: "knotd",
            package: "knot",
            arguments,
            cpu,
        };
        let readiness = Readiness {
            endpoints: &endpoints,
            origin: &options.zone.origin,
            refused_is_ready: false,
            ready_line: Some("server started"),
            fatal_lines: &FATAL_LINES,
        };
        let server = prepared.launch(launch, &readiness)?;
        if let Some(cpu) = options.cpu {
            pin_all_threads(server.process_id(), cpu).with_context(|| {
                format!("cannot keep `knotd` on core {cpu}; it moves its workers itself")
            })?;
        }
        Ok(KnotTarget { server })
    }
}

fn configuration(options: &KnotOptions, endpoints: &Endpoints, folder: &Path) -> String {
    let folder = folder.display();
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
    if let Some(clients) = options.tcp_clients_max {
        // Writing to a String does not fail.
        let _ = writeln!(text, "    tcp-max-clients: {clients}");
    }
    let _ = write!(
        text,
        "{}\nlog:\n  - target: stderr\n    any: info\n\
         database:\n    storage: \"{folder}\"\n\
         control:\n    listen: \"{folder}/control\"\n\
         template:\n  - id: default\n    storage: \"{folder}\"\n    zonefile-sync: -1\n    \
         journal-content: none\n\
         zone:\n  - domain: \"{}\"\n    file: \"zone.db\"\n",
        options.extra_options, options.zone.origin
    );
    text
}

/// Moves all threads of a process to one core until the kernel says that they are there.
///
/// Each `knotd` worker binds itself to core (thread number mod cores) when it starts, over the
/// top of `taskset`. Left alone, the UDP worker sits on the generator's core.
fn pin_all_threads(process: u32, cpu: usize) -> anyhow::Result<()> {
    for _ in 0..PIN_ROUNDS_MAX {
        let output = Command::new("taskset")
            .args([
                "--all-tasks",
                "--cpu-list",
                "--pid",
                &cpu.to_string(),
                &process.to_string(),
            ])
            .output()
            .context("cannot run `taskset`")?;
        let message = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "taskset: {}", message.trim());
        let lists = allowed_cpus(process)?;
        if lists.iter().all(|list| *list == cpu.to_string()) {
            return Ok(());
        }
    }
    anyhow::bail!("threads are on other cores after {PIN_ROUNDS_MAX} rounds")
}

/// The `Cpus_allowed_list` of every thread of a process.
fn allowed_cpus(process: u32) -> anyhow::Result<Vec<String>> {
    let folder = format!("/proc/{process}/task");
    let mut lists = Vec::new();
    for thread in fs::read_dir(&folder).with_context(|| format!("cannot read `{folder}`"))? {
        // A thread that ended since the listing is of no interest.
        let status = fs::read_to_string(thread?.path().join("status")).unwrap_or_default();
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        lists.extend(list.map(|list| list.trim().to_owned()));
    }
    Ok(lists)
}
