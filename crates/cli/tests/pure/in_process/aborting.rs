//! `--abort-if`: runs that a condition on their intervals ends early.

use std::fs;

use cli::Call;
use measure::{EndedBy, RunRecord};
use testing::folder::Folder;
use testing::program::Finished;

use crate::call::{call, throng};

/// Every query takes 4 ms, and every interval of 10 s is 500 ms long.
const RUN: &str = "run --quiet --driver sim --rate 1000 --sim-delay 2ms";

/// Calls `throng` with a condition that has blanks.
fn run_with(condition: &str, flags: &str) -> Finished {
    let words = RUN.split_whitespace().chain(flags.split_whitespace());
    let words = words.chain(["--abort-if", condition]);
    call(Call {
        arguments: words.map(Into::into).collect(),
        ..Call::default()
    })
}

fn read(path: &str) -> RunRecord {
    RunRecord::from_json(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn run_ends_early_with_its_result_when_the_condition_is_met() {
    let folder = Folder::new("abort-met");
    let (path, junit) = (folder.path("run.json"), folder.path("run.xml"));
    // One that fails the result does not hide what ended the run.
    let flags = format!("--abort-if loss>1% --fail-if p99>3ms --junit {junit} --record {path}");
    let finished = run_with("p99 > 3ms for 2s", &flags);
    for said in [
        "passed: --abort-if 'loss>1%': it did not end the run\n",
        "FAILED: --abort-if 'p99 > 3ms for 2s': p99 is 4.000 ms from 0.0 s to 2.0 s, the run was \
         ended\n",
        "FAILED: --fail-if 'p99>3ms': p99 is 4.000 ms\n",
    ] {
        assert!(finished.stderr.contains(said), "{}", finished.stderr);
    }
    let text = finished.ended_with(4);
    for said in [
        "Aborted. SIMULATION. Limit: ",
        ", 2.0 s, then ended by --abort-if\n",
        "- --abort-if 'p99 > 3ms for 2s' ended the run early: p99 is 4.000 ms",
    ] {
        assert!(text.contains(said), "{text}");
    }
    let record = read(&path);
    assert_eq!(record.ended_by, EndedBy::Aborted);
    let aborted = record.aborted.as_ref().unwrap();
    assert_eq!((aborted.from_ns, aborted.until_ns), (0, 2_000_000_000));
    // Queries in flight were waited for.
    let counts = &record.total.counts;
    assert_eq!((counts.lost(), counts.interrupted), (0, 0));
    assert!((2_000..2_010).contains(&counts.offered), "{counts:?}");
    let junit = fs::read_to_string(junit).unwrap();
    assert!(junit.contains("tests=\"3\" failures=\"2\""), "{junit}");
    let page = throng(&format!("report {path} --format html")).succeeded();
    assert!(
        page.contains("ended the run early: p99 is 4.000 ms"),
        "{page}"
    );
}

#[test]
fn same_seed_ends_at_the_same_instant() {
    let drawn = "--arrival poisson --workers 2 --sim-loss 0.05 --timeout 100ms --format json";
    let end = |seed: u32| {
        let finished = run_with("loss > 11%", &format!("{drawn} --seed {seed}"));
        finished.ended_with(4)
    };
    assert_eq!(end(7), end(7));
    assert_ne!(end(7), end(8));
}

#[test]
fn run_whose_condition_is_not_met_is_not_changed_by_it() {
    let plain = throng(&format!("{RUN} --format csv")).succeeded();
    let watched = run_with("p99 > 5ms for 2s", "--format csv").succeeded();
    assert_eq!(plain, watched);
    // The warm-up is not looked at, nor an interval that ends with the load.
    let record = run_with(
        "p99 > 1ms for 900ms",
        "--warmup 5s --duration 1s --interval 500ms --format json",
    );
    let record = RunRecord::from_json(&record.succeeded()).unwrap();
    assert_eq!((record.ended_by, record.aborted), (EndedBy::Duration, None));
    let asked = &record.asked[0].run.limits.abort_if;
    assert_eq!(asked, &["p99 > 1ms for 900ms"]);
}

#[test]
fn run_of_a_number_of_queries_ends_early_too() {
    let finished = run_with("p99 > 1ms", "--queries 5000 --format json");
    let record = RunRecord::from_json(&finished.ended_with(4)).unwrap();
    assert_eq!(record.ended_by, EndedBy::Aborted);
    assert!(record.total.counts.offered < 1_100);
}

/// Two groups over UDP; that over DoT begins after 2 s, with a new connection for each query.
const GROUPS: &str = "driver = 'sim'\nduration = '10s'\ninterval = '500ms'\nsim-delay = '2ms'\n\
                      [[clients]]\nname = 'homes'\nrate = '200'\n\
                      [[clients]]\nname = 'wait for it'\nper-client = 'constant:5'\n\
                      transport = 'dot'\njoin-after = '2s'\nconnection-idle-timeout = '1ms'\n\
                      [[clients]]\nname = 'offices'\nrate = '200'\n";

fn run_groups(folder: &Folder, condition: &str, flags: &str) -> Finished {
    let scenario = folder.write("groups.toml", GROUPS);
    let words = ["run", &scenario, "--quiet", "--abort-if", condition];
    let words = words.into_iter().chain(flags.split_whitespace());
    call(Call {
        arguments: words.map(Into::into).collect(),
        ..Call::default()
    })
}

#[test]
fn condition_on_a_group_or_a_transport_ends_the_run_by_its_queries_alone() {
    let folder = Folder::new("abort-groups");
    let path = folder.path("run.json");
    // All queries together are as fast as most of them.
    run_groups(&folder, "p50 > 5ms", "").succeeded();
    for (condition, found) in [
        ("p50[wait for it] > 5ms for 2s", "p50[wait for it] is "),
        ("p50[dot] > 5ms for 2s", "p50[dot] is "),
    ] {
        for workers in [1, 2] {
            let flags = format!("--workers {workers} --record {path} --force");
            let finished = run_groups(&folder, condition, &flags);
            let line = format!("FAILED: --abort-if '{condition}': {found}");
            assert!(finished.stderr.contains(&line), "{}", finished.stderr);
            let text = finished.ended_with(4);
            let why = format!("- --abort-if '{condition}' ended the run early: {found}");
            assert!(text.contains(&why), "{text}");
            let page = throng(&format!("report {path} --format html")).succeeded();
            assert!(page.contains(found), "{page}");
            // Before the group began, there was nothing to judge.
            let aborted = read(&path).aborted.unwrap();
            let window = (aborted.from_ns, aborted.until_ns);
            assert_eq!(window, (2_000_000_000, 4_000_000_000), "{workers}");
            assert!(aborted.value > 5e6, "{aborted:?}");
        }
    }
}

#[test]
fn groups_and_transports_are_judged_at_the_end_too() {
    let folder = Folder::new("fail-groups");
    let flags = "--fail-if p50[dot]>5ms --fail-if p50[udp]>5ms --require qps[homes]>199";
    let finished = run_groups(&folder, "loss[offices] > 1%", flags);
    for said in [
        "passed: --abort-if 'loss[offices] > 1%': it did not end the run\n",
        "FAILED: --fail-if 'p50[dot]>5ms': p50[dot] is ",
        "passed: --fail-if 'p50[udp]>5ms': p50[udp] is 4.0",
        "passed: --require 'qps[homes]>199': qps[homes] is 200",
    ] {
        assert!(finished.stderr.contains(said), "{}", finished.stderr);
    }
    finished.ended_with(3);
    for flags in ["--fail-if p99[offiecs]>5ms", "--require qps[doq]>1"] {
        run_groups(&folder, "loss > 1%", flags).refused_with(
            "the run has no group of clients and no transport `",
            "groups and transports of this run are homes, wait for it, offices, udp, dot",
        );
    }
    run_groups(&folder, "p99[phones] > 5ms", "").refused_with(
        "--abort-if `p99[phones] > 5ms`: the run has no group of clients",
        "wait for it",
    );
    let line = "compare a b --fail-if p99[udp]>5ms";
    throng(line).refused_with("a comparison is of whole runs", "throng run takes it");
}

#[test]
fn sweep_ends_with_the_point_that_was_aborted() {
    let folder = Folder::new("abort-sweep");
    let scenario = folder.write(
        "scenario.toml",
        "driver = 'sim'\nrate = 1000\nduration = '2s'\nabort-if = ['p99 > 10ms for 1s']\n\
         [sweep]\nsim-delay = ['2ms', '8ms', '3ms']\n",
    );
    let file = folder.path("r.json");
    throng(&format!("run {scenario} --quiet --record {file}")).ended_with(4);
    let record_of = |delay: &str| folder.path(&format!("r-sim-delay={delay}.json"));
    assert_eq!(read(&record_of("2ms")).ended_by, EndedBy::Duration);
    assert_eq!(read(&record_of("8ms")).ended_by, EndedBy::Aborted);
    assert!(fs::metadata(record_of("3ms")).is_err());
}

#[test]
fn conditions_that_cannot_be_are_refused_before_the_run() {
    for (condition, what, hint) in [
        (
            "p98 > 5ms",
            "--abort-if `p98 > 5ms`, column 1: unknown metric",
            "metrics are",
        ),
        ("p99", "no comparison after the metric", "p99 > 5ms"),
        ("p99 > 5ms for 0s", "the time is 0", "leave `for` out"),
        ("p99 > 5ms for 10s", "the run lasts 10s", "shorter time"),
        (
            "qps > 5",
            "would end a run because its qps is high",
            "with `<=`",
        ),
        (
            "fairness < 50%",
            "fairness cannot end a run early",
            "metrics of intervals are",
        ),
    ] {
        run_with(condition, "").refused_with(what, hint);
    }
    for command in ["capacity", "ramp --to 1k", "compare-transports"] {
        let (error, _) = throng(&format!("{command} --driver sim --abort-if p99>5ms")).refused();
        assert!(error.contains("--abort-if cannot be used"), "{error}");
    }
}
