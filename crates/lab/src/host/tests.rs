//! The parsers against text as kernels print it, and the readers against this host.

use measure::facts::QuotaUse;
use testing::folder::Folder;

use super::usage::{parse_busy, parse_process, parse_sockets};
use super::*;

fn map<V: Clone>(entries: &[(&str, V)]) -> BTreeMap<String, V> {
    entries
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect()
}

#[test]
fn cpu_model_is_the_first_processors_name() {
    let cpuinfo = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD  EPYC 9354\nflags\t\t: fpu\n\n\
                   processor\t: 1\nmodel name\t: other\n";
    assert_eq!(parse_cpu_model(cpuinfo).unwrap(), "AMD EPYC 9354");
    assert_eq!(
        parse_cpu_model("processor\t: 0\nCPU part\t: 0xd0c\n").unwrap(),
        "0xd0c"
    );
    assert_eq!(parse_cpu_model(""), None);
}

#[test]
fn hypervisor_flag_is_a_whole_word() {
    assert!(has_hypervisor_flag("flags\t\t: fpu hypervisor tsc\n"));
    assert!(!has_hypervisor_flag("flags\t\t: fpu hypervisors\n"));
}

#[test]
fn allowed_cpus_count_ranges_and_single_cores() {
    let cases = [
        ("0-1", Some(2)),
        ("0", Some(1)),
        ("0-3,8,10-11", Some(7)),
        ("", None),
        ("3-1", None),
    ];
    for (list, cores) in cases {
        let status = format!("Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t{list}\n");
        let allowed = processors::parse_allowed(&status);
        assert_eq!(allowed.map(|cpus| cpus.len()), cores, "{list}");
    }
}

#[test]
fn os_name_loses_its_quotes() {
    let text = "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
    assert_eq!(
        parse_os_release(text).unwrap(),
        "Debian GNU/Linux 12 (bookworm)"
    );
}

#[test]
fn memory_is_in_octets() {
    let text = "MemTotal:       24628468 kB\nMemFree: 1 kB\n";
    assert_eq!(parse_memory_octets(text, "MemTotal:"), Some(25_219_551_232));
    assert_eq!(parse_memory_octets("nothing", "MemTotal:"), None);
}

#[test]
fn limits_are_named_and_kept_as_printed() {
    let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                Max open files            1024                 20000                files     \n\
                Max locked memory         unlimited            8388608              bytes     \n";
    let expected = [
        ("locked_memory", "unlimited"),
        ("locked_memory_hard", "8388608"),
        ("open_files", "1024"),
        ("open_files_hard", "20000"),
    ];
    assert_eq!(
        parse_limits(text),
        map(&expected.map(|(name, value)| (name, value.to_owned())))
    );
}

#[test]
fn counters_are_named_by_group_and_negative_values_are_left_out() {
    let text = "Tcp: MaxConn ActiveOpens\nTcp: -1 7\nUdp: InDatagrams RcvbufErrors\nUdp: 5 0\n";
    let expected = map(&[
        ("Tcp.ActiveOpens", 7),
        ("Udp.InDatagrams", 5),
        ("Udp.RcvbufErrors", 0),
    ]);
    assert_eq!(counters::parse_counter_pairs(text), expected);
}

#[test]
fn ipv6_counters_are_split_after_the_six() {
    let text = "Ip6InReceives                   \t12\nUdp6RcvbufErrors                \t3\n";
    assert_eq!(
        counters::parse_snmp6(text),
        map(&[("Ip6.InReceives", 12), ("Udp6.RcvbufErrors", 3)])
    );
}

#[test]
fn difference_keeps_what_went_up() {
    let before = map(&[
        ("Udp.InDatagrams", 5),
        ("Udp.RcvbufErrors", 1),
        ("Tcp.CurrEstab", 9),
    ]);
    let after = map(&[
        ("Udp.InDatagrams", 8),
        ("Udp.RcvbufErrors", 1),
        ("Tcp.CurrEstab", 2),
        ("New.X", 4),
    ]);
    assert_eq!(
        difference(&before, &after),
        map(&[("New.X", 4), ("Udp.InDatagrams", 3)])
    );
}

