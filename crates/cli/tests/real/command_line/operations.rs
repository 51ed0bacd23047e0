//! What is done to a server in mid-run: what is lost around it and not elsewhere, what is recorded,
//! and that nothing is left.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use measure::RunRecord;
use measure::around::Around;
use testing::folder::Folder;
use testing::program::{Running, processes_in, signal};
use testing::quiet::{Disturbance, Quiet};
use testing::wait;

use crate::experiments::{TEMPORARY, experiment, left_in};
use crate::process::THRONG;

/// The records of an experiment by the label of their server, each with what was around its event.
fn made(folder: &Folder) -> Vec<(String, RunRecord, Around)> {
    let entries = fs::read_dir(folder.path("out/records")).unwrap();
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        // Reading it checks its accounting identity.
        let record = RunRecord::from_json(&text).unwrap();
        let server = record.scenario.labels["server"].clone();
        let (event, around) = record.first_event().unwrap();
        assert_eq!(event.error, None, "{server}");
        assert_eq!(record.events.len(), 1, "{server}");
        (server, record.clone(), around)
    };
    entries.map(read).collect()
}

/// What is before, around and after is the whole run.
fn check_whole(record: &RunRecord, around: &Around) {
    let parts = [around.before, around.around, around.after];
    let (due, lost) = parts.iter().fold((0, 0), |(due, lost), part| {
        (due + part.due, lost + part.lost)
    });
    let counts = &record.total.counts;
    assert_eq!((due, lost), (counts.offered, counts.lost()));
}

const RUNS: &str = r#"
repeat = 1
[run]
clients = 2
rate = 200
timeout = "2s"
interval = "100ms"
duration = "3s"
"#;

/// Runs in which nothing is lost where the server only waits for its CPU.
fn patient_runs() -> String {
    RUNS.replace("timeout = \"2s\"", "timeout = \"20s\"")
}

fn servers(products: &[&str]) -> String {
    let of_each = |product: &&str| {
        format!("[[server]]\nproduct = \"{product}\"\ndata = \"zone:30,ttl=1h\"\n")
    };
    products.iter().map(of_each).collect()
}

#[test]
fn a_restart_is_an_outage_around_it_and_nowhere_else() {
    let folder = Folder::new("operations-restart");
    let products = ["bind", "unbound", "knot", "nsd", "coredns"];
    let lab = "[lab]\noperation = \"restart\"\nat = \"20%\"\n";
    let text = format!("{RUNS}{lab}{}", servers(&products));
    experiment(&folder, &text, "run FILE --output OUT").succeeded();
    let made = made(&folder);
    assert_eq!(made.len(), products.len());
    for (server, record, around) in &made {
        check_whole(record, around);
        let event = &record.events[0];
        assert_eq!(event.name, "restart");
        let down_ns = event.down_ns.unwrap();
        assert!(
            down_ns > 0 && down_ns <= event.length_ns(),
            "{server}: {event:?}"
        );
        assert!(event.began_ns >= 600_000_000, "{server}: {event:?}");
        // A server that waits for its CPU may have queries unread when it is ended.
        if Disturbance::of(record).beyond(Quiet::VERDICT).is_none() {
            assert_eq!(around.before.lost, 0, "{server}: {around:?}");
        }
        assert!(around.after.due > 0 || around.around.due > 0, "{server}");
    }
    let lost: u64 = made.iter().map(|(_, _, around)| around.around.lost).sum();
    assert!(lost > 0, "no query was lost by a restart");
    let results = experiment(&folder, &text, "results OUT --metric event.lost").succeeded();
    for words in [
        "mid-run: operation restart, server bind: took ",
        "(down for ",
        "longest time without",
    ] {
        assert!(results.contains(words), "no `{words}`: {results}");
    }
    let record = folder.path("out/records/operation=restart,server=bind,r1.json");
    let text = crate::process::throng(&format!("report {record} --details")).succeeded();
    assert!(text.contains("Operations\n  restart at "), "{text}");
    assert_eq!(left_in(&folder), 0);
}

/// Whoever waits for the beginning of a run learns of that of one in several processes.
#[test]
fn a_run_in_several_processes_has_operations() {
    let folder = Folder::new("operations-processes");
    let lab = "[lab]\noperation = \"restart\"\nat = \"20%\"\n";
    let runs = RUNS.replace("clients = 2\n", "clients = 2\nprocesses = 2\n");
    let text = format!("{runs}{lab}{}", servers(&["nsd"]));
    experiment(&folder, &text, "run FILE --output OUT").succeeded();
    let made = made(&folder);
    let [(_, record, around)] = made.as_slice() else {
        panic!("{} records", made.len());
    };
    check_whole(record, around);
    assert_eq!(record.agent_count, 2);
    assert_eq!(left_in(&folder), 0);
}

