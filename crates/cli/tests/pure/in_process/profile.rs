//! `throng run --profile`: clients drawn from a fitted profile.

use std::fs;

use measure::RunRecord;
use measure::scenario::{QuestionOrder, Transports};
use sha2::{Digest, Sha256};
use testing::folder::Folder;

use crate::call::{recorded, simulated, throng};
use crate::query_logs::log;

/// A profile fitted to the log.
fn profile(folder: &Folder, flags: &str) -> String {
    let log = folder.write("query.log", log());
    let profile = folder.path("office.toml");
    throng(&format!("fit {log} -o {profile} {flags}")).succeeded();
    profile
}

#[test]
fn clients_are_as_many_as_were_seen_and_ask_as_often() {
    let folder = Folder::new("profile");
    let profile = profile(&folder, "");
    let flags = format!("--profile {profile} --duration 120s");
    let record = simulated(&flags);
    assert_eq!(record.scenario.clients, 10);
    let offered = record.total.counts.offered;
    // The rate of the log is 50 queries a second.
    assert!((5_700..6_300).contains(&offered), "{offered}");
    assert_eq!(record.total.counts.responses, offered);
    let used = record.scenario.profile.as_ref().unwrap();
    let digest = Sha256::digest(fs::read(&profile).unwrap());
    assert_eq!(used.sha256, data_encoding::HEXLOWER.encode(&digest));
    assert_eq!(
        (used.clients_seen, used.queries_seen, used.names_seen),
        (10, 600, 5)
    );
    assert!(used.file.ends_with("office.toml"));
    let choice = &record.scenario.questions.choice;
    assert_eq!(choice.order, QuestionOrder::Profile);
    let shares = choice.qtypes.iter().map(|it| (it.qtype.as_str(), it.share));
    assert!(shares.eq([("A", 2.0 / 3.0), ("AAAA", 1.0 / 3.0)]));
    let json = |flags: &str| {
        throng(&format!("run --driver sim --quiet --format json {flags}")).succeeded()
    };
    assert_eq!(json(&flags), json(&flags), "the same to the byte");

    let text = throng(&format!(
        "run --driver sim --quiet {flags} --rate-factor 2 --clients 100 --details"
    ))
    .succeeded();
    assert!(
        text.contains("rates times 2") && text.contains("100 clients"),
        "{text}"
    );
    assert!(text.contains("names made below throng.test"), "{text}");
    let large = simulated(&format!("{flags} --rate-factor 2 --clients 100"));
    let ratio = large.total.counts.offered as f64 / 120_000.0;
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
    let ramp = simulated(&format!("{flags} --shape linear:0s=0,120s=1"));
    let ratio = ramp.total.counts.offered as f64 / offered as f64;
    assert!((0.45..0.55).contains(&ratio), "{ratio}");
}

#[test]
fn names_come_from_the_profile_a_list_or_a_zone() {
    let folder = Folder::new("profile-names");
    let bare = profile(&folder, "");
    let names = folder.write("names.txt", "a.example A\nb.example MX\n");
    let run = |flags: &str| simulated(&format!("--duration 5s --profile {flags}"));
    let source = |record: &RunRecord| record.scenario.questions.source.clone();
    let listed = run(&format!("{bare} --names {names}"));
    assert!(
        source(&listed).ends_with("names.txt"),
        "{}",
        source(&listed)
    );
    let both = run(&format!(
        "{bare} --names {names} --profile-zone more.example"
    ));
    assert!(source(&both).ends_with("names made below more.example"));
    let kept = profile(&folder, "--keep-names");
    assert_eq!(source(&run(&kept)), "names of the profile");
    let finished = throng(&format!("run --profile {kept} --names {names}"));
    let stderr = finished.stderr.clone();
    finished.ended_with(2);
    assert!(
        stderr.contains("the profile has names of its own"),
        "{stderr}"
    );
}

#[test]
fn flags_that_contradict_a_profile_are_refused() {
    let folder = Folder::new("profile-refused");
    let file = profile(&folder, "");
    let broken = folder.write(
        "broken.toml",
        fs::read_to_string(&file)
            .unwrap()
            .replace("version = 1", "version = 7"),
    );
    for (flags, error) in [
        (
            format!("--profile {file} --rate 100"),
            "no effect on clients that are drawn",
        ),
        (
            format!("--profile {file} --outstanding 9"),
            "no effect on clients that are drawn",
        ),
        (
            format!("--profile {file} --per-client full"),
            "no effect on clients that are drawn",
        ),
        (
            format!("--profile {file} --qtypes A=1"),
            "no effect on clients that are drawn",
        ),
        (
            format!("--profile {file} --random-labels x"),
            "no effect on clients that are drawn",
        ),
        (
            format!("--profile {file} --rate-factor 0"),
            "rate-factor: 0 is not a factor",
        ),
        (
            format!("--profile {file} --profile-mix -t tcp"),
            "cannot be used with",
        ),
        (format!("--profile {file} --profile-zone a..b"), "a..b"),
        (
            format!("--profile {file} --server 127.0.0.1"),
            "the profile has no names to query",
        ),
        ("--rate-factor 2".into(), "--profile"),
        (format!("--profile {broken}"), "version 7 is not 1"),
        (
            format!("--profile {}", folder.path("missing")),
            "cannot read",
        ),
        (
            "--shape linear:0s=0,60s=1".into(),
            "no client has a rate to shape",
        ),
    ] {
        let finished = throng(&format!("run {flags}"));
        let stderr = finished.stderr.clone();
        finished.ended_with(2);
        assert!(stderr.contains(error), "{flags}: {stderr}");
        assert!(stderr.contains("hint: "), "{flags}: {stderr}");
    }
}

#[test]
fn clients_are_spread_over_transports_as_the_profile_says_or_as_groups_do() {
    let folder = Folder::new("profile-mix");
    let file = profile(&folder, "");
    let flags = "--duration 10s --clients 60";
    let mixed = simulated(&format!(
        "--profile {file} --profile-mix --tls-insecure {flags}"
    ));
    assert_eq!(mixed.scenario.transport, Transports::Mixed);
    let groups = mixed
        .groups
        .iter()
        .map(|group| (group.name.as_str(), group.clients));
    assert!(
        groups.eq([("tcp", 10), ("udp", 50)]),
        "{:?}",
        mixed.groups.len()
    );
    assert_eq!(mixed.scenario.profile.as_ref().unwrap().queries_seen, 600);

    let scenario = folder.write(
        "scenario.toml",
        "driver = 'sim'\nduration = '20s'\nprofile = 'office.toml'\nrate-factor = 2.0\n\
         [[clients]]\nname = 'over UDP'\nweight = 1\n\
         [[clients]]\nname = 'moved'\nweight = 1\ntransport = 'dot'\n\
         connection-idle-timeout = '100ms'\n\
         [[clients]]\nname = 'others'\ncount = 5\nper-client = 'constant:1'\n",
    );
    let record = recorded(&format!("run {scenario} --quiet --format json"));
    let groups = record
        .groups
        .iter()
        .map(|group| (group.name.as_str(), group.clients));
    assert!(groups.eq([("over UDP", 5), ("moved", 5), ("others", 5)]));
    assert!(record.groups[0].scenario.profile.is_some());
    assert!(record.groups[2].scenario.profile.is_none());
    assert_eq!(record.groups[2].total.counts.offered, 100);
    assert!(
        record.groups[1]
            .total
            .counts
            .connections
            .closed_by_client_for
            .idle
            > 0
    );
    assert_eq!(record.total.counts.lost(), 0);
}
