//! `throng trace`: over a chain of network namespaces, two routers and a responder at the end.
//!
//! The namespaces have no names and are gone with the processes in them. The test starts itself
//! again in the first, where `throng trace` runs. Needs root.

use std::process::Command;

use lab::target::Namespace;
use measure::Trace;
use measure::trace::{IcmpReason, Probe, TraceEnd};
use testing::ports::Listener;

use crate::process::{Responder, THRONG, throng};

const NAME: &str = "trace::every_router_on_the_way_is_a_hop_over_ipv4_and_ipv6";

/// Set in the test that runs within the first namespace.
const INSIDE: &str = "THRONG_TRACE_WITHIN_NAMESPACE";

fn shell(namespace: &Namespace, script: &str) {
    done(namespace.command("sh").args(["-ec", script]));
}

fn done(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{text}");
    text
}

/// Joins a namespace, or this one, to the next by link `number`: the near end has addresses that
/// end in 1, the far end in 2.
fn join(near: Option<&Namespace>, far: &Namespace, number: u8) {
    let add = format!(
        "ip link add n{number} type veth peer name f{number} netns {}",
        far.id()
    );
    let up = |end: u8, name: &str| {
        format!(
            "ip link set lo up; ip link set {name} up; \
             ip addr add 10.77.{number}.{end}/24 dev {name}; \
             ip addr add fd77:{number}::{end}/64 dev {name} nodad"
        )
    };
    let here = format!("{add}; {}", up(1, &format!("n{number}")));
    match near {
        Some(near) => shell(near, &here),
        None => drop(done(Command::new("sh").args(["-ec", &here]))),
    }
    shell(far, &up(2, &format!("f{number}")));
}

/// Client, two routers, server: the routers forward, the others know the way.
fn chain() -> [Namespace; 3] {
    let chain = [(); 3].map(|()| Namespace::new().unwrap());
    let [first, second, server] = &chain;
    join(None, first, 1);
    join(Some(first), second, 2);
    join(Some(second), server, 3);
    // Without a limit of ICMP errors a second: the traces of a test follow each other closely.
    let forward = "cd /proc/sys/net; echo 1 > ipv4/ip_forward; echo 0 > ipv4/icmp_ratelimit; \
                   echo 1 > ipv6/conf/all/forwarding; echo 0 > ipv6/icmp/ratelimit";
    let route = |to: &str, via: &str| format!("ip route add default via 10.77.{via}; {to}");
    let route6 = |via: &str| format!("ip -6 route add default via fd77:{via}");
    done(Command::new("sh").args(["-ec", &route(&route6("1::2"), "1.2")]));
    shell(
        first,
        &format!("{forward}; {}", route(&route6("2::2"), "2.2")),
    );
    shell(
        second,
        &format!(
            "{forward}; ip route add 10.77.1.0/24 via 10.77.2.1; \
         ip -6 route add fd77:1::/64 via fd77:2::1"
        ),
    );
    shell(server, &route(&route6("3::1"), "3.1"));
    chain
}

#[test]
fn every_router_on_the_way_is_a_hop_over_ipv4_and_ipv6() {
    if std::env::var_os(INSIDE).is_some() {
        run_within();
    } else if testing::host::is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "unshare", "--net"]);
        command.arg(std::env::current_exe().unwrap());
        command.args(["--exact", NAME]).env(INSIDE, "1");
        let text = done(&mut command);
        assert!(text.contains("1 passed"), "{text}");
    } else {
        eprintln!("not tried: network namespaces need root");
    }
}

