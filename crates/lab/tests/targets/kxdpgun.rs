//! `kxdpgun`, which sends from below the kernel's sockets, against our responder.
//!
//! It needs a network of its own: two namespaces without names and a veth pair between them, which
//! are gone with the processes in them. The test starts itself again in the first, with the
//! responder; `kxdpgun` runs in the second. Needs root.

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;

use lab::target::{Namespace, prepared};
use proto::Transport;
use responder::Counters;

use crate::numbers_after;
use crate::responder::{Responder, existing_of};

/// What `kxdpgun` can ask over and the responder has, with its flag.
const OVER: [(Transport, &[&str]); 3] = [
    (Transport::Udp, &[]),
    (Transport::Tcp, &["--tcp"]),
    (Transport::Doq, &["--quic"]),
];

const NAME: &str = "kxdpgun::kxdpgun_gets_every_response_from_the_responder_over_a_veth_pair";

/// Set in the test that runs within the first namespace.
const INSIDE: &str = "THRONG_LAB_WITHIN_NAMESPACE";

/// Queries a second, low enough for a machine that is busy with other things, for three seconds.
/// Over QUIC each has its own handshake.
const fn rate_qps(transport: Transport) -> u64 {
    match transport {
        Transport::Doq => 100,
        _ => 2_000,
    }
}

/// Runs of which one must lose nothing: a busy host drops frames.
const RUNS_MAX: usize = 5;

/// A command line that runs in the other namespace.
fn within(other: &Namespace, program: &Command) -> Command {
    let mut command = other.command(program.get_program());
    command.args(program.get_args());
    command
}

fn done(mut command: Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{text}");
    text
}

fn words(line: &str) -> Command {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    command
}

/// A veth pair between this namespace and another; returns the address at this end. What is
/// offloaded to a network card that is not there would reach `kxdpgun` unfinished, because it
/// reads frames.
///
/// Each run has a pair of its own, `number`: the kernel takes its time to free an XDP socket's
/// queue.
fn connect(other: &Namespace, number: u8) -> Ipv4Addr {
    let [here, there] = [1, 2].map(|end| Ipv4Addr::new(10, 53, number, end));
    let name = format!("here{number}");
    let off = "tx off rx off gso off gro off tso off";
    let peer = format!("peer name there netns {}", other.id());
    for line in [
        "ip link set lo up",
        &format!("ip link add {name} type veth {peer}"),
        &format!("ip addr add {here}/24 dev {name}"),
        &format!("ip link set {name} up"),
        &format!("ethtool -K {name} {off}"),
    ] {
        done(words(line));
    }
    for line in [
        &format!("ip addr add {there}/24 dev there"),
        "ip link set there up",
        &format!("ethtool -K there {off}"),
    ] {
        done(within(other, &words(line)));
    }
    here
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

#[test]
fn kxdpgun_gets_every_response_from_the_responder_over_a_veth_pair() {
    if std::env::var_os(INSIDE).is_some() {
        run_within();
    } else if is_root() {
        let mut command = words("setpriv --pdeathsig KILL -- unshare --net");
        command.arg(std::env::current_exe().unwrap());
        command.args(["--exact", NAME]).env(INSIDE, "1");
        let text = done(command);
        assert!(text.contains("1 passed"), "{text}");
    } else {
        eprintln!("not tried: kxdpgun and network namespaces need root");
    }
}

fn run_within() {
    let mut numbers = 1..;
    for (transport, flags) in OVER {
        for program in [
            || Command::new("kxdpgun"),
            || prepared::debian13("usr/sbin/kxdpgun").unwrap(),
        ] {
            let mut runs = numbers.by_ref().take(RUNS_MAX);
            let whole = runs.any(|number| run(number, program(), transport, flags));
            assert!(
                whole,
                "over {transport} each of {RUNS_MAX} runs lost queries"
            );
        }
    }
}

/// Runs once; false if the host lost queries or responses on the way, which `kxdpgun` does not
/// repeat.
fn run(number: u8, mut program: Command, transport: Transport, flags: &[&str]) -> bool {
    let other = Namespace::new().unwrap();
    let address = connect(&other, number);
    let target = Responder::start(address.into(), &[transport], "kxdpgun");
    let port = target.address(transport).port();
    let rate_qps = rate_qps(transport).to_string();
    program.args(["--duration", "3", "--qps", &rate_qps]);
    program.args(["--port", &port.to_string()]);
    program.arg("--infile").arg(target.write_names());
    program.args(flags).arg(address.to_string());
    let text = done(within(&other, &program));
    let counters = target.serving.stop();
    if transport == Transport::Doq {
        return check_quic(&text, &counters);
    }
    let received = counters.queries.get(transport);
    assert_eq!(counters.responses.get(transport), received, "{text}");
    let Some(queries) = check(transport, &text) else {
        return false;
    };
    assert_eq!(received, queries, "{text}");
    true
}

/// Whether nearly all connections got their response; those that did are checked.
fn check_quic(text: &str, counters: &Counters) -> bool {
    let number = |label: &str| numbers_after(text, label).first().copied().unwrap_or(0);
    let (connections, replies) = (number("total initials:"), number("total replies:"));
    let with_rcode = number("responded NOERROR:") + number("responded NXDOMAIN:");
    assert_eq!(with_rcode, replies, "{text}");
    assert!(number("responded NXDOMAIN:") > 0, "{text}");
    assert!(
        counters.queries.get(Transport::Doq) >= replies,
        "{text}\n{counters}"
    );
    assert_eq!(counters.doq_failed, 0, "{counters}");
    connections >= 100 && replies * 10 >= connections * 9
}

/// If every query has its response, that has the RCODE of the zone; returns their number.
fn check(transport: Transport, text: &str) -> Option<u64> {
    let label = match transport {
        Transport::Udp => "total queries:",
        _ => "total established:",
    };
    let number = |label: &str| numbers_after(text, label).first().copied().unwrap_or(0);
    let queries = number(label);
    if queries < 3_000 || number("total replies:") < queries {
        return None;
    }
    assert_eq!(number("responded NOERROR:"), existing_of(queries), "{text}");
    let missing = queries - existing_of(queries);
    assert_eq!(number("responded NXDOMAIN:"), missing, "{text}");
    if transport != Transport::Udp {
        assert_eq!(number("total closed:"), queries, "{text}");
    }
    Some(queries)
}
