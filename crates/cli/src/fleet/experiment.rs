//! An experiment whose agents are in Kubernetes. It is led from here, where its servers and hooks
//! are started: pods wait, and each agent is started in one by `kubectl exec`.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use lab::files::{self, Access};
use lab::kubernetes::{Cluster, FleetPods, LOOK_EVERY, Marked, Pod, PodState};

use super::interrupts::beside;
use super::kubernetes::{THRONG, cluster, fleet_pods, kubectl_words};
use super::watch::{Look, Watch};
use crate::args::experiment::{ExperimentCommand, ExperimentRun};
use crate::args::fleet::FleetRunArguments;
use crate::args::{Command, Given};
use crate::experiment::{self, Agents};
use crate::failure::Failure;
use crate::signals::Interrupt;

/// The file with the pods, in the folder of the experiment.
const HOSTS: &str = "agents";
/// How long all pods together may take to run: images are pulled, nodes are added.
const START_MAX: Duration = Duration::from_mins(30);

/// The experiment that these words ask for; none for another command.
///
/// # Errors
/// They make no runs.
pub(super) fn asked(command: &Command) -> Option<Result<&ExperimentRun, Failure>> {
    let Command::Experiment(arguments) = command else {
        return None;
    };
    Some(match &arguments.command {
        ExperimentCommand::Run(run) => Ok(run),
        _ => Err(Failure::usage(
            "this command of `throng experiment` makes no runs",
            "give it without `throng fleet`",
        )),
    })
}

/// Makes the runs with agents in pods, and removes these.
pub(super) fn run(
    arguments: &FleetRunArguments,
    experiment: &ExperimentRun,
) -> Result<ExitCode, Failure> {
    if arguments.pods.barrier_timeout.is_some() {
        return Err(Failure::usage(
            "--barrier-timeout has no effect on an experiment, which waits until all pods run",
            "leave it out",
        ));
    }
    if arguments.pods.min_agents.is_some() {
        return Err(Failure::usage(
            "--min-agents cannot be used with an experiment, whose runs must have equal load",
            "leave it out, or give as many --agents as there is room for",
        ));
    }
    let pods = fleet_pods(&arguments.pods, Vec::new())?;
    let kubectl = kubectl_words(&arguments.kubectl.kubectl)?;
    let output = experiment::output(experiment);
    let experiment = ExperimentRun {
        output: Some(arguments.fetch.output.join(output)),
        ..experiment.clone()
    };
    let cluster = cluster(&arguments.kubectl.kubectl, pods.namespace.clone())?;
    let pods = AgentPods {
        pods,
        kubectl,
        cluster,
        is_made: Cell::new(false),
    };
    experiment::run_file(&experiment, Some(&pods))
}

/// The pods of the agents. They are made for the first run, and removed when this is dropped.
struct AgentPods {
    pods: FleetPods,
    kubectl: Vec<String>,
    cluster: Cluster,
    is_made: Cell<bool>,
}

impl Agents for AgentPods {
    fn flags(&self, folder: &Path) -> Vec<Given> {
        let namespace =
            (self.pods.namespace.iter()).flat_map(|name| ["--namespace".to_owned(), name.clone()]);
        let exec = ["exec", "--stdin", "{}", "--"].map(str::to_owned);
        let words = self.kubectl.iter().cloned().chain(namespace).chain(exec);
        let words: Vec<String> = words.collect();
        let ssh = shlex::try_join(words.iter().map(String::as_str));
        let flag = |name: &str, value: String| Given {
            name: name.to_owned(),
            values: vec![value],
        };
        vec![
            flag("hosts", hosts(folder).display().to_string()),
            flag("ssh", ssh.unwrap_or_default()),
        ]
    }

    fn wait(&self, folder: &Path, interrupt: &Interrupt) -> Result<(), Failure> {
        if !self.is_made.get() {
            self.make(interrupt)?;
        }
        let mut watch = Watch::new(true);
        let until = Instant::now() + START_MAX;
        let (mut running, wanted) = (Vec::new(), self.pods.agents as usize);
        while Instant::now() < until && !interrupt.has_come() {
            match watch.look(&self.cluster, &self.pods.name)? {
                Look::Trouble(failure) => return Err(failure),
                Look::Pods(pods) => running = names_of_running(pods),
                Look::Nothing => {}
            }
            if running.len() == wanted {
                return write_hosts(folder, &running);
            }
            interrupt.wait(LOOK_EVERY);
        }
        if interrupt.has_come() {
            return Err(before_pods_ran());
        }
        Err(Failure::in_operation(format!(
            "{} of {wanted} pods run after {} min",
            running.len(),
            START_MAX.as_secs() / 60
        )))
    }
}

impl AgentPods {
    /// Makes the pods; after a signal what was made of them is removed.
    fn make(&self, interrupt: &Interrupt) -> Result<(), Failure> {
        let objects = Marked::new(vec![self.pods.waiting_agents()]);
        let signal = |time| {
            interrupt.wait(time);
            interrupt.has_come().then_some(())
        };
        let Ok(made) = beside(signal, &self.cluster, |it| it.create(&objects)) else {
            self.cluster.remove_made(&objects)?;
            return Err(before_pods_ran());
        };
        if let Err(error) = made {
            // An attempt without an answer may have made them. Why they are missing is what counts.
            let _ = self.cluster.remove_made(&objects);
            return Err(error.into());
        }
        self.is_made.set(true);
        let (name, agents) = (&self.pods.name, self.pods.agents);
        tell!("run {name}: {agents} pods wait for agents");
        Ok(())
    }
}

impl Drop for AgentPods {
    fn drop(&mut self) {
        if self.is_made.get() && self.cluster.remove(&self.pods.name).is_err() {
            let name = &self.pods.name;
            tell!("warning: `throng fleet stop {name}` removes pods that may be left");
        }
    }
}

fn before_pods_ran() -> Failure {
    Failure::interrupted("interrupted before the pods ran")
}

fn names_of_running(pods: Vec<Pod>) -> Vec<String> {
    let running = pods.into_iter().filter(|pod| pod.state == PodState::Runs);
    let mut names: Vec<String> = running.map(|pod| pod.name).collect();
    names.sort();
    names
}

/// Writes the pods for the next run. Kubernetes replaces a pod that ended by another one, with
/// another name.
fn write_hosts(folder: &Path, pods: &[String]) -> Result<(), Failure> {
    let lines = pods.iter().map(|pod| format!("{pod} {THRONG}\n"));
    let path = hosts(folder);
    let written = files::write(&path, Access::Umask, lines.collect::<String>());
    written.map_err(|error| {
        let what = format!("cannot write {}: {error}", path.display());
        Failure::unwritable(what, &error, "give --output a folder that can be written")
    })
}

fn hosts(folder: &Path) -> PathBuf {
    folder.join(HOSTS)
}
