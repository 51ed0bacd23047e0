//! Each check against hosts that are made up.

use super::*;

/// A host with nothing wrong: what a quiet machine that was made ready reads like.
fn ready() -> HostReading {
    let mut host = HostReading::default();
    let sysctls = [
        ("fs.file-max", "9223372036854775807"),
        ("fs.nr_open", "1048576"),
        ("kernel.io_uring_disabled", "0"),
        ("net.core.busy_poll", "0"),
        ("net.core.busy_read", "0"),
        ("net.core.netdev_max_backlog", "16384"),
        ("net.core.rmem_default", "212992"),
        ("net.core.rmem_max", "16777216"),
        ("net.core.somaxconn", "4096"),
        ("net.core.wmem_default", "212992"),
        ("net.core.wmem_max", "16777216"),
        ("net.ipv4.ip_local_port_range", "1024 65535"),
        ("net.ipv4.tcp_congestion_control", "cubic"),
        ("net.ipv4.tcp_max_syn_backlog", "4096"),
        ("net.ipv4.tcp_max_tw_buckets", "131072"),
        ("net.ipv4.tcp_tw_reuse", "1"),
        ("net.ipv4.udp_mem", "300000 400000 600000"),
    ];
    for (name, value) in sysctls {
        host.facts.sysctls.insert(name.into(), value.into());
    }
    let limits = [("open_files", "1024"), ("open_files_hard", "524288")];
    for (name, value) in limits {
        host.facts.limits.insert(name.into(), value.into());
    }
    host.facts.cores = Some(4);
    host.facts.memory_octets = Some(16 << 30);
    host.memory_available_octets = Some(12 << 30);
    host.facts.clock_source = Some("tsc".into());
    host.governors.insert("performance".into(), 4);
    host.cpus_allowed = vec![0, 1, 2, 3];
    host.cores_online = Some(4);
    host.io_uring = Some(Ok(()));
    let watched = [("Cpu.All", 200), ("Cpu.Idle", 198)];
    host.growth = watched.map(|(name, count)| (name.to_owned(), count)).into();
    host.interfaces = vec![interface()];
    host
}

fn interface() -> Interface {
    Interface {
        name: "eth0".into(),
        driver: Some("ixgbe".into()),
        state: Some("up".into()),
        speed_mbit_s: Some(10_000),
        mtu_octets: Some(1_500),
        receive_queues: 4,
        transmit_queues: 4,
        ..Interface::default()
    }
}

fn set(host: &mut HostReading, name: &str, value: &str) {
    host.facts.sysctls.insert(name.into(), value.into());
}

/// The diagnosis of a host on `topic`.
#[track_caller]
fn on(host: &HostReading, aim: Aim, topic: &str) -> Diagnosis {
    let all = of_host(host, aim);
    let found = all.iter().find(|it| it.topic == topic);
    let found = found.unwrap_or_else(|| panic!("nothing on {topic}: {all:#?}"));
    found.clone()
}

const GENERATOR: Aim = Aim {
    clients: None,
    is_server: false,
};
const SERVER: Aim = Aim {
    clients: Some(10_000),
    is_server: true,
};

fn generator_with(clients: u64) -> Aim {
    Aim {
        clients: Some(clients),
        is_server: false,
    }
}

#[test]
fn a_host_that_was_made_ready_has_nothing_to_cure() {
    for aim in [GENERATOR, generator_with(10_000)] {
        for found in of_host(&ready(), aim) {
            let is_well = found.state == State::Ok && found.cures.is_empty();
            // Values missing in /sys stay unknown on every host.
            let is_told = !found.topic.starts_with("offloads");
            assert!(is_well || !is_told, "{found:#?}");
        }
    }
}

#[test]
fn nothing_that_could_be_read_is_unknown_and_not_a_problem() {
    let all = of_host(&HostReading::default(), GENERATOR);
    assert!(worst(&all) < State::Warning, "{all:#?}");
    assert!(all.iter().filter(|it| it.state == State::Unknown).count() > 8);
}

