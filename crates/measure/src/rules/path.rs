//! A path that is known to lose: segments of our own connections, or the model of a network.

use crate::doctor::{Cure, Diagnosis, State};
use crate::limit::Limit;
use crate::notation::{count, share};

use super::{Figures, Finding, Stage, enough, simulated_network};

/// From this share of TCP segments on, retransmissions set the pace.
const RETRANSMITTED_MAX: f64 = 0.01;

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    retransmissions(figures).or_else(|| of_model(figures))
}

/// Segments that our own connections lost (TCP_INFO): those of the whole host are of everybody.
pub(super) fn retransmissions(figures: &Figures<'_>) -> Option<Finding> {
    let tcp = figures.record.network.tcp.as_ref()?;
    let (lost, sent) = (tcp.segments_lost(), tcp.segments_sent);
    if !enough::is_above(lost, sent, RETRANSMITTED_MAX) {
        return None;
    }
    let seen = format!(
        "{} of the TCP segments of this run's connections ({}) were lost and sent again: the path \
         loses them",
        share(lost, sent),
        count(lost)
    );
    let advice = "look for drops on the path to the target";
    let found = found_by(figures, seen, advice).advising(advice);
    Some(found.limits(Stage::Network, Limit::Network))
}

/// What the modelled network of a simulation lost.
pub(super) fn of_model(figures: &Figures<'_>) -> Option<Finding> {
    let advice = "that is the model: --sim-loss";
    let found = found_by(figures, simulated_network::lost(figures)?, advice);
    Some(found.advising(advice).limits(Stage::Model, Limit::Network))
}

fn found_by(figures: &Figures<'_>, seen: String, advice: &str) -> Finding {
    let matters = "what the path loses is not lost by the target; over TCP it shows as latency";
    let diagnosis = Diagnosis::new("path", State::Problem, seen, matters);
    Finding::met(diagnosis.cure(match figures.record.simulation {
        Some(_) => Cure::words(advice),
        None => Cure::trace_path("tcp", &figures.record.scenario.target),
    }))
}

#[cfg(test)]
mod tests {
    use crate::facts::TcpFacts;
    use crate::rules::situations::*;

    #[test]
    fn segments_that_our_own_connections_lost_are_the_networks_limit() {
        let mut record = saturated();
        record.scenario.transport = Transport::Tcp.into();
        // Those of the host are of everybody who uses it.
        let host = [("Tcp.RetransSegs", 2_000), ("Tcp.OutSegs", 100_000)];
        let host = host.map(|(name, count)| (name.to_owned(), count));
        record.network.kernel.extend(host);
        assert_eq!(judge(&record).limit, Limit::Server);
        let mut tcp = TcpFacts {
            segments_sent: 100_000,
            segments_repeated: 2_000,
            ..TcpFacts::default()
        };
        record.network.tcp = Some(tcp.clone());
        let evidence = "2.00 % of the TCP segments of this run's connections (2,000) were lost";
        judged(&record, Limit::Network, evidence, "drops on the path");
        // What the target had already was not lost.
        tcp.segments_repeated_in_vain = 1_500;
        record.network.tcp = Some(tcp);
        assert_eq!(judge(&record).limit, Limit::Server);
    }
}
