//! A fleet in Kubernetes, from outside: made, followed, fetched and removed by the user's own
//! `kubectl`. No figure of the run depends on this command: it may end at any time.

use lab::agents::{Inputs, content_hash, make_keys};
use lab::files::{self, Access};
use lab::kubernetes::{
    Cluster, ClusterError, FleetPods, LOG_END_LINES, LOOK_EVERY, Marked, Pod, PodState, objects,
    run_of, to_yaml,
};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Child, ExitCode};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::causes::annotated;
use super::collected::{self, Collected};
use super::experiment;
use super::interrupts::{Stop, beside, interrupted};
use super::lead::{OUTPUT, Offered, WAITS, Written};
use super::said;
use super::watch::{Look, NO_PROGRAM, Watch, lead_is_gone};
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
    let client = Client {
        later,
        is_its_own: true,
        ..Client::new(&cluster, &name, &arguments.fetch.output)?
    };
    let objects = Marked::new(objects);
    match client.ask(|cluster| cluster.create(&objects)) {
        Ok(()) => {}
        Err(Stop::Failed(failure)) => return Err(failure),
        Err(Stop::Interrupted(signal)) => {
            return client.removed(signal, |cluster| cluster.remove_made(&objects));
        }
    }
    tell!("run {name}: `throng fleet attach {name}` follows it if this command ends");
    client.finish()
}

/// Follows a run that goes on.
pub(super) fn attach(arguments: &AttachArguments) -> Result<ExitCode, Failure> {
    let cluster = of_run(&arguments.run)?;
    Client::new(&cluster, &arguments.run.name, &arguments.fetch.output)?.finish()
}

/// Fetches the result of a run that is over.
pub(super) fn fetch(arguments: &AttachArguments) -> Result<ExitCode, Failure> {
    let cluster = of_run(&arguments.run)?;
    Client::new(&cluster, &arguments.run.name, &arguments.fetch.output)?.fetch()
}

/// Removes a run.
pub(super) fn stop(arguments: &OfRunArguments) -> Result<ExitCode, Failure> {
    let cluster = of_run(arguments)?;
    let name = arguments.name.as_str();
    let client = Client::new(&cluster, name, Path::new(""))?;
    let found = client.ask(|cluster| cluster.objects(Some(name)));
    let removed = found.and_then(|found| match found.is_empty() {
        true => Err(no_such_run(name).into()),
        false => client.ask(|cluster| cluster.remove(name)),
    });
    match removed {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Stop::Failed(failure)) => Err(failure),
        Err(Stop::Interrupted(signal)) => Err(client.not_removed(signal)),
    }
}

