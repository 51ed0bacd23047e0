//! `throng lab`: real servers that stay, that end with a command, and what is left of them. Each
//! test has a temporary folder of its own, so that it sees its own servers alone.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use measure::RunRecord;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use testing::folder::Folder;
use testing::host::is_root_for;
use testing::program::{Finished, Running, execute, signal};

use testing::wait;

use crate::process::THRONG;

/// The servers of one test; all have ended when it is dropped.
pub(crate) struct Lab(pub(crate) Folder);

impl Lab {
    pub(crate) fn new(test: &str) -> Lab {
        Lab(Folder::new(test))
    }

    fn throng(&self, flags: &str) -> Finished {
        let folder = self.0.folder().display();
        execute(&format!("env TMPDIR={folder} {THRONG} {flags}"))
    }

    pub(crate) fn up(&self, flags: &str) -> String {
        self.throng(&format!("lab up {flags}")).succeeded()
    }

    pub(crate) fn list(&self) -> Vec<Value> {
        let json = self.throng("lab list --format json").succeeded();
        serde_json::from_str(&json).unwrap()
    }

    /// What is in the folder of all servers.
    fn left(&self) -> usize {
        fs::read_dir(self.0.folder()).unwrap().count()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.throng("lab down --all");
    }
}

fn process_of(server: &Value) -> u64 {
    server["process"]["id"].as_u64().unwrap()
}

/// The variables with which a process was started.
fn environment(process: u64) -> BTreeMap<String, String> {
    let text = fs::read_to_string(format!("/proc/{process}/environ")).unwrap();
    let pairs = text.split('\0').filter_map(|it| it.split_once('='));
    pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
}

/// True until it has ended, whether or not somebody has reaped it.
fn is_there(process: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

/// The first command that a text offers.
fn offered<'a>(text: &'a str, start: &str) -> &'a str {
    let mut lines = text.lines().map(str::trim);
    let line = lines.find(|line| line.starts_with(start));
    line.unwrap_or_else(|| panic!("no `{start}`: {text}"))
}

#[test]
fn a_server_stays_until_it_is_ended_and_the_commands_it_offers_work() {
    let lab = Lab::new("lab-stays");
    let text = lab.up("bind --data zone:20,ttl=1s --set tcp-clients=77");
    let listed = lab.list();
    let [server] = listed.as_slice() else {
        panic!("{listed:?}");
    };
    assert_eq!(server["name"], "bind");
    let process = process_of(server);
    assert!(is_there(process));
    for transport in ["udp", "dot"] {
        let start = format!("throng run --server {}", address(server, transport));
        let command = offered(&text, &start).strip_prefix("throng ").unwrap();
        let flags = format!("{command} --quiet --format json --rate 200 --queries 100");
        let record = RunRecord::from_json(&lab.throng(&flags).succeeded()).unwrap();
        assert_eq!(record.total.counts.responses, 100, "{transport}");
        assert_eq!(record.total.counts.rcodes.by_rcode[0], 100, "{transport}");
    }
    let log = lab.throng("lab logs bind").succeeded();
    assert!(log.contains("all zones loaded"), "{log}");
    lab.throng("lab up bind")
        .refused_with("`bind` runs already", "--name");
    lab.throng("lab down bind").succeeded();
    assert!(!is_there(process));
    assert_eq!((lab.list().len(), lab.left()), (0, 0));
    lab.throng("lab down bind")
        .refused_with("no server `bind`", "throng lab list");
}

pub(crate) fn address<'a>(server: &'a Value, transport: &str) -> &'a str {
    let addresses = server["addresses"].as_array().unwrap();
    let found = addresses.iter().find(|pair| pair[0] == transport);
    found.unwrap()[1].as_str().unwrap()
}

#[test]
fn a_proxy_is_ended_with_what_stands_behind_it() {
    let lab = Lab::new("lab-proxy");
    lab.up("haproxy --name front --transports none");
    let names: Vec<Value> = lab.list().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["front", "front-bind"]);
    lab.throng("lab down front").succeeded();
    assert_eq!((lab.list().len(), lab.left()), (0, 0));
}

