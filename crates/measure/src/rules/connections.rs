//! Rules about connections: refused, ended, waiting, and clients without responses.

use super::finding::Finding;
use super::phrases::{attempts_by_cause, list, with_room};
use crate::counts::{CertificateFaults, ConnectionFailures, Connections, Counts};
use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::interval::per;
use crate::notation::{count, counted, decimal, latency, share};
use crate::observation::ProgramUse;
use crate::scenario::{Transport, Transports};
use crate::symptoms::connections::{DELAYED, Unserved, UnservedClients, turned_away};
use crate::symptoms::{Figures, Symptoms};

/// Why clients that are not served matter.
pub(super) const OF_SERVED: &str = "all figures are those of the clients that are served";
/// BIND serves that many TCP clients unless named.conf says otherwise.
const BIND_TCP_CLIENTS: u64 = 150;
/// BIND serves that many HTTP clients of a listener unless named.conf says otherwise.
const BIND_HTTP_CLIENTS: u64 = 300;
/// Unbound serves that many TCP clients with each thread unless unbound.conf says otherwise.
const UNBOUND_TCP_CLIENTS: u64 = 10;

pub(super) fn listen_queue_full(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.listen_queue_full.as_ref()?;
    let evidence = [
        (it.syns_dropped > 0).then(|| {
            let syns = counted(it.syns_dropped, "SYN");
            format!("{syns} found the target's listen queue full")
        }),
        (it.timed_out > 0).then(|| {
            let attempts = counted(it.timed_out, "connection attempt");
            format!("{attempts} timed out")
        }),
        it.sent_again_ns.map(|(longest, shortest)| {
            format!(
                "some connections took {}, as when a SYN is sent again, and others {}",
                latency(longest as f64),
                latency(shortest as f64)
            )
        }),
    ];
    let evidence: Vec<String> = evidence.into_iter().flatten().collect();
    let seen = evidence.join("; ");
    let matters = "connections wait in the listen queue until the server accepts them; it has \
                   room for 10 in BIND's default, and a SYN beyond it is sent again after a second";
    let diagnosis = Diagnosis::new("listen queue", State::Warning, seen, matters);
    let diagnosis = match symptoms.figures.record.simulation {
        Some(_) => diagnosis.cure(Cure::throng("--sim-backlog 4096")),
        None => diagnosis
            .cure(Cure::named("tcp-listen-queue 4096;"))
            .cure(Cure::server_sysctl("net.core.somaxconn", 4_096))
            .cure(Cure::server_sysctl("net.ipv4.tcp_max_syn_backlog", 8_192)),
    };
    Some(diagnosis.into())
}

/// The target serves a number of connections, or some addresses alone.
pub(super) fn unserved_clients(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.unserved_clients.as_ref()?, &symptoms.figures);
    // Limits that answer nothing for a while answer those who ask first after it.
    let silence = symptoms.outages_of_target.as_ref();
    let transport = figures.record.scenario.transport;
    if !transport.has_connections() || silence.is_some_and(|it| it.are_much() && it.0.may_be_limit)
    {
        return None;
    }
    let mut matters = OF_SERVED.to_owned();
    let kind = if transport.is_quic() { "QUIC" } else { "TCP" };
    let how = match (
        it.how,
        turned_away(&figures.record.connections()) >= it.without,
    ) {
        (Unserved::Meanwhile, _) => "waited while the load lasted",
        (Unserved::Never, true) => "got no response at all (refused or reset)",
        (Unserved::Never, false) => "got no response at all (left waiting)",
    };
    if let Some(at_first) = it.at_first {
        return Some(served_later((it, at_first), kind, how));
    }
    let (at_once, without, all) = (count(it.at_once), count(it.without), count(it.all));
    let mut outages = figures.outages.each.iter();
    let seen = match it.asked_once && outages.any(|it| it.lasts) {
        true => format!(
            "{without} of {all} {kind} clients {how}: the target serves no more than {at_once} at \
             once, or stopped answering; a run in which each client asks twice shows which"
        ),
        false => format!(
            "the target serves no more than {at_once} {kind} clients at once: {without} of {all} \
             {how}"
        ),
    };
    for (cap, name) in defaults(transport) {
        if it.at_once == cap {
            matters.push_str(&format!("; {cap} is what {name} says otherwise"));
        }
    }
    let diagnosis = Diagnosis::new("TCP clients", State::Problem, seen, matters);
    let cures = more_clients(figures);
    let more = more_tcp_clients(figures, &cures);
    let finding = Finding::from(diagnosis.cures(cures));
    Some(match transport.is_quic() {
        true => finding,
        false => finding
            .advising(&more)
            .advising("if the server counts clients by address, use several: --local-address"),
    })
}

