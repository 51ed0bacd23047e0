//! dnsdist in front of BIND: its rules, and servers that are down.

use super::*;

fn server(lines: &str) -> Server {
    Server::new(&DNSDIST, lines)
}

pub(super) fn rows() -> Vec<Row> {
    [limits_of_rate(), shares(), others()].concat()
}

fn limits_of_rate() -> Vec<Row> {
    let of_source = |action: &str| server(&format!("addAction(MaxQPSIPRule(100), {action})"));
    let some = || udp(1_000.0);
    vec![
        row(
            "dnsdist MaxQPSIPRule drops",
            of_source("DropAction()"),
            some,
            ADMITS_OR_LOSES,
        )
        .followed_by(server("")),
        row(
            "dnsdist MaxQPSIPRule drops, observed",
            of_source("DropAction()"),
            some,
            DROPS_COUNTED,
        )
        .observed()
        .followed_by(server("")),
        row(
            "dnsdist MaxQPSIPRule drops, four sources",
            of_source("DropAction()"),
            || udp(1_200.0).sources(4),
            ADMITS_OR_LOSES,
        ),
        row(
            "dnsdist MaxQPSIPRule refuses",
            of_source("RCodeAction(DNSRCode.REFUSED)"),
            some,
            REFUSED,
        ),
        row(
            "dnsdist MaxQPSIPRule truncates",
            of_source("TCAction()"),
            some,
            TRUNCATED,
        ),
        row(
            "dnsdist blocks a source for a minute",
            server(
                "local rules = dynBlockRulesGroup()\nrules:setQueryRate(100, 2, 'many', 60)\n\
                 function maintenance() rules:apply() end",
            ),
            some,
            ADMITS_OR_STOPPED,
        ),
        row(
            "dnsdist MaxQPSRule drops, ten sources",
            server("addAction(NotRule(MaxQPSRule(200)), DropAction())"),
            || udp(1_000.0).sources(10),
            ADMITS_OR_LOSES,
        ),
    ]
}

/// Rules on a share of the queries, or on one name of three.
fn shares() -> Vec<Row> {
    let some = || udp(1_000.0);
    let rule = |rule: &str, action: &str| server(&format!("addAction({rule}, {action})"));
    vec![
        row(
            "dnsdist drops three queries of ten",
            rule("ProbaRule(0.3)", "DropAction()"),
            some,
            LOSES,
        )
        .followed_by_load(|| udp(100.0), LOSES),
        row(
            "dnsdist answers three queries of ten with SERVFAIL",
            rule("ProbaRule(0.3)", "RCodeAction(DNSRCode.SERVFAIL)"),
            some,
            SERVFAIL,
        ),
        row(
            "dnsdist truncates three responses of ten",
            rule("ProbaRule(0.3)", "TCAction()"),
            some,
            TRUNCATED,
        ),
        row(
            "dnsdist delays one of three names",
            rule("QNameRule('test-record-1.lab.test')", "DelayAction(100)"),
            || udp(900.0).names(3),
            DELAYS,
        ),
        row(
            "dnsdist delays all queries",
            rule("AllRule()", "DelayAction(100)"),
            some,
            HELD,
        ),
    ]
}

fn others() -> Vec<Row> {
    let few = || server("setMaxTCPConnectionsPerClient(5)");
    let tcp = || over(Transport::Tcp, 800.0).clients(20);
    let dot = || over(Transport::Dot, 800.0).clients(20);
    let pool = "newServer({address='127.0.0.1:1', pool='down', checkInterval=60})\n\
                getServer(1):setDown()\n\
                addAction(QTypeRule(DNSQType.A), PoolAction('down'))";
    vec![
        row(
            "dnsdist refuses one of three names",
            server("addAction(QNameRule('test-record-1.lab.test'), RCodeAction(DNSRCode.REFUSED))"),
            || udp(900.0).names(3),
            REFUSED,
        ),
        row(
            "dnsdist drops one of three names",
            server("addAction(QNameRule('test-record-1.lab.test'), DropAction())"),
            || udp(900.0).names(3),
            ONE_NAME,
        ),
        row(
            "dnsdist with a server that is down",
            server(pool),
            || udp(800.0),
            SILENT,
        ),
        row(
            "dnsdist with a server that is down, SERVFAIL",
            server(&format!("setServFailWhenNoServer(true)\n{pool}")),
            || udp(800.0),
            SERVFAIL,
        ),
        row(
            "dnsdist five TCP connections a client, of 20",
            few(),
            tcp,
            CLIENTS,
        )
        .followed_by(server("setMaxTCPConnectionsPerClient(50)")),
        row(
            "dnsdist five TCP connections a client, of 20, DoT",
            few(),
            dot,
            CLIENTS,
        ),
    ]
}
