//! Servers that answer, but not with answers.

use lab::target::{
    BindOptions, BindTarget, KnotOptions, KnotTarget, UnboundOptions, UnboundTarget, Zone, products,
};
use measure::Limit;
use proto::Transport;

use super::{Expected, together};
use crate::bench::{Load, Ran, ms};
use crate::target::{bind_for_signed_queries, zone};

/// A zone without the names that [`Load`] asks for.
fn other_zone() -> Zone {
    let text = zone().text.replace("lab.test.", "other.test.");
    Zone {
        origin: "other.test.".to_owned(),
        text,
    }
}

fn load(transport: Transport) -> Load {
    let load = Load::over(transport).rate(800.0);
    load.plan(|plan| plan.duration = Some(ms(1_100)))
}

fn refused(name: &'static str) -> Expected {
    Expected {
        name,
        limit: Limit::Unknown,
        evidence: "100 % of the responses were REFUSED",
        topic: "REFUSED",
        cure: "ask for names of a zone that the server serves",
    }
}

/// A server of another zone is no result, and one of this zone is.
fn check_other_zone(name: &'static str, run: impl Fn(Zone) -> Ran) {
    refused(name).check(|| run(other_zone()), || run(zone()), &[Limit::Rate]);
}

fn bind(zone: Zone) -> Ran {
    let target = BindTarget::start(&BindOptions::new(zone)).unwrap();
    load(Transport::Udp).run_on(&target)
}

fn unbound(zone: Zone) -> Ran {
    // Unbound itself says NXDOMAIN for what is below `test.` (RFC 6761, section 6.2).
    let options = UnboundOptions {
        extra_options: "  local-zone: \"test.\" refuse".to_owned(),
        ..UnboundOptions::new(zone)
    };
    let target = UnboundTarget::start(&options).unwrap();
    let load = load(Transport::Tcp).clients(5);
    load.run_on(&target)
}

fn knot(zone: Zone) -> Ran {
    let target = KnotTarget::start(&KnotOptions::new(zone)).unwrap();
    load(Transport::Udp).run_on(&target)
}

fn coredns(zone: Zone) -> Ran {
    let target = products::COREDNS.start(&zone).unwrap();
    let load = load(Transport::Doq).ca_pem(target.ca_pem().unwrap());
    load.run_on(&target)
}

#[test]
fn a_server_of_other_zones_is_no_result() {
    together(&[
        &|| check_other_zone("BIND without the zone", bind),
        &|| check_other_zone("Unbound without the zone, over TCP", unbound),
        &|| check_other_zone("Knot DNS without the zone", knot),
        &|| check_other_zone("CoreDNS without the zone, over QUIC", coredns),
    ]);
}

#[test]
fn a_server_that_answers_others_alone_is_no_result() {
    let (target, key) = bind_for_signed_queries();
    let signed = || {
        let load = load(Transport::Udp);
        let load = load.plan(|plan| plan.tsig = Some(key.clone()));
        load.run_on(&target)
    };
    let expected = Expected {
        cure: "allow-query { any; };",
        ..refused("BIND for signed queries alone")
    };
    let unsigned = || load(Transport::Udp).run_on(&target);
    expected.check(unsigned, signed, &[Limit::Rate]);
}

#[test]
fn a_resolver_with_a_lame_upstream_is_no_result() {
    let run = |is_lame: bool| -> Ran {
        let served = if is_lame { other_zone() } else { zone() };
        let upstream = BindTarget::start(&BindOptions::new(served)).unwrap();
        let port = upstream.endpoints().do53().port();
        let options = UnboundOptions {
            extra_options: format!(
                "  do-not-query-localhost: no\n  local-zone: \"lab.test.\" transparent\n\
                 stub-zone:\n  name: \"lab.test.\"\n  stub-addr: 127.0.0.1@{port}\n"
            ),
            ..UnboundOptions::new(other_zone())
        };
        let target = UnboundTarget::start(&options).unwrap();
        load(Transport::Udp).run_on(&target)
    };
    let expected = Expected {
        name: "Unbound with a lame upstream",
        limit: Limit::Unknown,
        evidence: "of the responses were SERVFAIL",
        topic: "SERVFAIL",
        cure: "dig @127.0.0.1",
    };
    expected.check(|| run(true), || run(false), &[Limit::Rate]);
}

#[test]
fn refusals_that_were_asked_for_are_a_result() {
    let target = BindTarget::start(&BindOptions::new(other_zone())).unwrap();
    let run = |good: &[u16]| {
        let load = load(Transport::Udp).goodput(good);
        load.run_on(&target)
    };
    let expected = Expected {
        cure: "allow-query { any; };",
        ..refused("BIND without the zone, followed by --goodput REFUSED")
    };
    expected.check(|| run(&[0, 3]), || run(&[5]), &[Limit::Rate]);
}
