//! The end of a test run: a summary for people, JSON and JUnit for programs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::binaries::Kind;
use crate::junit;
use crate::results::{self, Outcome, RunOfTest, cannot};

/// Tests that are listed as the slowest.
const SLOWEST: usize = 10;
/// What is printed of a panic's message: its beginning, and its end, where values are that differ;
/// and of how many panics of a test.
const FIRST_LINES: usize = 8;
const LAST_LINES: usize = 12;
const PANICS_MAX: usize = 4;
const CHARACTERS_OF_LINE: usize = 600;

/// What all runs of a test amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Conclusion {
    Passed,
    /// Failed, and has not passed since.
    Failed,
    /// Failed, and passed alone.
    Flaky,
    Inconclusive,
}

/// One test in the report.
#[derive(Serialize)]
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) conclusion: Conclusion,
    /// Of its last run.
    pub(crate) seconds: f64,
    /// Why it did not pass, of each run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) why: Vec<String>,
    /// Paths of what was printed in each run, unless it passed the first time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) outputs: Vec<String>,
}

#[derive(Serialize)]
struct Step {
    name: String,
    seconds: u64,
}

#[derive(Serialize)]
struct Report {
    commit: String,
    /// True if no tracked file differs from the commit.
    is_clean: bool,
    passed: usize,
    failed: usize,
    flaky: usize,
    inconclusive: usize,
    steps: Vec<Step>,
    tests: Vec<Test>,
}

/// Prints and writes the report; true if no test failed.
pub(crate) fn report(steps: Option<&str>) -> Result<bool, String> {
    let tests = concluded(&results::read()?);
    let steps = steps.map_or(Ok(Vec::new()), read_steps)?;
    let count = |it| tests.iter().filter(|test| test.conclusion == it).count();
    let report = Report {
        commit: git(&["rev-parse", "HEAD"]),
        is_clean: git(&["status", "--porcelain", "--untracked-files=no"]).is_empty(),
        passed: count(Conclusion::Passed),
        failed: count(Conclusion::Failed),
        flaky: count(Conclusion::Flaky),
        inconclusive: count(Conclusion::Inconclusive),
        steps,
        tests,
    };
    print!("{}", summary(&report));
    let write = |name: &str, text: String| {
        let path = Path::new("target").join(name);
        fs::write(&path, text).map_err(|error| cannot(&path, &error))
    };
    let json = serde_json::to_string_pretty(&report).unwrap();
    write("test-report.json", json + "\n")?;
    write("test-report.xml", junit::text(&report.tests))?;
    Ok(report.failed == 0)
}

fn git(arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).output();
    let text = output.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned());
    text.unwrap_or_default()
}

/// Lines of seconds and a name.
fn read_steps(file: &str) -> Result<Vec<Step>, String> {
    let text = fs::read_to_string(file).map_err(|error| cannot(Path::new(file), &error))?;
    let steps = text.lines().map(|line| {
        let (seconds, name) = line.split_once(' ')?;
        Some(Step {
            name: name.to_owned(),
            seconds: seconds.parse().ok()?,
        })
    });
    let steps: Option<Vec<Step>> = steps.collect();
    steps.ok_or(format!("{file}: lines are seconds and a name"))
}

fn concluded(runs: &[RunOfTest]) -> Vec<Test> {
    let mut by_name = BTreeMap::<String, Vec<&RunOfTest>>::new();
    for run in runs {
        by_name.entry(run.job.name()).or_default().push(run);
    }
    by_name
        .into_iter()
        .map(|(name, runs)| conclude(name, &runs))
        .collect()
}

