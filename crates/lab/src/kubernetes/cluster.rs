//! What `kubectl` is asked of a fleet, with the rights and the cluster that the user's shell has.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use driver::random;
use serde_json::{Deserializer, Value, json};

use super::calls::Calls;

/// How long an answer of the API server may take.
pub(super) const TIMEOUT: &str = "--request-timeout=30s";
/// How long what is deleted may take to end: the lead has a grace period to report.
const REMOVED_WITHIN: &str = "--timeout=90s";
/// What makes objects, and what looks for them.
const CREATE: [&str; 4] = [TIMEOUT, "create", "--filename=-", "--output=json"];
const GET: [&str; 5] = [
    TIMEOUT,
    "get",
    "--filename=-",
    "--ignore-not-found",
    "--output=json",
];
/// Whether the user may run commands in pods.
const CAN_EXEC: [&str; 6] = [
    TIMEOUT,
    "auth",
    "can-i",
    "create",
    "pods",
    "--subresource=exec",
];
/// Begins the hint of a right that is missing.
const LACKS: &str = "the Role of this user lacks the rule";
/// How often something is asked again that may be asked twice, and the first pause; each is twice
/// as long as the one before, 32 s together.
const AGAIN_MAX: u32 = 7;
const AGAIN_FIRST: Duration = Duration::from_millis(250);
/// What another attempt does not help.
const FINAL: [&str; 4] = [
    "(Forbidden)",
    "(NotFound)",
    "cannot run `",
    "timed out waiting for the condition",
];
/// What kubectl says where the API server, its storage or the way to it was too busy: what was
/// asked may have been done, or may be done by the next attempt.
const UNANSWERED: [&str; 12] = [
    "(InternalError)",
    "(ServerTimeout)",
    "(ServiceUnavailable)",
    "(Timeout)",
    "(TooManyRequests)",
    "Client.Timeout",
    "EOF",
    "TLS handshake timeout",
    "connection reset",
    "deadline exceeded",
    "etcdserver: ",
    "i/o timeout",
];
/// What kubectl says where it does not know the cluster, or finds nothing where that is to be.
const UNREACHED: [&str; 8] = [
    "did you specify the right host or port?",
    "context was not found",
    "error: stat ",
    "i/o timeout",
    "network is unreachable",
    "no configuration has been provided",
    "no route to host",
    "no such host",
];
/// Hints where there is no cluster.
const CONFIGURE: &str = "set KUBECONFIG, or make ~/.kube/config";
const IS_IT_THERE: &str = "is the cluster of this context there? `kubectl cluster-info`";
/// The annotation by which a command knows the objects that it has made itself.
const MADE_BY: &str = "throng/made-by";
/// What a run consists of.
const KINDS: &str = "jobs,pods,services,secrets";
/// What marks the objects of Throng.
const INSTANCE: &str = "app.kubernetes.io/instance";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by=throng";

/// Why Kubernetes did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterError {
    /// What it was asked, and what was said.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

impl ClusterError {
    /// `said` is what kubectl printed.
    fn of(words: &[&str], said: &str) -> ClusterError {
        // Beside what it says to people, kubectl logs what its library meets (klog).
        let is_log = |line: &&str| line.starts_with('E') && line.contains(".go:");
        let lines: Vec<&str> = said.trim().lines().filter(|it| !is_log(it)).collect();
        let said = lines.join("; ");
        let said = said.strip_prefix("Error from server ").unwrap_or(&said);
        ClusterError {
            what: format!("kubectl {}: {said}", shown(words)),
            hint: hint(said),
        }
    }

    /// True if another attempt is of no use.
    pub fn is_final(&self) -> bool {
        FINAL.iter().any(|it| self.what.contains(it))
    }

    /// True if there may be no such cluster, where it has not answered yet.
    pub fn is_unreached(&self) -> bool {
        UNREACHED.iter().any(|it| self.what.contains(it))
    }

    /// True if the user has no right to it.
    pub fn is_forbidden(&self) -> bool {
        self.what.contains(FINAL[0])
    }

    /// True if what was asked may have been done.
    fn is_unanswered(&self) -> bool {
        UNANSWERED.iter().any(|it| self.what.contains(it))
    }
}

/// What no two objects of a namespace have in common.
fn identity(object: &Value) -> [&Value; 2] {
    [&object["kind"], &object["metadata"]["name"]]
}

/// What was asked, without flags.
fn shown(words: &[&str]) -> String {
    let words = words.iter().copied().take_while(|word| *word != "--");
    let words: Vec<&str> = words.filter(|word| !word.starts_with('-')).collect();
    words.join(" ")
}

