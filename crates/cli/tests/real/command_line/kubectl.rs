//! What a fleet asks of `kubectl`, where the API server is too busy to answer; a script takes the
//! place of `kubectl`.

use std::path::Path;
use std::process::{Command, Stdio};

use measure::record::{Agent, Placement};
use measure::{AbsentAgent, RunRecord, absent};
use serde_json::{Value, json};
use testing::example;
use testing::folder::Folder;
use testing::program::{Finished, execute, processes_in};
use testing::wait;

use crate::process::{THRONG, throng};
use crate::running::Running;

/// Answers the commands by their number; `ANSWERS` has those of `create`. `made` is what there is,
/// as `get` prints it, `asked-N` what `create` was given.
const KUBECTL: &str = r#"#!/bin/bash
cd FOLDER
echo "$*" >>commands
input=$(cat)
# The first object of a list.
first=${input#'{"apiVersion":"v1","items":['}
first=${first%%'},{"apiVersion":"'*}}
first=${first%'],"kind":"List"}}'}
there() { printf '%s' "${1/'"metadata":{'/'"metadata":{"uid":"number-1",'}" >>made; }
fails() { echo "$1" >&2; exit 1; }
hangs() { echo "$$" >hanging.new; mv hanging.new hanging; tail -f /dev/null; }
case $* in
  *' auth can-i '*) echo yes ;;
  *' create '*)
    number=$(($(cat number 2>/dev/null) + 1))
    echo $number >number
    printf '%s' "$input" >asked-$number
    case $number in ANSWERS esac ;;
  *' get --filename'*) cat made 2>/dev/null || : ;;
  *' get jobs,pods '*) fails 'Error from server (Forbidden): pods is forbidden' ;;
esac
"#;

/// Writes a script that takes the place of `kubectl`, and returns its path.
fn kubectl(folder: &Folder, script: &str) -> String {
    let script = script.replace("FOLDER", &folder.path(""));
    let path = folder.write("kubectl", script);
    execute(&format!("chmod +x {path}")).succeeded();
    path
}

/// Runs a fleet with such a `kubectl`.
fn fleet(folder: &Folder, answers: &str) -> Finished {
    throng(&fleet_run(folder, answers))
}

fn fleet_run(folder: &Folder, answers: &str) -> String {
    fleet_with(folder, &KUBECTL.replace("ANSWERS", answers))
}

fn fleet_with(folder: &Folder, script: &str) -> String {
    let kubectl = kubectl(folder, script);
    format!(
        "fleet run --kubectl {kubectl} --name busy --image throng:1 --agents 2 -- \
         run --server 192.0.2.1 --random-labels example --rate 10 --duration 1s"
    )
}

/// The same, which goes on.
fn begin(line: &str) -> Running {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", THRONG]);
    command.args(line.split_whitespace()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Running::from_command(command)
}

fn commands(folder: &Folder) -> String {
    std::fs::read_to_string(folder.path("commands")).unwrap()
}

/// The objects that an attempt was to make.
fn asked(folder: &Folder, number: u32) -> Vec<Value> {
    let list = std::fs::read(folder.path(&format!("asked-{number}"))).unwrap();
    let list: Value = serde_json::from_slice(&list).unwrap();
    list["items"].as_array().unwrap().clone()
}

fn names(objects: &[Value]) -> Vec<String> {
    let name = |it: &Value| format!("{}/{}", it["kind"], it["metadata"]["name"]).replace('"', "");
    objects.iter().map(name).collect()
}

fn marks(objects: &[Value]) -> Vec<&Value> {
    let marks = objects.iter().map(|it| &it["metadata"]["annotations"]);
    marks.collect()
}

#[test]
fn objects_are_made_once_where_answers_are_lost() {
    let folder = Folder::new("kubectl-busy");
    let answers = r#"
      1) fails 'Unable to connect to the server: net/http: TLS handshake timeout' ;;
      2) there "$first"; fails 'Error from server (Timeout): the server did not answer in time' ;;
      3) there "$first"; fails 'Error from server: etcdserver: request timed out' ;;
      *) printf '%s' "$input" ;;"#;
    let finished = fleet(&folder, answers);
    let said = &finished.stderr;
    assert!(said.contains("run busy: "), "{said}");
    assert!(said.contains("(Forbidden): pods is forbidden"), "{said}");
    let attempts: Vec<Vec<Value>> = (1..=4).map(|number| asked(&folder, number)).collect();
    assert_eq!(names(&attempts[0]), ["Job/busy-lead"]);
    assert_eq!(attempts[1], attempts[0]);
    // All others, then those that are missing, as they were.
    let [first, missing @ ..] = attempts[2].as_slice() else {
        panic!("{attempts:?}");
    };
    assert_eq!(attempts[3], missing);
    assert_eq!(missing.len(), 4, "{:?}", names(missing));
    assert!(!Path::new(&folder.path("asked-5")).exists());
    let mut all = marks(&attempts[2]);
    all.dedup();
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all, marks(&attempts[0]));
    // The owner is the object that there was, though its making had no answer.
    let owner = &first["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["uid"], &owner["name"]),
        (&"number-1".into(), &"busy-lead".into())
    );
}