#[test]
fn servers_reload_while_they_answer() {
    let folder = Folder::new("operations-reload");
    let products = [
        "bind",
        "unbound",
        "knot",
        "nsd",
        "coredns",
        "pdns-auth",
        "pdns-recursor",
    ];
    let lab = "[lab]\noperation = \"reload\"\nat = \"500ms\"\n";
    let text = format!("{}{lab}{}", patient_runs(), servers(&products));
    experiment(&folder, &text, "run FILE --output OUT").succeeded();
    let made = made(&folder);
    assert_eq!(made.len(), products.len());
    for (server, record, around) in &made {
        check_whole(record, around);
        let event = &record.events[0];
        assert_eq!((event.name.as_str(), event.down_ns), ("reload", None));
        assert!(event.began_ns >= 500_000_000, "{server}: {event:?}");
        assert_eq!(around.before.lost, 0, "{server}: {around:?}");
        if server == "knot" {
            // A slow one goes on until the run ends.
            let given_up = record.total.counts.not_sent.run_ended;
            assert!(around.around.lost <= given_up, "{server}: {around:?}");
        }
    }
    assert_eq!(left_in(&folder), 0);
}

#[test]
fn without_an_operation_nothing_is_done() {
    let folder = Folder::new("operations-none");
    let lab = "[lab]\noperation = [\"none\", \"reload\"]\nat = \"0%\"\n";
    let text = format!("{RUNS}{lab}{}", servers(&["knot"]));
    let plan = experiment(&folder, &text, "plan FILE").succeeded();
    assert!(plan.contains("2 cells"), "{plan}");
    experiment(&folder, &text, "run FILE --output OUT").succeeded();
    let events = |operation: &str| {
        let path = format!("out/records/operation={operation},server=knot,r1.json");
        let text = fs::read_to_string(folder.path(&path)).unwrap();
        RunRecord::from_json(&text).unwrap().events
    };
    assert!(events("none").is_empty());
    assert_eq!(events("reload").len(), 1);
}

#[test]
fn servers_give_their_zone_while_they_answer() {
    let folder = Folder::new("operations-transfer");
    let products = ["bind", "knot", "nsd", "coredns", "pdns-auth"];
    let lab = "[lab]\noperation = \"zone-transfer\"\nat = \"500ms\"\n";
    // More than a message has place for.
    let servers = servers(&products).replace("zone:30", "zone:20000");
    let text = format!("{}{lab}{servers}", patient_runs());
    experiment(&folder, &text, "run FILE --output OUT").succeeded();
    let made = made(&folder);
    assert_eq!(made.len(), products.len());
    for (server, record, around) in &made {
        check_whole(record, around);
        let event = &record.events[0];
        assert_eq!(event.name, "zone-transfer", "{server}");
        assert!(event.length_ns() > 0, "{server}: {event:?}");
        assert_eq!((event.down_ns, around.before.lost), (None, 0), "{server}");
    }
    assert_eq!(left_in(&folder), 0);
}

#[test]
fn servers_come_to_sign_with_a_new_key_while_they_answer() {
    let folder = Folder::new("operations-key-roll");
    let lab = "[lab]\noperation = \"key-roll\"\nat = \"500ms\"\n";
    let signing = "[server.factors]\nsigning = \"on\"\n";
    let of = |product: &str| servers(&[product]).replace("ttl=1h", "ttl=1s") + signing;
    let runs = patient_runs().replace("3s", "6s");
    let text = format!("{runs}dnssec = true\n{lab}{}{}", of("bind"), of("knot"));
    experiment(&folder, &text, "run FILE --output OUT").succeeded();
    let made = made(&folder);
    assert_eq!(made.len(), 2);
    for (server, record, around) in &made {
        check_whole(record, around);
        let event = &record.events[0];
        assert_eq!(event.name, "key-roll", "{server}");
        // The new key is there a second before it signs: so long are the keys in caches.
        assert!(event.length_ns() >= 900_000_000, "{server}: {event:?}");
        assert_eq!((event.down_ns, around.before.lost), (None, 0), "{server}");
    }
    assert_eq!(left_in(&folder), 0);
}

