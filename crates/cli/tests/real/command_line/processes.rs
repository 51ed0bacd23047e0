//! Runs and responders in several processes: one result, and nothing left behind.

use std::fs;
use std::process::{Command, Stdio};

use measure::record::EndedBy;
use measure::{ResponderFacts, RunRecord};
use testing::due;
use testing::folder::Folder;
use testing::program::{execute, signal, wait_until_ended};

use testing::wait;

use crate::process::{Responder, THRONG, measured, throng};
use crate::running::{Running, children_of};

/// Every query that the schedule has is there once, whatever processes it was divided among.
fn assert_whole(record: &RunRecord, queries: u64) {
    due::assert_answered(record, queries);
    if record.ended_by == EndedBy::Queries {
        assert!(due::are_all_sent(record), "{:?}", record.total.counts);
    }
    assert_eq!((record.generators, record.agent_count), (1, 3));
    assert_eq!((record.workers.len(), record.scenario.workers), (3, 3));
    // A row for each agent; of the host they share, one.
    assert_eq!((record.hosts.len(), record.agents.len()), (1, 3));
    let own = record.agents.iter().filter_map(|it| it.counts);
    assert_eq!(own.map(|it| it.sent).sum::<u64>(), record.total.counts.sent);
    let of_workers = record.workers.iter().map(|it| it.agent);
    assert_eq!(of_workers.collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    // All processes were told the same.
    assert_eq!(record.asked[0].name, record.groups[0].name);
    assert_eq!(record.check(), Ok(()));
    let joined = record.intervals.windows(2);
    for pair in joined {
        assert_eq!(pair[0].end_ns, pair[1].start_ns);
    }
}

#[test]
fn processes_divide_a_run_exactly_over_each_transport() {
    for transport in ["udp", "tcp", "dot", "doq"] {
        let record = measured(&format!(
            "--agents 3 --clients 10 --rate 2000 --duration 1s --interval 200ms --timeout 20s \
             --transport {transport}"
        ));
        assert_whole(&record, 2_000);
        assert_eq!(record.scenario.clients, 10);
        assert_eq!(record.groups[0].clients, 10);
        let experience = record.experience().unwrap();
        assert_eq!(experience.clients(), 10);
        let in_window = record.intervals_in_window();
        let offered: Vec<u64> = in_window.map(|it| it.counts.offered).collect();
        assert_eq!(offered.len(), 5, "{offered:?}");
        if transport == "dot" {
            let tls = record.scenario.tls.as_ref().unwrap();
            assert_eq!(tls.version.as_deref(), Some("TLS 1.3"));
        }
    }
}

#[test]
fn reports_have_a_row_for_each_agent_and_where_it_was_placed() {
    let folder = Folder::new("processes-rows");
    let path = folder.path("record.json");
    let placed = execute(&format!(
        "env THRONG_NODE=node-7 THRONG_ZONE=eu-1a THRONG_POD=agents-0 {THRONG} run --quiet \
         --agents 3 --clients 6 --rate 600 --duration 1s --timeout 20s --details --record {path}"
    ));
    let text = placed.succeeded();
    let (_, rows) = text.split_once("\nAgents\n").unwrap();
    for agent in ["  agent 1  ", "  agent 2  ", "  agent 3  "] {
        assert!(rows.contains(agent), "{rows}");
    }
    let record = RunRecord::from_json(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_whole(&record, 600);
    for agent in &record.agents {
        let placement = agent.placement.as_ref().unwrap();
        assert_eq!(placement.node.as_deref(), Some("node-7"));
        assert_eq!(placement.zone.as_deref(), Some("eu-1a"));
        assert_eq!(placement.pod.as_deref(), Some("agents-0"));
        assert!(agent.first_late_ns.is_some());
    }
    let lost = record.agents.iter().map(|it| it.counts.unwrap().lost);
    let lost = lost.sum::<Option<u64>>();
    assert_eq!(lost, Some(record.total.counts.not_sent.run_ended));
    let csv = throng(&format!("report {path} --format csv-agents")).succeeded();
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 4, "{csv}");
    assert!(
        rows[3].starts_with("3,agent 3,node-7,eu-1a,agents-0,,"),
        "{csv}"
    );
    let html = throng(&format!("report {path} --format html")).succeeded();
    assert!(html.contains("first query late"));
    let several = throng(&format!("report {path} {path} --format csv-agents"));
    several.refused_with(
        "2 runs: rows of agents are of one run",
        "give it one run record",
    );
    let csv = throng(&format!("report {path} --format csv-agent-intervals")).succeeded();
    for (position, agent) in record.agents.iter().enumerate() {
        let prefix = format!("{},", position + 1);
        let own = csv.lines().filter(|row| row.starts_with(&prefix));
        let sent = own.map(|row| row.split(',').nth(4).unwrap().parse::<u64>().unwrap());
        assert_eq!(sent.sum::<u64>(), agent.counts.unwrap().sent, "{csv}");
    }
}

#[test]
fn processes_merge_the_intervals_of_a_long_run_as_one_does() {
    let record = measured(
        "--agents 3 --clients 10 --rate 2000 --duration 1500ms --interval 1ms --timeout 20s",
    );
    assert_whole(&record, 3_000);
    assert_eq!(record.intervals_merged, 2);
    let within: Vec<u64> = record
        .intervals_in_window()
        .map(|it| it.length_ns())
        .collect();
    assert_eq!(within, [2_000_000; 750]);
}

#[test]
fn a_number_of_queries_is_divided_among_processes() {
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let folder = Folder::new("processes-queries");
    let names = folder.write("names.txt", "a.example A\nb.example A\nc.example A\n");
    let address = responder.address();
    let record = measured(&format!(
        "--agents 3 --server {address} --names {names} --queries 1001 --outstanding 10 \
         --clients 7"
    ));
    assert_whole(&record, 1_001);
    assert_eq!(record.ended_by, EndedBy::Queries);
    assert_eq!(responder.counters().get("queries received"), 1_001);
}

#[test]
fn clients_ask_the_same_in_one_process_as_in_three() {
    let flags = "--clients 30 --per-client poisson:20 --duration 1s --timeout 20s";
    let together = measured(&format!("{flags} --workers 3"));
    let divided = measured(&format!("{flags} --agents 3"));
    let offered = divided.total.counts.offered;
    assert_eq!(offered, together.total.counts.offered);
    assert_whole(&divided, offered);
    let queries = |record: &RunRecord| record.experience().unwrap().queries;
    assert_eq!(queries(&divided), queries(&together));
}

#[test]
fn a_scenario_is_divided_group_by_group() {
    let folder = Folder::new("processes-scenario");
    let scenario = folder.write(
        "scenario.toml",
        "duration = '1s'\ntimeout = '20s'\n\
         [[clients]]\nname = 'many'\ncount = 20\nper-client = 'constant:10'\ntransport = 'tcp'\n\
         [[clients]]\nname = 'one'\ncount = 1\nper-client = 'constant:50'\n\
         [[events]]\nat = '500ms'\nclients = 'many'\nshare = 0.5\nleave = true\n",
    );
    let flags = "--seed 7 --quiet --format json";
    let run = |processes: u32| {
        let line = format!("run {scenario} {flags} --agents {processes}");
        RunRecord::from_json(&throng(&line).succeeded()).unwrap()
    };
    let (together, divided) = (run(1), run(3));
    assert_whole(&divided, together.total.counts.offered);
    let told = |record: &RunRecord| -> Vec<(String, u64, u64)> {
        let groups = record.groups.iter();
        groups
            .map(|group| {
                (
                    group.name.clone(),
                    group.clients,
                    group.total.counts.offered,
                )
            })
            .collect()
    };
    assert_eq!(told(&divided), told(&together));
    assert_eq!(divided.scenario.clients, together.scenario.clients);
}

#[test]
fn a_part_that_is_killed_ends_the_run_with_an_error_and_nothing_is_left() {
    let mut running = Running::start("--agents 3 --rate 300");
    let agents = children_of(running.child.id());
    assert_eq!(agents.len(), 3);
    execute(&format!("kill -s KILL {}", agents[1])).succeeded();
    let (code, stdout, stderr) = running.ended();
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    let error = format!(
        "error: agent 2 of 3 (PID {}) died in the run: signal 9\n",
        agents[1]
    );
    assert!(stderr.contains(&error), "{stderr}");
    assert!(stderr.contains("hint: the others were ended"), "{stderr}");
    wait_until_ended(&agents);
}

#[test]
fn parts_are_gone_when_their_parent_is_killed() {
    let running = Running::start("--agents 3 --rate 300 --transport tcp");
    let agents = children_of(running.child.id());
    assert_eq!(agents.len(), 3);
    signal(&running.child, "KILL");
    wait_until_ended(&agents);
}

#[test]
fn an_interrupt_ends_all_parts_with_a_complete_record() {
    let folder = Folder::new("processes-interrupt");
    let path = folder.path("record.json");
    let flags = format!("--agents 3 --rate 500 --transport tcp --record {path}");
    let mut running = Running::start(&flags);
    let agents = children_of(running.child.id());
    signal(&running.child, "INT");
    let (code, stdout, stderr) = running.ended();
    assert_eq!(code, Some(130), "{stderr}");
    assert!(stdout.contains("Interrupted. "), "{stdout}");
    let record = RunRecord::from_json(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(record.ended_by, EndedBy::Interrupted);
    let counts = &record.total.counts;
    assert!(counts.sent > 0);
    assert_eq!(counts.responses, counts.sent);
    wait_until_ended(&agents);
}

#[test]
fn the_limit_on_open_files_divides_generator_and_responder() {
    let folder = Folder::new("processes-limit");
    let script = folder.write("run.sh", format!("ulimit -n 200\nexec {THRONG} \"$@\"\n"));
    for transport in ["udp", "tcp"] {
        let line = format!(
            "sh {script} run --quiet --format json --clients 400 --per-client constant:5 \
             --duration 1s --timeout 20s --transport {transport}"
        );
        let record = RunRecord::from_json(&execute(&line).succeeded()).unwrap();
        assert_eq!((record.scenario.clients, record.agent_count), (400, 3));
        due::assert_answered(&record, 2_000);
        assert_eq!(record.responder, Some(ResponderFacts::default()));
        if transport == "tcp" {
            assert_eq!(record.connections().attempted, 400);
        }
    }
}

#[test]
fn what_the_target_of_a_self_test_could_not_accept_is_in_the_record() {
    let folder = Folder::new("processes-inherited");
    // Files that come from the parent are not in the sum of what a run needs.
    let script = "for file in {20..90}; do eval \"exec $file< /dev/null\"; done\nulimit -n $1\n";
    let script = folder.write("run.sh", format!("{script}shift\nexec {THRONG} \"$@\"\n"));
    // Which end has the last file is chance, and another with each limit.
    let mut records = (174..190).map(|limit| {
        let line = format!(
            "bash {script} {limit} run --quiet --format json --transport tcp --clients 60 \
             --rate 500 --queries 100 --timeout 2s"
        );
        RunRecord::from_json(&execute(&line).stdout).unwrap()
    });
    let failed = |record: &RunRecord| record.responder.unwrap().accepts_failed > 0;
    let record = records
        .find(failed)
        .expect("one of the limits is the responder's");
    let told = |it: &String| it.contains("the built-in responder could not accept connections");
    assert!(record.warnings.iter().any(told), "{:?}", record.warnings);
}

#[test]
fn a_responder_in_processes_adds_up_what_they_counted() {
    let responder = Responder::start("udp:127.0.0.1:0,tcp:127.0.0.1:0", "--processes 3");
    let folder = Folder::new("processes-responder");
    let names = folder.write("names.txt", "a.example A\n");
    for (transport, address) in &responder.addresses {
        let record = measured(&format!(
            "--server {address} --names {names} --transport {transport} --queries 500 --clients 40"
        ));
        assert_eq!(record.total.counts.responses, 500);
    }
    let counters = responder.counters();
    assert_eq!(counters.get("queries received"), 1_000);
    assert_eq!(counters.get("responses sent"), 1_000);
}

#[test]
fn standard_input_is_read_once_for_all_processes() {
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let address = responder.address();
    let flags =
        format!("run --quiet --format json --server {address} --names - --agents 3 --queries 30");
    let stdout = crate::process::throng_with(&flags, b"a.example A\nb.example A\n").succeeded();
    let record = RunRecord::from_json(&stdout).unwrap();
    assert_eq!(record.scenario.questions.count, 2);
    assert_whole(&record, 30);
}

#[test]
fn more_clients_than_an_address_has_ports_get_further_addresses() {
    let record = measured(
        "--clients 30000 --per-client constant:0.5 --duration 2s --timeout 20s --interval 500ms",
    );
    assert_eq!(record.scenario.clients, 30_000);
    assert!(record.scenario.local_addresses.len() >= 2);
    due::assert_offered(&record, 30_000);
}

#[test]
fn commands_for_throng_itself_are_refused_without_a_setup() {
    let finished = throng("agent 0/1");
    let told = finished.stderr.clone();
    assert!(told.contains("for `throng` itself"), "{told}");
    finished.ended_with(1);
    throng("turn").refused_with("for `throng` itself", "throng run");
}

#[test]
fn ipv6_has_one_loopback_address_and_elsewhere_addresses_are_given() {
    let responder = Responder::start("udp:[::1]:0,udp:127.0.0.1:0", "");
    let folder = Folder::new("processes-addresses");
    let names = folder.write("names.txt", "a.example A\n");
    let many = format!("run --quiet --names {names} --clients 100000 --queries 1");
    let ipv6 = responder.addresses[0].1;
    let (error, hint) = throng(&format!("{many} --server {ipv6}")).refused();
    assert!(error.starts_with("100000 clients need "), "{error}");
    assert!(hint.contains("::1 is the only loopback address"), "{hint}");
    let ipv4 = responder.addresses[1].1;
    let given = format!("{many} --server {ipv4} --local-address 127.0.0.9");
    throng(&given).refused_with("source addresses", "--local-address");
}

/// A file of proc(5) of a process, as text.
fn of_process(pid: u32, name: &str) -> String {
    let octets = std::fs::read(format!("/proc/{pid}/{name}")).unwrap();
    String::from_utf8_lossy(&octets).into_owned()
}

/// Checks that nobody sees the secret by looking at a process.
fn check_without_secret(pid: u32) {
    for name in ["cmdline", "environ"] {
        let text = of_process(pid, name);
        assert!(!text.contains(SECRET), "{name}: {text}");
    }
}

/// The process of the run that a command makes in turn, once it is there.
fn turn_of(command: u32) -> u32 {
    let is_turn = |pid: &u32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline"));
        line.is_ok_and(|line| line.contains("turn\0"))
    };
    wait::for_some("the process of the run", || {
        children_of(command).into_iter().find(is_turn)
    })
}

const SECRET: &str = "cGxhbnRlZCBzZWNyZXQ=";

#[test]
fn nobody_sees_in_a_part_what_its_parent_was_given() {
    let mut running = Running::start(&format!(
        "--format json --agents 2 --clients 4 --rate 100 --tsig hmac-sha256:k:{SECRET}"
    ));
    for agent in children_of(running.child.id()) {
        assert!(of_process(agent, "cmdline").contains("agent\0"));
        check_without_secret(agent);
    }
    signal(&running.child, "INT");
    let (code, stdout, stderr) = running.ended();
    assert_eq!(code, Some(130), "{stderr}");
    let record = RunRecord::from_json(&stdout).unwrap();
    assert_eq!(
        record.scenario.tsig_algorithm.as_deref(),
        Some("hmac-sha256")
    );
    assert!(record.total.counts.responses > 0);
}

#[test]
fn nobody_sees_in_a_run_made_in_turn_what_its_command_was_given() {
    let folder = Folder::new("turn-secret");
    let text = format!("[run]\nduration = \"60s\"\nrate = 100\ntsig = \"k:{SECRET}\"\n");
    let (file, output) = (folder.write("turn.toml", text), folder.path("made"));
    let run = format!("run --duration 60s --rate 100 --tsig k:{SECRET}");
    let records = folder.path("compared");
    for arguments in [
        vec!["experiment", "run", &file, "--output", &output],
        vec!["compare", "--a", &run, "--b", &run, "--records", &records],
    ] {
        let mut command = Command::new(THRONG);
        command.args(&arguments).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running::from_command(command);
        check_without_secret(turn_of(running.child.id()));
        signal(&running.child, "INT");
        let (code, _, stderr) = running.ended();
        assert_eq!(code, Some(130), "{arguments:?}: {stderr}");
        assert!(!stderr.contains(SECRET), "{stderr}");
    }
}
