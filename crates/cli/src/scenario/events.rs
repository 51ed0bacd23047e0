//! Events on the time line: clients change what they do, leave, or lose their connections.
//!
//! Clients that change are, for the engine, clients that leave and others that join in the same
//! moment. So an event splits groups into parts: those it leaves alone, those that it ends, and
//! those that begin with it.

use std::time::Duration;

use proto::time::{parse_duration, parse_duration_or_seconds};

use super::file::Table;
use super::groups::{Part, share, suits, value};
use super::totals::{divide, is_replaced, is_total, share_out};
use crate::failure::Failure;

/// Applies the events in order of time.
pub(super) fn apply(events: &[Table], mut parts: Vec<Part>) -> Result<Vec<Part>, Failure> {
    let mut timed = Vec::new();
    for event in events {
        let at = event.own("at").and_then(parse_duration);
        let Some(at) = at.filter(|at| !at.is_zero()) else {
            let hint = "write at = \"60s\", counted from the start of the run";
            return Err(event.fault("no time at which it happens", hint));
        };
        timed.push((at, event));
    }
    timed.sort_by_key(|(at, _)| *at);
    for (at, event) in timed {
        refuse_after_end(event, at, &parts)?;
        parts = apply_one(event, at, parts)?;
    }
    Ok(parts)
}

/// Refuses an event at or after the end of all clients that it is about.
fn refuse_after_end(event: &Table, at: Duration, parts: &[Part]) -> Result<(), Failure> {
    let is_meant = |part: &&Part| event.own("clients").is_none_or(|name| part.name == name);
    let ends = parts.iter().filter(is_meant).map(end_of);
    let Some(end) = ends
        .collect::<Option<Vec<_>>>()
        .and_then(|all| all.into_iter().max())
    else {
        return Ok(());
    };
    if at < end {
        return Ok(());
    }
    let what = format!(
        "it happens at {}, and the run ends at {}",
        humantime::format_duration(at),
        humantime::format_duration(end)
    );
    Err(event.fault(what, "give an earlier `at`, or the run a longer duration"))
}

/// When queries of these clients end, if a time says so.
fn end_of(part: &Part) -> Option<Duration> {
    let length = value(&part.flags, "duration").and_then(parse_duration_or_seconds)?;
    let warmup = value(&part.flags, "warmup").and_then(parse_duration);
    Some(length + warmup.unwrap_or_default())
}

fn apply_one(event: &Table, at: Duration, parts: Vec<Part>) -> Result<Vec<Part>, Failure> {
    let of_group = event.own("clients");
    if let Some(name) = of_group
        && parts.iter().all(|part| part.name != name)
    {
        let hint = "give the name of a group, or leave it out to mean all";
        return Err(event.fault(format!("there is no group named `{name}`"), hint));
    }
    let part_share = event
        .own("share")
        .map_or(Ok(1.0), |text| share(event, text))?;
    let is_reset = event.own("reset").is_some_and(|text| text == "true");
    let leaves = event.own("leave").is_some_and(|text| text == "true");
    let changes = !event.flags.is_empty();
    if u8::from(is_reset) + u8::from(leaves) + u8::from(changes) != 1 {
        let hint = "write one of reset = true, leave = true, or flags that change, such as \
                    transport = \"dot\"";
        return Err(event.fault("it is not clear what happens", hint));
    }
    let (mut after, mut begun) = (Vec::new(), Vec::new());
    for mut part in parts {
        let is_meant = of_group.is_none_or(|name| part.name == name) && is_there(&part, at);
        if !is_meant {
            after.push(part);
            continue;
        }
        if is_reset {
            add_reset(&mut part, at, part_share);
            after.push(part);
            continue;
        }
        let (goes_on, begins) = split(event, at, part_share, part)?;
        after.extend(goes_on);
        begun.extend(begins.is_some().then_some(after.len()));
        after.extend(begins);
    }
    // What the event states, it states once.
    let each = after.iter_mut().enumerate();
    let each = each.filter(|(position, _)| begun.contains(position));
    let mut begun: Vec<&mut Part> = each.map(|(_, part)| part).collect();
    let clients = begun.iter().map(|part| f64::from(part.clients));
    let clients: Vec<f64> = clients.collect();
    for total in event.flags.iter().filter(|given| is_total(&given.name)) {
        share_out(&total.name, &mut begun, &clients)?;
    }
    Ok(after)
}

/// Clients that do not leave before `at`.
fn is_there(part: &Part, at: Duration) -> bool {
    let leaves = value(&part.flags, "leave-after").and_then(parse_duration);
    leaves.is_none_or(|leaves| leaves > at)
}

fn add_reset(part: &mut Part, at: Duration, share: f64) {
    let text = format!("{}s={share}", at.as_secs_f64());
    match part.flags.iter_mut().find(|given| given.name == "reset") {
        Some(given) => given.values.push(text),
        None => part.set("reset", text),
    }
}

/// A part of which a share leaves at `at`: those that were there before, and those that begin anew
/// if the event changes what they do.
fn split(
    event: &Table,
    at: Duration,
    share: f64,
    part: Part,
) -> Result<(Vec<Part>, Option<Part>), Failure> {
    let text = format!("{}s", at.as_secs_f64());
    if !event.flags.is_empty() && value(&part.flags, "queries").is_some() {
        let what = "how many of the queries come before it cannot be known";
        return Err(event.fault(what, "give the run a duration instead of queries"));
    }
    let mut divided = divide(&part, &[1.0 - share, share], is_total)?.into_iter();
    let (stays, leaves) = (divided.next().flatten(), divided.next().flatten());
    let mut parts = Vec::from_iter(stays);
    let Some(mut leaves) = leaves else {
        return Ok((parts, None));
    };
    let mut begins = leaves.clone();
    leaves.set("leave-after", text.clone());
    parts.push(leaves);
    if !event.flags.is_empty() {
        let names: Vec<&str> = event
            .flags
            .iter()
            .map(|given| given.name.as_str())
            .collect();
        begins.flags.retain(|given| {
            let name = given.name.as_str();
            !names.contains(&name) && !is_replaced(name, &event.flags)
        });
        begins.flags.extend_from_slice(&event.flags);
        let transport = value(&begins.flags, "transport").and_then(|text| text.parse().ok());
        if let Some(transport) = transport {
            let given = |name: &str| names.contains(&name);
            (begins.flags).retain(|flag| given(&flag.name) || suits(&flag.name, transport));
        }
        begins.set("join-after", text.clone());
        begins.name = match event.own("name") {
            Some(name) => name.to_owned(),
            None => format!("{} from {text}", begins.name),
        };
        begins.place.clone_from(&event.place);
        return Ok((parts, Some(begins)));
    }
    Ok((parts, None))
}
