//! Looking before running: can this host do it, and is anybody there?
//!
//! No DNS query is sent, so that the counters of a target stay comparable with the record: UDP
//! sends one empty datagram, which servers ignore, and all other transports open one connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use load::{Plan, StampSource};
use measure::doctor;
use proto::Transport;
use proto::tls::{CertificateFault, ClientTls, TlsFailure};

use super::{RunError, RunRequest, TlsRequest};

mod quic;

/// Descriptors that the process needs beside its clients' sockets.
pub(super) const DESCRIPTORS_OTHER: u64 = 32;
/// How long an ICMP port unreachable is waited for.
const REFUSAL_WAIT: Duration = Duration::from_millis(100);
/// Longest wait for a connection or a handshake.
const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// A refusal counts once it has come this often in succession: a firewall on the path may reject a
/// share of what passes, and a server may be about to listen.
const REFUSALS: usize = 3;
/// Signals in succession that do not end a wait.
const INTERRUPTIONS_MAX: usize = 1_000;

/// Checks that this host has what the run needs.
///
/// # Errors
/// Too few file descriptors, a local address that is not one of this host's, or a network card that
/// cannot stamp.
pub fn check_host(groups: &[RunRequest]) -> Result<(), RunError> {
    check_descriptors(groups)?;
    check_local_addresses(groups)?;
    groups
        .iter()
        .try_for_each(|request| check_card(&request.plan))
}

/// Checks that the card towards the target stamps datagrams, if it is to.
fn check_card(plan: &Plan) -> Result<(), RunError> {
    if plan.sockets.timestamps != Some(StampSource::Hardware) {
        return Ok(());
    }
    let local = plan.local_addresses.first().copied();
    driver::card::prepare(plan.target, local)
        .map(drop)
        .map_err(|error| {
            let hint = "use --timestamps kernel, which works on every interface";
            RunError::new(format!("--timestamps hardware: {error}"), hint)
        })
}

/// Checks that the clients' addresses are this host's.
///
/// # Errors
/// One is not.
pub fn check_local_addresses(groups: &[RunRequest]) -> Result<(), RunError> {
    let mut plans = groups.iter().map(|request| &request.plan);
    plans.try_for_each(check_addresses_of)
}

fn check_addresses_of(plan: &Plan) -> Result<(), RunError> {
    for address in plan.local_addresses.iter().take(plan.clients as usize) {
        UdpSocket::bind((*address, 0)).map_err(|error| {
            RunError::new(
                format!("cannot send from --local-address {address}: {error}"),
                "give addresses of this host; `ip address` lists them",
            )
        })?;
    }
    Ok(())
}

/// File descriptors that the clients of a group need, in a process of their own.
pub(super) fn sockets_per_client(plan: &Plan) -> u64 {
    let of_servers = match &plan.stub {
        // Connections are one at a time, unless they are raced.
        Some(stub) if plan.transport == Transport::Udp || stub.race_delay.is_some() => {
            stub.servers.len() as u64
        }
        _ => 1,
    };
    of_servers + u64::from(plan.tcp_fallback)
}

/// Connections of a client that the responder accepts: each is a descriptor there.
pub(super) fn accepted_per_client(plan: &Plan) -> u64 {
    u64::from(plan.transport.is_stream() || plan.tcp_fallback)
}

/// File descriptors that a group needs if all is in this process: in a self-test the other ends
/// of its connections too.
pub(super) fn descriptors(request: &RunRequest) -> u64 {
    let plan = &request.plan;
    let accepted = match request.asked.is_self_test() {
        true => accepted_per_client(plan),
        false => 0,
    };
    u64::from(plan.clients) * (sockets_per_client(plan) + accepted)
}

fn check_descriptors(groups: &[RunRequest]) -> Result<(), RunError> {
    let of_clients: u64 = groups.iter().map(descriptors).sum();
    let needed = of_clients + DESCRIPTORS_OTHER;
    let limit = driver::cpu::open_files_max();
    if needed <= limit {
        return Ok(());
    }
    let clients: u64 = (groups.iter())
        .map(|request| u64::from(request.plan.clients))
        .sum();
    let per_client = of_clients.div_ceil(clients.max(1));
    let fitting = limit.saturating_sub(DESCRIPTORS_OTHER) / per_client;
    Err(RunError::new(
        format!("{clients} clients need {needed} open files, and the limit here is {limit}"),
        format!(
            "use --clients {fitting}, more --agents, or raise the limit: `ulimit -Hn {needed}` \
             as root"
        ),
    ))
}

