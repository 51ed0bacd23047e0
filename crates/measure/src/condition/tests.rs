use proptest::prelude::*;

use super::*;
use crate::example;

fn criterion(text: &str) -> Criterion {
    match Condition::require(text) {
        Ok(condition) => condition.criterion,
        Err(_) => Condition::fail_if(text).expect("it can be read").criterion,
    }
}

#[test]
fn conditions_are_read_with_their_units() {
    use Bound::{Change, Difference, Value};
    use Metric::{Goodput, Loss, P99, P999, P9999, Qps};
    use Operator::{Greater, GreaterOrEqual, Less, LessOrEqual};
    let wire_p99 = Metric::named("wire.p99").expect("is one");
    let cases = [
        ("p99 > 5ms", P99, Greater, Value(5e6)),
        ("p99>500us", P99, Greater, Value(5e5)),
        (" p99.9 <= 1.5s ", P999, LessOrEqual, Value(1.5e9)),
        ("p99.99 <= 2s", P9999, LessOrEqual, Value(2e9)),
        ("loss < 0.01%", Loss, Less, Value(0.0001)),
        ("goodput > 50k", Goodput, Greater, Value(50_000.0)),
        ("qps >= 1_000", Qps, GreaterOrEqual, Value(1_000.0)),
        ("qps < 1.5M", Qps, Less, Value(1.5e6)),
        ("p99 > +10%", P99, Greater, Change(0.1)),
        ("qps < -5 %", Qps, Less, Change(-0.05)),
        ("loss > +0.1%", Loss, Greater, Change(0.001)),
        ("p99 > +1ms", P99, Greater, Difference(1e6)),
        ("wire.p99 > 2ms", wire_p99, Greater, Value(2e6)),
        ("wire.p99>+10%", wire_p99, Greater, Change(0.1)),
        ("qps < -2k", Qps, Less, Difference(-2_000.0)),
    ];
    for (text, metric, operator, bound) in cases {
        let Criterion::Bounded {
            metric: found_metric,
            operator: found_operator,
            bound: found_bound,
        } = criterion(text)
        else {
            panic!("{text}");
        };
        assert_eq!((found_metric, found_operator), (metric, operator), "{text}");
        let number = |bound| match bound {
            Value(number) | Change(number) | Difference(number) => number,
        };
        let close = (number(found_bound) - number(bound)).abs() <= 1e-9 * number(bound).abs();
        let same_kind = std::mem::discriminant(&found_bound) == std::mem::discriminant(&bound);
        assert!(close && same_kind, "{text}: {found_bound:?}");
    }
    assert_eq!(criterion("slower"), Criterion::Slower(None));
    assert_eq!(
        criterion("p50 slower"),
        Criterion::Slower(Some(Metric::P50))
    );
}

#[test]
fn rcodes_are_conditions_by_their_mnemonic() {
    let mut record = example::record(vec![example::interval(0, &[(1_000_000, 1_000)])]);
    let counts = &mut record.total.counts;
    counts.rcodes = crate::counts::Rcodes::default();
    counts.rcodes.record_many(0, 980);
    counts.rcodes.record_many(2, 15);
    counts.rcodes.record_many(5, 5);
    counts.truncated = 30;
    assert_eq!(counts.responses, 1_000);
    for (text, expected) in [
        ("servfail>1%", Outcome::Failed),
        ("servfail>1.5%", Outcome::Passed),
        ("SERVFAIL > 1%", Outcome::Failed),
        ("rcode.REFUSED>0.1%", Outcome::Failed),
        ("rcode.refused > 0.5%", Outcome::Passed),
        ("nxdomain > 0%", Outcome::Passed),
        ("badcookie > 0%", Outcome::Passed),
        ("truncated >= 3%", Outcome::Failed),
    ] {
        let condition = Condition::fail_if(text).expect("it can be read");
        assert_eq!(condition.check_run(&record).outcome, expected, "{text}");
    }
    // Without a response there is no share.
    let none = example::record(Vec::new());
    let condition = Condition::fail_if("servfail > 1%").expect("it can be read");
    assert_eq!(condition.check_run(&none).outcome, Outcome::Undecided);
    for unknown in ["rcode.nosuch > 1%", "rcode. > 1%", "rcode12 > 1%"] {
        assert!(Condition::fail_if(unknown).is_err(), "{unknown}");
    }
    let good = Condition::fail_if("servfail < 1%").expect_err("it would fail a good run");
    assert!(good.what.contains("good"), "{}", good.what);
}