/// Lists the runs of which there is an object.
pub(super) fn status(arguments: &StatusArguments) -> Result<ExitCode, Failure> {
    let cluster = cluster(&arguments.kubectl.kubectl, arguments.namespace.clone())?;
    let objects = cluster.objects(None)?;
    let pods = Pod::all(&objects);
    let names: BTreeSet<&str> = objects.iter().filter_map(run_of).collect();
    let mut text = String::new();
    for name in names {
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
        PodState::Waits(_)
        | PodState::Unmade(_)
        | PodState::Refused(_)
        | PodState::Starts(_)
        | PodState::Fails(_) => "waits",
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

/// What to do about an image with another program.
fn image_hint() -> String {
    format!("give --image one with throng {}", said::VERSION)
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
    signals: Receiver<i32>,
    /// The signal for which the lead was asked to end the run.
    ends_for: Cell<Option<i32>>,
}

/// How the following of a run ended.
enum Followed {
    /// Its result is there.
    IsOver,
    /// There will be no result.
    IsVain(Failure),
}

impl<'a> Client<'a> {
    fn new(cluster: &'a Cluster, name: &'a str, output: &'a Path) -> Result<Self, Failure> {
        Ok(Client {
            cluster,
            name,
            output,
            later: Inputs::default(),
            is_its_own: false,
            signals: signals::receiver()?,
            ends_for: Cell::new(None),
        })
    }

    /// Asks the cluster something, until a signal comes.
    fn ask<T: Send>(
        &self,
        step: impl FnOnce(&Cluster) -> Result<T, ClusterError> + Send,
    ) -> Result<T, Stop> {
        Ok(self.beside(step)??)
    }

    fn beside<T: Send>(&self, step: impl FnOnce(&Cluster) -> T + Send) -> Result<T, Stop> {
        let signal = |time| self.signals.recv_timeout(time).ok();
        beside(signal, self.cluster, step).map_err(Stop::Interrupted)
    }

    /// Gives the lead the inputs that it waits for.
    fn give_inputs(&self, lead: &str) -> Result<(), Stop> {
        for hash in self.later.hashes() {
            let content = self.later.get(hash).expect("it has this hash");
            let words = [THRONG, "fleet", "take", hash];
            self.ask(|cluster| cluster.give(lead, &words, content))?;
        }
        Ok(())
    }

    /// Follows the run, fetches its result, and removes its objects. If the cluster cannot be asked
    /// any more, the run goes on, and its objects stay. The second signal removes them, and so does
    /// the first one before a run of this command has begun.
    fn finish(&self) -> Result<ExitCode, Failure> {
        match self.follow() {
            Ok(Followed::IsOver) => match self.fetch_and_remove() {
                Err(Stop::Failed(_)) if self.has_no_lead() => Err(self.given_up(lead_is_gone())),
                fetched => self.fetched(fetched),
            },
            Ok(Followed::IsVain(failure)) => match self.ends_for.get() {
                None => Err(self.given_up(failure)),
                Some(signal) => {
                    tell!("note: {}", failure.what());
                    self.removed(signal, |cluster| cluster.remove(self.name))
                }
            },
            Err(Stop::Interrupted(signal)) if self.is_its_own || self.ends_for.get().is_some() => {
                self.removed(signal, |cluster| cluster.remove(self.name))
            }
            Err(Stop::Interrupted(signal)) => {
                let what = format!("run {} is left as it is", self.name);
                Err(interrupted(signal, &what, &self.goes_on()))
            }
            Err(Stop::Failed(failure)) => Err(failure.or_hint(&self.goes_on())),
        }
    }

    /// What to do with a run that this command follows no more.
    fn goes_on(&self) -> String {
        format!(
            "the run may go on: `throng fleet attach {0}`, or `throng fleet stop {0}`",
            self.name
        )
    }

    /// Fetches the result of a run that is over.
    fn fetch(&self) -> Result<ExitCode, Failure> {
        self.fetched(self.fetch_and_remove())
    }

    /// What becomes of a run whose result was fetched or not: after a signal its objects stay,
    /// unless it is the second one of this command.
    fn fetched(&self, fetched: Result<ExitCode, Stop>) -> Result<ExitCode, Failure> {
        match fetched {
            Ok(code) => Ok(code),
            Err(Stop::Failed(failure)) => Err(failure),
            Err(Stop::Interrupted(signal)) if self.ends_for.get().is_some() => {
                self.removed(signal, |cluster| cluster.remove(self.name))
            }
            Err(Stop::Interrupted(signal)) => Err(interrupted(
                signal,
                &format!("the result of run {} is not all here", self.name),
                &format!("`throng fleet fetch {}` tries again", self.name),
            )),
        }
    }

    /// The exit code of a run that a signal has ended without a result, once its objects are
    /// removed. The next signal ends that.
    fn removed(
        &self,
        signal: i32,
        remove: impl FnOnce(&Cluster) -> Result<(), ClusterError> + Send,
    ) -> Result<ExitCode, Failure> {
        tell!("interrupted: removing run {}", self.name);
        match self.ask(remove) {
            Ok(()) => {
                let code = u8::try_from(BY_SIGNAL + signal);
                Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
            }
            Err(Stop::Interrupted(signal)) => Err(self.not_removed(signal)),
            Err(Stop::Failed(failure)) => {
                Err(failure.of(&format!("run {} may still have objects there", self.name)))
            }
        }
    }

    fn not_removed(&self, signal: i32) -> Failure {
        let what = format!("run {} may still have objects there", self.name);
        let hint = format!("`throng fleet stop {}` removes them", self.name);
        interrupted(signal, &what, &hint)
    }

    /// Why there will be no result, after the objects of a run of this command were removed.
    fn given_up(&self, failure: Failure) -> Failure {
        // What is wrong is said even if the cluster is gone.
        if self.is_its_own && self.ask(|cluster| cluster.remove(self.name)).is_err() {
            tell!("warning: run {} may still have objects there", self.name);
        }
        failure
    }

    /// True if the API server has no pod of the lead.
    fn has_no_lead(&self) -> bool {
        let is_there = |lead: &Pod| !matches!(lead.state, PodState::Unmade(_));
        self.pods()
            .is_ok_and(|pods| !self.lead_among(&pods).is_ok_and(is_there))
    }

    fn pods(&self) -> Result<Vec<Pod>, Stop> {
        let found = self.ask(|cluster| cluster.jobs_and_pods(self.name))?;
        Ok(Pod::all(&found))
    }

    /// Looks at the pods, if it is time for that.
    fn look(&self, watch: &mut Watch) -> Result<Look, Stop> {
        if !watch.is_due() {
            return Ok(Look::Nothing);
        }
        let found = self.beside(|cluster| watch.ask(cluster, self.name))?;
        Ok(watch.see(found)?)
    }

    fn lead_among<'p>(&self, pods: &'p [Pod]) -> Result<&'p Pod, Failure> {
        let lead = pods.iter().find(|pod| pod.component == "lead");
        match lead.map(|it| &it.state) {
            Some(PodState::Gone) => Err(lead_is_gone()),
            _ => lead.ok_or_else(|| no_such_run(self.name)),
        }
    }

    /// Shows the log of the lead until its command has ended.
    fn follow(&self) -> Result<Followed, Stop> {
        // While its pods start.
        if self.is_its_own
            && let Err(refusal) = self.beside(Cluster::check_exec)?
        {
            return Ok(Followed::IsVain(refusal.into()));
        }
        let (mut shown, mut begun) = (0, None);
        let mut watch = Watch::new(self.is_its_own);
        loop {
            match self.advance(&mut watch, &mut shown, &mut begun) {
                Ok(None) => {}
                Ok(Some(followed)) => return Ok(followed),
                Err(Stop::Interrupted(signal)) => self.end_run(signal, begun.as_deref())?,
                Err(failed) => return Err(failed),
            }
        }
    }

    /// Waits for the lead's pod, which is `begun` once it has its inputs, and shows the log of it
    /// beyond the lines that were `shown`.
    fn advance(
        &self,
        watch: &mut Watch,
        shown: &mut usize,
        begun: &mut Option<String>,
    ) -> Result<Option<Followed>, Stop> {
        let lead = match self.look(watch)? {
            Look::Trouble(failure) => return Ok(Some(Followed::IsVain(failure))),
            Look::Pods(pods) => match self.lead_among(&pods) {
                Ok(lead) => Some(lead.clone()),
                Err(failure) => return Ok(Some(Followed::IsVain(failure))),
            },
            Look::Nothing => None,
        };
        let lead = match lead {
            Some(lead) if lead.state == PodState::Runs => lead,
            Some(lead) if matches!(lead.state, PodState::Failed(_) | PodState::Succeeded) => {
                let failure = self.ended_early(&lead, *shown == 0);
                return Ok(Some(Followed::IsVain(failure)));
            }
            _ => {
                return match self.signals.recv_timeout(LOOK_EVERY) {
                    Ok(signal) => Err(Stop::Interrupted(signal)),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
                };
            }
        };
        if self.later.size() == 0 {
            *begun = Some(lead.name.clone());
        }
        self.show_log(&lead.name, watch, shown, begun)
    }

    /// Shows the log until it ends, which it may do before the lead does.
    fn show_log(
        &self,
        lead: &str,
        watch: &mut Watch,
        shown: &mut usize,
        begun: &mut Option<String>,
    ) -> Result<Option<Followed>, Stop> {
        let log = Log::open(self.cluster, lead)?;
        let mut read = 0;
        loop {
            match log.lines.recv_timeout(LOOK_EVERY) {
                Ok(line) => {
                    read += 1;
                    // The log may be read again from its beginning.
                    if read > *shown {
                        *shown = read;
                        if let Some(end) = self.hear(lead, &line, read == 1, begun)? {
                            return Ok(Some(end));
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => match self.look(watch) {
                    Ok(Look::Trouble(failure)) => return Ok(Some(Followed::IsVain(failure))),
                    Ok(_) => {}
                    Err(Stop::Interrupted(signal)) => self.end_run(signal, begun.as_deref())?,
                    Err(failed) => return Err(failed),
                },
                Err(RecvTimeoutError::Disconnected) if read == 0 => return self.no_log(lead),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
            if let Ok(signal) = self.signals.try_recv() {
                self.end_run(signal, begun.as_deref())?;
            }
        }
    }

    /// That the user may not read the log of the lead, if that is why it has no lines.
    fn no_log(&self, lead: &str) -> Result<Option<Followed>, Stop> {
        match self.beside(|cluster| cluster.log_end(lead))? {
            Err(error) if error.is_forbidden() => Ok(Some(Followed::IsVain(error.into()))),
            _ => Ok(None),
        }
    }

    /// Has the lead end the run for the first signal, in order.
    ///
    /// # Errors
    /// It has not begun, or this is the second signal.
    fn end_run(&self, signal: i32, begun: Option<&str>) -> Result<(), Stop> {
        let Some(lead) = begun.filter(|_| self.ends_for.get().is_none()) else {
            return Err(Stop::Interrupted(signal));
        };
        self.ends_for.set(Some(signal));
        tell!("ending the run; its result comes (interrupt again to remove it)");
        let interrupt = [THRONG, "fleet", "interrupt"];
        match self.ask(|cluster| cluster.execute_once(lead, &interrupt)) {
            Err(Stop::Failed(failure)) => {
                tell!("warning: the lead cannot be reached: {}", failure.what());
                Ok(())
            }
            result => result,
        }
    }

    /// Shows a line of the lead's log; how the following ends by it, if it does. A lead that has
    /// the version of this command gets its inputs.
    fn hear(
        &self,
        lead: &str,
        line: &str,
        is_first: bool,
        begun: &mut Option<String>,
    ) -> Result<Option<Followed>, Stop> {
        if is_first && let Some(failure) = self.other_program(line) {
            return Ok(Some(Followed::IsVain(failure)));
        }
        if line.starts_with(WAITS) {
            return Ok(Some(Followed::IsOver));
        }
        if is_first && said::version(line).is_some() {
            self.give_inputs(lead)?;
            *begun = Some(lead.to_owned());
        } else {
            tell!("{line}");
        }
        Ok(None)
    }

    /// That a lead whose log begins with that line has not the program of this command. The log of
    /// a run that another command has made may have lost its first line.
    fn other_program(&self, first: &str) -> Option<Failure> {
        let own = said::VERSION;
        match said::version(first) {
            Some(version) if version == own => None,
            Some(version) if !self.is_its_own => Some(Failure::usage(
                format!("run {} has throng {version}, and this is {own}", self.name),
                format!("follow it with throng {version}"),
            )),
            Some(version) => Some(Failure::usage(
                format!("the image has throng {version}, and this is {own}"),
                image_hint(),
            )),
            None if !self.is_its_own => None,
            None => Some(Failure::usage(
                format!("the image has another program than throng {own}, which says `{first}`"),
                image_hint(),
            )),
        }
    }

    /// Why the lead has ended without a result; the end of its log, if it was not shown.
    fn ended_early(&self, lead: &Pod, shows_log: bool) -> Failure {
        let log = self.ask(|cluster| cluster.log_end(&lead.name));
        let log = log.unwrap_or_default();
        let mut lines = log.lines().peekable();
        if shows_log && log.lines().count() < LOG_END_LINES {
            let first = lines.next_if(|line| said::version(line).is_some());
            let first = first.or(log.lines().next());
            if let Some(failure) = first.and_then(|line| self.other_program(line)) {
                return failure;
            }
        }
        if shows_log {
            lines.for_each(|line| tell!("{line}"));
        }
        let how = match &lead.state {
            PodState::Failed(how) => how.as_str(),
            _ => "its result was fetched, or was kept no longer",
        };
        let mut what = format!("the lead of run {} has ended: {how}", self.name);
        if how.contains(NO_PROGRAM) {
            return Failure::usage(what, image_hint());
        }
        let is_failed = matches!(lead.state, PodState::Failed(_));
        let said = said::last_failure(&log).filter(|_| is_failed);
        if let Some((error, _)) = said {
            what = format!("{what}: {error}");
        }
        let failure = Failure::in_operation(what);
        match (how.starts_with(OUT_OF_MEMORY), said) {
            (true, _) => failure.or_hint("give each pod more --memory"),
            (false, Some((_, Some(hint)))) => failure.or_hint(hint),
            (false, _) => failure,
        }
    }

    /// Fetches the files of the result, prints what the command printed, and removes the run.
    fn fetch_and_remove(&self) -> Result<ExitCode, Stop> {
        let mut pods = self.pods()?;
        let lead = self.lead_among(&pods)?.clone();
        let result = [THRONG, "fleet", "result"];
        let offered = self.ask(|cluster| cluster.execute(&lead.name, &result))?;
        let offered: Offered = serde_json::from_slice(&offered).map_err(|error| {
            Failure::in_operation(format!("the lead of run {}: {error}", self.name))
        })?;
        let Some(code) = offered.code else {
            let what = format!("run {} is not over", self.name);
            let hint = format!("`throng fleet attach {}` follows it to its end", self.name);
            return Err(Failure::usage(what, hint).into());
        };
        if code != 0 {
            pods = self.ended_pods(pods)?;
        }
        self.beside(|cluster| cluster.explain(&mut pods))?;
        let (mut known, stop) = (BTreeMap::new(), Cell::new(None));
        let mut backends = |address: IpAddr| {
            let found = known.entry(address).or_insert_with(|| {
                let found = self.beside(|cluster| cluster.backends(address));
                found.unwrap_or_else(|interrupted| {
                    stop.set(Some(interrupted));
                    Vec::new()
                })
            });
            found.clone()
        };
        for (name, written) in &offered.files {
            let content = self.file(&lead.name, (name, written))?;
            if name == OUTPUT {
                print(&String::from_utf8_lossy(&content))?;
                continue;
            }
            let content = annotated(content, &pods, &mut backends);
            if let Some(interrupted) = stop.take() {
                return Err(interrupted);
            }
            self.write(name, &content)?;
        }
        self.dismiss(&lead.name, ExitCode::from(code))
    }

    /// Ends the lead and removes the run, whose result is here.
    fn dismiss(&self, lead: &str, code: ExitCode) -> Result<ExitCode, Stop> {
        // It ends the lead, which may end the command in its pod before that is over: the files are
        // here, and what is left of the run is removed.
        let confirm = [THRONG, "fleet", "confirm"];
        let confirmed = self.ask(|cluster| cluster.execute_once(lead, &confirm));
        let removed = match confirmed {
            Err(Stop::Interrupted(signal)) => Err(Stop::Interrupted(signal)),
            Ok(()) | Err(Stop::Failed(_)) => self.ask(|cluster| cluster.remove(self.name)),
        };
        match removed {
            // The result is here also if a node is gone, and a pod with it.
            Err(Stop::Failed(failure)) => {
                tell!(
                    "warning: run {} is not removed: {}",
                    self.name,
                    failure.what()
                );
                if let Some(hint) = failure.hint() {
                    tell!("hint: {hint}");
                }
                Ok(code)
            }
            Err(Stop::Interrupted(signal)) if self.ends_for.get().is_none() => {
                Ok(self.not_removed(signal).report())
            }
            removed => removed.map(|()| code),
        }
    }

    /// The pods, after those of agents have ended: Kubernetes says a moment later why it ended that
    /// of a lost one.
    fn ended_pods(&self, mut pods: Vec<Pod>) -> Result<Vec<Pod>, Stop> {
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
    fn file(&self, lead: &str, (name, written): (&str, &Written)) -> Result<Vec<u8>, Stop> {
        let mut content = Vec::new();
        while (content.len() as u64) < written.length {
            let from = content.len().to_string();
            let words = [THRONG, "fleet", "part", name, "--from", &from];
            let part = self.ask(|cluster| cluster.execute(lead, &words))?;
            if part.is_empty() {
                let what = format!("{name} of the result is cut");
                return Err(Failure::in_operation(what).into());
            }
            content.extend_from_slice(&part);
        }
        match content_hash(&content) == written.hash {
            true => Ok(content),
            false => {
                let hint = format!("`throng fleet fetch {}` tries again", self.name);
                let what = format!("{name} of the result came damaged");
                Err(Failure::in_operation(what).or_hint(&hint).into())
            }
        }
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), Failure> {
        let path = self.output.join(name);
        if !files::is_below(Path::new(name)) {
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
