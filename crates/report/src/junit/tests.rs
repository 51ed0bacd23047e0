use measure::condition::Condition;

use super::*;
use crate::example;

#[test]
fn failed_conditions_are_failures_and_everything_is_escaped() {
    let record = example::udp_self_test();
    let check = |text| {
        let condition = Condition::fail_if(text).expect("it can be read");
        ConditionRecord::from(condition.check_run(&record))
    };
    let checks = [check("p99 > 1ns"), check("p99 > 60s"), check("p99 > +10%")];
    let failed = |it: Outcome| it == Outcome::Failed;
    let printed = "a \"b\"\u{1b}[0m\n";
    let xml = render("throng run <&>", (&checks, failed), printed);
    let lines: Vec<&str> = xml.lines().collect();
    let counts = "tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\"";
    assert_eq!(lines[1], format!("<testsuites {counts}>"));
    assert_eq!(
        lines[2],
        format!("  <testsuite name=\"throng run &lt;&amp;&gt;\" {counts}>")
    );
    assert!(lines[3].contains("name=\"--fail-if 'p99 &gt; 1ns'\"><failure message=\"p99 is "));
    assert!(
        lines[4].ends_with("name=\"--fail-if 'p99 &gt; 60s'\"/>"),
        "{}",
        lines[4]
    );
    assert!(lines[5].contains("<skipped message=\"a single run shows no change\"/>"));
    assert!(
        lines[6].contains("a &quot;b&quot;\\u001b[0m"),
        "{}",
        lines[6]
    );
    assert!(xml.ends_with("  </testsuite>\n</testsuites>\n"));
    // As --undecided fail has it.
    let all_else = |it: Outcome| it != Outcome::Passed;
    let xml = render("throng run", (&checks, all_else), printed);
    assert!(xml.contains("tests=\"3\" failures=\"2\" errors=\"0\" skipped=\"0\""));
    assert!(xml.contains("<failure message=\"a single run shows no change\">"));
}

#[test]
fn a_command_without_a_result_has_an_error_for_each_condition() {
    let conditions = [
        "--fail-if 'p99 > 5ms'".to_owned(),
        "--require 'qps > 1'".to_owned(),
    ];
    let xml = render_error("throng run", &conditions, "connection refused");
    let counts = "tests=\"2\" failures=\"0\" errors=\"2\" skipped=\"0\"";
    assert!(xml.contains(&format!("<testsuites {counts}>")), "{xml}");
    let error = "'p99 &gt; 5ms'\"><error message=\"connection refused\"/></testcase>";
    assert!(xml.contains(error), "{xml}");
    let none = render_error("throng run", &[], "connection refused");
    assert!(none.contains("tests=\"1\""), "{none}");
}
