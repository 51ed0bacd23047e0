//! Simulations: the modelled server knows whether it was the limit, and need not be guessed at.

use super::load::overloaded;
use super::{Figures, Finding, Stage};
use crate::limit::Limit;
use crate::notation::{count, counted, latency, percent, rate, share};
use crate::simulation::ModelledServer;

/// From this share of the workers' time on, they are the limit.
const BUSY: f64 = 0.98;
/// More datagrams dropped than this share, and the queue was too short for the load.
const DROPPED_MAX: f64 = 0.001;

/// What every verdict on a simulation says, so that nobody takes it for a measurement.
pub(crate) fn marking(figures: &Figures<'_>) -> Option<String> {
    let simulation = figures.record.simulation.as_ref()?;
    let what = match &simulation.server {
        None => "no server was measured, and the simulated one needed no time".to_owned(),
        Some(server) => format!(
            "no server was measured; {} busy for {} of the run in the model",
            workers(server),
            percent(server.seen.utilisation)
        ),
    };
    Some(format!("SIMULATION: {what}"))
}

fn workers(server: &ModelledServer) -> String {
    let were = if server.workers == 1 { "was" } else { "were" };
    format!("{} {were}", counted(server.workers, "worker"))
}

/// The modelled server as the limit.
pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let simulation = figures.record.simulation.as_ref()?;
    let server = simulation.server.as_ref()?;
    let seen = &server.seen;
    let wait = seen.waits.percentile(0.99);
    let wait = wait.map_or_else(|| "-".to_owned(), |wait| latency(wait as f64));
    let queue = format!(
        "up to {} waited, queries p99 {wait}, and {} of the queries were dropped",
        counted(seen.waiting_max, "job"),
        share(seen.dropped, seen.queries)
    );
    if seen.utilisation >= BUSY {
        let evidence = format!(
            "the modelled server's {} busy for {} of the run: {queue}",
            workers(server),
            percent(seen.utilisation)
        );
        let advice = "give the model more workers (--sim-workers), or less load";
        return Some(conclusion(Limit::Server, evidence, advice));
    }
    if seen.dropped as f64 > DROPPED_MAX * seen.queries as f64 {
        let evidence = format!(
            "the modelled server's queue of {} was too short for the peaks, with its workers busy \
             for {} of the run: {queue}",
            count(server.queue_max.unwrap_or(0)),
            percent(seen.utilisation)
        );
        let advice = "give the model a longer queue: --sim-queue";
        return Some(conclusion(Limit::Server, evidence, advice));
    }
    if simulation.network.syns_dropped > 0 && figures.counts.lost() > 0 {
        let evidence = format!(
            "the modelled server's listen backlog was full: {} dropped, and sent again after a \
             second or more",
            counted(simulation.network.syns_dropped, "SYN")
        );
        let advice = "give the model a longer backlog: --sim-backlog";
        return Some(conclusion(Limit::Server, evidence, advice));
    }
    load_carried(figures, server)
}

fn conclusion(limit: Limit, evidence: String, advice: &str) -> Finding {
    Finding::concluded(Stage::Model, limit, evidence, advice)
}

/// Open loop, and everything answered: queries that left late waited for their connection, for a
/// simulated generator is never late by itself.
fn load_carried(figures: &Figures<'_>, server: &ModelledServer) -> Option<Finding> {
    let is_open = figures.record.is_open_loop();
    let counts = figures.counts;
    if !is_open || counts.lost() > 0 || overloaded(figures).is_some() {
        return None;
    }
    let evidence = format!(
        "{} of the queries offered at {} were answered, with the modelled server's workers busy \
         for {} of the run",
        share(counts.responses, counts.offered),
        rate(figures.record.offered_qps()),
        percent(server.seen.utilisation)
    );
    let advice = "raise the load, or give the model fewer workers, to find its limit";
    Some(conclusion(Limit::Rate, evidence, advice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::situations::*;
    use crate::simulation::{ServerActivity, SimulatedNetwork, SimulationRecord};

    /// An open loop at a modelled server with two workers, busy for that share of the run.
    fn modelled(utilisation: f64) -> RunRecord {
        let mut record = in_time(10_000.0);
        let server = ModelledServer {
            workers: 2,
            service_time: "constant".into(),
            accept_ns: 0,
            handshake_ns: 0,
            resumption_ns: 0,
            queue_max: Some(100),
            backlog_max: Some(10),
            connections_max: None,
            cache: None,
            seen: ServerActivity {
                queries: 100_000,
                utilisation,
                ..ServerActivity::default()
            },
        };
        record.simulation = Some(SimulationRecord {
            network: SimulatedNetwork::default(),
            server: Some(server),
        });
        record
    }

    fn model(record: &mut RunRecord) -> &mut SimulationRecord {
        record.simulation.as_mut().expect("is simulated")
    }

    #[test]
    fn the_model_knows_what_its_server_lacked() {
        judged(&modelled(0.99), Limit::Server, "99.0 %", "--sim-workers");

        let mut short = modelled(0.5);
        let server = model(&mut short).server.as_mut().expect("is modelled");
        server.seen.dropped = 1_000;
        judged(&short, Limit::Server, "50.0 %", "--sim-queue");

        let mut full = modelled(0.5);
        model(&mut full).network.syns_dropped = 5;
        lose(&mut full, 100);
        judged(&full, Limit::Server, "5 SYNs", "--sim-backlog");
    }

    #[test]
    fn a_load_that_the_model_carried_is_the_limit_and_no_measurement() {
        let verdict = judged(&modelled(0.5), Limit::Rate, "50.0 %", "raise the load");
        let last = verdict.evidence.last().expect("has evidence");
        assert!(last.starts_with("SIMULATION: no server"), "{last}");
    }
}