#[test]
fn a_server_ends_with_its_command_whose_exit_code_counts() {
    let lab = Lab::new("lab-command");
    let test = lab.0.write(
        "test",
        "test -n \"$THRONG_UDP\" && cat \"$THRONG_NAMES\"; exit 7",
    );
    let finished = lab.throng(&format!("lab up nsd --data zone:2 -- sh {test}"));
    let printed = finished.ended_with(7);
    assert_eq!(
        printed,
        "test-record-1.lab.test. A\ntest-record-2.lab.test. A\n"
    );
    fs::remove_file(test).unwrap();
    assert_eq!((lab.list().len(), lab.left()), (0, 0));
}

#[test]
fn what_a_killed_command_left_is_found_named_and_removed() {
    let lab = Lab::new("lab-killed");
    let kill = lab.0.write("kill", "kill -KILL $PPID; exec sleep 60");
    let finished = lab.throng(&format!("lab up nsd --name killed -- sh {kill}"));
    assert_eq!(finished.code, None);
    fs::remove_file(kill).unwrap();
    let text = lab.throng("lab list").succeeded();
    assert!(text.contains("(nsd): left over"), "{text}");
    let left = lab.list();
    let next = lab.throng("lab up nsd");
    let name = left[0]["name"].as_str().unwrap().to_owned();
    let told = format!("removed what was left over of `{name}`");
    assert!(next.stderr.contains(&told), "{}", next.stderr);
    next.succeeded();
    assert!(!is_there(process_of(&left[0])));
    assert_eq!((lab.list().len(), lab.left()), (1, 1));
    // One that has ended by itself.
    let process = process_of(&lab.list()[0]);
    let group = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    kill_process_group(group, Signal::KILL).unwrap();
    lab.throng("lab down --all").succeeded();
    assert_eq!((lab.list().len(), lab.left()), (0, 0));
}

#[test]
fn limits_hold_and_are_removed() {
    let lab = Lab::new("lab-limits");
    let finished = lab.throng("lab up bind --cpus 0 --quota 0.5 --memory 512M");
    if finished.code == Some(2) {
        let (error, hint) = finished.refused();
        assert!(error.contains("no limit of"), "{error}");
        assert!(!hint.is_empty());
        eprintln!("left out: this host lets nobody make control groups");
        return;
    }
    let flags = offered(&finished.stdout, "throng run")
        .strip_prefix("throng ")
        .unwrap();
    let flags = format!("{flags} --quiet --format json --queries 1000 --observe auto");
    let record = RunRecord::from_json(&lab.throng(&flags).succeeded()).unwrap();
    let facts = &record.observations[1].facts;
    assert_eq!(
        (facts.cpus.as_deref(), facts.quota_cpus),
        (Some("0"), Some(0.5))
    );
    let groups: Vec<String> = serde_json::from_value(lab.list()[0]["groups"].clone()).unwrap();
    assert!(groups.iter().all(|it| Path::new(it).exists()), "{groups:?}");
    lab.throng("lab down bind").succeeded();
    assert!(
        !groups.iter().any(|it| Path::new(it).exists()),
        "{groups:?}"
    );
}

#[test]
fn a_server_of_ones_own_starts_by_its_command_line() {
    let lab = Lab::new("lab-custom");
    lab.throng("lab up custom")
        .refused_with("no command", "--set");
    let zone = "--zone {folder}/zone.db --origin {origin}";
    let listen = "--listen udp:{address}:{port},tcp:{address}:{port}";
    let output = Command::new(THRONG)
        .env("TMPDIR", lab.0.folder())
        .args(["lab", "up", "custom", "--data", "zone:5", "--set"])
        .arg(format!("command={THRONG} responder {listen} {zone}"))
        .output();
    let text = Finished::new("lab up custom", output.unwrap()).succeeded();
    let flags = offered(&text, "throng run")
        .strip_prefix("throng ")
        .unwrap();
    let flags = format!("{flags} --quiet --format json --queries 50");
    let record = RunRecord::from_json(&lab.throng(&flags).succeeded()).unwrap();
    assert_eq!(record.total.counts.rcodes.by_rcode[0], 50);
    assert!(!text.contains("dot"), "{text}");
}

