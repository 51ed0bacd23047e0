//! Agents on other hosts, which are reached by ssh: `--hosts FILE`.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::Path;

use driver::clock::Clock;
use lab::agents::{AgentCommand, Greeted, GreetingError, Hello, Place, greet, own_hello};
use lab::run::{Division, RunRequest};
use sha2::{Digest, Sha256};

use crate::agent;
use crate::failure::Failure;
use crate::inputs;
use crate::run::group::Group;
use crate::signals::Interrupt;

/// How hosts are reached, unless told otherwise.
const SSH: &str = "ssh -T";
/// The program there, unless told otherwise.
const PROGRAM: &str = "throng";
/// As many as a run may have processes.
const HOSTS_MAX: usize = 1_024;

/// Where an agent is to be started.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// As ssh takes it.
    name: String,
    /// The path of the program there.
    program: String,
}

/// The hosts of a run, and how they are reached; none if it has no others.
pub(super) struct Hosts {
    each: Vec<Host>,
    ssh: Vec<String>,
}

impl Hosts {
    /// As the run asks for. From now on all files that this process reads are kept for the agents.
    ///
    /// # Errors
    /// The file cannot be read, or has no hosts, or they cannot be reached so.
    pub(super) fn of(groups: &[Group]) -> Result<Option<Hosts>, Failure> {
        let generator = &groups[0].run.generator;
        let Some(path) = &generator.hosts else {
            return Ok(None);
        };
        if generator.agents.is_some() {
            return Err(Failure::usage(
                "--agents cannot be used with --hosts, of which each line is an agent",
                "leave it out, and name a host as often as it is to have agents",
            ));
        }
        let has_key_log = |group: &Group| {
            let tls = group.run.tls.as_ref();
            tls.is_some_and(|tls| tls.key_log.is_some())
        };
        if groups.iter().any(has_key_log) {
            return Err(Failure::usage(
                "--tls-keylog cannot be used with --hosts: each agent would write secrets to its \
                 host",
                "leave it out, or run without --hosts",
            ));
        }
        inputs::keep_all();
        let each = read(path.as_path())?;
        let ssh = generator.ssh.as_deref().unwrap_or(SSH);
        let ssh = shlex::split(ssh).filter(|words| !words.is_empty());
        let ssh = ssh.ok_or_else(|| {
            Failure::usage(
                "--ssh: it is no command",
                "write it as for a shell, such as 'ssh -p 2222'",
            )
        })?;
        Ok(Some(Hosts { each, ssh }))
    }

    /// Starts an agent on each, and waits until all have said who they are.
    ///
    /// # Errors
    /// One cannot be started, does not answer, or is another program.
    pub(super) fn start(&self, clock: Clock, interrupt: &Interrupt) -> Result<Greeted, Failure> {
        let own = own_hello(binary()?);
        let commands: Vec<_> = self.each.iter().map(|it| it.command(&self.ssh)).collect();
        let greeted = greet(&commands, Some(own), clock, || interrupt.has_come());
        greeted.map_err(|error| match error {
            GreetingError::Unreachable { agent, name, how } => self.unreachable(agent, &name, &how),
            error => not_greeted(error),
        })
    }

    fn unreachable(&self, agent: usize, name: &str, how: &str) -> Failure {
        let host = &self.each[agent];
        Failure::usage(
            format!("{name}: no agent could be started: {how}"),
            format!(
                "`{} {} {} --version` has to work; the path of the program there goes behind the \
                 host's name",
                self.ssh.join(" "),
                host.name,
                host.program
            ),
        )
    }
}

/// Why agents could not be started.
pub(super) fn not_greeted(error: GreetingError) -> Failure {
    match error {
        GreetingError::Interrupted => Failure::interrupted("interrupted before the run began"),
        GreetingError::Unreachable { name, how, .. } => {
            Failure::in_operation(format!("{name} died before the run: {how}"))
        }
        GreetingError::Foreign { name, said } => Failure::usage(
            format!("{name}: it said `{said}`, which is no agent's"),
            "`ssh HOST true` must print nothing: .bashrc and the like may print in interactive \
             shells only",
        ),
        GreetingError::Other(error) => error.into(),
    }
}

impl Host {
    fn command(&self, ssh: &[String]) -> AgentCommand {
        // The shell of that host splits the line into words.
        let program = shlex::try_quote(&self.program)
            .map_or_else(|_| self.program.clone(), |quoted| quoted.into_owned());
        let words = ssh[1..].iter().cloned();
        let before = words.chain([self.name.clone(), program, agent::NAME.to_owned()]);
        AgentCommand {
            program: OsString::from(&ssh[0]),
            before: before.map(OsString::from).collect(),
            after: vec![agent::HELLO.into()],
            place: Place::Host(self.name.clone()),
        }
    }
}

