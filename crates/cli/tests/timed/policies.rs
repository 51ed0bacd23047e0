//! Policies of real servers: limits on rates, clients and queries, refusals and silence. Each is a
//! row of a table with the verdicts that are right for it.
//!
//! Each row runs on a quiet host, where the verdict must be the expected one, and on a host that is
//! disturbed on purpose, where the verdict may say that it cannot tell. It never names a wrong
//! cause on either. `POLICY=TEXT,TEXT` runs the rows whose
//! name contains one of the texts, and prints each verdict. A row meets one disturbance, and all of
//! them with `DISTURBED=all`.

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
            let disturbance = ran.disturbance();
            // What others do meanwhile excuses what a hog of ours does.
            let disturbed = disturbance.beyond(Quiet::VERDICT);
            run.check_cause(name, &ran, disturbed.map(|_| Disturbed::Hogs(&[])));
            Attempt {
                disturbance,
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
    let each = Disturbed::ALL;
    for (turn, disturbed) in each.into_iter().enumerate() {
        let (skipped, step) = match std::env::var_os("DISTURBED") {
            Some(_) => (0, 1),
            None => (turn, each.len()),
        };
        // In a control group of its own, a server has next to no CPU beside our hogs, whose session
        // is ahead of it.
        let (of_quota, others): (Vec<Row>, Vec<Row>) = rows
            .iter()
            .cloned()
            .partition(|row| row.run.server.quota.is_some());
        let mut of_turn: Vec<Row> = others.into_iter().skip(skipped).step_by(step).collect();
        if disturbed == Disturbed::Stop {
            of_turn.extend(of_quota);
        }
        let _hogs = match disturbed {
            Disturbed::Hogs(cpus) => cpus.iter().map(|cpu| hog(*cpu)).collect(),
            Disturbed::Stop | Disturbed::Quota => Vec::new(),
        };
        at_once(&of_turn, DISTURBED_ROWS, |row| {
            check_disturbed(row, disturbed);
        });
    }
}
