//! dnsperf's own tests, the scripts in `src/test` of its source, with `throng dnsperf` and
//! `throng resperf` in the place of its programs.
//!
//! Each script has namespaces of its own, where a responder has the public addresses that it
//! queries: nothing leaves the machine, and the processes that it kills by name are its own.
//! Needs root, openssl, and the scripts that `servers/prepare` fetches; `./test` sees to it.

use std::os::unix::fs::symlink;
use std::thread;

use testing::folder::Folder;
use testing::host::is_root_for;
use testing::prepared;
use testing::program::execute;

use crate::process::THRONG;

const SCRIPTS: u32 = 7;

/// Runs SCRIPT in FOLDER, which has the scripts in `test`.
const LINES: &str = r#"
set -eu
cd FOLDER
mount -t proc none /proc
ip link set lo up
ip address add 1.1.1.1/32 dev lo
ip address add 2606:4700:4700::1111/128 dev lo
# 192.0.2.1 has a route and never answers.
ip link add near type veth peer name far
ip link set near up
ip link set far up
ip address add 192.0.2.2/24 dev near
ip neighbour add 192.0.2.1 lladdr 02:00:00:00:00:01 dev near
mkfifo ready
listen=""
for address in 1.1.1.1 '[2606:4700:4700::1111]'; do
    listen="$listen --listen udp:$address:53 --listen tcp:$address:53 --listen dot:$address:853"
done
THRONG responder --allow-public --no-rate-limit --rcodes NXDOMAIN=1 $listen >ready &
exec 3<ready
read -r _ <&3
cd test
export PATH="FOLDER/servers:$PATH" TEST_DNSPERF_WITH_NETWORK=1 srcdir=. THRONG_ALLOW_PUBLIC=1
exec sh -xe ./SCRIPT
"#;

/// In the place of a server that the scripts look for: TCP, with `-T` TLS.
const DUMDUMD: &str = r#"#!/bin/sh
transport=tcp
case " $* " in *" -T "*) transport=dot ;; esac
exec THRONG responder --listen "$transport:$1:$2"
"#;

/// In the place of another one, over HTTP/2.
const DUMDOHD: &str = r#"#!/bin/sh
exec THRONG responder --listen "doh2:127.0.0.1:$1" --tls-key "$2" --tls-cert "$3"
"#;

fn check(number: u32) {
    let folder = Folder::new(&format!("dnsperf-script-{number}"));
    let path = |name: &str| folder.path(name);
    let script = format!("test{number}.sh");
    let from = prepared::path(&format!("dnsperf-scripts/{script}"));
    let from = from.parent().unwrap().display();
    execute(&format!("cp -r {from}/. {}", path("test"))).succeeded();
    for program in ["dnsperf", "resperf"] {
        symlink(THRONG, path(program)).unwrap();
    }
    std::fs::create_dir(path("servers")).unwrap();
    for (server, text) in [("dumdumd", DUMDUMD), ("dumdohd", DUMDOHD)] {
        let file = folder.write(&format!("servers/{server}"), text.replace("THRONG", THRONG));
        execute(&format!("chmod +x {file}")).succeeded();
    }
    let lines = LINES
        .replace("THRONG responder", &format!("{THRONG} responder"))
        .replace("FOLDER", &folder.folder().display().to_string())
        .replace("SCRIPT", &script);
    let lines = folder.write("run.sh", lines);
    let namespaces = "unshare --mount --net --pid --fork --kill-child";
    execute(&format!("{namespaces} bash {lines}")).succeeded();
}

#[test]
fn scripts_of_dnsperf_pass() {
    if !is_root_for("the network namespaces of dnsperf's own tests") {
        return;
    }
    thread::scope(|scope| {
        for number in 1..=SCRIPTS {
            scope.spawn(move || check(number));
        }
    });
}