#[test]
fn open_files_are_judged_by_the_clients_planned() {
    let mut host = ready();
    let topic = "open files";
    // throng raises its soft limit; other servers have to be helped.
    on(&host, generator_with(20_000), topic).ok("need 20,032", "");
    on(&host, SERVER, topic).problem("need 10,032", "ulimit -n 10032");
    host.facts
        .limits
        .insert("open_files_hard".into(), "4096".into());
    on(&host, GENERATOR, topic).warning("enough for 4,064 clients", "prlimit");
    let aim = generator_with(2_000_000);
    on(&host, aim, topic).warning("starts 493 processes", "fs.nr_open=2000032");
    on(&host, SERVER, topic).problem("hard 4,096", "--nofile=10032:10032");
    host.facts
        .limits
        .insert("open_files_hard".into(), "unlimited".into());
    on(&host, generator_with(20_000), topic).ok("hard unlimited", "");
}

#[test]
fn memory_is_judged_by_the_clients_planned() {
    let mut host = ready();
    let aim = generator_with(1_000_000);
    on(&host, aim, "memory").warning("may take 61.0 GiB", "--clients 196608");
    host.memory_available_octets = Some(100 << 20);
    on(&host, GENERATOR, "memory").warning("0.1 GiB of", "ps -eo rss");
}

#[test]
fn ports_are_judged_by_the_clients_planned() {
    let mut host = ready();
    let topic = "source ports";
    on(&host, generator_with(100_000), topic).problem("2 addresses", "/31");
    set(&mut host, "net.ipv4.ip_local_port_range", "32768 60999");
    let wide = "ip_local_port_range=\"1024 65535\"";
    on(&host, generator_with(30_000), topic).problem("28,232 ports", wide);
    on(&host, GENERATOR, topic).ok("28,232 ports", "");
    set(&mut host, "net.ipv4.ip_local_port_range", "50000 50999");
    on(&host, GENERATOR, topic).warning("1,000 ports", wide);
    on(&host, SERVER, topic).ok("1,000 ports", "");
}

#[test]
fn time_wait_says_how_many_new_connections_there_can_be() {
    let mut host = ready();
    set(&mut host, "net.ipv4.tcp_tw_reuse", "0");
    let seen = "1,075 new connections a second";
    on(&host, GENERATOR, "TIME-WAIT").warning(seen, "tcp_tw_reuse=1");
    set(&mut host, "net.ipv4.tcp_tw_reuse", "2");
    on(&host, GENERATOR, "TIME-WAIT").ok("loopback alone", "tcp_tw_reuse=1");
    set(&mut host, "net.ipv4.tcp_max_tw_buckets", "4096");
    on(&host, SERVER, "TIME-WAIT").warning("4,096", "tcp_max_tw_buckets=20000");
}

#[test]
fn conntrack_is_a_problem_where_its_table_is_nearly_full() {
    let mut host = ready();
    on(&host, GENERATOR, "conntrack").ok("not loaded", "");
    set(&mut host, "net.netfilter.nf_conntrack_max", "65536");
    host.conntrack_entries = Some(0);
    on(&host, GENERATOR, "conntrack").ok("0 of 65,536", "");
    host.conntrack_entries = Some(120);
    on(&host, GENERATOR, "conntrack").ok("120 of 65,536", "OUTPUT -p udp --dport 53");
    let max = "nf_conntrack_max=131072";
    on(&host, generator_with(60_000), "conntrack").problem("60,000 more", max);
    host.conntrack_entries = Some(60_000);
    on(&host, GENERATOR, "conntrack").problem("91.55 %", "nf_conntrack_max");
    host.conntrack_entries = Some(100);
    host.growth.insert("Conntrack.InsertFailed".into(), 7);
    on(&host, SERVER, "conntrack").warning("7 new flows refused just now", "PREROUTING");
}

