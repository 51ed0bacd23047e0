//! Places of a closed loop that lost queries hold: nothing else is asked from there until they time
//! out.
//!
//! What is to be done depends on where they were lost. A receive buffer that is full drops the same
//! again and again: fewer queries at a time fit into it, more of them do not. Of a path that loses
//! at random, more places make up for those that are held.

use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::notation::{count, decimal, latency};
use crate::scenario::Transport;
use crate::verdict::Limit;

use super::receive_buffers::BUFFER_OCTETS;
use super::{Figures, Finding, Stage, losses};

/// From this share of the places on, they are worth a word.
const WORTH_SAYING: f64 = 0.01;
/// From this share of the places on, they set the rate.
const HELD_MAX: f64 = 0.1;
/// How long the burst takes with which a closed loop may begin.
const BURST_NS: u64 = 100_000_000;
/// From this share of the lost queries on, they were those of the burst.
const OF_BURST: f64 = 0.9;
/// Of the queries that a full buffer left in circulation so many fit into it, beyond doubt.
const FITTING: f64 = 0.5;

/// Lost queries set the rate.
fn are_many(figures: &Figures<'_>) -> bool {
    let places = figures.outstanding.unwrap_or(u64::MAX);
    figures.held_by_lost() >= HELD_MAX * places as f64
}

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let places = figures.outstanding?;
    let held = figures.held_by_lost();
    if held < WORTH_SAYING * places as f64 || held <= 0.0 {
        return None;
    }
    let overflow = losses::sign_of_queue(figures).filter(|_| is_udp(figures));
    let seen = format!(
        "{} of {} places were held by lost queries ({} timed out after {} each){}{}",
        decimal(held, 0),
        count(places),
        count(figures.counts.timeouts),
        latency(figures.record.scenario.timeout_ns as f64),
        when(figures),
        overflow
            .as_ref()
            .map_or(String::new(), |it| format!(", {it}"))
    );
    let state = match are_many(figures) {
        true => State::Problem,
        false => State::Warning,
    };
    let matters = "a lost query holds its place until it times out, and nothing else is asked \
                   from there: the rate is lower than what the target takes";
    let diagnosis = Diagnosis::new("places held by lost queries", state, seen, matters);
    let diagnosis = match overflow {
        Some(_) => diagnosis.cures(of_full_buffer(figures)),
        None => diagnosis.cure(Cure::throng(format!(
            "--outstanding {}",
            places.saturating_mul(2)
        ))),
    };
    let diagnosis = diagnosis
        .cure(Cure::throng("--timeout 1s"))
        .cure(Cure::words(format!(
            "or ask in open loop, where nothing is held: --rate {:.0}",
            figures.achieved_qps
        )));
    let found = Finding::met(diagnosis).beside();
    Some(
        found
            .limits(Stage::Load, Limit::Outstanding)
            .only_if(are_many(figures)),
    )
}

fn is_udp(figures: &Figures<'_>) -> bool {
    figures.record.scenario.transport == Transport::Udp
}

/// Fewer queries at a time, or more room for them.
fn of_full_buffer(figures: &Figures<'_>) -> [Cure; 3] {
    let fitting = (FITTING * figures.answered_in_flight()).max(1.0);
    [
        Cure::throng(format!("--outstanding {fitting:.0}")),
        Cure::server_sysctl("net.core.rmem_default", BUFFER_OCTETS),
        Cure::new(Place::UnboundConf, "so-rcvbuf: 4m"),
    ]
}

/// When those that were lost had been asked, where the record tells.
fn when(figures: &Figures<'_>) -> String {
    let lost = figures.record.timeline.as_ref().map(|timeline| {
        let bins = timeline.bins().iter().zip(0..);
        let width_ns = timeline.width_ns();
        let of_burst = bins.take_while(|(_, number)| width_ns.saturating_mul(*number) < BURST_NS);
        let of_burst: u64 = of_burst.map(|(bin, _)| bin.lost).sum();
        (of_burst, timeline.total().lost)
    });
    match lost {
        None | Some((_, 0)) => String::new(),
        Some((of_burst, all)) => {
            let since = match of_burst as f64 >= OF_BURST * all as f64 {
                true => "nearly all in the burst with which the run began",
                false => "all along",
            };
            format!(
                ", {since} ({} were asked in the first 0.1 s)",
                count(of_burst)
            )
        }
    }
}
