//! What others have published, held against the records of an experiment.

use std::fs;

use measure::{Limit, RunRecord};
use serde_json::Value;
use testing::folder::Folder;
use testing::program::Finished;

use crate::call::throng;
use crate::ci::check_schema;

/// Two rates in virtual time, so that every start gives the same figures.
const EXPERIMENT: &str = r#"
repeat = 3

[run]
driver = "sim"
clients = 3
duration = "1s"

[matrix]
rate = [1000, 2000]
transport = ["udp", "tcp"]
"#;

fn claims(folder: &Folder, claims: &str, format: &str) -> Finished {
    let file = folder.write("claims.toml", claims);
    let records = folder.path("out");
    throng(&format!("experiment claims {records} {file} {format}"))
}

/// Leaves the folder and the records that `throng experiment run` leaves.
fn run(folder: &Folder) {
    fs::create_dir_all(folder.path("out/records")).unwrap();
    folder.write("out/experiment.toml", EXPERIMENT);
    for (rate, transport) in [(1000, "udp"), (1000, "tcp"), (2000, "udp"), (2000, "tcp")] {
        for repetition in 1..=3 {
            let record = format!("rate={rate},transport={transport},r{repetition}.json");
            let record = folder.path(&format!("out/records/{record}"));
            throng(&format!(
                "run --driver sim --quiet --clients 3 --duration 1s --rate {rate} --transport \
                 {transport} --record {record}"
            ))
            .succeeded();
        }
    }
}

