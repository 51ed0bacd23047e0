//! What becomes of runs whose host gives them too little, or less than they are used to.

use measure::Limit::Generator;
use proto::Transport::{Doq, Dot, Tcp, Udp};

use super::fault::{ALL, Do, Ends, Fault, When};

const NONE: Fault = Fault::NONE;

/// Without any right that root has.
const WITHOUT_RIGHTS: &str = r#"exec setpriv --bounding-set=-all --inh-caps=-all "$@""#;

/// In a time namespace three years after this one.
const YEARS_AHEAD: &str =
    r#"exec unshare --time --fork --monotonic 99999999 --boottime 99999999 "$@""#;
/// Without standard input, output and error.
const NO_STREAMS: &str = r#"exec "$@" <&- >&- 2>&-"#;

pub(crate) const FAULTS: &[Fault] = &[
    Fault {
        name: "64 open files for 100 clients",
        over: &[Udp, Tcp, Dot, Doq],
        flags: "--clients 100",
        around: r#"ulimit -n 64; exec "$@""#,
        ..NONE
    },
    Fault {
        name: "64 open files for 100 clients of one process",
        over: &[Udp, Tcp, Dot, Doq],
        flags: "--clients 100 --agents 1",
        around: r#"ulimit -n 64; exec "$@""#,
        ends: Ends::refused("the limit here is 64"),
        ..NONE
    },
    Fault {
        name: "no further open file from mid-run on",
        over: &[Tcp, Dot],
        flags: "--queries-per-connection 5",
        // As many as there are but those of the clients, which have come last.
        meanwhile: &[(
            When::Shown(4),
            Do::Shell(
                "most=$(ls /proc/$PID/fd | sort -n | tail -n 4 | head -n 1); \
                 prlimit --pid $PID --nofile=$most:$most",
            ),
        )],
        ends: Ends::measured(&[Generator], "ran out of file descriptors"),
        ..NONE
    },
    Fault {
        name: "no further process",
        before: "chmod 777 $OUT $TMPDIR; chmod 755 $IN",
        around: r#"exec 3<"$1"; shift; exec setpriv --reuid 65533 --regid 65533 --clear-groups \
                   prlimit --nproc=1 /proc/self/fd/3 "$@""#,
        ends: Ends::without_record(1, "the system allows no further thread"),
        ..NONE
    },
    Fault {
        name: "memory for few threads",
        flags: "--workers 100 --clients 200",
        around: r#"ulimit -v 100000; exec "$@""#,
        ends: Ends::without_record(1, "`ulimit -v`"),
        ..NONE
    },
    Fault {
        name: "a clock three years ahead",
        over: &[Udp, Dot, Doq],
        around: YEARS_AHEAD,
        ..NONE
    },
    Fault {
        name: "a clock three years ahead, in processes",
        over: &[Udp, Tcp],
        flags: "--agents 2",
        around: YEARS_AHEAD,
        ..NONE
    },
    Fault {
        name: "root without its rights",
        over: ALL,
        around: WITHOUT_RIGHTS,
        ..NONE
    },
    Fault {
        name: "root without its rights, below the sockets",
        over: &[Udp, Doq],
        flags: "--driver xdp --interface lo",
        around: WITHOUT_RIGHTS,
        ends: Ends::refused("AF_XDP"),
        ..NONE
    },
    Fault {
        name: "no memory that may be locked",
        over: &[Tcp, Dot],
        flags: "--driver uring",
        around: r#"ulimit -l 0; exec setpriv --bounding-set=-all --inh-caps=-all "$@""#,
        ends: Ends::refused("ulimit -l"),
        ..NONE
    },
    Fault {
        name: "no /proc",
        over: &[Udp, Tcp, Doq],
        around: r#"exec unshare --mount bash -c 'mount -t tmpfs none /proc; exec "$@"' bash "$@""#,
        ..NONE
    },
    Fault {
        name: "no /proc, in processes",
        flags: "--agents 2",
        around: r#"exec unshare --mount bash -c 'mount -t tmpfs none /proc; exec "$@"' bash "$@""#,
        ends: Ends::without_record(1, "/proc"),
        ..NONE
    },
    Fault {
        name: "no /sys",
        around: r#"exec unshare --mount bash -c 'mount -t tmpfs none /sys; exec "$@"' bash "$@""#,
        ..NONE
    },
    Fault {
        name: "no environment",
        over: &[Udp, Tcp],
        around: r#"exec env -i THRONG_FAULT="$THRONG_FAULT" "$@""#,
        ..NONE
    },
    Fault {
        name: "no folder for temporary files",
        around: r#"TMPDIR=$IN/none exec "$@""#,
        ..NONE
    },
    Fault {
        name: "its folder is gone",
        flags: "--agents 2",
        around: r#"mkdir $IN/gone; cd $IN/gone; rmdir $IN/gone; exec "$@""#,
        ..NONE
    },
    Fault {
        name: "no standard streams",
        over: &[Udp, Tcp, Doq],
        around: NO_STREAMS,
        ..NONE
    },
    Fault {
        name: "no standard streams, in processes",
        flags: "--agents 2",
        around: NO_STREAMS,
        ..NONE
    },
];
