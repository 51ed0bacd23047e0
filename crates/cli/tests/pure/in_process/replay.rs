//! `throng replay`: captures and logs asked again, each client by itself.

use std::fs;

use measure::RunRecord;
use measure::record::EndedBy;
use measure::scenario::{ClientsBy, QuestionOrder};
use testing::folder::Folder;

use crate::call::{recorded, throng};
use crate::query_logs::log;

/// Replays the log; the record.
fn replayed(folder: &Folder, flags: &str) -> RunRecord {
    let file = folder.write("query.log", log());
    recorded(&format!(
        "replay {file} --driver sim --quiet --format json {flags}"
    ))
}

#[test]
fn every_query_of_a_log_is_asked_by_its_client_and_nothing_of_the_log_is_kept() {
    let folder = Folder::new("replay");
    let file = folder.write("query.log", log());
    let record = folder.path("r.json");
    let finished = throng(&format!(
        "replay {file} --driver sim --record {record} --details"
    ));
    for line in [
        "query.log: bind, 600 queries\n",
        "skipped: 1 lines other than queries\n",
        "replaying: 600 queries of 10 clients within 12.0 s\n",
    ] {
        assert!(
            finished.stderr.contains(line),
            "{line}: {}",
            finished.stderr
        );
    }
    let text = finished.succeeded();
    for words in [
        "replay of 600 queries within 12.0 s, at the speed of the capture; 10 clients, 1 worker",
        "lines other than queries",
        "clients, each an address of the capture",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json = fs::read_to_string(&record).unwrap();
    assert!(
        !json.contains("secret") && !json.contains("198.51"),
        "{json}"
    );
    let record = RunRecord::from_json(&json).unwrap();
    let counts = &record.total.counts;
    assert_eq!((counts.offered, counts.responses), (600, 600));
    assert_eq!(record.scenario.clients, 10);
    assert_eq!(record.ended_by, EndedBy::Queries);
    assert_eq!(
        record.scenario.questions.choice.order,
        QuestionOrder::Capture
    );
    let replay = record.scenario.replay.as_ref().unwrap();
    assert_eq!(
        (replay.queries, replay.filtered, replay.rounds),
        (600, 0, 1)
    );
    assert_eq!(replay.clients_by, ClientsBy::Address);
    assert_eq!(replay.span_ns, 11_980_000_000);
    assert_eq!(replay.skipped["lines other than queries"], 1);
    assert_eq!(replay.captures[0].format, "bind");
    // In virtual time none is late, and each interval has what the log has.
    let lateness = &record.total.distributions.send_lateness;
    assert_eq!(lateness.max_ns(), Some(0));
    assert_eq!(record.intervals[3].counts.offered, 50);
    let again = || throng(&format!("replay {file} --driver sim --quiet --format json")).succeeded();
    assert_eq!(again(), again(), "the same to the byte");
}

#[test]
fn filters_speed_and_loops_do_what_they_say() {
    let folder = Folder::new("replay-filters");
    for (flags, queries, clients, filtered) in [
        ("--only-qtypes AAAA", 200, 4, 400),
        ("--only-clients 198.51.100.1,2001:db8::/32", 300, 1, 300),
        (
            "--only-names secret0.example.com,secret1.EXAMPLE.com",
            240,
            10,
            360,
        ),
        ("--only-names example.com", 600, 10, 0),
        ("--only-transports tcp", 100, 1, 500),
        ("--from 1s --until 3s", 100, 10, 500),
        ("--queries 60", 60, 10, 0),
        ("--loops 3", 1_800, 10, 0),
        ("--duration 6s", 300, 10, 0),
        ("--client port --speed 10", 600, 10, 0),
    ] {
        let record = replayed(&folder, flags);
        let counts = &record.total.counts;
        assert_eq!(
            (counts.offered, counts.responses),
            (queries, queries),
            "{flags}"
        );
        assert_eq!(record.scenario.clients, clients, "{flags}");
        let replay = record.scenario.replay.as_ref().unwrap();
        assert_eq!(replay.filtered, filtered, "{flags}");
        let name = flags.trim_start_matches("--").split(' ').next().unwrap();
        let is_filter = filtered > 0 || name == "queries";
        let is_told = replay.filters.iter().any(|filter| filter.starts_with(name));
        assert_eq!(
            is_told,
            is_filter || name == "only-names",
            "{flags}: {:?}",
            replay.filters
        );
    }
    let fast = replayed(&folder, "--speed 10");
    assert_eq!(fast.scenario.replay.unwrap().span_ns, 1_198_000_000);
    assert!((1_190..1_210).contains(&(fast.measured_ns / 1_000_000)));
    let cut = replayed(&folder, "--queries 60");
    assert_eq!(cut.scenario.replay.unwrap().beyond_limit, 540);
}

#[test]
fn any_transport_carries_a_replay_and_clients_close_idle_connections() {
    let folder = Folder::new("replay-transports");
    for transport in ["tcp", "dot", "doh2", "doh3", "doq"] {
        let flags = format!("--transport {transport} --connection-idle-timeout 100ms");
        let record = replayed(&folder, &flags);
        let counts = &record.total.counts;
        assert_eq!(
            (counts.offered, counts.responses),
            (600, 600),
            "{transport}"
        );
        assert_eq!(record.scenario.transport.to_string(), transport);
        // Nine clients ask every 360 ms; the first one is never idle for long.
        let idle = counts.connections.closed_by_client_for.idle;
        assert!(idle > 200, "{transport}: {idle}");
    }
}

/// Flags that are refused, words of the error, words of its hint.
const REFUSED: [(&str, &str, &str); 14] = [
    (
        "--rate 100",
        "--rate has no effect on a replay",
        "fit a profile",
    ),
    (
        "--names x",
        "--names has no effect on a replay",
        "leave out --names",
    ),
    (
        "--clients 5",
        "--clients has no effect on a replay",
        "leave out",
    ),
    (
        "--warmup 1s",
        "--warmup has no effect on a replay",
        "leave out",
    ),
    (
        "--profile x",
        "--profile has no effect on a replay",
        "leave out",
    ),
    ("--speed 0", "--speed: 0 is not a speed", "factor"),
    (
        "--only-qtypes TXT",
        "none of 600 queries passes the filters",
        "filters",
    ),
    ("--only-qtypes NONE", "unknown type `NONE`", ""),
    ("--only-clients x", "neither an address nor a prefix", ""),
    ("--only-names a..b", "--only-names a..b", "domain names"),
    ("--loops 0", "must not be zero", "1 or more"),
    (
        "--queries-per-connection 0 --transport tcp",
        "replay: ",
        "leave out",
    ),
    (
        "--server 192.0.3.1",
        "192.0.3.1 is a public address",
        "--allow-public",
    ),
    (
        "--edns-padding 128",
        "EDNS padding over udp",
        "--transport dot",
    ),
];

#[test]
fn replays_that_cannot_be_are_refused_with_their_cure() {
    let folder = Folder::new("replay-refused");
    let file = folder.write("query.log", log());
    let still = folder.write(
        "still.log",
        log().lines().take(2).collect::<Vec<_>>().join("\n"),
    );
    for (flags, error, hint) in REFUSED {
        let finished = throng(&format!("replay {file} {flags}"));
        let stderr = finished.stderr.clone();
        finished.ended_with(2);
        assert!(stderr.contains(error), "{flags}: {stderr}");
        assert!(stderr.contains(hint), "{flags}: {stderr}");
    }
    let finished = throng(&format!("replay {still} --loops 2"));
    assert!(
        finished.stderr.contains("no time passes"),
        "{}",
        finished.stderr
    );
    finished.ended_with(2);
    let finished = throng(&format!("replay {}", folder.path("missing")));
    assert!(
        finished.stderr.contains("cannot read"),
        "{}",
        finished.stderr
    );
    finished.ended_with(2);
    let help = throng("replay --help").succeeded();
    assert!(
        help.contains("--only-qtypes") && help.contains("--transport"),
        "{help}"
    );
    assert!(
        !help.contains("--rate <") && !help.contains("--per-client"),
        "{help}"
    );
}
