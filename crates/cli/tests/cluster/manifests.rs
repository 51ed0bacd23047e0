//! The objects of a fleet, as the API server checks them, and the image of `throng` in pods as they
//! ask for: any user but root, and files that cannot be changed.

use std::collections::BTreeMap;

use lab::kubernetes::{Options, manifest};
use serde_json::{Value, json};

use crate::bed::{Cluster, IMAGE};

/// The user that a namespace of OpenShift might give to its pods.
const SOME_USER: u32 = 1_000_660_000;
/// Files of a Secret that are hard to write: what YAML could take for something else.
const FILES: [(&str, &str); 7] = [
    (
        "ca.pem",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    ),
    ("no", "no"),
    ("number", "0x1F"),
    ("empty", ""),
    ("spaces", "  two before\n\n  and\ttwo behind  \r\n\n"),
    ("unusual", "\u{7f}\u{85}\u{2028}\u{feff}ä: # - {}\n"),
    ("json", "{\"rate\": 1000, \"names\": \"a\\nb\"}\n"),
];

/// A namespace that takes only restricted pods, and says so of whatever would make others.
pub(crate) fn restricted(cluster: &Cluster, name: &str) {
    cluster.apply(&format!(
        "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n  labels:\n    \
         pod-security.kubernetes.io/enforce: restricted\n    \
         pod-security.kubernetes.io/warn: restricted\n"
    ));
}

fn options(namespace: &str) -> Options {
    let mut options = Options::new("throng-a1b2c3", 3, IMAGE);
    options.namespace = Some(namespace.to_owned());
    options
}

/// A fleet with all options set.
fn all_options(namespace: &str) -> Options {
    let mut options = options(namespace);
    options.agents_min = 2;
    options.cpus = 0.5;
    options.memory = "1.5Gi".to_owned();
    options.node_selector = BTreeMap::from([("pool".to_owned(), "load".to_owned())]);
    let tolerations = ["load", "load=dns:NoSchedule", ":NoExecute"];
    options.tolerations = tolerations.map(|it| it.parse().unwrap()).to_vec();
    options.away_from = vec![("k8s-app".to_owned(), "kube-dns".to_owned())];
    options
}

fn files() -> BTreeMap<String, String> {
    let owned = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
    FILES.map(owned).into()
}

#[test]
fn manifests_are_valid_and_restricted_pod_security_has_nothing_to_say() {
    let cluster = Cluster::shared();
    let namespace = "manifests";
    restricted(cluster, namespace);
    let check = "kubectl apply --dry-run=server --validate=strict -f -";
    for options in [options(namespace), all_options(namespace)] {
        let yaml = manifest::yaml(&options, &files(), Some("setup"));
        let checked = cluster.shell(check, &yaml);
        assert_eq!(checked.stderr, "", "{yaml}");
        let objects = [
            "secret/throng-a1b2c3",
            "service/throng-a1b2c3",
            "job.batch/throng-a1b2c3-lead",
            "job.batch/throng-a1b2c3-agents",
        ];
        let made = objects.map(|object| format!("{object} created (server dry run)\n"));
        assert_eq!(checked.succeeded(), made.concat());
    }
    // It would have something to say of this one.
    let mut options = options(namespace);
    options.host_network = true;
    let checked = cluster.shell(check, &manifest::yaml(&options, &files(), None));
    let warning = "would violate PodSecurity \"restricted:latest\": host namespaces";
    assert!(checked.stderr.contains(warning), "{}", checked.stderr);
    checked.succeeded();
}

#[test]
fn yaml_is_read_back_as_what_was_written() {
    let cluster = Cluster::shared();
    let options = all_options("default");
    let setup = files()["json"].clone();
    let yaml = manifest::yaml(&options, &files(), Some(&setup));
    let read = "kubectl create --dry-run=client --output=json -f -";
    let read = cluster.shell(read, &yaml).succeeded();
    let read: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(&read)
        .into_iter()
        .collect();
    let written = [
        manifest::secret(&options, &files(), Some(&setup)),
        manifest::service(&options),
        manifest::lead_job(&options),
        manifest::agents_job(&options),
    ];
    assert_eq!(read.unwrap(), written, "{yaml}");
}

/// The lead's Job with other arguments, as a user whom nobody knows.
fn job_of(arguments: &Value, name: &str, namespace: &str) -> Value {
    let mut options = options(namespace);
    options.name = name.to_owned();
    let mut job = manifest::lead_job(&options);
    let pod = &mut job["spec"]["template"]["spec"];
    pod["securityContext"]["runAsUser"] = json!(SOME_USER);
    pod["containers"][0]["args"] = arguments.clone();
    job
}

#[test]
fn the_image_runs_as_any_user_without_rights_and_without_files_to_change() {
    let cluster = Cluster::shared();
    let namespace = "any-user";
    restricted(cluster, namespace);
    for (name, arguments, says) in [
        ("version", json!(["--version"]), "throng "),
        (
            "self-test",
            json!([
                "run",
                "--duration",
                "1s",
                "--rate",
                "1000",
                "--format",
                "json"
            ]),
            "\"responses\"",
        ),
        // Names are looked up by the C library's own means.
        (
            "look-up",
            json!([
                "run",
                "--server",
                "kube-dns.kube-system.svc",
                "--random-labels",
                "cluster.local",
                "--duration",
                "1s",
                "--rate",
                "10"
            ]),
            "10.96.0.10",
        ),
    ] {
        let options = Options {
            name: name.to_owned(),
            ..options(namespace)
        };
        let secret = manifest::secret(&options, &files(), None);
        let objects = [secret, job_of(&arguments, name, namespace)];
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let applied = cluster.shell("kubectl apply -f -", &list.to_string());
        assert_eq!(applied.stderr, "", "{name}");
        let ended = "get pods -n any-user -o jsonpath={.items[*].status.phase} -l";
        let of_run = format!("{ended} app.kubernetes.io/instance={name}");
        let wait = format!(
            "until kubectl {of_run} | grep -qE 'Succeeded|Failed'; do :; done; \
             kubectl logs -n {namespace} job/{name}-lead"
        );
        let log = cluster.shell(&wait, "").succeeded();
        assert!(log.contains(says), "{name}: {log}");
    }
}
