//! What happens between two hosts: two network namespaces with a veth pair between them. Both are
//! gone with the test. Needs root.

use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::ensure;
use lab::target::Namespace;
use load::names_file;
use measure::Limit;
use proto::Transport;
use proto::query::QueryOptions;
use responder::{ResponderConfig, Zone};
use testing::host::is_root_for;

use super::outages::{load, outage};
use super::{Expected, together};
use crate::bench::{Load, Ran, Responder, ms};

/// `near`, where load is sent, and `far`, where the responder is; each with an interface of that
/// name.
struct Wire {
    near: Namespace,
    far: Namespace,
}

const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 79, 0, 2));

fn execute(namespace: &Namespace, line: &str) {
    let mut words = line.split(' ');
    let mut command = namespace.command(words.next().unwrap());
    let output = command.args(words).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
}

impl Wire {
    fn lay() -> Wire {
        let wire = Wire {
            near: Namespace::new().unwrap(),
            far: Namespace::new().unwrap(),
        };
        let pair = format!("type veth peer name far netns {}", wire.far.id());
        execute(&wire.near, &format!("ip link add near {pair}"));
        for (end, name, host) in [(&wire.near, "near", 1), (&wire.far, "far", 2)] {
            execute(end, "ip link set lo up");
            execute(end, &format!("ip addr add 10.79.0.{host}/24 dev {name}"));
            execute(end, &format!("ip link set {name} up"));
        }
        wire
    }

    fn near(&self, line: &str) {
        execute(&self.near, line);
    }

    /// A responder at the far end.
    fn responder(&self, change: impl FnOnce(&mut ResponderConfig) + Send) -> Responder {
        thread::scope(|scope| {
            let start = || {
                self.far.enter().unwrap();
                Responder::start_at(FAR, change)
            };
            scope.spawn(start).join().unwrap()
        })
    }

    /// Runs it from the near end against a responder at the far end; `watch` gets the number of
    /// each interval as it ends.
    fn run(
        &self,
        load: Load,
        change: impl FnOnce(&mut ResponderConfig) + Send,
        watch: impl Fn(usize) + Sync,
    ) -> Ran {
        let target = self.responder(change);
        let address = target.address(load.plan.transport);
        let load = load.ca_pem(&target.certificate_pem);
        let ran = thread::scope(|scope| {
            let run = || {
                self.near.enter().unwrap();
                load.run_watched(address, |progress, _| watch(progress.index))
            };
            scope.spawn(run).join().unwrap()
        });
        let (_, target_waited) = target.serving.stop_and_tell();
        Ran {
            target_waited,
            ..ran
        }
    }
}

/// True if this process may make network namespaces.
fn may_lay() -> bool {
    is_root_for("network namespaces")
}

/// What is done to a wire.
type Act = fn(&Wire);

/// A run in whose midst something is done that is undone later, if it is.
fn interrupted(transport: Transport, down: Act, up: Option<Act>) -> Ran {
    let wire = Wire::lay();
    let watch = |index| match (index, up) {
        (5, _) => down(&wire),
        (13, Some(up)) => up(&wire),
        _ => {}
    };
    wire.run(load(transport), |_| {}, watch)
}

#[test]
fn an_interface_that_is_down_is_an_outage_of_this_host() {
    if !may_lay() {
        return;
    }
    let down: Act = |wire| wire.near("ip link set near down");
    let up: Act = |wire| wire.near("ip link set near up");
    let own = |name, evidence| Expected {
        name,
        limit: Limit::Network,
        evidence,
        topic: "outage",
        cure: "ip -s link; ip route",
    };
    let delete: Act = |wire| wire.near("ip link del near");
    let unsendable = "of the run this host could send nothing";
    let gone = "s to the end of the run this host could send nothing";
    together(&[
        &|| {
            let expected = own("link down", unsendable);
            expected.check_alone(|| interrupted(Transport::Udp, down, Some(up)));
        },
        &|| {
            let expected = own("interface deleted", gone);
            let run = || interrupted(Transport::Udp, delete, None);
            expected.check_with(run, |ran| {
                // What could not leave was not sent.
                let counts = ran.counts();
                ensure!(counts.sent < counts.offered, "{counts:?}");
                Ok(())
            });
        },
    ]);
    // TCP sends again until the link is back: to those who use it nothing is refused.
    let over = |name, transport| {
        let expected = own(name, unsendable);
        expected.check_alone(|| interrupted(transport, down, Some(up)));
    };
    together(&[
        &|| over("link down, over TCP", Transport::Tcp),
        &|| over("link down, over TLS", Transport::Dot),
        &|| over("link down, over HTTPS", Transport::Doh2),
        &|| over("link down, over QUIC", Transport::Doq),
        &|| {
            let expected = own("interface deleted, over TCP", gone);
            expected.check_alone(|| interrupted(Transport::Tcp, delete, None));
        },
    ]);
}