fn run_within() {
    let chain = chain();
    let mut command = chain[2].command("setpriv");
    command.args(["--pdeathsig", "KILL", "--", THRONG]);
    let _responder = Responder::start_by(command, "udp:10.77.3.2:53,udp:[fd77:3::2]:53", "");
    for (server, routers) in [
        ("10.77.3.2", ["10.77.1.2", "10.77.2.2"]),
        ("fd77:3::2", ["fd77:1::2", "fd77:2::2"]),
    ] {
        // The first finds out link-layer addresses, which may take longer than a query waits.
        traced(server, 0);
        check_way(server, routers);
    }
    // A network that the last router has no way to.
    let gone = traced("10.99.0.1", 1);
    assert_eq!(gone.ended, TraceEnd::Unreachable, "{gone:?}");
    // One of three probes may have no reply: it comes late on a busy host, and the kernel limits
    // these errors.
    let mut probes = gone.hops.last().unwrap().probes.iter();
    let Some(Probe::Icmp { from, reason, .. }) = probes.find(|it| **it != Probe::Silence) else {
        panic!("{gone:?}");
    };
    assert_eq!(from, "10.77.2.2");
    assert_eq!(*reason, IcmpReason::NetworkUnreachable);
    let short = traced_with("10.77.3.2", "--max-hops 2", 1);
    assert_eq!((short.ended, short.hops.len()), (TraceEnd::HopsMax, 2));
    // A router that says nothing is a hop of stars.
    shell(
        &chain[0],
        "ip route add prohibit 10.77.1.1 table 7; ip rule add iif lo table 7 pref 1",
    );
    let silent = traced_with("10.77.3.2", "--timeout 2s", 0);
    assert_eq!(
        silent.hops[0].probes,
        [Probe::Silence, Probe::Silence, Probe::Silence]
    );
    assert_eq!(silent.ended, TraceEnd::Response);
}

fn traced(server: &str, code: i32) -> Trace {
    traced_with(server, "", code)
}

fn traced_with(server: &str, flags: &str, code: i32) -> Trace {
    let line = format!("trace a.example --server {server} --format json {flags}");
    serde_json::from_str(&throng(&line).ended_with(code)).unwrap()
}

fn check_way(server: &str, routers: [&str; 2]) {
    let trace = traced(server, 0);
    assert_eq!(
        (trace.ended, trace.hops.len()),
        (TraceEnd::Response, 3),
        "{trace:?}"
    );
    for (hop, router) in trace.hops.iter().zip(routers) {
        assert_eq!(hop.probes.len(), 3);
        for probe in &hop.probes {
            let Probe::Icmp {
                from,
                reason,
                after_ns,
            } = probe
            else {
                panic!("{trace:?}");
            };
            assert_eq!((from.as_str(), *reason), (router, IcmpReason::TimeExceeded));
            assert!(*after_ns > 0);
        }
    }
    for probe in &trace.hops[2].probes {
        let Probe::Response { from, rcode, .. } = probe else {
            panic!("{trace:?}");
        };
        assert_eq!((from.as_str(), rcode.as_str()), (server, "NOERROR"));
    }
    let text = throng(&format!("trace a.example --server {server}")).succeeded();
    assert!(
        text.contains(&format!("\n  2   {}  ", routers[1])),
        "{text}"
    );
    assert!(
        text.ends_with("the server answers at a distance of 3 hops\n"),
        "{text}"
    );
}

#[test]
fn a_server_on_this_host_answers_at_the_first_hop_and_a_silent_one_never() {
    let responder = Responder::start("udp:127.0.0.1:0", "--rcodes REFUSED=1");
    let address = responder.address();
    let text = throng(&format!("trace a.example --type AAAA --server {address}")).succeeded();
    assert!(
        text.starts_with(&format!("a.example AAAA over udp to {address}, ")),
        "{text}"
    );
    assert!(text.contains("\n  1   127.0.0.1  "), "{text}");
    assert!(
        text.contains("  DNS response: REFUSED, 27 bytes\n"),
        "{text}"
    );

    let silent = Listener::new();
    let flags = "--max-hops 2 --probes 2 --timeout 20ms";
    let line = format!("trace a.example --server {} {flags}", silent.address());
    let text = throng(&line).ended_with(1);
    assert!(
        text.contains("\n  1   *  *\n  2   *  *\nno response within 2 hops\n"),
        "{text}"
    );
}

#[test]
fn a_source_address_that_no_interface_has_is_refused() {
    throng("trace a.example --server 127.0.0.1 --local-address 192.0.2.77")
        .refused_with("cannot trace the path", "route");
}
