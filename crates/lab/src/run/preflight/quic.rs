//! Whether the target speaks QUIC, and whether its certificate is accepted: one handshake.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use driver::clock::Clock;
use measure::counts::error_codes::{application_error, quic_transport_error};
use proto::Transport;
use proto::quic::{ClientProtocol, ConnectionKey, LostReason, QuicClient, QuicClientOptions};
use proto::quic::{Clock as QuicClock, QuicEvent};

use super::{CONNECT_WAIT, any_address, refused_tls, unreachable};
use crate::run::{RunError, RunRequest, TlsRequest};

/// Octets of the longest datagram that is received.
const DATAGRAM_OCTETS_MAX: usize = 65_536;
/// Datagrams that are sent in one turn.
const DATAGRAMS_MAX: usize = 16;

/// Makes one connection and closes it again.
///
/// # Errors
/// The target does not respond, or the handshake fails.
pub(super) fn check(request: &RunRequest, tls: &TlsRequest) -> Result<(), RunError> {
    let plan = &request.plan;
    let io = |error: std::io::Error| unreachable(&error, plan.target, plan.transport);
    let socket = UdpSocket::bind(any_address(plan)).map_err(io)?;
    socket.connect(plan.target).map_err(io)?;
    let protocol = match (plan.transport, &plan.doh) {
        (Transport::Doh3, Some(request)) => ClientProtocol::Http3(request.clone()),
        _ => ClientProtocol::Doq,
    };
    let mut quic = QuicClient::new(QuicClientOptions {
        protocol,
        idle_timeout: Some(CONNECT_WAIT),
        keep_alive: None,
        seed: driver::random::seed(),
        clock: QuicClock::new(Instant::now()),
    });
    let clock = Clock::start();
    let name = tls.settings.name.to_str();
    let key = quic
        .connect(clock.now(), &tls.settings.config, &name)
        .map_err(|error| RunError::new(error.to_string(), "check --tls-name and --tls-version"))?;
    let mut handshake = Handshake {
        quic,
        key,
        socket,
        clock,
    };
    let outcome = handshake.complete(request);
    handshake.quic.close(clock.now(), key, 0);
    // The connection is over whether or not the target hears of it.
    let _ = handshake.send();
    match outcome? {
        None => Ok(()),
        Some(reason) => Err(refused(&reason, request, tls)),
    }
}

struct Handshake {
    quic: QuicClient,
    key: ConnectionKey,
    socket: UdpSocket,
    clock: Clock,
}

impl Handshake {
    /// Goes through the handshake; says why if it failed.
    fn complete(&mut self, request: &RunRequest) -> Result<Option<LostReason>, RunError> {
        let plan = &request.plan;
        let deadline = Instant::now() + plan.timeout.min(CONNECT_WAIT);
        let mut datagram = vec![0; DATAGRAM_OCTETS_MAX];
        loop {
            match self.quic.poll_event(self.key) {
                Some(QuicEvent::Established(_)) => return Ok(None),
                Some(QuicEvent::Lost(reason)) => return Ok(Some(reason)),
                Some(_) => continue,
                None => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Some(LostReason::HandshakeTimeout));
            }
            let received = self.send().and_then(|()| self.receive(left, &mut datagram));
            match received {
                Ok(octets) => {
                    let now = self.clock.now();
                    let datagram = &datagram[..octets];
                    self.quic.handle_datagram(now, self.key, datagram);
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    self.quic.handle_timeout(self.clock.now(), self.key);
                }
                Err(error) => return Err(unreachable(&error, plan.target, plan.transport)),
            }
        }
    }

    fn send(&mut self) -> std::io::Result<()> {
        let mut octets = Vec::new();
        let now = self.clock.now();
        while let Some(burst) = self
            .quic
            .poll_transmit(now, self.key, &mut octets, DATAGRAMS_MAX)
        {
            for datagram in octets.chunks(burst.datagram_octets) {
                self.socket.send(datagram)?;
            }
            octets.clear();
        }
        Ok(())
    }

    /// Waits for a datagram, no longer than `left` and no longer than the connection wants.
    fn receive(&mut self, left: Duration, datagram: &mut [u8]) -> std::io::Result<usize> {
        let now = self.clock.now();
        let due = self.quic.timeout(self.key);
        let until_due = due.map_or(left, |due| Duration::from_nanos(due.nanos_since(now)));
        let wait = left.min(until_due).max(Duration::from_millis(1));
        self.socket.set_read_timeout(Some(wait))?;
        super::uninterrupted(|| self.socket.recv(datagram))
    }
}

fn refused(reason: &LostReason, request: &RunRequest, tls: &TlsRequest) -> RunError {
    let target = request.plan.target;
    let transport = request.plan.transport;
    match reason {
        LostReason::Tls(failure) => refused_tls(failure, tls, target),
        LostReason::IdleTimeout | LostReason::HandshakeTimeout => RunError::new(
            format!("no QUIC server answers at {target}: no response in time"),
            format!(
                "check address, port and firewalls ({transport}: UDP port {})",
                transport.default_port()
            ),
        ),
        LostReason::VersionNegotiation => RunError::new(
            format!("{target} speaks no version of QUIC that throng speaks (version 1)"),
            "check that the server has RFC 9000 QUIC",
        ),
        _ => RunError::new(
            format!(
                "the QUIC handshake with {target} fails: {}",
                why(reason, transport)
            ),
            "check that the port speaks this transport, and the server's log",
        ),
    }
}

/// What ended a connection, in a few words.
fn why(reason: &LostReason, transport: Transport) -> String {
    match reason {
        LostReason::Transport { code, .. } => quic_transport_error(*code),
        LostReason::Application { code, .. } => application_error(transport, *code),
        LostReason::StatelessReset => "stateless reset".to_owned(),
        other => format!("{other:?}"),
    }
}
