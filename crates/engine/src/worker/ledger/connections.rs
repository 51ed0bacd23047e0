//! Counts of connections: handshakes, failures and broken protocol rules.

use driver::SocketError;
use measure::counts::ConnectionFailures;
use proto::Instant;
use proto::tls::{CertificateFault, EarlyData, Handshake, HandshakeKind, TlsFailure};

use super::Ledger;
use crate::worker::population::connection::Connection;

/// Distinct reasons of TLS failures kept for the record.
const TLS_FAILURES_MAX: usize = 8;

impl Ledger {
    /// Counts a completed TLS handshake.
    pub(crate) fn count_handshake(
        &mut self,
        connection: &Connection,
        handshake: &Handshake,
        now: Instant,
    ) {
        let is_quic = connection.channel.is_quic();
        let since = connection.times.established_at;
        let interval = self.tally.of_event(now);
        let counts = &mut interval.counts.connections;
        counts.handshake_sent_octets += u64::from(handshake.octets_sent);
        counts.handshake_received_octets += u64::from(handshake.octets_received);
        match handshake.early_data {
            EarlyData::Accepted => counts.early_data.accepted += 1,
            EarlyData::Rejected => counts.early_data.rejected += 1,
            EarlyData::NotSent | EarlyData::Pending => {}
        }
        match handshake.kind {
            HandshakeKind::Full => counts.handshakes.full += 1,
            HandshakeKind::FullWithHelloRetryRequest => counts.handshakes.full_with_retry += 1,
            HandshakeKind::Resumed => counts.handshakes.resumed += 1,
        }
        let times = &mut interval.distributions.connections;
        let times = match (is_quic, handshake.kind) {
            (false, HandshakeKind::Resumed) => &mut times.tls_handshake_resumed,
            (false, _) => &mut times.tls_handshake,
            (true, HandshakeKind::Resumed) => &mut times.quic_handshake_resumed,
            (true, _) => &mut times.quic_handshake,
        };
        times.record(now.nanos_since(since));
    }

    pub(crate) fn count_tls_failure(&mut self, failure: &TlsFailure, usable: bool, now: Instant) {
        if let (true, TlsFailure::Protocol(_)) = (usable, failure) {
            self.count_violation("TLS protocol error", "RFC 8446, section 6.2", now);
        }
        let counts = self.connections(now);
        match (usable, failure) {
            (true, TlsFailure::Protocol(_)) => {}
            (true, _) => counts.ended_by_tls += 1,
            (false, TlsFailure::Alert(alert)) => counts.failed.tls_alert.record(alert),
            (false, TlsFailure::Certificate(fault, _)) => {
                counts.failed.tls_certificate += 1;
                let faults = &mut counts.failed.tls_certificate_faults;
                match fault {
                    CertificateFault::Expired => faults.expired += 1,
                    CertificateFault::NotYetValid => faults.not_yet_valid += 1,
                    CertificateFault::UnknownIssuer => faults.unknown_issuer += 1,
                    CertificateFault::WrongName => faults.wrong_name += 1,
                    CertificateFault::Other => {}
                }
            }
            (false, TlsFailure::Pin(_)) => counts.failed.tls_pin += 1,
            (false, TlsFailure::Alpn(_)) => counts.failed.tls_alpn += 1,
            (false, TlsFailure::Protocol(_)) => counts.failed.tls_protocol += 1,
        }
        let reason = failure.to_string();
        if self.tls.failures.len() < TLS_FAILURES_MAX && !self.tls.failures.contains(&reason) {
            self.tls.failures.push(reason);
        }
    }

    /// Counts a usable connection that we close because the target broke a rule.
    #[cold]
    pub(crate) fn count_violation(&mut self, what: &str, rules: &str, now: Instant) {
        let counts = self.connections(now);
        let rule = format!("{what} ({rules})");
        counts.closed_for_violation.record(&rule);
    }
}

/// Where a connection that never became usable is counted.
pub(crate) fn failure_counter(
    failed: &mut ConnectionFailures,
    error: Option<SocketError>,
) -> &mut u64 {
    match error {
        None => &mut failed.closed,
        Some(SocketError::Refused) => &mut failed.refused,
        Some(SocketError::Reset) => &mut failed.reset,
        Some(SocketError::TimedOut) => &mut failed.timed_out,
        Some(SocketError::Unreachable) => &mut failed.unreachable,
        Some(SocketError::NoLocalPort) => &mut failed.no_local_port,
        Some(SocketError::NoResources) => &mut failed.no_resources,
        Some(SocketError::Forbidden | SocketError::Other(_)) => &mut failed.other,
    }
}