/// The cure of what the API server says.
fn hint(said: &str) -> String {
    if let Some(rule) = missing_right(said) {
        return format!("{LACKS} {rule}");
    }
    cure(said)
        .unwrap_or("the same command of kubectl says more")
        .to_owned()
}

/// That of what is known to be said.
pub(super) fn cure(said: &str) -> Option<&'static str> {
    let known = [
        (
            "exceeded quota",
            "ask for a larger quota, or use fewer --agents, or less --cpus or --memory for each",
        ),
        (
            "namespaces \"",
            "create the namespace, or give --namespace another one",
        ),
        (
            "AlreadyExists",
            "give --name another name, or remove that run: `throng fleet stop NAME`",
        ),
        (
            "violates PodSecurity",
            "the namespace refuses these pods: leave out --host-network",
        ),
        (
            "timed out waiting for the condition",
            "a pod whose node is gone stays until the node is back, or until \
             `kubectl delete pod --force`",
        ),
        // Where it has no configuration.
        ("localhost:8080", CONFIGURE),
        ("no configuration has been provided", CONFIGURE),
        ("error: stat ", CONFIGURE),
        (
            "context was not found",
            "`kubectl config get-contexts` lists those that there are",
        ),
        ("connection refused", IS_IT_THERE),
        ("was refused", IS_IT_THERE),
        ("Unable to connect to the server", IS_IT_THERE),
    ];
    let cure = known.iter().find(|(part, _)| said.contains(part));
    cure.map(|(_, cure)| *cure)
}

/// The rule of a Role that a user lacks, of `cannot create resource "jobs" in API group "batch"`.
fn missing_right(said: &str) -> Option<String> {
    let (_, rest) = said.split_once("cannot ")?;
    let verb = rest.split_whitespace().next()?;
    let quoted = |after: &str| {
        rest.split_once(after)?
            .1
            .split('"')
            .next()
            .map(str::to_owned)
    };
    let (resource, group) = (quoted("resource \"")?, quoted("API group \"")?);
    Some(rule(&group, &resource, verb))
}

/// A rule of a Role.
fn rule(group: &str, resource: &str, verb: &str) -> String {
    format!("{{apiGroups: [\"{group}\"], resources: [\"{resource}\"], verbs: [\"{verb}\"]}}")
}

/// A namespace of a cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The command that asks it.
    kubectl: Vec<OsString>,
    namespace: Option<String>,
    calls: Arc<Calls>,
}

/// The objects of a run, with a mark by which those that a command has made are known.
#[derive(Clone, Debug)]
pub struct Marked {
    objects: Vec<Value>,
    mark: Value,
}

impl Marked {
    /// Marks these.
    pub fn new(mut objects: Vec<Value>) -> Marked {
        let mark = json!(HEXLOWER.encode(&random::seed()));
        for object in &mut objects {
            object["metadata"]["annotations"][MADE_BY] = mark.clone();
        }
        Marked { objects, mark }
    }

    fn has(&self, object: &Value) -> bool {
        object["metadata"]["annotations"][MADE_BY] == self.mark
    }
}

impl Cluster {
    /// `kubectl` is a command with its flags.
    pub fn new(kubectl: Vec<OsString>, namespace: Option<String>) -> Cluster {
        Cluster {
            kubectl,
            namespace,
            calls: Arc::default(),
        }
    }

    /// The same cluster, with calls that end by themselves.
    pub fn with_own_calls(&self) -> Cluster {
        Cluster {
            calls: Arc::default(),
            ..self.clone()
        }
    }

    /// Ends the calls of `kubectl` that run, in any thread, and has those that are to come fail.
    /// What they asked may have been done.
    pub fn end_calls(&self) {
        self.calls.end();
    }

    fn command(&self, words: &[&str]) -> Command {
        let (program, flags) = self.kubectl.split_first().expect("a command has a name");
        let mut command = Command::new(program);
        // Ctrl-C is this command's.
        command.args(flags).process_group(0);
        if let Some(namespace) = &self.namespace {
            command.args(["--namespace", namespace]);
        }
        command.args(words);
        command
    }

