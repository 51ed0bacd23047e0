use super::*;

fn options() -> Options {
    let mut options = Options::new("throng-a1b2c3", 3, "registry.example/throng:1");
    options.namespace = Some("load".to_owned());
    options
}

fn files() -> BTreeMap<String, String> {
    let certificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    BTreeMap::from([("ca.pem".to_owned(), certificate.to_owned())])
}

fn pod_of(job: &Value) -> &Value {
    &job["spec"]["template"]["spec"]
}

#[test]
fn pods_are_such_as_restricted_pod_security_demands() {
    for job in [lead_job(&options()), agents_job(&options())] {
        let pod = pod_of(&job);
        let security = json!({
            "runAsNonRoot": true,
            "seccompProfile": {"type": "RuntimeDefault"},
        });
        // No user is named: OpenShift gives each namespace its own.
        assert_eq!(pod["securityContext"], security);
        let container = &pod["containers"][0];
        let security = json!({
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        });
        assert_eq!(container["securityContext"], security);
        assert_eq!(pod["containers"].as_array().unwrap().len(), 1);
        for off in ["automountServiceAccountToken", "enableServiceLinks"] {
            assert_eq!(pod[off], false, "{off}");
        }
        for unset in ["hostNetwork", "hostPID", "serviceAccountName"] {
            assert!(pod[unset].is_null(), "{unset}");
        }
        let volumes = json!([
            {"name": "keys", "secret": {"secretName": "throng-a1b2c3"}},
            {"name": "tmp", "emptyDir": {}},
        ]);
        assert_eq!(pod["volumes"], volumes);
        let template = &job["spec"]["template"]["metadata"];
        assert_eq!(template["labels"]["sidecar.istio.io/inject"], "false");
        assert_eq!(template["annotations"]["sidecar.istio.io/inject"], "false");
        assert_eq!(template["annotations"]["linkerd.io/inject"], "disabled");
    }
}