#[test]
fn a_link_without_carrier_and_a_route_that_is_gone_are_outages_of_this_host() {
    if !may_lay() {
        return;
    }
    let check = |name, transport, down: Act| {
        let expected = Expected {
            name,
            limit: Limit::Network,
            evidence: "s to the end of the run this host could send nothing",
            topic: "outage",
            cure: "ip -s link; ip route",
        };
        expected.check_alone(|| interrupted(transport, down, None));
    };
    // The other end takes the carrier away.
    let unplug: Act = |wire| execute(&wire.far, "ip link set far down");
    let forget: Act = |wire| wire.near("ip route flush 10.79.0.0/24");
    together(&[
        &|| check("no carrier", Transport::Udp, unplug),
        &|| check("no carrier, over TCP", Transport::Tcp, unplug),
        &|| check("no route, over TCP", Transport::Tcp, forget),
    ]);
}

#[test]
fn a_target_that_stands_still_behind_a_link_that_is_well_has_the_outage_itself() {
    if !may_lay() {
        return;
    }
    let expected = outage("gone beyond the link", "of the run nothing came back");
    expected.check_alone(|| {
        let forget: Act = |wire| execute(&wire.far, "ip addr del 10.79.0.2/24 dev far");
        interrupted(Transport::Tcp, forget, None)
    });
}

/// In the namespace where the load is sent, what others do badly: SYNs that nobody accepts, sent
/// again each second, and datagrams that nobody reads.
fn others_fail() -> (TcpListener, Vec<TcpStream>, UdpSocket) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let unread = UdpSocket::bind("127.0.0.1:0").unwrap();
    let full = listener.local_addr().unwrap();
    // Its queue holds 128 that are accepted by nobody.
    let connect = |_| TcpStream::connect_timeout(&full, Duration::from_millis(5));
    let waiting = (0..200).filter_map(|it| connect(it).ok()).collect();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..5_000 {
        sender
            .send_to(&[0; 512], unread.local_addr().unwrap())
            .unwrap();
    }
    (listener, waiting, unread)
}

#[test]
fn what_others_lose_on_this_host_is_not_blamed_on_the_run() {
    if !may_lay() {
        return;
    }
    let lossy = |rate_qps: f64, loss: f64| {
        let wire = Wire::lay();
        let load = load(Transport::Udp).rate(rate_qps);
        let watch = |index| {
            if index == 5 {
                thread::scope(|scope| {
                    let fail = || {
                        wire.near.enter().unwrap();
                        drop(others_fail());
                    };
                    scope.spawn(fail).join().unwrap();
                });
            }
        };
        wire.run(load, |config| config.behaviour.faults.loss = loss, watch)
    };
    let expected = Expected {
        name: "losses of the path, and of others on this host",
        limit: Limit::Unknown,
        evidence: "nothing shows that the load is the cause",
        topic: "losses without a queue",
        cure: "run at a tenth of the rate to find out: --rate 200;",
    };
    expected.check_with(
        || lossy(2_000.0, 0.05),
        |ran| {
            let lost = ran.record.network.kernel_counter("Udp.RcvbufErrors");
            ensure!(lost > 500, "{lost}");
            Ok(())
        },
    );
}

#[test]
fn local_ports_that_are_used_up_are_the_limit_until_there_are_more_addresses() {
    if !may_lay() {
        return;
    }
    let run = |addresses: &[u8]| {
        let wire = Wire::lay();
        let range = "/proc/sys/net/ipv4/ip_local_port_range";
        let mut shell = wire.near.command("sh");
        let set = shell.args(["-c", &format!("echo 40000 40009 >{range}")]);
        assert!(set.status().unwrap().success());
        for address in addresses {
            wire.near(&format!("ip addr add 10.79.0.{address}/24 dev near"));
        }
        let load = load(Transport::Tcp).clients(30).plan(|plan| {
            let each = addresses.iter().map(|it| IpAddr::from([10, 79, 0, *it]));
            plan.local_addresses = each.collect();
        });
        wire.run(load, |_| {}, |_| {})
    };
    let expected = Expected {
        name: "few local ports",
        limit: Limit::Generator,
        evidence: "because this host ran out of local ports",
        topic: "source ports",
        cure: "--local-address",
    };
    expected.check(|| run(&[]), || run(&[11, 12, 13, 14]), &[Limit::Rate]);
}

