//! `throng fleet`: a lead and its agents in pods of a namespace that allows them next to nothing.

use measure::RunRecord;
use measure::record::EndedBy;
use serde_json::Value;
use testing::due;
use testing::host::CpuTimes;
use testing::program::Finished;
use testing::same::assert_same_load;

use crate::Case;
use crate::bed::Cluster;

const PAGE: &str = include_str!("../../../../../docs/kubernetes.md");

pub(crate) const CASES: &[Case] = &[
    (
        "a fleet of three measures exactly and leaves nothing",
        exact,
    ),
    ("capacity, ramp, compare and replay run over pods", commands),
    ("a fleet has more names than a Secret takes", long),
    ("a fleet outlives the command that made it", attached),
    ("a fleet is ended by Ctrl-C, with its result", interrupted),
    ("a fleet is removed by a second Ctrl-C", interrupted_twice),
    (
        "a fleet is removed by Ctrl-C before it runs",
        interrupted_early,
    ),
    (
        "a fleet whose pods have too little memory says so",
        out_of_memory,
    ),
    (
        "metrics and page of the lead are read by the documented command",
        viewed,
    ),
    (
        "what keeps a fleet from running is said, and nothing is left",
        refused,
    ),
    ("a fleet without a cluster says what to do", unreached),
    (
        "pods that a quota refuses end a fleet soon, and the quota is named",
        beyond_quota,
    ),
    (
        "a right that a fleet lacks is named as a rule of the Role",
        without_rule,
    ),
    (
        "the documented commands do what is said, with the documented Role",
        documented,
    ),
];

/// The responder of a case is in the network of the nodes, outside of the cluster. `FOLDER` is
/// where the command writes.
const BEGIN: &str = r#"
set -eu
mkdir -p FOLDER && cd FOLDER
kubectl create namespace NAME >/dev/null
kubectl label namespace NAME pod-security.kubernetes.io/enforce=restricted >/dev/null
THRONG responder --listen udp:10.240.0.1:0,tcp:10.240.0.1:0 >responder &
responder=$!
trap 'kill $responder 2>/dev/null || :' EXIT
await_of $responder grep -q '10.240.0.1:' responder
server=$(grep -o '10.240.0.1:[0-9]*' responder | head -1)
printf 'one.example. A\ntwo.example. A\nthree.example. A\n' >names
fleet="THRONG fleet run --name NAME --namespace NAME --image throng:VERSION --agents 3"
fleet="$fleet --cpus 100m --memory 128Mi --output out -- run --server $server --names names"
"#;

/// Ends the responder, and shows what is left.
const END: &str = r#"
kill -INT $responder; wait $responder || :
kubectl --namespace NAME get jobs,pods,services,secrets --output=name >left 2>&1
"#;

/// What the lead says of agents that got no CPU for longer than it waits: a run on such a machine
/// shows nothing.
const STARVED: [&str; 7] = [
    "said nothing for ",
    "has not reported for ",
    "it had heard nothing for ",
    "its workers were stopped for ",
    " have ended no interval for ",
    "did not answer in time before the start",
    "heard of the start ",
];
const ATTEMPTS_MAX: u32 = 3;
/// On a machine whose CPUs were idle for more of the time, this is a fault.
const IDLE_MAX: f64 = 0.25;

