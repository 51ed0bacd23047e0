//! Clients that behave like stub resolvers: they retry, switch servers and race connections.
//!
//! A query is sent in *attempts*. When an attempt's time is over the next one begins; the query has
//! timed out when the last one has expired. As in glibc, musl and systemd-resolved, every attempt
//! is the same message with the same ID; a second ID would only help forgers (RFC 5452, section 5).
//!
//! The named schedules:
//!
//! * `glibc`: `timeout:5 attempts:2` of resolv.conf(5), each attempt at every server. Servers in
//!   their order; the next one also after SERVFAIL, NOTIMP and REFUSED (`send_dg` in res_send.c).
//! * `musl`: the same options, but the timeout covers all attempts, so 2.5 s each. All servers at
//!   once (`res_msend.c`).
//! * `systemd-resolved`: 24 attempts of 5 s (`DNS_TRANSACTION_ATTEMPTS_MAX`, `DNS_TIMEOUT_USEC`).
//!   The server used last; the next one also after REFUSED.
//! * `windows`: 1 s, 1 s, 2 s, 4 s, 2 s, as Microsoft documents for one server (KB 2834226).
//!
//! With several servers glibc gives the second one and those behind it the time of the option times
//! 2 for each server before it, divided by the number of servers, in whole seconds and never less
//! than one. Not modelled: Windows queries several servers at once after some attempts, and musl
//! retries a server that answers SERVFAIL.

use std::net::SocketAddr;
use std::time::Duration;

use proto::Transport;
use proto::time::parse_duration;
pub use settings::{ResolvConf, Retry, ServerOrder, Stub, StubPolicy};

use crate::plan::Plan;
use crate::plan_error::PlanError;

#[cfg(test)]
mod tests;

/// Most servers of one client: resolv.conf has three, DHCP rarely more.
pub const SERVERS_MAX: usize = 8;
/// Most attempts of one query: systemd-resolved makes 24.
pub const ATTEMPTS_MAX: usize = 32;
/// Default delay before a connection attempt to the next server is raced against one (RFC 8305,
/// section 5).
pub const RACE_DELAY: Duration = Duration::from_millis(250);

/// Reads `3s,3s`, or the name of a stub resolver such as `glibc` or `glibc,timeout=1,attempts=3`.
///
/// # Errors
/// The part that cannot be parsed, with the accepted forms.
pub fn parse_retry(text: &str) -> Result<Retry, String> {
    let (name, options) = text.split_once(',').unwrap_or((text, ""));
    let without_options = |retry: Retry| match options {
        "" => Ok(retry),
        _ => Err(format!("{name} has no options")),
    };
    match name {
        "glibc" => Ok(Retry::Glibc(resolv_conf(options)?)),
        "musl" => Ok(Retry::Musl(resolv_conf(options)?)),
        "systemd-resolved" => without_options(Retry::SystemdResolved),
        "windows" => without_options(Retry::Windows),
        _ => text
            .split(',')
            .map(time)
            .collect::<Result<_, _>>()
            .map(Retry::Times),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).filter(|time| !time.is_zero());
    time.ok_or_else(|| {
        format!(
            "`{text}` is not a time above zero: write the time of each attempt, such as 3s,3s, or \
             glibc, musl, systemd-resolved or windows"
        )
    })
}

fn resolv_conf(options: &str) -> Result<ResolvConf, String> {
    let mut settings = ResolvConf::default();
    for option in options.split(',').filter(|option| !option.is_empty()) {
        let (key, value) = option.split_once(['=', ':']).unwrap_or((option, ""));
        // The bounds of resolv.conf(5), which truncates silently.
        let (setting, most) = match key {
            "timeout" => (&mut settings.timeout_s, 30),
            "attempts" => (&mut settings.attempts, 5),
            _ => return Err(format!("`{option}`: write timeout=5 or attempts=2")),
        };
        let number = value
            .parse()
            .ok()
            .filter(|number| (1..=most).contains(number));
        *setting = number.ok_or_else(|| format!("`{option}`: {key} is 1 to {most}"))?;
    }
    Ok(settings)
}

/// The policy of clients with these servers over `transport`; none if each query is sent once to
/// one server. A query waits `timeout` at each server unless a schedule sets other times.
pub fn policy(
    asked: &Stub,
    servers: Vec<SocketAddr>,
    (transport, timeout): (Transport, Duration),
) -> Option<StubPolicy> {
    let several = servers.len() > 1;
    if !several && *asked == Stub::default() {
        return None;
    }
    let retry = asked.retry.as_ref();
    let waits = match retry {
        Some(retry) => retry.waits(servers.len()),
        None => vec![timeout; servers.len()],
    };
    // The server order of a named schedule is irrelevant with one server.
    let of_name = retry.filter(|_| several);
    // Over connections, musl too tries one server after the other.
    let is_possible = |it: &ServerOrder| *it != ServerOrder::All || !transport.has_connections();
    let order = of_name.map(Retry::order).filter(is_possible);
    let failover_rcodes = match of_name {
        Some(retry) if asked.failover_rcodes.is_empty() => retry.failover_rcodes().to_vec(),
        _ => asked.failover_rcodes.clone(),
    };
    Some(StubPolicy {
        servers,
        order: asked.order.or(order).unwrap_or_default(),
        waits,
        failover_rcodes,
        dead_for: asked.dead_for.unwrap_or_default(),
        race_delay: asked.race_delay,
    })
}

