//! A responder in parts, which listen on the same addresses (SO_REUSEPORT).

use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::time::Duration;

use proto::Transport;
use responder::{Counters, ResponderConfig};
use serde_json::{Value, json};

use super::child;
use super::parent::{Event, PartCommand, Parts, PartsError};
use crate::run::{ResponderShare, RunError, SocketUse, serve_hint, serve_share};

/// How long a wait for the parts may last before the caller has its turn.
const TURN: Duration = Duration::from_millis(20);

/// Serves one part until the parent says `stop`, and reports to it.
///
/// # Errors
/// [`RunError`] if it cannot listen.
pub fn serve_part(
    config: &ResponderConfig,
    (cpus, sockets): (&[usize], SocketUse),
    share: &ResponderShare,
) -> Result<(), RunError> {
    let (sender, stop) = channel();
    child::watch_parent(move |word, _| {
        if word == "stop" {
            // Nobody waits for it any more only if the process is about to end.
            let _ = sender.send(());
        }
    });
    // Raises the soft limit.
    driver::cpu::open_files_max();
    let serving = serve_share(config, cpus, sockets, share)
        .map_err(|error| RunError::new(format!("cannot start: {error}"), serve_hint(&error)))?;
    child::say("listening", &json!(serving.addresses()).to_string());
    // An error means that the parent has gone, and with it this process.
    let _ = stop.recv();
    let counters = serving.stop().to_numbers();
    child::say("counters", &json!(counters).to_string());
    Ok(())
}

/// Starts all parts of a responder: the first one opens the ports, the others share them.
/// `setup` says what a part is told, given the addresses.
///
/// # Errors
/// A part cannot be started, or cannot listen.
pub fn start_responders(
    parts: &mut Parts,
    command: &PartCommand,
    setup: impl Fn(Option<&[(Transport, SocketAddr)]>) -> Value,
) -> Result<Vec<(Transport, SocketAddr)>, PartsError> {
    parts.start(command, &setup(None))?;
    let addresses = addresses_of_next(parts)?;
    for _ in 1..parts.count() {
        parts.start(command, &setup(Some(&addresses)))?;
    }
    for _ in 1..parts.count() {
        addresses_of_next(parts)?;
    }
    Ok(addresses)
}

fn addresses_of_next(parts: &mut Parts) -> Result<Vec<(Transport, SocketAddr)>, PartsError> {
    loop {
        match parts.next(TURN) {
            None => {}
            Some((index, Event::Ended)) => return Err(parts.died(index)),
            Some((index, Event::Clock(_))) => return Err(Parts::nonsense(index, "a clock")),
            Some((index, Event::Said(word, text))) => match word.as_str() {
                "listening" => {
                    let addresses = serde_json::from_str(&text);
                    return addresses.map_err(|error| Parts::nonsense(index, error));
                }
                "failed" => return Err(parts.failed(index, &text)),
                _ => return Err(Parts::nonsense(index, word)),
            },
        }
    }
}

/// Watches the parts until `shall_stop`, which may wait for a moment, says so; then ends them.
/// Returns what all of them counted together.
///
/// # Errors
/// A part has died.
pub fn serve_parts(
    mut parts: Parts,
    mut shall_stop: impl FnMut(Duration) -> bool,
) -> Result<Counters, PartsError> {
    while !shall_stop(TURN) {
        parts.check()?;
    }
    parts.say_to_all("stop");
    let mut counters = Counters::default();
    let mut has_counted = vec![false; parts.count() as usize];
    while has_counted.contains(&false) {
        match parts.next(TURN) {
            Some((index, Event::Said(_, text))) => {
                let numbers: Vec<u64> = serde_json::from_str(&text).unwrap_or_default();
                let counted = Counters::from_numbers(&numbers);
                counters += &counted.ok_or_else(|| Parts::nonsense(index, text))?;
                has_counted[index] = true;
            }
            Some((index, Event::Ended)) if !has_counted[index] => return Err(parts.died(index)),
            _ => {}
        }
    }
    Ok(counters)
}