#[test]
fn this_host_has_the_facts_every_linux_has() {
    let facts = facts();
    assert!(
        facts.cores.unwrap() >= 1 && facts.memory_octets.unwrap() > 0,
        "{facts:?}"
    );
    assert!(facts.kernel.is_some() && facts.os.is_some(), "{facts:?}");
    assert!(
        facts.sysctls["net.ipv4.ip_local_port_range"].contains(' '),
        "{facts:?}"
    );
    assert!(facts.limits.contains_key("open_files"), "{facts:?}");
}

#[test]
fn a_datagram_sent_here_is_counted_by_this_host() {
    let before = counters();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
    let counted = difference(&before, &counters());
    assert!(counted["Udp.OutDatagrams"] >= 1, "{counted:?}");
}

#[test]
fn packet_backlog_and_conntrack_are_added_up_over_cpus() {
    let softnet = "151699e7 00000389 0000001b 00000000\n1147afee 00000001 0000000e 00000000\n";
    let expected = [("Softnet.Dropped", 0x38a), ("Softnet.TimeSqueezed", 0x29)];
    assert_eq!(counters::parse_softnet(softnet), expected);
    assert_eq!(counters::parse_softnet(""), []);
    let conntrack = "entries  searched found new invalid insert_failed drop early_drop\n\
                     00000005 00000000 00000000 00000000 00000000 0000000a 00000001 00000000\n\
                     00000005 00000000 00000000 00000000 00000000 00000001 00000002 00000003\n";
    let expected = [
        ("Conntrack.Dropped", 3),
        ("Conntrack.EarlyDropped", 3),
        ("Conntrack.InsertFailed", 11),
    ];
    assert_eq!(counters::parse_conntrack(conntrack), expected);
    assert_eq!(counters::parse_conntrack(""), []);
}

#[test]
fn cpu_time_counts_guests_once() {
    let stat = "cpu  100 20 30 400 50 0 10 40 7 3\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
    let expected = [("Cpu.All", 650), ("Cpu.Idle", 450), ("Cpu.Steal", 40)];
    assert_eq!(counters::parse_cpu_time(stat), expected);
    assert_eq!(counters::parse_cpu_time("cpu  1 2 x\n"), []);
}

#[test]
fn throttling_is_read_from_both_versions_of_control_groups() {
    let expected = [
        ("Cgroup.Periods", 9),
        ("Cgroup.Throttled", 3),
        ("Cgroup.ThrottledMicroseconds", 4_000),
    ];
    let v2 = "usage_usec 1\nnr_periods 9\nnr_throttled 3\nthrottled_usec 4000\n";
    let v1 = "nr_periods 9\nnr_throttled 3\nthrottled_time 4000000\n";
    let throttled = |name: &str, text: &str| {
        let statistics = format!("sys/fs/cgroup{name}/one/cpu.stat");
        let files = [
            ("proc/self/cgroup", "1:cpu,cpuacct:/one\n0::/one\n"),
            (statistics.as_str(), text),
        ];
        let folder = Folder::with(&format!("host-throttled{}", name.len()), &files);
        Host::at(folder.folder()).throttled()
    };
    assert_eq!(throttled("", v2), expected);
    assert_eq!(throttled("/cpu", v1), expected);
    assert_eq!(throttled("", ""), []);
}

#[test]
fn default_routes_name_their_interfaces() {
    let v4 = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
              eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n\
              eth1 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n";
    assert_eq!(interfaces::parse_default_routes(v4), ["eth0"]);
    let v6 = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
              fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth2\n\
              fe800000000000000000000000000000 40 00000000000000000000000000000000 00 \
              00000000000000000000000000000000 00000100 00000001 00000000 00000001 eth3\n";
    assert_eq!(interfaces::parse_default_routes_v6(v6), ["eth2"]);
}

