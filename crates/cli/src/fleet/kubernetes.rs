//! A fleet in Kubernetes, from outside: made, followed, fetched and removed by the user's own
//! `kubectl`. No figure of the run depends on this command: it may end at any time.

use lab::agents::{Inputs, content_hash, make_keys};
use lab::files::{self, Access};
use lab::kubernetes::{
    Cluster, ClusterError, FleetPods, LOOK_EVERY, Pod, PodState, objects, to_yaml,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Child, ExitCode};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::causes::annotated;
use super::collected::{self, Collected};
use super::experiment;
use super::lead::{OUTPUT, Offered, WAITS, Written, is_below};
use super::watch::{Look, Watch, lead_is_gone};
use crate::args::fleet::{
    AttachArguments, FleetRunArguments, OfRunArguments, PodsArguments, StatusArguments,
};
use crate::failure::{Failure, print};
use crate::run::quorum;
use crate::signals::{self, BY_SIGNAL};

/// The program in the image.
pub(super) const THRONG: &str = "/throng";
/// Bytes of inputs that a Secret takes, of the API server's 1 MiB, Base64 and the rest apart.
const INPUTS_MAX: usize = 700_000;
/// Characters of a name that leave room for those that are made of it (RFC 1123: 63).
const NAME_MAX: usize = 40;
/// Lines of the log that wait to be shown.
const LINES_MAX: usize = 256;
/// How long pods of agents may take to end after a run that lost one.
const PODS_END_WITHIN: Duration = Duration::from_secs(5);
/// What Kubernetes says of a container that went beyond its limit of memory.
const OUT_OF_MEMORY: &str = "OOMKilled";

impl From<ClusterError> for Failure {
    fn from(error: ClusterError) -> Failure {
        Failure::usage(error.what, error.hint)
    }
}

/// Prints all objects.
pub(super) fn manifest(arguments: &PodsArguments) -> Result<ExitCode, Failure> {
    let made = Made::of(arguments)?;
    let size = made.later.size();
    if size > 0 {
        return Err(Failure::usage(
            format!(
                "the command reads {size} bytes, and a Secret of Kubernetes takes {INPUTS_MAX}"
            ),
            "use fewer names, or generate them (--random-labels), or `throng fleet run`",
        ));
    }
    print(&to_yaml(&made.objects))?;
    Ok(ExitCode::SUCCESS)
}

/// Makes all objects, follows the run, fetches its result, and removes the objects.
pub(super) fn run(arguments: &FleetRunArguments) -> Result<ExitCode, Failure> {
    let parsed = collected::parse(&arguments.pods.command)?;
    if let Some(asked) = experiment::asked(&parsed.command) {
        return experiment::run(arguments, asked?);
    }
    let Made {
        name,
        objects,
        later,
    } = Made::of(&arguments.pods)?;
    let namespace = arguments.pods.namespace.clone();
    let cluster = cluster(&arguments.kubectl.kubectl, namespace)?;
    let signals = signals::receiver()?;
    cluster.create(&objects)?;
    tell!("run {name}: `throng fleet attach {name}` follows it if this command ends");
    let client = Client {
        later,
        is_its_own: true,
        ..Client::new(&cluster, &name, &arguments.fetch.output)
    };
    client.finish(&signals)
}

/// Follows a run that goes on.
pub(super) fn attach(arguments: &AttachArguments) -> Result<ExitCode, Failure> {
    let cluster = of_run(&arguments.run)?;
    let signals = signals::receiver()?;
    Client::new(&cluster, &arguments.run.name, &arguments.fetch.output).finish(&signals)
}

/// Fetches the result of a run that is over.
pub(super) fn fetch(arguments: &AttachArguments) -> Result<ExitCode, Failure> {
    let cluster = of_run(&arguments.run)?;
    let client = Client::new(&cluster, &arguments.run.name, &arguments.fetch.output);
    client.lead()?;
    client.fetch_and_remove()
}

/// Removes a run.
pub(super) fn stop(arguments: &OfRunArguments) -> Result<ExitCode, Failure> {
    let cluster = of_run(arguments)?;
    if cluster.jobs_and_pods(Some(&arguments.name))?.is_empty() {
        return Err(no_such_run(&arguments.name));
    }
    cluster.remove(&arguments.name)?;
    Ok(ExitCode::SUCCESS)
}

