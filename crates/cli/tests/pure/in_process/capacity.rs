//! `throng capacity`: searches against targets whose capacity is known, what they print, and what
//! is refused.

use std::fs;

use measure::capacity::{Capacity, EndedBy, TrialOutcome};
use measure::{Limit, RunRecord};
use testing::folder::Folder;

use crate::call::throng;

const SIMULATED: &str = "capacity --quiet --driver sim --format json";

/// The answer of a search that ends with this exit code.
fn answer_with(code: i32, flags: &str) -> Capacity {
    let stdout = throng(&format!("{SIMULATED} {flags}")).ended_with(code);
    serde_json::from_str(&stdout).unwrap_or_else(|reason| panic!("{flags}: {reason}"))
}

fn answer(flags: &str) -> Capacity {
    answer_with(0, flags)
}

/// The value found, which is within 3 % of `expected` and took no longer than the README says.
#[track_caller]
fn check(flags: &str, expected: f64) -> Capacity {
    let capacity = answer(flags);
    let found = capacity.answer.value.unwrap();
    assert!((found / expected - 1.0).abs() < 0.03, "{flags}: {found}");
    assert!(capacity.elapsed_ns < 85_000_000_000, "{flags}");
    assert_eq!(capacity.ended_by, EndedBy::Found, "{flags}");
    assert_eq!(capacity.answer.limit, Limit::Server, "{flags}");
    let (low, high) = (capacity.answer.low, capacity.answer.high);
    // A trial of some seconds lets pass what its queue, burst or latency has room for.
    assert!(low.unwrap() <= expected * 1.01, "{flags}: {low:?}");
    assert!(high.unwrap() >= expected * 0.999, "{flags}: {high:?}");
    capacity
}

#[test]
fn programmed_ceilings_are_found_over_udp_whether_they_delay_or_drop() {
    for ceiling in [1_100, 1_700, 2_300] {
        for then in ["delay", "drop", "delay,queue=200"] {
            let capacity = check(&format!("--ceiling {ceiling},then={then}"), ceiling.into());
            assert_eq!(capacity.rounds.len(), 3);
            assert_eq!(capacity.answer.confidence, Some(0.95));
            let shares: Vec<f64> = capacity.latency.iter().map(|row| row.share).collect();
            assert_eq!(shares, [0.5, 0.7, 0.9]);
        }
    }
}

#[test]
fn programmed_ceilings_are_found_over_tcp_and_dot() {
    for (transport, ceiling) in [("tcp", "1100"), ("tcp", "2300,then=drop")] {
        let expected = ceiling.split(',').next().unwrap().parse().unwrap();
        check(
            &format!("--transport {transport} --ceiling {ceiling}"),
            expected,
        );
    }
    // Real cryptography takes its time without optimisation.
    let fewer = "--transport dot --repeat 1 --trial-duration 1s";
    check(&format!("{fewer} --ceiling 1000"), 1_000.0);
}

#[test]
fn modelled_server_has_the_capacity_that_its_workers_give_it() {
    // Two workers of 500 us serve at most 4,000 a second. With exponential times and Poisson
    // arrivals p99 is 10 ms at 3,522 (Erlang C).
    let capacity = answer(
        "--arrival poisson --sim-delay 100us --sim-workers 2 --sim-service-time exponential:500us",
    );
    let found = capacity.answer.value.unwrap();
    assert!((3_350.0..3_700.0).contains(&found), "{found}");
    let (low, high) = (capacity.answer.low, capacity.answer.high);
    assert!(low.unwrap() < 3_522.0, "{low:?}");
    assert!(high.unwrap() > 3_522.0, "{high:?}");
    assert_eq!(capacity.answer.limit, Limit::Server);
}

#[test]
fn same_search_of_the_same_model_has_the_same_answer_to_the_octet() {
    let flags = format!("{SIMULATED} --ceiling 2000 --sim-loss 0.0002 --arrival poisson");
    assert_eq!(throng(&flags).succeeded(), throng(&flags).succeeded());
}

#[test]
fn most_clients_at_a_rate_of_their_own_are_found() {
    let flags = "--search clients --rate-per-client 10 --transport tcp --ceiling 5000";
    let capacity = check(flags, 500.0);
    assert_eq!(capacity.search.rate_per_client_qps, Some(10.0));
    let whole = capacity
        .trials
        .iter()
        .all(|trial| trial.value.fract() == 0.0);
    assert!(whole, "{:?}", capacity.trials);
    let text = throng(&format!(
        "capacity --quiet --driver sim {flags} --max 40 --repeat 1"
    ));
    let text = text.succeeded();
    assert!(text.contains("at least 40 clients\n"), "{text}");
    assert!(text.contains("  advice: raise --max\n"), "{text}");
}

