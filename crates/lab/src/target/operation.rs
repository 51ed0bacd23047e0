//! Operations on a server under load, such as a reload or a restart.
//!
//! Each ends when the server's log, control program or responses show that it is complete.

use std::fmt;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::Signal;

use super::cell::Cell;
use super::control;
use super::internet::EXTERNAL;
use super::over_tcp::transfer;
use super::process::{Program, ServerProcess};
use super::process_id;
use super::ready::{Readiness, StartFailure, wait_until_ready};
use super::signing::ttl_max;
use super::{Product, RunningServer};
use crate::files::{self, Access, Opening};

/// How long an operation may take on a busy machine.
const DURATION_MAX: Duration = Duration::from_secs(60);
/// The greatest TTL of a zone whose key is rolled in mid-run.
const TTL_MAX: Duration = Duration::from_secs(10);
/// How often its end is checked.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Attempts of a restart when another process has taken the port.
const ATTEMPTS_MAX: usize = 5;

/// An operation during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The server reads its configuration and zone again.
    Reload,
    /// The process ends, and another begins on the same ports.
    Restart,
    /// The server gives its zone to a secondary.
    ZoneTransfer,
    /// The server rolls over the key with which it signs its zone.
    KeyRoll,
    /// The server's upstream is stopped, and continued later.
    UpstreamOutage,
}

/// How an operation of a product is triggered, and how its end is recognised.
#[derive(Clone, Copy, Debug)]
pub(super) struct Means {
    pub(super) act: Act,
    /// Log lines at the end, of an authoritative server and of a resolver.
    pub(super) until: [Lines; 2],
}

/// Lines of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    /// Each has one of these in it.
    pub(super) with: &'static [&'static str],
    /// How many to wait for; with 0, the operation ends with its trigger.
    pub(super) number: usize,
}

impl Lines {
    /// No lines: the operation ends with its trigger.
    pub(super) const NONE: Lines = Lines {
        with: &[],
        number: 0,
    };

    /// One with one of these in it.
    pub(super) const fn one(with: &'static [&'static str]) -> Lines {
        Lines { with, number: 1 }
    }

    fn are_in(&self, log: &str) -> bool {
        let is_one = |line: &&str| self.with.iter().any(|with| line.contains(with));
        log.lines().filter(is_one).count() >= self.number
    }
}

/// Arguments of a program, for a server and the origin of its zone.
type WordsOf = fn(&RunningServer, &str) -> anyhow::Result<Vec<String>>;

/// The trigger of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// A signal to its process.
    Signal(Signal),
    /// A program with these arguments, in which `{origin}` is filled in. It runs in the folder.
    Command(Program, &'static [&'static str]),
    /// The same, with arguments that depend on the running server.
    CommandOf(Program, WordsOf),
}