fn conclude(name: String, runs: &[&RunOfTest]) -> Test {
    let last = runs.last().unwrap();
    let has_failed = runs.iter().any(|run| run.outcome == Outcome::Failed);
    let conclusion = match (last.outcome, has_failed) {
        (Outcome::Failed, _) => Conclusion::Failed,
        // It has shown nothing that speaks against the failure.
        (Outcome::Inconclusive, true) => Conclusion::Failed,
        (Outcome::Inconclusive, false) => Conclusion::Inconclusive,
        (Outcome::Passed, true) => Conclusion::Flaky,
        (Outcome::Passed, false) => Conclusion::Passed,
    };
    // Of one that failed, the host's excuse in another run is no reason.
    let of_interest = |run: &&&RunOfTest| match has_failed {
        true => run.outcome == Outcome::Failed,
        false => run.outcome != Outcome::Passed,
    };
    let not_passed = runs.iter().filter(of_interest);
    let outputs = runs.iter().filter_map(|run| run.output.as_ref());
    Test {
        name,
        kind: last.job.kind,
        conclusion,
        seconds: last.seconds,
        why: not_passed.map(|run| run.why.clone()).collect(),
        outputs: outputs.map(|path| path.display().to_string()).collect(),
    }
}

fn time(seconds: u64) -> String {
    format!("{:3}:{:02}", seconds / 60, seconds % 60)
}

/// What is printed last, and of that last why tests did not pass: an end of the output is all that
/// some see.
fn summary(report: &Report) -> String {
    let mut text = "slowest\n".to_owned();
    let mut by_time: Vec<&Test> = report.tests.iter().collect();
    by_time.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    for test in by_time.iter().take(SLOWEST) {
        text += &format!("{:6.1} s  {}\n", test.seconds, test.name);
    }
    if !report.steps.is_empty() {
        text += "minutes and seconds of each step\n";
    }
    for step in &report.steps {
        text += &format!("{}  {}\n", time(step.seconds), step.name);
    }
    text += &not_passed(&report.tests);
    let Report {
        passed,
        failed,
        flaky,
        inconclusive,
        ..
    } = report;
    text += &format!(
        "tests: {passed} passed, {failed} failed, {flaky} flaky, {inconclusive} inconclusive\n"
    );
    text
}

/// Tests that did not pass each time, and why.
fn not_passed(tests: &[Test]) -> String {
    let mut text = String::new();
    let lists = [
        (
            Conclusion::Inconclusive,
            "inconclusive: neither passed nor failed, for the reason given",
        ),
        (
            Conclusion::Flaky,
            "flaky: failed, and passed when run again alone",
        ),
        (Conclusion::Failed, "failed"),
    ];
    for (conclusion, title) in lists {
        let of = tests.iter().filter(|it| it.conclusion == conclusion);
        let mut of = of.peekable();
        if of.peek().is_some() {
            text += &format!("{title}\n");
        }
        for test in of {
            let why = test.why.first().map_or("", String::as_str);
            let why = why.lines().next().unwrap_or_default();
            text += &format!("    {}: {why}\n", test.name);
            for path in &test.outputs {
                text += &format!("        {path}\n");
                let output = fs::read(path).unwrap_or_default();
                for line in panics(&String::from_utf8_lossy(&output)) {
                    text += &format!("        | {line}\n");
                }
            }
        }
    }
    text
}

/// What the standard library prints after a panic.
const NOTES: [&str; 2] = [
    "note: Some details are omitted",
    "note: run with `RUST_BACKTRACE",
];

/// The messages of a test's panics, without their backtraces.
fn panics(output: &str) -> Vec<String> {
    let mut panics: Vec<Vec<&str>> = Vec::new();
    let mut is_in_one = false;
    for line in output.lines() {
        if line.contains(" panicked at ") {
            is_in_one = true;
            panics.push(Vec::new());
        } else if line == "stack backtrace:" || NOTES.iter().any(|it| line.starts_with(it)) {
            is_in_one = false;
        }
        if let Some(panic) = panics.last_mut().filter(|_| is_in_one) {
            panic.push(line);
        }
    }
    panics
        .iter()
        .take(PANICS_MAX)
        .flat_map(|it| excerpt(it))
        .collect()
}

