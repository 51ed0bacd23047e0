//! Two network namespaces, the generator's and the server's, and the link between them. Each is in
//! the list of running servers before it is created, so that it is found if its creator is killed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::folder::TempFolder;
use super::process::LOG;
use super::process_id::{ProcessId, end_politely};
use super::running_list::{LINE, Listed};
use super::topology::Topology;
use crate::files::{self, Access, Opening};
use crate::line::{Line, LineRequest, Pair, Shape, within, words};
use crate::run::RunError;

/// Addresses of the two ends, as those of `throng line`.
const V4: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 98, 0, 1), Ipv4Addr::new(10, 98, 0, 2)];
const V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd98, 0, 0, 0, 0, 0, 0, 1),
    Ipv6Addr::new(0xfd98, 0, 0, 0, 0, 0, 0, 2),
];

/// Printed by a line's process once packets move.
const JOINED: &str = " are joined: ";
/// How long that may take, and how often the output is checked.
const START_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The network between a generator and a server; removed with all its contents when dropped.
#[derive(Debug)]
pub struct Network {
    /// Of the generator, and of the server.
    namespaces: [String; 2],
    addresses: [Vec<IpAddr>; 2],
    shape: Option<Shape>,
    held: Mutex<Held>,
}

/// Fields are dropped in this order.
#[derive(Debug)]
struct Held {
    joint: Joint,
    listed: Listed,
    folder: TempFolder,
}

/// The link between the two.
#[derive(Debug)]
enum Joint {
    Pair(Pair),
    Line(Box<Line>),
    /// A line that outlives this process.
    Process(Option<Child>),
}

impl Drop for Joint {
    fn drop(&mut self) {
        if let Joint::Process(Some(child)) = self {
            end_politely(child.id());
            // It was just ended.
            let _ = child.wait();
        }
    }
}

impl Network {
    /// Creates a network; none for loopback. The network of a lasting server is named after it.
    ///
    /// # Errors
    /// It cannot be created on this host; nothing is left behind then.
    pub(super) fn make(
        topology: &Topology,
        families: super::Families,
        lasting: Option<&str>,
    ) -> anyhow::Result<Option<Network>> {
        let shape = match topology {
            Topology::Loopback | Topology::Kubernetes => return Ok(None),
            Topology::Veth => None,
            Topology::Line(shape, _) => Some((**shape).clone()),
        };
        let folder = TempFolder::new("network")?;
        let namespaces = ["near", "far"].map(|end| format!("{}-{end}", folder.name()));
        let listed = Listed::of_network(&folder, topology, lasting, &namespaces);
        listed.write()?;
        let addresses = [0, 1].map(|end: usize| families.select(V4[end], V6[end]));
        let mut held = Held {
            joint: Joint::Process(None),
            listed,
            folder,
        };
        held.joint = match &shape {
            None => Joint::Pair(Pair::lay(&namespaces, &addresses).map_err(refused)?),
            Some(shape) if lasting.is_none() => {
                let line = Line::lay(&LineRequest {
                    between: namespaces.clone(),
                    joins: false,
                    addresses: addresses.clone(),
                    seed: shape.seed,
                    asked: shape.asked,
                });
                Joint::Line(Box::new(line.map_err(refused)?))
            }
            Some(shape) => {
                let mut child = start_line(&held.folder, &namespaces, &addresses, shape)?;
                held.listed.process = ProcessId::of(child.id());
                let joined = held.listed.write();
                let joined = joined.and_then(|()| wait_until_joined(&mut child, &held.folder));
                held.joint = Joint::Process(Some(child));
                joined?;
                return Ok(Some(Network::of(
                    namespaces,
                    addresses,
                    Some(shape.clone()),
                    held,
                )));
            }
        };
        Ok(Some(Network::of(namespaces, addresses, shape, held)))
    }

    fn of(
        namespaces: [String; 2],
        addresses: [Vec<IpAddr>; 2],
        shape: Option<Shape>,
        held: Held,
    ) -> Network {
        Network {
            namespaces,
            addresses,
            shape,
            held: Mutex::new(held),
        }
    }

