//! `throng experiment` and `throng history`: plans, refusals, and folders of records.

use std::fs;

use testing::folder::Folder;

use crate::call::throng;
use crate::matrix::MATRIX;

#[test]
fn order_is_random_within_each_repetition_and_the_same_for_the_same_seed() {
    let folder = Folder::new("experiment-order");
    let text = MATRIX.replace("clients = [1, 5]", "clients = [1, 2, 3, 4, 5, 6, 7, 8]");
    let plan = |text: &str| {
        let file = folder.write("plan.toml", text);
        throng(&format!("experiment plan {file}")).succeeded()
    };
    let first = plan(&text);
    assert_eq!(first, plan(&text));
    assert_ne!(first, plan(&text.replace("repeat", "seed = 2\nrepeat")));
    let runs: Vec<&str> = first
        .lines()
        .filter(|line| line.contains("repetition "))
        .collect();
    assert_eq!(runs.len(), 32);
    let (one, two) = runs.split_at(16);
    assert!(
        one.iter().all(|line| line.ends_with("repetition 1")),
        "{first}"
    );
    assert!(
        two.iter().all(|line| line.ends_with("repetition 2")),
        "{first}"
    );
    let listed = plan(&text.replace("repeat", "order = \"listed\"\nrepeat"));
    assert_ne!(first, listed);
}

#[test]
fn an_experiment_with_an_error_is_refused_before_anything_runs() {
    let folder = Folder::new("experiment-wrong");
    for (text, what, hint) in [
        ("matrx = {}", "unknown key `matrx`", "do you mean `matrix`?"),
        ("repeat = 0", "`repeat` is 0", "1 or more"),
        ("order = \"sorted\"", "no order: `sorted`", "random"),
        (
            "[run]\nclient = 5",
            "unknown key `client`",
            "do you mean `clients`?",
        ),
        (
            "[matrix]\nclients = 5",
            "`clients` is a number",
            "write a list",
        ),
        (
            "[matrix]\nclients = [5, 5]",
            "`5` occurs twice",
            "each value once",
        ),
        (
            "[run]\nrecord = \"x\"",
            "`record` is set by the experiment",
            "leave it out",
        ),
        ("[run]\nbefore = \"x\"", "`before` is a hook", "[hooks]"),
        (
            "[[servers]]\nserver = \"x\"",
            "this server has no label",
            "label =",
        ),
        ("[matrix]\ntransport = [\"upd\"]", "transport upd: ", "udp"),
        (
            "[run]\ninterval = \"1us\"\n[matrix]\nrate = [1]",
            "it is less than 1ms",
            "give 1ms",
        ),
        (
            "[run]\nserver = \"192.0.2.1\"\ndelay = \"1ms\"",
            "all runs: --delay has no effect on 192.0.2.1",
            "leave out --delay",
        ),
        ("name = [", "experiment.toml, line 1", "toml.io"),
    ] {
        let file = folder.write("experiment.toml", text);
        let out = folder.path("none");
        let ended = throng(&format!("experiment run {file} --output {out}"));
        assert_eq!(ended.code, Some(2), "{text}: {}", ended.stderr);
        assert!(ended.stderr.contains(what), "{what} in {}", ended.stderr);
        assert!(ended.stderr.contains(hint), "{hint} in {}", ended.stderr);
        assert!(fs::metadata(&out).is_err(), "{text} made a folder");
    }
}