/// Checks that the target listens, and with TLS that its certificate is accepted. Of several
/// servers of a client one is enough: the run may be meant to test the failure of the others.
///
/// # Errors
/// The target does not listen, cannot be reached, or its TLS is refused.
pub fn check_target(request: &RunRequest) -> Result<(), RunError> {
    let Some(stub) = &request.plan.stub else {
        return check_server(request);
    };
    let mut outcome = Ok(());
    for server in stub.servers.iter().rev() {
        let mut only = request.clone();
        only.plan.target = *server;
        outcome = check_server(&only);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn check_server(request: &RunRequest) -> Result<(), RunError> {
    let plan = &request.plan;
    match plan.transport {
        Transport::Udp => check_udp(plan),
        Transport::Doh3 | Transport::Doq => match &request.tls {
            Some(tls) => quic::check(request, tls),
            None => check_udp(plan),
        },
        Transport::Tcp => check_stream(plan).map(drop),
        Transport::Dot | Transport::Doh2 => {
            let stream = check_stream(plan)?;
            match &request.tls {
                Some(tls) => check_tls(stream, tls, plan),
                None => Ok(()),
            }
        }
    }
}

fn check_udp(plan: &Plan) -> Result<(), RunError> {
    let refused = || -> std::io::Result<()> {
        let socket = UdpSocket::bind(any_address(plan))?;
        socket.connect(plan.target)?;
        socket.set_read_timeout(Some(REFUSAL_WAIT))?;
        socket.send(&[])?;
        match uninterrupted(|| socket.recv(&mut [0; 16])) {
            // Silence is what a server keeps on an empty datagram.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(())
            }
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    };
    unless_refused_again(refused).map_err(|error| unreachable(&error, plan.target, plan.transport))
}

/// Tries again what is refused, [`REFUSALS`] times in all.
fn unless_refused_again<T>(mut attempt: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    for _ in 1..REFUSALS {
        match attempt() {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            other => return other,
        }
    }
    attempt()
}

/// Receives again where a signal interrupts it: with a timeout on its socket the kernel does not
/// do so itself, not even after a process was stopped and goes on (signal(7)).
fn uninterrupted<T>(mut receive: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    for _ in 0..INTERRUPTIONS_MAX {
        match receive() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            received => return received,
        }
    }
    receive()
}

/// Where the first client would bind to.
fn any_address(plan: &Plan) -> SocketAddr {
    let any: SocketAddr = match plan.target {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0u16; 8], 0).into(),
    };
    let first = plan.local_addresses.first();
    first.map_or(any, |address| (*address, 0).into())
}

fn check_stream(plan: &Plan) -> Result<TcpStream, RunError> {
    let wait = plan.timeout.min(CONNECT_WAIT);
    unless_refused_again(|| TcpStream::connect_timeout(&plan.target, wait))
        .map_err(|error| unreachable(&error, plan.target, plan.transport))
}

fn unreachable(error: &std::io::Error, target: SocketAddr, transport: Transport) -> RunError {
    let over = match transport {
        _ if transport.is_stream() => "TCP",
        _ => "UDP",
    };
    match error.kind() {
        ErrorKind::ConnectionRefused => RunError::new(
            format!("nothing is listening on {target} over {over}: connection refused"),
            "check address and port, and that the server listens for this transport",
        ),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => RunError::new(
            format!("{target} did not answer over {over} in time"),
            "check the address and the firewalls on the path",
        ),
        // What the kernel says of a broadcast address.
        ErrorKind::PermissionDenied => RunError::new(
            format!("cannot reach {target} over {over}: {error}"),
            "check that it is the address of a host, not the broadcast address of its network, and \
             that no firewall of this host refuses it",
        ),
        _ => RunError::new(
            format!("cannot reach {target} over {over}: {error}"),
            "check the address and the route to it",
        ),
    }
}

fn check_tls(mut stream: TcpStream, request: &TlsRequest, plan: &Plan) -> Result<(), RunError> {
    let target = plan.target;
    let settings = &request.settings;
    let failed = |what: String| {
        RunError::new(
            format!("the TLS handshake with {target} fails: {what}"),
            "check that the port speaks TLS (DoT: 853)",
        )
    };
    let mut tls =
        ClientTls::new(settings.config.clone(), settings.name.clone()).map_err(&failed)?;
    let deadline = Instant::now() + CONNECT_WAIT;
    let (mut transmit, mut plaintext) = (Vec::new(), Vec::new());
    let mut octets = vec![0; 16 << 10];
    while tls.is_handshaking() {
        transmit.clear();
        tls.poll_transmit(&mut transmit);
        let wait = deadline.saturating_duration_since(Instant::now());
        let io = |error: std::io::Error| failed(error.to_string());
        stream.write_all(&transmit).map_err(io)?;
        stream
            .set_read_timeout(Some(wait.max(Duration::from_millis(1))))
            .map_err(io)?;
        let count = match uninterrupted(|| stream.read(&mut octets)) {
            Ok(0) => return Err(failed("the target closed the connection".to_owned())),
            Ok(count) => count,
            Err(_) if Instant::now() >= deadline => {
                return Err(silent_tls(target));
            }
            Err(error) => return Err(io(error)),
        };
        tls.handle_bytes(&octets[..count], &mut plaintext)
            .map_err(|failure| refused_tls(&failure, request, target))?;
    }
    let negotiated = tls
        .negotiated()
        .filter(|_| plan.transport == Transport::Doh2);
    if let Some(negotiated) = negotiated {
        negotiated
            .require_alpn("h2")
            .map_err(|failure| refused_tls(&failure, request, target))?;
    }
    transmit.clear();
    tls.close();
    tls.poll_transmit(&mut transmit);
    // The connection is over whether or not the target hears of it.
    let _ = stream.write_all(&transmit);
    Ok(())
}