    /// What it prints.
    ///
    /// # Errors
    /// What it says.
    pub fn ask(&self, words: &[&str], stdin: Option<&[u8]>) -> Result<Vec<u8>, ClusterError> {
        let mut command = self.command(words);
        let output = self.calls.output(&mut command, stdin);
        let output = output.map_err(|error| ClusterError {
            what: format!("cannot run `{}`: {error}", self.kubectl[0].display()),
            hint: "install kubectl, or name the command: --kubectl oc".to_owned(),
        })?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(ClusterError::of(
                words,
                &String::from_utf8_lossy(&output.stderr),
            )),
        }
    }

    /// The same of what may be asked twice: again, unless that is of no use.
    fn ask_again(&self, words: &[&str], stdin: Option<&[u8]>) -> Result<Vec<u8>, ClusterError> {
        let mut pause = AGAIN_FIRST;
        for _ in 0..AGAIN_MAX {
            match self.ask(words, stdin) {
                Err(error) if !error.is_final() => self.calls.pause(pause),
                result => return result,
            }
            pause *= 2;
        }
        self.ask(words, stdin)
    }

    /// The objects that it prints.
    pub(super) fn ask_objects(
        &self,
        words: &[&str],
        stdin: Option<&[u8]>,
    ) -> Result<Vec<Value>, ClusterError> {
        let text = self.ask(words, stdin)?;
        printed(words, &text)
    }

    /// Makes objects that must not be there. An attempt without an answer is repeated for those
    /// that are missing: those that are there are known by their mark.
    fn make(&self, mut missing: Vec<Value>, of: &Marked) -> Result<Vec<Value>, ClusterError> {
        let (mut made, mut pause) = (Vec::new(), AGAIN_FIRST);
        for attempt in 0.. {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": missing}).to_string();
            let list = Some(list.as_bytes());
            match self.ask_objects(&CREATE, list) {
                Ok(rest) => {
                    made.extend(rest);
                    break;
                }
                Err(error) if attempt == AGAIN_MAX || !error.is_unanswered() => return Err(error),
                Err(_) => {}
            }
            self.calls.pause(pause);
            pause *= 2;
            // Where this has no answer either, the next attempt says why.
            let there = self.ask_objects(&GET, list).unwrap_or_default();
            for object in there.into_iter().filter(|it| of.has(it)) {
                missing.retain(|it| identity(it) != identity(&object));
                made.push(object);
            }
            if missing.is_empty() {
                break;
            }
        }
        Ok(made)
    }

    /// Makes the objects of a run, which must not be there. The first one owns the others: they go
    /// with it.
    ///
    /// # Errors
    /// One cannot be made; those before it are removed again.
    pub fn create(&self, marked: &Marked) -> Result<(), ClusterError> {
        let Some((first, others)) = marked.objects.split_first() else {
            return Ok(());
        };
        let made = self.make(vec![first.clone()], marked)?;
        let made = made.first().unwrap_or(&Value::Null);
        if others.is_empty() {
            return Ok(());
        }
        let owner = json!([{
            "apiVersion": first["apiVersion"],
            "kind": first["kind"],
            "name": first["metadata"]["name"],
            "uid": made["metadata"]["uid"],
        }]);
        let owned = others.iter().map(|object| {
            let mut object = object.clone();
            object["metadata"]["ownerReferences"] = owner.clone();
            object
        });
        let made = self.make(owned.collect(), marked);
        if made.is_err()
            && let Some(run) = run_of(first)
        {
            // Why they cannot be made is what counts.
            let _ = self.remove(run);
        }
        made.map(drop)
    }

    /// Removes what [`create`](Self::create) has made of these before its calls were ended. A run
    /// of another command with the same name stays.
    ///
    /// # Errors
    /// What kubectl says.
    pub fn remove_made(&self, marked: &Marked) -> Result<(), ClusterError> {
        let Some(first) = marked.objects.first() else {
            return Ok(());
        };
        let text = self.ask_again(&GET, Some(first.to_string().as_bytes()))?;
        let there = printed(&GET, &text)?;
        match run_of(first).filter(|_| there.iter().any(|it| marked.has(it))) {
            Some(run) => self.remove(run),
            None => Ok(()),
        }
    }

    /// Looks whether the user may run commands in pods, as which a result is fetched. What the API
    /// server does not answer is no refusal: the next call says why.
    ///
    /// # Errors
    /// It says no.
    pub fn check_exec(&self) -> Result<(), ClusterError> {
        let mut command = self.command(&CAN_EXEC);
        let answer = self.calls.output(&mut command, None);
        match answer {
            Ok(answer) if answer.stdout.starts_with(b"no") => {
                let rule = rule("", "pods/exec", "create");
                Err(ClusterError {
                    what: "pods/exec is forbidden, as which the result is fetched".to_owned(),
                    hint: format!("{LACKS} {rule}"),
                })
            }
            _ => Ok(()),
        }
    }

    /// The Jobs and pods of a run.
    ///
    /// # Errors
    /// What kubectl says.
    pub fn jobs_and_pods(&self, run: &str) -> Result<Vec<Value>, ClusterError> {
        self.labelled("jobs,pods", Some(run))
    }

    /// All objects of a run, or of all runs: Secrets and Services may be left without Jobs.
    ///
    /// # Errors
    /// What kubectl says.
    pub fn objects(&self, run: Option<&str>) -> Result<Vec<Value>, ClusterError> {
        self.labelled(KINDS, run)
    }

    fn labelled(&self, kinds: &str, run: Option<&str>) -> Result<Vec<Value>, ClusterError> {
        let selector = format!("--selector={}", selector(run));
        let words = [TIMEOUT, "get", kinds, &selector, "--output=json"];
        self.ask_objects(&words, None)
    }

    /// Removes all objects of a run, and waits until its pods have ended.
    ///
    /// # Errors
    /// What kubectl says.
    pub fn remove(&self, run: &str) -> Result<(), ClusterError> {
        let selector = format!("--selector={}", selector(Some(run)));
        let delete = ["delete", KINDS, &selector, "--wait=true", REMOVED_WITHIN];
        self.ask_again(&delete, None).map(drop)
    }

    /// The log of a pod from its beginning, as it is written; the command ends with the pod.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn follow(&self, pod: &str) -> std::io::Result<Child> {
        let mut command = self.command(&["logs", "--follow", pod]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(Stdio::null()).spawn()
    }

    /// The last lines of the log of a pod.
    ///
    /// # Errors
    /// What kubectl says.
    pub fn log_end(&self, pod: &str) -> Result<String, ClusterError> {
        let lines = format!("--tail={LOG_END_LINES}");
        let log = self.ask(&[TIMEOUT, "logs", &lines, pod], None)?;
        Ok(String::from_utf8_lossy(&log).into_owned())
    }

    /// What a command in a pod prints, which may run twice.
    ///
    /// # Errors
    /// What kubectl or the command says.
    pub fn execute(&self, pod: &str, words: &[&str]) -> Result<Vec<u8>, ClusterError> {
        self.ask_again(&[&["exec", pod, "--"], words].concat(), None)
    }

    /// Runs a command in a pod that must not run twice.
    ///
    /// # Errors
    /// What kubectl or the command says.
    pub fn execute_once(&self, pod: &str, words: &[&str]) -> Result<(), ClusterError> {
        self.ask(&[&["exec", pod, "--"], words].concat(), None)
            .map(drop)
    }

    /// Runs a command in a pod that reads this; it may run twice.
    ///
    /// # Errors
    /// What kubectl or the command says.
    pub fn give(&self, pod: &str, words: &[&str], input: &[u8]) -> Result<(), ClusterError> {
        let words = [&["exec", "--stdin", pod, "--"], words].concat();
        self.ask_again(&words, Some(input)).map(drop)
    }
}

