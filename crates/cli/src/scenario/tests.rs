use std::path::Path;

use settings::Arrival;

use super::file::{ScenarioFile, Trust, parse};
use super::groups::compile;
use super::sweep::{self, Point};
use crate::args::Given;
use crate::failure::Failure;
use crate::run::group::Group;

fn file(text: &str) -> Result<ScenarioFile, Failure> {
    parse(Path::new("s.toml"), text, Trust::Load)
}

fn groups(text: &str) -> Vec<Group> {
    compile(&file(text).unwrap(), &Point::default(), &[]).unwrap()
}

fn refused(text: &str) -> String {
    let groups = file(text).and_then(|file| compile(&file, &Point::default(), &[]));
    groups.unwrap_err().what().to_owned()
}

/// Name, clients, transport, join and leave of each part.
fn parts(groups: &[Group]) -> Vec<String> {
    let part = |group: &Group| {
        let (run, presence) = (&group.run, &group.run.presence);
        let seconds = |time: Option<std::time::Duration>| match time {
            Some(time) => time.as_secs().to_string(),
            None => "-".to_owned(),
        };
        let joins_after = Some(presence.joins_after).filter(|it| !it.is_zero());
        format!(
            "{} {} {} {}..{}",
            group.name,
            run.clients.unwrap_or(0),
            run.transport,
            seconds(joins_after),
            seconds(presence.leaves_after)
        )
    };
    groups.iter().map(part).collect()
}

#[test]
fn every_flag_of_a_run_has_its_key() {
    let keys = super::keys::Keys::new();
    let names: Vec<&str> = keys.flags().filter_map(|flag| flag.get_long()).collect();
    assert!(names.len() > 70, "{names:?}");
    let schema = super::schema::schema();
    for name in names {
        if name != "clients" {
            assert!(schema["properties"][name].is_object(), "{name}");
        }
    }
}

/// Keys that start programs, write files, open ports or consent.
const OF_USER: [&str; 12] = [
    "allow-public",
    "force",
    "grafana",
    "hosts",
    "junit",
    "keys",
    "listen",
    "metrics",
    "observe",
    "record",
    "ssh",
    "web",
];

#[test]
fn scenario_does_not_decide_what_is_the_users() {
    let keys = super::keys::Keys::new();
    let reserved = |name: &str| {
        let flag = keys.flag(name).unwrap();
        super::keys::reserved_for_user(flag).is_some()
    };
    let all = keys.flags().filter_map(|flag| flag.get_long());
    let mut found: Vec<&str> = all.filter(|name| reserved(name)).collect();
    found.sort_unstable();
    let mut expected: Vec<&str> = OF_USER.into_iter().chain(["tls-keylog"]).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
    for name in expected {
        let value = match super::keys::is_switch(keys.flag(name).unwrap()) {
            true => "true",
            false => "'x'",
        };
        for table in ["", "[[clients]]\n", "[[events]]\nat = '1s'\n", "[sweep]\n"] {
            let text = format!("{table}{name} = {value}\n");
            let told = file(&text).unwrap_err();
            let what = format!("`{name}`");
            assert!(told.what().contains(&what), "{text}: {}", told.what());
            assert!(
                told.what().contains("a scenario may not decide"),
                "{}",
                told.what()
            );
        }
        let text = format!("{name} = {value}\n");
        parse(Path::new("s.toml"), &text, Trust::Everything).unwrap();
    }
    for trust in [Trust::Load, Trust::Everything] {
        let told = parse(Path::new("s.toml"), "trust = 's.toml'\n", trust).unwrap_err();
        assert!(
            told.what().contains("`trust` is not a key"),
            "{}",
            told.what()
        );
    }
}

