//! What a row of the table has: a fault, and what must come of it.

use measure::{Limit, RunRecord};
use proto::Transport::{self, Doh2, Doh3, Doq, Dot, Tcp, Udp};

use super::hostile::Peer;

pub(crate) const ALL: &[Transport] = &[Udp, Tcp, Dot, Doh2, Doq, Doh3];
pub(crate) const STREAMS: &[Transport] = &[Tcp, Dot, Doh2];
pub(crate) const CONNECTED: &[Transport] = &[Tcp, Dot, Doh2, Doq, Doh3];
pub(crate) const ENCRYPTED: &[Transport] = &[Dot, Doh2, Doq, Doh3];
pub(crate) const QUIC: &[Transport] = &[Doq, Doh3];
pub(crate) const HTTP: &[Transport] = &[Doh2, Doh3];

/// A row. Texts for a shell, and flags, have `$IN` for the folder of inputs, `$OUT` for that of
/// outputs, `$SERVER` and `$PORT` for the target, `$T` for the transport, `$THRONG` for the binary.
/// Later there are `$PID` of the run, `$TARGET` of the responder, and `$NEAR` and `$FAR`, processes
/// in the network namespaces of the two. `$CPU` is one that may be used.
#[derive(Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    /// Over each of these, in a run of its own.
    pub(crate) over: &'static [Transport],
    pub(crate) target: Target,
    /// For a shell, before all else.
    pub(crate) before: &'static str,
    /// Everything after the binary's name; none for `run` with the flags that all have.
    pub(crate) command: &'static str,
    pub(crate) flags: &'static str,
    /// For bash, in place of the run, which it starts with `exec "$@"`.
    pub(crate) around: &'static str,
    /// In this order.
    pub(crate) meanwhile: &'static [(When, Do)],
    /// The fault takes CPU time from the run: its verdict holds unless the target waited too.
    pub(crate) is_disturbing: bool,
    pub(crate) ends: Ends,
    /// For a shell, when the run has ended; it must succeed.
    pub(crate) after: &'static str,
}

/// Who is asked.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Target {
    /// The responder with these flags.
    Responder(&'static str),
    /// The responder, for another transport.
    Speaks(Transport),
    /// The responder at the other end of a veth pair, with these flags.
    Far(&'static str),
    /// A peer of the test.
    Hostile(Peer),
    /// Nobody: the port is held, and nothing is read there.
    Nobody,
    /// The responder that is built in, in a network namespace of its own if so.
    BuiltIn { alone: bool },
}

/// When something is done in the run.
#[derive(Clone, Copy)]
pub(crate) enum When {
    /// So many lines of progress have been seen, one for each 100 ms.
    Shown(usize),
    /// A line with this has been seen on standard error.
    Said(&'static str),
    /// The peer has met so many connections or datagrams.
    Met(u64),
}

#[derive(Clone, Copy)]
pub(crate) enum Do {
    /// A line for the shell.
    Shell(&'static str),
    /// Kills the responder.
    Kill,
    /// Starts another where it was.
    Restart,
}

/// What must come of a fault.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    /// The exit code; -9 if signal 9 ended it.
    pub(crate) code: i32,
    pub(crate) leaves: Leaves,
    /// Any of these, if the host was quiet.
    pub(crate) limits: &'static [Limit],
    /// A part of what is printed.
    pub(crate) says: &'static str,
    /// What shows in the record that the fault took place, if anything: more than 0.
    pub(crate) seen: fn(&RunRecord) -> u64,
}

/// What there is when it has ended, beside what there was before.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Leaves {
    /// The same as before.
    Nothing,
    /// The record.
    Record,
    /// The record, in the folder for temporary files.
    RecordElsewhere,
}

const fn always(_: &RunRecord) -> u64 {
    1
}

impl Fault {
    /// Of which rows say what differs.
    pub(crate) const NONE: Fault = Fault {
        name: "",
        over: &[Udp],
        target: Target::Responder(""),
        before: "",
        command: "",
        flags: "",
        around: "",
        meanwhile: &[],
        is_disturbing: false,
        ends: Ends::measured(&[Limit::Rate], ""),
        after: "",
    };
}

impl Ends {
    /// It was measured.
    pub(crate) const fn measured(limits: &'static [Limit], says: &'static str) -> Ends {
        Ends {
            code: 0,
            leaves: Leaves::Record,
            limits,
            says,
            seen: always,
        }
    }

    /// There was no response at all.
    pub(crate) const fn in_vain(says: &'static str) -> Ends {
        Ends {
            code: 1,
            ..Ends::measured(&[Limit::Unknown], says)
        }
    }

    /// It did not start.
    pub(crate) const fn refused(says: &'static str) -> Ends {
        Ends::without_record(2, says)
    }

    /// It ended without a record.
    pub(crate) const fn without_record(code: i32, says: &'static str) -> Ends {
        Ends {
            code,
            leaves: Leaves::Nothing,
            ..Ends::measured(&[], says)
        }
    }

    /// A signal ended it, with its record.
    pub(crate) const fn interrupted(code: i32) -> Ends {
        Ends {
            code,
            ..Ends::measured(&[Limit::Rate, Limit::Unknown], "then interrupted")
        }
    }

    /// The same, and the record shows it.
    pub(crate) const fn seen(self, seen: fn(&RunRecord) -> u64) -> Ends {
        Ends { seen, ..self }
    }

    pub(crate) const fn code(self, code: i32) -> Ends {
        Ends { code, ..self }
    }

    pub(crate) const fn leaves(self, leaves: Leaves) -> Ends {
        Ends { leaves, ..self }
    }
}
