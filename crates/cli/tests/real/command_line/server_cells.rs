//! Experiments that start their servers themselves: every start is a repetition, and nothing is
//! left. Each test has a temporary folder of its own.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use measure::RunRecord;
use measure::internet::Internet;
use measure::metric::Metric;
use rustix::process::{Pid, Signal, kill_process};
use testing::folder::Folder;
use testing::program::Finished;
use testing::wait;

use crate::experiments::{EXTERNAL, TEMPORARY, experiment, left_in};
use crate::process::THRONG;

const CELLS: &str = r#"
[lab]
starts = 2
runs-per-start = 2
aa = 1

[run]
clients = 3
rate = 300
duration = "200ms"

[matrix]
transport = ["udp", "dot"]

[[server]]
product = "bind"
data = "zone:30,ttl=1s"
[server.factors]
tcp-clients = [20, 100]
[server.resources]
cpus = 0

[[server]]
label = "small"
product = "nsd"
"#;

#[test]
fn servers_are_started_for_their_runs_and_each_start_is_a_repetition() {
    let folder = Folder::new("cells-run");
    let plan = experiment(&folder, CELLS, "plan FILE").succeeded();
    assert!(
        plan.contains("7 cells, 2 starts with 2 runs: 28 runs"),
        "{plan}"
    );
    experiment(&folder, CELLS, "run FILE --output OUT").succeeded();
    assert_eq!(left_in(&folder), 0);
    let names: Vec<String> = fs::read_dir(folder.path("out/records"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let used: Vec<&String> = names
        .iter()
        .filter(|it| it.ends_with("run2.json"))
        .collect();
    let unused = names
        .iter()
        .filter(|it| it.ends_with("run1.unused"))
        .count();
    assert_eq!((used.len(), unused, names.len()), (14, 14, 28), "{names:?}");
    for name in used {
        let text = fs::read_to_string(folder.path(&format!("out/records/{name}"))).unwrap();
        let record = RunRecord::from_json(&text).unwrap();
        let counts = &record.total.counts;
        assert_eq!(counts.rcodes.by_rcode[0], counts.sent, "{name}");
        assert!(record.scenario.labels.contains_key("product"), "{name}");
        let is_bind = record.scenario.labels["product"] == "bind";
        assert_eq!(
            record.scenario.labels.contains_key("tcp-clients"),
            is_bind,
            "{name}"
        );
        let process = &record.observations[1].facts;
        assert_eq!(process.cpus.as_deref() == Some("0"), is_bind, "{name}");
    }
    let results = experiment(&folder, CELLS, "results OUT").succeeded();
    for row in [
        "transport udp, server bind tcp-clients=20",
        "transport dot, server small",
        "A/A: ",
    ] {
        assert!(results.contains(row), "no `{row}`: {results}");
    }
    assert!(!results.contains("no record"), "{results}");
    let again = experiment(&folder, CELLS, "run FILE --output OUT");
    assert!(
        again.stderr.contains("14 runs of them are already made"),
        "{}",
        again.stderr
    );
}

const CEILINGS: &str = r#"
repeat = 1
[run]
outstanding = 20
clients = 2
warmup = "0s"
duration = "200ms"
[matrix]
transport = ["udp", "tcp"]
[[server]]
label = "fast"
product = "responder"
data = "zone:20"
[[server]]
label = "slow"
product = "responder"
data = "zone:20"
[server.factors]
ceiling = 100
"#;

#[test]
fn cells_near_the_ceiling_of_the_generator_are_named_and_others_are_not() {
    let folder = Folder::new("server-cells-ceilings");
    let told = experiment(&folder, CEILINGS, "run FILE --output OUT");
    let named = |told: &Finished| {
        told.stderr
            .matches("generator's ceiling, transport ")
            .count()
    };
    assert_eq!(named(&told), 2, "{}", told.stderr);
    let results = experiment(&folder, CEILINGS, "results OUT").succeeded();
    let qps = |path: &str| {
        let text = fs::read_to_string(folder.path(&format!("out/{path}"))).unwrap();
        Metric::Qps.of(&RunRecord::from_json(&text).unwrap())
    };
    for transport in ["udp", "tcp"] {
        let line = format!("generator's ceiling: transport {transport}: ");
        assert_eq!(results.matches(&line).count(), 1, "{results}");
        let ceiling = qps(&format!("ceilings/transport={transport},r1.ceiling")).unwrap();
        // What a host that is busy lets them reach is known from their records.
        for server in ["fast", "slow"] {
            let name = format!("transport {transport}, server {server}");
            let line = format!("near the generator's ceiling: {name}");
            let cell = format!("records/transport={transport},server={server}");
            let is_near = qps(&format!("{cell},r1.json")).unwrap() >= 0.9 * ceiling;
            assert_eq!(results.contains(&line), is_near, "{line}: {results}");
        }
    }
    let records = fs::read_dir(folder.path("out/records")).unwrap();
    assert_eq!(records.count(), 4);
    // What was measured once is not measured again.
    fs::remove_dir_all(folder.path("out/records")).unwrap();
    let again = experiment(&folder, CEILINGS, "run FILE --output OUT");
    assert_eq!(named(&again), 0, "{}", again.stderr);
    let records = fs::read_dir(folder.path("out/records")).unwrap();
    assert_eq!(records.count(), 4);
    let without = CEILINGS.replace("[run]", "[lab]\nceilings = false\n[run]");
    let without = experiment(&folder, &without, "run FILE --output OUT2");
    assert_eq!(named(&without), 0, "{}", without.stderr);
}

#[test]
fn groups_of_a_scenario_ask_a_server_over_their_own_transports() {
    let folder = Folder::new("cells-scenario");
    folder.write(
        "two.toml",
        "rate = 200\nduration = \"200ms\"\n[[clients]]\ncount = 2\n\
         [[clients]]\ncount = 2\ntransport = \"dot\"\n",
    );
    let text = "repeat = 1\n[run]\nscenario = \"two.toml\"\n\
                [[server]]\nproduct = \"bind\"\n";
    experiment(&folder, text, "run FILE --output OUT").succeeded();
    let text = fs::read_to_string(folder.path("out/records/server=bind,r1.json")).unwrap();
    let record = RunRecord::from_json(&text).unwrap();
    let of_each = |group: &measure::experience::GroupRecord| {
        let counts = &group.total.counts;
        assert_eq!(counts.rcodes.by_rcode[0], counts.sent);
        counts.sent
    };
    let sent: Vec<u64> = record.groups.iter().map(of_each).collect();
    assert_eq!(sent, [20, 20]);
    assert!(record.observations.len() > 1);
    assert_eq!(left_in(&folder), 0);
}

#[test]
fn a_server_that_does_not_start_is_told_and_the_others_go_on() {
    let folder = Folder::new("cells-broken");
    let text = r#"
repeat = 1
[run]
rate = 100
duration = "100ms"
[[server]]
product = "bind"
[server.factors]
options = ["no-such-option;", "minimal-responses yes;"]
"#;
    let finished = experiment(&folder, text, "run FILE --output OUT");
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(finished.stderr.contains("unknown option 'no-such-option'"));
    assert!(
        finished.stderr.contains("1 run failed"),
        "{}",
        finished.stderr
    );
    assert_eq!(fs::read_dir(folder.path("out/records")).unwrap().count(), 1);
    assert_eq!(left_in(&folder), 0);
}

/// The process of that program whose folder is in this one.
fn process_in(temporary: &str, program: &str) -> Option<i32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let found = all.filter(|it| {
        let link = |name: &str| fs::read_link(it.path().join(name)).unwrap_or_default();
        link("cwd").starts_with(temporary) && link("exe").ends_with(program)
    });
    let id = |it: fs::DirEntry| it.file_name().to_string_lossy().parse().ok();
    found.filter_map(id).next()
}

#[test]
fn a_server_that_ends_in_mid_run_is_told_and_is_no_result() {
    let folder = Folder::new("cells-killed");
    // The first run ends because its server is gone, and not before.
    let text = r#"
repeat = 1
[run]
transport = "tcp"
outstanding = 1
clients = 1
timeout = "2s"
[matrix]
queries = [1000000000, 20]
[[server]]
product = "unbound"
"#;
    let temporary = folder.path(TEMPORARY);
    fs::create_dir_all(&temporary).unwrap();
    let file = folder.write("killed.toml", text);
    let mut command = Command::new(THRONG);
    command.args(["experiment", "run", &file, "--output", &folder.path("out")]);
    command.env("TMPDIR", &temporary).stderr(Stdio::piped());
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let log = folder.path("out/logs/queries=1000000000,server=unbound,r1.txt");
    wait::until_child(&mut child, "the run", |_| Path::new(&log).exists());
    let server = process_in(&temporary, "unbound").unwrap();
    kill_process(Pid::from_raw(server).unwrap(), Signal::KILL).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let told = "server unbound, repetition 1: `unbound` ended in mid-run (signal: 9 (SIGKILL)";
    assert!(said.contains(told), "{said}");
    assert!(said.contains("1 run failed"), "{said}");
    let records = fs::read_dir(folder.path("out/records")).unwrap().flatten();
    let names = records.map(|it| it.file_name().into_string().unwrap());
    let results: Vec<String> = names.filter(|it| it.ends_with(".json")).collect();
    assert_eq!(results, ["queries=20,server=unbound,r1.json"]);
    assert_eq!(left_in(&folder), 0);
}

#[test]
fn a_server_that_answers_something_else_is_not_timed() {
    let folder = Folder::new("cells-gate");
    let text = format!(
        r#"
repeat = 1
[run]
rate = 100
duration = "100ms"
[matrix]
transport = ["udp", "tcp"]
[[server]]
product = "custom"
[server.factors]
command = "{THRONG} responder --listen udp:{{address}}:{{port}},tcp:{{address}}:{{port}}"
"#
    );
    let finished = experiment(&folder, &text, "run FILE --output OUT");
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    // It has another answer, for any name.
    let told = "does not answer as its zone says, and is not timed: ns.lab.test. A: ";
    let times = finished.stderr.matches(told).count();
    assert_eq!(times, 2, "{}", finished.stderr);
    assert_eq!(fs::read_dir(folder.path("out/records")).unwrap().count(), 0);
    assert_eq!(left_in(&folder), 0);
}

#[test]
fn a_server_whose_user_is_not_there_does_not_start() {
    let folder = Folder::new("cells-user");
    let text = "repeat = 1\n[run]\nrate = 100\nduration = \"100ms\"\n[[server]]\n\
                product = \"nsd\"\nuser = \"no-such-user\"\n";
    let finished = experiment(&folder, text, "run FILE --output OUT");
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let told = "there is no user `no-such-user`";
    assert!(finished.stderr.contains(told), "{}", finished.stderr);
    assert_eq!(left_in(&folder), 0);
}

#[test]
fn both_legs_of_a_forwarder_are_varied_and_observed() {
    let folder = Folder::new("cells-legs");
    let text = r#"
repeat = 1
[run]
rate = 200
queries = 100
[matrix]
transport = ["udp", "dot"]
[[server]]
product = "coredns"
data = "zone:20,ttl=1s"
[server.factors]
behind = ["udp", "dot"]
[[server]]
product = "dnsdist"
data = "zone:20,ttl=1s"
[server.factors]
behind = ["udp", "dot"]
"#;
    experiment(&folder, text, "run FILE --output OUT").succeeded();
    assert_eq!(left_in(&folder), 0);
    let mut cells = BTreeSet::new();
    for entry in fs::read_dir(folder.path("out/records")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let record = RunRecord::from_json(&text).unwrap();
        let labels = &record.scenario.labels;
        let cell = format!(
            "{} over {}, {} behind it",
            labels["product"], record.scenario.transport, labels["behind"]
        );
        assert_eq!(record.total.counts.rcodes.by_rcode[0], 100, "{cell}");
        // Those of the second leg: the BIND behind it was asked each of them.
        let mut observations = record.observations.iter();
        let bind = observations.find(|it| it.profile == "bind");
        let bind = bind.unwrap_or_else(|| panic!("{cell}: {:#?}", record.warnings));
        let counted = |series: &str| bind.series(series).and_then(|it| it.growth);
        assert!(counted("queries") >= Some(100.0), "{cell}: {bind:#?}");
        cells.insert(cell);
    }
    assert_eq!(cells.len(), 8, "{cells:?}");
}

#[test]
fn names_outside_the_zone_are_asked_of_a_resolver() {
    let folder = Folder::new("resolvers-external");
    let names = (1..=10).map(|number| {
        let kinds = [
            "test-record-N.lab.test.",
            "missing-N.lab.test.",
            "www.N.example.",
        ];
        let lines = kinds.map(|kind| kind.replace('N', &number.to_string()) + " A\n");
        lines.concat()
    });
    folder.write("names", names.collect::<String>());
    let mix = EXTERNAL.replace(
        "behind = \"none\"",
        "behind = [\"none\", \"udp\"]\n[matrix]\ntransport = [\"udp\", \"dot\"]",
    );
    experiment(&folder, &mix, "run FILE --output OUT").succeeded();
    let of = |part: &str| {
        let files = fs::read_dir(folder.path(&format!("out/{part}"))).unwrap();
        let texts = files.map(|it| fs::read_to_string(it.unwrap().path()).unwrap());
        texts.collect::<Vec<String>>()
    };
    let records = of("records");
    assert_eq!(records.len(), 4);
    for text in records {
        let record = RunRecord::from_json(&text).unwrap();
        let (counts, latency) = (&record.total.counts, &record.total.distributions.service);
        // Each name twice.
        assert_eq!(counts.rcodes.by_rcode[0], 40, "{:?}", record.verdict);
        assert_eq!(counts.rcodes.by_rcode[3], 20, "{:?}", record.verdict);
        assert!(latency.max_ns() >= Some(30_000_000));
    }
    let results = experiment(&folder, &mix, "results OUT").succeeded();
    let internets = of("internet");
    assert_eq!(internets.len(), 4);
    for text in internets {
        let internet: Internet = serde_json::from_str(&text).unwrap();
        let [external] = internet.servers.as_slice() else {
            panic!("{internet:?}");
        };
        assert_eq!(external.name, "external");
        // A server that was not scheduled asks again.
        let queries = external.counts.queries;
        assert!((10..=20).contains(&queries), "{internet:?}");
        let row = format!("external: {queries} queries");
        assert!(results.contains(&row), "no `{row}`: {results}");
    }
    let wrong = mix.replace("30ms", "soon");
    experiment(&folder, &wrong, "run FILE --output OUT").refused_with("`soon` is wrong", "10ms");
    let cluster = wrong.replace("starts = 1", "starts = 1\ntopology = \"kubernetes\"");
    let cluster = cluster
        .replace("soon", "30ms")
        .replace("data =", "image = \"x\"\ndata =");
    let cluster = cluster.replace("[\"none\", \"udp\"]", "\"none\"");
    experiment(&folder, &cluster, "run FILE --output OUT")
        .refused_with("alone can be in Kubernetes", "veth");
}

/// Experiments that are refused, each with a part of the error and of the hint.
#[track_caller]
fn check_refused(folder: &str, rows: &[(String, &str, &str)]) {
    let folder = Folder::new(folder);
    for (text, error, hint) in rows {
        let (said, cure) = experiment(&folder, text, "plan FILE").refused();
        assert!(said.contains(error), "{text}: {said}");
        assert!(cure.contains(hint), "{text}: {cure}");
    }
}

#[test]
fn what_is_wrong_with_a_server_is_said_before_anything_runs() {
    let server = "[[server]]\nproduct = \"nsd\"\n";
    let rows = [
        (
            "[[server]]\nlabel = \"a\"\n".to_owned(),
            "has no product",
            "bind",
        ),
        (
            "[[server]]\nproduct = \"b\"\n".to_owned(),
            "no product `b`",
            "bind",
        ),
        (
            format!("{server}dta = \"zone:1\"\n"),
            "unknown key `dta`",
            "`data`",
        ),
        (
            format!("{server}data = \"zone:0\"\n"),
            "of `0` names",
            "from 1",
        ),
        (
            format!("{server}[server.factors]\nx = 1\n"),
            "no factor `x`",
            "servers",
        ),
        (
            format!("{server}[server.factors]\nservers = []\n"),
            "has no values",
            "a list",
        ),
        (
            format!("{server}[server.resources]\ndisk = 1\n"),
            "`disk` is not a resource",
            "cpus",
        ),
        (
            format!("{server}[server.resources]\nquota = 0\n"),
            "quota: `0`",
            "0.01",
        ),
    ];
    check_refused("cells-wrong", &rows);
}

#[test]
fn what_is_wrong_with_the_runs_of_a_server_is_said_before_anything_runs() {
    let server = "[[server]]\nproduct = \"nsd\"\n";
    let rows = [
        (
            format!("{server}[lab]\nstarts = 0\n"),
            "`starts` is 0",
            "1 or more",
        ),
        (
            format!("{server}[lab]\nstart = 1\n"),
            "unknown key `start`",
            "starts",
        ),
        (
            format!("{server}[lab]\naa = 2\n"),
            "`aa` is 2, of 1 cells",
            "twice",
        ),
        (
            format!("{server}[run]\ntransport = \"doq\"\n"),
            "NSD has no doq",
            "leave",
        ),
        (
            format!("{server}[run]\nserver = \"::1\"\n"),
            "`server` is the address",
            "leave",
        ),
        (
            format!("{server}change = \"a/deployment/b\"\n"),
            "`product`: what is changed is there already",
            "`change`",
        ),
        (
            "[[server]]\nchange = \"a/pod/b\"\n".to_owned(),
            "`a/pod/b` is not understood",
            "deployment",
        ),
        (
            "[[server]]\nchange = \"a/daemonset/b\"\n[server.factors]\nreplicas = 2\n".to_owned(),
            "a daemonset has a pod on each node",
            "replicas",
        ),
        (
            "[[server]]\nchange = \"a/deployment/b\"\n[server.factors]\nthreads = 2\n".to_owned(),
            "no factor `threads`",
            "replicas",
        ),
        (
            "[[server]]\nchange = \"a/deployment/b\"\n[server.resources]\ncpus = 1\n".to_owned(),
            "no list of CPUs",
            "quota",
        ),
        (
            format!("{server}[lab]\ntopology = \"kubernetes\"\n"),
            "no image of NSD",
            "name one",
        ),
    ];
    check_refused("cells-wrong-runs", &rows);
}
