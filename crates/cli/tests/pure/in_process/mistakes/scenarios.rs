//! The same in scenario files.

use testing::folder::Folder;

use crate::call::{simulated, throng};

const GROUP: &str = "[[clients]]\nname = \"a\"\ncount = 4\n";

#[test]
fn an_event_after_the_end_is_refused_by_its_times() {
    let folder = Folder::new("late-event");
    for event in ["leave = true", "transport = \"tcp\"", "reset = true"] {
        let scenario = folder.write(
            "late.toml",
            format!(
                "rate = 100\nduration = 10\ndriver = \"sim\"\ntransport = \"tcp\"\n{GROUP}\
                 [[events]]\nat = \"60s\"\n{event}\n"
            ),
        );
        throng(&format!("run {scenario}")).refused_with("at 1m, and the run ends at 10s", "`at`");
    }
}

#[test]
fn values_of_scenarios_are_read_as_those_of_flags() {
    let folder = Folder::new("forms");
    let scenario = folder.write(
        "forms.toml",
        "rate = \"1e3\"\nduration = 1\ntransport = \"TLS\"\n[[clients]]\nname = \"a\"\n\
         count = \"1k\"\n",
    );
    let record = simulated(&scenario);
    assert_eq!(record.scenario.clients, 1_000);
    assert_eq!(record.scenario.transport, settings::Transport::Dot);
    assert_eq!(record.total.counts.sent, 1_000);
}

#[test]
fn a_uri_of_a_scenario_names_the_transport() {
    let folder = Folder::new("uris");
    let names = folder.write("names.txt", "a.example A\n");
    let scenario = folder.write(
        "uris.toml",
        format!("names = \"{names}\"\nserver = \"udp://192.0.2.1\"\ntransport = \"tcp\"\n"),
    );
    throng(&format!("run {scenario}")).refused_with("says udp, and --transport tcp", "leave out");
}
