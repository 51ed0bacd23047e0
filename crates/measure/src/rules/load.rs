//! Rules about the load itself, if nothing else limited the run.

use super::finding::{Conclusion, Finding};
use super::losses::{share_lost, sign_in_words};
use super::phrases::{lower_rate, plain, times};
use super::set_up;
use crate::doctor::{Cure, Diagnosis, State};
use crate::notation::{count, counted, decimal, latency, percent, rate, share};
use crate::scenario::Arrival;
use crate::symptoms::load::{FellBehind, FewSlots, RateHeld, SlotsInUse};
use crate::symptoms::{Figures, Symptoms};

/// Of what a target answered, a rate that leaves it time.
const BELOW_LIMIT: f64 = 0.7;

pub(super) fn fell_behind(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let figures = &symptoms.figures;
    let lower = lower_rate(figures, 1.0);
    Some(match symptoms.fell_behind.as_ref()? {
        FellBehind::Slots(in_use) => {
            let evidence = format!(
                "{}, while queries queued at the target: p50 {} against the shortest {}",
                all_used(in_use, figures),
                latency(in_use.p50_ns as f64),
                latency(in_use.shortest_ns as f64)
            );
            let below = plain(BELOW_LIMIT * figures.achieved_qps);
            let advice = format!("for its latency below that limit run with --rate {below}");
            Conclusion::new(evidence, advice)
        }
        FellBehind::SetUp(step) => {
            let advice = "let connections carry more queries, or check what connection set-up \
                costs the target";
            set_up::queued_at(figures, step, advice)
        }
        FellBehind::Latency { first_ns, last_ns } => {
            let evidence = format!(
                "latency grew from {} to {} (p50 of the first and the last third): the target fell \
                 behind",
                latency(*first_ns as f64),
                latency(*last_ns as f64)
            );
            Conclusion::new(evidence, lower)
        }
        FellBehind::Losses(sign) => {
            let sign = sign_in_words(sign);
            let evidence = format!("{} got no response, {sign}", share_lost(figures));
            Conclusion::new(evidence, lower)
        }
    })
}

/// Load on third parties, which the user may not expect.
pub(super) fn generated_recursed(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.generated_recursed.as_ref()?;
    let seen = format!(
        "{} to generated names had the RA bit: the server is recursive",
        counted(it.responses, "response")
    );
    let matters = "no cache has a generated name: the server queries authoritative servers for \
                   each, which may be third parties'";
    let own = "generate names in a zone that the server is authoritative for, or gets from a \
               server of yours";
    let cures = [Cure::words(own), Cure::throng("--no-recursion")];
    let diagnosis = Diagnosis::new("recursion", State::Warning, seen, matters);
    Some(diagnosis.cures(cures).into())
}

fn all_used(in_use: &SlotsInUse, figures: &Figures<'_>) -> String {
    let in_flight = decimal(figures.in_flight, 1);
    let slots = count(in_use.slots);
    match in_use.carried {
        Some((all, each)) => format!(
            "{in_flight} of at most {slots} queries were in flight: {} with {} at once carry no \
             more than {}",
            counted(figures.record.scenario.clients, "connection"),
            count(each),
            count(all)
        ),
        None => format!(
            "{in_flight} of at most {slots} queries were in flight, with CPU time to spare here"
        ),
    }
}

pub(super) fn few_slots(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let figures = &symptoms.figures;
    let clients = figures.record.scenario.clients;
    Some(match symptoms.few_slots.as_ref()? {
        FewSlots::Slots(in_use) => {
            let evidence = format!(
                "{}, but nothing queued: p50 {} is near the shortest {}",
                all_used(in_use, figures),
                latency(in_use.p50_ns as f64),
                latency(in_use.shortest_ns as f64)
            );
            let advice = match in_use.carried {
                Some(_) => format!("open more connections: --clients {}", 4 * clients),
                None => format!("raise it: --outstanding {}", 4 * in_use.slots),
            };
            Conclusion::new(evidence, advice)
        }
        FewSlots::SetUp(step) => set_up::not_queued(figures, step),
        FewSlots::WaitingClients => {
            let evidence = format!(
                "{} waited for responses before they asked again, with {} queries in flight on \
                 average",
                counted(clients, "client"),
                decimal(figures.in_flight, 1)
            );
            let advice = "add clients until the rate no longer grows, to find the target's limit";
            Conclusion::new(evidence, advice)
        }
    })
}

