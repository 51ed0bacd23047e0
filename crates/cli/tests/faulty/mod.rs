//! Faults, each made on purpose: of the peer, the path, the host, files, and by signals. Each is a
//! row of a table ([`fault::Fault`] says what a row has) and a run of the binary over each of its
//! transports, after which hold: what was counted adds up, the verdict has a limit that the fault
//! can have, the exit code and the words are the right ones, and nothing is left.

pub(crate) mod fault;
mod files;
mod host;
mod hostile;
mod left;
mod path;
mod peer;
mod signals;
mod stage;
pub(crate) mod table;

use fault::Fault;

/// Each kind of faults with its rows.
pub(crate) const ALL: [(&str, &[Fault]); 5] = [
    ("peer", peer::FAULTS),
    ("path", path::FAULTS),
    ("host", host::FAULTS),
    ("files", files::FAULTS),
    ("signals", signals::FAULTS),
];
