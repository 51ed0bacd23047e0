//! The rows: each a policy, a load, and the verdicts that are right.

use lab::target::products::{BIND, COREDNS, DNSDIST, KNOT, NSD, PDNS_AUTH, PDNS_RECURSOR, UNBOUND};
use measure::Limit;
use proto::Transport;

use crate::bench::Load;

use super::equipment::{Asking, Expected, MakeLoad, Row, Run, Server, closed, over, udp};

mod authorities;
mod bind;
mod dnsdist;
mod unbound;

pub(super) fn all() -> Vec<Row> {
    let of_products = [
        bind::rows(),
        unbound::rows(),
        authorities::rows(),
        dnsdist::rows(),
    ];
    let others = [quotas(), delayed_acknowledgements(), healthy()];
    [of_products.concat(), others.concat()].concat()
}

/// A limit on the rate that answers nothing while it is exceeded, as a stopped server does.
const ADMITS_OR_STOPPED: Expected = Expected {
    limits: &[Limit::Policy, Limit::Unknown],
    said: &[
        "admits a fixed rate",
        "cannot tell a limit of",
        "or answers nothing while a limit on the rate is exceeded",
    ],
    not_said: &["an outage of", "lost on the path", "clients at once"],
};
/// The same of a closed loop, whose slots wait for what was dropped.
const HOLDS_SLOTS: Expected = Expected {
    limits: &[Limit::Unknown],
    said: &[
        "slots were held by lost queries",
        "or answers nothing while a limit on the rate",
    ],
    ..ADMITS_OR_STOPPED
};
/// The same of a server that is observed: it counts what it drops.
const DROPS_COUNTED: Expected = Expected {
    limits: &[Limit::Policy],
    said: &["by its own count"],
    ..ADMITS_OR_STOPPED
};
/// A server that closes TCP connections while the limit is exceeded.
const ADMITS_OR_CLOSES: Expected = Expected {
    limits: &[Limit::Server, Limit::Unknown],
    said: &[
        "connections",
        "or answers nothing while a limit on the rate is exceeded",
    ],
    not_said: &["an outage of", "clients at once", "the path"],
};
/// A limit on the rate that answers some of the excess at random, or answers in bursts.
const ADMITS_OR_LOSES: Expected = Expected {
    limits: &[Limit::Policy, Limit::Unknown],
    said: &[
        "admits a fixed rate",
        "cannot tell a limit of",
        "nothing shows that the load is the cause",
    ],
    not_said: &["outage of", "lost on the path", "clients at once"],
};
/// A share of the queries is dropped, whatever the rate.
const LOSES: Expected = Expected {
    limits: &[Limit::Unknown],
    said: &["nothing shows that the load is the cause"],
    not_said: &["outage of", "a fixed rate", "clients at once"],
};
/// Truncated responses in place of answers.
const TRUNCATED: Expected = Expected {
    said: &["of the responses were truncated"],
    ..ADMITS_OR_LOSES
};
const fn useless(said: &'static [&'static str]) -> Expected {
    Expected {
        limits: &[Limit::Unknown],
        said,
        not_said: &["outage of", "a fixed rate", "clients at once", "the path"],
    }
}
const REFUSED: Expected = useless(&["of the responses were REFUSED"]);
const SERVFAIL: Expected = useless(&["of the responses were SERVFAIL"]);
const NXDOMAIN: Expected = useless(&["of the responses were NXDOMAIN"]);
const NODATA: Expected = useless(&["of the responses were NODATA"]);
const SILENT: Expected = useless(&["no response to"]);
/// One of three names gets no response.
const ONE_NAME: Expected = Expected {
    limits: &[Limit::Server, Limit::Unknown],
    said: &["all queries for 1 of 3 names got no response, the others did: test-record-1.lab.test"],
    not_said: &["outage of", "a fixed rate", "clients at once", "the path"],
};
/// Clients that a source address keeps out.
const SOME_CLIENTS: Expected = Expected {
    limits: &[Limit::Unknown],
    said: &["got no response at all, while the others did"],
    not_said: &["outage of", "a fixed rate", "clients at once"],
};
/// A limit on the number of connections.
const CLIENTS: Expected = Expected {
    limits: &[Limit::Server],
    said: &[
        "the target serves no more than",
        "TCP clients at once by its own count",
    ],
    not_said: &["outage of", "a fixed rate", "the path"],
};
/// A limit on queries at work for a slow upstream: an observed server counts what it drops.
const QUERIES: Expected = Expected {
    limits: &[Limit::Unknown],
    said: &[
        "nothing shows that the load is the cause",
        "of the responses were SERVFAIL",
    ],
    not_said: &["outage of", "lost on the path", "clients at once"],
};
const QUERIES_COUNTED: Expected = Expected {
    limits: &[Limit::Policy],
    said: &["by its own count"],
    ..QUERIES
};
/// A server whose kernel holds responses back until others are acknowledged.
const DELAYED_ACKNOWLEDGEMENTS: Expected = Expected {
    limits: &[Limit::Unknown],
    said: &["small segments that wait for an acknowledgement"],
    not_said: &[
        "outage of",
        "queued at the target",
        "was set by --outstanding",
        "the path loses",
    ],
};
/// The same that is acknowledged at once, and may use up a CPU.
const ACKNOWLEDGED: Expected = Expected {
    limits: &[
        Limit::Server,
        Limit::Generator,
        Limit::Outstanding,
        Limit::Unknown,
    ],
    said: &[],
    not_said: &["that wait for an acknowledgement", "outage of"],
};
/// A server that delays some queries.
const DELAYS: Expected = Expected {
    limits: &[Limit::Unknown],
    said: &["against a median of"],
    not_said: &["outage of", "a fixed rate", "clients at once"],
};
/// A server that has used up its CPU, or shares it with the generator.
const BUSY: Expected = Expected {
    limits: &[Limit::Server, Limit::Generator],
    said: &["CPU", "queued at the target"],
    not_said: &[
        "outage of",
        "a fixed rate",
        "clients at once",
        "lost on the path",
    ],
};
/// A server that its CPU quota stops, which nothing but the kernel tells.
const QUOTA: Expected = Expected {
    limits: &[Limit::Server],
    said: &["the CPU quota of the target on this host was used up in"],
    not_said: &[
        "outage of",
        "a fixed rate",
        "clients at once",
        "lost on the path",
        "stop the other processes",
    ],
};
/// A server that keeps up has no limit.
const HELD: Expected = Expected {
    limits: &[Limit::Rate],
    said: &["were answered"],
    not_said: &[
        "outage of",
        "a fixed rate",
        "clients at once",
        "the path",
        "fell behind",
    ],
};

