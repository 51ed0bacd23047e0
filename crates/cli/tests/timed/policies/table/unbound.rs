//! Unbound: its limits on rates, clients and queries at work, access lists and local zones.

use super::super::equipment::Upstream;
use super::*;

fn server(options: &str) -> Server {
    Server::new(&UNBOUND, options)
}

/// One that asks the upstream for the names, with a clause that names it.
fn resolver(options: &str, clause: &str, upstream: Upstream) -> Server {
    let address = match clause {
        "stub-zone" => "stub-addr",
        _ => "forward-addr",
    };
    let options = format!(
        "  do-not-query-localhost: no\n  local-zone: \"lab.test.\" transparent\n{options}\n\
         {clause}:\n  name: \"lab.test.\"\n  {address}: 127.0.0.1@{{upstream}}\n"
    );
    server(&options).upstream(upstream).of_other_zone()
}

/// What names of the zone are for one source.
fn view(how: &str) -> Server {
    server(&format!(
        "  access-control-view: 127.0.0.2/32 policy\nview:\n  name: policy\n  \
         local-zone: \"lab.test.\" {how}"
    ))
}

pub(super) fn rows() -> Vec<Row> {
    [limits_of_rate(), access(), clients_and_queries()].concat()
}

fn limits_of_rate() -> Vec<Row> {
    let factor_0 = || server("  ip-ratelimit: 100\n  ip-ratelimit-factor: 0");
    vec![
        row(
            "Unbound ip-ratelimit, factor 10",
            server("  ip-ratelimit: 100"),
            || udp(1_000.0),
            ADMITS_OR_LOSES,
        )
        .followed_by(server("  ip-ratelimit: 0")),
        row(
            "Unbound ip-ratelimit, factor 3",
            server("  ip-ratelimit: 100\n  ip-ratelimit-factor: 3"),
            || udp(1_000.0),
            ADMITS_OR_LOSES,
        ),
        row(
            "Unbound ip-ratelimit, factor 0",
            factor_0(),
            || udp(1_000.0),
            ADMITS_OR_STOPPED,
        )
        .followed_by(server("  ip-ratelimit: 0")),
        row(
            "Unbound ip-ratelimit, factor 0, four sources",
            factor_0(),
            || udp(1_200.0).sources(4),
            ADMITS_OR_STOPPED,
        ),
        row(
            "Unbound ip-ratelimit, factor 0, TCP",
            factor_0(),
            || over(Transport::Tcp, 1_000.0),
            ADMITS_OR_CLOSES,
        ),
        row(
            "Unbound ip-ratelimit, factor 0, closed loop",
            factor_0(),
            || closed(Transport::Udp, 20),
            HOLDS_SLOTS,
        )
        .followed_by_load(|| udp(1_000.0), ADMITS_OR_STOPPED),
        row(
            "Unbound ip-ratelimit, factor 0, observed",
            factor_0(),
            || udp(1_000.0),
            DROPS_COUNTED,
        )
        .observed()
        .followed_by(server("  ip-ratelimit: 0")),
        row(
            "Unbound ratelimit of a zone, factor 10",
            resolver("  ratelimit: 100", "stub-zone", Upstream::Slow(1)),
            || udp(1_000.0).names(2_000),
            QUERIES,
        ),
    ]
}

fn access() -> Vec<Row> {
    let from_one = || udp(800.0).sources(1);
    vec![
        row(
            "Unbound refuses a source",
            server("  access-control: 127.0.0.2/32 refuse"),
            from_one,
            REFUSED,
        )
        .followed_by(server("")),
        row(
            "Unbound ignores a source",
            server("  access-control: 127.0.0.2/32 deny"),
            from_one,
            SILENT,
        ),
        row(
            "Unbound ignores two of four sources",
            server("  access-control: 127.0.0.2/31 deny"),
            || udp(800.0).clients(8).sources(4),
            SOME_CLIENTS,
        ),
        row(
            "Unbound always_refuse",
            view("always_refuse"),
            from_one,
            REFUSED,
        ),
        row(
            "Unbound always_nxdomain",
            view("always_nxdomain"),
            from_one,
            NXDOMAIN,
        ),
        row(
            "Unbound always_nodata",
            view("always_nodata"),
            from_one,
            NODATA,
        ),
        row("Unbound always_deny", view("always_deny"), from_one, SILENT),
    ]
}

fn clients_and_queries() -> Vec<Row> {
    let at_work = || udp(500.0).names(2_000);
    let queries = |most: u32| {
        let option = format!("  num-queries-per-thread: {most}");
        resolver(&option, "forward-zone", Upstream::Slow(200))
    };
    let few_clients = || server("").set("tcp-clients=5");
    vec![
        row(
            "Unbound incoming-num-tcp 5 of 20",
            few_clients(),
            || over(Transport::Tcp, 800.0).clients(20),
            CLIENTS,
        )
        .followed_by(server("").set("tcp-clients=50")),
        row(
            "Unbound incoming-num-tcp 5 of 20, DoT",
            few_clients(),
            || over(Transport::Dot, 800.0).clients(20),
            CLIENTS,
        ),
        row(
            "Unbound num-queries-per-thread 20, slow upstream",
            queries(20),
            at_work,
            QUERIES,
        ),
        row(
            "Unbound num-queries-per-thread 20, slow upstream, observed",
            queries(20),
            at_work,
            QUERIES_COUNTED,
        )
        .observed()
        .followed_by(queries(4_096)),
        row(
            "Unbound with a silent upstream",
            resolver("", "forward-zone", Upstream::Silent),
            at_work,
            SILENT,
        )
        .busy(),
    ]
}