#[test]
fn a_server_sees_variables_of_its_command_line_alone() {
    let lab = Lab::new("lab-environment");
    let line = "--origin {origin} --listen udp:{address}:{port},tcp:{address}:{port}";
    let output = Command::new(THRONG)
        .env("TMPDIR", lab.0.folder())
        .env("SECRET_OF_CALLER", "1")
        .args(["lab", "up", "custom", "--data", "zone:5", "--set"])
        .arg(format!(
            "command=env GIVEN=2 {THRONG} responder --zone {{folder}}/zone.db {line}"
        ))
        .output();
    Finished::new("lab up custom", output.unwrap()).succeeded();
    let server = &lab.list()[0];
    let variables = environment(process_of(server));
    assert!(!variables.contains_key("SECRET_OF_CALLER"), "{variables:?}");
    assert_eq!(variables["GIVEN"], "2");
    assert_eq!(variables["HOME"], server["folder"]);
}

#[test]
fn servers_of_root_run_as_the_user_that_is_named() {
    if !is_root_for("the user of a server") {
        return;
    }
    let lab = Lab::new("lab-user");
    for (flags, user) in [
        ("", "65534"),
        ("--server-user root", "0"),
        ("--server-user 1", "1"),
    ] {
        lab.up(&format!("nsd {flags}"));
        let process = process_of(&lab.list()[0]);
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let line = status.lines().find(|it| it.starts_with("Uid:")).unwrap();
        assert_eq!(line.split_whitespace().nth(1), Some(user), "{flags}");
        lab.throng("lab down nsd").succeeded();
        assert_eq!((lab.list().len(), lab.left()), (0, 0), "{flags}");
    }
    lab.throng("lab up nsd --server-user no-such-user")
        .refused_with("no user `no-such-user`", "getent");
    // What the user may not run is explained.
    let closed = Folder::new("lab-user-closed");
    fs::set_permissions(closed.folder(), PermissionsExt::from_mode(0o700)).unwrap();
    let server = closed.write("server", "#!/bin/sh\n");
    fs::set_permissions(&server, PermissionsExt::from_mode(0o755)).unwrap();
    let up = lab.throng(&format!("lab up custom --set command={server}"));
    assert_eq!(up.code, Some(2), "{}", up.stderr);
    for told in ["Permission denied\nhint: ", "`nobody`", "--server-user"] {
        assert!(up.stderr.contains(told), "{}", up.stderr);
    }
    assert_eq!(lab.left(), 0);
}

#[test]
fn what_cannot_be_is_refused_with_the_cure() {
    let lab = Lab::new("lab-refused");
    for (flags, error, hint) in [
        ("no-such", "no product `no-such`", "bind"),
        ("bind --set threads=0", "`0` is wrong", "from 1 to"),
        ("bind --set colour=red", "no factor `colour`", "threads"),
        ("bind --data zone:0", "`0` names", "from 1 to"),
        ("bind --data file:/no/such,origin=a.test", "/no/such", ""),
        ("bind --cpus 3-1", "`3-1` is not a list", "0-1,3"),
        ("bind --quota 0", "quota: `0`", "0.01"),
        ("bind --transports doq", "has no DNS over QUIC", ""),
        ("bind --program /no/such/program", "/no/such/program", ""),
    ] {
        let (said, cure) = lab.throng(&format!("lab up {flags}")).refused();
        assert!(said.contains(error), "{flags}: {said}");
        assert!(cure.contains(hint), "{flags}: {cure}");
        assert_eq!(lab.left(), 0, "{flags}");
    }
    let finished = lab.throng("lab up bind --set options=no-such-option;");
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("unknown option"),
        "{}",
        finished.stderr
    );
    assert_eq!(lab.left(), 0);
    let products = lab.throng("lab products").succeeded();
    for product in ::lab::target::products::all() {
        let line = format!("{}: {}", product.name, product.title);
        assert!(products.contains(&line), "{products}");
    }
}

