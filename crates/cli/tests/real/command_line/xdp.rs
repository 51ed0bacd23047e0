//! `--driver xdp` between two network namespaces with a veth pair between them.
//!
//! The namespaces have no names and are gone with the processes in them. Needs root, as AF_XDP
//! does.

use std::fs;
use std::process::Stdio;
use std::time::Instant;

use lab::target::Namespace;
use measure::{DriverKind, RunRecord};
use testing::folder::Folder;
use testing::program::{Finished, execute};

use crate::process::{Responder, THRONG, throng};

/// One end of the pair.
struct End(Namespace);

impl End {
    fn execute(&self, line: &str) -> Finished {
        let id = self.0.id();
        execute(&format!("nsenter --target {id} --net -- {line}"))
    }

    fn throng(&self, flags: &str) -> Finished {
        self.execute(&format!("{THRONG} {flags}"))
    }

    fn measured(&self, flags: &str) -> RunRecord {
        let line = format!("run --quiet --format json {flags}");
        let stdout = self.throng(&line).succeeded();
        RunRecord::from_json(&stdout).unwrap_or_else(|reason| panic!("{flags}: {reason}"))
    }

    fn has_program(&self) -> bool {
        let text = self.execute("ip -d link show near").succeeded();
        text.contains("prog/xdp")
    }
}

/// `near`, where load is sent, and `far`, where responders are; each with an interface of that
/// name.
struct Wire {
    near: End,
    far: End,
}

/// Frames that the kernel sends by itself at most: router solicitations, multicast listeners
/// (RFC 4861 and RFC 3810). They are dropped and counted like those of the run.
const FRAMES_OF_KERNEL_MAX: u64 = 20;
const FAR: [&str; 2] = ["10.78.0.2", "[fd78::2]"];

impl Wire {
    fn lay() -> Option<Wire> {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        if !status.lines().any(|line| line.starts_with("Uid:\t0\t")) {
            eprintln!("not tried: AF_XDP and network namespaces need root");
            return None;
        }
        let wire = Wire {
            near: End(Namespace::new().unwrap()),
            far: End(Namespace::new().unwrap()),
        };
        let peer = format!("peer name far netns {}", wire.far.0.id());
        wire.near
            .execute(&format!("ip link add near type veth {peer}"))
            .succeeded();
        for (end, name, host) in [(&wire.near, "near", 1), (&wire.far, "far", 2)] {
            for line in [
                "ip link set lo up".to_owned(),
                format!("ip addr add 10.78.0.{host}/24 dev {name}"),
                format!("ip addr add fd78::{host}/64 dev {name} nodad"),
                format!("ip link set {name} up"),
            ] {
                end.execute(&line).succeeded();
            }
        }
        Some(wire)
    }

    fn responder(&self, listen: &str, flags: &str) -> Responder {
        Responder::start_by(self.far.0.command(THRONG), listen, flags)
    }
}

#[test]
fn every_datagram_transport_is_answered_by_a_responder_on_sockets_and_on_frames() {
    let Some(wire) = Wire::lay() else { return };
    let folder = Folder::new("xdp-transports");
    let names = folder.write("names.txt", "a.example A\nbb.example AAAA +do\n");
    for server in ["--driver epoll", "--driver xdp --interface far"] {
        for transport in ["udp", "doq", "doh3"] {
            for address in FAR {
                let responder = wire.responder(&format!("{transport}:{address}:0"), server);
                let trust = if transport == "udp" {
                    ""
                } else {
                    "--tls-insecure"
                };
                let target = responder.address();
                let record = wire.near.measured(&format!(
                    "--driver xdp --interface near --server {target} --transport {transport} \
                     --names {names} --queries 3000 --clients 7 {trust}"
                ));
                let counters = responder.counters();
                let counts = &record.total.counts;
                let context = format!("{transport} {target} {server}\n{}", counters.0);
                assert_eq!((counts.sent, counts.responses), (3000, 3000), "{context}");
                assert_eq!(counters.get("queries received"), 3000, "{context}");
                assert_eq!(counters.get("responses sent"), 3000, "{context}");
                assert_eq!(record.driver, DriverKind::Xdp);
                let reason = record.driver_reason.as_deref().unwrap();
                assert!(reason.contains("on near, native copy mode"), "{reason}");
                let xdp = record.network.xdp.as_ref().unwrap();
                let lost = [
                    xdp.receive_ring_full,
                    xdp.receive_dropped,
                    xdp.checksums_wrong,
                ];
                assert_eq!(lost, [0; 3], "{context}");
                assert!(record.network.datagrams_sent >= 3000 || transport != "udp");
            }
        }
    }
}