/// Lists the runs that there are.
pub(super) fn status(arguments: &StatusArguments) -> Result<ExitCode, Failure> {
    let cluster = cluster(&arguments.kubectl.kubectl, arguments.namespace.clone())?;
    let pods = Pod::all(&cluster.jobs_and_pods(None)?);
    let mut names: Vec<&str> = pods.iter().map(|pod| pod.run.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut text = String::new();
    for name in names.into_iter().filter(|name| !name.is_empty()) {
        let own = pods.iter().filter(|pod| pod.run == name);
        let (lead, agents): (Vec<&Pod>, Vec<&Pod>) = own.partition(|pod| pod.component == "lead");
        let lead = lead.first().map_or("gone", |pod| word(&pod.state));
        let at_work = agents
            .iter()
            .filter(|pod| pod.state == PodState::Runs)
            .count();
        let all = agents.len();
        text.push_str(&format!(
            "{name}  lead {lead}, {at_work} of {all} agents run\n"
        ));
    }
    if text.is_empty() {
        text.push_str("no runs\n");
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn word(state: &PodState) -> &'static str {
    match state {
        PodState::Waits(_) | PodState::Unmade | PodState::Starts(_) | PodState::Fails(_) => "waits",
        PodState::Gone => "gone",
        PodState::Runs => "runs",
        PodState::Unheard => "is on a node that does not answer",
        PodState::Succeeded => "succeeded",
        PodState::Failed(_) => "failed",
    }
}

fn of_run(arguments: &OfRunArguments) -> Result<Cluster, Failure> {
    cluster(&arguments.kubectl.kubectl, arguments.namespace.clone())
}

pub(super) fn cluster(kubectl: &str, namespace: Option<String>) -> Result<Cluster, Failure> {
    let words = kubectl_words(kubectl)?;
    Ok(Cluster::new(
        words.into_iter().map(Into::into).collect(),
        namespace,
    ))
}

/// The words of `--kubectl`.
pub(super) fn kubectl_words(kubectl: &str) -> Result<Vec<String>, Failure> {
    let words = shlex::split(kubectl).filter(|words| !words.is_empty());
    words.ok_or_else(|| {
        Failure::usage(
            format!("--kubectl `{kubectl}` is not a valid command"),
            "write it as in a shell, such as 'kubectl --context staging'",
        )
    })
}

fn no_such_run(name: &str) -> Failure {
    Failure::usage(
        format!("there is no run {name} in this namespace"),
        "`throng fleet status` lists the runs that there are; --namespace names another one",
    )
}

/// A run that is to be made.
struct Made {
    name: String,
    objects: Vec<Value>,
    /// Inputs that are too long for a Secret.
    later: Inputs,
}

impl Made {
    fn of(arguments: &PodsArguments) -> Result<Made, Failure> {
        let Collected {
            mut inputs,
            metrics_port,
        } = collected::collect(&arguments.command)?;
        let later = match inputs.contents.size() > INPUTS_MAX {
            true => std::mem::take(&mut inputs.contents),
            false => Inputs::default(),
        };
        let (agents, min_agents) = (arguments.agents, arguments.min_agents);
        let flags = FleetPods::flags(agents, min_agents, arguments.barrier_timeout);
        let command = collected::led(&arguments.command, &flags);
        let pods = FleetPods {
            metrics_port,
            ..fleet_pods(arguments, command)?
        };
        Ok(Made {
            objects: objects(&pods, &make_keys()?, &inputs),
            name: pods.name,
            later,
        })
    }
}

/// The pods that are asked for, of which the lead's runs this command.
pub(super) fn fleet_pods(
    arguments: &PodsArguments,
    command: Vec<String>,
) -> Result<FleetPods, Failure> {
    let labels = arguments.node_selector.iter().map(|text| label(text));
    let tolerations = arguments.toleration.iter().map(|it| toleration(it));
    quorum(arguments.agents, arguments.min_agents)?;
    Ok(FleetPods {
        name: match &arguments.name {
            Some(name) => checked_name(name)?.to_owned(),
            None => random_name()?,
        },
        namespace: arguments.namespace.clone(),
        image: arguments.image.clone(),
        agents: arguments.agents,
        min_agents: arguments.min_agents,
        cpus: arguments.cpus.clone(),
        memory: arguments.memory.clone(),
        node_selector: labels.collect::<Result<_, _>>()?,
        tolerations: tolerations.collect(),
        host_network: arguments.host_network,
        keep: arguments.keep,
        metrics_port: None,
        command,
    })
}

/// A name of which names of Kubernetes can be made (RFC 1123).
fn checked_name(name: &str) -> Result<&str, Failure> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let begins = name
        .bytes()
        .next()
        .is_some_and(|it| it.is_ascii_lowercase());
    match begins && name.len() <= NAME_MAX && name.bytes().all(is_allowed) {
        true => Ok(name),
        false => Err(Failure::usage(
            format!("--name `{name}` is not a name for objects of Kubernetes"),
            format!("use at most {NAME_MAX} of a-z, 0-9 and `-`, a letter first"),
        )),
    }
}

/// A name that no other run has.
fn random_name() -> Result<String, Failure> {
    let random = files::random_name().map_err(Failure::in_operation)?;
    Ok(format!("throng-{random}"))
}

fn label(text: &str) -> Result<(String, String), Failure> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let parts = parts.map(|(name, value)| (name.to_owned(), value.to_owned()));
    parts.ok_or_else(|| {
        let what = format!("--node-selector `{text}` is not a label");
        Failure::usage(what, "write NAME=VALUE, such as kubernetes.io/arch=amd64")
    })
}