#[test]
fn a_link_that_is_full_is_the_limit_until_less_is_asked() {
    if !may_lay() {
        return;
    }
    let run = |rate_qps: f64| {
        let wire = Wire::lay();
        wire.near("tc qdisc add dev near root tbf rate 400kbit burst 4k limit 4k");
        let load = load(Transport::Udp).rate(rate_qps);
        let load = load.plan(|plan| plan.timeout = ms(700));
        wire.run(load, |_| {}, |_| {})
    };
    let expected = Expected {
        name: "a full link",
        limit: Limit::Network,
        evidence: "the kernel of this host dropped",
        topic: "send buffers",
        cure: "lower the rate",
    };
    expected.check(|| run(2_000.0), || run(200.0), &[Limit::Rate]);
}

/// Has a hook of an end of the wire drop or reject what matches.
fn filter(end: &Namespace, hook: &str, rule: &str) {
    execute(end, "nft add table inet test");
    let chain = format!("{{ type filter hook {hook} priority 0 ; }}");
    execute(end, &format!("nft add chain inet test filter {chain}"));
    execute(end, &format!("nft add rule inet test filter {rule}"));
}

/// Looks for the target before, and sends it ten echo requests a second meanwhile.
fn echoing(wire: &Wire, load: Load) -> Ran {
    let load = load.preflight().plan(|plan| plan.timeout = ms(1_000));
    wire.run(load, |_| {}, |_| {})
}

#[test]
fn a_queue_on_the_path_is_no_queue_at_the_target() {
    if !may_lay() {
        return;
    }
    let run = |load: Load| {
        let wire = Wire::lay();
        let shaper = "tc qdisc add dev far root tbf rate 2mbit burst 4k limit 1m";
        execute(&wire.far, shaper);
        echoing(&wire, load)
    };
    let expected = Expected {
        name: "a full link beyond this host",
        limit: Limit::Network,
        evidence: "ICMP echo requests to the target waited as queries did",
        topic: "path",
        cure: "mtr",
    };
    let load = load(Transport::Udp);
    let closed = || run(load.clone().outstanding(200));
    let below = || run(load.clone().rate(300.0));
    expected.check(closed, below, &[Limit::Rate]);
}

#[test]
fn a_path_that_loses_echo_requests_too_loses_the_queries() {
    if !may_lay() {
        return;
    }
    let expected = Expected {
        name: "losses on the path, of whatever kind",
        limit: Limit::Network,
        evidence: "of the ICMP echo requests to the target",
        topic: "path",
        cure: "mtr",
    };
    expected.check_alone(|| {
        let wire = Wire::lay();
        filter(&wire.far, "prerouting", "numgen random mod 10 < 4 drop");
        // Of fewer, too few may be lost to show anything.
        let load = load(Transport::Udp).plan(|plan| plan.duration = Some(ms(8_000)));
        echoing(&wire, load)
    });
}

/// A zone with a name whose answer takes three segments.
fn long_zone() -> Arc<Zone> {
    let strings = format!("\"{}\" ", "x".repeat(250)).repeat(12);
    let text =
        format!("@ SOA ns host 1 60 60 60 60\n@ NS ns\nns A 192.0.2.1\nlong TXT {strings}\n");
    Arc::new(Zone::from_text(&text, Some("example")).unwrap())
}

#[test]
fn a_path_that_drops_long_segments_is_no_server_that_stopped() {
    if !may_lay() {
        return;
    }
    let run = || {
        let wire = Wire::lay();
        // Segments as they would leave an interface, and not in one piece.
        execute(&wire.far, "ip link set far gso_max_segs 1");
        filter(&wire.near, "prerouting", "meta length > 1200 drop");
        let names = format!("{}long.example TXT", "ns.example A\n".repeat(9));
        let questions = names_file::parse_text(names.as_bytes(), &QueryOptions::default());
        let load = load(Transport::Tcp).clients(20).plan(|plan| {
            plan.timeout = ms(2_000);
            plan.questions = Arc::new(questions.unwrap());
        });
        wire.run(load, |it| it.zone = long_zone(), |_| {})
    };
    let expected = Expected {
        name: "long responses whose last segment comes",
        limit: Limit::Network,
        evidence: "waited for a segment from the target that never came",
        topic: "long segments",
        cure: "ping -M do",
    };
    expected.check_alone(run);
}
