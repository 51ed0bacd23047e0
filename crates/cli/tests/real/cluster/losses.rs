//! What a fleet loses, and what is known afterwards: the same events as in the loss matrix of
//! `crates/agents`, with pods, nodes and an API server.

use measure::record::EndedBy;
use measure::{Limit, RunRecord};
use testing::due;

use crate::Case;
use crate::bed::Cluster;
use crate::fleet::{read, received, record, shell, shell_once};

pub(crate) const CASES: &[Case] = &[
    (
        "a fleet that loses a pod ends with what is known, within bounds",
        pod_is_deleted,
    ),
    (
        "a fleet that loses an agent to its limit of memory ends with what is known",
        agent_has_too_little_memory,
    ),
    (
        "agents that their quota throttles are named, and not lost",
        agents_are_throttled,
    ),
    (
        "a lead that is evicted ends its run in order, and nothing is left",
        lead_is_evicted,
    ),
    (
        "a lead that is deleted at once is an error, and nothing is left",
        lead_is_deleted,
    ),
    (
        "a fleet begins without an agent that has no node, and names it",
        agent_has_no_node,
    ),
];

/// What disturbs all that runs in the cluster.
pub(crate) const OF_CLUSTER: &[Case] = &[
    (
        "a fleet that loses a node ends with what is known, within bounds",
        node_is_cut_off,
    ),
    (
        "a fleet loses nothing while the API server is gone",
        api_server_is_killed,
    ),
];

/// Begins a run that is never over by itself, and waits for its second after the first checkpoint.
const BEGUN: &str = r#"
$fleet --rate 100 --duration 5m --interval 1s --record record.json >printed 2>said &
made=$!
await_of $made grep -q ' 7.0 s ' said
"#;
/// Waits for its end.
const ENDED: &str = "code=0; wait $made || code=$?; echo $code >code\n";
/// Finds the pod of the lead.
const LEAD: &str = "lead=$(kubectl --namespace NAME get pods --output=name | grep NAME-lead)\n\
                    lead=${lead#pod/}\n";
/// The manifest of that fleet, whose agents each need a node without another one.
const APART: &str = r#"
apart='podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{
    topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {
    app.kubernetes.io/instance: NAME, app.kubernetes.io/component: agent}}}]}'
apart=$(echo $apart)
manifest() {
    local line="${fleet/fleet run/fleet manifest}"
    ${line/--output out /} "$@" --record record.json |
        sed "s#^\( *\)topologySpreadConstraints:#\1affinity: {$apart}\n&#"
}
attach="THRONG fleet attach NAME --namespace NAME --output out"
"#;

/// The run has ended by the loss of one agent, and what the responder received is between what is
/// known, with `certain` of the lost agent's queries after the checkpoint, and what is possible.
fn assert_lost(folder: &str, certain: fn(&measure::degraded::LostAgent) -> u64) -> RunRecord {
    let said = read(folder, "said");
    assert_eq!(read(folder, "code").trim(), "1", "{said}");
    let record = record(folder);
    assert_eq!(record.ended_by, EndedBy::AgentLost, "{said}");
    let degraded = record.degraded.as_ref().unwrap();
    let lost = &degraded.lost[0];
    let known = record.warmup.counts.sent + record.total.counts.sent + degraded.total.counts.sent;
    let range = known + certain(lost)..=known + lost.fate_unknown_max;
    let received = received(folder);
    assert!(range.contains(&received), "{received} of {range:?}: {said}");
    record
}

/// The pod of an agent is deleted in mid-run, after the first checkpoint.
fn pod_is_deleted(cluster: &Cluster) {
    let lines = "pod=$(kubectl --namespace NAME get pods --output=name | grep agents-1)\n\
                 kubectl --namespace NAME delete $pod --force --grace-period=0 >/dev/null 2>&1\n";
    let lines = format!("{BEGUN}{lines}{ENDED}");
    let (finished, folder) = shell(cluster, "fleet-lost", &lines);
    finished.succeeded();
    assert_lost(&folder, |lost| lost.sent);
    assert_eq!(read(&folder, "left"), "");
}

