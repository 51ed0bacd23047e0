//! `throng run --script` and `throng script check`.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use measure::RunRecord;
use measure::record::EndedBy;
use testing::folder::Folder;
use testing::program::signal;

use crate::process::{THRONG, measured, throng};

const SHIPPED: [&str; 3] = ["browser", "stub", "water-torture"];

fn shipped(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join(format!("scenarios/scripts/{name}.lua"));
    path.to_str().unwrap().to_owned()
}

#[test]
fn scripts_that_ship_pass_their_check() {
    for name in SHIPPED {
        let text = throng(&format!("script check {}", shipped(name))).succeeded();
        assert!(text.contains("lua: 3 clients asked "), "{text}");
        assert!(text.contains(", 0 failed\n"), "{text}");
    }
}

#[test]
fn a_check_shows_what_is_printed_and_measured_and_refuses_what_fails() {
    let folder = Folder::new("script-check");
    let good = folder.write(
        "good.lua",
        "function setup() print('ready') end
         function client(c)
           print('hello', #questions, questions[1].name)
           count('rcode ' .. (c:query(1).rcode or 'none'))
           observe('ms', 2.5)
         end",
    );
    let names = folder.write("names.txt", "www.example.com A\n");
    let text = throng(&format!("script check {good} --names {names}")).succeeded();
    let (first, rest) = text.split_once('\n').unwrap();
    assert_eq!(first, "setup: ready");
    assert!(
        rest.starts_with("client 1: hello\t1\twww.example.com\n"),
        "{text}"
    );
    assert!(text.contains("  rcode NOERROR: "), "{text}");
    assert!(text.contains("  ms: "), "{text}");
    for (content, wanted) in [
        (
            "function client(c)\n  c:query(\nend",
            ":3: unexpected symbol near 'end'",
        ),
        (
            "function client(c)\n  c:qury('a.test')\nend",
            ":2: attempt to call method 'qury'",
        ),
        (
            "function client(c)\n  while true do end\nend",
            ":2: stopped after 20000000 instr",
        ),
        ("local x = os.time()", ":1: attempt to index global 'os'"),
        ("x = 1", ": it defines no function client(c)"),
    ] {
        let bad = folder.write("bad.lua", content);
        // What it printed before it failed is shown too: it helps to find the fault.
        let finished = throng(&format!("script check {bad}"));
        assert_eq!(finished.code, Some(2), "{}", finished.stderr);
        let wanted = format!("bad.lua{wanted}");
        assert!(finished.stderr.contains(&wanted), "{}", finished.stderr);
    }
}

#[test]
fn a_self_test_follows_a_script_and_keeps_what_it_measured() {
    let folder = Folder::new("script-run");
    let path = folder.write(
        "polite.lua",
        "function client(c)
           for i = 1, 50 do
             local r = c:query('test-record-' .. c:random(1000) .. '.throng.test', 'A')
             count(r.rcode or r.lost)
             observe('latency ms', r.latency_ms)
             c:sleep(c:exponential(0.001))
           end
           if c.index == 3 then error('third') end
         end",
    );
    for transport in ["udp", "dot", "doq"] {
        let record = folder.path("record.json");
        let flags = format!("run --transport {transport} --clients 8 --script {path}");
        let text = throng(&format!("{flags} --record {record}")).succeeded();
        assert!(
            text.contains("polite.lua, 8 clients: 7 returned, 1 failed"),
            "{text}"
        );
        assert!(text.contains("polite.lua:8: third"), "{text}");
        let json = std::fs::read_to_string(&record).unwrap();
        let record = RunRecord::from_json(&json).unwrap();
        let script = record.groups[0].script.as_ref().unwrap();
        assert_eq!(script.metrics.counters["NOERROR"], 400.0, "{transport}");
        assert_eq!(script.metrics.observed["latency ms"].count(), 400);
        assert_eq!(record.total.counts.responses, 400);
        assert!(record.scenario.script.unwrap().ends_with("polite.lua"));
    }
}

#[test]
fn scripts_that_ship_run_against_the_built_in_responder() {
    for name in SHIPPED {
        let path = shipped(name);
        let flags = format!("--driver sim --clients 20 --duration 60s --script {path}");
        let record = measured(&flags);
        assert!(record.total.counts.responses > 100, "{name}");
        assert_eq!(record.groups[0].script.as_ref().unwrap().failures.total, 0);
    }
}

#[test]
fn a_script_that_cannot_be_used_is_refused_before_the_run() {
    let folder = Folder::new("script-refused");
    let bad = folder.write("bad.lua", "function client(c) end end");
    throng(&format!("run --script {bad}")).refused_with(
        "bad.lua:1: '<eof>' expected near 'end'",
        "throng script check",
    );
    let (what, _) = throng(&format!("run --script {bad} --rate 5")).refused();
    assert!(what.contains("--script"), "{what}");
    let (what, _) = throng("run --script no-such-file.lua").refused();
    assert!(what.contains("no-such-file.lua"), "{what}");
}

#[test]
fn a_run_whose_clients_all_failed_in_their_script_has_failed() {
    let folder = Folder::new("script-all-failed");
    let early = folder.write("early.lua", "function client(c)\n error('at once')\nend");
    let late = folder.write(
        "late.lua",
        "function client(c)\n c:query('a.test')\n error('after a query')\nend",
    );
    for (path, clients, message) in [
        (&early, 10, "early.lua:2: at once"),
        (&late, 10, "late.lua:3: after a query"),
        (&late, 1, "late.lua:3: after a query"),
    ] {
        let finished = throng(&format!(
            "run --quiet --format json --clients {clients} --script {path} --duration 5s"
        ));
        let wanted = "error: the script of every client failed: ";
        assert!(finished.stderr.contains(wanted), "{}", finished.stderr);
        assert!(finished.stderr.contains(message), "{}", finished.stderr);
        let record = RunRecord::from_json(&finished.ended_with(1)).unwrap();
        for worker in &record.workers {
            assert!(worker.busy_share() <= 1.0, "{worker:?}");
        }
        let evidence = record.verdict.evidence.join("\n");
        let is_told = path == &late || evidence.contains(message);
        assert!(is_told, "{evidence}");
    }
}

/// The first client goes through a large table without an entry again and again, from half a second
/// on. That is a function in C that nobody counts, so it takes long until somebody looks.
const HANGS: &str = include_str!("hangs.lua");

#[test]
fn a_worker_that_does_not_end_is_left_behind_and_the_others_are_recorded() {
    let folder = Folder::new("script-hangs");
    let path = folder.write("hangs.lua", HANGS);
    let record = folder.path("record.json");
    for (flags, processes) in [("--workers 2", 1), ("--workers 2 --processes 2", 2)] {
        let finished = throng(&format!(
            "run --quiet --clients 4 --interval 100ms --duration 1s --script {path} {flags} \
             --delay 30ms --record {record}"
        ));
        let wanted = "error: worker 0 did not end with the run";
        assert!(finished.stderr.contains(wanted), "{}", finished.stderr);
        let text = finished.ended_with(1);
        assert!(text.contains("worker 0 did not end with the run"), "{text}");
        let json = std::fs::read_to_string(&record).unwrap();
        let record = RunRecord::from_json(&json).unwrap();
        assert_eq!(record.processes, processes);
        assert_eq!(record.simulation, None);
        let [stuck, _] = record.workers.as_slice() else {
            panic!("{:?}", record.workers);
        };
        assert!(stuck.left_behind, "{stuck:?}");
        let counts = &record.total.counts;
        assert!(counts.responses > 0);
        // The other client of the worker that is stuck waits for a response.
        assert!(counts.interrupted > 0);
        assert_eq!(counts.check_identity(), Ok(()));
        assert!(record.timeline.is_none());
    }
}

/// Seconds of CPU that a process has used.
fn cpu_seconds(child: &Child) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    // Behind the name, which may have blanks: the 14th and 15th field of all, in ticks, of which
    // Linux has 100 a second.
    let fields = stat.rsplit(')').next().unwrap().split_whitespace();
    let ticks = fields.skip(11).take(2).map(|it| it.parse::<u64>().unwrap());
    ticks.sum::<u64>() / 100
}

