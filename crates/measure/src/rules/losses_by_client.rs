//! Rules about clients that lose queries, while others do not.

use super::finding::Finding;
use super::losses_by_name::looks_like;
use super::phrases::by_source;
use crate::doctor::{Cure, Diagnosis, State};
use crate::notation::{count, counted, percent};
use crate::symptoms::losses_by_client::LossesOfSomeClients;
use crate::symptoms::losses_by_name::LooksAlike;
use crate::symptoms::{Figures, Symptoms};

pub(super) fn losses_of_some_clients(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.losses_of_some_clients.as_ref()?, &symptoms.figures);
    let whose = format!("{} of {}", count(it.some), counted(it.all, "client"));
    let lost = match it.are_unserved() {
        true => "got no response at all, while the others did".to_owned(),
        false => format!(
            "lost up to {} of their queries, and the others next to nothing",
            percent(it.lost)
        ),
    };
    let (sockets, why) = sockets(it, figures);
    let mut seen = format!("{whose}, {sockets}, {lost}: {why}");
    let alike: Vec<String> = it.alike.iter().map(looks_like).collect();
    if !alike.is_empty() {
        seen.push_str(&format!(
            "; clients send in turn, so {} would look the same",
            alike.join(" or ")
        ));
    }
    let matters = "a server without CPU time, or a limit on the rate of all, loses queries of all \
                   clients alike: these are lost to what is chosen by their addresses and ports, \
                   or to a limit on each source";
    let diagnosis = Diagnosis::new("losses by client", State::Problem, seen, matters)
        .cures(another_number(it))
        .cures(by_source(figures));
    Some(diagnosis.into())
}

/// What distinguishes these clients from the others, and what treats clients differently by it.
fn sockets(it: &LossesOfSomeClients, figures: &Figures<'_>) -> (String, &'static str) {
    if let Some((addresses, of)) = it.addresses {
        let (some, all) = (count(addresses), count(of));
        return (
            format!("all those of {some} of the {all} local addresses and no others"),
            "an access list or a firewall, or a back-end or a path that is chosen by the source \
             address, and is slow or dead",
        );
    }
    match figures.record.scenario.local_addresses.len() {
        0 | 1 => (
            "each with its source port".to_owned(),
            "the target or the path treats these sockets differently, such as a thread, a \
             back-end or a path that is chosen by a hash of the source port, and is slow or dead",
        ),
        _ => (
            "each with its source address and port".to_owned(),
            "the target or the path treats these sockets differently, such as an access list, or \
             a thread, a back-end or a path that is chosen by a hash of address and port, and is \
             slow or dead",
        ),
    }
}

/// A run that distinguishes clients from turns: of this number, back-ends in turn answer all alike.
fn another_number(it: &LossesOfSomeClients) -> Option<Cure> {
    let is_turn = |it: &&LooksAlike| matches!(it, LooksAlike::BackEnds { .. });
    it.alike.iter().find(is_turn)?;
    Some(Cure::words(format!(
        "repeat with --clients {}: if some clients lose everything again, their sockets are \
         treated differently; if all lose alike, queries are lost in turn",
        it.all + 1
    )))
}
