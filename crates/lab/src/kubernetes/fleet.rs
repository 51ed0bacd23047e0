//! A fleet that is in a cluster: made, looked at, talked to, removed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::kubectl::{KUBECTL, Namespace};
use super::look::{Look, PodName};
use super::manifest::{self, OF_RUN, PROGRAM, ROLE, agents_name, lead_name};
use super::options::Options;
use super::state::{State, text};
use super::{neighbours, rights};

/// Octets that a Secret may have: the API server takes 1 MiB of data.
const FILES_OCTETS_MAX: usize = 1_000_000;
/// How long the lead may take to run, its image among it.
const START_MAX: Duration = Duration::from_secs(300);
/// How long it may take until nothing is left: pods have half a minute to end.
const REMOVE_MAX: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A fleet in a cluster. It stays there when this is dropped: the run goes on without us.
#[derive(Clone, Debug)]
pub struct Fleet {
    namespace: Namespace,
    name: String,
}

/// A command whose standard input and output are those of a program in the lead's pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relay {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub words: Vec<OsString>,
}

/// A run in a namespace, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name of the run.
    pub name: String,
    /// When its lead was made: RFC 3339.
    pub made_at: String,
    /// How far its lead has come.
    pub lead: State,
}

impl Fleet {
    /// Refuses where the user may not do all that a fleet takes.
    ///
    /// # Errors
    /// Each verb and resource that is missing, with a Role that gives it.
    pub fn check_rights(namespace: Option<&str>) -> anyhow::Result<()> {
        rights::check(&Namespace::find(namespace)?)
    }

    /// Makes all of a fleet, with these files in its Secret.
    ///
    /// # Errors
    /// What the cluster refuses. Then nothing of it is left, or the error says what is.
    pub fn start(options: &Options, files: &BTreeMap<String, String>) -> anyhow::Result<Fleet> {
        options.check()?;
        let octets: usize = files
            .iter()
            .map(|(name, text)| name.len() + text.len())
            .sum();
        ensure!(
            octets <= FILES_OCTETS_MAX,
            "the keys of the run have {octets} bytes, a Secret takes {FILES_OCTETS_MAX}"
        );
        let namespace = Namespace::find(options.namespace.as_deref())?;
        let options = Options {
            namespace: Some(namespace.name.clone()),
            ..options.clone()
        };
        let fleet = Fleet {
            namespace,
            name: options.name.clone(),
        };
        let lead = fleet.namespace.create(&[manifest::lead_job(&options)]);
        let is_taken = lead.as_ref().is_err_and(says_already_exists);
        let made = lead.and_then(|lead| fleet.make_rest(&options, files, &lead));
        let made = made.with_context(|| format!("cannot start {}", fleet.place()));
        match made {
            Ok(()) => Ok(fleet),
            // What is there is somebody else's.
            Err(error) if is_taken => Err(error),
            // Also after an error that leaves open whether something was made.
            Err(error) => match fleet.remove() {
                Ok(()) => Err(error),
                Err(left) => bail!("{error:#}\nand it is not removed: {left:#}"),
            },
        }
    }

    /// Makes what belongs to the Job of the lead.
    fn make_rest(
        &self,
        options: &Options,
        files: &BTreeMap<String, String>,
        lead: &[Value],
    ) -> anyhow::Result<()> {
        let uid = lead.first().map_or("", |job| text(&job["metadata"]["uid"]));
        ensure!(
            !uid.is_empty(),
            "the cluster names no uid of the Job that it made"
        );
        let rest = [
            manifest::secret(options, files, None),
            manifest::service(options),
            manifest::agents_job(options),
        ];
        let rest = rest.map(|object| manifest::owned(object, &self.name, uid));
        self.namespace.create(&rest).map(drop)
    }

    /// A fleet that somebody has started before.
    ///
    /// # Errors
    /// There is none of that name, with the names that there are.
    pub fn attach(name: &str, namespace: Option<&str>) -> anyhow::Result<Fleet> {
        let namespace = Namespace::find(namespace)?;
        let runs = leads(&namespace)?;
        if !runs.iter().any(|run| run.name == name) {
            let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
            let there = match names.is_empty() {
                true => "there is none at all".to_owned(),
                false => format!("there are {}", names.join(", ")),
            };
            bail!(
                "there is no run `{name}` in namespace `{}`\nhint: {there}; --namespace chooses \
                 another namespace",
                namespace.name
            );
        }
        Ok(Fleet {
            namespace,
            name: name.to_owned(),
        })
    }