#[test]
fn objects_of_another_run_are_not_taken_for_lost_ones() {
    let folder = Folder::new("kubectl-other");
    let other = r#"{"kind":"Job","metadata":{"name":"busy-lead","annotations":{}}}"#;
    folder.write("made", other);
    let answers = r#"
      1) fails 'Error from server (ServiceUnavailable): the server cannot handle the request' ;;
      *) fails 'Error from server (AlreadyExists): jobs.batch "busy-lead" already exists' ;;"#;
    let finished = fleet(&folder, answers);
    let said = &finished.stderr;
    assert!(said.contains("AlreadyExists"), "{said}");
    assert_ne!(finished.code, Some(0));
    let commands = std::fs::read_to_string(folder.path("commands")).unwrap();
    assert_eq!(commands.matches(" create ").count(), 2, "{commands}");
    assert!(!commands.contains("delete"), "{commands}");
}

#[test]
fn what_is_refused_is_not_asked_again() {
    let folder = Folder::new("kubectl-refused");
    let answers = "*) fails 'Error from server (Forbidden): jobs.batch is forbidden' ;;";
    let finished = fleet(&folder, answers);
    assert_ne!(finished.code, Some(0));
    let commands = std::fs::read_to_string(folder.path("commands")).unwrap();
    assert_eq!(commands.lines().count(), 1, "{commands}");
}

/// The signal ends a call without an answer, and with it the command; what was made goes, but not
/// what another command has made.
#[test]
fn a_signal_ends_the_making_of_objects() {
    let other = r#"{"kind":"Job","metadata":{"name":"busy-lead","annotations":{}}}"#;
    for (case, answers, made, removes) in [
        ("first", r#"*) there "$first"; hangs ;;"#, "", true),
        (
            "others",
            r#"1) there "$first"; cat made ;; *) hangs ;;"#,
            "",
            true,
        ),
        ("nothing", "*) hangs ;;", "", false),
        ("other", "*) hangs ;;", other, false),
    ] {
        let folder = Folder::new(&format!("kubectl-signal-{case}"));
        folder.write("made", made);
        let mut running = begin(&fleet_run(&folder, answers));
        wait::for_file(folder.path("hanging"));
        running.signal("INT");
        let (code, _, said) = running.ended();
        assert_eq!(code, Some(130), "{case}: {said}");
        assert_eq!(said, "interrupted: removing run busy\n", "{case}");
        let commands = commands(&folder);
        let delete = "app.kubernetes.io/instance=busy --wait=true";
        assert_eq!(commands.contains(delete), removes, "{case}: {commands}");
        let place = folder.path("");
        wait::until("the end of kubectl", || {
            processes_in(Path::new(&place)).is_empty()
        });
    }
}

/// The run of another command is left alone by the first signal where it is not known to run.
#[test]
fn a_signal_before_an_attached_run_is_seen_leaves_it() {
    let folder = Folder::new("kubectl-attach-early");
    let script = "#!/bin/bash\ncd FOLDER\necho \"$*\" >>commands\n>hanging\ntail -f /dev/null\n";
    let kubectl = kubectl(&folder, script);
    let mut running = begin(&format!("fleet attach busy --kubectl {kubectl}"));
    wait::for_file(folder.path("hanging"));
    running.signal("INT");
    let (code, _, said) = running.ended();
    assert_eq!(code, Some(130), "{said}");
    let expected = "error: interrupted: run busy is left as it is\n\
                    hint: the run may go on: `throng fleet attach busy`, or \
                    `throng fleet stop busy`\n";
    assert_eq!(said, expected);
    let asked = commands(&folder);
    assert_eq!(asked.lines().count(), 1, "{asked}");
}

#[test]
fn a_second_signal_ends_the_removal_too() {
    let folder = Folder::new("kubectl-signals");
    let answers = r#"*) there "$first"; hangs ;;"#;
    let line = fleet_run(&folder, answers);
    let script = std::fs::read_to_string(folder.path("kubectl")).unwrap();
    let (first, last) = script.rsplit_once("esac").unwrap();
    folder.write("kubectl", format!("{first}  delete*) hangs ;;\nesac{last}"));
    let mut running = begin(&line);
    wait::for_file(folder.path("hanging"));
    std::fs::remove_file(folder.path("hanging")).unwrap();
    running.signal("INT");
    wait::for_file(folder.path("hanging"));
    running.signal("INT");
    let (code, _, said) = running.ended();
    assert_eq!(code, Some(130), "{said}");
    let expected = "interrupted: removing run busy\n\
                    error: interrupted: run busy may still have objects there\n\
                    hint: `throng fleet stop busy` removes them\n";
    assert_eq!(said, expected);
}

/// Has the result of a run, and what the cluster knows of its pods and of its target; `FORBIDDEN`
/// are the commands that this user has no right to.
const RESULT: &str = r#"#!/bin/bash
cd FOLDER
echo "$*" >>commands
none='{"kind":"List","items":[]}'
case $* in
  FORBIDDEN) echo 'Error from server (Forbidden): pods is forbidden' >&2; exit 1 ;;
  *' get jobs,pods '*|*' get jobs,pods,services,secrets '*) cat pods ;;
  *' get services '*) cat services ;;
  *' get pods '*' --selector=k8s-app=dns '*) cat backends ;;
  *' get pods '*) echo "$none" ;;
  *' fleet result') printf '{"code":0,"files":{"record.json":{"length":%s,"hash":"%s"}}}' \
    "$(stat -c %s record.json)" "$(sha256sum <record.json | cut -d ' ' -f 1)" ;;
  *' fleet part '*) cat record.json ;;
  *' fleet interrupt') >interrupted ;;
  logs*) echo 'the run has begun'; exec tail -f /dev/null ;;