/// More clients were served later than at first.
fn served_later((it, at_first): (&UnservedClients, u64), kind: &str, how: &str) -> Finding {
    let seen = format!(
        "{} of {} {kind} clients {how}; {} were served at once at first and {} later, which no \
         fixed limit explains: servers behind the address may be down",
        count(it.without),
        count(it.all),
        count(at_first),
        count(it.at_once)
    );
    let look = "look whether each server behind the address answers, and what a proxy there does \
                with one that is down";
    let diagnosis = Diagnosis::new("TCP clients", State::Problem, seen, OF_SERVED);
    diagnosis.cure(Cure::words(look)).into()
}

/// Caps that servers have by default.
fn defaults(transport: Transports) -> Vec<(u64, &'static str)> {
    match transport {
        transport if transport.is_quic() => Vec::new(),
        Transports::One(Transport::Doh2) => vec![(
            BIND_HTTP_CLIENTS,
            "BIND allows unless http-listener-clients",
        )],
        _ => vec![
            (BIND_TCP_CLIENTS, "BIND allows unless tcp-clients"),
            (
                UNBOUND_TCP_CLIENTS,
                "Unbound allows a thread unless incoming-num-tcp",
            ),
        ],
    }
}

/// The statement of the server's product, or those of all products where it is not known.
fn more_tcp_clients(figures: &Figures<'_>, cures: &[Cure]) -> String {
    let product = figures.programs.first().map(ProgramUse::product);
    let of_product = |it: &&Cure| product.is_some() && it.place.product() == product;
    match cures.iter().find(of_product) {
        Some(cure) => cure.sentence(),
        None => {
            let of_bind = match figures.record.scenario.transport {
                Transports::One(Transport::Doh2) => "http-listener-clients",
                _ => "tcp-clients",
            };
            format!(
                "raise the server's limit on TCP clients to {}: BIND {of_bind}, Unbound \
                 incoming-num-tcp, NSD tcp-count, Knot DNS tcp-max-clients",
                count(with_room(figures.record.scenario.clients))
            )
        }
    }
}

/// How servers take more clients.
pub(super) fn more_clients(figures: &Figures<'_>) -> Vec<Cure> {
    let scenario = &figures.record.scenario;
    let wanted = with_room(scenario.clients);
    let fewer = Cure::throng(format!("--clients {}", scenario.clients / 2));
    match scenario.transport {
        transport if transport.is_quic() => vec![
            Cure::words("raise the number of QUIC clients that the server accepts"),
            fewer,
        ],
        Transports::One(Transport::Doh2) => vec![
            Cure::named(format!("http-listener-clients {wanted};")),
            Cure::named(format!("tcp-clients {wanted};")),
            Cure::named("tcp-listen-queue 4096;"),
        ],
        _ => vec![
            Cure::named(format!("tcp-clients {wanted};")),
            Cure::named("tcp-listen-queue 4096;"),
            Cure::new(Place::UnboundConf, format!("incoming-num-tcp: {wanted}")),
            Cure::new(Place::KnotConf, format!("tcp-max-clients: {wanted}")),
        ],
    }
}

pub(super) fn handshakes_refused(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let refused = &symptoms.handshakes_refused.as_ref()?.refused;
    let record = symptoms.figures.record;
    let mut seen = format!(
        "{} failed: {}",
        counted(refused.total(), "handshake"),
        attempts_by_cause(refused, record.scenario.transport)
    );
    let completed = record.connections().handshakes.total();
    if completed > 0 {
        seen.push_str(&format!("; {} succeeded", count(completed)));
    }
    let matters = "clients without a connection send nothing; where some handshakes succeed and \
        others do not, the certificate or settings changed, or servers behind one address differ";
    let diagnosis = Diagnosis::new("handshakes", State::Problem, seen, matters);
    Some(diagnosis.cures(handshakes(symptoms)).into())
}

