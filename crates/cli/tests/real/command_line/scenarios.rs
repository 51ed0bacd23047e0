//! Scenario files with several targets.

use std::fs;

use measure::{RunRecord, TargetRecord};
use testing::folder::Folder;

use crate::process::{Responder, throng};

fn read(file: &str) -> RunRecord {
    RunRecord::from_json(&fs::read_to_string(file).unwrap()).unwrap()
}

fn write(folder: &Folder, text: &str) -> String {
    let file = folder.path("scenario.toml");
    fs::write(&file, text).unwrap();
    file
}

#[test]
fn targets_of_a_scenario_are_told_apart_and_add_up() {
    let folder = Folder::new("targets");
    let names = folder.write("names.txt", "a.example A\n");
    let good = Responder::start("udp:127.0.0.1:0", "");
    let refusing = Responder::start("udp:127.0.0.1:0", "--rcodes REFUSED=1");
    let scenario = write(
        &folder,
        &format!(
            "names = '{names}'\nqueries = 400\nrate = 400\npopulation = 16\n\
             [[clients]]\nname = 'one'\nweight = 1\n[[clients]]\nname = 'two'\nweight = 3\n\
             [[targets]]\nserver = '{}'\nweight = 3\n[[targets]]\nserver = '{}'\n",
            good.address(),
            refusing.address()
        ),
    );
    for processes in [1, 2] {
        let file = folder.path("r.json");
        let flags = format!("--quiet --details --workers 2 --agents {processes} --record {file}");
        let text = throng(&format!("run {scenario} {flags}")).succeeded();
        let record = read(&file);
        let of = |it: &TargetRecord| {
            let (counts, rcodes) = (&it.total.counts, &it.total.counts.rcodes.by_rcode);
            (
                it.target.clone(),
                it.clients,
                counts.offered,
                rcodes[0],
                rcodes[5],
            )
        };
        let targets: Vec<_> = record.targets.iter().map(of).collect();
        assert_eq!(
            targets,
            [
                (good.address().to_string(), 12, 300, 300, 0),
                (refusing.address().to_string(), 4, 100, 0, 100)
            ]
        );
        assert_eq!(record.groups.len(), 2);
        let row = |address: &str| {
            let line = text.lines().find(|line| line.trim().starts_with(address));
            line.unwrap_or_else(|| panic!("{text}")).to_owned()
        };
        assert!(
            row(&refusing.address().to_string()).contains("REFUSED 100"),
            "{text}"
        );
        for form in ["html", "markdown", "text --details"] {
            let report = throng(&format!("report {file} --format {form}")).succeeded();
            assert!(report.contains("NOERROR 300"), "{form}: {report}");
        }
    }
}
