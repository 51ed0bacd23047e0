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