/// How to make handshakes succeed.
pub(super) fn handshakes(symptoms: &Symptoms<'_>) -> Vec<Cure> {
    let Some(it) = &symptoms.handshakes_refused else {
        return Vec::new();
    };
    let mut cures = of_refusals(&it.refused);
    let scenario = &symptoms.figures.record.scenario;
    // It speaks no QUIC.
    if !scenario.transport.is_quic() {
        let target = &scenario.target;
        let look = format!("openssl s_client -connect {target} -showcerts </dev/null");
        cures.push(Cure::shell(look));
    }
    cures
}

/// What to do where no handshake succeeded and most attempts were refused for a known reason.
pub(super) fn first_handshake(symptoms: &Symptoms<'_>) -> Option<String> {
    let refused = &symptoms.handshakes_refused.as_ref()?.refused;
    let connections = symptoms.figures.record.connections();
    let are_most = 2 * refused.total() >= connections.failed.total();
    let all_failed = connections.handshakes.total() == 0;
    let cures = of_refusals(refused);
    cures
        .first()
        .filter(|_| are_most && all_failed)
        .map(Cure::sentence)
}

/// The alert of a server that wants a certificate of its clients (RFC 8446, section 6.2).
const CERTIFICATE_REQUIRED: &str = "certificate_required";
/// The alert of a server that speaks none of the protocols it is offered (RFC 7301, section 3.2).
const NO_APPLICATION_PROTOCOL: &str = "no_application_protocol";

/// The cures of refusals whose reason is known.
fn of_refusals(refused: &ConnectionFailures) -> Vec<Cure> {
    let alpn = refused.tls_alpn + refused.tls_alert.get(NO_APPLICATION_PROTOCOL);
    let own_certificate = refused.tls_alert.get(CERTIFICATE_REQUIRED);
    let mut cures = certificate(refused);
    if refused.tls_pin > 0 {
        cures.push(Cure::throng("--tls-pin PIN  (of the new key too)"));
    }
    if alpn > 0 {
        cures.push(Cure::words(
            "check port and transport: what listens there speaks another protocol (ALPN); \
             --tls-alpn offers others",
        ));
    }
    if own_certificate > 0 {
        cures.push(Cure::throng(
            "--tls-cert FILE --tls-key FILE  (a certificate that the server accepts)",
        ));
    }
    cures
}

/// Cure for an expired certificate.
pub const CERTIFICATE_EXPIRED: &str = "renew the certificate of the server; it has expired, if the \
                                       clock of this host is right (`date -u` prints it)";
/// Cure for a certificate that is not valid yet.
pub const CERTIFICATE_NOT_YET_VALID: &str = "set the clock of this host (`date -u` prints it); if \
                                             it is right, the certificate of the server is not \
                                             valid yet";

/// How certificates are accepted, by their faults: no other root makes an expired one valid.
fn certificate(refused: &ConnectionFailures) -> Vec<Cure> {
    let CertificateFaults {
        expired,
        not_yet_valid,
        wrong_name,
        // Trusted with another root, like faults that have no counter.
        unknown_issuer: _,
    } = refused.tls_certificate_faults;
    let known = expired + not_yet_valid + wrong_name;
    let others = refused.tls_certificate.saturating_sub(known);
    let cures = [
        (expired > 0).then(|| Cure::words(CERTIFICATE_EXPIRED)),
        (not_yet_valid > 0).then(|| Cure::words(CERTIFICATE_NOT_YET_VALID)),
        (wrong_name > 0).then(|| Cure::throng("--tls-name NAME  (one of the certificate's)")),
        (others > 0)
            .then(|| Cure::throng("--tls-ca FILE  (with the issuer of each of its certificates)")),
    ];
    cures.into_iter().flatten().collect()
}

