//! Policies of real servers: limits on rates, clients and queries, refusals and silence. Each is a
//! row of a table with the verdicts that are right for it.
//!
//! Each row runs on a quiet host, where the verdict must be the expected one, and on a host that is
//! disturbed on purpose, where the verdict may say that it cannot tell. It never names a wrong
//! cause on either. `POLICY=TEXT,TEXT` runs the rows whose
//! name contains one of the texts, and prints each verdict.

use testing::quiet::Quiet;
use testing::timed::{self, Attempt};

use crate::disturbed::hog;

use equipment::{Disturbed, Row, Run, at_once};

mod equipment;
mod table;

/// Rows at once on the quiet host: they wait more than they work.
const QUIET_ROWS: usize = 2;
/// Rows at once on the disturbed host.
const DISTURBED_ROWS: usize = 5;

/// Runs and judges a row until the host was quiet, and again with the advice followed.
fn check_quiet(row: &Row) {
    let check = |run: &Run, name: &str| {
        timed::on_quiet_host(Quiet::VERDICT, || {
            let ran = run.run(None);
            run.check_cause(name, &ran, None);
            Attempt {
                disturbance: ran.disturbance(),
                outcome: run.check_verdict(name, &ran),
            }
        });
    };
    check(&row.run, row.name);
    if let Some(followed) = &row.followed {
        check(followed, &format!("{}, advice followed", row.name));
    }
}

fn check_disturbed(row: &Row, disturbed: Disturbed) {
    let ran = row.run.run(Some(disturbed));
    row.run.check_cause(row.name, &ran, Some(disturbed));
}

/// The rows that are asked for.
fn rows(all: Vec<Row>) -> Vec<Row> {
    let part = std::env::var("POLICY").unwrap_or_default();
    all.into_iter()
        .filter(|row| part.split(',').any(|part| row.name.contains(part)))
        .collect()
}

#[test]
fn verdicts_name_the_policy_on_a_quiet_host() {
    let (alone, beside): (Vec<Row>, Vec<Row>) =
        rows(table::all()).into_iter().partition(|row| row.is_busy);
    at_once(&beside, QUIET_ROWS, check_quiet);
    at_once(&alone, 1, check_quiet);
}

#[test]
fn verdicts_name_no_wrong_cause_on_a_disturbed_host() {
    let rows = rows(table::all());
    for (turn, disturbed) in Disturbed::ALL.into_iter().enumerate() {
        let of_turn: Vec<Row> = rows.iter().skip(turn).step_by(3).cloned().collect();
        let _hogs = (disturbed == Disturbed::Hogs).then(|| [hog(0), hog(1)]);
        at_once(&of_turn, DISTURBED_ROWS, |row| {
            check_disturbed(row, disturbed);
        });
    }
}