#[test]
fn keys_of_run_go_to_the_transports_that_have_them() {
    let folder = Folder::new("experiment-transports");
    let plan = |transports: &str, more: &str| {
        let text = format!(
            "order = \"listed\"\n[run]\ndriver = \"sim\"\ntls-resume = \"always\"\n\
             queries-per-connection = 5\n[matrix]\ntransport = [{transports}]\n{more}"
        );
        let file = folder.write("experiment.toml", text);
        throng(&format!("experiment plan {file}"))
    };
    // The plan ends with the command line of its first run.
    for (transports, has_connections, has_tls) in [
        (r#""udp", "tcp", "dot""#, false, false),
        (r#""tcp", "dot", "udp""#, true, false),
        (r#""dot", "udp""#, true, true),
    ] {
        let text = plan(transports, "").succeeded();
        let first = text.lines().last().unwrap();
        assert_eq!(
            first.contains("--queries-per-connection"),
            has_connections,
            "{first}"
        );
        assert_eq!(first.contains("--tls-resume"), has_tls, "{first}");
    }
    // What no transport has, and what is asked of a cell itself, is refused.
    plan(r#""udp", "tcp""#, "").refused_with("--tls-resume has no effect", "--transport dot");
    let variant = "[[variants]]\nlabel = \"a\"\ntls-version = \"1.3\"\n";
    plan(r#""udp", "dot""#, variant).refused_with("--tls-version has no effect", "--transport dot");
}

#[test]
fn label_that_is_too_long_for_the_name_of_a_record_is_refused() {
    let folder = Folder::new("experiment-long");
    let label = "long".repeat(60);
    let text = format!("[run]\ndriver = \"sim\"\n[[variants]]\nlabel = \"{label}\"\n");
    let file = folder.write("long.toml", text);
    let out = folder.path("out");
    let (error, _) = throng(&format!("experiment run {file} --output {out}")).refused();
    assert!(error.contains("too long for a file"), "{error}");
}

#[test]
fn folder_of_one_experiment_takes_no_other() {
    let folder = Folder::new("experiment-other");
    let out = folder.path("out");
    fs::create_dir(&out).unwrap();
    // What an experiment that ran there left.
    folder.write("out/experiment.toml", MATRIX);
    let file = folder.write("small.toml", MATRIX.replace("500", "600"));
    let other = throng(&format!("experiment run {file} --output {out}"));
    assert_eq!(other.code, Some(2));
    assert!(
        other.stderr.contains("the records of another experiment"),
        "{}",
        other.stderr
    );
}

#[test]
fn history_reads_a_record_again_that_has_changed() {
    let folder = Folder::new("history-changed");
    let (record, records) = (folder.path("r.json"), folder.path(""));
    for rate in [100, 2_000] {
        throng(&format!(
            "run --driver sim --quiet --duration 1s --rate {rate} --record {record}"
        ))
        .succeeded();
        let trend = throng(&format!(
            "history trend qps --records {records} --format json"
        ));
        let trend: serde_json::Value = serde_json::from_str(&trend.succeeded()).unwrap();
        let expected = serde_json::json!([f64::from(rate)]);
        assert_eq!(trend["groups"][0]["values"], expected, "{trend:#}");
    }
}

#[test]
fn history_without_records_or_with_other_files_says_so() {
    let folder = Folder::new("history-empty");
    let empty = throng(&format!("history list --records {}", folder.path("")));
    assert_eq!(empty.code, Some(2));
    assert!(
        empty.stderr.contains("no run records in"),
        "{}",
        empty.stderr
    );
    folder.write("no.json", "{}");
    let record = folder.path("one.json");
    let flags = "--driver sim --duration 50ms --rate 100 --quiet --record";
    throng(&format!("run {flags} {record}")).succeeded();
    let list = throng(&format!("history list --records {}", folder.path("")));
    assert!(
        list.stderr.contains("no.json is not a run record"),
        "{}",
        list.stderr
    );
    list.succeeded();
    // An index that is damaged is made again.
    let shown = || throng(&format!("history list --records {}", folder.path(""))).succeeded();
    let before = shown();
    let index = fs::read(folder.path("index.sqlite")).unwrap();
    // The schema is at the end of the first page.
    for position in (3_000..4_096).step_by(37) {
        let mut damaged = index.clone();
        damaged[position] ^= 0x20;
        folder.write("index.sqlite", damaged);
        assert_eq!(shown(), before, "byte {position}");
    }
    folder.write("index.sqlite", "not SQLite at all, whatever its name says");
    assert_eq!(shown(), before);
    let none = throng(&format!(
        "history trend p99 --by version --records {}",
        folder.path("")
    ));
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("transport"), "{}", none.stderr);
}

/// The experiments that ship with the repository are understood.
#[test]
fn shipped_experiments_have_a_plan() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    for name in ["transport-cost", "outstanding"] {
        let file = root.join(name).join("experiment.toml");
        let plan = throng(&format!("experiment plan {}", file.display())).succeeded();
        assert!(plan.contains("5 repetitions"), "{plan}");
    }
}

#[test]
fn the_former_key_of_repetitions_works_but_not_beside_its_successor() {
    let folder = Folder::new("experiment-former");
    let plan = |text: &str| {
        let file = folder.write("plan.toml", text);
        throng(&format!("experiment plan {file}"))
    };
    let former = MATRIX.replace("repeat", "repetitions");
    assert_ne!(former, MATRIX);
    assert_eq!(plan(&former).succeeded(), plan(MATRIX).succeeded());
    let both = plan(&format!("repetitions = 2\n{MATRIX}"));
    let (error, _) = both.refused();
    let what = "`repetitions` is the former name of `repeat`";
    assert!(error.contains(what), "{error}");
}
