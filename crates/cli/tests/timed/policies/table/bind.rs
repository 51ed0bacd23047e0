//! BIND: response rate limiting, access lists, its limits on clients and on recursion.

use super::super::equipment::Upstream;
use super::*;

/// A resolver that forwards the names to the upstream.
const RESOLVER: &str = "\
options {
  directory \"{folder}\";
  pid-file none;
  session-keyfile none;
  listen-on port {port} { {address}; };
  listen-on-v6 { none; };
  recursion yes;
  allow-recursion { any; };
  dnssec-validation no;
  empty-zones-enable no;
  {limit}
};
controls { };
zone \"{origin}\" { type primary; file \"zone.db\"; };
zone \"lab.test\" { type forward; forward only; forwarders { 127.0.0.1 port {upstream}; }; };
";

fn resolver(limit: &str, upstream: Upstream) -> Server {
    let configuration = RESOLVER.replace("{limit}", limit);
    Server::custom("named -g -n 1 -c {configuration}", &configuration)
        .upstream(upstream)
        .of_other_zone()
}

fn rrl(statements: &str) -> Server {
    Server::new(&BIND, &format!("  rate-limit {{ {statements} }};"))
}

/// The same that exempts the generator.
fn exempt(statements: &str) -> Server {
    rrl(&format!("{statements} exempt-clients {{ any; }};"))
}

pub(super) fn rows() -> Vec<Row> {
    let of_rate = [limits_of_rate(), observed_limits_of_rate()];
    [of_rate.concat(), others(), recursion()].concat()
}

fn limits_of_rate() -> Vec<Row> {
    vec![
        row(
            "BIND RRL, one name, slip 0",
            rrl("responses-per-second 50; slip 0;"),
            || udp(1_000.0).names(1),
            ADMITS_OR_STOPPED,
        )
        .followed_by(exempt("responses-per-second 50; slip 0;")),
        row(
            "BIND RRL, one name, slip 0, twice the rate",
            rrl("responses-per-second 200; slip 0;"),
            || udp(400.0).names(1),
            ADMITS_OR_STOPPED,
        ),
        row(
            "BIND RRL, one name, slip 1",
            rrl("responses-per-second 50; slip 1;"),
            || udp(1_000.0).names(1),
            TRUNCATED,
        )
        .followed_by(exempt("responses-per-second 50; slip 1;")),
        row(
            "BIND RRL, one name, slip 2",
            rrl("responses-per-second 50; slip 2;"),
            || udp(1_000.0).names(1),
            TRUNCATED,
        ),
        row(
            "BIND RRL, one name, slip 2, 20 clients",
            rrl("responses-per-second 100; slip 2;"),
            || udp(1_500.0).names(1).clients(20),
            TRUNCATED,
        ),
        row(
            "BIND RRL, many names, slip 0",
            rrl("responses-per-second 5; slip 0;"),
            || udp(1_500.0).names(50),
            ADMITS_OR_STOPPED,
        )
        .followed_by(exempt("responses-per-second 5; slip 0;")),
        row(
            "BIND RRL, all responses, four sources",
            rrl("responses-per-second 1000; all-per-second 100; slip 0; ipv4-prefix-length 32;"),
            || udp(1_000.0).sources(4),
            ADMITS_OR_STOPPED,
        ),
        row(
            "BIND RRL, one name, slip 0, closed loop",
            rrl("responses-per-second 50; slip 0;"),
            || closed(Transport::Udp, 20).names(1),
            HOLDS_SLOTS,
        )
        .followed_by_load(|| udp(1_000.0).names(1), ADMITS_OR_STOPPED),
        row(
            "BIND RRL over TCP limits nothing",
            rrl("responses-per-second 50; slip 0;"),
            || over(Transport::Tcp, 800.0).names(1),
            HELD,
        ),
    ]
}

/// BIND counts what it drops.
fn observed_limits_of_rate() -> Vec<Row> {
    vec![
        row(
            "BIND RRL, one name, slip 0, observed",
            rrl("responses-per-second 50; slip 0;"),
            || udp(1_000.0).names(1),
            DROPS_COUNTED,
        )
        .observed()
        .followed_by(exempt("responses-per-second 50; slip 0;")),
        row(
            "BIND RRL, one name, slip 2, observed",
            rrl("responses-per-second 50; slip 2;"),
            || udp(1_000.0).names(1),
            DROPS_COUNTED,
        )
        .observed(),
    ]
}

fn others() -> Vec<Row> {
    let plain = || Server::new(&BIND, "");
    let refuses = || Server::new(&BIND, "  allow-query { !127.0.0.2; any; };");
    let clients = || Server::new(&BIND, "  tcp-clients 10;");
    vec![
        row(
            "BIND refuses a source",
            refuses(),
            || udp(800.0).sources(1),
            REFUSED,
        )
        .followed_by(plain()),
        row(
            "BIND refuses one of four sources",
            refuses(),
            || udp(800.0).sources(4),
            REFUSED,
        ),
        row(
            "BIND ignores a source (blackhole)",
            Server::new(&BIND, "  blackhole { 127.0.0.2; };"),
            || udp(800.0).sources(1),
            SILENT,
        )
        .followed_by(plain()),
        row(
            "BIND ignores one of four sources (blackhole)",
            Server::new(&BIND, "  blackhole { 127.0.0.2; };"),
            || udp(800.0).clients(8).sources(4),
            SOME_CLIENTS,
        ),
        row(
            "BIND without the zone, TCP",
            plain().of_other_zone(),
            || over(Transport::Tcp, 800.0),
            REFUSED,
        ),
        row(
            "BIND with one thread at saturation",
            plain(),
            || closed(Transport::Udp, 100),
            BUSY,
        )
        .observed()
        .busy(),
        row(
            "BIND tcp-clients 10 of 40, open loop",
            clients(),
            || over(Transport::Tcp, 1_000.0).clients(40),
            CLIENTS,
        )
        .followed_by(Server::new(&BIND, "  tcp-clients 100;")),
        row(
            "BIND tcp-clients 10 of 40, closed loop",
            clients(),
            || closed(Transport::Tcp, 40),
            CLIENTS,
        )
        .busy(),
        row(
            "BIND tcp-clients 10 of 40, DoT",
            clients(),
            || over(Transport::Dot, 800.0).clients(40),
            CLIENTS,
        ),
    ]
}

fn recursion() -> Vec<Row> {
    let load = || udp(500.0).names(2_000);
    vec![
        row(
            "BIND recursive-clients 20, slow upstream",
            resolver("recursive-clients 20;", Upstream::Slow(200)),
            load,
            QUERIES,
        )
        .followed_by(resolver("", Upstream::Slow(200))),
        row(
            "BIND fetches-per-server 10, SERVFAIL, slow upstream",
            resolver("fetches-per-server 10 fail;", Upstream::Slow(200)),
            load,
            SERVFAIL,
        ),
        row(
            "BIND fetches-per-server 10, drop, slow upstream",
            resolver("fetches-per-server 10 drop;", Upstream::Slow(200)),
            load,
            QUERIES,
        ),
        row(
            "BIND with a silent upstream",
            resolver("", Upstream::Silent),
            load,
            SILENT,
        )
        .busy(),
    ]
}
