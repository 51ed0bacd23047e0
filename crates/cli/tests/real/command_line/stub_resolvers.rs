//! Clients that ask again and have several servers: what is told of them.

use measure::{RunRecord, TargetRecord};
use testing::due;
use testing::folder::Folder;
use testing::ports::ClosedUdpPort;

use crate::process::{Responder, throng};

#[test]
fn run_goes_on_with_the_second_server_and_says_so() {
    let folder = Folder::new("stub-failover");
    let names = folder.write("names.txt", "a.example A\n");
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let alive = responder.address();
    let closed = ClosedUdpPort::new();
    let file = folder.path("r.json");
    let flags = "--rate 100 --queries 100 --retry glibc,timeout=1 --quiet";
    let servers = format!("--server {} --server {alive}", closed.address());
    let run = format!("run {servers} --names {names} {flags} --details --record {file}");
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
        "  answered    100 (100 %) at attempt 2\n",
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
    due::assert_answered(&record, 100);
    let stubs: Vec<bool> = record
        .groups
        .iter()
        .map(|it| it.scenario.stub.is_some())
        .collect();
    assert_eq!(stubs, [false, true]);
    let counts = &record.groups[1].total.counts;
    assert_eq!(counts.offered, 50);
    assert_eq!(counts.stub.responses_by_server, [counts.sent]);
}