    /// Checks that networks can be created on this host.
    ///
    /// # Errors
    /// They cannot; with the cure.
    pub fn check() -> anyhow::Result<()> {
        crate::line::check_rights().map_err(refused)
    }

    /// Addresses of the server's end.
    pub fn far_addresses(&self) -> &[IpAddr] {
        &self.addresses[1]
    }

    /// The settings of the line; none without a line.
    pub fn shape(&self) -> Option<&Shape> {
        self.shape.as_ref()
    }

    /// Runs `act`, with all processes that it starts, on a thread at the generator's end.
    ///
    /// # Errors
    /// That end is gone.
    pub fn near<T: Send>(&self, act: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        within(&self.namespaces[0], act).map_err(refused)
    }

    /// The same at the server's end.
    pub(super) fn far<T: Send>(&self, act: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        within(&self.namespaces[1], act).map_err(refused)
    }

    /// Words that begin the command line of a generator.
    pub fn near_words(&self) -> [String; 2] {
        words(&self.namespaces[0])
    }

    /// Words that begin the command line of a server.
    pub(super) fn far_words(&self) -> [String; 2] {
        words(&self.namespaces[1])
    }

    /// The statistics of this process's line since the last call; none without a line.
    pub fn account(&self) -> Option<measure::line::Line> {
        match &mut self.held().joint {
            Joint::Line(line) => line.account(),
            Joint::Pair(_) | Joint::Process(_) => None,
        }
    }

    /// Keeps it after the end of this process; it stays in the list of running servers.
    pub(super) fn keep(&self) -> anyhow::Result<()> {
        let mut held = self.held();
        held.listed.owner = None;
        held.listed.write()?;
        match &mut held.joint {
            Joint::Pair(pair) => pair.keep().map_err(refused)?,
            // Only lasting servers have such a line.
            Joint::Process(child) => drop(child.take()),
            Joint::Line(_) => anyhow::bail!("a line of this process ends with it"),
        }
        held.folder.keep();
        Ok(())
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        // Nothing panics while it is held.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a line in a process of its own, which outlives this one.
fn start_line(
    folder: &TempFolder,
    namespaces: &[String; 2],
    addresses: &[Vec<IpAddr>; 2],
    shape: &Shape,
) -> anyhow::Result<Child> {
    let list = |end: usize| {
        let all: Vec<String> = addresses[end].iter().map(ToString::to_string).collect();
        all.join(",")
    };
    let log = folder.path().join(LOG);
    let file = files::open(&log, Opening::Emptied, Access::Umask);
    let file = file.with_context(|| format!("cannot create the log `{}`", log.display()))?;
    let copy = file.try_clone().context("cannot duplicate a descriptor")?;
    let own = std::env::current_exe().context("this program is not found")?;
    let mut command = Command::new(own);
    // All settings of the line are given: the user's defaults must not apply.
    command.args(["--no-defaults", "line", "--between", &namespaces.join(",")]);
    command.args(["--near-addresses", &list(0), "--far-addresses", &list(1)]);
    command.args(shape.arguments());
    command.arg("--output").arg(folder.path().join(LINE));
    command.stdin(Stdio::null()).stdout(copy).stderr(file);
    let child = command.process_group(0).spawn();
    child.context("cannot start the line")
}

fn wait_until_joined(child: &mut Child, folder: &TempFolder) -> anyhow::Result<()> {
    let log = folder.path().join(LOG);
    let until = Instant::now() + START_MAX;
    loop {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        if said.contains(JOINED) {
            return Ok(());
        }
        let ended = child.try_wait().context("cannot wait for the line")?;
        if ended.is_some() || Instant::now() > until {
            let said = said.trim().trim_start_matches("error: ");
            let (what, hint) = said.split_once("\nhint: ").unwrap_or((said, "try again"));
            return Err(refused(RunError::new(what, hint)));
        }
        thread::park_timeout(LOOK_EVERY);
    }
}

/// Adds the alternatives that work without a network.
fn refused(error: RunError) -> anyhow::Error {
    let hint = error
        .hint
        .map_or_else(String::new, |hint| format!("{hint}; "));
    anyhow::anyhow!(
        "{}\nhint: {hint}the topology loopback needs no rights",
        error.what
    )
}