#[test]
fn program_that_is_neither_installed_nor_prepared_is_refused_with_what_to_do() {
    let lab = Lab::new("lab-unprepared");
    let cache = lab.0.path("cache");
    let run = |flags: &str| {
        let line = format!("env -u THRONG_PREPARED_SERVERS XDG_CACHE_HOME={cache} {THRONG} lab");
        execute(&format!("{line} {flags}"))
    };
    let of_cache = format!("{cache}/throng/servers/");
    let (error, hint) = run("up knot --transports dot").refused();
    assert!(error.contains("has no DoT and no DoQ"), "{error}");
    assert!(error.contains(&of_cache), "{error}");
    for part in ["--transports none", "package `knot`", "servers/prepare"] {
        assert!(hint.contains(part), "{hint}");
    }
    let (error, hint) = run("up coredns").refused();
    assert!(error.contains(&of_cache), "{error}");
    assert!(hint.contains("as `coredns` on the PATH"), "{hint}");
    let products = run("products").succeeded();
    assert!(products.contains("(`knotd` 3.2"), "{products}");
}

/// Runs a command after others that change mounts, in a namespace of its own. None without the
/// rights to do so.
fn after_mounts(lab: &Lab, mounts: &str, flags: &str) -> Option<Finished> {
    let scripts = Folder::new("lab-mounts");
    let folder = lab.0.folder().display();
    let script = format!("set -e\n{mounts}\nexec env TMPDIR={folder} {THRONG} {flags}\n");
    let script = scripts.write("script", script);
    is_root_for("network namespaces").then(|| execute(&format!("unshare --mount sh {script}")))
}

#[test]
fn without_control_groups_to_write_to_there_is_no_quota_and_cpus_still_hold() {
    let lab = Lab::new("lab-no-groups");
    for mounts in [
        "mount -t tmpfs none /sys/fs/cgroup",
        "for it in $(grep -o ' /sys/fs/cgroup[^ ]*' /proc/mounts); do\n\
         mount -o remount,bind,ro $it; done",
    ] {
        let Some(refused) = after_mounts(&lab, mounts, "lab up nsd --quota 0.5 -- true") else {
            return;
        };
        refused.refused_with("no limit of cpu", "set CPUs, which needs no rights");
        let placed = after_mounts(&lab, mounts, "lab up nsd --cpus 0 -- true");
        placed.unwrap().succeeded();
        assert_eq!(lab.left(), 0, "{mounts}");
    }
}

#[test]
fn without_root_servers_run_and_what_needs_it_says_so() {
    let lab = Lab::new("lab-not-root");
    if !is_root_for("network namespaces") {
        return;
    }
    let folder = lab.0.folder();
    fs::set_permissions(folder, PermissionsExt::from_mode(0o777)).unwrap();
    let as_nobody = |flags: &str| {
        // The program may be where nobody else can look.
        let line = format!("exec 3<{THRONG}; exec /proc/self/fd/3 {flags}");
        let output = Command::new("timeout")
            .env("TMPDIR", folder)
            .args(["100", "setpriv", "--reuid=65534", "--regid=65534"])
            .args(["--clear-groups", "sh", "-c", &line])
            .output();
        Finished::new(flags, output.unwrap())
    };
    as_nobody("lab up nsd --cpus 0 -- true").succeeded();
    as_nobody("lab up nsd --quota 0.5 -- true").refused_with("no limit of cpu", "start as root");
    let network = as_nobody("lab up nsd --topology veth -- true");
    network.refused_with("network", "loopback");
    assert_eq!(lab.left(), 0);
}