/// The result of a successful operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// How long the server was down.
    pub down: Option<Duration>,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 5] = [
        Operation::Reload,
        Operation::Restart,
        Operation::ZoneTransfer,
        Operation::KeyRoll,
        Operation::UpstreamOutage,
    ];

    /// The name as it is typed.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Reload => "reload",
            Operation::Restart => "restart",
            Operation::ZoneTransfer => "zone-transfer",
            Operation::KeyRoll => "key-roll",
            Operation::UpstreamOutage => "upstream-outage",
        }
    }

    /// That of this name.
    pub fn parse(name: &str) -> Option<Operation> {
        Operation::ALL.into_iter().find(|it| it.name() == name)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Cell {
    /// Checks that the operation is possible.
    ///
    /// # Errors
    /// It is not; the message names the possible ones.
    pub fn check_operation(&self, operation: Operation) -> anyhow::Result<()> {
        if self.has(operation) {
            return self.check_ttl(operation);
        }
        let title = self.product.title;
        if operation == Operation::UpstreamOutage {
            anyhow::bail!(
                "{title} has nothing behind it here for `{operation}`\nhint: give it factor \
                 `behind`, `external` or `internet` if it has one, or take a proxy"
            );
        }
        if operation == Operation::KeyRoll && self.product.key_roll.is_some() {
            anyhow::bail!(
                "{title} has no key of its own for `{operation}`\nhint: let it sign its zone: \
                 signing = \"on\""
            );
        }
        let all = Operation::ALL.into_iter().filter(|it| self.has(*it));
        let all: Vec<&str> = all.map(Operation::name).collect();
        let all = all.join(", ");
        anyhow::bail!("{title} has no operation `{operation}`\nhint: here it has {all}")
    }

    /// A new key waits until no cache has signatures of the old one (RFC 6781, section 4.1.1.1).
    fn check_ttl(&self, operation: Operation) -> anyhow::Result<()> {
        if operation != Operation::KeyRoll {
            return Ok(());
        }
        let ttl = ttl_max(&self.zone)?;
        anyhow::ensure!(
            ttl <= TTL_MAX,
            "operation `{operation}` waits for caches, which keep what is in this zone for \
             {ttl:?}\nhint: take data with a TTL of at most {TTL_MAX:?}, as in zone:1000,ttl=1s"
        );
        Ok(())
    }

    fn has(&self, operation: Operation) -> bool {
        match operation {
            Operation::Reload => self.product.reload.is_some(),
            Operation::Restart => true,
            Operation::ZoneTransfer => self.product.gives_zone && !self.has_upstream(),
            Operation::KeyRoll => self.product.key_roll.is_some() && self.signs(),
            Operation::UpstreamOutage => self.has_upstream(),
        }
    }

    /// True if it queries other servers of the lab.
    fn has_upstream(&self) -> bool {
        let is_set = |name| !matches!(self.text(name), "" | "none");
        let is_always = |product: &Product| {
            let has_choice = product.factors.iter().any(|it| it.name == "behind");
            !product.servers_behind().is_empty() && !has_choice
        };
        is_set("internet") || is_set("behind") || is_set(EXTERNAL) || is_always(self.product)
    }

    /// Carries out an operation on a server started from this cell, and waits for its end. An
    /// outage lasts for the given time; all waiting ends once `is_over` returns true.
    ///
    /// # Errors
    /// The server did not complete it; the message has the server's error.
    pub fn operate(
        &self,
        server: &mut RunningServer,
        operation: Operation,
        (outage, is_over): (Duration, &dyn Fn() -> bool),
    ) -> anyhow::Result<Done> {
        let mut done = Done::default();
        match operation {
            Operation::Reload => {
                // Servers do not reload an unchanged file.
                let zone = server.folder().join("zone.db");
                let written = files::write_in_place(&zone, &self.zone.text);
                written.context("cannot write the zone again")?;
                self.act(server, self.product.reload, is_over)?;
            }
            Operation::KeyRoll => self.act(server, self.product.key_roll, is_over)?,
            Operation::Restart => done.down = Some(self.restart(server)?),
            Operation::ZoneTransfer => {
                transfer(server, &self.zone.origin, (DURATION_MAX, is_over))?;
            }
            Operation::UpstreamOutage => stop_upstream(server, (outage, is_over)),
        }
        Ok(done)
    }

    /// Triggers an operation, and waits until the server reports its end.
    fn act(
        &self,
        server: &mut RunningServer,
        means: Option<Means>,
        is_over: &dyn Fn() -> bool,
    ) -> anyhow::Result<()> {
        let means = means.context("it cannot be ordered to")?;
        let log_from = server.process.log().len();
        match means.act {
            Act::Signal(signal) => process_id::signal(server.process_id(), signal),
            Act::Command(program, words) => {
                let origin = &self.zone.origin;
                let filled = words.iter().map(|word| word.replace("{origin}", origin));
                command(server, (program, filled.collect()), is_over)?;
            }
            Act::CommandOf(program, words) => {
                let words = words(server, &self.zone.origin)?;
                command(server, (program, words), is_over)?;
            }
        }
        let lines = means.until[usize::from(!self.text("internet").is_empty())];
        let fatal_lines = self.product.server.fatal_lines;
        wait(&mut server.process, is_over, |process| {
            let log = process.log();
            let log = log.get(log_from..).unwrap_or_default();
            let lower = log.to_lowercase();
            match fatal_lines.iter().any(|fatal| lower.contains(fatal)) {
                true => Err(process.error("did not do it")),
                false => Ok(lines.are_in(log)),
            }
        })
    }

    /// Returns how long the server was down.
    fn restart(&self, server: &mut RunningServer) -> anyhow::Result<Duration> {
        server.process.stop()?;
        let gone_at = Instant::now();
        for _ in 0..ATTEMPTS_MAX {
            server.process.start_again()?;
            server.listed.process = server.process.identity();
            server.listed.write()?;
            let network = server.network.clone();
            let readiness = Readiness {
                endpoints: &server.endpoints,
                origin: &self.zone.origin,
                refused_is_ready: false,
                is_elsewhere: false,
                ready_line: self.product.server.ready_line,
                fatal_lines: self.product.server.fatal_lines,
            };
            let process = &mut server.process;
            let ready = match &network {
                Some(network) => network.far(|| wait_until_ready(process, &readiness))?,
                None => wait_until_ready(process, &readiness),
            };
            match ready {
                Ok(()) => {
                    let down = gone_at.elapsed();
                    server.process.keep_on_cpus(&self.resources)?;
                    return Ok(down);
                }
                Err(StartFailure::Final(error)) => return Err(error),
                // A connection of the generator may hold the port for a while.
                Err(StartFailure::PortTaken(_)) => server.process.stop()?,
            }
        }
        Err(server.process.error("did not get its ports again"))
    }
}

/// Runs a control program.
fn command(
    server: &mut RunningServer,
    (program, words): (Program, Vec<String>),
    is_over: &dyn Fn() -> bool,
) -> anyhow::Result<()> {
    let name = program.name();
    let output = server.folder().join("operation.log");
    let file = files::open(&output, Opening::Emptied, Access::Umask);
    let file = file.context("cannot write what a command says")?;
    let mut command = control::command(server, program, words)?;
    command.stdout(file.try_clone()?).stderr(file);
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run `{name}`"))?;
    let waited = wait(&mut server.process, is_over, |_| {
        Ok(child.try_wait()?.is_some())
    });
    // It fails only if the command has ended.
    let _ = child.kill();
    let status = child.wait()?;
    waited?;
    let said = fs::read_to_string(&output).unwrap_or_default();
    anyhow::ensure!(status.success(), "`{name}` ({status}): {}", said.trim());
    Ok(())
}

/// Waits until the condition is met, the server has ended, the time is over, or the wait is
/// cancelled.
fn wait(
    process: &mut ServerProcess,
    is_over: &dyn Fn() -> bool,
    mut is_done: impl FnMut(&ServerProcess) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let until = Instant::now() + DURATION_MAX;
    while !is_done(process)? {
        if let Some(status) = process.ended()? {
            let how = process.describe_end(status);
            return Err(process.error(&format!("ended by it ({how})")));
        }
        anyhow::ensure!(!is_over(), "it was interrupted");
        if Instant::now() > until {
            return Err(process.error(&format!("was not done in {DURATION_MAX:?}")));
        }
        thread::park_timeout(LOOK_EVERY);
    }
    Ok(())
}

/// Stopped processes; they continue when this is dropped.
struct Stopped(Vec<u32>);

impl Drop for Stopped {
    fn drop(&mut self) {
        for id in &self.0 {
            process_id::signal_group(*id, Signal::CONT);
        }
    }
}

/// Stops all upstream servers for that time.
fn stop_upstream(server: &RunningServer, (time, is_over): (Duration, &dyn Fn() -> bool)) {
    let mut stopped = Stopped(Vec::new());
    let mut next = server.behind();
    while let Some(behind) = next {
        stopped.0.push(behind.process_id());
        process_id::signal_group(behind.process_id(), Signal::STOP);
        next = behind.behind();
    }
    let until = Instant::now() + time;
    while Instant::now() < until && !is_over() {
        thread::park_timeout(LOOK_EVERY.min(until.saturating_duration_since(Instant::now())));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Zone;
    use super::super::products::{ALL, COREDNS, HAPROXY, NSD, UNBOUND};
    use super::*;

    fn cell(product: &'static Product) -> Cell {
        Cell::new(product, Zone::with_records(1, 1))
    }

    #[test]
    fn names_of_operations_are_read_again() {
        for operation in Operation::ALL {
            assert_eq!(Operation::parse(operation.name()), Some(operation));
        }
        assert_eq!(Operation::parse("none"), None);
    }

    #[test]
    fn every_product_can_be_restarted() {
        for product in ALL {
            cell(product).check_operation(Operation::Restart).unwrap();
        }
    }

    #[test]
    fn an_outage_is_of_what_stands_behind_a_server() {
        let outage = |cell: Cell| cell.check_operation(Operation::UpstreamOutage);
        outage(cell(&HAPROXY)).unwrap();
        for setting in ["behind=udp", "external=0ms"] {
            outage(cell(&COREDNS).set(setting).unwrap()).unwrap();
        }
        outage(cell(&UNBOUND).set("internet=0ms/0ms/0ms").unwrap()).unwrap();
        for product in [&COREDNS, &UNBOUND, &NSD] {
            let error = outage(cell(product)).unwrap_err().to_string();
            assert!(error.contains("nothing behind it"), "{error}");
        }
    }

    #[test]
    fn what_a_product_does_not_have_is_refused_with_what_it_has() {
        let error = cell(&HAPROXY).check_operation(Operation::Reload);
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("HAProxy has no operation `reload`"),
            "{error}"
        );
        assert!(error.contains("restart, upstream-outage"), "{error}");
    }
}
