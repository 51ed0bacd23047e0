//! Policies of real servers: limits on rates, clients and queries, refusals and silence. Each is a
//! row of a table with the verdicts that are right for it.
//!
//! Each row runs on a quiet host, where the verdict must be the expected one, and on a host that is
//! disturbed on purpose, where the verdict may say that it cannot tell. It never names a wrong
//! cause on either. `POLICY=TEXT,TEXT` runs the rows whose
//! name contains one of the texts, and prints each verdict. A row meets one disturbance, and all of
//! them with `DISTURBED=all`.

use std::sync::Barrier;
use std::sync::atomic::AtomicUsize;
use std::thread;

use testing::cases::Cases;
use testing::quiet::Quiet;
use testing::timed::{self, Attempt};

use equipment::{Disturbed, Row, Run, Started, at_once, taken};

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
            let ran = run.run(&run.server.start(None), None);
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
    let cases = Cases::begin();
    let check = |row: &Row| {
        cases.run(row.name, || check_quiet(row));
    };
    at_once(&beside, QUIET_ROWS, check);
    at_once(&alone, 1, check);
    cases.end();
}

#[test]
fn verdicts_name_no_wrong_cause_on_a_disturbed_host() {
    let rows = rows(table::all());
    let each = Disturbed::ALL;
    let cases = Cases::begin();
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
        check_disturbed(&of_turn, disturbed, &cases);
    }
    cases.end();
}

/// Checks rows, of which all servers start first: a start may take any time beside hogs.
fn check_disturbed(rows: &[Row], disturbed: Disturbed, cases: &Cases) {
    let next = AtomicUsize::new(0);
    // All servers have started, and then the hogs.
    let barrier = Barrier::new(DISTURBED_ROWS + 1);
    // Servers end with the thread that started them.
    let work = || {
        let started: Vec<(&Row, Started)> = taken(rows, &next)
            .filter_map(|row| {
                let start = || row.run.server.start(Some(disturbed));
                Some((row, cases.run(row.name, start)?))
            })
            .collect();
        barrier.wait();
        barrier.wait();
        for (row, started) in &started {
            cases.run(row.name, || {
                let ran = row.run.run(started, Some(disturbed));
                row.run.check_cause(row.name, &ran, Some(disturbed));
            });
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..DISTURBED_ROWS).map(|_| scope.spawn(work)).collect();
        barrier.wait();
        let _hogs = disturbed.hogs();
        barrier.wait();
        threads.into_iter().for_each(|it| it.join().unwrap());
    });
}
