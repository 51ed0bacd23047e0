//! What a CI reads: summaries in Markdown, exit codes of undecided results, JUnit, and conditions
//! in documents.

use std::fs;

use cli::Call;
use measure::RunRecord;
use measure::condition::Outcome;
use serde_json::Value;
use testing::folder::Folder;

use crate::call::{call, throng};
use crate::conforms::offences;

/// Checks a document against the schema that `throng schema` prints.
pub(crate) fn check_schema(of: &str, json: &str) {
    let schema = throng(&format!("schema {of}")).succeeded();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let document: Value = serde_json::from_str(json).unwrap();
    assert_eq!(offences(&schema, &document), [""; 0], "{of}");
}

#[test]
fn markdown_of_a_command_is_that_of_its_document() {
    let folder = Folder::new("ci-markdown");
    for (name, flags) in [
        (
            "capacity",
            "--ceiling 2000 --repeat 1 --trial-duration 1s --max-duration 60s",
        ),
        ("ramp", "--to 2000 --over 2s"),
        (
            "compare-transports",
            "--queries 500 --transports udp,tcp --repeat 2",
        ),
    ] {
        let command = format!("{name} --quiet --driver sim {flags}");
        let json = throng(&format!("{command} --format json")).succeeded();
        check_schema(name, &json);
        let file = folder.write("document.json", json);
        let report = throng(&format!("report {file} --format markdown")).succeeded();
        let printed = throng(&format!("{command} --format markdown")).succeeded();
        assert!(printed.starts_with("# "), "{printed:.200}");
        let expected = report.replace(&file, &format!("throng {name}"));
        assert_eq!(printed, expected, "{command}");
    }
    let records = folder.path("records");
    fs::create_dir_all(&records).unwrap();
    let record = format!("{records}/run.json");
    throng(&format!(
        "run --quiet --driver sim --queries 100 --record {record}"
    ))
    .succeeded();
    let shown = throng(&format!(
        "history show 1 --records {records} --format markdown"
    ))
    .succeeded();
    let report = throng(&format!("report {record} --format markdown")).succeeded();
    assert_eq!(shown, report);
}

#[test]
fn commands_without_markdown_refuse_it_with_the_formats_that_they_have() {
    for command in [
        "history list",
        "history trend p99",
        "doctor",
        "ping a.example",
        "trace a.example",
        "lab list",
        "line --between a,b",
        "experiment results x",
    ] {
        throng(&format!("{command} --format markdown")).refused_with(
            "invalid value 'markdown' for '--format <",
            "possible values: text, json",
        );
    }
}