pub(super) fn rules_broken(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let figures = &symptoms.figures;
    let rules = figures.record.connections().closed_for_violation;
    let named = rules.named();
    let named: Vec<(u64, String)> = named
        .map(|(rule, number)| (number, rule.to_owned()))
        .collect();
    let is_stop_sending = |it: &(u64, String)| it.1.contains("STOP_SENDING from a server");
    let cure = match named.iter().any(is_stop_sending) {
        true => Cure::throng("--doq-allow-stop-sending"),
        false => Cure::words("report it to the developers of the server: it breaks the protocol"),
    };
    let mut seen = format!(
        "this tool closed {} because the target broke a rule: {}",
        counted(rules.total(), "connection"),
        list(named)
    );
    let counts = figures.counts;
    if counts.connection_losses > 0 {
        seen.push_str(&format!(
            "; {} ({} of those sent) were lost with their connection",
            counted(counts.connection_losses, "query"),
            share(counts.connection_losses, counts.sent)
        ));
    }
    let matters = "the rate is that of connections which end too early, not of what the target can \
                   answer";
    let diagnosis = Diagnosis::new("rules broken", State::Problem, seen, matters);
    Some(diagnosis.cure(cure).into())
}

/// What ends connections after different numbers of queries.
const ENDED_UNEVENLY: &str = "look for what ends a connection at some queries (rules of the target \
                              on names, clients or chance, as DropAction of dnsdist), at any time \
                              (devices that reset) or when it is idle (tcp-idle-timeout)";
/// Sets of queries after which servers built on miekg/dns, CoreDNS among them, close.
const MIEKG_QUERIES: u64 = 128;

pub(super) fn connections_ended(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.connections_ended.as_ref()?, &symptoms.figures);
    let counts = figures.counts;
    let lost = counts.connection_losses;
    let each = counts.sent / it.number.max(1);
    let who = match symptoms.resets_by_chance {
        Some(_) => "the target or a device before it",
        None => "the target",
    };
    let mut seen = format!(
        "{who} ended {} ({})",
        counted(it.number, "connection"),
        list(ways(&figures.record.connections()))
    );
    let by_chance = it.by_chance.filter(|_| it.is_habit);
    match by_chance {
        Some((mean, deviation)) => seen.push_str(&format!(
            ", after {} on average with a standard deviation of {}, as if by chance",
            counted(mean.round() as u64, "query"),
            decimal(deviation, 1)
        )),
        None if it.is_habit => {
            seen.push_str(&format!(", after {} queries each on average", count(each)));
        }
        None => {}
    }
    seen.push_str(&lost_with_them(counts));
    let uneven = it.uneven.filter(|_| it.is_habit && by_chance.is_none());
    if let Some((least, most)) = uneven {
        seen.push_str(&format!(
            "; clients had {} to {} connections each, so they do not end after a number of \
             queries",
            count(least),
            count(most)
        ));
    }
    let state = match per(lost as f64, counts.sent as f64) >= 0.01 {
        true => State::Problem,
        false => State::Warning,
    };
    let matters = "each one costs a new connection, with TLS a new handshake, and the queries in \
        flight";
    let mut diagnosis = Diagnosis::new("closed connections", state, seen, matters);
    if by_chance.is_some() || uneven.is_some() {
        return Some(diagnosis.cure(Cure::words(ENDED_UNEVENLY)).into());
    }
    if it.is_habit && each > 0 {
        if each == MIEKG_QUERIES {
            diagnosis = diagnosis.cure(Cure::words(
                "CoreDNS and other servers built on miekg/dns close after 128 queries: for them \
                    that is normal",
            ));
        }
        // What was lost with the connections was beyond what they were for.
        let answered = counts.sent.saturating_sub(lost) / it.number.max(1);
        let earlier = (answered * 8 / 10).max(1);
        diagnosis = diagnosis.cure(Cure::throng(format!("--queries-per-connection {earlier}")));
    }
    let limits = Cure::words(
        "raise the server's limits on connections: idle time (BIND, Unbound and Knot DNS: \
         tcp-idle-timeout), queries each (dnsdist: setMaxTCPQueriesPerConnection)",
    );
    Some(diagnosis.cure(limits).into())
}

/// Silence does not say who is its cause.
pub(super) fn connections_silent(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.connections_silent.as_ref()?;
    let mut seen = format!(
        "nothing came back on {} until QUIC gave up",
        counted(it.number, "connection")
    );
    seen.push_str(&lost_with_them(symptoms.figures.counts));
    let matters = "neither end closed them: the target or the path drops what they carry, or the \
                   target forgot them";
    let diagnosis = Diagnosis::new("silent connections", State::Problem, seen, matters)
        .cure(Cure::new(
            Place::Server,
            "nft list ruleset; iptables -nvL  (limits on datagrams, and rules that drop some)",
        ))
        .cure(Cure::words(
            "run the same over UDP: where as many queries are lost, the path or a limit loses them",
        ))
        .cure(Cure::words("look into the log of the target for restarts"));
    Some(diagnosis.into())
}