esac
"#;

/// A run of three agents on nodes n0 to n2, without a fourth, whose target is a Service.
fn result_of_fleet() -> RunRecord {
    let mut record = example::record(vec![example::interval(0, &[(1_000_000, 500)])]);
    let agents = (0..3).map(|number: u32| Agent {
        id: number.to_string(),
        placement: Some(Placement {
            node: Some(format!("n{number}")),
            pod: Some(format!("busy-agents-{number}-x")),
            ..Placement::default()
        }),
        ..record.agents[0].clone()
    });
    record.agents = agents.collect();
    record.agent_count = 3;
    record.scenario.target = "10.96.0.53:53".to_owned();
    record.absent_agents = vec![AbsentAgent {
        index: 3,
        why: None,
    }];
    record.warnings = Vec::from_iter(absent::warning(&record.absent_agents, 3));
    record
}

fn pod(component: &str, index: Option<u32>, status: &Value) -> Value {
    let name = index.map_or("busy-lead-x".to_owned(), |it| format!("busy-agents-{it}-x"));
    let index = index.map(|it| it.to_string());
    json!({
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {
                "app.kubernetes.io/component": component,
                "app.kubernetes.io/instance": "busy",
            },
            "annotations": {"batch.kubernetes.io/job-completion-index": index},
        },
        "status": status,
    })
}

/// Fetches that result with such a `kubectl`: the record, and what it was asked.
fn fetched(name: &str, forbidden: &str) -> (RunRecord, String) {
    let folder = Folder::new(name);
    let flags = flags(&folder, &RESULT.replace("FORBIDDEN", forbidden));
    throng(&format!("fleet fetch {flags}")).succeeded();
    let record = std::fs::read_to_string(folder.path("out/record.json")).unwrap();
    (RunRecord::from_json(&record).unwrap(), commands(&folder))
}

