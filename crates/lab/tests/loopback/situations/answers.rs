//! Servers that answer, but not with answers.

use lab::target::{
    BindOptions, BindTarget, KnotOptions, KnotTarget, Product, TsigKey, UnboundOptions,
    UnboundTarget, Zone,
};
use measure::Limit;
use proto::Transport;

use super::Expected;
use crate::bench::{Load, Ran, alone, ms};
use crate::servers::zone;

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
        evidence: "100.00 % of the responses were REFUSED",
        topic: "REFUSED",
        cure: "ask for names of a zone that the server serves",
    }
}

#[test]
fn a_server_of_other_zones_is_no_result() {
    let _alone = alone();
    let bind = |zone: Zone| {
        let target = BindTarget::start(&BindOptions::new(zone)).unwrap();
        load(Transport::Udp).run_at(target.endpoints().do53())
    };
    refused("BIND without the zone").check(|| bind(other_zone()), || bind(zone()), &[Limit::Rate]);
    let unbound = |zone: Zone| {
        // Unbound itself says NXDOMAIN for what is below `test.` (RFC 6761, section 6.2).
        let options = UnboundOptions {
            extra_options: "  local-zone: \"test.\" refuse".to_owned(),
            ..UnboundOptions::new(zone)
        };
        let target = UnboundTarget::start(&options).unwrap();
        let load = load(Transport::Tcp).clients(5);
        load.run_at(target.endpoints().do53())
    };
    refused("Unbound without the zone, over TCP").check(
        || unbound(other_zone()),
        || unbound(zone()),
        &[Limit::Rate],
    );
    let knot = |zone: Zone| {
        let target = KnotTarget::start(&KnotOptions::new(zone)).unwrap();
        load(Transport::Udp).run_at(target.endpoints().do53())
    };
    refused("Knot DNS without the zone").check(
        || knot(other_zone()),
        || knot(zone()),
        &[Limit::Rate],
    );
    let coredns = |zone: Zone| {
        let target = Product::CoreDns.start(&zone).unwrap();
        let load = load(Transport::Doq).ca_pem(target.ca_pem().unwrap());
        load.run_at(target.endpoints().address(Transport::Doq).unwrap())
    };
    refused("CoreDNS without the zone, over QUIC").check(
        || coredns(other_zone()),
        || coredns(zone()),
        &[Limit::Rate],
    );
}

#[test]
fn a_server_that_answers_others_alone_is_no_result() {
    let _alone = alone();
    let key = TsigKey {
        name: "lab-key".to_owned(),
        algorithm: "hmac-sha256".to_owned(),
        secret_base64: "c2VjcmV0IG9mIHRoZSBsYWI=".to_owned(),
    };
    let signer = format!("{}:{}:{}", key.algorithm, key.name, key.secret_base64);
    let options = BindOptions {
        query_key: Some(key),
        ..BindOptions::new(zone())
    };
    let target = BindTarget::start(&options).unwrap();
    let address = target.endpoints().do53();
    let signed = || {
        let load = load(Transport::Udp);
        let load = load.plan(|plan| plan.tsig = Some(signer.parse().unwrap()));
        load.run_at(address)
    };
    let expected = Expected {
        cure: "allow-query { any; };",
        ..refused("BIND for signed queries alone")
    };
    let unsigned = || load(Transport::Udp).run_at(address);
    expected.check(unsigned, signed, &[Limit::Rate]);
}

#[test]
fn a_resolver_with_a_lame_upstream_is_no_result() {
    let _alone = alone();
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
        load(Transport::Udp).run_at(target.endpoints().do53())
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
    let _alone = alone();
    let target = BindTarget::start(&BindOptions::new(other_zone())).unwrap();
    let load = load(Transport::Udp).goodput(&[5]);
    let Some(ran) = super::undisturbed(
        || load.clone().run_at(target.endpoints().do53()),
        Limit::Rate,
    ) else {
        return;
    };
    assert_eq!(
        ran.record.verdict.limit,
        Limit::Rate,
        "{:#?}",
        ran.record.verdict
    );
}
