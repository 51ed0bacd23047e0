//! The generator's own ceiling, transport by transport, as a table or as JSON.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use lab::ceiling::{Ceiling, CeilingRequest, Until, measure};
use measure::notation;
use proto::Transport;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::args::ceiling::{CLIENTS, CeilingArguments, OUTSTANDING};
use crate::failure::{Failure, print};

/// How long each transport is measured.
const SPAN: Duration = Duration::from_secs(1);

/// Measures all transports as `throng doctor --ceiling` does.
pub(crate) fn of_all_transports(json: bool) -> Result<ExitCode, Failure> {
    execute(&CeilingArguments {
        transport: Transport::ALL.to_vec(),
        clients: CLIENTS,
        outstanding: OUTSTANDING,
        queries: None,
        json,
    })
}

/// Measures each transport and prints what came of it.
pub(crate) fn execute(arguments: &CeilingArguments) -> Result<ExitCode, Failure> {
    let ceilings = all(arguments)?;
    print(&match arguments.json {
        true => report::json::pretty(&json(&ceilings)),
        false => text(&ceilings),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn all(arguments: &CeilingArguments) -> Result<Vec<Ceiling>, Failure> {
    let mut ceilings = Vec::new();
    for &transport in &arguments.transport {
        let request = CeilingRequest {
            transport,
            clients: arguments.clients,
            outstanding: arguments.outstanding,
            until: (arguments.queries).map_or(Until::Passed(SPAN), Until::Answered),
        };
        ceilings.push(measure(&request)?);
    }
    Ok(ceilings)
}

/// What one core of this machine could ask, if nothing but the generator's own code took time.
fn text(ceilings: &[Ceiling]) -> String {
    let mut text = String::from("The generator alone, on one core: no network, no kernel\n\n");
    text.push_str("transport   queries/s   ns a query\n");
    for ceiling in ceilings {
        let rate = notation::count(ceiling.queries_per_second().round() as u64);
        let name = ceiling.transport.name();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{name:<9} {rate:>11} {:>12.0}",
            ceiling.ns_per_query()
        );
    }
    text
}

/// What `throng doctor --ceiling --format json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Ceilings {
    /// One for each transport.
    ceilings: Vec<OfTransport>,
}

/// What one core of this host could ask over a transport, if nothing but the generator's own code
/// took time.
#[derive(Serialize, JsonSchema)]
struct OfTransport {
    /// The transport.
    transport: &'static str,
    /// Queries that were answered.
    queries: u64,
    /// CPU time for them.
    busy_ns: u64,
    /// CPU time for each.
    ns_per_query: f64,
    /// The ceiling.
    queries_per_second: f64,
}

fn json(ceilings: &[Ceiling]) -> Value {
    let each = ceilings.iter().map(|ceiling| OfTransport {
        transport: ceiling.transport.name(),
        queries: ceiling.queries,
        busy_ns: ceiling.busy.as_nanos() as u64,
        ns_per_query: ceiling.ns_per_query(),
        queries_per_second: ceiling.queries_per_second(),
    });
    let ceilings = each.collect();
    serde_json::to_value(Ceilings { ceilings }).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_and_json_say_the_same() {
        let ceilings = [Ceiling {
            transport: Transport::Doh2,
            queries: 1_000,
            busy: Duration::from_micros(800),
        }];
        let text = text(&ceilings);
        let row: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(row, ["doh2", "1,250,000", "800"]);
        let json = json(&ceilings);
        assert_eq!(json["ceilings"][0]["transport"], "doh2");
        assert_eq!(json["ceilings"][0]["busy_ns"], 800_000);
        assert_eq!(json["ceilings"][0]["queries_per_second"], 1_250_000.0);
    }
}