/// The script of one client takes more memory than its pod has, after the first checkpoint.
const GREEDY: &str = r#"
function client(c)
  while true do
    c:query("one.example", "A")
    c:sleep(0.1)
    if c.index == 1 and c:now() > 7 then
      for _ = 1, 40 do shared[#shared + 1] = string.rep("x", 500000 + #shared) end
    end
  end
end
"#;

fn agent_has_too_little_memory(cluster: &Cluster) {
    // Its kubelet may be busier than the lead.
    let lines = r#"
code=0
manifest --script greedy.lua --duration 5m --interval 1s | kubectl create --filename=- >made
killed() {
    kubectl --namespace NAME get pods --field-selector=status.phase=Failed \
        '--output=jsonpath={.items[*].status.containerStatuses[0].state.terminated.reason}' |
        grep -q OOMKilled
}
await killed
$attach >printed 2>said || code=$?
echo $code >code
"#;
    let script = format!("cat >greedy.lua <<'SCRIPT'{GREEDY}SCRIPT\n");
    let lines = format!("{APART}{script}{lines}");
    let (finished, folder) = shell(cluster, "fleet-greedy", &lines);
    finished.succeeded();
    let record = assert_lost(&folder, |lost| lost.sent);
    let how = &record.degraded.as_ref().unwrap().lost[0].how;
    assert!(how.contains("Kubernetes: OOMKilled"), "{how}");
    let said = read(&folder, "said");
    assert!(said.contains("has failed: OOMKilled"), "{said}");
    assert_eq!(read(&folder, "left"), "");
}

fn agents_are_throttled(cluster: &Cluster) {
    let run = "$fleet --outstanding 300 --duration 3s --record record.json >printed 2>said\n";
    let (finished, folder) = shell(cluster, "fleet-throttled", run);
    finished.succeeded();
    let record = record(&folder);
    assert_eq!(record.ended_by, EndedBy::Duration);
    assert!(record.degraded.is_none() && record.agent_count == 3);
    let sent = due::sent(&record);
    assert!(received(&folder) <= sent, "{sent}");
    // All of them try to use a whole CPU, and have a tenth; a busy machine may give them less.
    let text = serde_json::to_value(&record).unwrap();
    let kernel = |name: &str| text["network"]["kernel"][name].as_u64().unwrap_or(0);
    let (times, periods) = (kernel("Cgroup.Throttled"), kernel("Cgroup.Periods"));
    match periods > 0 && 2 * times >= periods {
        true => {
            let cause = "the CPU quota of its container was used up in ";
            let is_named = text.to_string().contains(cause);
            // What else a busy machine does may be undecided.
            assert!(
                is_named || record.verdict.limit == Limit::Unknown,
                "{:?}",
                record.verdict
            );
        }
        false => eprintln!("the agents were not throttled"),
    }
    assert_eq!(read(&folder, "left"), "");
}

/// As `kubectl drain` does it.
fn lead_is_evicted(cluster: &Cluster) {
    let lines = r#"
echo "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"$lead\"}}" |
    kubectl create --raw /api/v1/namespaces/NAME/pods/$lead/eviction --filename=- >/dev/null
"#;
    let lines = format!("{BEGUN}{LEAD}{lines}{ENDED}");
    let (finished, folder) = shell(cluster, "fleet-evicted", &lines);
    finished.succeeded();
    let (said, code) = (read(&folder, "said"), read(&folder, "code"));
    match code.trim() {
        "143" => {
            let record = record(&folder);
            assert_eq!(record.ended_by, EndedBy::Interrupted);
            assert_eq!(received(&folder), due::sent(&record), "{said}");
        }
        // The result was not fetched within its grace period, on a busy machine.
        code => assert!(code == "1" && said.contains(LEAD_IS_GONE), "{code}: {said}"),
    }
    assert_eq!(read(&folder, "left"), "");
}

const LEAD_IS_GONE: &str = "error: the lead's pod is gone, and the result with it";

fn lead_is_deleted(cluster: &Cluster) {
    let lines =
        "kubectl --namespace NAME delete pod $lead --force --grace-period=0 >deleted 2>&1\n";
    let lines = format!("{BEGUN}{LEAD}{lines}{ENDED}");
    let (finished, folder) = shell(cluster, "fleet-deleted", &lines);
    finished.succeeded();
    let (said, code) = (read(&folder, "said"), read(&folder, "code"));
    // Its kubelet may end it after the result was fetched.
    match code.trim() {
        "143" => assert_eq!(record(&folder).ended_by, EndedBy::Interrupted),
        code => assert!(code == "1" && said.contains(LEAD_IS_GONE), "{code}: {said}"),
    }
    assert_eq!(read(&folder, "left"), "");
}

/// Of four agents on three nodes, each alone, one waits for a node.
fn agent_has_no_node(cluster: &Cluster) {
    let run = "few='--agents 4 --min-agents 3 --barrier-timeout 60s'\n\
               fleet=\"${fleet/--agents 3/$few}\"\n\
               manifest --rate 100 --duration 2s | kubectl create --filename=- >made\n\
               $attach >printed 2>said\n";
    let run = format!("{APART}{run}");
    let (finished, folder) = shell(cluster, "fleet-absent", &run);
    finished.succeeded();
    let record = record(&folder);
    assert_eq!(record.agent_count, 3);
    due::assert_offered(&record, 200);
    assert_eq!(received(&folder), due::sent(&record));
    let [absent] = record.absent_agents.as_slice() else {
        panic!("{:?}", record.absent_agents)
    };
    let why = absent.why.as_deref().unwrap();
    // Agents that have ended may leave a node to it before a busy machine fetches the result: its
    // pod waits for its container then, or has come too late.
    let is_pending = why.starts_with("pod pending: ");
    assert!(is_pending || why == "pod came after the start", "{why}");
    let named = record.warnings.iter().any(|it| it.contains(why));
    assert!(named, "{:?}", record.warnings);
    assert_eq!(read(&folder, "left"), "");
}

/// The lead is on the first node, and the link of another one is cut after the first checkpoint.
const CUT: &str = r#"
lead='nodeSelector: {kubernetes.io/hostname: n0}'
manifest --rate 100 --duration 5m --interval 1s |
    sed "0,/^\( *\)containers:/s##\1$lead\n&#" | kubectl create --filename=- >made
$attach >printed 2>said &
made=$!
await_of $made grep -q ' 7.0 s ' said
trap 'ip link set node2 up; kill $responder 2>/dev/null || :' EXIT
ip link set node2 down
await_of $made grep -q 'was lost' said
ip link set node2 up
"#;

fn node_is_cut_off(cluster: &Cluster) {
    // This case makes an agent silent on purpose.
    let (finished, folder) = shell_once(cluster, "fleet-cut", &format!("{APART}{CUT}{ENDED}"));
    finished.succeeded();
    // What was on its way when the link was cut did not arrive.
    let record = assert_lost(&folder, |_| 0);
    let lost = &record.degraded.as_ref().unwrap().lost[0];
    let agent = &record.agents[lost.agent as usize - 1];
    let node = agent.placement.as_ref().unwrap().node.as_deref();
    assert_eq!(node, Some("n2"), "{lost:?}");
}

/// The API server is killed in mid-run and started again: the run goes on without it, and so does
/// the command that follows the run.
fn api_server_is_killed(cluster: &Cluster) {
    let run = "$fleet --rate 100 --duration 12s --interval 1s --record record.json \
               >printed 2>said &\nmade=$!\n\
               await_of $made grep -q ' 2.0 s ' said\n\
               touch ../n0/apiserver.again\n\
               pkill -KILL -x kube-apiserver\n";
    let (finished, folder) = shell(cluster, "fleet-without", &format!("{run}{ENDED}"));
    finished.succeeded();
    let (said, code) = (read(&folder, "said"), read(&folder, "code"));
    assert_eq!(code.trim(), "0", "{said}");
    let record = record(&folder);
    assert_eq!(record.ended_by, EndedBy::Duration);
    due::assert_offered(&record, 1_200);
    assert_eq!(received(&folder), due::sent(&record));
    assert_eq!(read(&folder, "left"), "");
}