/// The objects that kubectl has printed: one after the other, or a list, or nothing at all.
fn printed(words: &[&str], text: &[u8]) -> Result<Vec<Value>, ClusterError> {
    let printed: Result<Vec<Value>, _> = Deserializer::from_slice(text).into_iter().collect();
    let printed = printed.map_err(|error| ClusterError::of(words, &error.to_string()))?;
    let items = printed.into_iter().map(|it| match &it["items"] {
        Value::Array(items) => items.clone(),
        _ => vec![it],
    });
    Ok(items.flatten().collect())
}

/// The run that an object belongs to.
pub fn run_of(object: &Value) -> Option<&str> {
    object["metadata"]["labels"][INSTANCE].as_str()
}

/// The objects of a run, or of all runs.
fn selector(run: Option<&str>) -> String {
    match run {
        Some(run) => format!("{MANAGED_BY},{INSTANCE}={run}"),
        None => MANAGED_BY.to_owned(),
    }
}

/// How many lines the end of a log has.
pub const LOG_END_LINES: usize = 20;

/// How often something of a cluster is looked at.
pub const LOOK_EVERY: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_is_named_as_the_rule_of_a_role() {
        let said = "Error from server (Forbidden): error when creating \"STDIN\": jobs.batch is \
                    forbidden: User \"dev\" cannot create resource \"jobs\" in API group \"batch\" \
                    in the namespace \"load\"";
        let error = ClusterError::of(&["create"], said);
        assert!(
            error.what.starts_with("kubectl create: (Forbidden)"),
            "{error:?}"
        );
        let rule = "{apiGroups: [\"batch\"], resources: [\"jobs\"], verbs: [\"create\"]}";
        assert!(error.hint.ends_with(rule), "{error:?}");
    }
}