#[test]
fn a_folder_stands_for_a_host_with_quota_siblings_and_interfaces() {
    let cpu = "sys/devices/system/cpu";
    let siblings = [0, 1, 2, 3].map(|n| format!("{cpu}/cpu{n}/topology/thread_siblings_list"));
    let net = "sys/class/net/eth0";
    let files = [
        ("proc/self/status", "Cpus_allowed_list:\t0-3\n"),
        ("proc/self/cgroup", "1:name=systemd:/\n0::/pods/one\n"),
        ("sys/fs/cgroup/pods/cpu.max", "150000 100000\n"),
        ("sys/fs/cgroup/pods/one/cpu.max", "max 100000\n"),
        (
            "sys/fs/cgroup/pods/cpu.stat",
            "nr_throttled 7\nthrottled_usec 9\n",
        ),
        ("sys/devices/system/cpu/online", "0-7\n"),
        (&siblings[0], "0,2\n"),
        (&siblings[1], "1,3\n"),
        (&siblings[2], "0,2\n"),
        (&siblings[3], "1,3\n"),
        (
            "proc/net/route",
            "Iface\neth0 00000000 0 0003 0 0 0 00000000 0 0 0\n",
        ),
        ("sys/class/net/eth0/mtu", "1500\n"),
        ("sys/class/net/eth0/operstate", "up\n"),
        ("sys/class/net/eth0/speed", "-1\n"),
        ("sys/class/net/eth0/device/vendor", "0x1\n"),
        (
            "sys/class/net/eth0/queues/rx-0/rps_cpus",
            "00000000,0000000f\n",
        ),
        ("sys/class/net/eth0/queues/rx-1/rps_cpus", "00\n"),
        ("sys/class/net/eth0/queues/tx-0/xps_cpus", "0\n"),
        ("sys/class/net/eth0/statistics/rx_missed_errors", "5\n"),
        ("sys/class/net/bonding_masters", "\n"),
        ("proc/sys/net/netfilter/nf_conntrack_count", "12\n"),
    ];
    assert!(files.iter().any(|(path, _)| path.starts_with(net)));
    let folder = Folder::with("host-scripted", &files);
    let host = Host::at(folder.folder());
    let second = std::time::Duration::from_secs(1);
    let reading = host.reading(None, second).unwrap();
    assert_eq!(reading.facts.cores, Some(4));
    assert_eq!(reading.cores_online, Some(8));
    assert_eq!(reading.second_threads, [2, 3]);
    assert_eq!(reading.quota_cpus, Some(1.5));
    assert_eq!(reading.counters["Cgroup.Throttled"], 7);
    assert_eq!(reading.conntrack_entries, Some(12));
    assert!(reading.growth.is_empty() && reading.io_uring.is_none());
    let [eth0] = reading.interfaces.as_slice() else {
        panic!("{:?}", reading.interfaces);
    };
    let queues = (
        eth0.receive_queues,
        eth0.receive_queues_spread,
        eth0.transmit_queues,
    );
    assert_eq!(queues, (2, 1, 1));
    assert_eq!((eth0.speed_mbit_s, eth0.mtu_octets), (None, Some(1_500)));
    assert_eq!(eth0.driver.as_deref(), Some("unknown"));
    assert_eq!(eth0.counters["rx_missed_errors"], 5);
    let unknown = host.reading(Some("eth9"), second).unwrap_err();
    assert_eq!(unknown.known, ["eth0"]);
}

#[test]
fn processes_and_their_sockets_are_read_whatever_their_names_are() {
    let stat = "4711 (a) b (c) S 12 4711 4711 0 -1 4194304 1 0 0 0 70 30 5 2 20 0 1 0 100 0 0";
    let process = parse_process(stat).unwrap();
    assert_eq!(process.name, "a) b (c");
    assert_eq!((process.parent, process.ticks), (12, 100));
    assert_eq!(process.children_ticks, 7);
    assert_eq!(parse_process("4711 (half"), None);
    let table = "  sl  local_address rem_address st queues tr:tm retrnsmt uid timeout inode\n\
                 1: 0100007F:14E9 00000000:0000 07 0:0 00:00000000 00000000 0 0 99 2 0 12\n\
                 2: 00000000:0035 00000000:0000 07 0:0 00:00000000 00000000 0 0 77 2\n";
    assert_eq!(parse_sockets(table, 53), [(77, 0)]);
    assert_eq!(parse_sockets(table, 5353), [(99, 12)]);
    assert_eq!(
        parse_busy("cpu  5 1 4 100 9 2 3 6 0 0\ncpu0 1 1 1"),
        (16, 6)
    );
}