#[test]
fn group_has_the_flags_of_the_top_and_its_own() {
    let groups = groups(
        "timeout = '2s'\ntransport = 'tcp'\npopulation = 10\n\
         [[clients]]\nname = 'a'\nweight = 3\n\
         [[clients]]\nname = 'b'\nweight = 7\ntransport = 'dot'\ntimeout = '1s'\n",
    );
    assert_eq!(parts(&groups), ["a 3 tcp -..-", "b 7 dot -..-"]);
    let timeouts: Vec<u64> = (groups.iter())
        .map(|group| group.run.limits.timeout.as_secs())
        .collect();
    assert_eq!(timeouts, [2, 1]);
    assert_ne!(groups[0].run.generator.seed, groups[1].run.generator.seed);
}

#[test]
fn flags_of_the_top_that_mean_nothing_to_a_transport_stay_out_of_its_groups() {
    let groups = groups(
        "tls-insecure = true\nserver = '127.0.0.1'\nper-client = 'poisson:1'\n\
         [[clients]]\nname = 'a'\n\
         [[clients]]\nname = 'b'\ntransport = 'dot'\nrate = 5\n",
    );
    assert_eq!(groups[0].run.tls, None);
    assert!(groups[1].run.tls.as_ref().unwrap().accepts_any);
    assert!(matches!(groups[0].run.arrival, Arrival::Clients(_)));
    assert!(matches!(groups[1].run.arrival, Arrival::Open { .. }));
}

#[test]
fn command_line_goes_before_the_file() {
    let file =
        file("duration = '9s'\ntransport = 'tcp'\npopulation = 4\n[[clients]]\nweight = 1\n");
    let given = |name: &str, value: &str| Given {
        name: name.to_owned(),
        values: vec![value.to_owned()],
    };
    let line = [
        given("duration", "3s"),
        given("clients", "40"),
        given("transport", "udp"),
    ];
    let groups = compile(&file.unwrap(), &Point::default(), &line).unwrap();
    assert_eq!(parts(&groups), ["group 1 40 udp -..-"]);
    assert_eq!(
        groups[0].run.limits.duration.map(|it| it.as_secs()),
        Some(3)
    );
}

#[test]
fn event_splits_a_group_into_those_that_stay_leave_and_begin() {
    let text = "population = 100\n[[clients]]\nname = 'all'\nweight = 1\nconnect-rate = 9\n\
         transport = 'tcp'\n\
         [[events]]\nat = '90s'\nshare = 0.1\nreset = true\n\
         [[events]]\nat = '60s'\nclients = 'all'\nshare = 0.25\ntransport = 'udp'\n";
    let groups = groups(text);
    assert_eq!(
        parts(&groups),
        [
            "all 75 tcp -..-",
            "all 25 tcp -..60",
            "all from 60s 25 udp 60..-"
        ]
    );
    // What UDP has no meaning for is left behind; those that left are reset no more.
    let resets: Vec<usize> = (groups.iter())
        .map(|group| group.run.presence.resets.len())
        .collect();
    assert_eq!(resets, [1, 0, 1]);
    assert_eq!(groups[2].run.connections.rate_max, None);
}

#[test]
fn targets_get_clients_by_their_weights() {
    let groups = groups(
        "[[clients]]\nname = 'a'\ncount = 9\n\
         [[targets]]\nserver = '127.0.0.1'\nweight = 2\n[[targets]]\nserver = '127.0.0.2'\n",
    );
    let servers: Vec<(u32, &str)> = (groups.iter())
        .map(|group| {
            let server = group.run.servers.first().map_or("", String::as_str);
            (group.run.clients.unwrap_or(0), server)
        })
        .collect();
    assert_eq!(servers, [(6, "127.0.0.1"), (3, "127.0.0.2")]);
}

/// Load of each part: its name, server, rate, places and queries.
fn loads(groups: &[Group]) -> Vec<String> {
    let load = |group: &Group| {
        let run = &group.run;
        let number = |number: Option<u64>| number.map_or("-".to_owned(), |it| it.to_string());
        let (rate, outstanding) = match run.arrival {
            Arrival::Open { rate_qps, .. } => (rate_qps.to_string(), None),
            Arrival::Closed { outstanding, .. } => ("-".to_owned(), Some(outstanding.into())),
            _ => ("-".to_owned(), None),
        };
        format!(
            "{} {} {} {} {}",
            group.name,
            run.servers.first().map_or("-", String::as_str),
            rate,
            number(outstanding),
            number(run.limits.queries),
        )
    };
    groups.iter().map(load).collect()
}