#[test]
fn who_does_not_sign_or_is_in_caches_for_long_has_no_key_to_roll() {
    let folder = Folder::new("operations-no-key-roll");
    let lab = "[run]\nduration = \"2s\"\n[lab]\noperation = \"key-roll\"\n";
    let signing = "[server.factors]\nsigning = \"on\"\n";
    for (server, error, hint) in [
        (
            servers(&["nsd"]),
            "NSD has no operation `key-roll`",
            "here it has reload",
        ),
        (
            servers(&["bind"]),
            "BIND has no key of its own",
            "signing = \"on\"",
        ),
        (
            servers(&["knot"]) + signing,
            "for 3600s",
            "zone:1000,ttl=1s",
        ),
    ] {
        let planned = experiment(&folder, &format!("{lab}{server}"), "plan FILE");
        planned.refused_with(error, hint);
    }
}

#[test]
fn who_gives_no_zone_has_no_transfer_of_one() {
    let folder = Folder::new("operations-no-transfer");
    let lab = "[run]\nduration = \"2s\"\n[lab]\noperation = \"zone-transfer\"\n";
    let behind = "[server.factors]\nbehind = \"udp\"\n";
    for (server, title) in [
        (servers(&["unbound"]), "Unbound"),
        (servers(&["coredns"]) + behind, "CoreDNS"),
    ] {
        let planned = experiment(&folder, &format!("{lab}{server}"), "plan FILE");
        let error = format!("{title} has no operation `zone-transfer`");
        planned.refused_with(&error, "here it has reload, restart");
    }
}

#[test]
fn a_reload_that_fails_fails_the_run_in_the_servers_own_words() {
    let folder = Folder::new("operations-fails");
    // It takes its configuration away once it has read it: a copy, for that in its folder is not
    // its own to remove.
    let program = folder.write(
        "named",
        "#!/bin/sh\ncp named.conf own.conf\n\
         (until grep -q 'all zones loaded' server.log; do :; done; rm own.conf) &\n\
         exec /usr/sbin/named -g -n 1 -c own.conf\n",
    );
    let chmod = Command::new("chmod").args(["+x", &program]).status();
    assert!(chmod.unwrap().success());
    let lab = "[lab]\noperation = \"reload\"\n";
    let server = format!("[[server]]\nproduct = \"bind\"\nprogram = \"{program}\"\n");
    let text = format!("{RUNS}{lab}{server}");
    let finished = experiment(&folder, &text, "run FILE --output OUT");
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    for words in [
        "operation reload: ",
        "reloading configuration failed",
        "1 run failed",
    ] {
        assert!(
            finished.stderr.contains(words),
            "no `{words}`: {}",
            finished.stderr
        );
    }
    let name = "out/records/operation=reload,server=bind,r1.unfinished";
    let text = fs::read_to_string(folder.path(name)).unwrap();
    let record = RunRecord::from_json(&text).unwrap();
    assert!(record.events[0].error.is_some());
    assert_eq!(left_in(&folder), 0);
}

/// A proxy that asks a BIND which stops.
const OUTAGE: &str = r#"
[[server]]
product = "dnsdist"
data = "zone:30,ttl=1h"
"#;

#[test]
fn what_is_behind_a_proxy_stops_and_goes_on() {
    let folder = Folder::new("operations-outage");
    let lab = "[lab]\noperation = \"upstream-outage\"\nat = \"20%\"\noutage = \"4s\"\n";
    let text = format!("{RUNS}{lab}{OUTAGE}").replace("3s", "9s");
    experiment(&folder, &text, "run FILE --output OUT").succeeded();
    let made = made(&folder);
    let (_, record, around) = &made[0];
    check_whole(record, around);
    assert!(record.events[0].length_ns() >= 4_000_000_000);
    // Those that wait in BIND when it stops are lost, though they were due before.
    assert!(around.before.due > around.before.lost, "{around:?}");
    // Their timeout is half of the outage.
    assert!(around.around.lost > 0, "{around:?}");
    assert!(around.silence_ns >= 1_000_000_000, "{around:?}");
    assert!(around.after.due > around.after.lost, "{around:?}");
    assert_eq!(left_in(&folder), 0);
}

#[test]
fn what_a_resolver_asks_stops_and_goes_on() {
    let folder = Folder::new("operations-internet");
    let lab = "[lab]\noperation = [\"restart\", \"upstream-outage\"]\ntopology = \"veth\"\n\
               at = \"20%\"\noutage = \"4s\"\n";
    // Nothing stays in the cache: every query is a question to the zone's server.
    let server = "[[server]]\nproduct = \"unbound\"\ndata = \"zone:30,ttl=0s\"\n\
                  [server.factors]\ninternet = \"0ms/0ms/0ms\"\n\
                  [server.resources]\ncpus = 0\nquota = 0.9\n";
    // Long enough for a resolver that has to share its CPU to try the zone's server again.
    let text = format!("{RUNS}{lab}{server}").replace("3s", "15s");
    experiment(&folder, &text, "run FILE --output OUT").succeeded();
    let made = made(&folder);
    assert_eq!(made.len(), 2);
    for (_, record, around) in &made {
        check_whole(record, around);
        assert!(around.around.lost > 0, "{:?} {around:?}", record.events);
        assert!(around.after.due > around.after.lost, "{around:?}");
    }
    assert_eq!(left_in(&folder), 0);
}