#[test]
fn undecided_results_fail_a_command_only_when_asked() {
    let folder = Folder::new("ci-undecided");
    let junit = folder.path("junit.xml");
    let is_one = |text: &str, failures: u32, skipped: u32| {
        let counts = format!("failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"");
        assert!(text.contains(&format!("tests=\"1\" {counts}")), "{text}");
    };
    for (flags, is_decided, case) in [
        (
            "capacity --ceiling 2000 --repeat 1 --trial-duration 1s",
            true,
            "the search found the capacity",
        ),
        (
            "capacity --ceiling 2000 --trial-duration 1s --max-duration 4s",
            false,
            "the search found the capacity",
        ),
        ("ramp --to 2000 --over 2s", true, "the ramp found a limit"),
        (
            "ramp --to 2000 --over 500ms --interval 100ms",
            false,
            "the ramp found a limit",
        ),
        (
            "compare-transports --duration 2s --transports udp,tcp --ceiling 1000",
            true,
            "tcp against udp",
        ),
        (
            "compare-transports --queries 500 --transports udp,tcp",
            false,
            "tcp against udp",
        ),
    ] {
        let command =
            format!("{flags} --quiet --driver sim --format json --junit {junit} --undecided");
        let code = if is_decided { 0 } else { 3 };
        throng(&format!("{command} fail")).ended_with(code);
        let text = fs::read_to_string(&junit).unwrap();
        assert!(text.contains(&format!("name=\"{case}\"")), "{text}");
        is_one(&text, u32::from(!is_decided), 0);
        let finished = throng(&format!("{command} pass"));
        let line = if is_decided {
            "passed: "
        } else {
            "undecided: "
        };
        let line = format!("{line}{case}: ");
        assert!(finished.stderr.contains(&line), "{}", finished.stderr);
        let document: Value = serde_json::from_str(&finished.succeeded()).unwrap();
        let outcome = if is_decided { "passed" } else { "undecided" };
        let decision = &document["decisions"][0];
        assert_eq!(decision["outcome"], outcome, "{decision}");
        assert_eq!(decision["condition"], case, "{decision}");
        is_one(
            &fs::read_to_string(&junit).unwrap(),
            0,
            u32::from(!is_decided),
        );
    }
}

/// Mistakes that are found before any condition is read.
const MISTAKES: [&str; 15] = [
    "run --no-such-flag",
    "run --driver sim --rate many",
    "run --driver sim --duration",
    "run missing.toml",
    "run --driver sim --names missing.txt",
    "run --driver sim --fail-if speed>1",
    "run --driver sim --record /no/such/folder/run.json",
    "run --server 9.9.9.9 --rate 10k",
    "replay missing.pcap",
    "compare missing.json",
    "capacity --driver sim --start 5k --max 1k",
    "ramp --driver sim --to fast",
    "compare-transports --driver sim --transports udp,udp",
    "experiment claims missing missing.toml --fail-if not-supported",
    "rnu --driver sim",
];

/// Checks that the file has one error, which is that of the command.
fn check_junit(junit: &str, line: &str, stderr: &str) {
    let text = fs::read_to_string(junit).unwrap_or_else(|why| panic!("{line}: {why}"));
    let counts = "tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\"";
    assert!(text.contains(counts), "{line}: {text}");
    let error = stderr.lines().next().unwrap().trim_start_matches("error: ");
    let error = error.replace('<', "&lt;").replace('>', "&gt;");
    let error = format!("<error message=\"{error}\"/>");
    assert!(text.contains(&error), "{line}: no {error} in {text}");
    let name: Vec<&str> = line.split(" --").next().unwrap().split(' ').collect();
    let suite = match name[..] {
        ["rnu"] => "throng".to_owned(),
        ["experiment", "claims", ..] => "throng experiment claims".to_owned(),
        _ => format!("throng {}", name[0]),
    };
    let suite = format!("<testsuite name=\"{suite}\" ");
    assert!(text.contains(&suite), "{line}: no {suite} in {text}");
}

#[test]
fn a_mistake_beside_junit_is_an_error_in_its_file() {
    let folder = Folder::new("ci-mistakes");
    let junit = folder.path("junit.xml");
    for line in MISTAKES {
        for flag in [format!("--junit {junit}"), format!("--junit={junit}")] {
            folder.write("junit.xml", "of an earlier job");
            let (start, rest) = line.split_once(" --").unwrap_or((line, ""));
            let rest = if rest.is_empty() { "" } else { "--" }.to_owned() + rest;
            let finished = throng(&format!("{start} {flag} {rest}"));
            let stderr = finished.stderr.clone();
            finished.refused();
            check_junit(&junit, line, &stderr);
        }
    }
    // A file of defaults that cannot be read.
    let finished = call(Call {
        arguments: ["run", "--junit", &junit].map(Into::into).to_vec(),
        variables: [("THRONG_CONFIG".into(), "/no/such/file".into())].into(),
        ..Call::default()
    });
    let stderr = finished.stderr.clone();
    finished.refused();
    check_junit(&junit, "run", &stderr);
}

#[test]
fn no_file_is_written_for_junit_without_a_value_or_of_another_command() {
    let folder = Folder::new("ci-no-file");
    let junit = folder.path("junit.xml");
    throng(&format!("report missing.json --junit {junit}")).refused();
    assert!(fs::metadata(&junit).is_err());
    throng("run --driver sim --junit --rate").refused();
    assert!(fs::metadata("--rate").is_err());
}

#[test]
fn a_trusted_scenario_names_the_file_for_mistakes_too() {
    let folder = Folder::new("ci-trusted");
    let junit = folder.path("junit.xml");
    let text = format!("driver = \"sim\"\njunit = \"{junit}\"\nrate = 100\noutstanding = 5\n");
    let scenario = folder.write("scenario.toml", text);
    throng(&format!("run {scenario}")).refused();
    assert!(fs::metadata(&junit).is_err());
    let finished = throng(&format!("run {scenario} --trust {scenario}"));
    let stderr = finished.stderr.clone();
    finished.refused();
    check_junit(&junit, "run", &stderr);
}

/// Two groups over two transports.
const SCENARIO: &str = r#"
driver = "sim"
rate = 1000
duration = "2s"
sim-delay = "2ms"
rcodes = "NOERROR=0.9,SERVFAIL=0.1"

[[clients]]
name = "phones"

[[clients]]
name = "resolvers"
transport = "tcp"
"#;

#[test]
fn results_of_conditions_are_in_the_record() {
    let folder = Folder::new("ci-conditions");
    let scenario = folder.write("scenario.toml", SCENARIO);
    let flags = "--fail-if p99.99>5ms --fail-if p99.99[phones]>1ms --fail-if p99.9[tcp]>1s \
                 --fail-if rcode.servfail>1% --require rcode.noerror[resolvers]>80% \
                 --require rcode.noerror[udp]>99% --fail-if wire.p99>1ms --abort-if loss>50%";
    let run = format!("run {scenario} --quiet --format json");
    let json = throng(&format!("{run} {flags}")).ended_with(3);
    check_schema("record", &json);
    let record = RunRecord::from_json(&json).unwrap();
    let expected = [
        ("--abort-if 'loss>50%'", Outcome::Passed, "it did not"),
        ("--fail-if 'p99.99>5ms'", Outcome::Passed, "p99.99 is 4."),
        (
            "--fail-if 'p99.99[phones]>1ms'",
            Outcome::Failed,
            "p99.99[phones] is 4.",
        ),
        (
            "--fail-if 'p99.9[tcp]>1s'",
            Outcome::Passed,
            "p99.9[tcp] is ",
        ),
        (
            "--fail-if 'rcode.servfail>1%'",
            Outcome::Failed,
            "rcode.servfail is ",
        ),
        (
            "--require 'rcode.noerror[resolvers]>80%'",
            Outcome::Passed,
            "rcode.noerror[resolvers] is ",
        ),
        (
            "--require 'rcode.noerror[udp]>99%'",
            Outcome::Failed,
            "rcode.noerror[udp] is ",
        ),
        (
            "--fail-if 'wire.p99>1ms'",
            Outcome::Undecided,
            "wire.p99 was not measured",
        ),
    ];
    let found = &record.conditions;
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (condition, outcome, begin) in expected {
        let result = found.iter().find(|it| it.condition == condition);
        let result = result.unwrap_or_else(|| panic!("{condition} is not in {found:?}"));
        assert_eq!(result.outcome, outcome, "{result:?}");
        assert!(result.found.starts_with(begin), "{result:?}");
    }
    let without = throng(&run).succeeded();
    assert!(!without.contains("\"conditions\""));
}

#[test]
fn results_of_conditions_are_in_a_comparison() {
    let folder = Folder::new("ci-compared");
    let record = folder.path("run.json");
    throng(&format!(
        "run --quiet --driver sim --rate 1000 --duration 2s --record {record}"
    ))
    .succeeded();
    let compare = format!("compare {record} {record} --format json");
    let json = throng(&format!("{compare} --fail-if p50>1s --require qps>5k")).ended_with(3);
    check_schema("compare", &json);
    let comparison: Value = serde_json::from_str(&json).unwrap();
    let conditions = &comparison["conditions"];
    assert_eq!(conditions[0]["outcome"], "passed", "{conditions}");
    assert_eq!(conditions[1]["condition"], "--require 'qps>5k'");
    assert_eq!(conditions[1]["outcome"], "failed", "{conditions}");
}

/// What is decided by figures of the generator says nothing of the target.
#[test]
fn condition_on_a_comparison_of_the_generator_is_undecided_if_asked() {
    let folder = Folder::new("ci-generator");
    let record = folder.path("run.json");
    let run = "run --quiet --driver sim --rate 1000 --duration 2s --record";
    throng(&format!("{run} {record}")).succeeded();
    let mut changed = RunRecord::from_json(&fs::read_to_string(&record).unwrap()).unwrap();
    changed.verdict.limit = measure::Limit::Generator;
    fs::write(&record, changed.to_json_pretty()).unwrap();
    let compare = format!("compare {record} {record} --fail-if p50>1s --undecided");
    throng(&format!("{compare} pass")).succeeded();
    let finished = throng(&format!("{compare} fail"));
    let line = "undecided: --fail-if 'p50>1s': p50 is ";
    assert!(finished.stderr.contains(line), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("A and B measured the generator"),
        "{}",
        finished.stderr
    );
    finished.ended_with(3);
}

/// Their runs are processes, or pods: the flag goes with the command line of each.
#[test]
fn runs_of_an_experiment_and_of_a_fleet_take_undecided() {
    let folder = Folder::new("ci-elsewhere");
    let run = "[run]\ndriver = \"sim\"\nfail-if = [\"p99 > 5ms\"]\nundecided = \"fail\"\n";
    let file = folder.write("experiment.toml", run);
    let plan = throng(&format!("experiment plan {file}")).succeeded();
    assert!(plan.contains("--undecided=fail"), "{plan}");
    let names = folder.write("names.txt", "a.example A\n");
    let run = format!("run --server 192.0.2.1 --names {names} --fail-if p99>5ms");
    let fleet = "fleet manifest --image throng:1 --agents 2 --";
    let yaml = throng(&format!("{fleet} {run} --undecided fail")).succeeded();
    assert!(yaml.contains("- \"--undecided\""), "{yaml}");
}
