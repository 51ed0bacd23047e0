//! `--hosts` that names no hosts, or contradicts other flags.

use testing::folder::Folder;

use crate::call::throng;

#[test]
fn hosts_without_a_list_or_a_server_or_with_processes_are_refused() {
    let folder = Folder::new("hosts-refused");
    let names = folder.write("names.txt", "a.example A\n");
    let (hosts, none) = (
        folder.write("hosts", "a\n"),
        folder.write("none", "# none\n"),
    );
    let load = "--clients 4 --rate 10 --duration 1s";
    let run = format!("run --server 127.0.0.1 --names {names} {load}");
    throng(&format!("{run} --hosts {hosts} --agents 2"))
        .refused_with("--agents cannot be used with --hosts", "as often");
    throng(&format!("{run} --hosts {none}")).refused_with("no hosts", "a host in each line");
    throng(&format!("run --hosts {none} {load}")).refused_with("--hosts", "--server");
}

#[test]
fn a_lead_without_agents_or_keys_is_refused() {
    let folder = Folder::new("listen-refused");
    let names = folder.write("names.txt", "a.example A\n");
    let hosts = folder.write("hosts", "a\n");
    let keys = folder.path("keys");
    let run = format!("run --server 127.0.0.1 --names {names} --duration 1s --listen 127.0.0.1:0");
    throng(&run).refused_with("--listen", "--keys");
    throng(&format!("{run} --keys {keys}")).refused_with("--listen needs --agents", "N");
    throng(&format!("{run} --keys {keys} --agents 2"))
        .refused_with("cannot read", "throng fleet keys");
    throng(&format!("{run} --keys {keys} --agents 2 --min-agents 3")).refused_with(
        "--min-agents 3 is more than --agents 2",
        "--min-agents at most 2",
    );
    throng(&format!("{run} --keys {keys} --agents 2 --min-agents 0"))
        .refused_with("must not be zero", "1 or more");
    throng("run --server 127.0.0.1 --duration 1s --agents 2 --min-agents 1")
        .refused_with("--min-agents", "--listen");
    throng(&format!("fleet keys {keys}")).succeeded();
    throng(&format!("fleet keys {keys}")).refused_with("cannot make", "does not exist");
    throng(&format!("{run} --keys {keys} --agents 2 --hosts {hosts}"))
        .refused_with("--hosts cannot be used with --listen", "leave out one");
    let capacity = format!("capacity --server 127.0.0.1 --names {names} --listen 127.0.0.1:0");
    throng(&format!("{capacity} --keys {keys} --quiet"))
        .refused_with("--listen needs --agents", "N");
    throng(&format!("fleet agent 127.0.0.1:1 --keys {keys}"))
        .refused_with("no number", "JOB_COMPLETION_INDEX");
}