#[test]
fn nothing_is_judged_by_what_was_lost_since_the_host_started() {
    for (topic, counter) in [
        ("receive buffers", "Udp.RcvbufErrors"),
        ("send buffers", "Udp6.SndbufErrors"),
        ("packet backlog", "Softnet.Dropped"),
        ("conntrack", "Conntrack.Dropped"),
        ("listen queue", "TcpExt.ListenOverflows"),
    ] {
        let mut host = ready();
        set(&mut host, "net.netfilter.nf_conntrack_max", "65536");
        set(&mut host, "net.core.somaxconn", "65536");
        set(&mut host, "net.ipv4.tcp_max_syn_backlog", "65536");
        host.conntrack_entries = Some(10);
        let of_topic = |host: &HostReading| {
            let all = of_host(host, SERVER);
            let own = all.into_iter().find(|it| it.topic == topic);
            own.unwrap()
        };
        let before = of_topic(&host).state;
        host.counters.insert(counter.into(), 7);
        let found = of_topic(&host);
        assert_eq!(found.state, before, "{topic}");
        let seen = "since the host started, by all processes";
        assert!(found.seen.contains(seen), "{topic}: {}", found.seen);
        host.growth.insert(counter.into(), 3);
        assert!(of_topic(&host).seen.contains(" just now"), "{topic}");
    }
}

#[test]
fn the_listen_queue_is_judged_on_servers_alone() {
    let mut host = ready();
    let topic = "listen queue";
    on(&host, SERVER, topic).warning("somaxconn 4,096", "somaxconn=16384");
    set(&mut host, "net.core.somaxconn", "128");
    on(&host, GENERATOR, topic).ok("somaxconn 128", "");
    let few = Aim {
        clients: Some(200),
        is_server: true,
    };
    on(&host, few, topic).warning("somaxconn 128", "tcp-listen-queue 4096;");
}

#[test]
fn buffers_and_backlog_that_are_too_small_are_named() {
    let mut host = ready();
    set(&mut host, "net.core.rmem_max", "212992");
    let seen = "holds about 277 small responses";
    on(&host, GENERATOR, "receive buffers").warning(seen, "rmem_max=4194304");
    host.growth.insert("Udp.SndbufErrors".into(), 3);
    on(&host, GENERATOR, "send buffers").warning("3 datagrams", "wmem_max=");
    set(&mut host, "net.ipv4.udp_mem", "100 200 300");
    on(&host, GENERATOR, "UDP memory").warning("300 pages", "udp_mem=\"16384 ");
    set(&mut host, "net.core.netdev_max_backlog", "300");
    let larger = "netdev_max_backlog=16384";
    on(&host, GENERATOR, "packet backlog").warning("300", larger);
    host.growth.insert("Softnet.Dropped".into(), 1);
    on(&host, GENERATOR, "packet backlog").problem("300", larger);
}

#[test]
fn settings_of_servers_are_offered_on_servers() {
    let mut host = ready();
    on(&host, SERVER, "busy polling").ok("off", "busy_read=50");
    set(&mut host, "net.core.busy_read", "50");
    set(&mut host, "net.core.busy_poll", "50");
    on(&host, SERVER, "busy polling").ok("busy_read 50 us", "");
    set(&mut host, "net.ipv4.tcp_congestion_control", "bbr");
    on(&host, SERVER, "congestion control").warning("bbr", "cubic");
    on(&host, GENERATOR, "congestion control").ok("own connections", "cubic");
}

#[test]
fn io_uring_that_is_forbidden_is_named_with_its_reason() {
    let mut host = ready();
    host.io_uring = Some(Err("io_uring is not permitted here (by seccomp)".into()));
    on(&host, GENERATOR, "io_uring").warning("by seccomp", "");
    set(&mut host, "kernel.io_uring_disabled", "2");
    let allowed = "kernel.io_uring_disabled=0";
    on(&host, GENERATOR, "io_uring").warning("by seccomp", allowed);
    host.io_uring = None;
    on(&host, GENERATOR, "io_uring").warning("disabled is 2", allowed);
}