/// Decides how many workers all agents have together, and what each has to do: `groups` are what
/// they are told.
///
/// # Errors
/// One may not have as many open files as it needs.
pub(super) fn divide(
    requests: &mut [RunRequest],
    groups: &mut [Group],
    greeted: &Greeted,
) -> Result<Division, Failure> {
    let hellos: Vec<_> = greeted.hellos().collect();
    refuse_loopback(requests, &hellos, greeted)?;
    let agents = u32::try_from(hellos.len()).unwrap_or(u32::MAX);
    let cpus = hellos.iter().map(|hello| hello.cpus).min().unwrap_or(1);
    for (request, group) in requests.iter_mut().zip(groups.iter()) {
        if group.run.generator.workers.is_none() && group.run.generator.cpus.is_empty() {
            request.plan.workers = (cpus * agents).min(request.plan.clients);
        }
    }
    let division = Division::into(requests, agents);
    let workers = requests.iter().map(|it| it.plan.workers).max();
    if workers.unwrap_or(1) < agents {
        return Err(Failure::usage(
            format!(
                "the load can be divided among {} agents, not {agents}",
                workers.unwrap_or(1)
            ),
            "name fewer hosts, or use more --clients (in closed loop also more --outstanding)",
        ));
    }
    let needed = division.descriptors_max(requests);
    if let Some(index) = hellos.iter().position(|it| it.open_files_max < needed) {
        let limit = hellos[index].open_files_max;
        return Err(Failure::usage(
            format!(
                "{}: it needs {needed} open files, and may have {limit}",
                greeted.name(index)
            ),
            "raise the limit there (`ulimit -n`), or name more hosts, or one of them more often",
        ));
    }
    for (request, group) in requests.iter().zip(groups.iter_mut()) {
        group.run.generator.workers = Some(request.plan.workers);
    }
    Ok(division)
}

/// Refuses a target on loopback for an agent in another network, where that is another target.
fn refuse_loopback(
    requests: &[RunRequest],
    hellos: &[&Hello],
    greeted: &Greeted,
) -> Result<(), Failure> {
    let targets = requests.iter().map(|it| it.plan.target.ip());
    let Some(loopback) = targets.into_iter().find(IpAddr::is_loopback) else {
        return Ok(());
    };
    let own = own_hello(String::new()).network;
    let is_other = |it: &&Hello| it.network.is_some() && own.is_some() && it.network != own;
    match hellos.iter().position(is_other) {
        None => Ok(()),
        Some(agent) => Err(Failure::usage(
            format!(
                "{}: {loopback} is that host itself there, and not the server here",
                greeted.name(agent)
            ),
            "give --server an address that all agents reach",
        )),
    }
}

/// One host a line, with the path of the program behind it if that is not found there; `#` begins
/// a comment.
fn read(path: &Path) -> Result<Vec<Host>, Failure> {
    let text = inputs::text(path).map_err(|error| {
        Failure::usage(
            format!("cannot read {}: {error}", path.display()),
            "give --hosts a file with a host in each line",
        )
    })?;
    let wrong = |what: String| {
        Failure::usage(
            format!("{}: {what}", path.display()),
            "write a host in each line, and behind it the path of throng there, if need be",
        )
    };
    let mut hosts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, program) = match words.as_slice() {
            [] => continue,
            [name] => (name, PROGRAM),
            [name, program] => (name, *program),
            _ => return Err(wrong(format!("line {}: more than two words", number + 1))),
        };
        if name.starts_with('-') {
            return Err(wrong(format!("line {}: `{name}` is no host", number + 1)));
        }
        hosts.push(Host {
            name: (*name).to_owned(),
            program: program.to_owned(),
        });
    }
    match hosts.len() {
        0 => Err(wrong("no hosts".to_owned())),
        1..=HOSTS_MAX => Ok(hosts),
        many => Err(wrong(format!("{many} hosts, at most {HOSTS_MAX}"))),
    }
}

/// SHA-256 of this program.
pub(crate) fn binary() -> Result<String, Failure> {
    let octets = std::fs::read("/proc/self/exe").map_err(|error| {
        Failure::in_operation(format!("cannot read this program's file: {error}"))
    })?;
    Ok(data_encoding::HEXLOWER.encode(&Sha256::digest(octets)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_a_line_is_read_with_comments_and_paths() {
        let path = std::env::temp_dir().join(format!("throng-hosts-{}", std::process::id()));
        let hosts = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let hosts = read(&path);
            std::fs::remove_file(&path).unwrap();
            hosts.map_err(|failure| failure.what().to_owned())
        };
        let read = hosts("# ours\nnode-1\n\nme@node-2  /opt/throng # new\n").unwrap();
        let each: Vec<(&str, &str)> = (read.iter())
            .map(|it| (it.name.as_str(), it.program.as_str()))
            .collect();
        assert_eq!(each, [("node-1", "throng"), ("me@node-2", "/opt/throng")]);
        for (text, told) in [
            ("", "no hosts"),
            ("a b c\n", "line 1: more than two words"),
            (
                "a\n-oProxyCommand=x\n",
                "line 2: `-oProxyCommand=x` is no host",
            ),
        ] {
            let error = hosts(text).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn a_command_is_one_that_the_other_shell_splits() {
        let host = Host {
            name: "node".to_owned(),
            program: "/opt/a b/throng".to_owned(),
        };
        let command = host.command(&["ssh".to_owned(), "-p".to_owned(), "22".to_owned()]);
        let words = ["-p", "22", "node", "'/opt/a b/throng'", "agent"];
        assert_eq!(command.before, words.map(OsString::from));
    }
}