fn row(name: &'static str, server: Server, load: MakeLoad, expected: Expected) -> Row {
    Row {
        name,
        run: Run {
            server,
            load,
            is_observed: false,
            expected,
        },
        followed: None,
        is_busy: false,
    }
}

impl Row {
    fn observed(mut self) -> Row {
        self.run.is_observed = true;
        self
    }

    fn busy(mut self) -> Row {
        self.is_busy = true;
        self
    }

    /// With the advice followed by another load, this is right to say.
    fn followed_by_load(mut self, load: MakeLoad, expected: Expected) -> Row {
        self.followed = Some(Run {
            load,
            expected,
            ..self.run.clone()
        });
        self
    }

    /// With the advice followed by another server, the rate is held.
    fn followed_by(mut self, server: Server) -> Row {
        self.followed = Some(Run {
            server,
            expected: HELD,
            ..self.run.clone()
        });
        self
    }
}

fn quotas() -> Vec<Row> {
    let all = || closed(Transport::Udp, 50);
    let dot = || closed(Transport::Dot, 20);
    let rows: [(&'static str, Server, MakeLoad); 3] = [
        (
            "CoreDNS uses up its CPU quota",
            Server::new(&COREDNS, ""),
            all,
        ),
        ("Knot uses up its CPU quota", Server::new(&KNOT, ""), all),
        (
            "Unbound uses up its CPU quota, DoT",
            Server::new(&UNBOUND, ""),
            dot,
        ),
    ];
    rows.map(|(name, server, load)| row(name, server.quota("0.1"), load, QUOTA).busy())
        .into()
}

/// Some queries on each connection of DoT: they wait behind the session tickets.
fn delayed_acknowledgements() -> Vec<Row> {
    fn dot(queries: u32) -> Load {
        let load = closed(Transport::Dot, 20).clients(5);
        load.plan(|plan| plan.connections.queries_max = Some(queries))
    }
    let rows: [(&'static str, Server, MakeLoad, MakeLoad); 2] = [
        (
            "Unbound with a query on each connection of DoT",
            Server::new(&UNBOUND, ""),
            || dot(1),
            || dot(1).plan(|plan| plan.sockets.tcp_quickack = true),
        ),
        (
            "BIND with four queries on each connection of DoT",
            Server::new(&BIND, ""),
            || dot(4),
            || dot(4).plan(|plan| plan.sockets.tcp_quickack = true),
        ),
    ];
    rows.map(|(name, server, load, quick)| {
        let row = row(name, server, load, DELAYED_ACKNOWLEDGEMENTS);
        row.followed_by_load(quick, ACKNOWLEDGED).busy()
    })
    .into()
}

fn healthy() -> Vec<Row> {
    let bind = || Server::new(&BIND, "");
    let unbound = || Server::new(&UNBOUND, "");
    let nsd = || Server::new(&NSD, "");
    let knot = || Server::new(&KNOT, "");
    let dnsdist = || Server::new(&DNSDIST, "");
    let coredns = || Server::new(&COREDNS, "");
    let powerdns = || Server::new(&PDNS_AUTH, "");
    let recursor = || Server::new(&PDNS_RECURSOR, "");
    let some = || udp(1_000.0);
    let half = || udp(1_000.0).half_missing();
    let tcp = || over(Transport::Tcp, 800.0);
    let dot = || over(Transport::Dot, 400.0);
    let doh = || over(Transport::Doh2, 400.0);
    let rows: [(&'static str, Server, MakeLoad); 22] = [
        ("BIND keeps up, DoH", bind(), doh),
        ("Unbound keeps up, DoT", unbound(), dot),
        ("Unbound keeps up, DoH", unbound(), doh),
        ("BIND keeps up, UDP", bind(), some),
        ("BIND keeps up, TCP", bind(), tcp),
        ("BIND keeps up, DoT", bind(), dot),
        ("BIND keeps up, half of the names missing", bind(), half),
        ("Unbound keeps up, UDP", unbound(), some),
        ("Unbound keeps up, TCP", unbound(), tcp),
        (
            "Unbound keeps up, half of the names missing",
            unbound(),
            half,
        ),
        ("NSD keeps up, UDP", nsd(), some),
        ("NSD keeps up, TCP", nsd(), tcp),
        ("NSD keeps up, DoT", nsd(), dot),
        ("Knot keeps up, UDP", knot(), some),
        ("Knot keeps up, TCP", knot(), tcp),
        ("dnsdist keeps up, UDP", dnsdist(), some),
        ("dnsdist keeps up, TCP", dnsdist(), tcp),
        ("CoreDNS keeps up, UDP", coredns(), some),
        (
            "CoreDNS keeps up, half of the names missing",
            coredns(),
            half,
        ),
        ("PowerDNS keeps up, UDP", powerdns(), some),
        ("PowerDNS keeps up, TCP", powerdns(), tcp),
        ("PowerDNS Recursor keeps up, UDP", recursor(), some),
    ];
    rows.map(|(name, server, load)| row(name, server, load, HELD))
        .into()
}
