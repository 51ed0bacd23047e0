//! Agents on other hosts, for tests: a command takes the place of ssh.

use measure::RunRecord;
use testing::folder::Folder;
use testing::program::{Finished, execute};

use crate::process::{Responder, THRONG, throng};

/// Stands for ssh. `day` has a clock that is a day ahead, and has none of the files here; `net` has
/// a network of its own; on `fast` and `slow` a library of that name is loaded first; the way to
/// `noise` changes some octets.
const ELSEWHERE: &str = r#"#!/bin/sh
host=$1; shift
echo $host >> FOLDERstarted
cd /
case $host in
  day*)
    exec unshare --time --monotonic 86400 --mount --fork --kill-child -- \
      sh -c "mount -t tmpfs none FOLDER && exec $*" ;;
  fast|slow) LD_PRELOAD=FOLDER$host.so exec sh -c "exec $*" ;;
  noise) { head -c 300000; head -c 4 >/dev/null; printf XXXX; cat; } | sh -c "exec $*" ;;
  net*) exec unshare --net -- sh -c "exec $*" ;;
  *) exec sh -c "exec $*" ;;
esac
"#;

/// A target, names to ask it for, hosts, and a command that reaches them.
pub(crate) struct Fleet {
    pub(crate) folder: Folder,
    pub(crate) responder: Responder,
    pub(crate) flags: String,
}

impl Fleet {
    pub(crate) fn new(name: &str, hosts: &[&str]) -> Fleet {
        Fleet::with(name, hosts, THRONG)
    }

    /// The same, whose hosts have that program.
    pub(crate) fn with(name: &str, hosts: &[&str], program: &str) -> Fleet {
        let folder = Folder::new(name);
        let names: String = (0..100)
            .map(|it| format!("www-{it}.example. A\n"))
            .collect();
        let names = folder.write("names", names);
        let lines = hosts.iter().map(|host| format!("{host} {program}\n"));
        let hosts = folder.write("hosts", lines.collect::<String>());
        let ssh = folder.write("elsewhere", ELSEWHERE.replace("FOLDER", &folder.path("")));
        execute(&format!("chmod +x {ssh}")).succeeded();
        let responder = Responder::start("udp:127.0.0.1:0,tcp:127.0.0.1:0", "");
        let server = responder.address();
        let flags = format!("--server {server} --names {names} --hosts {hosts} --ssh {ssh}");
        Fleet {
            folder,
            responder,
            flags,
        }
    }

    pub(crate) fn run(&self, flags: &str) -> Finished {
        throng(&format!("run --quiet --format json {} {flags}", self.flags))
    }

    /// Queries that its target has received.
    pub(crate) fn received(self) -> u64 {
        self.responder.counters().get("queries received")
    }
}

/// The record of a run that ended with exit code 0.
pub(crate) fn record(finished: Finished) -> RunRecord {
    RunRecord::from_json(&finished.succeeded()).unwrap()
}
