//! The parsers against text as kernels print it, and the sources against this host.

use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use testing::folder::Folder;

use super::find::Target;
use super::host::{add_cpus, add_softnet, counter};
use super::*;
use crate::profile::Picker;
use crate::profiles::{CGROUP, HOST, PROCESS};
use crate::reading::Reading;
use crate::source::Source;
use crate::stream::{Allowance, Limits};

fn allowance() -> Allowance {
    Allowance::starting_now(Limits {
        time: Duration::from_secs(60),
        ..Limits::default()
    })
}

#[test]
fn a_process_may_have_parentheses_in_its_name() {
    let line = "7 (a) b) S 1 7 7 0 -1 0 1 2 3 4 250 50 0 0 20 0 9 0 12345 1 2";
    let stat = Stat::parse(line).unwrap();
    assert_eq!((stat.name.as_str(), stat.started), ("a) b", 12_345));
    assert_eq!((stat.major_faults, stat.is_stopped), (3, false));
    let stopped = Stat::parse(&line.replace(" S ", " T ")).unwrap();
    assert!(stopped.is_stopped);
    assert_eq!((stat.user_s, stat.system_s), (2.5, 0.5));
    assert_eq!(Stat::parse("7 (a) S 1"), None);
}

#[test]
fn sockets_that_wait_for_queries_are_told_from_others() {
    let udp = "  1: 0100007F:0035 00000000:0000 07 00000000:00001A00 00:00000000 00000000     0 \
               0 777 2 0 9";
    let socket = sockets::parse(udp, false).unwrap();
    assert_eq!(socket.address.to_string(), "127.0.0.1:53");
    assert_eq!(
        (socket.waiting, socket.drops, socket.inode),
        (0x1a00, 9, 777)
    );
    let connected = udp.replace("00000000:0000 07", "0100007F:1234 01");
    assert_eq!(sockets::parse(&connected, false), None);
    let tcp = "0: 00000000000000000000000001000000:0035 \
               00000000000000000000000000000000:0000 0A 00000000:00000003 00:0 0 0 0 5";
    let socket = sockets::parse(tcp, true).unwrap();
    assert_eq!(
        (socket.address.to_string().as_str(), socket.waiting),
        ("[::1]:53", 3)
    );
    for line in ["", "1: x", "1: 0100007F:0035 00000000:0000 0A 0 0 0 0 0 5"] {
        assert_eq!(sockets::parse(line, true), None);
    }
}

/// A process in a control group of version 2, below one with a quota and a limit.
fn version_2() -> Folder {
    Folder::with(
        "v2",
        &[
            ("proc/5/cgroup", "0::/a/b\n"),
            (
                "sys/fs/cgroup/a/b/cpu.stat",
                "usage_usec 2500000\nuser_usec 2000000\n\
              system_usec 500000\nnr_periods 10\nnr_throttled 1\nthrottled_usec 5\n",
            ),
            ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/a/cpu.max", "50000 100000\n"),
            (
                "sys/fs/cgroup/a/cpu.stat",
                "usage_usec 9\nnr_periods 20\nnr_throttled 8\n\
              throttled_usec 3000000\n",
            ),
            ("sys/fs/cgroup/a/b/memory.current", "4096\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "8192\n"),
            ("sys/fs/cgroup/a/b/memory.events", "oom 1\noom_kill 2\n"),
        ],
    )
}

/// The same of version 1.
fn version_1() -> Folder {
    Folder::with(
        "v1",
        &[
            (
                "proc/5/cgroup",
                "4:memory:/a\n2:cpu,cpuacct:/a\n1:name=systemd:/x\n",
            ),
            ("sys/fs/cgroup/cpu/a/cpuacct.usage", "2500000000\n"),
            ("sys/fs/cgroup/cpu/a/cpuacct.usage_user", "2000000000\n"),
            ("sys/fs/cgroup/cpu/a/cpuacct.usage_sys", "500000000\n"),
            (
                "sys/fs/cgroup/cpu/a/cpu.stat",
                "nr_periods 20\nnr_throttled 8\n\
              throttled_time 3000000000\n",
            ),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "4096\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "8192\n"),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            (
                "sys/fs/cgroup/memory/a/memory.oom_control",
                "under_oom 0\noom_kill 2\n",
            ),
        ],
    )
}