#[test]
fn cpu_time_of_this_process_is_its_own_and_its_socket_is_found() {
    let host = Host::this();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let target = Some(socket.local_addr().unwrap());
    let before = host.cpu_reading(target);
    let mut sum = 0_u64;
    let until = std::time::Instant::now() + std::time::Duration::from_millis(60);
    while std::time::Instant::now() < until {
        sum = std::hint::black_box(sum.wrapping_add(1));
    }
    let used = before.until(&host.cpu_reading(target), &[]);
    assert!(used.is_target_here);
    // The target is this process here, whose time is counted as its own.
    assert_eq!(used.target_ns, None);
    assert!(used.wall_ns >= 60_000_000);
    let elsewhere = Some("192.0.2.53:53".parse().unwrap());
    let used = before.until(&host.cpu_reading(elsewhere), &[]);
    assert!(!used.is_target_here);
}

/// A server on 127.0.0.1:5353 that is process 77: its socket, whose inode is 99, and its times.
const NAMED_UDP: &str = "  sl  local_address rem_address st queues tr:tm retrnsmt uid timeout \
    inode\n\
    1: 0100007F:14E9 00000000:0000 07 0:0 00:00000000 00000000 0 0 99 2 0 12\n";
const NAMED_STAT: &str = "77 (named) S 1 77 77 0 -1 0 1 0 0 0 70 30 0 0";

#[test]
fn threads_of_the_target_that_end_take_no_waits_of_others_with_them() {
    let folder = Folder::with(
        "host-target",
        &[
            ("proc/stat", "cpu  5 1 4 100 9 2 3 6 0 0\n"),
            ("proc/net/udp", NAMED_UDP),
            ("proc/77/stat", NAMED_STAT),
            ("proc/77/task/77/schedstat", "5 1000 7\n"),
            ("proc/77/task/78/schedstat", "5 9000000 7\n"),
            ("proc/77/fd/1", ""),
        ],
    );
    std::os::unix::fs::symlink("socket:[99]", folder.path("proc/77/fd/3")).unwrap();
    let host = Host::at(folder.folder());
    let target = Some("127.0.0.1:5353".parse().unwrap());
    let before = host.cpu_reading(target);
    std::fs::remove_dir_all(folder.path("proc/77/task/78")).unwrap();
    std::fs::write(folder.path("proc/77/task/77/schedstat"), "5 1500 7\n").unwrap();
    let used = before.until(&host.cpu_reading(target), &[]);
    assert_eq!(used.target_wait_ns, Some(500));
}

#[test]
fn threads_that_never_run_have_waited_all_the_time() {
    let folder = Folder::with(
        "host-waits",
        &[
            ("proc/stat", "cpu  5 1 4 100 9 2 3 6 0 0\n"),
            ("proc/net/udp", NAMED_UDP),
            ("proc/77/stat", NAMED_STAT),
            ("proc/77/fd/1", ""),
        ],
    );
    std::os::unix::fs::symlink("socket:[99]", folder.path("proc/77/fd/3")).unwrap();
    let thread = |id: u32, state: &str, schedstat: &str| {
        let stat = format!("{id} (a) b) {state} 1 77 77 0");
        folder.write(&format!("proc/77/task/{id}/stat"), stat);
        folder.write(&format!("proc/77/task/{id}/schedstat"), schedstat);
    };
    let ran = |it: u64| format!("{it} 1000 7\n");
    let waited = |it: u64| format!("5 {it} 7\n");
    let of = |then: (&str, &str), now: (&str, &str)| {
        let host = Host::at(folder.folder());
        let target = Some("127.0.0.1:5353".parse().unwrap());
        thread(77, then.0, then.1);
        let before = host.cpu_reading(target);
        thread(77, now.0, now.1);
        let used = before.until(&host.cpu_reading(target), &[]);
        let waited_ns = used.target_wait_ns.unwrap();
        let is_waiting = used.target_threads_waiting == Some(1);
        assert_eq!(is_waiting, waited_ns > 0);
        (waited_ns, used.wall_ns)
    };
    let begin = ran(5);
    // Asleep, running all the time, and woken since.
    for (before, now, after) in [("S", "S", 5), ("R", "R", 9), ("S", "R", 5)] {
        assert_eq!(of((before, &begin), (now, &ran(after))).0, 0, "{now}");
    }
    // Waiting all the time; the kernel moved the second one to another CPU meanwhile.
    for now in [1000, 1003] {
        let (waited_ns, wall_ns) = of(("R", &begin), ("R", &waited(now)));
        assert_eq!(waited_ns, wall_ns);
    }
    // A wait that began before.
    let (waited_ns, wall_ns) = of(("R", &begin), ("S", "6 900000000000 8\n"));
    assert_eq!(waited_ns, wall_ns);
}