#[test]
fn clients_have_many_addresses_and_sockets_reach_a_responder_on_frames() {
    let Some(wire) = Wire::lay() else { return };
    let folder = Folder::new("xdp-addresses");
    let names = folder.write("names.txt", "a.example A\n");
    for host in 16..24 {
        wire.near
            .execute(&format!("ip addr add 10.78.0.{host}/24 dev near"))
            .succeeded();
    }
    for driver in ["--driver xdp --interface near", "--driver epoll"] {
        let responder = wire.responder("udp:10.78.0.2:0", "--driver xdp --interface far");
        let record = wire.near.measured(&format!(
            "{driver} --server {} --names {names} --queries 2000 --clients 24 \
             --local-address 10.78.0.16/29",
            responder.address()
        ));
        let counters = responder.counters();
        assert_eq!(record.total.counts.responses, 2000, "{driver}");
        assert_eq!(
            counters.get("queries received"),
            2000,
            "{driver}\n{}",
            counters.0
        );
    }
}

#[test]
fn every_frame_that_the_other_end_drops_is_counted_there_and_here() {
    let Some(wire) = Wire::lay() else { return };
    let folder = Folder::new("xdp-drops");
    let names = folder.write("names.txt", "a.example A\n");
    let path = folder.path("record.json");
    let responder = wire.responder("udp:10.78.0.2:0", "--driver xdp --interface far");
    // A host that is short of CPU time: nobody reads.
    responder.signal("STOP");
    let text = wire.near.throng(&format!(
        "run --quiet --driver xdp --interface near --server {} --names {names} --no-preflight \
         --queries 20000 --outstanding 20000 --clients 20 --timeout 1s --details --record {path}",
        responder.address()
    ));
    let text = text.ended_with(1);
    responder.signal("CONT");
    let counters = responder.counters();
    let record = RunRecord::from_json(&fs::read_to_string(&path).unwrap()).unwrap();
    let xdp = record.network.xdp.as_ref().unwrap();
    let dropped = counters.get("datagrams dropped on receiving");
    assert!(dropped > 0, "{}", counters.0);
    // The run reads the same counter of the kernel, some time before the responder does.
    let meanwhile = dropped.checked_sub(xdp.peer_received_dropped);
    let is_of_kernel = meanwhile.is_some_and(|it| it <= FRAMES_OF_KERNEL_MAX);
    assert!(is_of_kernel, "{xdp:?} {}", counters.0);
    // As many as the responder had frames for waited there.
    let most = 20_000 - 4_096 + FRAMES_OF_KERNEL_MAX;
    let lost = xdp.dropped_by_peer();
    assert!((20_000 - 4_096..=most).contains(&lost), "{xdp:?}");
    assert_eq!(xdp.dropped_before_ring(), 0, "{xdp:?}");
    let row = "frames from the interface, on leaving it or at the other end of a veth pair";
    assert!(
        text.contains("dropped beyond") && text.contains(row),
        "{text}"
    );
    let found = throng(&format!("doctor {path}")).stdout;
    assert!(found.contains("queues beyond the interface"), "{found}");
}

#[test]
fn a_run_that_is_killed_leaves_no_program_and_a_second_one_is_refused() {
    let Some(wire) = Wire::lay() else { return };
    let folder = Folder::new("xdp-killed");
    let names = folder.write("names.txt", "a.example A\n");
    let responder = wire.responder("udp:10.78.0.2:0", "");
    let flags = format!(
        "run --quiet --driver xdp --interface near --server {} --names {names}",
        responder.address()
    );
    let mut command = wire.near.0.command(THRONG);
    command
        .args(flags.split_whitespace())
        .args(["--duration", "50s"]);
    let mut run = command.stdout(Stdio::null()).spawn().unwrap();
    while !wire.near.has_program() {
        assert!(run.try_wait().unwrap().is_none(), "it ended early");
    }
    let (error, _) = wire.near.throng(&format!("{flags} --queries 5")).refused();
    assert!(
        error.contains("`near` is in use for XDP already"),
        "{error}"
    );
    run.kill().unwrap();
    run.wait().unwrap();
    // The kernel takes the program off in its own time.
    let begun = Instant::now();
    while wire.near.has_program() {
        assert!(
            begun.elapsed().as_secs() < 120,
            "the program is still there"
        );
    }
    let text = wire
        .near
        .throng(&format!("{flags} --queries 5 --details"))
        .succeeded();
    assert!(text.contains("on near, native copy mode"), "{text}");
}

#[test]
fn a_missing_interface_and_the_loopback_are_refused() {
    let folder = Folder::new("xdp-interface");
    let names = folder.write("names.txt", "a.example A\n");
    let run = format!("run --names {names} --server 127.0.0.1:53 --no-preflight --driver xdp");
    for (interface, error_part) in [
        ("no-such-if", "there is no interface `no-such-if`"),
        ("lo", "loopback"),
    ] {
        throng(&format!("{run} --interface {interface}")).refused_with(error_part, "--driver");
    }
}

#[test]
fn without_the_rights_it_says_what_is_missing() {
    let Some(wire) = Wire::lay() else { return };
    let folder = Folder::new("xdp-rights");
    let names = folder.write("names.txt", "a.example A\n");
    let flags = "--server 10.78.0.2:53 --no-preflight --driver xdp --interface near";
    let line = format!("setpriv --bounding-set -all {THRONG} run --names {names} {flags}");
    wire.near
        .execute(&line)
        .refused_with("CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF", "--driver epoll");
}
