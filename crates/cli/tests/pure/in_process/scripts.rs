//! `throng run --script` and `throng script check`.

use std::path::Path;

use measure::RunRecord;
use testing::folder::Folder;

use crate::call::{simulated, throng};

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
fn a_run_follows_a_script_and_keeps_what_it_measured() {
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
        let flags = format!("run --driver sim --transport {transport} --clients 8 --script {path}");
        let text = throng(&format!("{flags} --record {record} --details")).succeeded();
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
        let flags = format!("--clients 20 --duration 60s --script {path}");
        let record = simulated(&flags);
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
            "run --driver sim --quiet --format json --clients {clients} --script {path} \
             --duration 5s"
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
