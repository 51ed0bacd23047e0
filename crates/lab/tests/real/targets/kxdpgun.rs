//! `kxdpgun`, which sends from below the kernel's sockets, against our responder.
//!
//! It needs a network of its own: two namespaces without names and a veth pair between them, which
//! are gone with the processes in them. The test starts itself again in the first, with the
//! responder; `kxdpgun` runs in the second. Needs root.

use std::net::Ipv4Addr;
use std::process::Command;

use lab::target::{Namespace, prepared};
use proto::Transport;
use responder::Counters;
use testing::host::is_root_for;

use crate::numbers_after;
use crate::responder::{Responder, existing_of};

/// What `kxdpgun` can ask over and the responder has, with its flag.
const OVER: [(Transport, &[&str]); 3] = [
    (Transport::Udp, &[]),
    (Transport::Tcp, &["--tcp"]),
    (Transport::Doq, &["--quic"]),
];

const NAME: &str =
    "kxdpgun::kxdpgun_gets_responses_from_the_responder_over_a_veth_pair_and_both_counts_add_up";

/// Set in the test that runs within the first namespace.
const INSIDE: &str = "THRONG_LAB_WITHIN_NAMESPACE";

/// Queries a second, for a second. Over QUIC each has its own handshake.
const fn rate_qps(transport: Transport) -> u64 {
    match transport {
        Transport::Doq => 100,
        _ => 2_000,
    }
}

/// Runs of which one must have responses: a host that is busy for a second has none in time.
const RUNS_MAX: usize = 20;

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
    let [mac_here, mac_there] = [1, 2].map(|end| format!("02:00:00:00:{number:02x}:{end:02x}"));
    let peer = format!("peer name there address {mac_there} netns {}", other.id());
    for line in [
        "ip link set lo up",
        &format!("ip link add {name} address {mac_here} type veth {peer}"),
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
        // `kxdpgun` gives up if ARP takes a busy host too long.
        &format!("ip neigh add {here} lladdr {mac_here} dev there nud permanent"),
    ] {
        done(within(other, &words(line)));
    }
    here
}

#[test]
fn kxdpgun_gets_responses_from_the_responder_over_a_veth_pair_and_both_counts_add_up() {
    if std::env::var_os(INSIDE).is_some() {
        run_within();
    } else if is_root_for("kxdpgun and network namespaces") {
        let mut command = words("setpriv --pdeathsig KILL -- unshare --net");
        command.arg(std::env::current_exe().unwrap());
        command.args(["--exact", NAME]).env(INSIDE, "1");
        let text = done(command);
        assert!(text.contains("1 passed"), "{text}");
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
            let is_answered = runs.any(|number| run(number, program(), transport, flags));
            assert!(is_answered, "over {transport} in {RUNS_MAX} runs");
        }
    }
}

/// Runs once; true if there were responses of each kind. `kxdpgun` repeats nothing, so that a busy
/// host loses some.
fn run(number: u8, mut program: Command, transport: Transport, flags: &[&str]) -> bool {
    let other = Namespace::new().unwrap();
    let address = connect(&other, number);
    let target = Responder::start(address.into(), &[transport], "kxdpgun");
    let port = target.address(transport).port();
    let rate_qps = rate_qps(transport).to_string();
    program.args(["--duration", "1", "--qps", &rate_qps]);
    program.args(["--port", &port.to_string()]);
    program.arg("--infile").arg(target.write_names());
    program.args(flags).arg(address.to_string());
    let text = done(within(&other, &program));
    check(transport, &text, &target.serving.stop())
}

/// Checks that what both ends counted adds up; true if there were responses of each kind.
fn check(transport: Transport, text: &str, counters: &Counters) -> bool {
    let number = |label: &str| numbers_after(text, label).first().copied().unwrap_or(0);
    // A connection has one query, unless its handshake comes to nothing.
    let label = match transport {
        Transport::Udp => "total queries:",
        Transport::Doq => "total initials:",
        _ => "total established:",
    };
    let (sent, replies) = (number(label), number("total replies:"));
    let received = counters.queries.get(transport);
    let responses = counters.responses.get(transport);
    assert!(replies <= responses, "{text}\n{counters}");
    assert_eq!(responses, received, "{text}\n{counters}");
    assert!(received <= sent, "{text}\n{counters}");
    assert_eq!(counters.doq_failed, 0, "{counters}");
    let (existing, missing) = (number("responded NOERROR:"), number("responded NXDOMAIN:"));
    assert_eq!(existing + missing, replies, "{text}");
    // All names are sent equally often.
    assert!(existing <= existing_of(sent), "{text}");
    assert!(missing <= sent - existing_of(sent), "{text}");
    existing > 0 && missing > 0
}
