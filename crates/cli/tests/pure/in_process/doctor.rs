//! `throng doctor`: of hosts that are folders, of records, and of what is neither.

use std::fs;

use serde_json::Value;
use testing::folder::Folder;
use testing::program::Finished;

use crate::call::throng;

/// A folder that stands for a host with four CPUs and one interface with one queue.
fn host(name: &str, more: &[(&str, &str)]) -> Folder {
    let folder = Folder::new(name);
    let files = [
        ("etc/os-release", "PRETTY_NAME=\"Test Linux 1\"\n"),
        ("proc/self/status", "Cpus_allowed_list:\t0-3\n"),
        (
            "proc/self/limits",
            "Max open files            1024                 4096                 files\n",
        ),
        (
            "proc/meminfo",
            "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n",
        ),
        ("proc/sys/net/core/rmem_max", "212992\n"),
        ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
        (
            "proc/net/route",
            "Iface\neth0 00000000 0 0003 0 0 0 00000000 0 0 0\n",
        ),
        ("sys/class/net/eth0/mtu", "1500\n"),
        ("sys/class/net/eth0/device/vendor", "0x1\n"),
        ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n"),
    ];
    for (path, text) in files.iter().chain(more) {
        let path = folder.folder().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn doctor(host: &Folder, flags: &str) -> Finished {
    throng(&format!(
        "doctor --root {} {flags}",
        host.folder().display()
    ))
}

/// The diagnosis on a topic.
fn found<'a>(all: &'a Value, topic: &str) -> &'a Value {
    let all = all.as_array().unwrap();
    let found = all.iter().find(|it| it["topic"] == topic);
    found.unwrap_or_else(|| panic!("nothing on {topic}: {all:#?}"))
}

#[test]
fn a_host_is_judged_and_each_warning_has_its_command() {
    let text = doctor(&host("doctor-host", &[]), "").succeeded();
    for line in [
        "this host, as a generator of load",
        "  Test Linux 1, 4 CPUs, 16.0 GiB",
        "  warning  receive buffers     at most 212,992 bytes",
        "           cure  as root: sysctl -w net.core.rmem_max=4194304",
        "                 as root: echo f > /sys/class/net/eth0/queues/rx-0/rps_cpus",
        "  ok       source ports        32768 to 60999: 28,232 ports an address",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("3 warnings, "), "{last}");
}

#[test]
fn a_problem_for_what_is_planned_ends_with_exit_code_3() {
    let host = host("doctor-plan", &[]);
    doctor(&host, "--clients 20000").succeeded();
    let text = doctor(&host, "--clients 30000").ended_with(3);
    assert!(
        text.contains("as a generator with 30,000 clients"),
        "{text}"
    );
    assert!(text.contains("  problem  source ports"), "{text}");
    assert!(text.contains("--local-address"), "{text}");
    let text = doctor(&host, "--clients 3000 --server").ended_with(3);
    assert!(text.contains("as a server for 3,000 clients"), "{text}");
    assert!(text.contains("cure  shell: ulimit -n 3032"), "{text}");
}

#[test]
fn steal_and_quota_are_read_from_the_folder() {
    let more = [
        ("proc/stat", "cpu  100 0 100 700 0 0 0 100 0 0\n"),
        ("proc/self/cgroup", "0::/\n"),
        ("sys/fs/cgroup/cpu.max", "200000 100000\n"),
        (
            "sys/fs/cgroup/cpu.stat",
            "nr_throttled 5\nthrottled_usec 10\n",
        ),
    ];
    let host = host("doctor-steal", &more);
    let json = doctor(&host, "--format json").ended_with(3);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["state"], "problem");
    let steal = found(&json["diagnoses"], "CPU steal");
    assert_eq!(steal["seen"], "10.0 % of the time since the host started");
    let quota = found(&json["diagnoses"], "CPU quota");
    assert_eq!(
        quota["seen"],
        "4 CPUs, quota of 2.00 CPUs; throttled in 5 periods so far"
    );
    let cure = &quota["cures"][0];
    assert_eq!(
        (&cure["place"], &cure["how"]),
        (&"throng".into(), &"--workers 2".into())
    );
    assert_eq!(json["host"]["os"], "Test Linux 1");
}

