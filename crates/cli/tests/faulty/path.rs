//! What becomes of runs whose path to the target breaks: two network namespaces with a veth pair
//! between them, the run at `near`, the responder at `far`.

use measure::Limit::{Network, Server, Unknown};
use measure::RunRecord;
use proto::Transport::{Doq, Dot, Tcp, Udp};

use super::fault::{ALL, Do, Ends, Fault, QUIC, Target, When};

/// For a line of `ip` at one end.
macro_rules! near {
    ($line:literal) => {
        Do::Shell(concat!("nsenter --target $NEAR --net -- ", $line))
    };
}
macro_rules! far {
    ($line:literal) => {
        Do::Shell(concat!("nsenter --target $FAR --net -- ", $line))
    };
}

const FAR: Fault = Fault {
    target: Target::Far(""),
    over: &[Udp, Tcp, Doq],
    flags: "--duration 2s --timeout 2s",
    ..Fault::NONE
};

fn lost(record: &RunRecord) -> u64 {
    record.total.counts.lost()
}

fn not_sent(record: &RunRecord) -> u64 {
    record.total.counts.not_sent.total()
}

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "link down for a while",
        over: &[Udp],
        meanwhile: &[
            (When::Shown(4), near!("ip link set near down")),
            (When::Shown(11), near!("ip link set near up")),
        ],
        ends: Ends::measured(&[Network], "this host could send nothing").seen(not_sent),
        ..FAR
    },
    Fault {
        name: "link down for a while, with connections",
        over: &[Tcp, Dot, Doq],
        meanwhile: &[
            (When::Shown(4), near!("ip link set near down")),
            (When::Shown(11), near!("ip link set near up")),
        ],
        ends: Ends::measured(&[Network], "this host could send nothing"),
        ..FAR
    },
    Fault {
        name: "interface deleted",
        over: &[Udp],
        meanwhile: &[(When::Shown(4), near!("ip link del near"))],
        ends: Ends::measured(&[Network], "this host could send nothing").seen(not_sent),
        ..FAR
    },
    Fault {
        name: "interface deleted, with connections",
        over: &[Tcp, Dot, Doq],
        meanwhile: &[(When::Shown(4), near!("ip link del near"))],
        ends: Ends::measured(&[Network], "this host could send nothing").seen(lost),
        ..FAR
    },
    Fault {
        name: "address removed",
        meanwhile: &[(When::Shown(4), near!("ip addr flush dev near"))],
        ends: Ends::measured(&[Network], "this host could send nothing").seen(lost),
        ..FAR
    },
    Fault {
        name: "address of the target removed",
        meanwhile: &[(When::Shown(4), far!("ip addr flush dev far"))],
        ends: Ends::measured(&[Server], "to the end of the run").seen(lost),
        ..FAR
    },
    Fault {
        name: "cable cut at the other end",
        // The kernel tells of a carrier within a second.
        flags: "--duration 4s --timeout 2s",
        meanwhile: &[
            (When::Shown(4), far!("ip link set far down")),
            (When::Shown(32), far!("ip link set far up")),
        ],
        ends: Ends::measured(&[Network], "this host could send nothing"),
        ..FAR
    },
    Fault {
        name: "route to nowhere (blackhole)",
        meanwhile: &[(When::Shown(4), near!("ip route add blackhole 10.79.0.2/32"))],
        ends: Ends::measured(&[Network], "got no response").seen(lost),
        ..FAR
    },
    Fault {
        name: "route that says unreachable",
        meanwhile: &[(
            When::Shown(4),
            near!("ip route add unreachable 10.79.0.2/32"),
        )],
        ends: Ends::measured(&[Network], "got no response").seen(lost),
        ..FAR
    },
    Fault {
        name: "route that is prohibited",
        meanwhile: &[(When::Shown(4), near!("ip route add prohibit 10.79.0.2/32"))],
        ends: Ends::measured(&[Network], "got no response").seen(lost),
        ..FAR
    },
    Fault {
        name: "no way back",
        meanwhile: &[(When::Shown(4), far!("ip route add blackhole 10.79.0.1/32"))],
        ends: Ends::measured(&[Server], "got no response").seen(lost),
        ..FAR
    },
    Fault {
        name: "another station has the address",
        over: ALL,
        meanwhile: &[
            (
                When::Shown(4),
                near!("ip neigh replace 10.79.0.2 lladdr 02:00:00:00:00:09 dev near nud permanent"),
            ),
            (When::Shown(11), near!("ip neigh del 10.79.0.2 dev near")),
        ],
        ends: Ends::measured(&[Server], "nothing came back"),
        ..FAR
    },
    Fault {
        name: "a link that is full",
        over: &[Udp],
        meanwhile: &[(
            When::Shown(4),
            near!("tc qdisc add dev near root tbf rate 100kbit burst 2k limit 2k"),
        )],
        ends: Ends::measured(&[Network], "got no response").seen(lost),
        ..FAR
    },
    Fault {
        name: "MTU below what responses need",
        over: &[Udp],
        before: "nsenter --target $NEAR --net -- ip link set near mtu 576",
        target: Target::Far("--oversize 1"),
        flags: "--rate 100 --timeout 2s --edns-size 4096",
        ends: Ends::in_vain("no response to"),
        ..FAR
    },
    Fault {
        name: "MTU below what QUIC needs",
        over: QUIC,
        before: "nsenter --target $NEAR --net -- ip link set near mtu 1000",
        // Probes, which are smaller, go through after a second.
        flags: "--timeout 400ms",
        ends: Ends::refused("no response in time"),
        ..FAR
    },
    Fault {
        name: "MTU that shrinks in mid-run",
        over: &[Doq, Tcp, Udp],
        meanwhile: &[(When::Shown(4), near!("ip link set near mtu 600"))],
        ends: Ends::measured(&[measure::Limit::Rate], ""),
        ..FAR
    },
    Fault {
        name: "no route from the beginning",
        over: ALL,
        before: "nsenter --target $NEAR --net -- ip route flush dev near",
        ends: Ends::refused("cannot reach"),
        ..FAR
    },
    Fault {
        name: "few local ports",
        over: &[Tcp],
        before: "nsenter --target $NEAR --net -- sh -c \
                 'echo 40000 40001 >/proc/sys/net/ipv4/ip_local_port_range'",
        flags: "--clients 8",
        ends: Ends::refused("8 clients need 4 source addresses with 2 ports each"),
        ..FAR
    },
    Fault {
        name: "loopback is down",
        over: &[Udp, Tcp],
        target: Target::BuiltIn { alone: true },
        flags: "--duration 1100ms",
        ends: Ends::refused("cannot reach"),
        ..FAR
    },
    Fault {
        name: "addresses of another host",
        over: &[Udp, Doq],
        flags: "--local-address 192.0.2.1",
        ends: Ends::refused("cannot send from --local-address 192.0.2.1"),
        ..FAR
    },
    Fault {
        name: "losses that nothing explains",
        over: &[Udp],
        target: Target::Far("--loss 0.1"),
        ends: Ends::measured(&[Unknown], "nothing shows that the load is the cause").seen(lost),
        ..FAR
    },
];