/// The flags of a command for that run, with such a `kubectl`.
fn flags(folder: &Folder, script: &str) -> String {
    folder.write("record.json", result_of_fleet().to_json());
    let unscheduled = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available",
    });
    let pods = [
        pod("lead", None, &json!({"phase": "Running"})),
        pod("agent", Some(0), &json!({"phase": "Succeeded"})),
        pod(
            "agent",
            Some(3),
            &json!({"phase": "Pending", "conditions": [unscheduled]}),
        ),
    ];
    folder.write("pods", json!({"kind": "List", "items": pods}).to_string());
    let service = json!({
        "metadata": {"namespace": "dns", "name": "resolver"},
        "spec": {"selector": {"k8s-app": "dns"}},
    });
    folder.write("services", json!({"items": [service]}).to_string());
    let backends = ["n1", "n3"].map(|node| {
        let metadata = json!({"namespace": "dns", "name": format!("resolver-{node}")});
        json!({"metadata": metadata, "spec": {"nodeName": node}})
    });
    folder.write("backends", json!({"items": backends}).to_string());
    let kubectl = kubectl(folder, script);
    let output = folder.path("out");
    format!("busy --kubectl {kubectl} --output {output}")
}

#[test]
fn a_signal_ends_a_fetch_which_another_one_repeats() {
    let folder = Folder::new("kubectl-fetch-signal");
    let hangs = ">hanging; exec tail -f /dev/null";
    let script = RESULT.replace("FORBIDDEN", "none");
    let flags = flags(
        &folder,
        &script.replace("cat record.json ;;", &format!("{hangs} ;;")),
    );
    let mut running = begin(&format!("fleet fetch {flags}"));
    wait::for_file(folder.path("hanging"));
    running.signal("INT");
    let (code, _, said) = running.ended();
    assert_eq!(code, Some(130), "{said}");
    let expected = "error: interrupted: the result of run busy is not all here\n\
                    hint: `throng fleet fetch busy` tries again\n";
    assert_eq!(said, expected);
    let asked = commands(&folder);
    assert!(!asked.contains("delete"), "{asked}");
    kubectl(&folder, &script);
    throng(&format!("fleet fetch {flags}")).succeeded();
    assert!(commands(&folder).contains("delete"));
}

#[test]
fn the_second_signal_removes_a_run_that_goes_on() {
    let folder = Folder::new("kubectl-attach-signals");
    let flags = flags(&folder, &RESULT.replace("FORBIDDEN", "none"));
    let mut running = begin(&format!("fleet attach {flags}"));
    running.wait_for("the run has begun");
    running.signal("INT");
    running.wait_for("ending the run; its result comes");
    wait::for_file(folder.path("interrupted"));
    running.signal("INT");
    let (code, _, said) = running.ended();
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(said, "interrupted: removing run busy\n");
    let asked = commands(&folder);
    for word in [" fleet interrupt", "delete "] {
        assert_eq!(asked.matches(word).count(), 1, "{asked}");
    }
}

#[test]
fn fetched_record_names_shared_nodes_and_absent_pods() {
    let (record, _) = fetched("kubectl-fetch", "none");
    let why = record.absent_agents[0].why.as_deref();
    assert_eq!(
        why,
        Some("pod pending: Unschedulable: 0/3 nodes are available")
    );
    let [absent, shared] = record.warnings.as_slice() else {
        panic!("{:?}", record.warnings)
    };
    let expected = "3 of 4 agents took part";
    assert!(absent.starts_with(expected), "{absent}");
    let expected = "by index: 3 (pod pending: Unschedulable: 0/3 nodes are available)";
    assert!(absent.ends_with(expected), "{absent}");
    let expected = "share node n1 (pods of 10.96.0.53 there: dns/resolver-n1)";
    assert!(shared.contains(expected), "{shared}");
}

/// Without rights in all namespaces those of the run are looked into, and without any there is no
/// warning, and no error.
#[test]
fn missing_rights_cost_a_warning_and_no_result() {
    let (record, commands) = fetched("kubectl-rights", "*--all-namespaces*");
    assert!(record.warnings[1].contains("share node n1"), "{commands}");
    let (record, commands) = fetched("kubectl-no-rights", "*' get pods '*|*' get services '*");
    assert_eq!(record.warnings.len(), 1, "{:?}", record.warnings);
    assert_eq!(commands.matches(" get pods ").count(), 2, "{commands}");
}

