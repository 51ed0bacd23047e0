//! Rules about clients without service that no limit on the number of clients explains.

use super::connections::OF_SERVED;
use super::finding::Finding;
use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::notation::count;
use crate::symptoms::Symptoms;

/// Their attempts to connect ended at the SYN.
pub(super) fn never_connected(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.never_connected.as_ref()?;
    let how = match (it.are_dropped, it.are_rejected) {
        (true, true) => "dropped or rejected",
        (false, true) => "rejected",
        _ => "dropped",
    };
    let seen = format!(
        "{} of {} TCP clients never had a connection: their SYNs were {how}: a firewall's limit, a \
         full listen queue, or a server that is down behind the address",
        count(it.without),
        count(it.all)
    );
    let look = "nft list ruleset; iptables -nvL; nstat -az TcpExtListenDrops  (limits on ct count \
                or connlimit, and what a full listen queue dropped)";
    let diagnosis = Diagnosis::new("TCP clients", State::Problem, seen, OF_SERVED)
        .cure(Cure::new(Place::Server, look))
        .cure(Cure::words(
            "look whether each server behind the address answers, and for limits on connections in \
             the devices before it",
        ));
    Some(diagnosis.into())
}

/// They are all clients of some addresses.
pub(super) fn unserved_by_source(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.unserved_by_source.as_ref()?;
    let transport = symptoms.figures.record.scenario.transport;
    let kind = if transport.is_quic() { "QUIC" } else { "TCP" };
    let seen = format!(
        "{} of {} {kind} clients got no response at all, by source address: all those of {} of the \
         {} local addresses, and no others: an access list, a firewall or a back-end",
        count(it.without),
        count(it.all),
        count(it.addresses),
        count(it.of)
    );
    let diagnosis = Diagnosis::new("source addresses", State::Problem, seen, OF_SERVED)
        .cure(Cure::words(
            "let the server answer all addresses of --local-address: its access lists (BIND: \
             allow-query and blackhole, Unbound: access-control), and each server behind a proxy",
        ))
        .cure(Cure::new(
            Place::Server,
            "nft list ruleset; iptables -nvL  (rules on these source addresses)",
        ));
    Some(diagnosis.into())
}
