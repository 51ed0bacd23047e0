//! `throng run --profile` in several processes.

use testing::folder::Folder;

use crate::process::{measured, throng};
use crate::query_logs::log;

/// A profile fitted to the log.
fn profile(folder: &Folder, flags: &str) -> String {
    let log = folder.write("query.log", log());
    let profile = folder.path("office.toml");
    throng(&format!("fit {log} -o {profile} {flags}")).succeeded();
    profile
}

#[test]
fn processes_change_nothing_of_what_clients_ask() {
    let folder = Folder::new("profile-processes");
    let file = profile(&folder, "");
    let flags = format!("--profile {file} --clients 40 --rate-factor 3 --duration 2s");
    let run = |processes: u32| measured(&format!("{flags} --workers 2 --agents {processes}"));
    let (one, two) = (run(1), run(2));
    assert_eq!((one.agent_count, two.agent_count), (1, 2));
    assert_eq!(one.total.counts.offered, two.total.counts.offered);
    assert_eq!(one.scenario.clients, two.scenario.clients);
    assert_eq!(one.scenario.profile, two.scenario.profile);
}