/// Prints a half and a quarter before it fails, then a half as if that were all, and the rest.
const CUT: &str = r#"
    echo x >>parts
    case $(wc -l <parts) in
      1) head -c 100000 record.json; fails ;;
      2) head -c 50000 record.json; fails ;;
      3) head -c 100000 record.json ;;
      *) tail -c +$((${!#} + 1)) record.json ;;
    esac ;;"#;

#[test]
fn a_fetch_that_is_cut_has_the_same_octets() {
    let folder = Folder::new("kubectl-cut");
    let fails = "{ echo 'error: connection reset by peer' >&2; exit 1; }";
    let cut = CUT.replace("fails", fails);
    let script = RESULT.replace("FORBIDDEN", "none");
    let flags = flags(&folder, &script.replace("cat record.json ;;", &cut));
    // No record, so that nothing is added to it.
    let content: String = (0..40_000).map(|number| format!("{number}\n")).collect();
    folder.write("record.json", &content);
    throng(&format!("fleet fetch {flags}")).succeeded();
    let fetched = std::fs::read_to_string(folder.path("out/record.json")).unwrap();
    assert!(fetched == content, "{} octets", fetched.len());
    let asked = commands(&folder);
    let starts = asked.lines().filter_map(|it| it.split_once(" --from "));
    let starts: Vec<&str> = starts.map(|(_, from)| from).collect();
    assert_eq!(starts, ["0", "0", "0", "100000"]);
}

#[test]
fn a_run_that_is_not_there_or_has_lost_its_lead_is_not_waited_for() {
    let folder = Folder::new("kubectl-gone");
    let kubectl = kubectl(&folder, &RESULT.replace("FORBIDDEN", "none"));
    let failed = json!({"conditions": [{"type": "Failed", "status": "True"}]});
    let mut job = pod("lead", None, &failed);
    job["kind"] = json!("Job");
    let output = folder.path("out");
    for (objects, code, what) in [
        (json!([]), 2, "there is no run busy in this namespace"),
        (
            json!([job]),
            1,
            "the lead's pod is gone, and the result with it",
        ),
    ] {
        let list = json!({"kind": "List", "items": objects});
        folder.write("pods", list.to_string());
        for command in ["attach", "fetch"] {
            let finished = throng(&format!(
                "fleet {command} busy --kubectl {kubectl} --output {output}"
            ));
            let said = &finished.stderr;
            assert_eq!(finished.code, Some(code), "{command}: {said}");
            assert!(said.contains(what), "{command}: {said}");
        }
    }
    let status = throng(&format!("fleet status --kubectl {kubectl}")).succeeded();
    assert_eq!(status, "busy  lead gone, 0 of 0 agents run\n");
}

/// Jobs of a manifest own nothing: Kubernetes removes them and their pods alone.
#[test]
fn objects_without_jobs_are_listed_and_removed() {
    let folder = Folder::new("kubectl-left");
    let kubectl = kubectl(&folder, &RESULT.replace("FORBIDDEN", "none"));
    let mut secret = pod("lead", None, &Value::Null);
    secret["kind"] = json!("Secret");
    let list = |items: &[Value]| json!({"kind": "List", "items": items}).to_string();
    folder.write("pods", list(&[secret]));
    let status = throng(&format!("fleet status --kubectl {kubectl}")).succeeded();
    assert_eq!(status, "busy  lead gone, 0 of 0 agents run\n");
    throng(&format!("fleet stop busy --kubectl {kubectl}")).succeeded();
    let removes = "delete jobs,pods,services,secrets --selector=";
    assert_eq!(commands(&folder).matches(removes).count(), 1);
    folder.write("pods", list(&[]));
    let stop = throng(&format!("fleet stop busy --kubectl {kubectl}"));
    stop.refused_with("there is no run busy", "throng fleet status");
    assert_eq!(commands(&folder).matches(removes).count(), 1);
}

/// Asked once, and the cure is said; a cluster that has answered is waited for.
#[test]
fn a_cluster_that_is_not_there_is_not_waited_for() {
    let refused = "The connection to the server 127.0.0.1:1 was refused - did you specify the \
                   right host or port?";
    let nowhere = "Unable to connect to the server: dial tcp: lookup none.example: no such host";
    let unset = "The connection to the server localhost:8080 was refused - did you specify the \
                 right host or port?";
    let missing = "error: stat /no/such/file: no such file or directory";
    for (number, (says, hint)) in [
        (refused, "kubectl cluster-info"),
        (nowhere, "kubectl cluster-info"),
        (unset, "set KUBECONFIG"),
        (missing, "set KUBECONFIG"),
    ]
    .into_iter()
    .enumerate()
    {
        let folder = Folder::new(&format!("kubectl-nowhere-{number}"));
        let fails = format!("echo '{says}' >&2\nexit 1\n");
        let script = format!("#!/bin/bash\ncd FOLDER\necho x >>commands\n{fails}");
        let kubectl = kubectl(&folder, &script);
        for command in ["status", "attach busy", "fetch busy", "stop busy"] {
            let finished = throng(&format!("fleet {command} --kubectl {kubectl}"));
            finished.refused_with(says.trim_start_matches("error: "), hint);
            assert_eq!(commands(&folder), "x\n", "{command}");
            std::fs::remove_file(folder.path("commands")).unwrap();
        }
    }
}

/// Has a lead that is as `pods` says, and its log.
const LED: &str = r#"#!/bin/bash
cd FOLDER
echo "$*" >>commands
case $* in
  *' create '*) cat ;;
  *' get jobs,pods '*) cat pods ;;
  'logs '* | *' logs '*) cat log ;;