/// A simulated run, and where its record is.
fn recorded(folder: &Folder, name: &str, flags: &str) -> String {
    let file = folder.path(name);
    throng(&format!(
        "run --quiet --driver sim --duration 2s --record {file} {flags}"
    ))
    .succeeded();
    file
}

#[test]
fn a_record_with_a_cap_on_clients_gets_binds_statements() {
    let folder = Folder::new("doctor-record");
    let flags = "--transport tcp --clients 200 --outstanding 200 --tcp-clients 150";
    let file = recorded(&folder, "capped.json", flags);
    let text = throng(&format!("doctor {file}")).ended_with(3);
    for line in [
        "  limit: server. The figures are those of the target.",
        "  problem  TCP clients",
        "           cure  BIND, named.conf, options: tcp-clients 1000;",
        "                 BIND, named.conf, options: tcp-listen-queue 4096;",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    // The report says the same.
    let report = throng(&format!("report {file} --format markdown")).succeeded();
    assert!(
        report.contains("BIND, named.conf, options: tcp-clients 1000;"),
        "{report}"
    );

    let json = throng(&format!("doctor {file} --format json")).ended_with(3);
    let json: Value = serde_json::from_str(&json).unwrap();
    let run = &json["runs"][0];
    assert_eq!(
        (&run["limit"], &run["file"]),
        (&"server".into(), &file.into())
    );
    assert_eq!(found(&run["diagnoses"], "TCP clients")["state"], "problem");
}

#[test]
fn a_folder_of_records_is_compared_by_its_labels() {
    let folder = Folder::new("doctor-labels");
    let load = "--outstanding 100 --sim-workers 1";
    recorded(
        &folder,
        "on.json",
        &format!("{load} --label querylog=on --sim-service-time 100us"),
    );
    recorded(
        &folder,
        "off.json",
        &format!("{load} --label querylog=off --sim-service-time 60us"),
    );
    let text = throng(&format!("doctor {}", folder.folder().display())).ended_with(3);
    for line in [
        "together",
        "  problem  query logging",
        "as root: rndc querylog off",
        "BIND, named.conf, options: querylog no;",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    // One alone shows nothing of the kind, and a target at its limit is no problem.
    let text = throng(&format!("doctor {}", folder.path("on.json"))).succeeded();
    assert!(!text.contains("querylog no;"), "{text}");
}

#[test]
fn files_and_hosts_that_cannot_be_judged_are_refused_with_a_cure() {
    let folder = Folder::new("doctor-refused");
    let text = folder.write("text.json", "no record");
    let object = folder.write("object.json", "{}");
    let empty = folder.path("empty");
    fs::create_dir(&empty).unwrap();
    let root = host("doctor-refused-host", &[]);
    let root = root.folder().display().to_string();
    for (flags, error, hint) in [
        (
            "missing.json".to_owned(),
            "cannot read missing.json",
            "file exists",
        ),
        (text, "not a run record", "files that --record wrote"),
        (object, "not a run record", "files that --record wrote"),
        (empty, "no run record in it", "files that --record wrote"),
        (
            format!("--root {root} --interface eth9"),
            "there is no network interface `eth9`",
            "there are: eth0",
        ),
        (
            "--interface nowhere0".to_owned(),
            "there is no network interface `nowhere0`",
            "there are: ",
        ),
        (
            "--root /nowhere".to_owned(),
            "neither proc nor sys",
            "copied to",
        ),
        ("--clients 0".to_owned(), "--clients", "1 or more"),
        (
            "a.json --clients 5".to_owned(),
            "--clients",
            "leave out one",
        ),
        ("--format html".to_owned(), "html", "text, json"),
    ] {
        throng(&format!("doctor {flags}")).refused_with(error, hint);
    }
}

#[test]
fn ceiling_of_a_copied_host_is_refused() {
    throng("doctor --ceiling --root elsewhere").refused_with("--ceiling", "leave out one");
}
