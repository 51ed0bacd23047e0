//! Checks the policy of connections, before anything is started.

use proto::Transport;
use settings::ConnectionPolicy;

use crate::arrival::{Arrival, check_rate};
use crate::plan::{OUTSTANDING_PER_CLIENT_MAX, Plan};
use crate::plan_error::PlanError;

/// Checks for settings that cannot be used in this plan.
pub(crate) fn validate(plan: &Plan) -> Result<(), PlanError> {
    let policy = &plan.connections;
    if let (Some(setting), false) = (policy.given().next(), plan.transport.has_connections()) {
        let what = "udp has no connections";
        let hint = "use another transport, or leave it out";
        return Err(PlanError::new(setting, what, hint));
    }
    validate_values(policy)?;
    if policy.tcp_fast_open && !plan.transport.is_stream() {
        let what = format!("{} has no TCP connections", plan.transport);
        let hint = "use tcp, dot or doh2; over QUIC, --tls-early-data does what it does";
        return Err(PlanError::new("tcp-fast-open", what, hint));
    }
    if policy.stop_sending_allowed && plan.transport != Transport::Doq {
        let what = format!("{} has no such rule", plan.transport);
        let hint = "use doq, or leave it out";
        return Err(PlanError::new("doq-allow-stop-sending", what, hint));
    }
    match policy.asks_nothing() {
        true => validate_without_queries(policy, plan),
        false => validate_depth(policy, plan),
    }
}

/// A depth that no connection can reach would change nothing.
fn validate_depth(policy: &ConnectionPolicy, plan: &Plan) -> Result<(), PlanError> {
    let Some(depth) = policy.in_flight_max else {
        return Ok(());
    };
    if let Some(queries) = policy.queries_max.filter(|queries| *queries < depth) {
        let what =
            format!("a connection that carries {queries} in all never has {depth} in flight");
        let hint = "lower it, or raise --queries-per-connection";
        return Err(PlanError::new("pipeline", what, hint));
    }
    match plan.client_outstanding_max() {
        Some(most) if u64::from(depth) > most => {
            let what = format!(
                "no client has more than {most} in flight, so that {depth} are never reached"
            );
            let hint = "lower it, raise --outstanding, or use fewer --clients";
            Err(PlanError::new("pipeline", what, hint))
        }
        _ => Ok(()),
    }
}

/// A run of connections without queries can be ended by time alone, and allows no settings of
/// queries.
fn validate_without_queries(policy: &ConnectionPolicy, plan: &Plan) -> Result<(), PlanError> {
    let refuse = |setting, what: &str, hint: &str| Err(PlanError::new(setting, what, hint));
    if plan.queries_max.is_some() || plan.duration.is_none() {
        let what = "connections without queries are opened and closed until the duration is over";
        return refuse("queries", what, "give --duration and no number of queries");
    }
    if matches!(plan.arrival, Arrival::Open { .. }) {
        let what = "connections that carry no queries have no rate of queries";
        return refuse("rate", what, "use --connect-rate for a rate of connections");
    }
    let moot = [
        ("connection-duration", policy.duration.is_some()),
        ("connection-idle-timeout", policy.idle_timeout.is_some()),
        ("pipeline", policy.in_flight_max.is_some()),
    ];
    if let Some((setting, _)) = moot.into_iter().find(|(_, is_given)| *is_given) {
        let what = "connections without queries are closed as soon as they are usable";
        return refuse(setting, what, "leave it out");
    }
    if policy.tcp_fast_open && plan.transport == Transport::Tcp {
        let what = "a SYN that waits for the first bytes is never sent without a query";
        return refuse("tcp-fast-open", what, "leave it out, or use dot or doh2");
    }
    Ok(())
}

fn validate_values(policy: &ConnectionPolicy) -> Result<(), PlanError> {
    let times = [
        ("connection-duration", policy.duration),
        ("connection-idle-timeout", policy.idle_timeout),
    ];
    for (setting, time) in times {
        if time.is_some_and(|time| time.is_zero()) {
            let hint = "give a time above zero, such as 10s, or leave it out";
            return Err(PlanError::new(setting, "must not be zero", hint));
        }
    }
    let in_flight_max = u64::from(policy.in_flight_max.unwrap_or(1));
    if !(1..=OUTSTANDING_PER_CLIENT_MAX).contains(&in_flight_max) {
        let what = format!("a connection can have 1 to {OUTSTANDING_PER_CLIENT_MAX} in flight");
        return Err(PlanError::new("pipeline", what, "give a number of these"));
    }
    policy
        .rate_max
        .map_or(Ok(()), |rate| check_rate("connect-rate", rate).map(drop))
}
