//! Who of the groups of a run offers what, and to whom: for people, before it starts.

use load::Arrival;
use measure::notation;

use super::RunRequest;

/// What one part of the clients is to offer to one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The group that it belongs to.
    pub group: String,
    /// The target as the user typed it; none for the built-in responder.
    pub target: Option<String>,
    /// How it is reached.
    pub transport: String,
    /// Its clients.
    pub clients: u32,
    /// Its rate, or its places, in words.
    pub load: String,
}

/// What each of the groups offers, in their order.
pub fn shares(groups: &[RunRequest]) -> Vec<Share> {
    let share = |request: &RunRequest| Share {
        group: request.group.clone(),
        target: super::record::server_name(&request.asked),
        transport: request.plan.transport.to_string(),
        clients: request.plan.clients,
        load: load_of(request),
    };
    groups.iter().map(share).collect()
}

fn load_of(request: &RunRequest) -> String {
    let plan = &request.plan;
    let load = match &plan.arrival {
        _ if plan.connections.asks_nothing() => "no queries".to_owned(),
        Arrival::Open { rate_qps, .. } => format!("{} qps", notation::chosen(*rate_qps)),
        Arrival::Closed { outstanding, .. } => {
            format!("{} outstanding", notation::count((*outstanding).into()))
        }
        Arrival::Clients(each) => format!("{each} each"),
        Arrival::Profile(_) => "as its profile says".to_owned(),
        Arrival::Script(_) => "as its script says".to_owned(),
        Arrival::Replay(_) => "as its capture says".to_owned(),
    };
    match plan.queries_max {
        Some(queries) => format!("{load}, {}", notation::counted(queries, "query")),
        None => load,
    }
}
