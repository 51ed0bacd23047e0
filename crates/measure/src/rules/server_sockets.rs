//! What the sockets of an observed server had no room for.

use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::notation::{count, counted};
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
    let mut seen = format!(
        "the UDP sockets of {} had no room for {}",
        program.name(),
        counted(program.udp_drops, "datagram")
    );
    if let Some(octets) = program.udp_buffer_bytes {
        seen.push_str(&format!("; the smallest takes {} bytes", count(octets)));
    }
    let matters = "queries that its sockets had no room for are lost: it reads too slowly, or in \
                   bursts";
    let diagnosis = Diagnosis::new(
        "receive buffers of the server",
        State::Problem,
        seen,
        matters,
    )
    .cure(Cure::server_sysctl("net.core.rmem_default", BUFFER_OCTETS))
    .cure(Cure::server_sysctl("net.core.rmem_max", BUFFER_OCTETS))
    .cure(Cure::named(format!("udp-receive-buffer {BUFFER_OCTETS};")))
    .cure(Cure::new(Place::UnboundConf, "so-rcvbuf: 16m"));
    Some(Finding::met(diagnosis).beside())
}

fn connections(program: &ProgramUse<'_>) -> Option<Finding> {
    if program.listen_overflows == 0 {
        return None;
    }
    let mut seen = format!(
        "the listen queue of {}, or of another program of its network namespace, was full for {}",
        program.name(),
        counted(program.listen_overflows, "connection")
    );
    if let Some(places) = program.listen_queue {
        seen.push_str(&format!("; its own has room for {}", count(places)));
    }
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
            ("udp.room{port=\"53\"}", SeriesKind::Gauge, 212_992.0),
            ("tcp.room{port=\"53\"}", SeriesKind::Gauge, 10.0),
            ("tcp.room{port=\"8053\"}", SeriesKind::Gauge, 5.0),
        ];
        let record = observing(saturated(), &[program(0.5, 0.3, &drops)]);
        tells(
            &record,
            &[
                "had no room for 120 datagrams; the smallest takes 212,992 bytes",
                "was full for 30 connections; its own has room for 10",
            ],
        );
        let diagnosis = told(&record, "receive buffers of the server");
        let cures: Vec<&str> = diagnosis.cures.iter().map(|it| it.how.as_str()).collect();
        assert!(cures.contains(&"so-rcvbuf: 16m"), "{cures:?}");
        // Of a BIND that is observed, BIND's alone.
        let mut named = program(0.5, 0.3, &drops);
        named.facts.product = Some("BIND".into());
        let record = observing(saturated(), &[named]);
        let diagnosis = told(&record, "receive buffers of the server");
        let cures: Vec<&str> = diagnosis.cures.iter().map(|it| it.how.as_str()).collect();
        assert!(cures.contains(&"udp-receive-buffer 16777216;"), "{cures:?}");
        assert!(!cures.contains(&"so-rcvbuf: 16m"), "{cures:?}");
    }
}
