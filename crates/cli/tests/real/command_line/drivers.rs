//! `--driver` where the kernel does not play along: strace makes its calls fail as an older kernel,
//! an administrator or a sandbox would.

use measure::{DriverKind, RunRecord};
use testing::folder::Folder;
use testing::program::{Finished, execute};

use crate::process::THRONG;

/// Runs `throng` on a kernel that refuses a system call in this way.
fn without(call: &str, errno: &str, flags: &str) -> Finished {
    let strace = format!("strace --quiet=all -f -e trace={call} -e status=none");
    execute(&format!(
        "{strace} -e inject={call}:error={errno} {THRONG} {flags}"
    ))
}

#[test]
fn io_uring_that_is_asked_for_and_forbidden_is_one_error_with_its_reason_and_a_cure() {
    for (errno, reason) in [
        ("EPERM", "io_uring is not permitted here"),
        ("ENOSYS", "this kernel has no io_uring"),
    ] {
        for command in [
            "run --transport tcp --queries 10",
            "responder --listen tcp:127.0.0.1:0 --duration 1s",
        ] {
            let flags = format!("{command} --driver uring");
            without("io_uring_setup", errno, &flags).refused_with(reason, "--driver epoll");
        }
    }
}

#[test]
fn a_run_with_many_streams_goes_by_epoll_where_io_uring_is_forbidden_and_its_record_says_why() {
    let folder = Folder::new("without-uring");
    for (call, errno, reason) in [
        ("io_uring_setup", "EPERM", "not permitted here"),
        ("io_uring_setup", "ENOSYS", "this kernel has no io_uring"),
        ("io_uring_enter", "EPERM", "not permitted here"),
        ("io_uring_register", "EPERM", "not permitted here"),
    ] {
        let path = folder.path("record.json");
        let flags =
            format!("run --quiet --transport tcp --clients 40 --queries 500 --record {path}");
        without(call, errno, &flags).succeeded();
        let record = RunRecord::from_json(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(record.driver, DriverKind::Epoll, "{call}");
        let why = record.driver_reason.as_deref().unwrap();
        assert!(why.starts_with("epoll: ") && why.contains(reason), "{why}");
        assert_eq!(record.total.counts.responses, 500, "{call}");
    }
}