#[test]
fn groups_under_one_quota_have_the_identity_of_the_group_that_has_it() {
    let files = [
        ("proc/5/cgroup", "0::/pod/one\n"),
        ("proc/6/cgroup", "0::/pod/two\n"),
        ("proc/7/cgroup", "0::/other\n"),
        ("proc/8/cgroup", "0::/free\n"),
        ("sys/fs/cgroup/pod/cpu.max", "50000 100000\n"),
        ("sys/fs/cgroup/pod/one/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/pod/two/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/other/cpu.max", "50000 100000\n"),
        ("sys/fs/cgroup/free/cpu.max", "max 100000\n"),
    ];
    let folder = Folder::with("proc-group-inode", &files);
    let root = Root::at(folder.folder());
    let inode = |pid| Group::of(&root, pid).unwrap().quota_inode(&root);
    assert!(inode(5).is_some());
    assert_eq!(inode(5), inode(6));
    assert!(inode(7).is_some() && inode(7) != inode(5));
    assert_eq!(inode(8), None);
}

/// Processes without a group of their own are in the root of version 1, where all kills count.
#[test]
fn kills_of_the_whole_host_are_none_of_a_process() {
    let counted = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n";
    let mut files = vec![
        ("proc/5/cgroup", "4:memory:/\n"),
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "4096\n"),
        ("sys/fs/cgroup/memory/memory.oom_control", counted),
    ];
    // In a container its own group is the root that it sees.
    for (name, has_kills) in [("proc-group-container", true), ("proc-group-host", false)] {
        let folder = Folder::with(name, &files);
        let root = Root::at(folder.folder());
        let samples = Group::of(&root, 5).unwrap().samples(&root);
        let told = |name: &str| samples.iter().any(|it| it.name == name);
        assert!(told("group.memory"), "{name}");
        assert_eq!(told("group.killed"), has_kills, "{name}");
        files.push(("sys/fs/cgroup/memory/release_agent", ""));
    }
}

#[test]
fn control_groups_of_both_versions_tell_their_time_and_throttling() {
    for folder in [version_2(), version_1()] {
        let root = Root::at(folder.folder());
        let group = Group::of(&root, 5).unwrap();
        assert_eq!(group.quota_cpus(&root), Some(0.5));
        let reading = Reading {
            samples: group.samples(&root),
            ..Reading::default()
        };
        for (name, expected) in [
            ("group.cpu", 2.5),
            ("group.cpu_user", 2.0),
            ("group.cpu_system", 0.5),
            ("group.memory", 4_096.0),
            ("group.memory_limit", 8_192.0),
            ("group.killed", 2.0),
            ("group.periods", 20.0),
            ("group.throttled_periods", 8.0),
            ("group.throttled_time", 3.0),
        ] {
            let value = reading.value(name).unwrap();
            assert!((value - expected).abs() < 1e-9, "{name}: {value}");
        }
        assert_eq!(
            Picker::new(&CGROUP, &[], Vec::new()).pick(&reading).len(),
            CGROUP.rows.len()
        );
    }
    assert_eq!(Group::at("/sys/fs/cgroup/a/"), Group::at("a"));
}

#[test]
fn what_the_kernel_counts_is_read() {
    let mut reading = Reading::default();
    let busy = add_cpus(
        "cpu  100 0 50 800 50 0 25 5 0 0\ncpu0 100 0 50 1 1 0 25 5\nintr 5\n",
        &mut reading,
    );
    assert_eq!(busy["0"], 1.75);
    assert_eq!(reading.value("cpu.idle"), Some(8.5));
    assert_eq!(reading.value("each_cpu.softirq"), Some(0.25));
    add_softnet(
        "0000000a 00000001 00000002\n00000006 00000000 00000001\n",
        &mut reading,
    );
    assert_eq!(reading.value("softnet.packets"), Some(16.0));
    assert_eq!(reading.value("softnet.squeezed"), Some(3.0));
    let text = "Udp: InDatagrams RcvbufErrors\nUdp: 5 7\nUdpLite: RcvbufErrors\nUdpLite: 1\n";
    assert_eq!(counter(text, "Udp", "RcvbufErrors"), Some(7.0));
    assert_eq!(counter(text, "Udp", "NoSuch"), None);
}