/// Runs these lines of the shell, again if agents got no CPU; the folder that they ran in.
pub(crate) fn shell(cluster: &Cluster, name: &str, lines: &str) -> (Finished, String) {
    let mut attempts = 1;
    loop {
        let before = CpuTimes::now();
        let (finished, folder) = shell_once(cluster, name, lines);
        let is_busy = CpuTimes::now().idle_since(&before) <= IDLE_MAX;
        let said = std::fs::read_to_string(format!("{folder}/said")).unwrap_or_default();
        let is_starved = is_busy && STARVED.iter().any(|it| said.contains(it));
        if attempts == ATTEMPTS_MAX || !is_starved {
            return (finished, folder);
        }
        eprintln!("case {name}, attempt {attempts}: {said}");
        attempts += 1;
        cluster.kubectl(&format!("delete namespace {name}"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

/// Runs these lines of the shell once.
pub(crate) fn shell_once(cluster: &Cluster, name: &str, lines: &str) -> (Finished, String) {
    let folder = cluster.path(name);
    let throng = crate::process::THRONG;
    let text = format!("{BEGIN}{lines}{END}");
    let text = text.replace("FOLDER", &folder).replace("NAME", name);
    let text = text
        .replace("THRONG", throng)
        .replace("VERSION", env!("CARGO_PKG_VERSION"));
    let mut finished = cluster.shell(&text, "");
    for file in ["first", "said"] {
        if let Ok(said) = std::fs::read_to_string(format!("{folder}/{file}")) {
            finished.stderr += &format!("{file}:\n{said}");
        }
    }
    (finished, folder)
}

pub(crate) fn read(folder: &str, name: &str) -> String {
    let path = format!("{folder}/{name}");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn record(folder: &str) -> RunRecord {
    let text = std::fs::read_to_string(format!("{folder}/out/record.json"));
    // Of a run that has no result, why.
    let text = text.unwrap_or_else(|error| panic!("{folder}: {error}: {}", read(folder, "said")));
    RunRecord::from_json(&text).unwrap()
}

/// Queries that the responder received.
pub(crate) fn received(folder: &str) -> u64 {
    let printed = read(folder, "responder");
    let received = printed
        .lines()
        .find_map(|it| it.strip_prefix("queries received"));
    let received = received.and_then(|it| it.split_whitespace().next());
    let received = received.unwrap_or_else(|| panic!("{printed}"));
    number(received)
}

/// The number at the beginning of a text, such as `1,234 responses`.
fn number(text: &str) -> u64 {
    let number = text.split_whitespace().next().unwrap();
    number.replace(',', "").parse().unwrap()
}

/// The same load by one process and by three pods, whose manifest the API server takes as it is.
fn exact(cluster: &Cluster) {
    let run = "for node in n0 n1 n2; do kubectl label --overwrite node $node \
               topology.kubernetes.io/zone=zone-of-$node >>labelled; done\n\
               echo 'four.example. AAAA' >>names\n\
               flags='--clients 30 --per-client poisson:20 --duration 2s --timeout 20s --seed 5'\n\
               flags=\"$flags --workers 3 --record\"\n\
               manifest=${fleet/fleet run/fleet manifest}\n\
               ${manifest/--output out /} | kubectl apply --dry-run=server --filename=- >applied\n\
               THRONG run --server $server --names names --quiet $flags alone.json >/dev/null\n\
               $fleet $flags record.json >printed 2>said\n";
    let (finished, folder) = shell(cluster, "fleet-exact", run);
    finished.succeeded();
    let applied = read(&folder, "applied");
    let taken = applied.matches("created (server dry run)").count();
    assert_eq!(taken, 6, "{applied}");
    let alone = RunRecord::from_json(&read(&folder, "alone.json")).unwrap();
    let record = record(&folder);
    assert_eq!(record.agent_count, 3);
    assert_same_load(&record, &alone, "by three pods");
    due::assert_answered(&record, alone.total.counts.offered);
    assert_eq!(received(&folder), due::sent(&record) + due::sent(&alone));
    assert_eq!(record.scenario.questions.count, 4);
    for agent in &record.agents {
        let placement = agent.placement.as_ref().unwrap();
        let node = placement.node.as_ref().unwrap();
        let zone = placement.zone.as_deref();
        assert_eq!(zone, Some(format!("zone-of-{node}").as_str()));
    }
    let printed = read(&folder, "printed");
    assert!(printed.contains("Everything else: "), "{printed}");
    // Nothing of the run is left in the cluster.
    assert_eq!(read(&folder, "left"), "");
}

/// Each of the other commands that have agents, one after the other.
const COMMANDS: &str = r#"
{
    echo '21-Nov-2026 10:00:00.000 general: info: running'
    for number in {100..199}; do
        client="client @0x7f 198.51.100.$((number % 7 + 1))#53053 (n$number.example)"
        echo "21-Nov-2026 10:00:01.$number queries: info: $client:" \
            "query: n$number.example IN A +E(0) (192.0.2.53)"
    done
} >query.log
over_pods() {
    local flags=${fleet%% -- *} code=0
    flags=${flags/--name NAME/--name NAME-$1}
    flags=${flags/--agents 3/--agents 2}
    mkdir -p out/$1
    ${flags/--output out/--output out/$1} -- "$@" --format json >printed-$1 2>said-$1 || code=$?
    echo $code >code-$1
}
load="--server $server --names names --timeout 20s"
search='--start 200 --max 400 --trial-duration 1s --repeat 1 --precision 50% --max-p99 5s'
over_pods capacity $search --max-duration 20s --records records $load
over_pods ramp --to 200 --over 2s --record record.json $load
side="$load --rate 100 --duration 1s"
over_pods compare --a "$side" --b "throng run $side" --repeat 1 --records records
over_pods compare-transports --transports udp,tcp --rate 200 --duration 1s --records records $load
over_pods replay query.log --server $server --timeout 20s --record record.json
find out -name '*.json'
"#;

fn commands(cluster: &Cluster) {
    let (finished, folder) = shell(cluster, "fleet-commands", COMMANDS);
    let found = finished.succeeded();
    let mut sent = 0;
    for (command, at_least) in [
        // A busy machine may take the time of a whole search for its first trial.
        ("capacity", 1),
        ("ramp", 1),
        ("compare", 2),
        ("compare-transports", 2),
        ("replay", 1),
    ] {
        let of = |name: &str| read(&folder, &format!("{name}-{command}"));
        let said = of("said");
        let printed: Value = serde_json::from_str(&of("printed")).expect(&said);
        // A busy machine may leave a search without a load that is passed.
        let is_found = command != "capacity" || !printed["answer"]["value"].is_null();
        let code = of("code");
        assert_eq!(code.trim() == "0", is_found, "{command}, {code}: {said}");
        let records = found.lines().filter(|path| {
            path.starts_with(&format!("out/{command}/")) && !path.ends_with("/capacity.json")
        });
        let records: Vec<RunRecord> = records
            .map(|path| RunRecord::from_json(&read(&folder, path)).unwrap())
            .collect();
        assert!(records.len() >= at_least, "{command}: {said}");
        for record in records {
            assert_eq!(record.agent_count, 2, "{command}");
            sent += due::sent(&record);
        }
    }
    let answer = read(&folder, "out/capacity/records/capacity.json");
    assert_eq!(answer.trim(), read(&folder, "printed-capacity").trim());
    assert_eq!(received(&folder), sent);
    assert_eq!(read(&folder, "left"), "");
}

/// More names than a Secret takes.
fn long(cluster: &Cluster) {
    let run = "for number in $(seq 60000); do echo \"www-$number.example. A\"; done >names\n\
               $fleet --rate 100 --duration 1s --record record.json >printed 2>said\n";
    let (finished, folder) = shell(cluster, "fleet-long", run);
    finished.succeeded();
    let record = record(&folder);
    assert_eq!(record.scenario.questions.count, 60_000);
    due::assert_offered(&record, 100);
    assert_eq!(read(&folder, "left"), "");
}

/// The command is killed while its run goes on; another one shows the log from its beginning, each
/// line once, and has the result.
fn attached(cluster: &Cluster) {
    // The API server hears of running pods when a busy kubelet comes to it.
    let run = "set -m\n$fleet --rate 100 --duration 5m --interval 1s --record record.json \
               >printed 2>first &\nmade=$!\n\
               await_of $made grep -q '2.0 s ' first\n\
               kill -KILL $made; wait $made || :\n\
               all_run() {\n\
               THRONG fleet status --namespace NAME >status; grep -q '3 of 3' status; }\n\
               await all_run\n\
               THRONG fleet attach NAME --namespace NAME --output out >printed 2>said &\n\
               made=$!\nset +m\n\
               await_of $made grep -q '4.0 s ' said\n\
               kill -INT $made; code=0; wait $made || code=$?; echo $code >code\n";
    let (finished, folder) = shell(cluster, "fleet-attached", run);
    finished.succeeded();
    let status = read(&folder, "status");
    assert!(
        status.contains("fleet-attached  lead runs, 3 of 3 agents run"),
        "{status}"
    );
    let said = read(&folder, "said");
    assert_eq!(read(&folder, "code").trim(), "130", "{said}");
    let intervals: Vec<(&str, u64)> = (said.lines())
        .filter_map(|line| line.split_once(" s  sent "))
        .map(|(at, sent)| (at.trim(), number(sent)))
        .collect();
    // The last one may be shorter than a second.
    let whole = intervals.len() - 1;
    let is_whole = |(second, interval): (usize, &(&str, u64))| interval.0 == format!("{second}.0");
    assert!(
        whole >= 4 && (1..).zip(&intervals[..whole]).all(is_whole),
        "{said}"
    );
    let record = record(&folder);
    assert_eq!(record.ended_by, EndedBy::Interrupted);
    let sent = record.total.counts.sent;
    // The command that was killed has left no gap.
    assert_eq!(intervals.iter().map(|it| it.1).sum::<u64>(), sent, "{said}");
    assert_eq!(received(&folder), due::sent(&record));
    assert_eq!(read(&folder, "left"), "");
}

fn interrupted(cluster: &Cluster) {
    let run = "set -m\n$fleet --rate 100 --duration 5m --interval 1s --record record.json \
               >printed 2>said &\nmade=$!\nset +m\n\
               await_of $made grep -q '2.0 s ' said\n\
               kill -INT $made; code=0; wait $made || code=$?; echo $code >code\n";
    let (finished, folder) = shell(cluster, "fleet-interrupted", run);
    finished.succeeded();
    let said = read(&folder, "said");
    assert_eq!(read(&folder, "code").trim(), "130", "{said}");
    let record = record(&folder);
    assert_eq!(record.ended_by, EndedBy::Interrupted);
    assert_eq!(received(&folder), due::sent(&record));
    assert_eq!(read(&folder, "left"), "");
}

fn interrupted_twice(cluster: &Cluster) {
    let run = "set -m\n$fleet --rate 100 --duration 5m --interval 1s --record record.json \
               >printed 2>said &\nmade=$!\nset +m\n\
               says() { await_of $made grep -q \"$1\" said; }\n\
               says '2.0 s '; kill -INT $made; says 'ending the run'; kill -INT $made\n\
               code=0; wait $made || code=$?; echo $code >code\n";
    let (finished, folder) = shell(cluster, "fleet-interrupted-twice", run);
    finished.succeeded();
    assert_removed(&folder);
}

fn interrupted_early(cluster: &Cluster) {
    let run = "set -m\n$fleet --rate 100 --duration 5m >printed 2>said &\nmade=$!\nset +m\n\
               objects() { kubectl --namespace NAME get jobs,secrets,services --output=name; }\n\
               has_job() { objects | grep -q job; }\n\
               await_of $made has_job\n\
               kill -INT $made; code=0; wait $made || code=$?; echo $code >code\n";
    let (finished, folder) = shell(cluster, "fleet-interrupted-early", run);
    finished.succeeded();
    assert_removed(&folder);
    assert_eq!(received(&folder), 0);
}

/// The run was removed without its result.
fn assert_removed(folder: &str) {
    let said = read(folder, "said");
    assert_eq!(read(folder, "code").trim(), "130", "{said}");
    assert!(said.contains("interrupted: removing run "), "{said}");
    assert!(!said.contains("error: "), "{said}");
    assert_eq!(read(folder, "left"), "");
}

/// The target is the cluster's DNS, of which one node has the pod.
pub(crate) fn beside_target(cluster: &Cluster) {
    let run = "fleet=\"${fleet/--server $server/--server 10.96.0.10}\"\n\
               nodes() { kubectl --namespace kube-system get pods --selector=k8s-app=kube-dns \
               '--output=jsonpath={.items[*].spec.nodeName}'; }\n\
               $fleet --rate 30 --duration 1s --record record.json >printed 2>said\n\
               nodes >node\n";
    let (finished, folder) = shell(cluster, "fleet-beside", run);
    finished.succeeded();
    assert_eq!(read(&folder, "left"), "");
    let (record, node) = (record(&folder), read(&folder, "node"));
    let placements = record.agents.iter().filter_map(|it| it.placement.as_ref());
    let is_shared = placements
        .into_iter()
        .any(|it| it.node.as_ref() == Some(&node));
    let warning = format!("share node {node} (pods of 10.96.0.10 there: kube-system/coredns-");
    let warned = record.warnings.iter().any(|it| it.contains(&warning));
    assert_eq!(warned, is_shared, "{node}: {:?}", record.warnings);
}

fn out_of_memory(cluster: &Cluster) {
    let run = "fleet=\"${fleet/--memory 128Mi/--memory 6Mi}\"\n\
               $fleet --rate 100 --duration 1s >printed 2>said && exit 1\n";
    let (finished, folder) = shell(cluster, "fleet-memory", run);
    finished.succeeded();
    let said = read(&folder, "said");
    for part in ["error: ", "OOMKilled", "hint: give each pod more --memory"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(received(&folder), 0);
    assert_eq!(read(&folder, "left"), "");
}

/// The commands of docs/kubernetes.md by a user of the group that has the Role, and no other
/// rights; runs that go on are made of its manifest.
const DOCUMENTED: &str = r#"
@RIGHTS@ >applied
mkdir bin
own=$PATH
printf '#!/bin/sh\nexec %s --as=user --as-group=throng "$@"\n' "$(which kubectl)" >bin/kubectl
chmod +x bin/kubectl
await bin/kubectl --namespace NAME auth can-i create jobs
cp names names.txt
# As OpenShift gives it to the pods of a namespace (SCC restricted).
user_of_namespace='runAsUser: 1000730000\n\1runAsGroup: 0\n\1fsGroup: 1000730000'
user() { PATH=$PWD/bin:$own; "$@"; PATH=$own; }
made() {
    @MANIFEST@ | sed "s/^\( *\)runAsNonRoot: true/&\n\1$user_of_namespace/" >manifest
    kubectl --namespace NAME apply --filename=manifest >>applied
    local user='{.spec.template.spec.securityContext.runAsUser}'
    kubectl --namespace NAME get jobs "--output=jsonpath={range .items[*]}$user,{end}" >>users
}
over() { kubectl --namespace NAME logs job/NAME-lead 2>&1 | grep -q 'the result waits'; }
user @RUN@
cp record.json first.json
made
user @STATUS@
user @ATTACH@
made
await over
rm record.json
user @FETCH@
made
user @STOP@
made
kubectl --namespace NAME delete jobs,pods --all --cascade=foreground --grace-period=1 >>applied
user @STATUS@
user @STOP@
"#;

/// A user with the documented Role reads what the lead serves, while agents are at work and until
/// the report. The run lasts until all of it was read: a busy machine takes its time to forward
/// ports. The command that made it would have the lead end once the result is here, whether others
/// have read the report or not.
const VIEWED: &str = r#"
user="--namespace NAME --as=user --as-group=throng"
kubectl apply --namespace NAME --kustomize DEPLOY/kubernetes >applied
await kubectl $user auth can-i create pods --subresource=portforward >>applied
$fleet --rate 100 --duration 5m --interval 500ms --record record.json \
    --metrics 0.0.0.0:9350 --web 127.0.0.1:9351 >printed 2>said &
made=$!
await_of $made grep -q 'live page at ' said
FORWARD $user >forwarded 2>&1 &
forward=$!
trap 'kill $responder $forward 2>/dev/null || :' EXIT
await_of $forward grep -q ' -> 9350' forwarded
await_of $forward grep -q ' -> 9351' forwarded
curl --silent --show-error --no-buffer http://127.0.0.1:9351/events >events 2>curled &
events=$!
# As Prometheus discovers it for the PodMonitor.
discovered=$(kubectl --namespace NAME get pods \
    --selector=app.kubernetes.io/name=throng,app.kubernetes.io/component=lead --output=jsonpath=\
'{.items[*].status.podIP}:{.items[*].spec.containers[*].ports[?(@.name=="metrics")].containerPort}')
are_up() {
    curl --silent --fail http://127.0.0.1:9350/metrics >metrics &&
        curl --silent --fail "http://$discovered/metrics" >discovered &&
        grep -q '^throng_agent_up{' discovered &&
        grep -q '^throng_queries_sent_total{.*} [1-9]' metrics &&
        [ "$(grep -c '^throng_agent_up{.*} 1$' metrics)" = 3 ]
}
await_of $made are_up
kill -KILL $made; wait $made || :
kubectl --namespace NAME exec job/NAME-lead -- throng fleet interrupt
wait $events
code=0; THRONG fleet fetch NAME --namespace NAME --output out 2>>said || code=$?; echo $code >code
(cd out && THRONG report record.json --output ../report.html)
"#;

fn viewed(cluster: &Cluster) {
    let forward = PAGE
        .lines()
        .find(|it| it.starts_with("kubectl port-forward "));
    let forward = forward.unwrap().replace("--namespace load ", "");
    let lines = VIEWED.replace("FORWARD", &forward).replace(
        "DEPLOY",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy"),
    );
    let (finished, folder) = shell(cluster, "fleet-viewed", &lines);
    finished.succeeded();
    let events = read(&folder, "events");
    let (snapshots, report) = events.split_once("event: report\n").expect("a report");
    let (_, last) = snapshots.rsplit_once("id=\"tiles\"").expect("a snapshot");
    for words in ["3 agents: ", ", 0 lost", ">0 on ", ">1 on ", ">2 on "] {
        assert!(last.contains(words), "{words}: {last}");
    }
    let report = report.lines().filter_map(|it| it.strip_prefix("data: "));
    let report = report.collect::<Vec<_>>().join("\n");
    assert_eq!(report.trim_end(), read(&folder, "report.html").trim_end());
    assert_eq!(read(&folder, "code").trim(), "130");
    let record = record(&folder);
    let ended = (record.agent_count, record.ended_by);
    assert_eq!(ended, (3, EndedBy::Interrupted));
    let sent = due::sent(&record);
    assert_eq!(received(&folder), sent);
    assert_eq!(read(&folder, "left"), "");
}

/// A command of the document, with a load for a cluster on one machine.
fn adapted(line: &str) -> String {
    let small = "--name NAME --cpus 100m --memory 128Mi --agents 2";
    [
        ("registry.example/throng:0.1.0", "throng:VERSION"),
        ("192.0.2.53", "$server"),
        ("throng fleet", "THRONG fleet"),
        (" NAME ", " fleet-doc "),
        ("--agents 20", small),
        ("--namespace load", "--namespace fleet-doc"),
        ("--rate 2000000 --duration 60s", "--rate 200 --duration 2s"),
        (
            " deploy/",
            concat!(" ", env!("CARGO_MANIFEST_DIR"), "/../../deploy/"),
        ),
    ]
    .into_iter()
    .fold(line.to_owned(), |line, (from, to)| line.replace(from, to))
}

fn documented(cluster: &Cluster) {
    let text = PAGE.replace("\\\n", "");
    let rights = text.lines().find(|line| line.starts_with("kubectl apply"));
    let rights = adapted(rights.unwrap());
    let commands = text.lines().filter(|line| line.starts_with("throng "));
    let commands: Vec<String> = commands.map(adapted).collect();
    let [run, status, attach, fetch, stop] = commands.as_slice() else {
        panic!("{commands:?}")
    };
    let manifest = run.replace("fleet run", "fleet manifest");
    let lines = [
        ("@RIGHTS@", &rights),
        ("@MANIFEST@", &manifest),
        ("@RUN@", run),
        ("@STATUS@", status),
        ("@ATTACH@", attach),
        ("@FETCH@", fetch),
        ("@STOP@", stop),
    ];
    let lines = lines.into_iter();
    let lines = lines.fold(DOCUMENTED.to_owned(), |text, (from, to)| {
        text.replace(from, to)
    });
    let (finished, folder) = shell(cluster, "fleet-doc", &lines);
    let said = finished.stderr.clone();
    let printed = finished.succeeded();
    assert_eq!(
        printed.matches("\nEverything else: ").count(),
        3,
        "{printed}{said}"
    );
    assert!(printed.contains("fleet-doc  lead "), "{printed}");
    let without_jobs = "fleet-doc  lead gone, 0 of 0 agents run";
    assert!(printed.contains(without_jobs), "{printed}");
    // The Jobs of four manifests.
    assert_eq!(read(&folder, "users"), "1000730000,".repeat(8));
    for name in ["first.json", "record.json"] {
        let record = RunRecord::from_json(&read(&folder, name)).unwrap();
        assert_eq!(record.agent_count, 2);
        due::assert_offered(&record, 400);
    }
    assert_eq!(read(&folder, "left"), "");
}

/// Where there is no cluster, or no configuration, each command ends at once.
fn unreached(cluster: &Cluster) {
    let lines = r#"
printf '%s\n' 'apiVersion: v1' 'kind: Config' 'current-context: closed' \
    'clusters: [{name: closed, cluster: {server: "https://127.0.0.1:1"}}]' \
    'users: [{name: nobody, user: {token: none}}]' \
    'contexts: [{name: closed, context: {cluster: closed, user: nobody}}]' >closed.kubeconfig
own=$KUBECONFIG
refused() { code=0; "$@" >>printed 2>>said || code=$?; echo "exit code $code" >>said; }
for KUBECONFIG in $PWD/closed.kubeconfig /no/such/file; do
    refused $fleet --rate 10 --duration 1s
    refused THRONG fleet status --namespace NAME
    for command in attach fetch stop; do refused THRONG fleet $command NAME --namespace NAME; done
done
KUBECONFIG=$own
"#;
    let (finished, folder) = shell(cluster, "fleet-unreached", lines);
    finished.succeeded();
    let said = read(&folder, "said");
    for (line, number) in [
        ("error: kubectl ", 10),
        ("The connection to the server 127.0.0.1:1 was refused", 4),
        ("hint: is the cluster of this context there? ", 5),
        ("hint: set KUBECONFIG", 5),
        ("exit code 2", 10),
    ] {
        assert_eq!(said.matches(line).count(), number, "{line}: {said}");
    }
    assert_eq!(said.lines().count(), 30, "{said}");
}

/// What each fleet that does not run is told, with its cure.
const REFUSED: [(&str, &str, &str); 10] = [
    (
        "image",
        " cannot start: ",
        "give --image one that the nodes can pull",
    ),
    (
        "namespace",
        "namespaces \"nowhere\" not found",
        "create the namespace, or give --namespace",
    ),
    (
        "kubectl",
        "cannot run `none-such`",
        "install kubectl, or name the command",
    ),
    (
        "rights",
        "jobs.batch is forbidden",
        "lacks the rule {apiGroups: [\"batch\"], resources: [\"jobs\"], verbs: [\"create\"]}",
    ),
    (
        "nodes",
        " s: Unschedulable: ",
        "free or add nodes, or give less --cpus",
    ),
    ("name", "already exists", "give --name another name"),
    (
        "record",
        "--record /nowhere/record.json is not in the folder of the lead",
        "give a name alone here",
    ),
    (
        "address",
        "): cannot send from --local-address 192.0.2.77: ",
        "give addresses of its host",
    ),
    (
        "port",
        "): cannot open a socket from 0.0.0.0:",
        "with --local-address, and a free port range",
    ),
    (
        "cpus",
        "): cannot run a worker on CPU 1000: ",
        "give CPUs of its host with --cpus",
    ),
];
/// Those of which an agent tells, which is named.
const REFUSED_BY_AGENTS: [&str; 3] = ["address", "port", "cpus"];

fn refused(cluster: &Cluster) {
    let lines = r#"
refused() {
    local row=$1 code=0
    shift
    "$@" --rate 10 --duration 1s >>printed 2>said-$row || code=$?
    echo $code >code-$row
}
refused image ${fleet/throng:VERSION/localhost/none:1}
refused namespace ${fleet/--namespace NAME/--namespace nowhere}
refused kubectl ${fleet/--namespace NAME/--namespace NAME --kubectl none-such}
kubectl --namespace NAME create serviceaccount nobody >/dev/null
printf '#!/bin/sh\nexec kubectl --as=system:serviceaccount:NAME:nobody "$@"\n' >as-nobody
chmod +x as-nobody
refused rights ${fleet/--namespace NAME/--namespace NAME --kubectl ./as-nobody}
refused nodes ${fleet/--cpus 100m/--cpus 1000}
kubectl --namespace NAME create secret generic NAME-inputs >/dev/null
refused name $fleet
kubectl --namespace NAME delete secret NAME-inputs >/dev/null
refused record $fleet --record /nowhere/record.json
refused address $fleet --local-address 192.0.2.77
refused port $fleet --local-port 53
refused cpus $fleet --cpus 1000
"#;
    let (finished, folder) = shell(cluster, "fleet-refused", lines);
    finished.succeeded();
    for (row, what, hint) in REFUSED {
        assert_refused(&folder, row, what, hint);
    }
    for row in REFUSED_BY_AGENTS {
        let said = read(&folder, &format!("said-{row}"));
        let (_, error) = said.split_once("error: agent ").expect(&said);
        assert!(error.contains(" of 3 (fleet-refused-agents-"), "{said}");
    }
    assert_eq!(received(&folder), 0);
    assert_eq!(read(&folder, "left"), "");
}

/// A command ended with code 2 after one error, the last it said, with its hint.
fn assert_refused(folder: &str, row: &str, what: &str, hint: &str) {
    let said = read(folder, &format!("said-{row}"));
    let code = read(folder, &format!("code-{row}"));
    assert_eq!(code.trim(), "2", "{row}: {said}");
    let (_, last) = said
        .split_once("error: ")
        .unwrap_or_else(|| panic!("{row}: {said}"));
    let (error, cure) = last
        .split_once("\nhint: ")
        .unwrap_or_else(|| panic!("{row}: {said}"));
    assert!(error.contains(what), "{row}, {what}: {said}");
    assert!(cure.contains(hint), "{row}, {hint}: {said}");
    // What becomes of the pods may be seen meanwhile.
    let lines = cure.lines().filter(|line| !line.starts_with("pod "));
    assert_eq!(lines.count(), 1, "{row}: {said}");
}

/// The quota has room for the lead and one agent of three, then for none. With as many agents as
/// are enough the run begins without the others.
fn beyond_quota(cluster: &Cluster) {
    let lines = r#"
with_quota() {
    local row=$1 pods=$2 code=0
    shift 2
    kubectl --namespace NAME create quota small --hard=pods=$pods >/dev/null
    local known='--output=jsonpath={.status.hard.pods}'
    is_known() { test "$(kubectl --namespace NAME get quota small "$known")" = $pods; }
    await is_known
    "$@" --rate 100 --duration 1s >>printed 2>said-$row || code=$?
    echo $code >code-$row
    kubectl --namespace NAME delete quota small >/dev/null
}
with_quota agents 2 $fleet
with_quota lead 0 $fleet
few='--agents 3 --min-agents 1 --barrier-timeout'
# A busy machine may take minutes to start the one.
for patience in 20s 2m 5m; do
    rm -rf out
    with_quota enough 2 ${fleet/--agents 3/$few $patience} --record record.json
    ! grep -q '^0$' code-enough || break
done
"#;
    let (finished, folder) = shell(cluster, "fleet-quota", lines);
    finished.succeeded();
    let hint = "ask for a larger quota, or use fewer --agents, or less --cpus or --memory";
    let what = "Job fleet-quota-agents cannot make agent ";
    assert_refused(&folder, "agents", what, hint);
    assert_refused(
        &folder,
        "agents",
        ": exceeded quota: small, requested: pods=1, ",
        hint,
    );
    // Neither Job can make a pod, and either may be the first that is named.
    let what = ": exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0";
    assert_refused(&folder, "lead", what, hint);
    let said = read(&folder, "said-enough");
    assert_eq!(read(&folder, "code-enough").trim(), "0", "{said}");
    let note = "; 1 agents are enough (--min-agents)";
    let notes: Vec<&str> = said.lines().filter(|it| it.ends_with(note)).collect();
    assert!(
        notes.len() == 1 && notes[0].contains("exceeded quota: small, "),
        "{said}"
    );
    let record = record(&folder);
    assert_eq!(record.agent_count, 1);
    due::assert_offered(&record, 100);
    // Once the one agent has ended, its quota may let another one come, too late.
    let is_known = |why: &str| {
        let quota = "no pod: exceeded quota: small, ";
        why.starts_with(quota) || why.starts_with("pod ")
    };
    let absent = record.absent_agents.iter();
    let known = absent.filter(|it| it.why.as_deref().is_some_and(is_known));
    assert_eq!(known.count(), 2, "{:?}", record.absent_agents);
    assert_eq!(read(&folder, "left"), "");
}

const ROLE: &str = include_str!("../../../../../deploy/kubernetes/role.yaml");

/// A user has the Role without one of its rules, each in turn.
const WITHOUT: &str = r#"
without() {
    local number=$1 known=$2 code=0
    printf '#!/bin/sh\nexec kubectl --as=without-%s "$@"\n' $number >as-$number
    chmod +x as-$number
    kubectl --namespace NAME create --filename=role-$number >>made
    kubectl --namespace NAME create rolebinding without-$number --role=without-$number \
        --user=without-$number >>made
    await kubectl --namespace NAME auth can-i $known --as=without-$number >>made
    ${fleet/--name NAME/--name NAME-$number --kubectl ./as-$number} \
        --rate 10 --duration 1s >>printed 2>said-$number || code=$?
    echo $code >code-$number
    kubectl --namespace NAME delete jobs,services,secrets,pods \
        --selector=app.kubernetes.io/managed-by=throng >>made
}
"#;

fn without_rule(cluster: &Cluster) {
    const RULE: &str = "  - apiGroups: ";
    let mut rules = ROLE.split(RULE);
    let head = rules.next().unwrap();
    let rules: Vec<&str> = rules.collect();
    let mut lines = WITHOUT.to_owned();
    for number in 0..rules.len() {
        let others = rules.iter().enumerate().filter(|(at, _)| *at != number);
        let others: Vec<String> = others.map(|(_, rule)| format!("{RULE}{rule}")).collect();
        let name = format!("name: without-{number}");
        let role = format!("{}{}", head.replace("name: throng", &name), others.concat());
        let known = if number == 0 {
            "list pods"
        } else {
            "create jobs"
        };
        lines.push_str(&format!(
            "cat >role-{number} <<'ROLE'\n{role}\nROLE\nwithout {number} '{known}'\n"
        ));
    }
    let (finished, folder) = shell(cluster, "fleet-rights", &lines);
    finished.succeeded();
    for (number, rule) in rules.iter().enumerate() {
        let said = read(&folder, &format!("said-{number}"));
        let list = |name: &str| -> Vec<&str> {
            let list = rule.split_once(&format!("{name}: [")).unwrap().1;
            list.split(']').next().unwrap().split(", ").collect()
        };
        if list("resources") == ["events"] {
            // Nothing was refused that they would tell of.
            assert_eq!(
                read(&folder, &format!("code-{number}")).trim(),
                "0",
                "{said}"
            );
            continue;
        }
        let verb = list("verbs").into_iter().find(|verb| {
            let verb = format!("verbs: [\"{verb}\"]}}");
            let named = |it: &&str| said.contains(&format!("resources: [\"{it}\"], {verb}"));
            list("resources").iter().any(named)
        });
        assert!(verb.is_some(), "{rule}: {said}");
        let what = "is forbidden";
        assert_refused(
            &folder,
            &number.to_string(),
            what,
            "the Role of this user lacks the rule",
        );
        if list("resources")[0].starts_with("pods/exec") {
            // It is missed before the run, of which there would be no result.
            assert_eq!(said.lines().count(), 3, "{said}");
        }
    }
    assert_eq!(read(&folder, "left"), "");
}