#[test]
fn a_simulation_that_is_stuck_is_left_behind_at_a_signal_with_its_record() {
    let folder = Folder::new("script-hangs-simulated");
    let path = folder.write("hangs.lua", HANGS);
    let record = folder.path("record.json");
    let line = format!(
        "run --quiet --driver sim --clients 4 --workers 2 --interval 100ms --duration 60s \
         --sim-delay 30ms --script {path} --record {record}"
    );
    let mut child = Command::new(THRONG)
        .args(line.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It gets stuck long before it has used so much.
    let begun = Instant::now();
    while cpu_seconds(&child) < 4 {
        assert!(begun.elapsed().as_secs() < 120, "it does nothing");
        thread::yield_now();
    }
    signal(&child, "TERM");
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143), "{said}");
    assert!(said.contains("worker 0 did not end with the run"), "{said}");
    let json = std::fs::read_to_string(&record).unwrap();
    let record = RunRecord::from_json(&json).unwrap();
    assert!(record.simulation.is_some() && record.workers[0].left_behind);
    assert_eq!(record.ended_by, EndedBy::Interrupted);
    assert!(record.total.counts.responses > 0);
}

#[test]
fn a_pattern_that_backtracks_is_stopped_with_its_line() {
    let folder = Folder::new("script-pattern");
    let path = folder.write(
        "backtracks.lua",
        "function client(c)
           local text = ('a'):rep(3000)
           text:find(('a-'):rep(9) .. 'b')
         end",
    );
    let finished = throng(&format!(
        "run --quiet --script {path} --clients 4 --duration 60s --driver sim"
    ));
    let wanted = "backtracks.lua:3: stopped after 20000000 instructions";
    assert!(finished.stderr.contains(wanted), "{}", finished.stderr);
    finished.ended_with(1);
}