#[test]
fn load_that_never_meets_the_objective_has_no_capacity_and_a_reason() {
    let capacity = answer_with(1, "--sim-delay 30ms --start 100");
    assert_eq!(capacity.ended_by, EndedBy::NothingPassed);
    assert_eq!(capacity.answer.value, None);
    assert!(capacity.latency.is_empty());
    let evidence = &capacity.answer.evidence;
    assert_eq!(evidence[0], "at 1.0 qps: p99 60.00 ms, above 10.00 ms");
    // Errors are fast and no use.
    let refused = answer_with(1, "--rcodes REFUSED=1 --start 20");
    let first = &refused.trials[0];
    assert_eq!(first.outcome, TrialOutcome::Failed);
    assert_eq!(
        first.breaches,
        ["goodput 0 % of the responses, less than 99.9 %"]
    );
    // Whether load is the cause, is open where none is answered.
    let silent = answer_with(1, "--sim-loss 1 --start 20").answer;
    assert_eq!((silent.value, silent.limit), (None, Limit::Unknown));
    assert!(silent.evidence[1].contains("no response to"), "{silent:?}");
    let wanted = answer("--rcodes REFUSED=1 --goodput REFUSED --ceiling 3000");
    assert!(wanted.answer.value.unwrap() > 2_900.0);
    // A longer time is allowed.
    check("--sim-delay 30ms --max-p99 70ms --ceiling 3000", 3_000.0);
    // So is a loss that chance makes.
    check("--sim-loss 0.005 --max-loss 2% --ceiling 3000", 3_000.0);
}

#[test]
fn search_ends_in_time_with_the_answer_that_it_has_by_then() {
    let capacity = answer("--ceiling 37000 --max-duration 15s");
    assert_eq!(capacity.ended_by, EndedBy::Time);
    assert!(capacity.elapsed_ns <= 15_000_000_000);
    let found = capacity.answer.value.unwrap();
    assert!(found >= 4_000.0, "{found}");
    assert_eq!(capacity.latency.len(), 3, "time for them is kept");
}

