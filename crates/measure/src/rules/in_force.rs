//! Cures that a run had already.

use crate::doctor::{Cure, Place};
use crate::scenario::ScenarioRecord;

/// True if the cure is a flag, and the run had that value or one that goes further.
pub(super) fn is_in_force(cure: &Cure, scenario: &ScenarioRecord) -> bool {
    let (flag, value) = cure.how.split_once(' ').unwrap_or((&cure.how, ""));
    let seconds = || value.strip_suffix('s')?.parse::<f64>().ok();
    let is_no_longer = |ns: u64| seconds().is_some_and(|it| ns as f64 <= it * 1e9);
    let number = value.parse::<u64>().ok();
    cure.place == Place::Throng
        && match flag {
            "--timeout" => is_no_longer(scenario.timeout_ns),
            "--warmup" => is_no_longer(scenario.warmup_ns),
            "--workers" => number == Some(scenario.workers),
            "--queries-per-connection" => {
                let most = scenario.connections.queries_max.map(u64::from);
                number
                    .zip(most)
                    .is_some_and(|(number, most)| number >= most)
            }
            "--tcp-fallback" => scenario.tcp_fallback,
            "--edns-size" => {
                let edns = scenario.edns.as_deref().unwrap_or_default();
                edns.split(' ').next() == Some(value)
            }
            _ => false,
        }
}
