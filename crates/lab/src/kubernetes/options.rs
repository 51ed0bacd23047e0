//! What a fleet in a cluster is to be.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What is appended to the name of a run for its agents' Job, whose pods append an index.
const NAME_OCTETS_MAX: usize = 63 - "-agents-99999".len();
/// The largest fleet: an index of each has at most five digits.
const AGENTS_MAX: u32 = 100_000;
const UNITS: [&str; 11] = ["", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3", "e6"];

/// A fleet, before anything of it is made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Options {
    /// Name of the run, by which all of its objects are named: a DNS label.
    pub name: String,
    /// Where it is made; unless given, where `kubectl` makes things by itself.
    pub namespace: Option<String>,
    /// How many agents there are.
    pub agents: u32,
    /// With how many the run begins, if the others do not come.
    pub agents_min: u32,
    /// The image of lead and agents, by a name that the nodes know.
    pub image: String,
    /// CPU time that each agent has, in CPUs: no less, and no more.
    pub cpus: f64,
    /// Memory that each agent has, as Kubernetes writes it: `512Mi`.
    pub memory: String,
    /// Labels that the nodes of agents have.
    pub node_selector: BTreeMap<String, String>,
    /// Taints that do not keep agents away.
    pub tolerations: Vec<Toleration>,
    /// Agents have the network of their node, not one of their pod.
    pub host_network: bool,
    /// Labels of the target's pods, of all namespaces: no agent is on a node that has one.
    pub away_from: Vec<(String, String)>,
    /// How long what has ended is kept for whoever looks at it, if nobody removes it.
    pub keep: Duration,
}

/// A taint of nodes that is tolerated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toleration {
    /// Any key, if there is none.
    pub key: Option<String>,
    /// Any value, if there is none.
    pub value: Option<String>,
    /// Any effect, if there is none.
    pub effect: Option<String>,
}

impl Options {
    /// A fleet with all else as it is by default.
    pub fn new(name: &str, agents: u32, image: &str) -> Options {
        Options {
            name: name.to_owned(),
            namespace: None,
            agents,
            agents_min: agents,
            image: image.to_owned(),
            cpus: 1.0,
            memory: "512Mi".to_owned(),
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            host_network: false,
            away_from: Vec::new(),
            keep: Duration::from_secs(3600),
        }
    }

    /// Refuses what no cluster would take; all else is the cluster's to say.
    ///
    /// # Errors
    /// Which option, and the cure.
    pub fn check(&self) -> anyhow::Result<()> {
        check_name(&self.name)?;
        let (agents, min) = (self.agents, self.agents_min);
        ensure!(
            (1..=AGENTS_MAX).contains(&agents),
            "--agents {agents}: there are 1 to {AGENTS_MAX} agents"
        );
        ensure!(
            (1..=agents).contains(&min),
            "--min-agents {min}: it is 1 to {agents}, as many as there are"
        );
        ensure!(
            !self.image.is_empty() && !self.image.contains(char::is_whitespace),
            "--image `{}` is no name of an image\nhint: write one such as \
             registry.example/throng:1",
            self.image
        );
        ensure!(
            (0.001..=1024.0).contains(&self.cpus),
            "--agent-cpus {}: an agent has 0.001 to 1024 CPUs",
            self.cpus
        );
        ensure!(
            is_quantity(&self.memory),
            "--agent-memory `{}` is not understood\nhint: write it as Kubernetes does, such as \
             512Mi",
            self.memory
        );
        Ok(())
    }
}

/// Refuses a name that is no DNS label, or too long for the names that are made of it.
fn check_name(name: &str) -> anyhow::Result<()> {
    let is_inner = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit();
    let first = name.bytes().next().unwrap_or_default();
    let last = name.bytes().last().unwrap_or_default();
    ensure!(
        first.is_ascii_lowercase()
            && is_inner(last)
            && name.bytes().all(|octet| is_inner(octet) || octet == b'-')
            && name.len() <= NAME_OCTETS_MAX,
        "`{name}` is no name for a run in Kubernetes\nhint: it has up to {NAME_OCTETS_MAX} of a-z, \
         0-9 and -, and begins with a letter"
    );
    Ok(())
}

fn is_quantity(text: &str) -> bool {
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let (number, unit) = match text.split_once('e') {
        Some((number, _)) => (number, &text[number.len()..]),
        None => (digits, &text[digits.len()..]),
    };
    UNITS.contains(&unit) && number.parse().is_ok_and(|number: f64| number > 0.0)
}