/// The first and the last ones of lines, each with its beginning and its end.
fn excerpt(lines: &[&str]) -> Vec<String> {
    let left_out = lines.len().saturating_sub(FIRST_LINES + LAST_LINES);
    let last = (FIRST_LINES + left_out).min(lines.len());
    let mut shown: Vec<String> = lines.iter().take(FIRST_LINES).map(|it| ends(it)).collect();
    if left_out > 0 {
        shown.push(format!("[{left_out} lines]"));
    }
    shown.extend(lines[last..].iter().map(|it| ends(it)));
    shown
}

fn ends(line: &str) -> String {
    let characters: Vec<char> = line.chars().collect();
    match characters.len() > CHARACTERS_OF_LINE {
        true => {
            let (begin, end) = characters.split_at(CHARACTERS_OF_LINE / 2);
            let end = &end[end.len() - CHARACTERS_OF_LINE / 2..];
            format!(
                "{} […] {}",
                String::from_iter(begin),
                String::from_iter(end)
            )
        }
        false => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binaries::Job;

    fn run(name: &str, outcome: Outcome) -> RunOfTest {
        RunOfTest {
            job: Job {
                kind: Kind::Real,
                binary: "a::b".to_owned(),
                executable: "b".into(),
                folder: ".".into(),
                test: name.to_owned(),
            },
            outcome,
            seconds: 1.0,
            why: String::new(),
            output: None,
        }
    }

    #[test]
    fn what_failed_and_passed_alone_is_flaky_and_what_did_not_pass_failed() {
        use Outcome::{Failed, Inconclusive, Passed};
        let runs = [
            run("flaky", Failed),
            run("broken", Failed),
            run("right", Passed),
            run("unknown", Inconclusive),
            run("broken", Failed),
            run("flaky", Passed),
            run("doubtful", Failed),
            run("doubtful", Inconclusive),
        ];
        let found: Vec<(String, Conclusion)> = concluded(&runs)
            .into_iter()
            .map(|test| (test.name, test.conclusion))
            .collect();
        let expected = [
            ("a::b::broken", Conclusion::Failed),
            ("a::b::doubtful", Conclusion::Failed),
            ("a::b::flaky", Conclusion::Flaky),
            ("a::b::right", Conclusion::Passed),
            ("a::b::unknown", Conclusion::Inconclusive),
        ];
        assert_eq!(found, expected.map(|(name, it)| (name.to_owned(), it)));
    }

    #[test]
    fn panics_are_printed_without_their_backtraces() {
        let output = "case one\n\nthread 'a' (7) panicked at a.rs:1:1:\nnote: of the message\n\
                      left: 1\nright: 2\n\
                      stack backtrace:\n   0: f\nnote: Some details are omitted\ncase two\n\
                      thread 'b' (8) panicked at b.rs:1:1:\na scoped thread panicked\n";
        let expected = [
            "thread 'a' (7) panicked at a.rs:1:1:",
            "note: of the message",
            "left: 1",
            "right: 2",
            "thread 'b' (8) panicked at b.rs:1:1:",
            "a scoped thread panicked",
        ];
        assert_eq!(panics(output), expected);
    }

    /// A command of many lines comes before the values that differ.
    #[test]
    fn long_panics_are_printed_with_their_beginning_and_their_end() {
        let lines: Vec<String> = (0..40).map(|number| format!("line {number}")).collect();
        let output = format!(
            "thread 'a' (7) panicked at a.rs:1:1:\n{}\nleft: {}end\nright: 2\nstack backtrace:\n",
            lines.join("\n"),
            "1".repeat(2_000)
        );
        let printed = panics(&output);
        assert_eq!(printed.len(), FIRST_LINES + 1 + LAST_LINES);
        assert_eq!(printed[FIRST_LINES], "[23 lines]");
        assert_eq!(printed[FIRST_LINES - 1], "line 6");
        let [.., left, right] = printed.as_slice() else {
            unreachable!()
        };
        assert!(left.starts_with("left: 111") && left.ends_with("1end"));
        assert!(left.chars().count() < 700);
        assert_eq!(right, "right: 2");
    }
}