    /// The runs of a namespace whose leads are there, ended ones too.
    ///
    /// # Errors
    /// The cluster cannot be asked.
    pub fn list(namespace: Option<&str>) -> anyhow::Result<Vec<Listed>> {
        leads(&Namespace::find(namespace)?)
    }

    /// The name of the run.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace that it is in.
    pub fn namespace(&self) -> &str {
        &self.namespace.name
    }

    /// How far all of its pods have come.
    ///
    /// # Errors
    /// The cluster cannot be asked.
    pub fn look(&self) -> anyhow::Result<Look> {
        let selector = format!("--selector={OF_RUN}={}", self.name);
        let jobs = self.jobs()?;
        let pods = self.namespace.items(&["get", "pods", &selector])?;
        let look = Look::of(&self.name, &jobs, &pods, &[]);
        let has_all = look.lead.is_some() && look.pods.len() >= look.agents as usize;
        if has_all || jobs.is_empty() {
            return Ok(look);
        }
        // Some have no pod. Whoever may not read events is told no reason.
        let refused = "--field-selector=involvedObject.kind=Job,reason=FailedCreate";
        let events = self.namespace.items(&["get", "events", refused]);
        Ok(Look::of(
            &self.name,
            &jobs,
            &pods,
            &events.unwrap_or_default(),
        ))
    }

    /// Waits until the lead runs.
    ///
    /// # Errors
    /// It never will, as an image that is not there; not in time; or there will be too few agents;
    /// or `should_stop` says so. The fleet is still there.
    pub fn wait_for_lead(&self, should_stop: &mut dyn FnMut() -> bool) -> anyhow::Result<PodName> {
        let began = Instant::now();
        loop {
            let look = self.look()?;
            let lead = look.lead.as_ref();
            if let Some(lead) = lead.filter(|lead| lead.state == State::Runs) {
                return Ok(lead.name.clone());
            }
            let waited = began.elapsed();
            if look.is_hopeless(waited) || waited >= START_MAX {
                let why = look
                    .why()
                    .unwrap_or_else(|| "its lead has ended".to_owned());
                let log = lead.map_or_else(String::new, |lead| self.last_words(&lead.name));
                bail!("{} does not start: {why}{log}", self.place());
            }
            ensure!(
                !should_stop(),
                "{} was stopped before it began",
                self.place()
            );
            thread::park_timeout(LOOK_EVERY);
        }
    }

    /// What a pod has written last; nothing if that cannot be read.
    fn last_words(&self, pod: &PodName) -> String {
        let log = self.log(pod).unwrap_or_default();
        match log.trim() {
            "" => String::new(),
            log => format!("\nit wrote:\n{log}"),
        }
    }

    /// The last lines that a pod has written.
    ///
    /// # Errors
    /// There is no such pod, or its node does not answer.
    pub fn log(&self, pod: &PodName) -> anyhow::Result<String> {
        self.namespace.kubectl(&["logs", "--tail=20", &pod.0], None)
    }

    /// The command by which the lead is talked to.
    pub fn relay(&self, lead: &PodName) -> Relay {
        let place = self.namespace.words();
        let before = place.into_iter().chain(["exec", "--stdin", &lead.0]);
        let words = before.chain(["--", PROGRAM, "fleet", "relay"]);
        Relay {
            program: KUBECTL.into(),
            words: words.map(OsString::from).collect(),
        }
    }

    /// Warnings about agents on a node that has a pod of the target, by the target's addresses:
    /// those of pods, or of a Service.
    pub fn shares_node(&self, look: &Look, targets: &[IpAddr]) -> Vec<String> {
        neighbours::warnings(&self.namespace, look, targets)
    }