const TARGETS: &str = "[[targets]]\nserver = '127.0.0.1'\nweight = 3\n\
     [[targets]]\nserver = '127.0.0.2'\n";

#[test]
fn load_that_is_stated_once_is_divided_among_targets() {
    let rate = groups(&format!("rate = '2k'\n{TARGETS}"));
    let expected = ["clients 127.0.0.1 1500 - -", "clients 127.0.0.2 500 - -"];
    assert_eq!(loads(&rate), expected);
    let places = groups(&format!("outstanding = 102\nqueries = 9\n{TARGETS}"));
    let expected = ["clients 127.0.0.1 - 77 7", "clients 127.0.0.2 - 25 2"];
    assert_eq!(loads(&places), expected);
    // What a run has without any flag is stated once too.
    let neither = groups(TARGETS);
    let expected = ["clients 127.0.0.1 - 75 -", "clients 127.0.0.2 - 25 -"];
    assert_eq!(loads(&neither), expected);
}

#[test]
fn load_of_the_top_is_divided_among_the_groups_that_state_none() {
    let text = "population = 10\nrate = 1000\narrival = 'poisson'\n\
         [[clients]]\nname = 'a'\nweight = 1\n[[clients]]\nname = 'b'\nweight = 3\n\
         [[clients]]\nname = 'c'\nweight = 1\nrate = 7\n\
         [[clients]]\nname = 'd'\nweight = 5\nper-client = 'poisson:1'\n";
    let divided = ["a - 250 - -", "b - 750 - -", "c - 7 - -", "d - - - -"];
    assert_eq!(loads(&groups(text)), divided);
    let of_two = groups(&format!("{text}{TARGETS}"));
    let of = |name: &str| -> f64 {
        let own = of_two.iter().filter(|group| group.name == name);
        own.map(|it| match it.run.arrival {
            Arrival::Open { rate_qps, .. } => rate_qps,
            _ => 0.0,
        })
        .sum()
    };
    assert_eq!(["a", "b", "c", "d"].map(of), [250.0, 750.0, 7.0, 0.0]);
}

#[test]
fn load_of_the_command_line_is_that_of_all_groups_together() {
    let text = "[[clients]]\nname = 'a'\ncount = 3\noutstanding = 9\n\
         [[clients]]\nname = 'b'\ncount = 1\nrate = 7\n";
    let line = [Given {
        name: "rate".to_owned(),
        values: vec!["2k".to_owned()],
    }];
    let compiled = compile(&file(text).unwrap(), &Point::default(), &line).unwrap();
    assert_eq!(loads(&compiled), ["a - 1500 - -", "b - 500 - -"]);
    let point = Point {
        flags: line.to_vec(),
    };
    let compiled = compile(&file(text).unwrap(), &point, &[]).unwrap();
    assert_eq!(loads(&compiled), ["a - 1500 - -", "b - 500 - -"]);
}

#[test]
fn event_divides_the_load_of_those_whom_it_changes() {
    let text = "population = 100\nrate = 1000\n\
         [[clients]]\nname = 'a'\nweight = 1\n[[clients]]\nname = 'b'\nweight = 1\n";
    let moved = groups(&format!(
        "{text}[[events]]\nat = '5s'\nshare = 0.2\ntransport = 'tcp'\n"
    ));
    let expected = [
        "a - 400 - -",
        "a - 100 - -",
        "a from 5s - 100 - -",
        "b - 400 - -",
        "b - 100 - -",
        "b from 5s - 100 - -",
    ];
    assert_eq!(loads(&moved), expected);
    let raised = groups(&format!("{text}[[events]]\nat = '5s'\nrate = 3000\n"));
    let expected = [
        "a - 500 - -",
        "a from 5s - 1500 - -",
        "b - 500 - -",
        "b from 5s - 1500 - -",
    ];
    assert_eq!(loads(&raised), expected);
}

