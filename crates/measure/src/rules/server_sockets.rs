//! What the sockets of an observed server had no room for.

use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::notation::counted;
use crate::observation::ProgramUse;

use super::receive_buffers::BUFFER_OCTETS;
use super::{Figures, Finding};

pub(super) fn found(figures: &Figures<'_>) -> Vec<Finding> {
    let programs = figures.record.programs();
    let each = programs.iter();
    each.flat_map(|program| [datagrams(program), connections(program)])
        .flatten()
        .collect()
}

fn datagrams(program: &ProgramUse<'_>) -> Option<Finding> {
    if program.udp_drops == 0 {
        return None;
    }
    let seen = format!(
        "the UDP sockets of {} had no room for {}",
        program.name(),
        counted(program.udp_drops, "datagram")
    );
    let matters = "queries that its sockets had no room for are lost: it reads too slowly, or in \
                   bursts";
    let diagnosis = Diagnosis::new(
        "receive buffers of the server",
        State::Problem,
        seen,
        matters,
    )
    .cure(Cure::server_sysctl("net.core.rmem_default", BUFFER_OCTETS))
    .cure(Cure::new(Place::UnboundConf, "so-rcvbuf: 4m"));
    Some(Finding::met(diagnosis).beside())
}

fn connections(program: &ProgramUse<'_>) -> Option<Finding> {
    if program.listen_overflows == 0 {
        return None;
    }
    let seen = format!(
        "the listen queue of {}, or of another program of its network namespace, was full for {}",
        program.name(),
        counted(program.listen_overflows, "connection")
    );
    let matters = "a connection that a full listen queue drops is tried again after 1 s, then 3 s";
    let diagnosis = Diagnosis::new("listen queue of the server", State::Problem, seen, matters)
        .cure(Cure::server_sysctl("net.core.somaxconn", 4_096))
        .cure(Cure::named("tcp-listen-queue 4096;"));
    Some(Finding::met(diagnosis).beside())
}

#[cfg(test)]
mod tests {
    use crate::observation::SeriesKind;
    use crate::rules::observed_situations::*;
    use crate::rules::situations::*;

    #[test]
    fn full_sockets_of_the_server_are_counted_there() {
        let drops = [
            ("udp.drops", SeriesKind::Counter, 12.0),
            ("listen.overflows", SeriesKind::Counter, 3.0),
        ];
        let record = observing(saturated(), &[program(0.5, 0.3, &drops)]);
        tells(
            &record,
            &[
                "had no room for 120 datagrams",
                "was full for 30 connections",
            ],
        );
    }
}
