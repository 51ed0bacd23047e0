//! Packets dropped between interface and sockets.

use crate::doctor::{Diagnosis, State};
use crate::notation::counted;

use super::conntrack::larger;
use super::{Figures, Finding};

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let dropped = figures.record.network.kernel_counter("Softnet.Dropped");
    if dropped == 0 {
        return None;
    }
    let state = match figures.unanswered() > 0 {
        true => State::Problem,
        false => State::Warning,
    };
    let seen = format!(
        "the backlog of this host's CPUs was full and dropped {}",
        counted(dropped, "packet")
    );
    let matters = "they were dropped before any socket saw them, and look like the target's loss";
    let cure = larger(figures, "net.core.netdev_max_backlog", 16_384);
    let diagnosis = Diagnosis::new("packet backlog", state, seen, matters);
    Some(Finding::met(diagnosis.cure(cure)))
}