#[test]
fn too_little_for_all_who_share_it_is_refused() {
    let found = refused(&format!("outstanding = 1\n{TARGETS}"));
    let what = "outstanding 1 is too little for the 2 groups and targets that share it";
    assert!(found.ends_with(what), "{found}");
    let text = "queries = 100\n[[events]]\nat = '5s'\ntransport = 'tcp'\n";
    let found = refused(text);
    assert!(
        found.ends_with("how many of the queries come before it cannot be known"),
        "{found}"
    );
}

#[test]
fn sweep_has_a_point_for_each_combination() {
    let file = file("[sweep]\nclients = '1..100*10'\nqueries-per-connection = [1, 50]\n");
    let points = sweep::points(&file.unwrap()).unwrap();
    assert_eq!(points.len(), 6);
    assert_eq!(
        points[5].to_string(),
        "clients 100, queries-per-connection 50"
    );
    let record = points[5].file(Path::new("out/r.json"));
    let name = "out/r-clients=100-queries-per-connection=50.json";
    assert_eq!(record, Path::new(name));
}

#[test]
fn faults_name_line_and_cure() {
    for (text, what) in [
        (
            "\ntransprot = 'tcp'",
            "s.toml, line 2: unknown key `transprot`",
        ),
        (
            "[[clients]]\nwieght = 1",
            "s.toml, line 2: unknown key `wieght`",
        ),
        (
            "timeout = [[1]]",
            "s.toml, line 1: `timeout` is a list of something else than values",
        ),
        (
            "tls-insecure = 'yes'",
            "s.toml, line 1: `tls-insecure` is a text",
        ),
        ("a = \n", "s.toml, line 1: "),
        ("events = 5", "s.toml, line 1: it is not a list of tables"),
        (
            "[[clients]]\nduration = '5s'",
            "s.toml, line 2: `duration` is not of [[clients]]",
        ),
        (
            "[[clients]]\nweight = 1",
            "s.toml, line 1, [[clients]]: a part of an unknown number of clients",
        ),
        (
            "population = 3\n[[clients]]\nweight = -1",
            "s.toml, line 2, [[clients]]: weight `-1` is not a number above zero",
        ),
        (
            "[[clients]]\nname = 'a'\n[[clients]]\nname = 'a'",
            "s.toml, line 3, [[clients]]: there is a group named `a` already",
        ),
        (
            "[[events]]\nreset = true",
            "s.toml, line 1, [[events]]: no time at which it happens",
        ),
        (
            "[[events]]\nat = '5s'\nreset = true\nleave = true",
            "s.toml, line 1, [[events]]: it is not clear what happens",
        ),
        (
            "[[events]]\nat = '5s'\nclients = 'b'\nleave = true",
            "s.toml, line 1, [[events]]: there is no group named `b`",
        ),
        (
            "[[targets]]\nweight = 1",
            "s.toml, line 1, [[targets]]: no server",
        ),
        (
            "timeout = 'soon'",
            "s.toml: invalid value 'soon' for '--timeout <TIME>'",
        ),
    ] {
        let found = refused(text);
        assert!(found.starts_with(what), "{text}: {found}");
    }
    let sweep = |text: &str| {
        let points = file(text).and_then(|file| sweep::points(&file));
        points.unwrap_err().what().to_owned()
    };
    let found = sweep("[sweep]\nclients = '5..1+1'");
    assert_eq!(found, "s.toml, line 1, [sweep]: `5..1+1` is not a range");
    let found = sweep("[sweep]\nclients = '1..9999+1'");
    assert_eq!(found, "s.toml, line 1, [sweep]: more than 1000 points");
}
