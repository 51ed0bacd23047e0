//! NSD, Knot DNS, PowerDNS and CoreDNS.

use super::super::equipment::Upstream;
use super::*;

const KNOT_RRL: &str = "\
server:
    rundir: \"{folder}\"
    listen: {address}@{port}
database:
    storage: \"{folder}\"
mod-rrl:
  - id: few
    rate-limit: 50
    slip: {slip}
template:
  - id: default
    storage: \"{folder}\"
    zonefile-sync: -1
    journal-content: none
    global-module: mod-rrl/few
zone:
  - domain: \"{origin}\"
    file: \"zone.db\"
";

fn knot_rrl(slip: &str) -> Server {
    let configuration = KNOT_RRL.replace("{slip}", slip);
    Server::custom("knotd -c {configuration}", &configuration)
}

/// CoreDNS that does something wrong with every second query.
fn erratic(what: &str) -> Server {
    let configuration = format!(
        "{{origin}}:{{port}} {{\n  bind {{address}}\n  file {{folder}}/zone.db\n}}\n\
         lab.test:{{port}} {{\n  bind {{address}}\n  erratic {{\n    {what}\n  }}\n}}\n"
    );
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/servers/coredns/coredns"
    );
    Server::custom(&format!("{path} -conf {{configuration}}"), &configuration).of_other_zone()
}

fn nsd(options: &str) -> Server {
    Server::new(&NSD, options)
}

/// A Recursor that forwards the names to the upstream.
fn recursor(options: &str, upstream: Upstream) -> Server {
    let command = format!(
        "pdns_recursor --daemon=no --write-pid=no --disable-syslog=yes --security-poll-suffix= \
         --config-dir={{folder}} --socket-dir={{folder}} --hint-file=no --dnssec=off --threads=1 \
         --local-address={{address}} --local-port={{port}} --dont-query= \
         --auth-zones={{origin}}={{folder}}/zone.db \
         --forward-zones=lab.test=127.0.0.1:{{upstream}} {options}"
    );
    Server::custom(&command, "")
        .upstream(upstream)
        .of_other_zone()
}

pub(super) fn rows() -> Vec<Row> {
    [
        limits_of_rate(),
        clients(),
        without_zone_or_upstream(),
        plugins(),
    ]
    .concat()
}

fn limits_of_rate() -> Vec<Row> {
    let one_name = || udp(1_000.0).names(1);
    vec![
        row(
            "NSD RRL, slip 0",
            nsd("rrl-ratelimit: 50\n  rrl-slip: 0"),
            one_name,
            ADMITS_OR_STOPPED,
        )
        .followed_by(nsd("rrl-ratelimit: 0")),
        row(
            "NSD RRL, slip 1",
            nsd("rrl-ratelimit: 50\n  rrl-slip: 1"),
            one_name,
            TRUNCATED,
        ),
        row(
            "NSD RRL, slip 2",
            nsd("rrl-ratelimit: 50\n  rrl-slip: 2"),
            one_name,
            TRUNCATED,
        ),
        row(
            "NSD RRL, many names, slip 2",
            nsd("rrl-ratelimit: 5\n  rrl-slip: 2"),
            || udp(1_500.0).names(50),
            TRUNCATED,
        ),
        row(
            "Knot RRL, slip 0",
            knot_rrl("0"),
            one_name,
            ADMITS_OR_STOPPED,
        )
        .followed_by(knot_rrl("0\n    whitelist: 127.0.0.1")),
        row("Knot RRL, slip 1", knot_rrl("1"), one_name, TRUNCATED),
        row("Knot RRL, slip 2", knot_rrl("2"), one_name, TRUNCATED),
    ]
}