fn assert_has(text: &str, lines: &[impl AsRef<str>]) {
    for line in lines.iter().map(AsRef::as_ref) {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}

#[test]
fn a_claim_holds_or_does_not_hold_or_cannot_be_judged() {
    let folder = Folder::new("claims");
    run(&folder);
    let report = throng(&format!("report {}", folder.path("out"))).succeeded();
    assert!(report.starts_with("out: Load on"), "{report}");
    let published = r#"
        source = "Somebody, once"
        [[claim]]
        says = "Twice the rate | twice the answers"
        cell = { rate = 2000, transport = "udp" }
        against = { rate = 1000, transport = "udp" }
        holds-if = ["qps > +90%", "qps < +110%"]
        [[claim]]
        says = "Three times"
        cell = { rate = 2000, transport = "udp" }
        against = { rate = 1000, transport = "udp" }
        holds-if = "qps > +150%"
        [[claim]]
        says = "The server was idle"
        cell = { rate = 2000, transport = "tcp" }
        holds-if = "server.cpu < 5%"
        [[claim]]
        says = "It works on the Moon"
        cannot = "there is no Moon here"
    "#;
    let text = claims(&folder, published, "").succeeded();
    let lines = [
        "supported      Twice the rate | twice the answers",
        "in rate 2000, transport udp, against rate 1000, transport udp",
        "not supported  Three times",
        "inconclusive   The server was idle",
        "server.cpu < 5%: not measured in rate 2000, transport tcp",
        "there is no Moon here",
        "1 of 4 supported, 1 not supported, 2 inconclusive here",
    ];
    assert_has(&text, &lines);
    let table = claims(&folder, published, "--format markdown").succeeded();
    assert!(
        table.contains("| Twice the rate \\| twice the answers | supported | qps +100.0 %"),
        "{table}"
    );
}

/// Says of these runs that the generator was their limit.
fn limit_by_generator(folder: &Folder, cell: &str, repetitions: &[u32]) {
    for repetition in repetitions {
        let path = folder.path(&format!("out/records/{cell},r{repetition}.json"));
        let mut record = RunRecord::from_json(&fs::read_to_string(&path).unwrap()).unwrap();
        record.verdict.limit = Limit::Generator;
        record.verdict.evidence = vec!["worker 0 used 99 % of its CPU".to_owned()];
        fs::write(path, record.to_json_pretty()).unwrap();
    }
}

#[test]
fn runs_that_measured_the_generator_are_left_out_by_name_and_judge_no_claim() {
    let folder = Folder::new("claims-left-out");
    run(&folder);
    limit_by_generator(&folder, "rate=2000,transport=udp", &[2]);
    limit_by_generator(&folder, "rate=2000,transport=tcp", &[1, 2, 3]);
    let published = r#"
        source = "Somebody, once"
        [[claim]]
        says = "Twice the rate over UDP"
        cell = { rate = 2000, transport = "udp" }
        against = { rate = 1000, transport = "udp" }
        holds-if = "qps > +90%"
        [[claim]]
        says = "Twice the rate over TCP"
        cell = { rate = 2000, transport = "tcp" }
        against = { rate = 1000, transport = "tcp" }
        holds-if = "qps > +90%"
        [[claim]]
        says = "Slow over UDP"
        cell = { rate = 1000, transport = "udp" }
        against = { rate = 2000, transport = "tcp" }
        holds-if = "qps < -10%"
    "#;
    let of_generator = "all of 3 runs measured the generator or its host (at least 2,000 qps)";
    let text = claims(&folder, published, "").succeeded();
    let lines = [
        "supported      Twice the rate over UDP".to_owned(),
        "rate 2000, transport udp: 1 of 3 runs left out".to_owned(),
        "inconclusive   Twice the rate over TCP".to_owned(),
        format!("qps > +90%: {of_generator} in rate 2000, transport tcp"),
        "inconclusive   Slow over UDP".to_owned(),
        "1 of 3 supported, 0 not supported, 2 inconclusive here".to_owned(),
    ];
    assert_has(&text, &lines);
    let records = folder.path("out");
    let results = throng(&format!("experiment results {records} --metric qps")).succeeded();
    let why = "limit generator: worker 0 used 99 % of its CPU";
    let lines = [
        format!("left out: rate=2000,transport=udp,r2: {why}"),
        format!("left out: rate=2000,transport=tcp,r3: {why}"),
        format!("inconclusive: rate 2000, transport tcp: {of_generator}"),
    ];
    assert_has(&results, &lines);
    let page = throng(&format!("report {records} --format markdown")).succeeded();
    assert_has(&page, &["At least", "left out of figures and charts"]);
    assert!(!page.contains("Highest rate"), "{page}");
}

#[test]
fn error_in_a_file_of_claims_is_named_with_its_place() {
    let folder = Folder::new("claims-wrong");
    run(&folder);
    let wrong = [
        ("claim = []", "no claims of a source"),
        ("source = 'x'\nclam = 1", "`clam` does not belong here"),
        (
            "source = 'x'\n[[claim]]\nholds-if = 'qps > 1'",
            "a claim without words",
        ),
        (
            "source = 'x'\n[[claim]]\nsays = 'x'",
            "a claim is judged in one way",
        ),
        (
            "source = 'x'\n[[claim]]\nsays = 'x'\nholds-if = 'qps > 1'\ncannot = 'x'",
            "a claim is judged in one way",
        ),
        (
            "source = 'x'\n[[claim]]\nsays = 'x'\nholds-if = 'speed > 1'",
            "unknown metric `speed`",
        ),
        (
            "source = 'x'\n[[claim]]\nsays = 'x'\ncell = { rate = 1000 }\nholds-if = 'qps > 1'",
            "2 cells have \"rate 1000\"",
        ),
        (
            "source = 'x'\n[[claim]]\nsays = 'x'\ncell = { rate = 5 }\nholds-if = 'qps > 1'",
            "the cells of this experiment are rate 1000, transport udp;",
        ),
        (
            "source = 'x'\n[[claim]]\nsays = 'x'\nif = 1",
            "unknown key `if`",
        ),
        (
            "source = 'x'\n[[claim]]\nsays = 'x'\ncell = 3\nholds-if = 'qps > 1'",
            "this is a number",
        ),
    ];
    for (text, words) in wrong {
        let (error, hint) = claims(&folder, text, "").refused();
        assert!(
            format!("{error}\n{hint}").contains(words),
            "{error}\n{hint}"
        );
    }
}

#[test]
fn claims_fail_the_command_only_when_asked() {
    let folder = Folder::new("claims-gate");
    run(&folder);
    let file = |conditions: &[&str]| {
        let claims = conditions.iter().map(|condition| {
            let cell = "cell = { rate = 2000, transport = \"udp\" }";
            format!("[[claim]]\nsays = \"It is\"\n{cell}\nholds-if = \"{condition}\"\n")
        });
        format!("source = \"x\"\n{}", claims.collect::<String>())
    };
    let supported = file(&["qps > 1"]);
    let inconclusive = file(&["qps > 1", "server.cpu < 5%"]);
    let not_supported = file(&["qps > 1", "qps > 1M"]);
    let junit = folder.path("claims.xml");
    let gate = format!("--fail-if not-supported --junit {junit}");
    let strict = format!("{gate} --undecided fail");
    for (published, flags, code, counts) in [
        (&not_supported, "", 0, ""),
        (
            &supported,
            &strict,
            0,
            "1\" failures=\"0\" errors=\"0\" skipped=\"0",
        ),
        (
            &inconclusive,
            &gate,
            0,
            "2\" failures=\"0\" errors=\"0\" skipped=\"1",
        ),
        (
            &inconclusive,
            &strict,
            3,
            "2\" failures=\"1\" errors=\"0\" skipped=\"0",
        ),
        (
            &not_supported,
            &gate,
            3,
            "2\" failures=\"1\" errors=\"0\" skipped=\"0",
        ),
    ] {
        let _ = fs::remove_file(&junit);
        claims(&folder, published, flags).ended_with(code);
        let text = fs::read_to_string(&junit).unwrap_or_default();
        assert!(text.contains(counts), "{flags}: {text}");
    }
    // What decides nothing by itself is refused alone.
    for flag in ["--undecided fail", &format!("--junit {junit}")] {
        claims(&folder, &supported, flag)
            .refused_with("without --fail-if", "--fail-if not-supported");
    }
}

#[test]
fn claims_and_results_are_documents_too() {
    let folder = Folder::new("claims-json");
    run(&folder);
    limit_by_generator(&folder, "rate=2000,transport=udp", &[1, 2, 3]);
    let published = r#"
        source = "Somebody, once"
        [[claim]]
        says = "Some answers"
        cell = { rate = 2000, transport = "tcp" }
        holds-if = "qps > 1"
        [[claim]]
        says = "More"
        cell = { rate = 2000, transport = "tcp" }
        holds-if = "qps > 1M"
        [[claim]]
        says = "It works on the Moon"
        cannot = "there is no Moon here"
    "#;
    let json = claims(&folder, published, "--format json").succeeded();
    check_schema("experiment-claims", &json);
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["source"], "Somebody, once");
    let findings = document["claims"].as_array().unwrap().iter();
    let findings: Vec<&Value> = findings.map(|claim| &claim["finding"]).collect();
    assert_eq!(findings, ["supported", "not_supported", "inconclusive"]);

    let results = format!("experiment results {} --format json", folder.path("out"));
    let json = throng(&results).succeeded();
    check_schema("experiment-results", &json);
    let document: Value = serde_json::from_str(&json).unwrap();
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4, "{json}");
    for cell in cells {
        let is_left_out = cell["levels"]["rate"] == "2000" && cell["levels"]["transport"] == "udp";
        let figures = cell["figures"].as_object();
        assert_eq!(figures.is_none(), is_left_out, "{cell}");
        let left_out = cell["left_out"].as_array().unwrap();
        assert_eq!(left_out.len(), if is_left_out { 3 } else { 0 }, "{cell}");
        assert_eq!(cell["at_least_qps"].is_number(), is_left_out, "{cell}");
        if let Some(figures) = figures {
            assert_eq!(figures["starts"].as_array().unwrap().len(), 3, "{cell}");
            assert_eq!(figures["interval"]["level"], 0.95, "{cell}");
        }
    }
}