#[test]
fn this_process_is_found_by_number_and_by_its_ports_and_tells_its_series() {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = udp.local_addr().unwrap();
    // Where the port is taken over TCP the series of TCP are missing, which is no failure.
    let tcp = TcpListener::bind(address);
    let pid = std::process::id();
    for place in [
        pid.to_string(),
        address.to_string(),
        format!(":{}", address.port()),
    ] {
        let mut program = Program::new(Root::this(), Target::parse(&place).unwrap());
        let mut picker = Picker::new(&PROCESS, &[], Vec::new());
        program.read(&allowance()).unwrap();
        udp.send_to(b"waits", address).unwrap();
        let answer = program.read(&allowance()).unwrap();
        let values = picker.pick(&answer.reading);
        let value = |name: &str| values.iter().find(|it| it.name == name).map(|it| it.value);
        assert!(
            value("cpu.user").is_some() && value("memory").unwrap() > 0.0,
            "{place}"
        );
        assert!(value("threads").unwrap() >= 1.0 && value("files").unwrap() >= 1.0);
        assert!(value("udp.waiting").unwrap() > 0.0 && value("udp.drops") == Some(0.0));
        assert!(tcp.is_err() || value("tcp.waiting").is_some());
        assert!(value("cpu.busiest_thread").is_some());
        let facts = program.facts();
        assert_eq!(facts.process_id, Some(pid));
        assert_eq!(facts.binary_sha256.map(|it| it.len()), Some(64));
        assert!(facts.threads.is_some() && facts.cpus.is_some());
    }
}

#[test]
fn what_a_process_writes_to_files_is_their_growth_and_no_sockets() {
    let folder = Folder::new("observe-log");
    let mut file = fs::File::create(folder.path("log")).unwrap();
    let target = Target::Number(std::process::id());
    let mut program = Program::new(Root::this(), target);
    let written = |program: &mut Program| {
        let answer = program.read(&allowance()).unwrap();
        answer.reading.value("files.written").unwrap()
    };
    let before = written(&mut program);
    file.write_all(&[0; 5_000]).unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.send_to(&[0; 1_000], udp.local_addr().unwrap()).unwrap();
    let after = written(&mut program);
    // The harness may print meanwhile.
    assert!(after - before >= 5_000.0, "{before} {after}");
}

#[test]
fn a_process_that_is_gone_or_never_was_is_a_gap() {
    // The port of a client: no process serves it, and no other process can.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let nobody = client.local_addr().unwrap();
    for place in [
        "no-such-process".to_owned(),
        u32::MAX.to_string(),
        nobody.to_string(),
    ] {
        let mut program = Program::new(Root::this(), Target::parse(&place).unwrap());
        let gap = program.read(&allowance()).unwrap_err();
        assert!(gap.to_string().starts_with("there is no") || place == nobody.to_string());
    }
    for place in ["", "a/b", ":x", "a:b"] {
        assert!(Target::parse(place).is_err(), "{place}");
    }
}

#[test]
fn this_host_tells_its_series() {
    let mut host = HostSource::new(Root::this());
    host.read(&allowance()).unwrap();
    let answer = host.read(&allowance()).unwrap();
    let values = Picker::new(&HOST, &[], Vec::new()).pick(&answer.reading);
    for row in HOST.rows {
        let is_there = values
            .iter()
            .any(|it| it.name.split('{').next() == Some(row.name));
        assert!(is_there, "{}", row.name);
    }
    assert!(host.facts().version.is_some());
}

