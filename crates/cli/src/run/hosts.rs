//! Agents on other hosts, which are reached by ssh: `--hosts FILE`.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use driver::clock::Clock;
use lab::parts::{Event, Hello, PartCommand, Parts};
use lab::run::{Division, RunRequest};
use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::inputs;
use crate::part;
use crate::run::group::Group;
use crate::signals::Interrupt;

/// How hosts are reached, unless told otherwise.
const SSH: &str = "ssh -T";
/// The program there, unless told otherwise.
const PROGRAM: &str = "throng";
/// As many as a run may have processes.
const HOSTS_MAX: usize = 1_024;
/// Agents on one host that may be starting at a time: sshd drops further connections that are not
/// authenticated yet from 10 on (MaxStartups).
const GREETING_MAX: usize = 8;
/// Characters that are shown of what is no agent's.
const OUTPUT_SHOWN: usize = 80;
/// How long all may take until they have said who they are.
const HELLO_MAX: Duration = Duration::from_secs(60);
/// How long one look at them takes.
const TURN: Duration = Duration::from_millis(20);

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
        if generator.processes.is_some() {
            return Err(Failure::usage(
                "--processes cannot be used with --hosts, of which each line is a process",
                "leave it out, and name a host as often as it is to have processes",
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
    pub(super) fn start(
        &self,
        clock: Clock,
        interrupt: &Interrupt,
    ) -> Result<(Parts, Vec<Hello>), Failure> {
        let own = Hello::of_this(binary()?);
        let mut parts = Parts::new(self.each.len() as u32, clock);
        let mut hellos: Vec<Option<Hello>> = vec![None; self.each.len()];
        let until = Instant::now() + HELLO_MAX;
        let mut started = 0;
        while let Some(missing) = hellos.iter().position(Option::is_none) {
            while started < self.each.len() && self.greeting_at(started, &hellos) < GREETING_MAX {
                parts.spawn(&self.each[started].command(&self.ssh))?;
                started += 1;
            }
            if interrupt.has_come() {
                return Err(Failure::interrupted("interrupted before the run began"));
            }
            match parts.next(TURN) {
                Some((index, Event::Said(word, text))) if word == "hello" => {
                    let hello: Hello = serde_json::from_str(&text)
                        .map_err(|error| other(&parts, index, &error.to_string()))?;
                    hello
                        .check(&own)
                        .map_err(|why| other(&parts, index, &why))?;
                    hellos[index] = Some(hello);
                }
                Some((index, Event::Ended)) => return Err(self.unreachable(index, &mut parts)),
                Some((index, Event::Said(word, text))) => {
                    return Err(other_output(&parts, index, &format!("{word} {text}")));
                }
                Some((index, Event::Clock(_))) => {
                    return Err(other(&parts, index, "it is no throng"));
                }
                None if Instant::now() > until => {
                    let seconds = HELLO_MAX.as_secs();
                    return Err(Failure::usage(
                        format!("{}: no answer within {seconds} s", parts.name(missing)),
                        "`ssh HOST true` has to work without a question",
                    ));
                }
                None => {}
            }
        }
        Ok((parts, hellos.into_iter().flatten().collect()))
    }

    /// Agents on the host of the one at `next` that were started before it and have not said yet
    /// who they are.
    fn greeting_at(&self, next: usize, hellos: &[Option<Hello>]) -> usize {
        let name = &self.each[next].name;
        let before = self.each[..next].iter().zip(hellos);
        before
            .filter(|(host, hello)| host.name == *name && hello.is_none())
            .count()
    }

    fn unreachable(&self, index: usize, parts: &mut Parts) -> Failure {
        let host = &self.each[index];
        Failure::usage(
            format!(
                "{}: no agent could be started: {}",
                parts.name(index),
                parts.end_of(index)
            ),
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

/// Something else than an agent's first words.
fn other_output(parts: &Parts, index: usize, line: &str) -> Failure {
    let shown: String = line.chars().filter(|it| !it.is_control()).collect();
    let shown: String = shown.trim().chars().take(OUTPUT_SHOWN).collect();
    Failure::usage(
        format!(
            "{}: it said `{shown}`, which is no agent's",
            parts.name(index)
        ),
        "`ssh HOST true` must print nothing: .bashrc and the like may print in interactive \
         shells only",
    )
}

/// Another program.
fn other(parts: &Parts, index: usize, why: &str) -> Failure {
    Failure::usage(
        format!("{}: {why}", parts.name(index)),
        "copy this program there; all agents have to be the same one",
    )
}

impl Host {
    fn command(&self, ssh: &[String]) -> PartCommand {
        // The shell of that host splits the line into words.
        let program = shlex::try_quote(&self.program)
            .map_or_else(|_| self.program.clone(), |quoted| quoted.into_owned());
        let words = ssh[1..].iter().cloned();
        let before = words.chain([self.name.clone(), program, part::NAME.to_owned()]);
        PartCommand {
            program: OsString::from(&ssh[0]),
            before: before.map(OsString::from).collect(),
            after: vec![part::HELLO.into()],
            host: Some(self.name.clone()),
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
    hellos: &[Hello],
    parts: &Parts,
) -> Result<Division, Failure> {
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
                parts.name(index)
            ),
            "raise the limit there (`ulimit -n`), or name more hosts, or one of them more often",
        ));
    }
    for (request, group) in requests.iter().zip(groups.iter_mut()) {
        group.run.generator.workers = Some(request.plan.workers);
    }
    Ok(division)
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
        let words = ["-p", "22", "node", "'/opt/a b/throng'", "part"];
        assert_eq!(command.before, words.map(OsString::from));
    }
}
