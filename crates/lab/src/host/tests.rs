//! The parsers against text as kernels print it, and the readers against this host.

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
        assert_eq!(parse_cpus_allowed(&status), cores, "{list}");
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
    assert_eq!(parse_memory_octets(text), Some(25_219_551_232));
    assert_eq!(parse_memory_octets("nothing"), None);
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
    assert_eq!(parse_counter_pairs(text), expected);
}

#[test]
fn ipv6_counters_are_split_after_the_six() {
    let text = "Ip6InReceives                   \t12\nUdp6RcvbufErrors                \t3\n";
    assert_eq!(
        parse_snmp6(text),
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
    let before = network_counters();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
    let counted = difference(&before, &network_counters());
    assert!(counted["Udp.OutDatagrams"] >= 1, "{counted:?}");
}