/// Reads `KEY=VALUE`, such as a label.
///
/// # Errors
/// It is none; with the cure.
pub fn label(text: &str) -> anyhow::Result<(String, String)> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = pair.with_context(|| {
        format!("`{text}` is no label\nhint: write KEY=VALUE, such as app=resolver")
    })?;
    Ok((key.to_owned(), value.to_owned()))
}

impl FromStr for Toleration {
    type Err = anyhow::Error;

    /// Reads `KEY[=VALUE][:EFFECT]`; without a key, any taint of that effect.
    fn from_str(text: &str) -> anyhow::Result<Toleration> {
        let (taint, effect) = match text.split_once(':') {
            Some((taint, effect)) => (taint, Some(effect)),
            None => (text, None),
        };
        let (key, value) = match taint.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (taint, None),
        };
        let is_effect = |it| ["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&it);
        let names_a_taint = !key.is_empty() || (value.is_none() && effect.is_some());
        ensure!(
            names_a_taint && effect.is_none_or(is_effect),
            "`{text}` is no toleration\nhint: write KEY, KEY=VALUE or KEY=VALUE:EFFECT with \
             NoSchedule, PreferNoSchedule or NoExecute"
        );
        let owned = |it: &str| it.to_owned();
        Ok(Toleration {
            key: Some(owned(key)).filter(|key| !key.is_empty()),
            value: value.map(owned),
            effect: effect.map(owned),
        })
    }
}

impl Toleration {
    /// As pods have it.
    pub(super) fn manifest(&self) -> Value {
        let mut toleration = match &self.value {
            Some(value) => json!({"operator": "Equal", "value": value}),
            None => json!({"operator": "Exists"}),
        };
        for (name, value) in [("key", &self.key), ("effect", &self.effect)] {
            if let Some(value) = value {
                toleration[name] = value.as_str().into();
            }
        }
        toleration
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change<'a> = &'a dyn Fn(&mut Options);

    #[test]
    fn options_that_no_cluster_takes_are_refused_with_the_cure() {
        let good = Options::new("throng-a1b2c3", 3, "registry.example/throng:1");
        good.check().unwrap();
        let changes: [(Change<'_>, &str); 12] = [
            (&|it| it.name = String::new(), "begins with a letter"),
            (&|it| it.name = "1-run".to_owned(), "begins with a letter"),
            (&|it| it.name = "run-".to_owned(), "begins with a letter"),
            (&|it| it.name = "Run".to_owned(), "begins with a letter"),
            (&|it| it.name = "r".repeat(51), "up to 50"),
            (&|it| it.agents = 0, "--agents 0"),
            (&|it| it.agents_min = 0, "--min-agents 0"),
            (&|it| it.agents_min = 4, "it is 1 to 3"),
            (&|it| it.image = "a b".to_owned(), "--image `a b`"),
            (&|it| it.cpus = f64::NAN, "--agent-cpus NaN"),
            (&|it| it.memory = "512MB".to_owned(), "such as 512Mi"),
            (&|it| it.memory = "-1Mi".to_owned(), "--agent-memory `-1Mi`"),
        ];
        for (change, says) in changes {
            let mut options = good.clone();
            change(&mut options);
            let error = options.check().unwrap_err().to_string();
            assert!(error.contains(says), "{says}: {error}");
        }
        for memory in ["1Gi", "0.5Gi", "1000000", "2e6", "128M"] {
            let options = Options {
                memory: memory.to_owned(),
                ..good.clone()
            };
            options.check().unwrap();
        }
    }

    #[test]
    fn tolerations_are_read_as_people_write_them() {
        for (text, manifest) in [
            ("load", json!({"operator": "Exists", "key": "load"})),
            (
                "load:NoExecute",
                json!({"operator": "Exists", "key": "load", "effect": "NoExecute"}),
            ),
            (
                "load=dns:NoSchedule",
                json!({"operator": "Equal", "key": "load", "value": "dns", "effect": "NoSchedule"}),
            ),
            (
                ":NoSchedule",
                json!({"operator": "Exists", "effect": "NoSchedule"}),
            ),
        ] {
            let toleration: Toleration = text.parse().unwrap();
            assert_eq!(toleration.manifest(), manifest, "{text}");
        }
        for text in ["", "=dns", "=dns:NoSchedule", "load:Never"] {
            let error = text.parse::<Toleration>().unwrap_err().to_string();
            assert!(error.contains("hint: write KEY"), "{text}: {error}");
        }
    }

    #[test]
    fn labels_have_a_key_and_a_value() {
        let read = label("k8s-app=kube-dns").unwrap();
        assert_eq!(read, ("k8s-app".to_owned(), "kube-dns".to_owned()));
        assert!(label("k8s-app").is_err() && label("=kube-dns").is_err());
    }
}
