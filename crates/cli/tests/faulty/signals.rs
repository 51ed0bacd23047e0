//! What becomes of runs that signals interrupt, stop, or kill, and of their processes.

use measure::Limit::{Generator, Rate, Server, Unknown};
use measure::RunRecord;
use measure::record::EndedBy;
use proto::Transport::{Doh2, Doq, Dot, Tcp, Udp};

use super::fault::{ALL, Do, Ends, Fault, Target, When};
use super::hostile::{Conduct, Manner, Peer};

const NONE: Fault = Fault::NONE;
/// One that would take a minute.
const LONG: Fault = Fault {
    flags: "--duration 60s",
    ..NONE
};
const IN_PROCESSES: Fault = Fault {
    flags: "--duration 60s --agents 2",
    ..NONE
};
/// Waits until SIGTERM would not end it at once: the run has begun to listen to signals.
macro_rules! once_it_listens {
    ($line:literal) => {
        Do::Shell(concat!(
            "until grep -qsE '^SigCgt:.*[4-7c-f].{3}$' /proc/$PID/status; ",
            "do test -d /proc/$PID; done; ",
            $line
        ))
    };
}

const INTERRUPT: &[(When, Do)] = &[(When::Shown(4), Do::Shell("kill -s INT $PID"))];

fn interrupted(record: &RunRecord) -> u64 {
    u64::from(record.ended_by == EndedBy::Interrupted)
}

/// Responses within it, and none lost.
fn whole(record: &RunRecord) -> u64 {
    let counts = &record.total.counts;
    let is_whole = counts.responses == counts.sent && record.ended_by == EndedBy::Interrupted;
    counts.responses * u64::from(is_whole)
}