/// `KEY[=VALUE][:EFFECT]`, as kubectl writes taints.
fn toleration(text: &str) -> Value {
    let (taint, effect) = match text.split_once(':') {
        Some((taint, effect)) => (taint, Some(effect)),
        None => (text, None),
    };
    let mut toleration = match taint.split_once('=') {
        Some((key, value)) => json!({"key": key, "operator": "Equal", "value": value}),
        None => json!({"key": taint, "operator": "Exists"}),
    };
    if let Some(effect) = effect {
        toleration["effect"] = json!(effect);
    }
    toleration
}

/// Somebody who waits for a run.
struct Client<'a> {
    cluster: &'a Cluster,
    name: &'a str,
    output: &'a Path,
    /// What the lead waits for before its command begins.
    later: Inputs,
    /// This command has made the run, and removes it if it cannot begin.
    is_its_own: bool,
}

/// How the following of a run ended.
enum Followed {
    /// Its result is there.
    IsOver,
    /// A second signal came, or one before the lead ran.
    Interrupted(i32),
    /// There will be no result.
    IsVain(Failure),
}

impl<'a> Client<'a> {
    fn new(cluster: &'a Cluster, name: &'a str, output: &'a Path) -> Client<'a> {
        Client {
            cluster,
            name,
            output,
            later: Inputs::default(),
            is_its_own: false,
        }
    }

    /// Gives the lead the inputs that it waits for.
    fn give_inputs(&self, lead: &str) -> Result<(), Failure> {
        for hash in self.later.hashes() {
            let content = self.later.get(hash).expect("it has this hash");
            let words = [THRONG, "fleet", "take", hash];
            self.cluster.give(lead, &words, content)?;
        }
        Ok(())
    }

    /// Follows the run, fetches its result, and removes its objects. If the cluster cannot be asked
    /// any more, the run goes on, and its objects stay.
    fn finish(&self, signals: &Receiver<i32>) -> Result<ExitCode, Failure> {
        let goes_on = |failure: Failure| {
            failure.or_hint(&format!(
                "the run may go on: `throng fleet attach {0}`, or `throng fleet stop {0}`",
                self.name
            ))
        };
        match self.follow(signals).map_err(goes_on)? {
            Followed::IsOver => {
                let fetched = self.fetch_and_remove();
                match fetched.is_err() && self.has_no_lead() {
                    true => Err(self.given_up(lead_is_gone())),
                    false => fetched,
                }
            }
            Followed::Interrupted(signal) => {
                tell!("interrupted: removing run {}", self.name);
                self.cluster.remove(self.name)?;
                let code = u8::try_from(BY_SIGNAL + signal);
                Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
            }
            Followed::IsVain(failure) => Err(self.given_up(failure)),
        }
    }

    /// Why there will be no result, after the objects of a run of this command were removed.
    fn given_up(&self, failure: Failure) -> Failure {
        // What is wrong is said even if the cluster is gone.
        if self.is_its_own && self.cluster.remove(self.name).is_err() {
            tell!("warning: run {} may still have objects there", self.name);
        }
        failure
    }

    /// True if the API server has no pod of the lead.
    fn has_no_lead(&self) -> bool {
        let is_there = |lead: &Pod| lead.state != PodState::Unmade;
        self.pods()
            .is_ok_and(|pods| !self.lead_among(&pods).is_ok_and(is_there))
    }

    fn pods(&self) -> Result<Vec<Pod>, ClusterError> {
        Ok(Pod::all(&self.cluster.jobs_and_pods(Some(self.name))?))
    }

    /// The lead's pod.
    fn lead(&self) -> Result<Pod, Failure> {
        self.lead_among(&self.pods()?).cloned()
    }

    fn lead_among<'p>(&self, pods: &'p [Pod]) -> Result<&'p Pod, Failure> {
        let lead = pods.iter().find(|pod| pod.component == "lead");
        match lead.map(|it| &it.state) {
            Some(PodState::Gone) => Err(lead_is_gone()),
            _ => lead.ok_or_else(|| no_such_run(self.name)),
        }
    }

    /// Shows the log of the lead until its command has ended.
    fn follow(&self, signals: &Receiver<i32>) -> Result<Followed, Failure> {
        let (mut shown, mut is_told, mut has_begun) = (0, false, false);
        let mut watch = Watch::new();
        loop {
            let lead = match watch.look(|| self.pods())? {
                Look::Trouble(failure) => return Ok(Followed::IsVain(failure)),
                Look::Pods(pods) => match self.lead_among(&pods) {
                    Ok(lead) => Some(lead.clone()),
                    Err(failure) => return Ok(Followed::IsVain(failure)),
                },
                Look::Nothing => None,
            };
            let lead = match lead {
                Some(lead) if lead.state == PodState::Runs => lead,
                Some(lead) if matches!(lead.state, PodState::Failed(_) | PodState::Succeeded) => {
                    return Ok(Followed::IsVain(self.ended_early(&lead, shown == 0)));
                }
                _ => match signals.recv_timeout(LOOK_EVERY) {
                    Ok(signal) => return Ok(Followed::Interrupted(signal)),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => continue,
                },
            };
            if !std::mem::replace(&mut has_begun, true) {
                self.give_inputs(&lead.name)?;
            }
            let log = Log::open(self.cluster, &lead.name)?;
            let mut read = 0;
            loop {
                match log.lines.recv_timeout(LOOK_EVERY) {
                    Ok(line) => {
                        read += 1;
                        if read <= shown {
                            // The log is read again from its beginning.
                            continue;
                        }
                        shown = read;
                        if line.starts_with(WAITS) {
                            return Ok(Followed::IsOver);
                        }
                        tell!("{line}");
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        if let Look::Trouble(failure) = watch.look(|| self.pods())? {
                            return Ok(Followed::IsVain(failure));
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                match signals.try_recv() {
                    Ok(signal) if is_told => return Ok(Followed::Interrupted(signal)),
                    Ok(_) => {
                        is_told = true;
                        tell!("ending the run; its result comes (interrupt again to remove it)");
                        let interrupt = [THRONG, "fleet", "interrupt"];
                        if let Err(error) = self.cluster.execute_once(&lead.name, &interrupt) {
                            tell!("warning: the lead cannot be reached: {}", error.what);
                        }
                    }
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
                }
            }
        }
    }

    /// Why the lead has ended without a result; the end of its log, if it was not shown.
    fn ended_early(&self, lead: &Pod, shows_log: bool) -> Failure {
        if shows_log && let Ok(log) = self.cluster.log_end(&lead.name) {
            log.lines().for_each(|line| tell!("{line}"));
        }
        let how = match &lead.state {
            PodState::Failed(how) => how.as_str(),
            _ => "its result was fetched, or was kept no longer",
        };
        let what = format!("the lead of run {} has ended: {how}", self.name);
        let failure = Failure::in_operation(what);
        match how.starts_with(OUT_OF_MEMORY) {
            true => failure.or_hint("give each pod more --memory"),
            false => failure,
        }
    }

    /// Fetches the files of the result, prints what the command printed, and removes the run.
    fn fetch_and_remove(&self) -> Result<ExitCode, Failure> {
        let mut pods = self.pods()?;
        let lead = self.lead_among(&pods)?.clone();
        let offered = self
            .cluster
            .execute(&lead.name, &[THRONG, "fleet", "result"])?;
        let offered: Offered = serde_json::from_slice(&offered).map_err(|error| {
            Failure::in_operation(format!("the lead of run {}: {error}", self.name))
        })?;
        let Some(code) = offered.code else {
            return Err(Failure::usage(
                format!("run {} is not over", self.name),
                format!("`throng fleet attach {}` follows it to its end", self.name),
            ));
        };
        if code != 0 {
            pods = self.ended_pods(pods)?;
        }
        let mut known = BTreeMap::new();
        let mut backends = |address: IpAddr| {
            let found = known.entry(address);
            found
                .or_insert_with(|| self.cluster.backends(address))
                .clone()
        };
        for (name, written) in &offered.files {
            let content = self.file(&lead.name, (name, written))?;
            if name == OUTPUT {
                print(&String::from_utf8_lossy(&content))?;
                continue;
            }
            self.write(name, &annotated(content, &pods, &mut backends))?;
        }
        // It ends the lead, which may end the command in its pod before that is over: the files are
        // here, and what is left of the run is removed.
        let confirm = [THRONG, "fleet", "confirm"];
        let _ = self.cluster.execute_once(&lead.name, &confirm);
        // The result is here also if a node is gone, and a pod with it.
        if let Err(error) = self.cluster.remove(self.name) {
            tell!("warning: run {} is not removed: {}", self.name, error.what);
            tell!("hint: {}", error.hint);
        }
        Ok(ExitCode::from(code))
    }

    /// The pods, after those of agents have ended: Kubernetes says a moment later why it ended that
    /// of a lost one.
    fn ended_pods(&self, mut pods: Vec<Pod>) -> Result<Vec<Pod>, ClusterError> {
        let running = |pods: &[Pod]| -> BTreeSet<String> {
            let agents = pods.iter().filter(|pod| pod.index.is_some());
            let running = agents.filter(|pod| pod.state == PodState::Runs);
            running.map(|pod| pod.name.clone()).collect()
        };
        // Kubernetes may replace one that ended.
        let (first, until) = (running(&pods), Instant::now() + PODS_END_WITHIN);
        while Instant::now() < until && !running(&pods).is_disjoint(&first) {
            thread::park_timeout(LOOK_EVERY);
            pods = self.pods()?;
        }
        Ok(pods)
    }

    /// A file of the result, in as many parts as the connection takes.
    fn file(&self, lead: &str, (name, written): (&str, &Written)) -> Result<Vec<u8>, Failure> {
        let mut content = Vec::new();
        while (content.len() as u64) < written.length {
            let from = content.len().to_string();
            let words = [THRONG, "fleet", "part", name, "--from", &from];
            let part = self.cluster.execute(lead, &words)?;
            if part.is_empty() {
                return Err(Failure::in_operation(format!(
                    "{name} of the result is cut"
                )));
            }
            content.extend_from_slice(&part);
        }
        match content_hash(&content) == written.hash {
            true => Ok(content),
            false => Err(
                Failure::in_operation(format!("{name} of the result came damaged"))
                    .or_hint(&format!("`throng fleet fetch {}` tries again", self.name)),
            ),
        }
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), Failure> {
        let path = self.output.join(name);
        if !is_below(Path::new(name)) {
            return Err(Failure::in_operation(format!(
                "the lead offers a file `{name}`"
            )));
        }
        let folder = path.parent().unwrap_or(self.output);
        let written =
            files::make_folders(folder).and_then(|()| files::write(&path, Access::Umask, content));
        written.map_err(|error| {
            Failure::unwritable(
                format!("cannot write {}: {error}", path.display()),
                &error,
                "give --output a folder that can be written; `throng fleet fetch` tries again",
            )
        })
    }
}

/// The log of a pod, line by line.
struct Log {
    child: Child,
    lines: Receiver<String>,
}

impl Log {
    fn open(cluster: &Cluster, pod: &str) -> Result<Log, Failure> {
        let mut child = cluster.follow(pod).map_err(Failure::in_operation)?;
        let stdout = child.stdout.take();
        let (sender, lines) = sync_channel(LINES_MAX);
        thread::spawn(move || {
            let lines = stdout.into_iter().flat_map(|it| BufReader::new(it).lines());
            for line in lines.map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Log { child, lines })
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // It has ended already, or is of no more use.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
