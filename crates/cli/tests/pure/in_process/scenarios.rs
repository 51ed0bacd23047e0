//! Scenario files: the presets, groups of clients, events and sweeps.

use std::fs;
use std::path::{Path, PathBuf};

use measure::RunRecord;
use measure::scenario::Transports;
use testing::folder::Folder;

use crate::call::throng;
use crate::conforms::offences;

fn presets() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = fs::read_dir(folder).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    let mut presets: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|it| it == "toml"))
        .collect();
    presets.sort();
    assert!(presets.len() >= 5, "{presets:?}");
    presets
}

fn read(file: &str) -> RunRecord {
    RunRecord::from_json(&fs::read_to_string(file).unwrap()).unwrap()
}

fn write(folder: &Folder, text: &str) -> String {
    let file = folder.path("scenario.toml");
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn scenario_that_writes_a_file_needs_the_trust_of_the_user() {
    let folder = Folder::new("scenario-trust");
    let record = folder.path("written.json");
    let text = format!("driver = 'sim'\nduration = '100ms'\nquiet = true\nrecord = '{record}'\n");
    let scenario = folder.write("s.toml", text);
    let other = folder.write("other.toml", "driver = 'sim'\n");
    let run = format!("run {scenario}");
    throng(&run).refused_with("`record` decides which files are written", "--trust");
    throng(&format!("{run} --trust {other}")).refused_with("is not the scenario", "--trust");
    let experiment = folder.write("e.toml", "[run]\nscenario = 's.toml'\n");
    throng(&format!("experiment plan {experiment}")).refused_with(
        "`record` decides which files are written",
        "in an experiment",
    );
    assert!(!Path::new(&record).exists());
    throng(&format!("{run} --trust {scenario}")).succeeded();
    read(&record);
}

#[test]
fn presets_agree_with_the_published_schema() {
    let schema = serde_json::from_str(&throng("schema scenario").succeeded()).unwrap();
    for preset in presets() {
        let text = fs::read_to_string(&preset).unwrap();
        let scenario: serde_json::Value = toml::from_str(&text).unwrap();
        assert_eq!(
            offences(&schema, &scenario),
            Vec::<String>::new(),
            "{}",
            preset.display()
        );
    }
}

/// With fewer clients: what a preset means does not depend on their number.
#[test]
fn presets_run_in_simulation_and_lose_nothing() {
    for preset in presets() {
        let preset = preset.display();
        let flags = "--driver sim --clients 24";
        let json = throng(&format!("run {preset} {flags} --quiet --format json")).succeeded();
        let records = serde_json::Deserializer::from_str(&json).into_iter::<serde_json::Value>();
        for record in records {
            let record = RunRecord::from_json(&record.unwrap().to_string()).unwrap();
            let counts = &record.total.counts;
            assert!(counts.responses > 100, "{preset}: {counts:?}");
            let reset = counts.connections.closed_by_client_for.reset;
            let lost = counts.lost();
            assert!(lost <= reset, "{preset}: {lost} lost by {reset} resets");
        }
    }
}

#[test]
fn groups_of_a_scenario_are_told_apart_and_add_up() {
    let folder = Folder::new("groups");
    let scenario = write(
        &folder,
        "driver = 'sim'\nduration = '2s'\npopulation = 30\n\
         [[clients]]\nname = 'full rate'\nweight = 1\ntransport = 'tcp'\nper-client = 'full:2'\n\
         [[clients]]\nname = 'busy'\nweight = 1\ntransport = 'dot'\nper-client = 'poisson:20'\n\
         connection-idle-timeout = '100ms'\n\
         [[clients]]\nname = 'quiet'\nweight = 1\nper-client = 'constant:10'\n",
    );
    let file = folder.path("r.json");
    let text = throng(&format!("run {scenario} --quiet --record {file}")).succeeded();
    assert!(text.contains("mixed to the built-in responder"), "{text}");
    let record = read(&file);
    let names: Vec<&str> = record.groups.iter().map(|group| &*group.name).collect();
    assert_eq!(names, ["full rate", "busy", "quiet"]);
    assert_eq!(record.scenario.transport, Transports::Mixed);
    assert_eq!(record.scenario.clients, 30);
    let of = |index: usize| &record.groups[index].total.counts;
    let each = [0, 1, 2].map(|index| of(index).responses);
    assert_eq!(each.iter().sum::<u64>(), record.total.counts.responses);
    assert_eq!(record.total.counts.lost(), 0);
    // Evenly spaced: neither chance nor load changes how many there are.
    assert_eq!(each[2], 10 * 10 * 2);
    assert!((200..600).contains(&each[1]), "{each:?}");
    // Two queries of 2 ms at any time.
    assert_eq!(each[0], 10 * 2 * 500 * 2);
    assert!(of(1).connections.closed_by_client_for.idle > 0);
    assert_eq!(of(2).connections.attempted, 0);
    let usable = |index: usize| of(index).connections.became_usable;
    assert_eq!((usable(0), usable(2)), (of(0).connections.established, 0));
    assert_eq!(usable(1), of(1).connections.handshakes.total());
    let all = record.scenario.usable(&record.total.counts.connections);
    assert_eq!(all, usable(0) + usable(1));
}

#[test]
fn rounds_of_a_names_file_are_divided_among_its_groups() {
    let folder = Folder::new("rounds");
    let names: String = (0..10).map(|name| format!("n{name}.example A\n")).collect();
    let names = folder.write("names.txt", &names);
    let scenario = write(
        &folder,
        &format!(
            "driver = 'sim'\nnames = '{names}'\nloops = 30\noutstanding = 4\n\
             population = 8\n[[clients]]\nname = 'one'\nweight = 1\n\
             [[clients]]\nname = 'two'\nweight = 3\n\
             [[clients]]\nname = 'own'\ncount = 2\nloops = 2\n"
        ),
    );
    let record = folder.path("r.json");
    let output = throng(&format!("run {scenario} --record {record}"));
    assert!(output.stderr.contains("225 queries"), "{}", output.stderr);
    output.succeeded();
    let record = read(&record);
    let offered = record.groups.iter().map(|it| it.total.counts.offered);
    assert_eq!(offered.collect::<Vec<u64>>(), [75, 225, 20]);
    let few = format!(
        "run {scenario} --loops 1 --names {}",
        folder.write("one", "a A\n")
    );
    throng(&few).refused_with("too few for the 3 groups", "raise loops");
}

#[test]
fn clients_move_to_another_transport_on_the_way() {
    let folder = Folder::new("move");
    let scenario = write(
        &folder,
        "driver = 'sim'\nduration = '20s'\npopulation = 40\nper-client = 'constant:5'\n\
         [[clients]]\nname = 'all'\nweight = 1\n\
         [[events]]\nat = '10s'\nshare = 0.5\ntransport = 'doq'\nname = 'moved'\n\
         [[events]]\nat = '15s'\nclients = 'moved'\nreset = true\n",
    );
    let file = folder.path("r.json");
    throng(&format!("run {scenario} --quiet --record {file}")).succeeded();
    let record = read(&file);
    let (all, moved) = (&record.groups[0], &record.groups[1]);
    assert_eq!((all.clients, moved.clients), (40, 20));
    assert_eq!(record.scenario.clients, 40);
    // Each client asks 5 times a second, wherever it is.
    let offered = [&all.total.counts, &moved.total.counts].map(|counts| counts.offered);
    assert_eq!(offered, [20 * 5 * 20 + 20 * 5 * 10, 20 * 5 * 10]);
    let connections = &moved.total.counts.connections;
    assert_eq!(connections.closed_by_client_for.reset, 20);
    assert_eq!(connections.handshakes.total(), 40);
    assert_eq!(record.intervals[5].counts.offered, 200);
    assert_eq!(record.intervals[12].counts.offered, 200);
}

#[test]
fn sweep_writes_a_record_for_each_point() {
    let folder = Folder::new("sweep");
    let scenario = write(
        &folder,
        "driver = 'sim'\nduration = '1s'\nper-client = 'full:1'\n\
         [sweep]\nclients = [1, 8]\ntransport = ['udp', 'tcp']\n",
    );
    let file = folder.path("r.json");
    throng(&format!("run {scenario} --quiet --record {file}")).succeeded();
    for (clients, transport) in [(1, "udp"), (8, "udp"), (1, "tcp"), (8, "tcp")] {
        let file = folder.path(&format!("r-clients={clients}-transport={transport}.json"));
        let record = read(&file);
        assert_eq!(record.scenario.clients, clients);
        assert_eq!(record.scenario.transport.to_string(), transport);
        // One query takes 2 ms of virtual time.
        assert_eq!(record.total.counts.responses, 500 * clients);
    }
}

#[test]
fn same_scenario_and_seed_give_the_same_record() {
    let preset = presets()
        .into_iter()
        .find(|path| path.ends_with("sinodun.toml"));
    let preset = preset.unwrap().display().to_string();
    let flags = "--driver sim --clients 50 --duration 5s --quiet --format json";
    let run = || throng(&format!("run {preset} {flags}")).succeeded();
    assert_eq!(run(), run());
}