#[test]
fn faults_name_their_column_and_the_cure() {
    let cases = [
        ("p98 > 5ms", "column 1: unknown metric `p98`", "p99.9"),
        ("wire > 5ms", "column 1: unknown metric `wire`", "wire.p99"),
        ("", "column 1: not a metric", "qps"),
        ("p99", "column 4: no comparison", "p99 > 5ms"),
        ("p99 = 5ms", "column 5: `=` is not a comparison", ">="),
        ("p99 > ", "column 7: no number", "p99 > 5ms"),
        ("p99 > ++5ms", "column 7: no number", "p99 > 5ms"),
        ("p99 > 5", "column 8: no unit", "ms"),
        ("p99 > 5 parsecs", "column 9: unknown unit `parsecs`", "ms"),
        ("p99 > 5%", "column 8: % without a sign", "+10%"),
        ("loss > 1", "column 9: no unit", "%"),
        ("qps < 5ms", "column 8: unknown unit `ms`", "50k"),
        ("p99 > 5ms qps", "column 11: `qps` after the end", "again"),
    ];
    for (text, what, hint) in cases {
        let error = Condition::fail_if(text).expect_err(text);
        assert!(error.what.contains(what), "{text}: {}", error.what);
        assert!(error.hint.contains(hint), "{text}: {}", error.hint);
    }
}

#[test]
fn failing_because_a_result_is_good_is_refused() {
    for text in ["p99 < 5ms", "qps > 50k", "loss < 0.01%", "goodput >= +5%"] {
        let error = Condition::fail_if(text).expect_err(text);
        assert!(error.what.contains("which is good"), "{}", error.what);
        assert!(error.hint.contains("--require"), "{}", error.hint);
        assert!(Condition::require(text).is_ok());
    }
    assert!(Condition::require("slower").is_err());
}

#[test]
fn single_run_is_held_against_values() {
    let intervals = (0..3).map(|each| example::interval(each, &[(2_000_000, 100)]));
    let record = example::record(intervals.collect());
    let outcome = |condition: Result<Condition, ConditionError>| {
        condition
            .expect("it can be read")
            .check_run(&record)
            .outcome
    };
    assert_eq!(outcome(Condition::fail_if("p99 > 5ms")), Outcome::Passed);
    assert_eq!(outcome(Condition::fail_if("p99 > 1ms")), Outcome::Failed);
    assert_eq!(outcome(Condition::require("p99 < 5ms")), Outcome::Passed);
    assert_eq!(outcome(Condition::require("qps > 200")), Outcome::Failed);
    assert_eq!(outcome(Condition::fail_if("p99 > +5%")), Outcome::Undecided);
    assert_eq!(
        outcome(Condition::require("connect < 1ms")),
        Outcome::Failed
    );
    let check = Condition::fail_if("p99 > 1ms")
        .expect("it can be read")
        .check_run(&record);
    assert_eq!(
        ConditionRecord::from(check).line(),
        "FAILED: --fail-if 'p99 > 1ms': p99 is 2.000 ms"
    );
}

/// Rows of what conditions consist of.
const NEARLY_RIGHT: &str = "(p99|qps|loss|é) ?[<>=+-]{0,3} ?[0-9.]{0,5}[%a-zé]{0,3}";

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,40}") {
        let _ = (Condition::fail_if(&text), Condition::require(&text));
    }

    #[test]
    fn nearly_right_text_does_not_either(text in NEARLY_RIGHT) {
        let _ = (Condition::fail_if(&text), Condition::require(&text));
    }
}
