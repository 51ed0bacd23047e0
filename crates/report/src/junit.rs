//! Conditions as JUnit XML, which every CI system reads: one test case a condition.
//!
//! The form is the common part of what Jenkins, GitLab and GitHub actions accept: `testsuites`,
//! `testsuite`, `testcase`, with `failure` for a condition that failed and `skipped` for one that
//! the figures do not decide.

use std::fmt::Write;

use measure::condition::{ConditionRecord, Outcome};

use crate::markup::escape;

#[cfg(test)]
mod tests;

/// The conditions of a command that ended without a result, because of this error.
pub fn render_error(suite: &str, conditions: &[String], error: &str) -> String {
    let (suite, error) = (escape(suite), escape(error));
    let none = ["result".to_owned()];
    let conditions = match conditions.is_empty() {
        true => &none[..],
        false => conditions,
    };
    let tests = conditions.len();
    let counts = format!("tests=\"{tests}\" failures=\"0\" errors=\"{tests}\" skipped=\"0\"");
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  \
         <testsuite name=\"{suite}\" {counts}>\n"
    );
    for name in conditions {
        let _ = writeln!(
            xml,
            "    <testcase classname=\"{suite}\" name=\"{}\">\
             <error message=\"{error}\"/></testcase>",
            escape(name)
        );
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// The conditions of one command, with what it printed. `fails` says which outcomes fail it, the
/// others that are undecided are skipped. Ends in a line break.
pub fn render(
    suite: &str,
    (results, fails): (&[ConditionRecord], impl Fn(Outcome) -> bool),
    printed: &str,
) -> String {
    let is_skipped = |it: &&ConditionRecord| it.outcome == Outcome::Undecided && !fails(it.outcome);
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
        results.len(),
        results.iter().filter(|it| fails(it.outcome)).count(),
        results.iter().filter(is_skipped).count()
    );
    let suite = escape(suite);
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(xml, "<testsuites {counts}>");
    let _ = writeln!(xml, "  <testsuite name=\"{suite}\" {counts}>");
    for result in results {
        let name = escape(&result.condition);
        let found = escape(&result.found);
        let _ = write!(xml, "    <testcase classname=\"{suite}\" name=\"{name}\"");
        let _ = match result.outcome {
            outcome if fails(outcome) => writeln!(
                xml,
                "><failure message=\"{found}\">{found}</failure></testcase>"
            ),
            Outcome::Undecided => writeln!(xml, "><skipped message=\"{found}\"/></testcase>"),
            Outcome::Passed | Outcome::Failed => writeln!(xml, "/>"),
        };
    }
    let _ = writeln!(xml, "    <system-out>{}</system-out>", escape(printed));
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}