esac
"#;

/// A folder for that script.
fn led(name: &str, status: &Value, log: &str) -> Folder {
    let folder = Folder::new(name);
    let pods = json!({"kind": "List", "items": [pod("lead", None, status)]});
    folder.write("pods", pods.to_string());
    folder.write("log", log);
    folder
}

fn failed(code: u8) -> Value {
    let ended = json!({"terminated": {"reason": "Error", "exitCode": code}});
    json!({"phase": "Failed", "containerStatuses": [{"state": ended}]})
}

/// What a lead of this version says, and why it ends.
const FULL: &str = concat!(
    "throng ",
    env!("CARGO_PKG_VERSION"),
    " leads\nerror: first\nhint: of the first\nerror: no room\nhint: make some\n"
);

/// A lead that runs or has ended, what its log begins with, and what is said of it.
#[test]
fn an_image_with_another_program_is_named_and_nothing_is_left() {
    let own = env!("CARGO_PKG_VERSION");
    let running = json!({"phase": "Running"});
    let unknown = "error: unexpected argument '--inputs' found";
    let of_other = format!("the image has throng 0.0.9, and this is {own}");
    let of_unknown =
        format!("the image has another program than throng {own}, which says `{unknown}`");
    for (number, status, log, what) in [
        (0, &running, "throng 0.0.9 leads", &of_other),
        (1, &failed(2), "throng 0.0.9 leads", &of_other),
        (2, &running, unknown, &of_unknown),
        (3, &failed(2), unknown, &of_unknown),
    ] {
        let folder = led(&format!("kubectl-image-{number}"), status, log);
        let finished = throng(&fleet_with(&folder, LED));
        let said = &finished.stderr;
        let last = format!("error: {what}\nhint: give --image one with throng {own}\n");
        assert!(said.ends_with(&last), "{number}: {said}");
        assert_eq!(finished.code, Some(2), "{number}: {said}");
        let commands = commands(&folder);
        assert!(commands.contains("delete jobs,pods,"), "{commands}");
    }
}

#[test]
fn a_run_of_another_version_is_left_to_that() {
    let running = json!({"phase": "Running"});
    let folder = led("kubectl-version", &running, "throng 0.0.9 leads");
    let kubectl = kubectl(&folder, LED);
    let finished = throng(&format!("fleet attach busy --kubectl {kubectl}"));
    finished.refused_with("run busy has throng 0.0.9", "follow it with throng 0.0.9");
    let commands = commands(&folder);
    assert!(!commands.contains("delete"), "{commands}");
}

#[test]
fn a_lead_that_ends_without_a_result_says_why_last() {
    let folder = led("kubectl-full", &failed(1), FULL);
    let finished = throng(&fleet_with(&folder, LED));
    let said = &finished.stderr;
    let last = "error: the lead of run busy has ended: Error, exit code 1: no room\n\
                hint: make some\n";
    assert!(said.ends_with(last), "{said}");
    assert_eq!(finished.code, Some(1), "{said}");
}

/// The Job of the lead has made no pod, and why is not answered.
#[test]
fn a_signal_ends_the_question_why_a_pod_is_missing() {
    let folder = Folder::new("kubectl-unmade-signal");
    let hangs = "case $* in\n  *' get events '*) >hanging; exec tail -f /dev/null ;;";
    let mut job = pod("lead", None, &json!({}));
    job["kind"] = json!("Job");
    let list = json!({"kind": "List", "items": [job]});
    folder.write("pods", list.to_string());
    let line = fleet_with(&folder, &LED.replace("case $* in", hangs));
    let mut running = begin(&line);
    wait::for_file(folder.path("hanging"));
    running.signal("INT");
    let (code, _, said) = running.ended();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.ends_with("interrupted: removing run busy\n"), "{said}");
    let asked = commands(&folder);
    assert!(asked.contains("delete jobs,pods,"), "{asked}");
}
