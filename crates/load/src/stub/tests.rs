use std::sync::Arc;

use super::*;
use crate::plan::tests::plan;

fn seconds(all: &[f64]) -> Vec<Duration> {
    all.iter().copied().map(Duration::from_secs_f64).collect()
}

/// A plan whose clients have `count` servers, with one attempt at each.
fn with_servers(count: usize) -> Plan {
    let mut plan = plan();
    let server = |place: usize| {
        let mut server = plan.target;
        server.set_port(53 + place as u16);
        server
    };
    let servers: Vec<SocketAddr> = (0..count).map(server).collect();
    plan.target = servers[0];
    plan.timeout = Duration::from_secs(2 * count as u64);
    plan.stub = Some(Arc::new(StubPolicy {
        servers,
        order: ServerOrder::First,
        waits: vec![Duration::from_secs(2); count],
        failover_rcodes: Vec::new(),
        dead_for: Duration::ZERO,
        race_delay: None,
    }));
    plan
}

fn check(servers: usize, change: impl FnOnce(&mut Plan, &mut StubPolicy), expected: &str) {
    let mut plan = with_servers(servers);
    let mut policy = plan.stub.take().as_deref().cloned().unwrap();
    change(&mut plan, &mut policy);
    plan.stub = Some(Arc::new(policy));
    let found = match plan.validate() {
        Ok(()) => String::new(),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expected);
}

#[test]
fn schedules_are_those_of_the_stub_resolvers_that_they_are_named_after() {
    let check = |text: &str, servers: usize, expected: &[f64]| {
        let retry = parse_retry(text).unwrap();
        assert_eq!(retry.waits(servers), seconds(expected), "{text}, {servers}");
    };
    check("3s,500ms", 1, &[3.0, 0.5]);
    check("glibc", 1, &[5.0, 5.0]);
    check("glibc", 2, &[5.0, 5.0, 5.0, 5.0]);
    check("glibc", 3, &[5.0, 3.0, 6.0, 5.0, 3.0, 6.0]);
    check("glibc,timeout=1,attempts=3", 2, &[1.0; 6]);
    check("glibc,timeout:2", 1, &[2.0, 2.0]);
    check("musl", 3, &[2.5, 2.5]);
    check("systemd-resolved", 2, &[5.0; 24]);
    check("windows", 1, &[1.0, 1.0, 2.0, 4.0, 2.0]);
}

#[test]
fn schedules_that_are_none_are_refused_with_an_example() {
    for (text, expected) in [
        ("", "`` is not a time above zero"),
        ("3s,", "`` is not a time above zero"),
        ("3s,0s", "`0s` is not a time above zero"),
        ("3", "`3` is not a time above zero"),
        ("bind", "`bind` is not a time above zero"),
        ("glibc,rotate", "`rotate`: write timeout=5 or attempts=2"),
        ("glibc,timeout=31", "`timeout=31`: timeout is 1 to 30"),
        ("musl,attempts=0", "`attempts=0`: attempts is 1 to 5"),
        ("windows,timeout=1", "windows has no options"),
    ] {
        let error = parse_retry(text).unwrap_err();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn servers_are_few_and_different_and_have_ports() {
    check(1, |_, _| {}, "");
    check(SERVERS_MAX, |_, _| {}, "");
    check(
        SERVERS_MAX + 1,
        |_, _| {},
        "server: 9 servers for one client, which may have at most 8",
    );
    check(
        3,
        |_, policy| policy.servers[2] = policy.servers[1],
        "server: 127.0.0.1:54 occurs twice",
    );
    check(
        2,
        |_, policy| policy.servers[1].set_port(0),
        "server: 127.0.0.1:0 has port 0",
    );
}

#[test]
fn settings_without_effect_or_against_each_other_are_named() {
    let order = |_: &mut Plan, policy: &mut StubPolicy| policy.order = ServerOrder::Rotate;
    check(2, order, "");
    let no_effect = "it has no effect on clients with one server";
    check(1, order, &format!("server-order: {no_effect}"));
    check(
        1,
        |_, policy| policy.dead_for = Duration::from_secs(1),
        &format!("server-dead-for: {no_effect}"),
    );
    check(
        1,
        |_, policy| policy.failover_rcodes = vec![2],
        &format!("failover-rcodes: {no_effect}"),
    );
    check(
        2,
        |_, policy| policy.race_delay = Some(RACE_DELAY),
        "race-delay: udp has no TCP connections to race",
    );
    let race = |plan: &mut Plan, policy: &mut StubPolicy| {
        plan.transport = Transport::Dot;
        policy.race_delay = Some(RACE_DELAY);
    };
    check(2, race, "");
    check(1, race, &format!("race-delay: {no_effect}"));
    check(
        2,
        |plan, policy| {
            plan.transport = Transport::Tcp;
            policy.order = ServerOrder::All;
        },
        "server-order: a client over tcp has one connection at a time",
    );
    check(
        2,
        |plan, _| plan.timeout = Duration::from_secs(5),
        "timeout: it is not the time of all attempts",
    );
    check(
        2,
        |plan, _| plan.local_port = 4_000,
        "local-port: a client has a socket for each of its servers",
    );
    check(
        2,
        |plan, policy| {
            plan.local_addresses = vec!["127.0.0.1".parse().unwrap()];
            policy.servers[1] = "[::1]:53".parse().unwrap();
        },
        "local-address: servers of two families: 127.0.0.1:53 and [::1]:53",
    );
}