#[test]
fn a_full_disk_is_told_with_the_cure() {
    let lab = Lab::new("lab-full");
    let folder = lab.0.folder().display();
    let mounts = format!(
        "mount -t tmpfs -o size=64k none {folder}\ndd if=/dev/zero of={folder}/all bs=1k \
         count=64 2>/dev/null"
    );
    let Some(finished) = after_mounts(&lab, &mounts, "lab up nsd") else {
        return;
    };
    finished.refused_with("No space left on device", "TMPDIR");
    let other = Folder::new("lab-full-experiment");
    let experiment = "repeat = 3\n[run]\nduration = \"300ms\"\nrate = 100\n[[server]]\n\
                      product = \"nsd\"\ndata = \"zone:5\"\n";
    let experiment = other.write("experiment.toml", experiment);
    let full = other.path("full");
    fs::create_dir(&full).unwrap();
    let mounts = format!("mount -t tmpfs -o size=80k none {full}");
    let run = format!("experiment run {experiment} --output {full}/out");
    let finished = after_mounts(&lab, &mounts, &run).unwrap();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    for told in ["KiB left on its disk", "the same command goes on from here"] {
        assert!(finished.stderr.contains(told), "{}", finished.stderr);
    }
    assert_eq!(lab.list().len(), 0);
}

#[test]
fn a_port_that_is_never_free_is_told_with_the_cure() {
    let lab = Lab::new("lab-port");
    let scripts = Folder::new("lab-port-server");
    let server = scripts.write(
        "server",
        "#!/bin/sh\necho Address already in use >&2; exit 1\n",
    );
    fs::set_permissions(&server, PermissionsExt::from_mode(0o755)).unwrap();
    let up = lab.throng(&format!("lab up custom --set command={server}"));
    assert_eq!(up.code, Some(2), "{}", up.stderr);
    for told in [
        "no start in 5 attempts",
        "Address already in use",
        "hint: ",
        "`ss -lnp`",
    ] {
        assert!(up.stderr.contains(told), "{}", up.stderr);
    }
    assert_eq!(lab.left(), 0);
}

#[test]
fn an_interrupt_beside_a_command_ends_the_server_too() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let lab = Lab::new("lab-interrupt");
        let marks = Folder::new("lab-interrupt-marks");
        let begun = marks.path("begun");
        let line = format!("touch {begun}; exec sleep 100");
        let mut command = Command::new(THRONG);
        command.env("TMPDIR", lab.0.folder()).args(["lab", "up"]);
        command.args(["nsd", "--", "sh", "-c", &line]);
        let mut running = Running(command.spawn().unwrap());
        wait::until_child(&mut running.0, "the command", |_| {
            Path::new(&begun).exists()
        });
        signal(&running.0, name);
        assert_eq!(running.0.wait().unwrap().code(), Some(code));
        assert_eq!(lab.left(), 0);
    }
}

#[test]
fn servers_that_start_at_the_same_time_do_not_share_a_name() {
    let lab = Lab::new("lab-same-name");
    let start = || {
        let mut command = Command::new(THRONG);
        command.env("TMPDIR", lab.0.folder());
        command.args(["lab", "up", "nsd"]).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let started = [(); 4].map(|()| start());
    let ended = started.map(|child| {
        let output = child.wait_with_output().unwrap();
        Finished::new("lab up nsd", output)
    });
    let (refused, up): (Vec<_>, Vec<_>) = ended.into_iter().partition(|it| it.code == Some(2));
    assert_eq!((up.len(), refused.len()), (1, 3));
    up.into_iter().for_each(|it| drop(it.succeeded()));
    for one in refused {
        // One that comes late finds the server in the list.
        let reasons = ["`nsd` is being started", "`nsd` runs already"];
        let is_named = reasons.iter().any(|reason| one.stderr.contains(reason));
        assert!(is_named && one.stderr.contains("--name"), "{}", one.stderr);
    }
    assert_eq!((lab.list().len(), lab.left()), (1, 1));
    lab.throng("lab down nsd").succeeded();
    assert_eq!(lab.left(), 0);
}

#[test]
fn folder_whose_path_servers_cannot_read_is_refused_with_the_cure() {
    let lab = Lab::new("lab-path");
    for name in ["with space", "with'quote", "with\"quote", "with,comma"] {
        let folder = lab.0.path(name);
        fs::create_dir(&folder).unwrap();
        let mut command = Command::new(THRONG);
        command.env("TMPDIR", &folder);
        command.args(["lab", "up", "nsd", "--", "true"]);
        let finished = Finished::new("lab up nsd", command.output().unwrap());
        finished.refused_with("servers do not take", "TMPDIR");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "{name}");
    }
}