/// A server of plain TCP waits for the rest of what it takes for a message; certificates are long.
fn silent_tls(target: SocketAddr) -> RunError {
    let host = target.ip();
    RunError::new(
        format!("the TLS handshake with {target} fails: no response in time"),
        format!(
            "check that the port speaks TLS (DoT: 853), and that the path carries long segments: \
             ping -M do -s 1472 {host}"
        ),
    )
}

fn refused_tls(failure: &TlsFailure, request: &TlsRequest, target: SocketAddr) -> RunError {
    let what = format!("the TLS handshake with {target} fails: {failure}");
    let hint = match failure {
        TlsFailure::Certificate(fault, _) => certificate_hint(*fault, &request.name),
        TlsFailure::Pin(_) => "give the pin of its key with --tls-pin, after making sure that it \
                               is the server's own"
            .to_owned(),
        TlsFailure::Alpn(_) => {
            "give a protocol that the server speaks with --tls-alpn, or the right port".to_owned()
        }
        TlsFailure::Alert(alert) if alert == "certificate_required" => {
            "give a certificate that the server knows with --tls-cert and --tls-key".to_owned()
        }
        _ => "check that the port speaks TLS (DoT: 853)".to_owned(),
    };
    RunError::new(what, hint)
}

fn certificate_hint(fault: CertificateFault, name: &str) -> String {
    match fault {
        CertificateFault::Expired => doctor::CERTIFICATE_EXPIRED.to_owned(),
        CertificateFault::NotYetValid => doctor::CERTIFICATE_NOT_YET_VALID.to_owned(),
        CertificateFault::WrongName => {
            format!(
                "verified as `{name}`: give a name of its subjectAltName with --tls-name NAME, the \
                 certificate itself with --tls-ca FILE if it has none, or the pin of its key with \
                 --tls-pin PIN"
            )
        }
        CertificateFault::UnknownIssuer => "give the issuer or the certificate itself with \
                                            --tls-ca FILE, the pin of its key with --tls-pin PIN, \
                                            or skip verification with --tls-insecure"
            .to_owned(),
        CertificateFault::Other => format!(
            "verified as `{name}`: give the issuer or the certificate itself with --tls-ca FILE, \
             the name in it with --tls-name NAME, the pin of its key with --tls-pin PIN, or skip \
             verification with --tls-insecure"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_fits_the_fault_of_the_certificate() {
        let flags = ["--tls-ca", "--tls-name", "--tls-pin", "--tls-insecure"];
        for (fault, cure, named) in [
            (
                CertificateFault::Expired,
                "renew the certificate",
                [false; 4],
            ),
            (
                CertificateFault::NotYetValid,
                "clock of this host",
                [false; 4],
            ),
            (
                CertificateFault::WrongName,
                "`dns.test`",
                [true, true, true, false],
            ),
            (
                CertificateFault::UnknownIssuer,
                "the issuer",
                [true, false, true, true],
            ),
            (CertificateFault::Other, "`dns.test`", [true; 4]),
        ] {
            let hint = certificate_hint(fault, "dns.test");
            assert!(hint.contains(cure), "{fault:?}: {hint}");
            assert_eq!(
                flags.map(|flag| hint.contains(flag)),
                named,
                "{fault:?}: {hint}"
            );
        }
    }

    #[test]
    fn target_that_refuses_a_share_is_there() {
        use ErrorKind::{ConnectionRefused, TimedOut};
        for (errors, ends) in [
            (vec![], Ok(())),
            (vec![ConnectionRefused; 2], Ok(())),
            (vec![ConnectionRefused; 3], Err(ConnectionRefused)),
            (vec![ConnectionRefused, TimedOut], Err(TimedOut)),
        ] {
            let mut left = errors.clone().into_iter();
            let ended = unless_refused_again(|| left.next().map_or(Ok(()), |it| Err(it.into())));
            assert_eq!(ended.map_err(|error| error.kind()), ends, "{errors:?}");
            assert_eq!(left.next(), None, "{errors:?}");
        }
    }

    #[test]
    fn signals_do_not_end_a_wait_and_errors_do() {
        let mut left = [ErrorKind::Interrupted, ErrorKind::Interrupted].into_iter();
        let received = uninterrupted(|| left.next().map_or(Ok(7), |kind| Err(kind.into())));
        assert_eq!(received.unwrap(), 7);
        let refused = uninterrupted::<()>(|| Err(ErrorKind::ConnectionRefused.into()));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
}