fn clients() -> Vec<Row> {
    let tcp = || over(Transport::Tcp, 800.0).clients(20);
    let dot = || over(Transport::Dot, 800.0).clients(20);
    let closed_tcp = || closed(Transport::Tcp, 20);
    // Each asks some times, or once: few of them ever have a place.
    let many = || over(Transport::Tcp, 900.0).clients(300);
    let once = || over(Transport::Tcp, 300.0).clients(600);
    let few = |product| Server::new(product, "").set("tcp-clients=5");
    vec![
        row("NSD tcp-count 5 of 20", few(&NSD), tcp, CLIENTS)
            .followed_by(nsd("").set("tcp-clients=50")),
        row(
            "NSD tcp-count 5 of 20, closed loop",
            few(&NSD),
            closed_tcp,
            CLIENTS,
        )
        .busy(),
        row("NSD tcp-count 5 of 20, DoT", few(&NSD), dot, CLIENTS),
        row("NSD tcp-count 5 of 300", few(&NSD), many, CLIENTS),
        row("Knot tcp-max-clients 16 of 20", few(&KNOT), tcp, CLIENTS)
            .followed_by(Server::new(&KNOT, "").set("tcp-clients=50")),
        row(
            "Knot tcp-max-clients 16 of 20, DoT",
            few(&KNOT),
            dot,
            CLIENTS,
        ),
        row(
            "PowerDNS max-tcp-connections 5 of 20",
            few(&PDNS_AUTH),
            tcp,
            CLIENTS,
        )
        .followed_by(Server::new(&PDNS_AUTH, "").set("tcp-clients=50")),
        row(
            "PowerDNS Recursor max-tcp-clients 5 of 20",
            few(&PDNS_RECURSOR),
            tcp,
            CLIENTS,
        ),
        row(
            "PowerDNS max-tcp-connections 5 of 600",
            few(&PDNS_AUTH),
            once,
            CLIENTS,
        ),
    ]
}

fn without_zone_or_upstream() -> Vec<Row> {
    let tcp = || over(Transport::Tcp, 800.0);
    let at_work = || udp(500.0).names(2_000);
    let without = |product| Server::new(product, "").of_other_zone();
    vec![
        row(
            "NSD without the zone",
            without(&NSD),
            || udp(800.0),
            REFUSED,
        ),
        row("Knot without the zone", without(&KNOT), tcp, REFUSED),
        row(
            "PowerDNS without the zone",
            without(&PDNS_AUTH),
            || udp(800.0),
            REFUSED,
        ),
        row(
            "PowerDNS Recursor without authorities",
            without(&PDNS_RECURSOR),
            at_work,
            SERVFAIL,
        ),
        row(
            "PowerDNS Recursor max-mthreads 20, slow upstream",
            recursor("--max-mthreads=20", Upstream::Slow(200)),
            at_work,
            QUERIES,
        )
        .followed_by(recursor("--max-mthreads=2048", Upstream::Slow(200))),
        row(
            "PowerDNS Recursor with a silent upstream",
            recursor("", Upstream::Silent),
            at_work,
            SILENT,
        )
        .busy(),
    ]
}

fn plugins() -> Vec<Row> {
    let from_one = || udp(800.0).sources(1);
    let acl = |what: &str| {
        let options = format!("  acl {{\n    {what} net 127.0.0.2/32\n  }}");
        Server::new(&COREDNS, &options)
    };
    vec![
        row(
            "CoreDNS erratic delays",
            erratic("drop 0\n    delay 10 300ms"),
            || udp(800.0),
            DELAYS,
        ),
        row(
            "CoreDNS erratic truncates",
            erratic("drop 0\n    truncate 2"),
            || udp(800.0),
            TRUNCATED,
        ),
        row("CoreDNS acl block", acl("block"), from_one, REFUSED)
            .followed_by(Server::new(&COREDNS, "")),
        row("CoreDNS acl filter", acl("filter"), from_one, NODATA),
        row("CoreDNS acl drop", acl("drop"), from_one, SILENT),
        row(
            "CoreDNS acl drop of one of four sources",
            acl("drop"),
            || udp(800.0).clients(8).sources(4),
            SOME_CLIENTS,
        ),
    ]
}