/// Checks for settings that cannot be used or that contradict each other or the plan.
pub(crate) fn validate(policy: &StubPolicy, plan: &Plan) -> Result<(), PlanError> {
    validate_values(policy, plan)?;
    let several = policy.servers.len() > 1;
    if !several && policy.order != ServerOrder::First {
        return without_effect("server-order", "give several by repeating --server");
    }
    if !several && !policy.failover_rcodes.is_empty() {
        return without_effect("failover-rcodes", "give several servers");
    }
    if !several && !policy.dead_for.is_zero() {
        return without_effect("server-dead-for", "give several servers");
    }
    if !several && policy.race_delay.is_some() {
        return without_effect("race-delay", "give several servers");
    }
    let transport = plan.transport;
    if policy.order == ServerOrder::All && transport.has_connections() {
        let what = format!("a client over {transport} has one connection at a time");
        let hint = "use first, rotate or stay, or race connections with --race-delay";
        return Err(PlanError::new("server-order", what, hint));
    }
    if policy.race_delay.is_some() && !transport.is_stream() {
        let what = format!("{transport} has no TCP connections to race");
        let hint = "use it with tcp, dot or doh2";
        return Err(PlanError::new("race-delay", what, hint));
    }
    validate_local(policy, plan)
}

fn validate_values(policy: &StubPolicy, plan: &Plan) -> Result<(), PlanError> {
    let servers = policy.servers.len();
    if servers > SERVERS_MAX {
        let what = format!(
            "{servers} servers for one client, which may have at most \
            {SERVERS_MAX}"
        );
        let hint = "give fewer, or spread clients over [[targets]] of a scenario";
        return Err(PlanError::new("server", what, hint));
    }
    if policy.servers.first() != Some(&plan.target) {
        let what = "the first server is not the target";
        return Err(PlanError::new("server", what, "give the target first"));
    }
    let is_repeated = |(place, server): (usize, &SocketAddr)| {
        policy.servers[..place].contains(server).then_some(*server)
    };
    if let Some(server) = policy.servers.iter().enumerate().find_map(is_repeated) {
        let what = format!("{server} occurs twice");
        return Err(PlanError::new("server", what, "leave out one of them"));
    }
    if let Some(server) = policy.servers.iter().find(|server| server.port() == 0) {
        let what = format!("{server} has port 0");
        return Err(PlanError::new(
            "server",
            what,
            "give the port it listens on",
        ));
    }
    let attempts = policy.waits.len();
    if !(1..=ATTEMPTS_MAX).contains(&attempts) {
        let what = format!("{attempts} attempts; a query has 1 to {ATTEMPTS_MAX}");
        return Err(PlanError::new("retry", what, "give fewer times"));
    }
    if policy.waits.iter().any(Duration::is_zero) {
        let hint = "give times above zero, such as 3s,3s";
        return Err(PlanError::new("retry", "an attempt has no time", hint));
    }
    if policy.timeout() != plan.timeout {
        let what = "it is not the time of all attempts";
        return Err(PlanError::new("timeout", what, "leave it to --retry"));
    }
    if policy.race_delay.is_some_and(|delay| delay.is_zero()) {
        let hint = "RFC 8305 recommends 250ms, and at least 10ms";
        return Err(PlanError::new("race-delay", "must not be zero", hint));
    }
    Ok(())
}

fn validate_local(policy: &StubPolicy, plan: &Plan) -> Result<(), PlanError> {
    if policy.servers.len() > 1 && plan.local_port != 0 {
        let what = "a client has a socket for each of its servers";
        let hint = "let the kernel choose ports, or give one server";
        return Err(PlanError::new("local-port", what, hint));
    }
    let is_ipv4 = plan.target.is_ipv4();
    let other = policy.servers.iter().find(|it| it.is_ipv4() != is_ipv4);
    if let (Some(other), false) = (other, plan.local_addresses.is_empty()) {
        let what = format!("servers of two families: {} and {other}", plan.target);
        let hint = "let the kernel choose local addresses, or give servers of one family";
        return Err(PlanError::new("local-address", what, hint));
    }
    Ok(())
}

fn without_effect(setting: &'static str, hint: &str) -> Result<(), PlanError> {
    let what = "it has no effect on clients with one server";
    Err(PlanError::new(setting, what, hint))
}
