//! A change of a workload that a cluster runs already: saved before, restored after, and verified.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};

use super::Resources;
use super::folder::TempFolder;
use super::kubelet::KubeletProxy;
use super::pods::{Held, context, kubectl};
use super::running_list::Listed;
use crate::files::{self, Access};

/// Kinds of workloads with several pods.
const KINDS: [&str; 3] = ["deployment", "statefulset", "daemonset"];
/// Fields set by the cluster itself.
const OF_CLUSTER: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];
/// Annotations counted by the cluster itself.
const REVISIONS: [&str; 2] = [
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
];
/// Differs from start to start, so that each has new pods.
const START: &str = "throng/start";
/// The API server's error for an object that was written since it was read.
const CONFLICT: &str = "(Conflict)";
/// Retries after that error.
const REPLACE_TRIES: u32 = 20;
const ROLLOUT: &str = "--timeout=180s";

/// A requested change.
#[derive(Clone, Debug)]
pub struct Change {
    namespace: String,
    kind: String,
    name: String,
    /// CPU time and memory of the first container of each pod.
    pub resources: Resources,
    /// Number of pods.
    pub replicas: Option<u32>,
}

/// Changed, until it is restored or dropped.
#[derive(Debug)]
pub struct Changed {
    held: Option<Held>,
    /// Sources to observe its pods, valid while the proxy runs.
    observed: Vec<String>,
    _proxy: Option<KubeletProxy>,
    folder: TempFolder,
}

/// Location and original state of an object.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Saved {
    pub(super) context: String,
    namespace: String,
    kind: String,
    name: String,
    manifest: PathBuf,
}

impl Change {
    /// Reads `NAMESPACE/KIND/NAME`, such as `kube-system/deployment/coredns`.
    ///
    /// # Errors
    /// The text has another form; with the cure.
    pub fn parse(text: &str) -> anyhow::Result<Change> {
        let parts: Vec<&str> = text.split('/').collect();
        let [namespace, kind, name] = parts[..] else {
            anyhow::bail!(
                "`{text}` is no NAMESPACE/KIND/NAME\nhint: write one such as \
                 kube-system/deployment/coredns"
            );
        };
        anyhow::ensure!(
            KINDS.contains(&kind) && !namespace.is_empty() && !name.is_empty(),
            "`{text}` is not understood\nhint: the kind is one of {}",
            KINDS.join(", ")
        );
        // kubectl takes a word that begins with `-` for one of its options.
        let is_name = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphanumeric())
                && (part.chars()).all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))
        };
        anyhow::ensure!(
            is_name(namespace) && is_name(name),
            "`{text}`: namespace or name is not one of Kubernetes\nhint: they are of letters, \
             digits, `-` and `.`, and begin with a letter or digit"
        );
        Ok(Change {
            namespace: namespace.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            resources: Resources::default(),
            replicas: None,
        })
    }

    /// Refuses an impossible change.
    ///
    /// # Errors
    /// With the cure.
    pub fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.resources.cpus.is_none(),
            "a pod has no list of CPUs\nhint: set its quota, which becomes its request and limit"
        );
        anyhow::ensure!(
            self.replicas.is_none() || self.kind != "daemonset",
            "a daemonset has a pod on each node\nhint: leave `replicas` out"
        );
        Ok(())
    }

    /// Changes the workload for one start, and waits until all of its pods are new ones. Its
    /// original state is written to `manifest` first.
    ///
    /// # Errors
    /// The cluster's error; the workload is then unchanged.
    pub fn apply(&self, manifest: &Path, start: u32) -> anyhow::Result<Changed> {
        let context = context()?;
        let Change {
            namespace,
            kind,
            name,
            ..
        } = self;
        let of = ["--namespace", namespace, "get", kind, name, "--output=json"];
        let text = kubectl(&context, &of, None)
            .with_context(|| format!("there is no {kind} `{name}` in `{namespace}`"))?;
        let mut was: Value = serde_json::from_str(&text)?;
        without_state(&mut was);
        let text = serde_json::to_string_pretty(&was)?;
        // The manifest may have secrets, such as environment variables.
        let write = |path: &Path| {
            files::write(path, Access::Owner, &text)
                .with_context(|| format!("cannot write `{}`", path.display()))
        };
        write(manifest)?;
        let folder = TempFolder::new("change")?;
        let copy = folder.path().join("manifest.json");
        write(&copy)?;
        // A second copy, in case the other one is lost.
        let saved = Saved {
            context: context.clone(),
            namespace: namespace.clone(),
            kind: kind.clone(),
            name: name.clone(),
            manifest: copy,
        };
        let mut listed = Listed::new("kubectl", [&None, &None], &folder);
        listed.kubernetes = Some(Held::Changed(saved.clone()));
        listed.write()?;
        let mut changed = Changed {
            held: Some(Held::Changed(saved)),
            folder,
            observed: Vec::new(),
            _proxy: None,
        };
        let patch = self.patch(&was, start)?.to_string();
        let of = [
            "--namespace",
            namespace,
            "patch",
            kind,
            name,
            "--type=strategic",
            "--patch",
        ];
        kubectl(&context, &[&of[..], &[patch.as_str()]].concat(), None)?;
        let of = [
            "--namespace",
            namespace,
            "rollout",
            "status",
            kind,
            name,
            ROLLOUT,
        ];
        kubectl(&context, &of, None)?;
        let proxy = KubeletProxy::start(&context, changed.folder.path());
        let nodes = self.nodes(&context, &was)?;
        let pods = format!("{namespace}/{name}-*");
        changed.observed = nodes.iter().map(|it| proxy.source(it, &pods)).collect();
        changed._proxy = Some(proxy);
        Ok(changed)
    }

    /// The nodes of its pods.
    fn nodes(&self, context: &str, was: &Value) -> anyhow::Result<BTreeSet<String>> {
        let labels = was["spec"]["selector"]["matchLabels"].as_object();
        let pairs = labels.into_iter().flatten();
        let pairs = pairs.map(|(name, value)| {
            let value = value.as_str().unwrap_or_default();
            format!("{name}={value}")
        });
        let selector = pairs.collect::<Vec<_>>().join(",");
        anyhow::ensure!(!selector.is_empty(), "its pods have no labels");
        let text = kubectl(
            context,
            &[
                "--namespace",
                &self.namespace,
                "get",
                "pods",
                "--selector",
                &selector,
                "--field-selector=status.phase=Running",
                "--output=jsonpath={.items[*].spec.nodeName}",
            ],
            None,
        )?;
        Ok(text.split_whitespace().map(str::to_owned).collect())
    }

    fn patch(&self, was: &Value, start: u32) -> anyhow::Result<Value> {
        let container = &was["spec"]["template"]["spec"]["containers"][0]["name"];
        let container = container.as_str().context("it has no container")?;
        let limits = self.resources.limits_in_kubernetes();
        let mut spec = json!({"template": {
            "metadata": {"annotations": {START: start.to_string()}},
            "spec": {"containers": [
                {"name": container, "resources": {"limits": limits, "requests": limits}},
            ]},
        }});
        if let Some(replicas) = self.replicas {
            spec["replicas"] = replicas.into();
        }
        Ok(json!({ "spec": spec }))
    }
}