#[test]
fn the_lead_is_told_how_many_agents_come_and_agents_where_the_lead_is() {
    let mut options = options();
    (options.agents, options.agents_min) = (40, 38);
    let lead = lead_job(&options);
    let words = "fleet lead --listen [::]:7053 --agents 40 --min-agents 38 --agents-within 300s \
                 --keys /keys";
    let words: Vec<&str> = words.split(' ').collect();
    assert_eq!(pod_of(&lead)["containers"][0]["args"], json!(words));
    assert_eq!(lead["spec"]["backoffLimit"], 0);
    let agents = agents_job(&options);
    let arguments = |job: &Value| pod_of(job)["containers"][0]["args"].clone();
    let words = "fleet agent --connect throng-a1b2c3.load.svc:7053 --keys /keys";
    let words: Vec<&str> = words.split(' ').collect();
    assert_eq!(arguments(&agents), json!(words));
    options.namespace = None;
    assert_eq!(arguments(&agents_job(&options))[3], "throng-a1b2c3:7053");
    let environment = json!([
        {"name": "THRONG_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "THRONG_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]);
    assert_eq!(pod_of(&agents)["containers"][0]["env"], environment);
}

#[test]
fn each_agent_is_one_index_that_is_tried_again_only_if_the_cluster_took_it_away() {
    let job = agents_job(&options());
    let spec = &job["spec"];
    assert_eq!(spec["completionMode"], "Indexed");
    assert_eq!(
        (&spec["completions"], &spec["parallelism"]),
        (&json!(3), &json!(3))
    );
    assert_eq!(spec["backoffLimitPerIndex"], 0);
    assert_eq!(spec["podReplacementPolicy"], "Failed");
    let rules = &spec["podFailurePolicy"]["rules"];
    // The first that fits decides.
    assert_eq!(rules[0]["action"], "Ignore");
    assert_eq!(rules[0]["onPodConditions"][0]["type"], "DisruptionTarget");
    assert_eq!(rules[1]["action"], "FailIndex");
    assert_eq!(rules[1]["onExitCodes"]["values"], json!([4, 5]));
    assert_eq!(pod_of(&job)["restartPolicy"], "Never");
    assert_eq!(spec["ttlSecondsAfterFinished"], 3600);
    let resources = &pod_of(&job)["containers"][0]["resources"];
    assert_eq!(resources["requests"], resources["limits"]);
    assert_eq!(
        resources["limits"],
        json!({"cpu": "1000m", "memory": "512Mi"})
    );
}

#[test]
fn the_service_leads_to_the_lead_alone_and_before_it_is_ready() {
    let service = service(&options());
    let spec = &service["spec"];
    assert_eq!(spec["clusterIP"], "None");
    assert_eq!(spec["publishNotReadyAddresses"], true);
    let labels = |job: &Value| job["spec"]["template"]["metadata"]["labels"].clone();
    let (lead, agents) = (
        labels(&lead_job(&options())),
        labels(&agents_job(&options())),
    );
    let selector = spec["selector"].as_object().unwrap();
    assert!(selector.iter().all(|(key, value)| lead[key] == *value));
    assert!(!selector.iter().all(|(key, value)| agents[key] == *value));
}

#[test]
fn all_objects_have_the_labels_of_the_run_and_belong_to_the_leads_job() {
    let options = options();
    let objects = [
        secret(&options, &files(), None),
        service(&options),
        agents_job(&options),
    ];
    for object in objects.into_iter().chain([lead_job(&options)]) {
        let metadata = &object["metadata"];
        assert_eq!(metadata["namespace"], "load");
        assert_eq!(
            metadata["labels"]["app.kubernetes.io/instance"],
            "throng-a1b2c3"
        );
        assert_eq!(metadata["labels"]["app.kubernetes.io/name"], "throng");
        assert_eq!(metadata["labels"]["app.kubernetes.io/managed-by"], "throng");
        assert!(metadata["ownerReferences"].is_null());
        let owned = owned(object, "throng-a1b2c3", "0f3a");
        let owner = json!([{
            "apiVersion": "batch/v1", "kind": "Job", "name": "throng-a1b2c3-lead", "uid": "0f3a",
        }]);
        assert_eq!(owned["metadata"]["ownerReferences"], owner);
    }
}

#[test]
fn options_decide_on_which_nodes_agents_are() {
    let mut options = options();
    let agents = agents_job(&options);
    let plain = pod_of(&agents);
    for unset in ["nodeSelector", "tolerations", "affinity", "dnsPolicy"] {
        assert!(plain[unset].is_null(), "{unset}");
    }
    let spread = &plain["topologySpreadConstraints"][0];
    assert_eq!(spread["topologyKey"], "kubernetes.io/hostname");
    assert_eq!(spread["whenUnsatisfiable"], "ScheduleAnyway");
    options.host_network = true;
    options.cpus = 1.5;
    options.node_selector = BTreeMap::from([("pool".to_owned(), "load".to_owned())]);
    options.tolerations = vec!["load=dns:NoSchedule".parse().unwrap()];
    options.away_from = vec![("k8s-app".to_owned(), "kube-dns".to_owned())];
    let agents = agents_job(&options);
    let pod = pod_of(&agents);
    assert_eq!(pod["hostNetwork"], true);
    assert_eq!(pod["dnsPolicy"], "ClusterFirstWithHostNet");
    assert_eq!(pod["nodeSelector"], json!({"pool": "load"}));
    assert_eq!(pod["tolerations"][0]["key"], "load");
    let limits = &pod["containers"][0]["resources"]["limits"];
    assert_eq!(limits["cpu"], "1500m");
    let away = &pod["affinity"]["podAntiAffinity"];
    let away = &away["requiredDuringSchedulingIgnoredDuringExecution"][0];
    assert_eq!(
        away["labelSelector"]["matchLabels"],
        json!({"k8s-app": "kube-dns"})
    );
    // The target may be in any namespace.
    assert_eq!(away["namespaceSelector"], json!({}));
    // The lead may be anywhere.
    assert!(pod_of(&lead_job(&options))["affinity"].is_null());
}

#[test]
fn yaml_has_all_objects_and_the_run_if_the_lead_is_to_start_by_itself() {
    let yaml = yaml(&options(), &files(), Some("{\"rate\": 1000}"));
    let kinds = yaml.lines().filter(|line| line.starts_with("kind: "));
    let kinds: Vec<&str> = kinds.collect();
    assert_eq!(
        kinds,
        ["kind: Secret", "kind: Service", "kind: Job", "kind: Job"]
    );
    let lines = [
        "stringData:\n  ca.pem: |\n    -----BEGIN CERTIFICATE-----\n    MIIB\n",
        "  setup: \"{\\\"rate\\\": 1000}\"\n",
        "        - args:\n            - fleet\n            - lead\n            - \"--listen\"\n",
        "  name: throng-a1b2c3-agents\n",
    ];
    for lines in lines {
        assert!(yaml.contains(lines), "{lines}\n{yaml}");
    }
    assert!(!yaml.contains("ownerReferences"), "{yaml}");
}