#[test]
fn cpus_that_are_slowed_shared_or_taken_away_are_named() {
    let mut host = ready();
    host.governors = [("powersave".to_owned(), 3), ("performance".to_owned(), 1)].into();
    let fast = "cpupower frequency-set -g performance";
    on(&host, GENERATOR, "CPU governor").warning("powersave on 3 CPUs", fast);
    host.second_threads = vec![2, 3];
    on(&host, GENERATOR, "SMT").ok("2 of 4 CPUs are second", "--cpus 0,1");
    host.growth.insert("Cpu.Steal".into(), 3);
    on(&host, GENERATOR, "CPU steal").warning("1.5 % of the time just now", "dedicated");
    host.growth.insert("Cpu.Steal".into(), 30);
    on(&host, GENERATOR, "CPU steal").problem("15.0 %", "dedicated");
    host.growth.insert("Cpu.Idle".into(), 150);
    on(&host, GENERATOR, "other load").warning("25.0 %", "ps -eo pcpu");
    host.growth.clear();
    host.counters.insert("Cpu.All".into(), 1_000);
    host.counters.insert("Cpu.Steal".into(), 20);
    let seen = "2.0 % of the time since the host started";
    on(&host, GENERATOR, "CPU steal").warning(seen, "dedicated");
}

#[test]
fn a_cpu_quota_is_a_problem_once_it_was_used_up() {
    let mut host = ready();
    host.quota_cpus = Some(1.5);
    on(&host, GENERATOR, "CPU quota").warning("quota of 1.50 CPUs", "--workers 1");
    host.counters.insert("Cgroup.Throttled".into(), 12);
    on(&host, GENERATOR, "CPU quota").problem("throttled in 12", "limits.cpu");
    host.quota_cpus = None;
    host.cores_online = Some(16);
    on(&host, GENERATOR, "CPU quota").ok("4 of 16 CPUs, no quota", "");
}

#[test]
fn a_slow_clock_is_named_with_the_better_one() {
    let mut host = ready();
    host.facts.clock_source = Some("hpet".into());
    host.clock_sources = vec!["hpet".into(), "tsc".into()];
    on(&host, GENERATOR, "clock source").warning("hpet", "echo tsc > /sys/devices");
    host.clock_sources.pop();
    on(&host, GENERATOR, "clock source").warning("hpet", "another host");
}

#[test]
fn interfaces_are_judged_by_their_queues_and_drops() {
    let mut host = ready();
    host.interfaces[0].receive_queues = 1;
    let topic = "queues of eth0";
    on(&host, GENERATOR, topic).warning("1 receive queue", "ethtool -L eth0 combined 4");
    on(&host, GENERATOR, topic).warning("10,000 Mbit/s", "echo f > /sys/class/net/eth0");
    host.interfaces[0].receive_queues_spread = 1;
    on(&host, GENERATOR, topic).ok("spread over CPUs (RPS)", "");
    host.interfaces[0].state = Some("down".into());
    on(&host, GENERATOR, topic).problem("down", "ip link set eth0 up");
    let counters = &mut host.interfaces[0].counters;
    counters.insert("rx_missed_errors".into(), 9);
    on(&host, GENERATOR, "drops of eth0").warning("errors 9", "ethtool -G eth0 rx 4096");
    let topic = "offloads of eth0";
    on(&host, GENERATOR, topic).unknown("does not show", "ethtool -k eth0");
    host.interfaces[0] = Interface {
        driver: None,
        receive_queues: 1,
        ..interface()
    };
    on(&host, GENERATOR, "queues of eth0").ok("virtual", "");
}