/// Slow names, or a part of the target that is slow: either sets the rate by way of the slots.
pub(super) fn uneven_times(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let (it, figures) = (symptoms.uneven_times.as_ref()?, &symptoms.figures);
    let evidence = format!(
        "{}; a tenth of the responses took no longer than {}, half of them up to {}, which no \
         queue of all queries explains",
        all_used(&it.in_use, figures),
        latency(it.fast_ns as f64),
        latency(it.in_use.p50_ns as f64)
    );
    let advice = match it.in_use.carried {
        Some(_) => format!("--clients {}", 4 * figures.record.scenario.clients),
        None => format!("--outstanding {}", 4 * it.in_use.slots),
    };
    let advice = format!("run with {advice}: if the rate grows with it, the slots were the limit");
    Some(Conclusion::new(evidence, advice))
}

pub(super) fn rate_held(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let figures = &symptoms.figures;
    let has_waited = match symptoms.rate_held.as_ref()? {
        RateHeld::Connections => return set_up::rate_held(figures),
        RateHeld::Cap(asked) => {
            let evidence = format!("the rate cap of {} was reached", rate(*asked));
            let advice = "raise the cap to find the target's limit";
            return Some(Conclusion::new(evidence, advice));
        }
        RateHeld::Queries { has_waited } => *has_waited,
    };
    let lateness = latency(figures.lateness_p99_ns as f64);
    let when = match has_waited {
        true => format!("answered, after waiting up to {lateness} (p99) for their connection"),
        false => format!("answered and sent on time (p99 {lateness} late)"),
    };
    let counts = figures.counts;
    let evidence = format!(
        "{} of the queries offered at {} were {when}",
        share(counts.responses, counts.offered),
        rate(figures.record.offered_qps())
    );
    let scenario = &figures.record.scenario;
    let advice = match scenario.arrival {
        _ if scenario.replay.is_some() => "raise --speed to find the target's limit",
        Arrival::Clients { .. } => {
            "raise --clients, or the rate of each, to find the target's limit"
        }
        _ => "raise --rate to find the target's limit",
    };
    Some(Conclusion::new(evidence, advice))
}

/// Nothing shows what limited the run.
pub(super) fn unclear(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let figures = &symptoms.figures;
    Some(match figures.record.scenario.arrival {
        Arrival::Closed { outstanding, .. } => slots_unused(figures, outstanding),
        Arrival::Open { rate_qps, .. } => late_or_lost(figures, rate_qps),
        Arrival::Clients { .. } => late_or_lost(figures, figures.record.offered_qps()),
    })
}

fn slots_unused(figures: &Figures<'_>, slots: u64) -> Conclusion {
    let evidence = format!(
        "only {} of at most {} queries were in flight on average, though no worker was out of CPU \
         and {} were lost",
        decimal(figures.in_flight, 1),
        count(slots),
        share(figures.counts.lost(), figures.counts.offered)
    );
    let scenario = &figures.record.scenario;
    let stream_limits_met = figures.record.connections().quic_stream_limits_met;
    if stream_limits_met > 0 {
        let evidence = format!(
            "{evidence}; connections had used up the streams that the target allows them {}",
            times(stream_limits_met)
        );
        let advice = format!("open more connections: --clients {}", 4 * scenario.clients);
        return Conclusion::new(evidence, advice);
    }
    let advice = match scenario.transport.has_connections() {
        true => {
            "see how often connections end and how long they take to open: throng doctor RECORD"
        }
        false => "run for longer, on an idle host: --duration 30s",
    };
    Conclusion::new(evidence, advice)
}

fn late_or_lost(figures: &Figures<'_>, asked: f64) -> Conclusion {
    let counts = figures.counts;
    let evidence = format!(
        "{} of {} asked were offered, {} of them were answered, and queries were sent up to {} \
         late (p99), with no single cause to blame",
        rate(figures.record.offered_qps()),
        rate(asked),
        percent(counts.responses as f64 / counts.offered.max(1) as f64),
        latency(figures.lateness_p99_ns as f64)
    );
    Conclusion::new(evidence, "run again for longer, on an idle host")
}