#[test]
fn trials_are_kept_as_records_beside_the_answer() {
    let folder = Folder::new("capacity-records");
    let records = folder.path("records");
    let capacity = answer(&format!(
        "--ceiling 4000 --repeat 1 --trial-duration 1s --records {records}"
    ));
    for trial in &capacity.trials {
        let file = trial.record.as_deref().unwrap();
        let record = RunRecord::from_json(&fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(record.offered_qps(), trial.offered_qps);
        assert_eq!(record.verdict.limit, trial.limit);
        assert!((record.offered_qps() / trial.value - 1.0).abs() < 0.001);
    }
    let kept = fs::read_to_string(format!("{records}/capacity.json")).unwrap();
    assert_eq!(serde_json::from_str::<Capacity>(&kept).unwrap(), capacity);
    let report = |form: &str| {
        let line = format!("report {records}/capacity.json --format {form}");
        throng(&line).succeeded()
    };
    assert_eq!(report("json"), kept);
    assert!(report("text").contains("\n  limited by     the server\n"));
    assert!(report("csv").starts_with("trial,purpose,value,outcome"));
    let page = report("html");
    for words in [
        "<title>Capacity of 192.0.2.53:53 over UDP</title>",
        "objective: p99 at most 10.00 ms",
        "objective: at most 0.1 % lost",
        "Latency against load",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let markdown = report("markdown");
    assert!(markdown.contains("> **Limit: server.**"), "{markdown}");
}

#[test]
fn text_begins_with_the_answer_and_shows_every_trial() {
    let flags = "capacity --driver sim --ceiling 4000";
    let finished = throng(flags);
    let progress = finished.stderr.clone();
    let text = finished.succeeded();
    let third = text.lines().nth(2).unwrap();
    assert_eq!(third, "Capacity", "{text}");
    for words in [
        "\nSearch\n  load             open loop; ",
        "SIMULATION in virtual time, capacity of 192.0.2.53:53 over udp\n",
        "\nCapacity\n  sustained      ",
        "\n  limit between  ",
        "(95.0 % confidence, 3 rounds)\n",
        "\n  limited by     the server\n  - at 4,0",
        "\nLatency below the limit\n  of it       load",
        "\n   50 %  ",
        "\nTrials\n   1",
        "note: SIMULATION: no server was measured",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    for words in [
        "searching for the highest load with at most 0.1 % lost, p99 at most 10.00 ms",
        "some 21 trials of 2.0 s and one of 10.0 s, about 57.2 s, at most 120.0 s",
    ] {
        assert!(progress.contains(words), "{words}: {progress}");
    }
    // They are in the result.
    assert!(!progress.contains("trial  1"), "{progress}");
    let trial = "trial  1        1,000 qps  passed     p99 2.000 ms    lost 0 %\n";
    let progress = throng(&format!("{flags} --format json")).stderr;
    assert!(progress.contains(trial), "{progress}");
    let csv = throng(&format!("{flags} --quiet --format csv")).succeeded();
    let rows: Vec<&str> = csv.split("\r\n").filter(|row| !row.is_empty()).collect();
    assert!(rows[0].starts_with("trial,purpose,value,outcome,offered_qps"));
    let columns = rows[0].split(',').count();
    assert!(rows.iter().all(|row| row.split(',').count() == columns));
    assert!(
        rows[1].starts_with("1,search,1000.000,passed,1000.000,"),
        "{csv}"
    );
}

#[test]
fn search_that_makes_no_sense_is_refused_before_anything_is_sent() {
    for (flags, what, cure) in [
        ("--rate 5k", "--rate cannot be used", "--start"),
        (
            "--duration 5s",
            "--duration cannot be used",
            "--trial-duration",
        ),
        ("--record a.json", "--record cannot be used", "--records"),
        ("--search clients", "how often", "--rate-per-client 2"),
        ("--rate-per-client 2", "has no effect", "--search clients"),
        (
            "--search clients --rate-per-client 2 --clients 4",
            "--clients cannot be used",
            "--start",
        ),
        ("--start 5k --max 1k", "above --max", "lower --start"),
        ("--start many", "not a number", "20k"),
        ("--trial-duration 100ms", "too short", "1s"),
        ("--max-duration 1s", "a single trial", "longer"),
        ("--precision 0.01%", "not from 0.1% to 50%", "1%"),
        ("--max-loss 200%", "not a share", "give a share"),
        (
            "--ceiling 5k,then=explode",
            "not part of a ceiling",
            "then=drop",
        ),
        (
            "--ceiling 5k,burst=1ms",
            "burst= has no effect",
            "then=drop",
        ),
        (
            "--ceiling 5k,then=drop,queue=1",
            "queue= has no",
            "then=delay",
        ),
    ] {
        throng(&format!("capacity --quiet {flags}")).refused_with(what, cure);
    }
}

#[test]
fn rate_limit_with_a_burst_does_not_pass_for_capacity() {
    let ceiling = "--ceiling 3000,then=drop,burst=1s";
    let capacity = answer(ceiling);
    let value = capacity.answer.value.unwrap();
    assert!((2_850.0..=3_010.0).contains(&value), "{value}");
    assert_eq!(capacity.ended_by, EndedBy::Found);
    assert_eq!(capacity.answer.limit, Limit::Policy);
    let long = capacity.answer.confirmation.unwrap();
    assert!((long.found / 4_500.0 - 1.0).abs() < 0.02, "{long:?}");
    let rate_limit = long.rate_limit.unwrap();
    assert!((rate_limit / 3_000.0 - 1.0).abs() < 0.005, "{long:?}");
    let text = throng(&format!("capacity --quiet --driver sim {ceiling}")).succeeded();
    for words in [
        "limited by     a limit on the rate (token bucket), not what a server can do\n",
        " is sustained: a limit on the rate (token bucket) rather than capacity\n",
        "after a burst of ",
        "  advice: observe the server, or look for rate limits in its configuration\n",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn limit_that_no_time_is_left_to_try_for_longer_is_not_confirmed() {
    let capacity = answer("--ceiling 3000,then=drop,burst=1s --max-duration 50s");
    let answer = &capacity.answer;
    let unconfirmed = |line: &String| line.starts_with("not confirmed by a trial of 10.0 s");
    assert!(answer.evidence.iter().any(unconfirmed), "{answer:#?}");
    assert_eq!(answer.confirmation, None);
}
