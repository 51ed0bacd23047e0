//! `throng compare`: two sides from records and from folders; and the conditions that `throng run`
//! takes too.

use std::fs;

use measure::ab::{Finding, Method};
use measure::{AbComparison, Metric};
use testing::folder::Folder;

use crate::call::throng;

/// Simulated runs: the same to the octet, but for the seed of what they draw.
fn simulated(folder: &Folder, name: &str, delay: &str, seeds: std::ops::Range<u32>) -> String {
    let side = folder.path(name);
    fs::create_dir_all(&side).unwrap();
    for seed in seeds {
        throng(&format!(
            "run --quiet --driver sim --rate 2000 --arrival poisson --duration 1s --seed {seed} \
             --delay {delay} --record {side}/{seed:02}.json"
        ))
        .succeeded();
    }
    side
}

fn compared(flags: &str) -> AbComparison {
    let stdout = throng(&format!("compare --format json {flags}")).succeeded();
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn folders_of_records_are_compared_and_conditions_decide_the_exit_code() {
    let folder = Folder::new("compare-folders");
    let a = simulated(&folder, "a", "exponential:5ms", 0..6);
    let b = simulated(&folder, "b", "exponential:6ms", 10..16);
    let same = simulated(&folder, "same", "exponential:5ms", 20..26);
    let found = compared(&format!("{a} {b}"));
    assert_eq!(found.finding, Finding::Slower, "{found:?}");
    assert_eq!(found.of(Metric::P50).unwrap().finding, Finding::Slower);
    assert_eq!(found.of(Metric::Loss).unwrap().finding, Finding::Same);
    assert!(found.a.runs[0].record.ends_with("a/00.json"));
    let found = compared(&format!("{a} {same}"));
    assert!(
        matches!(found.finding, Finding::Same | Finding::CannotTell),
        "{found:?}"
    );

    let junit = folder.path("compare.xml");
    let flags = format!("compare {a} {b} --fail-if slower --require p50<+50% --junit {junit}");
    let finished = throng(&flags);
    assert!(
        finished.stderr.contains("FAILED: --fail-if 'slower'"),
        "{}",
        finished.stderr
    );
    assert!(
        finished.stderr.contains("passed: --require 'p50<+50%'"),
        "{}",
        finished.stderr
    );
    let text = finished.ended_with(3);
    assert!(text.starts_with("B is slower than A: "), "{text}");
    let xml = fs::read_to_string(junit).unwrap();
    assert!(xml.contains("tests=\"2\" failures=\"1\""), "{xml}");
    throng(&format!("compare {a} {same} --fail-if slower")).succeeded();

    let markdown = throng(&format!("compare {a} {b} --format markdown")).succeeded();
    assert!(markdown.starts_with("### B is slower than A"), "{markdown}");
    let csv = throng(&format!("compare {a} {b} --format csv")).succeeded();
    assert!(csv.starts_with("metric,a_median,b_median,"), "{csv}");
    let only = compared(&format!("{a} {b} --metrics p99,qps"));
    assert_eq!(only.metrics.len(), 2);
}

#[test]
fn two_short_runs_show_a_clear_difference_without_further_flags() {
    let folder = Folder::new("compare-short");
    let one = |name: &str, delay: &str, seed: u32| {
        let file = folder.path(name);
        let flags = "run --quiet --driver sim --rate 5000 --duration 3s";
        let run = throng(&format!(
            "{flags} --seed {seed} --delay exponential:{delay} --record {file}"
        ));
        run.succeeded();
        file
    };
    let a = one("a.json", "5ms", 1);
    let b = one("b.json", "20ms", 2);
    let found = compared(&format!("{a} {b} --metrics qps,p50"));
    assert!(matches!(found.method, Method::Blocks(_)), "{found:?}");
    let p50 = found.of(Metric::P50).unwrap();
    assert_eq!(p50.finding, Finding::Slower, "{found:?}");
    let notes = found.notes.join("; ");
    assert!(notes.contains("one run a side does not show how much runs differ"));
    let again = one("c.json", "5ms", 3);
    let found = compared(&format!("{a} {again} --metrics qps,p50"));
    assert_ne!(found.of(Metric::P50).unwrap().finding, Finding::Slower);
}

#[test]
fn single_records_are_compared_by_their_intervals() {
    let folder = Folder::new("compare-single");
    let one = |name: &str, delay: &str, seed: u32| {
        let file = folder.path(name);
        throng(&format!(
            "run --quiet --driver sim --rate 5000 --duration 5s --interval 100ms --seed {seed} \
             --delay {delay} --record {file}"
        ))
        .succeeded();
        file
    };
    let a = one("a.json", "exponential:5ms", 1);
    let b = one("b.json", "exponential:20ms", 2);
    let c = one("c.json", "exponential:5ms", 3);
    let found = compared(&format!("{a} {b}"));
    assert!(
        matches!(found.method, Method::Blocks(_)),
        "{:?}",
        found.method
    );
    assert_eq!(
        found.of(Metric::P50).unwrap().finding,
        Finding::Slower,
        "{found:?}"
    );
    let found = compared(&format!("{a} {c}"));
    assert_eq!(found.finding, Finding::CannotTell);
    assert!(found.notes[0].contains("--noise"), "{:?}", found.notes);
    throng(&format!("compare {a} {c} --fail-if slower")).succeeded();
    throng(&format!(
        "compare {a} {c} --fail-if slower --fail-undecided"
    ))
    .ended_with(3);
    throng(&format!(
        "compare {a} {c} --fail-if slower --undecided fail"
    ))
    .ended_with(3);
}

#[test]
fn sides_that_cannot_be_compared_are_refused_before_anything_runs() {
    let folder = Folder::new("compare-refused");
    let one = |name: &str, flags: &str| {
        let file = folder.path(name);
        let common = "run --quiet --driver sim --rate 1000 --duration 1s";
        throng(&format!("{common} {flags} --record {file}")).succeeded();
        file
    };
    let a = one("a.json", "");
    let b = one("b.json", "--clients 20");
    throng(&format!("compare {a} {b}")).refused_with("clients 10 and 20", "--force");
    let forced = throng(&format!("compare {a} {b} --force")).succeeded();
    assert!(forced.contains("note: the scenario of B"), "{forced}");
    let empty = folder.path("empty");
    fs::create_dir(&empty).unwrap();
    let sweep = folder.write("sweep.toml", "queries = 9\n[sweep]\nclients = [1, 2]\n");
    for (flags, what) in [
        (format!("{a} {empty}"), "no run records in this folder"),
        (format!("{a} {a}.none"), "cannot read"),
        (format!("{a} {a} --fail-if p98>5ms"), "unknown metric `p98`"),
        (format!("{a} {a} --fail-if p99<5ms"), "which is good"),
        (format!("{a} {a} --same-within 2"), "a percentage"),
        (format!("{a} {a} --metrics p98"), "metrics are offered"),
        ("--a run".into(), "--b"),
        ("--a --transport=doh9 --b run".into(), "--a: "),
        (
            "--a --record=x --b run".into(),
            "the record of each run has its place already",
        ),
        (
            format!("--a {sweep} --b run"),
            "--a: its sweep is 2 runs, and one is needed",
        ),
        (a.clone(), "<B>"),
    ] {
        let (error, _) = throng(&format!("compare {flags}")).refused();
        assert!(error.contains(what), "{flags}: {error}");
    }
}

#[test]
fn conditions_on_a_run_decide_its_exit_code() {
    let folder = Folder::new("compare-conditions");
    let junit = folder.path("run.xml");
    let run = "run --quiet --driver sim --rate 1000 --duration 1s --sim-delay 2ms";
    throng(&format!(
        "{run} --require p99<5ms --fail-if loss>0.01% --require goodput>900"
    ))
    .succeeded();
    let failed = throng(&format!("{run} --fail-if p99>3ms --junit {junit}"));
    assert!(
        failed
            .stderr
            .contains("FAILED: --fail-if 'p99>3ms': p99 is 4.000 ms"),
        "{}",
        failed.stderr
    );
    // The result is printed all the same.
    assert!(failed.ended_with(3).contains("Limit: rate, "));
    assert!(fs::read_to_string(junit).unwrap().contains("<failure"));
    throng(&format!("{run} --fail-if p99>+10%")).refused_with("shows no change", "throng compare");
    let (error, _) = throng("compare-transports --driver sim --fail-if p99>5ms").refused();
    assert!(
        error.contains("--fail-if cannot be used in a comparison of transports"),
        "{error}"
    );
    for command in ["capacity", "ramp --to 1k"] {
        let (error, _) = throng(&format!("{command} --driver sim --fail-if p99>5ms")).refused();
        assert!(error.contains("--fail-if cannot be used"), "{error}");
    }
    let scenario = folder.write(
        "scenario.toml",
        "driver = \"sim\"\nrate = \"1000\"\nduration = \"1s\"\nfail-if = [\"p99 > 1ms\"]\n\n\
         [[clients]]\nname = \"all\"\n",
    );
    let finished = throng(&format!("run {scenario} --quiet"));
    assert!(
        finished.stderr.contains("FAILED: --fail-if 'p99 > 1ms'"),
        "{}",
        finished.stderr
    );
    finished.ended_with(3);
}

#[test]
fn text_and_csv_show_the_course_of_a_run_by_its_intervals() {
    let flags = "run --quiet --driver sim --rate 2000 --duration 3s --interval 100ms";
    let text = throng(&format!("{flags} --details")).succeeded();
    assert!(
        text.contains("\nCourse\n  no warm-up: level from the start"),
        "{text}"
    );
    let csv = throng(&format!("{flags} --format csv")).succeeded();
    assert!(csv.lines().next().unwrap().ends_with(",part"), "{csv}");
    assert!(csv.lines().nth(1).unwrap().ends_with(",sustained"), "{csv}");
    let short = "run --quiet --driver sim --rate 2000 --duration 3s --interval 1s --details";
    let short = throng(short).succeeded();
    assert!(short.contains("3 intervals are too few"), "{short}");
}
