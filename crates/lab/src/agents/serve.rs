//! A responder in several processes, which listen on the same addresses (SO_REUSEPORT).

use std::net::SocketAddr;
use std::time::Duration;

use agents::{FromAgent, Order, ToAgent};
use proto::Transport;
use responder::{Counters, ResponderConfig};
use serde_json::json;

use super::carrier::{AgentCommand, AgentsError, Carried, Carrier, TURN, Task};
use super::process::Connection;
use crate::run::{ResponderShare, RunError, SocketUse, serve_hint};

/// Serves one share until the lead says that it shall stop, and reports to it.
///
/// # Errors
/// [`RunError`] if it cannot listen.
pub fn serve_share(
    connection: &mut Connection,
    config: &ResponderConfig,
    (cpus, sockets): (&[usize], SocketUse),
    share: &ResponderShare,
) -> Result<(), RunError> {
    // Raises the soft limit.
    driver::cpu::open_files_max();
    let serving = crate::run::serve_share(config, cpus, sockets, share)
        .map_err(|error| RunError::new(format!("cannot start: {error}"), serve_hint(&error)))?;
    let voice = connection.voice();
    voice.say(FromAgent::Listening(json!(serving.addresses())));
    let orders = connection.orders().into_iter().flatten();
    let mut stops = orders.filter(|order| matches!(order, Order::Stop));
    // Without orders the lead has gone, and with it this process.
    stops.next();
    voice.say(FromAgent::Counters(serving.stop().to_numbers()));
    Ok(())
}

/// Starts all processes of a responder: the first one opens the ports, the others share them.
/// `task` is what one is to do, given the addresses.
///
/// # Errors
/// One cannot be started, or cannot listen.
pub fn start_responders(
    carrier: &mut Carrier,
    command: &AgentCommand,
    task: impl Fn(Option<&[(Transport, SocketAddr)]>) -> Task,
) -> Result<Vec<(Transport, SocketAddr)>, AgentsError> {
    let start = |carrier: &mut Carrier, task: Task| {
        let index = carrier.started();
        carrier.start(command)?;
        carrier.give_one(index, &task.inputs)?;
        carrier.say(index, &ToAgent::Serve(task.setup))
    };
    start(carrier, task(None))?;
    let addresses = addresses_of_next(carrier)?;
    for _ in 1..carrier.count() {
        start(carrier, task(Some(&addresses)))?;
    }
    for _ in 1..carrier.count() {
        addresses_of_next(carrier)?;
    }
    Ok(addresses)
}

fn addresses_of_next(carrier: &mut Carrier) -> Result<Vec<(Transport, SocketAddr)>, AgentsError> {
    loop {
        match carrier.next(TURN) {
            None | Some((_, Carried::Piece | Carried::Message(FromAgent::Beat, _))) => {}
            Some((index, Carried::Message(FromAgent::Listening(addresses), _))) => {
                let read = serde_json::from_value(addresses);
                return read.map_err(|error| {
                    let failure = agents::Failure {
                        agent: index,
                        why: agents::Why::Invalid(error.to_string()),
                    };
                    carrier.error(&failure)
                });
            }
            Some((index, other)) => return Err(carrier.unexpected(index, other)),
        }
    }
}

/// Watches the processes until `shall_stop`, which may wait for a moment, says so; then ends them.
/// Returns what all of them counted together.
///
/// # Errors
/// One has died.
pub fn serve_all(
    mut carrier: Carrier,
    mut shall_stop: impl FnMut(Duration) -> bool,
) -> Result<Counters, AgentsError> {
    while !shall_stop(TURN) {
        carrier.check()?;
    }
    carrier.say_to_all(&ToAgent::Stop)?;
    let mut counters = Counters::default();
    let mut has_counted = vec![false; carrier.count() as usize];
    while has_counted.contains(&false) {
        match carrier.next(TURN) {
            Some((index, Carried::Message(FromAgent::Counters(numbers), at))) => {
                let Some(counted) = Counters::from_numbers(&numbers) else {
                    let counted = FromAgent::Counters(numbers);
                    return Err(carrier.unexpected(index, Carried::Message(counted, at)));
                };
                counters += &counted;
                has_counted[index] = true;
            }
            Some((index, carried @ Carried::Closed(_))) if !has_counted[index] => {
                return Err(carrier.unexpected(index, carried));
            }
            _ => {}
        }
    }
    Ok(counters)
}