#[test]
fn agents_are_this_program_and_not_other_processes() {
    let folder = Folder::with(
        "host-agents",
        &[
            ("proc/stat", "cpu  0 0 0 100 0 0 0 0 0 0\n"),
            ("proc/77/stat", NAMED_STAT),
            (
                "proc/78/stat",
                "78 (child) S 77 1 1 0 -1 0 1 0 0 0 10 0 0 0 0",
            ),
            (
                "proc/79/stat",
                "79 (other) S 1 1 1 0 -1 0 1 0 0 0 10 0 0 0 0",
            ),
        ],
    );
    let host = Host::at(folder.folder());
    let before = host.cpu_reading(None);
    for (process, stat) in [
        ("stat", "cpu  60 0 0 100 0 0 0 0 0 0\n"),
        ("77/stat", "77 (named) S 1 77 77 0 -1 0 1 0 0 0 90 30 0 0"),
        ("78/stat", "78 (child) S 77 1 1 0 -1 0 1 0 0 0 20 0 0 0 0"),
        ("79/stat", "79 (other) S 1 1 1 0 -1 0 1 0 0 0 40 0 0 0 0"),
    ] {
        std::fs::write(folder.path(&format!("proc/{process}")), stat).unwrap();
    }
    let after = host.cpu_reading(None);
    let ms = |number: u64| number * 1_000_000;
    let used = before.until(&after, &[77]);
    assert_eq!((used.own_ns, used.others_ns), (ms(300), ms(300)));
    assert!(used.busiest.iter().all(|it| it.pid == 79), "{used:?}");
    let used = before.until(&after, &[]);
    assert_eq!((used.own_ns, used.others_ns), (0, ms(600)));
}

#[test]
fn quota_of_the_target_is_counted_unless_it_is_the_generators_too() {
    for (own, is_others) in [("0::/\n", true), ("0::/server\n", false)] {
        let folder = Folder::with(
            "host-quota",
            &[
                ("proc/stat", "cpu  5 1 4 100 9 2 3 6 0 0\n"),
                ("proc/net/udp", NAMED_UDP),
                ("proc/77/stat", NAMED_STAT),
                ("proc/77/cgroup", "0::/server\n"),
                ("proc/self/cgroup", own),
                ("proc/77/fd/1", ""),
                ("sys/fs/cgroup/server/cpu.max", "10000 100000\n"),
                (
                    "sys/fs/cgroup/server/cpu.stat",
                    "nr_periods 10\nnr_throttled 2\nthrottled_usec 5000\n",
                ),
            ],
        );
        std::os::unix::fs::symlink("socket:[99]", folder.path("proc/77/fd/3")).unwrap();
        let host = Host::at(folder.folder());
        let target = Some("127.0.0.1:5353".parse().unwrap());
        let before = host.cpu_reading(target);
        let counted = "nr_periods 50\nnr_throttled 40\nthrottled_usec 3005000\n";
        std::fs::write(folder.path("sys/fs/cgroup/server/cpu.stat"), counted).unwrap();
        let used = before.until(&host.cpu_reading(target), &[]);
        let quota = QuotaUse {
            periods: 40,
            throttled: 38,
            throttled_ns: 3_000_000_000,
        };
        assert_eq!(used.target_quota, is_others.then_some(quota), "{own}");
    }
}