    /// Removes all of it, and waits until nothing is left.
    ///
    /// # Errors
    /// What is left after a minute and a half, or why it cannot be removed.
    pub fn remove(&self) -> anyhow::Result<()> {
        let (lead, agents) = (lead_name(&self.name), agents_name(&self.name));
        // Both, for those of a manifest belong to nobody.
        let of = ["delete", "jobs", &lead, &agents];
        let how = ["--ignore-not-found", "--cascade=foreground", "--wait=false"];
        let deleted = self.namespace.kubectl(&[&of[..], &how].concat(), None);
        deleted.with_context(|| format!("cannot remove {}", self.place()))?;
        let (began, mut is_tried) = (Instant::now(), false);
        loop {
            let left = self.left()?;
            if left.is_empty() {
                return Ok(());
            }
            if !is_tried
                && left
                    .iter()
                    .all(|it| !it.starts_with("job") && !it.starts_with("pod"))
            {
                // Of a manifest, they belong to nobody who has gone. Whoever may not is told.
                is_tried = true;
                let of = ["delete", "secret,service", &self.name, "--ignore-not-found"];
                let _ = self.namespace.kubectl(&of, None);
                continue;
            }
            ensure!(
                began.elapsed() < REMOVE_MAX,
                "of {} is left after {} s: {}\nhint: `kubectl --namespace {} delete \
                 job,pod,service,secret --selector {OF_RUN}={}` removes it",
                self.place(),
                REMOVE_MAX.as_secs(),
                left.join(", "),
                self.namespace.name,
                self.name
            );
            thread::park_timeout(LOOK_EVERY);
        }
    }

    /// What there is of it, by kind and name.
    fn left(&self) -> anyhow::Result<Vec<String>> {
        let selector = format!("--selector={OF_RUN}={}", self.name);
        let mut left = self.jobs()?;
        left.extend(self.namespace.items(&["get", "pods", &selector])?);
        let named = |it: &Value| {
            let kind = text(&it["kind"]).to_lowercase();
            format!("{kind} {}", text(&it["metadata"]["name"]))
        };
        let mut left: Vec<String> = left.iter().map(named).collect();
        for kind in ["Secret", "Service"] {
            if self.has_name(kind)? {
                left.push(format!("{} {}", kind.to_lowercase(), self.name));
            }
        }
        Ok(left)
    }

    /// Whether there is such an object. Who may make it but not read it tries that, in a way that
    /// makes nothing.
    fn has_name(&self, kind: &str) -> anyhow::Result<bool> {
        let words = [
            "get",
            kind,
            &self.name,
            "--ignore-not-found",
            "--output=name",
        ];
        if let Ok(found) = self.namespace.kubectl(&words, None) {
            return Ok(!found.trim().is_empty());
        }
        let mut object = json!({
            "apiVersion": "v1", "kind": kind, "metadata": {"name": self.name},
        });
        if kind == "Service" {
            object["spec"] = json!({"clusterIP": "None", "ports": [{"port": manifest::PORT}]});
        }
        let words = ["create", "--dry-run=server", "--filename=-"];
        let tried = self.namespace.kubectl(&words, Some(&object.to_string()));
        match tried {
            Ok(_) => Ok(false),
            Err(error) if says_already_exists(&error) => Ok(true),
            // A quota, or a policy: nobody says, and it goes with its owner.
            Err(error) if format!("{error:#}").contains("(Forbidden)") => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn jobs(&self) -> anyhow::Result<Vec<Value>> {
        let (lead, agents) = (lead_name(&self.name), agents_name(&self.name));
        let words = ["get", "jobs", &lead, &agents, "--ignore-not-found"];
        self.namespace.items(&words)
    }

    /// For messages.
    fn place(&self) -> String {
        format!(
            "the run `{}` in namespace `{}`",
            self.name, self.namespace.name
        )
    }
}

/// Whether the API server refused it because there is one of that name.
fn says_already_exists(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("(AlreadyExists)")
}

fn leads(namespace: &Namespace) -> anyhow::Result<Vec<Listed>> {
    let selector = format!("--selector=app.kubernetes.io/name=throng,{ROLE}=lead");
    let pods = namespace.items(&["get", "pods", &selector])?;
    let listed = pods.iter().map(|pod| Listed {
        name: text(&pod["metadata"]["labels"][OF_RUN]).to_owned(),
        made_at: text(&pod["metadata"]["creationTimestamp"]).to_owned(),
        lead: State::of(pod),
    });
    let mut listed: Vec<Listed> = listed.collect();
    listed.sort_by(|a, b| (&a.made_at, &a.name).cmp(&(&b.made_at, &b.name)));
    Ok(listed)
}