impl Changed {
    /// What is to be observed of its pods.
    pub fn observed(&self) -> &[String] {
        &self.observed
    }

    /// Restores it, and compares.
    ///
    /// # Errors
    /// The remaining differences.
    pub fn restore(mut self) -> anyhow::Result<()> {
        self.end()
    }

    fn end(&mut self) -> anyhow::Result<()> {
        let Some(held) = self.held.take() else {
            return Ok(());
        };
        let ended = held.remove();
        if ended.is_err() {
            // The next command finds it in the list, and tries again.
            self.folder.keep();
        }
        ended
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        // The next command reports the error.
        let _ = self.end();
    }
}

impl Saved {
    /// Restores the original state and lets the cluster confirm it.
    pub(super) fn restore(&self) -> anyhow::Result<()> {
        let Saved {
            context,
            namespace,
            kind,
            name,
            manifest,
        } = self;
        let file = format!("--filename={}", manifest.display());
        let what = format!("{kind} `{name}` in `{namespace}` is not as it was");
        let cure = format!("restore it with `kubectl replace {file}`");
        let failed = || format!("{what}\nhint: {cure}");
        // kubectl reads the object before it writes it; a controller may write in between.
        let replace = || kubectl(context, &["replace", &file], None);
        let is_in_conflict = |error: &anyhow::Error| format!("{error:#}").contains(CONFLICT);
        let mut replaced = replace();
        for _ in 0..REPLACE_TRIES {
            if replaced.as_ref().is_err_and(is_in_conflict) {
                replaced = replace();
            }
        }
        replaced.with_context(failed)?;
        let of = [
            "--namespace",
            namespace,
            "rollout",
            "status",
            kind,
            name,
            ROLLOUT,
        ];
        kubectl(context, &of, None).with_context(failed)?;
        // It fails if there is a difference, and prints it.
        kubectl(context, &["diff", &file], None).with_context(failed)?;
        Ok(())
    }
}

/// Removes the fields that the cluster added.
fn without_state(manifest: &mut Value) {
    if let Some(all) = manifest.as_object_mut() {
        all.remove("status");
    }
    if let Some(metadata) = manifest["metadata"].as_object_mut() {
        OF_CLUSTER
            .iter()
            .for_each(|key| drop(metadata.remove(*key)));
    }
    if let Some(annotations) = manifest["metadata"]["annotations"].as_object_mut() {
        REVISIONS
            .iter()
            .for_each(|key| drop(annotations.remove(*key)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_names_what_it_changes() {
        let change = Change::parse("kube-system/deployment/coredns").unwrap();
        assert_eq!(change.name, "coredns");
        for wrong in [
            "-n/deployment/b",
            "a/deployment/--all",
            "coredns",
            "a/pod/b",
            "/deployment/b",
            "a/deployment/",
            "a/b/c/d",
        ] {
            let error = Change::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("hint: "), "{wrong}: {error}");
        }
    }

    #[test]
    fn what_the_cluster_adds_is_not_saved() {
        let mut manifest = json!({
            "metadata": {"name": "a", "uid": "1", "annotations": {REVISIONS[0]: "3", "own": "x"}},
            "spec": {"replicas": 1}, "status": {"replicas": 1},
        });
        without_state(&mut manifest);
        let kept = json!({
            "metadata": {"name": "a", "annotations": {"own": "x"}}, "spec": {"replicas": 1},
        });
        assert_eq!(manifest, kept);
    }

    #[test]
    fn the_first_container_gets_the_limits_and_every_start_pods_of_its_own() {
        let mut change = Change::parse("a/deployment/b").unwrap();
        change.resources.set("quota", "0.5").unwrap();
        change.replicas = Some(2);
        let was = json!({"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}});
        let text = change.patch(&was, 3).unwrap().to_string();
        for part in [
            r#""cpu":"500m""#,
            r#""throng/start":"3""#,
            r#""replicas":2"#,
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(change.patch(&json!({}), 1).is_err());
    }
}
