//! A run that reads time stamps and whose generator is stopped in it.

use measure::RunRecord;
use testing::folder::Folder;

use crate::process::{Responder, throng};
use crate::running::Running;

/// The record of a run that was stopped for 400 ms or more in its middle; the server takes 5 ms.
pub(crate) fn record() -> RunRecord {
    let responder = Responder::start("udp:127.0.0.1:0", "--delay 5ms");
    let folder = Folder::new("timestamps-stopped");
    let names = folder.write("names.txt", "a.example A\n");
    let record = folder.path("record.json");
    let address = responder.address();
    let mut running = Running::begin(&format!(
        "--server {address} --names {names} --record {record} --timestamps kernel \
         --rate 1000 --duration 60s --interval 50ms --clients 2 --workers 1"
    ));
    running.wait_for_intervals(3);
    running.signal("STOP");
    // Queries of another process are the clock: 100 ms from one to the next.
    let clock = format!("ping a.example --server {address} --count 5 --interval 100ms");
    throng(&clock).succeeded();
    running.signal("CONT");
    // Those that were due meanwhile are sent by then.
    running.wait_for_interval_from_now();
    running.signal("INT");
    let (code, _, stderr) = running.ended();
    assert_eq!(code, Some(130), "{stderr}");
    let json = std::fs::read_to_string(record).unwrap();
    RunRecord::from_json(&json).unwrap()
}
