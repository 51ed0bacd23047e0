//! How a cluster ends: with its command, with its script and with its programs.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use testing::folder::Folder;
use testing::program::{Running, signal};
use testing::wait;

use crate::bed::{Cluster, script};

/// The exit code of `cluster/run` if a program of the cluster has ended.
const PROGRAM_ENDED: Option<i32> = Some(125);

/// Ends the cluster.
pub(crate) fn with_its_api_server(cluster: Cluster) {
    // The shell that kills it may end before it knows that it has.
    cluster.shell("pkill -KILL -x kube-apiserver", "");
    assert_eq!(cluster.exit_code(), PROGRAM_ENDED);
}

/// A cluster of one node that starts, with a folder of its own for temporary files.
fn starting(temporary: &Path) -> Running {
    // What runs tests in the background ignores SIGINT, and a shell cannot change that.
    let mut command = Command::new("env");
    command
        .args(["--default-signal=HUP,INT,TERM"])
        .arg(script("run"));
    command.args(["--nodes", "1", "sleep", "1000"]);
    command.env("TMPDIR", temporary);
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    Running(command.spawn().unwrap())
}

/// Processes of clusters there, with their command lines.
fn processes(temporary: &Path) -> Vec<(PathBuf, String)> {
    let variable = format!("CLUSTER={}/", temporary.display());
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let line = |entry: fs::DirEntry| {
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let mut variables = environment.split(|octet| *octet == 0);
        let is_there = variables.any(|it| it.starts_with(variable.as_bytes()));
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        is_there.then(|| (entry.path(), line))
    };
    all.filter_map(line).collect()
}

fn run_a(program: &str, temporary: &Path) -> bool {
    let all = processes(temporary);
    all.iter().any(|(_, line)| line.starts_with(program))
}

/// Control groups of the clusters that are or were there.
fn groups(folders: &[String]) -> Vec<String> {
    let find = ["/sys/fs/cgroup", "-type", "d", "-name", "throng-cluster-*"];
    let found = Command::new("find").args(find).output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    let name = |folder: &String| folder.replacen("cluster.", "cluster-", 1);
    let is_one = |line: &&str| folders.iter().any(|it| line.contains(&name(it)));
    found.lines().filter(is_one).map(str::to_owned).collect()
}

/// Names of what is in a folder.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| {
        let name = entry.unwrap().file_name();
        name.into_string().unwrap()
    };
    entries.map(name).collect()
}

/// PID and start of this process, as they are in the names of folders.
fn of_this_process() -> (u32, String) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, behind_name) = stat.rsplit_once(") ").unwrap();
    let start = behind_name.split(' ').nth(19).unwrap();
    (std::process::id(), start.to_owned())
}

#[test]
fn nothing_is_left_of_a_cluster_whose_script_was_killed() {
    let temporary = Folder::new("killed");
    let path = temporary.folder();
    // One of a script that has had the PID of this process, and one of a script that runs.
    let (pid, start) = of_this_process();
    let of_dead = format!("throng-cluster.{pid}-s1{start}-dead00");
    let of_living = format!("throng-cluster.{pid}-s{start}-living");
    fs::create_dir(path.join(&of_dead)).unwrap();
    fs::create_dir(path.join(&of_living)).unwrap();
    let mut folders = Vec::new();
    for (name, number) in [("KILL", 9), ("TERM", 15), ("HUP", 1), ("INT", 2)] {
        let mut cluster = starting(path);
        // The last program of a node's that starts before the API server answers.
        wait::until_child(&mut cluster, "containerd", |_| run_a("containerd ", path));
        folders.extend(names_in(path).into_iter().filter(|it| *it != of_living));
        assert!(!folders.contains(&of_dead), "{folders:?}");
        assert!(!groups(&folders).is_empty());
        signal(&cluster, name);
        let ended = cluster.wait().unwrap();
        if name == "KILL" {
            assert_eq!(ended.signal(), Some(number));
            // Files and groups stay until the next start.
            wait::until("the end of all processes", || processes(path).is_empty());
            continue;
        }
        assert_eq!(ended.code(), Some(128 + number), "{name}");
        assert_eq!(processes(path), [], "{name}");
        assert_eq!(names_in(path), [of_living.as_str()], "{name}");
        assert_eq!(groups(&folders), [""; 0], "{name}");
    }
}

#[test]
fn cluster_whose_api_server_ends_says_so() {
    let temporary = Folder::new("api-server");
    let path = temporary.folder();
    let mut cluster = starting(path);
    let server = "kube-apiserver ";
    wait::until_child(&mut cluster, server, |_| run_a(server, path));
    let all = processes(path);
    let (process, _) = all
        .iter()
        .find(|(_, line)| line.starts_with(server))
        .unwrap();
    let pid = process.file_name().unwrap();
    let killed = Command::new("kill").args(["-s", "KILL"]).arg(pid).status();
    assert!(killed.unwrap().success());
    let ended = cluster.wait().unwrap();
    let stderr = std::io::read_to_string(cluster.stderr.take().unwrap()).unwrap();
    assert_eq!(ended.code(), PROGRAM_ENDED, "{stderr}");
    let says = "error: apiserver of node n0 ended with status 137\nhint: ";
    assert!(stderr.contains(says), "{stderr}");
    assert!(stderr.contains("/n0/apiserver.log\n"), "{stderr}");
    assert_eq!(names_in(path), [""; 0]);
}
