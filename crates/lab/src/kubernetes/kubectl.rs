//! The user's own `kubectl`, with the rights, the credentials and the cluster that a shell here
//! has: it is to Kubernetes what the user's own OpenSSH is to other hosts.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::Context;
use serde_json::{Deserializer, Value};

/// The program.
pub(crate) const KUBECTL: &str = "kubectl";
/// Each question to the cluster has that long, answer included.
const TIMEOUT: &str = "--request-timeout=30s";
/// Where a pod has the name of its namespace, if it may ask the cluster at all.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The context of the configuration that `kubectl` uses.
///
/// # Errors
/// There is none, with the cure.
pub(crate) fn context() -> anyhow::Result<String> {
    let asked = run(&["config", "current-context"], None);
    let context = asked.context("kubectl knows no cluster\nhint: set KUBECONFIG")?;
    Ok(context.trim().to_owned())
}

/// What `kubectl` prints for that cluster.
///
/// # Errors
/// What `kubectl` says on standard error.
pub(crate) fn kubectl(
    context: &str,
    words: &[&str],
    stdin: Option<&str>,
) -> anyhow::Result<String> {
    run(&[&["--context", context], words].concat(), stdin)
}

fn run(words: &[&str], stdin: Option<&str>) -> anyhow::Result<String> {
    let mut command = Command::new(KUBECTL);
    command.arg(TIMEOUT).args(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    // Ctrl-C of a terminal is for us: what removes things goes on.
    command.stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().context(
        "cannot run `kubectl`\nhint: install it, and tell it the cluster by KUBECONFIG or \
         ~/.kube/config",
    )?;
    if let Some(mut input) = child.stdin.take() {
        // One that fails before it has read all says why itself.
        let _ = input.write_all(stdin.unwrap_or_default().as_bytes());
    }
    let output = child
        .wait_with_output()
        .context("cannot wait for kubectl")?;
    let said = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = match said.trim() {
        "" => text.trim(),
        said => said,
    };
    anyhow::ensure!(
        output.status.success(),
        "kubectl {}: {said}",
        words.last().unwrap_or(&"")
    );
    Ok(text)
}

/// A namespace of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Namespace {
    /// The context of `kubectl`; none in a pod, which knows its own cluster.
    context: Option<String>,
    pub(super) name: String,
}

impl Namespace {
    /// The one of that name, or else the one that `kubectl` uses by itself.
    pub(super) fn find(name: Option<&str>) -> anyhow::Result<Namespace> {
        let is_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
        let context = match context() {
            Ok(context) => Some(context),
            Err(_) if is_pod => None,
            Err(error) => return Err(error),
        };
        let mut found = Namespace {
            context,
            name: String::new(),
        };
        found.name = match name {
            Some(name) => name.to_owned(),
            None => found.own()?,
        };
        Ok(found)
    }

    fn own(&self) -> anyhow::Result<String> {
        let name = match &self.context {
            Some(_) => self.of_cluster(
                &[
                    "config",
                    "view",
                    "--minify",
                    "--output=jsonpath={..namespace}",
                ],
                None,
            )?,
            None => fs::read_to_string(OWN_NAMESPACE).unwrap_or_default(),
        };
        Ok(match name.trim() {
            "" => "default".to_owned(),
            name => name.to_owned(),
        })
    }

    /// The words that choose cluster and namespace.
    pub(super) fn words(&self) -> Vec<&str> {
        let context = self.context.as_deref();
        let context = context.map(|context| ["--context", context]);
        let namespace = ["--namespace", &self.name];
        context.into_iter().flatten().chain(namespace).collect()
    }

    /// What `kubectl` prints, in this namespace.
    pub(super) fn kubectl(&self, words: &[&str], stdin: Option<&str>) -> anyhow::Result<String> {
        run(&[&self.words(), words].concat(), stdin)
    }

    /// What `kubectl` prints that is of no namespace.
    fn of_cluster(&self, words: &[&str], stdin: Option<&str>) -> anyhow::Result<String> {
        let of = self.words();
        // Without the namespace, which is at the end.
        run(&[&of[..of.len() - 2], words].concat(), stdin)
    }

    /// The items of what was asked for, such as `get pods`.
    pub(super) fn items(&self, words: &[&str]) -> anyhow::Result<Vec<Value>> {
        let text = self.kubectl(&[words, &["--output=json"]].concat(), None)?;
        // Nothing at all is printed of names that are not there.
        Ok(documents(&text)?.into_iter().flat_map(items).collect())
    }

    /// Makes these objects; how they are then.
    pub(super) fn create(&self, objects: &[Value]) -> anyhow::Result<Vec<Value>> {
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let words = ["create", "--output=json", "--filename=-"];
        let text = self.kubectl(&words, Some(&list.to_string()))?;
        Ok(documents(&text)?.into_iter().flat_map(items).collect())
    }
}

/// The documents that `kubectl` prints one after the other.
fn documents(text: &str) -> anyhow::Result<Vec<Value>> {
    let all: Result<Vec<Value>, _> = Deserializer::from_str(text).into_iter().collect();
    all.context("kubectl prints no JSON\nhint: use a newer one")
}

/// What is in a list; anything else is its own only item.
fn items(mut document: Value) -> Vec<Value> {
    match document.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => vec![document],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_single_documents_are_read_alike() {
        let text = r#"{"kind": "List", "items": [{"a": 1}, {"a": 2}]} {"kind": "Pod", "a": 3}"#;
        let all: Vec<Value> = documents(text)
            .unwrap()
            .into_iter()
            .flat_map(items)
            .collect();
        let values: Vec<&Value> = all.iter().map(|it| &it["a"]).collect();
        assert_eq!(values, [1, 2, 3]);
        assert!(documents("").unwrap().is_empty());
        assert!(documents("error: no").is_err());
    }
}