/// The queries that were lost with connections, as a part of a sentence.
fn lost_with_them(counts: &Counts) -> String {
    match counts.connection_losses {
        0 => String::new(),
        lost => format!(
            "; {} ({} of those sent) were lost with their connection",
            counted(lost, "query"),
            share(lost, counts.sent)
        ),
    }
}

/// How they ended, by number.
fn ways(connections: &Connections) -> Vec<(u64, String)> {
    let Connections {
        closed_by_target,
        reset_by_target,
        ended_by_tls,
        ended_by_goaway,
        ended_by_http,
        quic_application,
        quic_transport,
        ..
    } = connections;
    vec![
        (*reset_by_target, "reset".into()),
        (*closed_by_target, "closed in order".into()),
        (*ended_by_tls, "ended by TLS".into()),
        (ended_by_goaway.total(), "ended by GOAWAY".into()),
        (*ended_by_http, "ended by HTTP".into()),
        (quic_application.total(), "QUIC application error".into()),
        (quic_transport.total(), "QUIC transport error".into()),
    ]
}

pub(super) fn streams_full(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let (it, figures) = (symptoms.streams_full.as_ref()?, &symptoms.figures);
    let clients = figures.record.scenario.clients;
    let seen = format!(
        "{} of the queries waited until their connection had carried others: {} with {} queries \
         at once carry {}",
        share(figures.counts.waited_for_stream, figures.counts.offered),
        counted(clients, "connection"),
        count(it.each),
        count(it.all)
    );
    let matters = "latency from the scheduled instant includes that wait";
    let cure = Cure::throng(format!("--clients {}", 4 * clients));
    let diagnosis = Diagnosis::new("streams", State::Warning, seen, matters).cure(cure);
    let statement = Cure::named("http-streams-per-connection 1000;");
    let is_http2 = figures.record.scenario.transport == Transport::Doh2;
    Some(diagnosis.cures(is_http2.then_some(statement)).into())
}

const MS: u64 = 1_000_000;

pub(super) fn delayed_acknowledgements(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.delayed_acknowledgements.as_ref()?;
    let record = symptoms.figures.record;
    let mut seen = format!(
        "{} of the responses took {} to {} ms, and hardly any slightly less or more (p50 {}; {} \
            a connection): the pattern of small segments that wait for an acknowledgement, \
            which Linux delays by 40 ms",
        share(it.delayed, record.total.distributions.service.count()),
        DELAYED.start / MS,
        DELAYED.end / MS,
        latency(it.p50_ns as f64),
        counted(it.queries_each.round() as u64, "query")
    );
    if let Some(opened_ns) = it.all_opened_in_ns {
        seen.push_str(&format!(
            "; connections opened in {}, so neither the path nor the work of the server is as slow \
             (a server that waits for an upstream would look the same)",
            latency(opened_ns as f64)
        ));
    }
    let matters = match it.all_opened_in_ns {
        None => {
            "meanwhile both server and network are idle: Nagle's algorithm at the server waits for \
             the acknowledgement that this host's kernel delays"
        }
        Some(_) => {
            "what is first on a connection waits behind what the server sent before it: the last \
             of the handshake, or a length in a segment of its own"
        }
    };
    let quickack = (!it.are_acknowledged_at_once).then(|| Cure::throng("--tcp-quickack"));
    let diagnosis = Diagnosis::new("delayed acknowledgements", State::Warning, seen, matters)
        .cures(quickack)
        .cure(Cure::words(
            "run the same over UDP to find out: what takes a server 40 ms takes as long there",
        ))
        .cure(Cure::words(
            "turn Nagle's algorithm off in the server: TCP_NODELAY on its connections",
        ))
        .cure(quick_route(&symptoms.figures));
    Some(diagnosis.into())
}

/// Has this host acknowledge at once what comes from the target: an attribute of the route.
fn quick_route(figures: &Figures<'_>) -> Cure {
    let host = Cure::host_of(&figures.record.scenario.target);
    let how = format!(
        "ip route show table all to match {host}  (then ip route change with the last of them, \
         and quickack 1)"
    );
    Cure::new(Place::Root, how)
}