/// True if a process with that folder for its own is stopped.
fn has_stopped(temporary: &str) -> bool {
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let is_stopped = |entry: fs::DirEntry| {
        let path = entry.path();
        let folder = fs::read_link(path.join("cwd")).unwrap_or_default();
        let stat = fs::read_to_string(path.join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        folder.starts_with(temporary) && state.starts_with('T')
    };
    all.into_iter().any(is_stopped)
}

#[test]
fn an_interrupt_in_the_middle_of_an_outage_leaves_nothing() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let folder = Folder::new("operations-interrupt");
        let lab = "[lab]\noperation = \"upstream-outage\"\nat = \"0%\"\noutage = \"100s\"\n";
        let text = format!("{RUNS}{lab}{OUTAGE}").replace("3s", "200s");
        let file = folder.write("operations.toml", text);
        let temporary = folder.path(TEMPORARY);
        fs::create_dir_all(&temporary).unwrap();
        let mut command = Command::new(THRONG);
        command.args(["experiment", "run", &file, "--output", &folder.path("out")]);
        command.env("TMPDIR", &temporary);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        let mut running = Running(command.spawn().unwrap());
        wait::until_child(&mut running.0, "the outage", |_| has_stopped(&temporary));
        signal(&running.0, name);
        let stderr = BufReader::new(running.0.stderr.take().unwrap());
        let said: Vec<String> = stderr.lines().map(Result::unwrap).collect();
        assert_eq!(running.0.wait().unwrap().code(), Some(code), "{said:?}");
        assert_eq!(processes_in(Path::new(&temporary)), [""; 0], "{said:?}");
        assert_eq!(left_in(&folder), 0, "{said:?}");
    }
}

#[test]
fn what_is_wrong_with_an_operation_is_said_before_anything_runs() {
    let folder = Folder::new("operations-wrong");
    let bind = "[[server]]\nproduct = \"bind\"\n";
    let proxy = "[[server]]\nproduct = \"haproxy\"\n";
    let run = "[run]\nduration = \"2s\"\n";
    let tcp = "[run]\nduration = \"2s\"\ntransport = \"tcp\"\n";
    for (text, error, hint) in [
        (
            format!("{run}[lab]\noperation = \"reboot\"\n{bind}"),
            "no operation `reboot`",
            "none, or one of reload, restart",
        ),
        (
            format!("{run}[lab]\noperation = []\n{bind}"),
            "`operation` has no values",
            "a list",
        ),
        (
            format!("{run}[lab]\noperation = \"reload\"\nat = \"100%\"\n{bind}"),
            "`at`: `100%` is not a time",
            "below 100%",
        ),
        (
            format!("{run}[lab]\noperation = \"reload\"\nat = \"2s\"\n{bind}"),
            "is at 2s, and the runs take 2s",
            "earlier",
        ),
        (
            format!("[run]\nqueries = 5\n[lab]\noperation = \"reload\"\n{bind}"),
            "has no time",
            "duration",
        ),
        (
            format!("{run}[lab]\noperation = \"restart\"\noutage = \"long\"\n{bind}"),
            "`outage`",
            "a time",
        ),
        (
            format!("{run}[lab]\noperation = \"upstream-outage\"\noutage = \"1001ms\"\n{proxy}")
                .replace("[lab]", "transport = \"tcp\"\n[lab]"),
            "an outage of 1.001s does not end in a run of 2s",
            "shorter `outage`",
        ),
        (
            format!("{run}[lab]\noperation = \"upstream-outage\"\n{bind}"),
            "BIND has nothing behind it",
            "proxy",
        ),
        (
            format!("{tcp}[lab]\noperation = [\"none\", \"reload\"]\n{proxy}"),
            "HAProxy has no operation `reload`",
            "restart, upstream-outage",
        ),
        (
            format!("{run}[lab]\noperation = \"restart\"\n"),
            "there is no server for it",
            "[[server]]",
        ),
        (
            format!("{run}[lab]\noperation = \"restart\"\ntopology = \"kubernetes\"\n{bind}"),
            "the cluster's to start and to end",
            "another topology",
        ),
    ] {
        let (said, cure) = experiment(&folder, &text, "plan FILE").refused();
        assert!(said.contains(error), "{text}: {said}");
        assert!(cure.contains(hint), "{text}: {cure}");
    }
}
