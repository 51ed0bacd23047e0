//! Frames that left AF_XDP here and found no room further on.

use crate::doctor::{Cure, Diagnosis, State};
use crate::notation::counted;

use super::{Figures, Finding};

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let seen = seen(figures)?;
    let matters = "no server saw these queries: the host at the other end had no time to read them";
    let diagnosis = Diagnosis::new("queues beyond the interface", State::Warning, seen, matters)
        .cure(Cure::words(
            "send fewer queries at a time: lower --rate or --outstanding",
        ))
        .cure(Cure::words("give the target a core of its own"));
    Some(Finding::met(diagnosis).beside())
}

/// What was dropped where, if some queries got no response.
fn seen(figures: &Figures<'_>) -> Option<String> {
    let xdp = figures.record.network.xdp.as_ref()?;
    if figures.counts.timeouts == 0 || xdp.dropped_by_peer() == 0 {
        return None;
    }
    let both = [
        (
            xdp.peer_received_dropped,
            "dropped at the other end of the veth pair, where nobody read them in time",
        ),
        (
            xdp.interface_sent_dropped,
            "dropped on leaving the interface, whose queue was full, or that of the other end of a \
             veth pair",
        ),
    ];
    let told = both.into_iter().filter(|(frames, _)| *frames > 0);
    let told = told.map(|(frames, what)| format!("{} {what}", counted(frames, "frame")));
    Some(told.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use crate::facts::XdpFacts;
    use crate::rules::situations::*;

    #[test]
    fn frames_dropped_beyond_the_interface_are_told_beside_the_verdict() {
        let mut record = in_time(10_000.0);
        record.network.xdp = Some(XdpFacts {
            interface_received_dropped: 3,
            peer_received_dropped: 3,
            ..XdpFacts::default()
        });
        assert_eq!(found_on(&record, "queues beyond the interface"), None);

        lose(&mut record, 1_000);
        record.network.xdp = Some(XdpFacts {
            interface_sent_dropped: 1,
            peer_received_dropped: 900,
            ..XdpFacts::default()
        });
        let seen = "900 frames dropped at the other end of the veth pair, where nobody read them \
                    in time; 1 frame dropped on leaving";
        let beyond = told(&record, "queues beyond the interface").warning(seen, "--rate");
        assert!(
            judge(&record).evidence.contains(&beyond.seen),
            "{beyond:#?}"
        );
        assert_eq!(found_on(&record, "receive queues"), None);
    }
}
