//! `throng replay` by sockets of the kernel.

use measure::RunRecord;
use measure::scenario::Transport;
use testing::folder::Folder;

use crate::process::{throng, throng_with};
use crate::query_logs::log;

/// Replays the log; the record.
fn replayed(folder: &Folder, flags: &str) -> RunRecord {
    let file = folder.write("query.log", log());
    let json = throng(&format!("replay {file} --quiet --format json {flags}")).succeeded();
    RunRecord::from_json(&json).unwrap_or_else(|reason| panic!("{flags}: {reason}"))
}

#[test]
fn sockets_of_the_kernel_and_several_processes_ask_the_same() {
    let folder = Folder::new("replay-processes");
    let one = replayed(&folder, "--speed 20 --transport tcp");
    assert_eq!(one.scenario.transport, Transport::Tcp);
    let two = replayed(&folder, "--speed 20 --transport tcp --agents 2 --loops 2");
    assert_eq!(two.agent_count, 2);
    for (record, queries) in [(&one, 600), (&two, 1_200)] {
        let counts = &record.total.counts;
        assert_eq!((counts.offered, counts.responses), (queries, queries));
        assert_eq!(record.total.distributions.send_lateness.count(), queries);
        assert_eq!(record.scenario.clients, 10);
        assert!(record.check().is_ok());
    }
    let piped = "replay - --speed 20 --agents 2 --quiet --format json";
    let piped = throng_with(piped, log().as_bytes()).succeeded();
    let piped = RunRecord::from_json(&piped).unwrap();
    assert_eq!((piped.total.counts.responses, piped.agent_count), (600, 2));
}
