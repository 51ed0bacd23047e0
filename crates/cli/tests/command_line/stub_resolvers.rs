//! Clients that ask again and have several servers: what is refused, and what is told.

use measure::{RunRecord, TargetRecord};
use testing::folder::Folder;
use testing::ports::ClosedUdpPort;

use crate::process::{Responder, throng};

/// Checks that a run is refused with these parts in its error and its hint.
fn check(flags: &str, error_part: &str, hint_part: &str) {
    throng(&format!("run {flags}")).refused_with(error_part, hint_part);
}

#[test]
fn schedules_that_are_none_are_refused() {
    check("--retry 3s,3s --timeout 2s", "--timeout", "leave out one");
    for (flags, error) in [
        ("--retry soon", "`soon` is not a time above zero"),
        ("--retry 3s,0s", "`0s` is not a time above zero"),
        (
            "--retry glibc,rotate",
            "`rotate`: write timeout=5 or attempts=2",
        ),
    ] {
        check(flags, error, "run --help");
    }
}

#[test]
fn flags_for_several_servers_are_refused_for_one() {
    let no_effect = "it has no effect on clients with one server";
    for (flags, hint) in [
        ("--server-order rotate", "repeating --server"),
        ("--race-delay --transport tcp", "several servers"),
        ("--failover-rcodes SERVFAIL", "several servers"),
        ("--server-dead-for 30s", "several servers"),
    ] {
        check(flags, no_effect, hint);
    }
}

#[test]
fn contradictory_flags_are_refused() {
    let folder = Folder::new("stub-contradictions");
    let names = folder.write("names.txt", "a.example A\n");
    let two = format!("--server 127.0.0.1:1 --server 127.0.0.1:2 --names {names}");
    for (flags, error, hint) in [
        ("--failover-rcodes OOPS", "unknown RCODE `OOPS`", "SERVFAIL"),
        (
            "--race-delay",
            "udp has no TCP connections",
            "tcp, dot or doh2",
        ),
        (
            "--transport tcp --server-order all",
            "a client over tcp has one connection at a time",
            "--race-delay",
        ),
        (
            "--transport tcp --race-delay 0s",
            "race-delay: must not be zero",
            "RFC 8305",
        ),
        (
            "--server 127.0.0.1:1",
            "127.0.0.1:1 occurs twice",
            "leave out one of them",
        ),
        (
            "--local-port 4000",
            "a client has a socket for each of its servers",
            "let the kernel choose",
        ),
        (
            "--server 192.0.33.8",
            "192.0.33.8 is a public address",
            "--allow-public",
        ),
        (
            "--server 127.0.0.2:1 --transport dot",
            "the certificates of 3 servers, and no one name for them",
            "--tls-name",
        ),
        (
            "--server http://127.0.0.1:3/q --transport doh2",
            "requests to both have one URI",
            "the same scheme and path",
        ),
    ] {
        check(&format!("{two} {flags}"), error, hint);
    }
}

#[test]
fn run_goes_on_with_the_second_server_and_says_so() {
    let folder = Folder::new("stub-failover");
    let names = folder.write("names.txt", "a.example A\n");
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let alive = responder.address();
    let closed = ClosedUdpPort::new();
    let file = folder.path("r.json");
    let flags = "--rate 100 --duration 1s --retry glibc,timeout=1 --quiet";
    let servers = format!("--server {} --server {alive}", closed.address());
    let run = format!("run {servers} --names {names} {flags} --record {file}");
    let text = throng(&run).succeeded();
    let record = RunRecord::from_json(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let counts = &record.total.counts;
    assert_eq!((counts.offered, counts.responses), (100, 100), "{counts:?}");
    assert_eq!(counts.stub.responses_by_server, [0, 100]);
    let of = |it: &TargetRecord| (it.messages_sent, it.total.counts.responses);
    let targets: Vec<_> = record.targets.iter().map(of).collect();
    assert_eq!(targets, [(100, 0), (100, 100)]);
    assert!(text.contains("\nTargets\n"), "{text}");
    for line in [
        "  stub resolver  4 attempts of 1.000 s each; servers in their order, the next after \
         SERVFAIL, NOTIMP, REFUSED\n",
        "  answered    100 (100.00 %) at attempt 2\n",
        "  failovers   100: 100 port closed\n",
    ] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
}

#[test]
fn several_servers_in_a_scenario_are_a_list_of_each_group() {
    let folder = Folder::new("stub-scenario");
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let alive = responder.address();
    let scenario = folder.path("scenario.toml");
    let names = folder.write("names.txt", "a.example A\n");
    let text = format!(
        "names = '{names}'\nduration = '1s'\nrate = 100\nno-preflight = true\n\
         [[clients]]\nname = 'one'\ncount = 2\nserver = '{alive}'\n\
         [[clients]]\nname = 'two'\ncount = 2\nserver = ['{alive}', '127.0.0.1:1']\n\
         retry = '1s,1s'\nserver-order = 'stay'\n"
    );
    std::fs::write(&scenario, text).unwrap();
    let json = throng(&format!("run {scenario} --quiet --format json")).succeeded();
    let record = RunRecord::from_json(&json).unwrap();
    assert_eq!(record.total.counts.responses, 100);
    let stubs: Vec<bool> = record
        .groups
        .iter()
        .map(|it| it.scenario.stub.is_some())
        .collect();
    assert_eq!(stubs, [false, true]);
    assert_eq!(record.groups[1].total.counts.stub.responses_by_server, [50]);
}