/// A server of three processes, one of which is replaced: its sum goes on.
#[test]
fn program_of_several_processes_is_named_by_its_executable_and_adds_up() {
    const WORDS: &str = "/usr/sbin/nsd\0-d\0-c\0nsd.conf\0";
    let stat = |name: &str, user: u32, started: u32| {
        format!("7 ({name}) S 1 7 7 0 -1 0 1 2 0 4 {user} 0 0 0 20 0 1 0 {started} 1 2")
    };
    let folder = Folder::new("observe-workers");
    let write = |path: &str, text: &str| {
        let path = folder.path(path);
        fs::create_dir_all(std::path::Path::new(&path).parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let process = |pid: u32, name: &str, user: u32, started: u32| {
        write(&format!("proc/{pid}/comm"), &format!("{name}\n"));
        write(&format!("proc/{pid}/cmdline"), WORDS);
        write(&format!("proc/{pid}/stat"), &stat(name, user, started));
        let status = format!("Cpus_allowed_list:\t{}\n", pid - 10);
        write(&format!("proc/{pid}/status"), &status);
    };
    write("proc/uptime", "1.00 1.00\n");
    process(10, "nsd: xfrd", 100, 50);
    process(11, "nsd: main", 200, 51);
    process(12, "nsd: server 1", 300, 52);
    let target = Target::parse("nsd").unwrap();
    let mut program = Program::new(Root::at(folder.folder()), target);
    let facts = program.facts();
    assert_eq!(facts.product.as_deref(), Some("nsd"));
    assert_eq!(facts.cpus.as_deref(), Some("0-2"));
    let cpu = |program: &mut Program| {
        let answer = program.read(&allowance()).unwrap();
        answer.reading.value("cpu.user").unwrap()
    };
    assert_eq!(cpu(&mut program), 6.0);
    write("proc/uptime", "2.00 2.00\n");
    fs::remove_dir_all(folder.path("proc/12")).unwrap();
    process(13, "nsd: server 1", 50, 150);
    assert_eq!(cpu(&mut program), 6.5);
}

/// A thread that ends takes neither its waits nor its switches with it.
#[test]
fn threads_that_end_leave_what_they_counted() {
    let folder = Folder::new("observe-threads");
    let write = |path: &str, text: &str| {
        let path = folder.path(path);
        fs::create_dir_all(std::path::Path::new(&path).parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("proc/uptime", "1.00 1.00\n");
    write("proc/9/comm", "named\n");
    write("proc/9/cmdline", "/usr/sbin/named\0");
    let stat = "9 (named) S 1 7 7 0 -1 0 1 2 0 4 100 0 0 0 20 0 1 0 50 1 2";
    write("proc/9/stat", stat);
    let thread = |number: u32, waited_ns: u64, switches: u32| {
        let at = format!("proc/9/task/{number}");
        write(&format!("{at}/schedstat"), &format!("5 {waited_ns} 7\n"));
        let status = format!("voluntary_ctxt_switches:\t{switches}\n");
        write(&format!("{at}/status"), &status);
    };
    let target = Target::parse("named").unwrap();
    let mut program = Program::new(Root::at(folder.folder()), target);
    let counted = |program: &mut Program| {
        let reading = program.read(&allowance()).unwrap().reading;
        let value = |name: &str| reading.value(name).unwrap();
        (value("run_queue"), value("switches.voluntary"))
    };
    thread(9, 1_000_000_000, 10);
    thread(10, 2_000_000_000, 500);
    assert_eq!(counted(&mut program), (3.0, 510.0));
    fs::remove_dir_all(folder.path("proc/9/task/10")).unwrap();
    thread(9, 1_500_000_000, 11);
    assert_eq!(counted(&mut program), (3.5, 511.0));
    thread(11, 500_000_000, 3);
    assert_eq!(counted(&mut program), (4.0, 514.0));
}

/// A container may name as its configuration what is not its own, or what never ends.
#[test]
fn configuration_that_is_no_file_of_the_process_is_a_gap() {
    let folder = Folder::new("observe-configuration");
    let root = folder.path("proc/9/root");
    fs::create_dir_all(format!("{root}/etc")).unwrap();
    let write = |path: &str, text: &str| fs::write(folder.path(path), text).unwrap();
    write("proc/uptime", "1.00 1.00\n");
    write("proc/9/comm", "named\n");
    write("proc/9/cmdline", "/usr/sbin/named\0-c\0/etc/named.conf\0");
    let stat = "9 (named) S 1 7 7 0 -1 0 1 2 0 4 100 0 0 0 20 0 1 0 50 1 2";
    write("proc/9/stat", stat);
    write("secret", "of the host");
    let configuration = format!("{root}/etc/named.conf");
    let facts_and_gap = || {
        let target = Target::parse("named").unwrap();
        let mut program = Program::new(Root::at(folder.folder()), target);
        let hash = program.facts().configuration_sha256;
        let mut gaps = program.gaps().into_iter();
        (hash, gaps.find(|gap| gap.contains("`/etc/named.conf`")))
    };
    let refused = |why: &str| {
        let (hash, gap) = facts_and_gap();
        assert_eq!(hash, None, "{why}");
        let gap = gap.unwrap();
        assert!(gap.contains(why), "{gap}");
        fs::remove_file(&configuration).unwrap();
    };
    std::os::unix::fs::symlink(folder.path("secret"), &configuration).unwrap();
    refused("does not exist within the root");
    std::os::unix::fs::symlink("../../../../secret", &configuration).unwrap();
    refused("does not exist within the root");
    let kind = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &configuration, kind, mode, 0).unwrap();
    refused("it is a pipe");
    let long = fs::File::create(&configuration).unwrap();
    long.set_len(1 << 30).unwrap();
    refused("has more than");
    fs::write(&configuration, "options {};").unwrap();
    let (hash, gap) = facts_and_gap();
    assert!(hash.is_some() && gap.is_none(), "{gap:?}");
}