/// A run that waits long for what is lost, once it is told to end.
const DRAINING: Fault = Fault {
    target: Target::Responder("--loss 0.5"),
    flags: "--duration 60s --timeout 50s",
    ..NONE
};

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "SIGINT",
        over: ALL,
        meanwhile: INTERRUPT,
        ends: Ends::interrupted(130).seen(whole),
        ..LONG
    },
    Fault {
        name: "SIGTERM",
        over: ALL,
        meanwhile: &[(When::Shown(4), Do::Shell("kill -s TERM $PID"))],
        ends: Ends::interrupted(143).seen(whole),
        ..LONG
    },
    Fault {
        name: "SIGHUP",
        over: ALL,
        meanwhile: &[(When::Shown(4), Do::Shell("kill -s HUP $PID"))],
        ends: Ends::interrupted(129).seen(whole),
        ..LONG
    },
    Fault {
        name: "SIGHUP under nohup",
        around: r#"trap '' HUP; exec "$@""#,
        meanwhile: &[(When::Shown(4), Do::Shell("kill -s HUP $PID"))],
        ..NONE
    },
    Fault {
        name: "SIGINT twice",
        over: ALL,
        meanwhile: &[
            (When::Shown(4), Do::Shell("kill -s INT $PID")),
            (
                When::Said("ending the run; "),
                Do::Shell("kill -s INT $PID"),
            ),
        ],
        ends: Ends::without_record(130, "again to abort"),
        ..DRAINING
    },
    Fault {
        name: "SIGINT, then SIGTERM",
        over: &[Udp, Dot, Doq],
        meanwhile: &[
            (When::Shown(4), Do::Shell("kill -s INT $PID")),
            (
                When::Said("ending the run; "),
                Do::Shell("kill -s TERM $PID"),
            ),
        ],
        ends: Ends::without_record(143, "again to abort"),
        ..DRAINING
    },
    Fault {
        name: "SIGKILL",
        over: ALL,
        meanwhile: &[(When::Shown(4), Do::Shell("kill -s KILL $PID"))],
        ends: Ends::without_record(-9, ""),
        ..LONG
    },
    Fault {
        name: "SIGINT in the warm-up",
        target: Target::Hostile(Peer::Datagrams(Manner::Before(b"", 0))),
        flags: "--warmup 60s",
        meanwhile: &[(When::Met(50), Do::Shell("kill -s INT $PID"))],
        ends: Ends::interrupted(130).seen(interrupted),
        ..NONE
    },
    Fault {
        name: "SIGTERM while it looks whether anybody is there",
        over: &[Dot, Doh2],
        target: Target::Hostile(Peer::Stream(Conduct::Hold)),
        flags: "--timeout 5s",
        meanwhile: &[(When::Met(1), Do::Shell("kill -s TERM $PID"))],
        ends: Ends::without_record(143, ""),
        ..NONE
    },
    Fault {
        name: "SIGTERM while it looks for QUIC",
        over: &[Doq],
        target: Target::Hostile(Peer::Datagrams(Manner::Silence)),
        flags: "--timeout 5s",
        meanwhile: &[(When::Met(1), Do::Shell("kill -s TERM $PID"))],
        ends: Ends::without_record(143, ""),
        ..NONE
    },
    Fault {
        name: "SIGTERM while it waits for the last responses",
        over: &[Udp],
        target: Target::Hostile(Peer::Datagrams(Manner::Silence)),
        flags: "--queries 20 --timeout 3s",
        meanwhile: &[(When::Met(20), Do::Shell("kill -s TERM $PID"))],
        ends: Ends::measured(&[Unknown], "").code(143),
        ..NONE
    },
    Fault {
        name: "SIGTERM while it waits for a pipe",
        before: "mkfifo $IN/pipe",
        flags: "--names $IN/pipe",
        meanwhile: &[(When::Shown(0), once_it_listens!("kill -s TERM $PID"))],
        ends: Ends::without_record(143, ""),
        ..NONE
    },
    Fault {
        name: "the reader of standard output goes",
        over: &[Udp, Tcp],
        around: r#"exec "$@" > >(true)"#,
        ..NONE
    },
    Fault {
        name: "the reader of standard error goes",
        over: &[Udp, Tcp],
        around: r#"exec "$@" 2> >(head -n 2 >/dev/null)"#,
        ..NONE
    },
    Fault {
        name: "stands still for a while itself",
        over: ALL,
        flags: "--duration 2s",
        // Nothing is shown meanwhile: the time is the fault.
        meanwhile: &[(
            When::Shown(4),
            Do::Shell("kill -s STOP $PID; sleep 0.7; kill -s CONT $PID"),
        )],
        ends: Ends::measured(&[Generator], "the generator was not scheduled"),
        ..NONE
    },
    Fault {
        name: "stands still itself, in processes",
        over: &[Udp, Tcp],
        flags: "--duration 2s --agents 2",
        meanwhile: &[(
            When::Shown(4),
            Do::Shell(
                "all=\"$PID $(pgrep -P $PID)\"; kill -s STOP $all; sleep 0.7; kill -s CONT $all",
            ),
        )],
        ends: Ends::measured(&[Generator], "the generator was not scheduled"),
        ..NONE
    },
    Fault {
        name: "SIGINT to the parent",
        over: &[Udp, Tcp, Doq],
        meanwhile: INTERRUPT,
        ends: Ends::interrupted(130).seen(whole),
        ..IN_PROCESSES
    },
    Fault {
        name: "SIGINT to all of its processes",
        over: &[Udp, Tcp, Doq],
        meanwhile: &[(
            When::Shown(4),
            Do::Shell("kill -s INT $PID $(pgrep -P $PID)"),
        )],
        ends: Ends::interrupted(130).seen(whole),
        ..IN_PROCESSES
    },
    Fault {
        name: "SIGKILL of a part",
        over: &[Udp, Tcp, Doq],
        meanwhile: &[(
            When::Shown(4),
            Do::Shell("kill -s KILL $(pgrep -P $PID | head -n 1)"),
        )],
        ends: Ends::without_record(1, "died in the run: signal 9"),
        ..IN_PROCESSES
    },
    Fault {
        name: "SIGTERM of a part, which is not its own master",
        flags: "--agents 2",
        meanwhile: &[(
            When::Shown(4),
            Do::Shell("kill -s TERM $(pgrep -P $PID | head -n 1)"),
        )],
        ..NONE
    },
    Fault {
        name: "SIGSTOP of a part",
        meanwhile: &[(
            When::Shown(4),
            Do::Shell("kill -s STOP $(pgrep -P $PID | head -n 1)"),
        )],
        flags: "--duration 60s --agents 2 --timeout 100ms",
        ends: Ends::without_record(1, " s\nhint: it may have been stopped (SIGSTOP)"),
        ..NONE
    },
    Fault {
        name: "SIGKILL of the parent",
        over: &[Udp, Tcp, Doq],
        meanwhile: &[(When::Shown(4), Do::Shell("kill -s KILL $PID"))],
        ends: Ends::without_record(-9, ""),
        ..IN_PROCESSES
    },
    Fault {
        name: "SIGINT in a self-test",
        over: ALL,
        target: Target::BuiltIn { alone: false },
        meanwhile: INTERRUPT,
        ends: Ends::interrupted(130).seen(whole),
        ..LONG
    },
    Fault {
        name: "SIGKILL of an experiment",
        target: Target::BuiltIn { alone: false },
        before: "printf '[run]\\nduration = \"60s\"\\nrate = 100\\n[matrix]\\n\
                 clients = [1, 2]\\n' >$IN/e.toml",
        command: "experiment run $IN/e.toml --output $IN/e",
        meanwhile: &[(
            When::Shown(0),
            once_it_listens!("until pgrep -P $PID >/dev/null; do :; done; kill -s KILL $PID"),
        )],
        ends: Ends::without_record(-9, ""),
        ..NONE
    },
    Fault {
        name: "SIGTERM of an experiment",
        target: Target::BuiltIn { alone: false },
        before: "printf '[run]\\nduration = \"60s\"\\nrate = 100\\n[matrix]\\n\
                 clients = [1, 2]\\n' >$IN/e.toml",
        command: "experiment run $IN/e.toml --output $IN/e",
        meanwhile: &[(
            When::Shown(0),
            once_it_listens!("until pgrep -P $PID >/dev/null; do :; done; kill -s TERM $PID"),
        )],
        ends: Ends::without_record(143, ""),
        ..NONE
    },
    Fault {
        name: "SIGTERM of a search",
        target: Target::Responder(""),
        command: "capacity --server $SERVER --names $IN/names.txt",
        meanwhile: &[(When::Shown(0), once_it_listens!("kill -s TERM $PID"))],
        ends: Ends::without_record(143, ""),
        ..NONE
    },
    Fault {
        name: "SIGINT of a responder",
        target: Target::BuiltIn { alone: false },
        command: "responder --listen udp:127.0.0.1:0",
        meanwhile: &[(When::Shown(0), once_it_listens!("kill -s INT $PID"))],
        ends: Ends::without_record(0, "queries received"),
        ..NONE
    },
    Fault {
        name: "a target that is killed while it is interrupted",
        over: &[Udp, Tcp, Doq],
        flags: "--duration 60s --timeout 2s",
        meanwhile: &[
            (When::Shown(4), Do::Kill),
            (When::Shown(4), Do::Shell("kill -s INT $PID")),
        ],
        ends: Ends::measured(&[Server, Unknown, Rate], "then interrupted")
            .code(130)
            .seen(interrupted),
        ..NONE
    },
];
