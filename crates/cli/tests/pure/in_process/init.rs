//! `throng init`: each template is accepted by the command that it is for.

use std::fs;

use testing::folder::Folder;

use crate::call::throng;
use crate::conforms::offences;

/// Scenarios, with flags that keep their simulation short.
const SCENARIOS: [(&str, &str); 5] = [
    ("capacity", "--duration 1s --warmup 0s"),
    ("sla", "--duration 10s"),
    // Its last event is at 45 s.
    ("resilience", ""),
    ("agents", "--duration 1s --warmup 0s"),
    ("clients", ""),
];

const EXPERIMENTS: [&str; 6] = [
    "regression",
    "plugins",
    "encryption",
    "tuning",
    "connections",
    "proxy",
];

/// Keys without which a scenario runs in virtual time, which has no other hosts or processes.
const NOT_SIMULATED: [&str; 3] = ["server", "agents", "on-agent-loss"];

/// Writes the template of a motive; returns its file and what it is.
fn template(folder: &Folder, motive: &str) -> (String, String) {
    let file = folder.path(&format!("{motive}.toml"));
    throng(&format!("init {motive} --output {file}")).succeeded();
    let text = fs::read_to_string(&file).unwrap();
    (file, text)
}

fn without_keys(text: &str, keys: &[&str]) -> String {
    let is_kept = |line: &&str| {
        let key = line.split(" = ").next().unwrap_or_default();
        !keys.contains(&key)
    };
    let kept = text.lines().filter(is_kept);
    kept.map(|line| format!("{line}\n")).collect()
}

#[test]
fn list_has_each_motive_with_what_is_written_and_its_question() {
    let list = throng("init").succeeded();
    let mut rows = Vec::new();
    for line in list.lines() {
        assert!(line.chars().count() <= 100, "{line}");
        let mut words = line.split_whitespace();
        if let (Some(motive), Some(kind @ ("scenario" | "experiment"))) =
            (words.next(), words.next())
            && line.ends_with('?')
        {
            rows.push((motive, kind));
        }
    }
    rows.sort_unstable();
    let scenarios = SCENARIOS.iter().map(|(motive, _)| (*motive, "scenario"));
    let experiments = EXPERIMENTS.iter().map(|motive| (*motive, "experiment"));
    let mut expected: Vec<(&str, &str)> = scenarios.chain(experiments).collect();
    expected.sort_unstable();
    assert_eq!(rows, expected, "{list}");
}

#[test]
fn scenarios_agree_with_the_schema_and_run_in_simulation() {
    let schema = serde_json::from_str(&throng("schema scenario").succeeded()).unwrap();
    let folder = Folder::new("init-scenarios");
    folder.write(
        "names.txt",
        throng("names records --count 50").succeeded().as_bytes(),
    );
    for (motive, flags) in SCENARIOS {
        let (_, text) = template(&folder, motive);
        let scenario: serde_json::Value = toml::from_str(&text).unwrap();
        assert_eq!(
            offences(&schema, &scenario),
            Vec::<String>::new(),
            "{motive}"
        );
        let simulated = without_keys(&text, &NOT_SIMULATED);
        let file = folder.write("simulated.toml", simulated);
        let run = format!("run {file} --driver sim --clients 24 --quiet {flags}");
        let output = throng(&run).succeeded();
        assert!(output.contains("NOERROR 100 %"), "{motive}: {output}");
    }
}

#[test]
fn experiments_have_a_plan() {
    let folder = Folder::new("init-experiments");
    for motive in EXPERIMENTS {
        let (file, _) = template(&folder, motive);
        let plan = throng(&format!("experiment plan {file}")).succeeded();
        let first = plan.lines().next().unwrap();
        assert!(first.starts_with(&format!("{motive}: ")), "{plan}");
        assert!(first.contains(" cells, "), "{plan}");
        throng(&format!("experiment plan {file} --short")).succeeded();
    }
}

#[test]
fn templates_are_short_and_say_how_to_run_themselves() {
    let folder = Folder::new("init-texts");
    let scenarios = SCENARIOS
        .iter()
        .map(|(motive, _)| (*motive, format!("throng run {motive}.toml")));
    let experiments = EXPERIMENTS
        .iter()
        .map(|motive| (*motive, format!("throng experiment run {motive}.toml")));
    for (motive, command) in scenarios.chain(experiments) {
        let (_, text) = template(&folder, motive);
        let long = text.lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None, "{motive}");
        assert!((20..=50).contains(&text.lines().count()), "{motive}");
        assert!(text.contains(&command), "{motive}: no `{command}`");
        assert!(text.starts_with("# "), "{motive}");
        assert!(text.lines().next().unwrap().ends_with('?'), "{motive}");
        let asks_for_change = text.contains("CHANGE THIS");
        assert_eq!(asks_for_change, text.contains("192.0.2.1\""), "{motive}");
        assert_eq!(
            asks_for_change,
            !text.contains("Nothing to change"),
            "{motive}"
        );
    }
}

#[test]
fn next_command_is_printed() {
    let folder = Folder::new("init-next");
    for (motive, next) in [
        ("sla", "then: throng run "),
        ("encryption", "then: throng experiment run "),
        ("tuning", "next: throng experiment run "),
    ] {
        let file = folder.path(&format!("{motive}.toml"));
        let finished = throng(&format!("init {motive} -o {file}"));
        let errors = finished.stderr.clone();
        assert_eq!(finished.succeeded(), "", "{motive}");
        assert!(errors.starts_with(&format!("wrote {file}, a")), "{errors}");
        assert!(errors.contains(&format!("{next}{file}")), "{errors}");
    }
}

#[test]
fn existing_file_is_not_overwritten() {
    let folder = Folder::new("init-existing");
    let file = folder.write("mine.toml", "rate = 1\n");
    let line = format!("init sla -o {file}");
    throng(&line).refused_with("mine.toml exists", "--output");
    assert_eq!(fs::read_to_string(&file).unwrap(), "rate = 1\n");
    let nowhere = folder.path("none/sla.toml");
    throng(&format!("init sla -o {nowhere}")).refused_with("cannot write to", "folder");
}

#[test]
fn dash_writes_to_standard_output() {
    let folder = Folder::new("init-dash");
    let finished = throng("init clients -o -");
    assert_eq!(finished.stderr, "");
    let (_, text) = template(&folder, "clients");
    assert_eq!(finished.succeeded(), text);
}

#[test]
fn unknown_motive_is_refused_with_the_nearest() {
    throng("init capacty").refused_with("capacty", "capacity");
    throng("init -o x.toml").refused_with("MOTIVE", "throng init");
}
