//! Connections: attempts, handshakes, why they failed and how they ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error_codes::{application_error, quic_transport_error};
use super::{Codes, Names};
use crate::interval::per;
use crate::scenario::transports::Transports;
use crate::zero::is_zero;

/// Connections of TCP and QUIC.
///
/// Every attempt ends as failed or abandoned, or becomes usable: after TCP's handshake without TLS,
/// else after that of TLS or QUIC. A usable connection ends in exactly one of the ways counted
/// below `abandoned`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// Attempts to connect.
    pub attempted: u64,
    /// TCP connections established, TLS handshakes not included. None over QUIC, where
    /// `handshakes` counts those that became usable.
    pub established: u64,
    /// TCP connections whose target accepted data in the SYN (RFC 7413).
    pub fast_opened: u64,
    /// Times that bytes from TCP or TLS ended within a DNS message, whose rest came later: the
    /// target writes length and message, or long messages, apart, and each may wait for an
    /// acknowledgement.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub messages_cut: u64,
    /// QUIC datagrams that the kernel did not take; to the connection they are lost on the way.
    pub quic_datagrams_not_sent: u64,
    /// TLS handshakes over TCP, or QUIC handshakes, completed.
    pub handshakes: Handshakes,
    /// Connections that became usable, over any transport; 0 in a record of a version that did not
    /// count them separately, which has established connections or handshakes instead.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub became_usable: u64,
    /// Connections that were kept open for a ticket, after no query at all or one in early data,
    /// and got none in time: the client's next one is a full handshake.
    pub tickets_missed: u64,
    /// Early data (0-RTT) of TLS 1.3 and QUIC.
    pub early_data: EarlyData,
    /// Bytes of handshakes sent, completed or not: TLS records, or the UDP payload of QUIC
    /// packets, until the handshake was complete.
    pub handshake_sent_octets: u64,
    /// Bytes of handshakes received, counted alike.
    pub handshake_received_octets: u64,
    /// Attempts that never became usable, by cause.
    pub failed: ConnectionFailures,
    /// Attempts that were in progress when the run ended.
    pub abandoned: u64,
    /// Usable connections closed by us, for whatever reason.
    pub closed_by_client: u64,
    /// Of those, why, where it was not the number of their queries or the end of the run.
    pub closed_by_client_for: OwnClosures,
    /// Queries that were over on usable connections when the target, or a device before it, ended
    /// these.
    #[serde(default, skip_serializing_if = "EndedAfter::is_empty")]
    pub ended_after: EndedAfter,
    /// Usable connections closed in order by the target.
    pub closed_by_target: u64,
    /// Usable connections reset by the target; over QUIC by a stateless reset.
    pub reset_by_target: u64,
    /// Usable TCP connections that our kernel gave up: nothing was acknowledged for too long, or
    /// there was no route any more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub given_up_by_kernel: u64,
    /// Usable connections ended by a TLS alert or a TLS error.
    pub ended_by_tls: u64,
    /// Usable connections that the target ended by GOAWAY, by its error code. HTTP/3 has no code
    /// there: 0.
    pub ended_by_goaway: Codes,
    /// Usable connections that we closed because the target broke a rule of DoQ, HTTP/2, HTTP/3 or
    /// TLS, by the rule and where it is written.
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    pub closed_for_violation: Names,
    /// Usable connections on which the target violated HTTP/2 or HTTP/3, in records of versions
    /// that did not distinguish the rules.
    pub ended_by_http: u64,
    /// Usable QUIC connections that the target closed with a code of the application: of HTTP/3 or
    /// DoQ, where it is not that for "no error".
    pub quic_application: Codes,
    /// Usable QUIC connections ended by a transport error (RFC 9000, section 20.1), by code.
    pub quic_transport: Codes,
    /// Usable QUIC connections that stopped responding for longer than QUIC's idle timeout.
    pub quic_idle_timeouts: u64,
    /// Times that a QUIC connection had used up the streams that the target allowed it until then
    /// (RFC 9000, section 4.6): queries wait until it allows more.
    pub quic_stream_limits_met: u64,
}

/// How many queries connections carried until they were ended: enough for mean and deviation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndedAfter {
    /// Connections.
    pub connections: u64,
    /// Queries of all of them together.
    pub queries: u64,
    /// Sum of the squares of their numbers of queries.
    pub queries_squared: u64,
}

/// Handshakes completed, of TLS over TCP or of QUIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Handshakes {
    /// With a key exchange and a certificate.
    pub full: u64,
    /// The same after a HelloRetryRequest, which costs a round trip more.
    pub full_with_retry: u64,
    /// Of a session resumed by ticket or identifier.
    pub resumed: u64,
}

/// Early data (0-RTT), in connections unless the name says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EarlyData {
    /// Connections that sent early data.
    pub tried: u64,
    /// Of those, the target accepted it.
    pub accepted: u64,
    /// Of those, the target rejected it: its queries were sent again after the handshake.
    pub rejected: u64,
    /// Queries sent in early data, accepted or not.
    pub queries: u64,
}

/// Why we closed usable connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnClosures {
    /// They had been idle for as long as the scenario allows.
    pub idle: u64,
    /// They had been open for as long as the scenario says.
    pub duration: u64,
    /// They were to carry no query: opened and closed.
    pub without_query: u64,
    /// The target allowed no further stream on them, though none was open; over QUIC only.
    pub no_streams: u64,
    /// The scenario had them reset, to see how client and target recover.
    pub reset: u64,
}

/// Why a connection never became usable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionFailures {
    /// Connection refused; over QUIC by an ICMP port unreachable or CONNECTION_REFUSED.
    pub refused: u64,
    /// Reset before it was usable; over QUIC by a stateless reset.
    pub reset: u64,
    /// Closed by the target before it was usable.
    pub closed: u64,
    /// Not usable within the timeout.
    pub timed_out: u64,
    /// Network or host unreachable.
    pub unreachable: u64,
    /// No free local port.
    pub no_local_port: u64,
    /// Out of file descriptors or kernel memory.
    pub no_resources: u64,
    /// The target sent a TLS alert, by its name; over QUIC as CRYPTO_ERROR (RFC 9001, section 4.8).
    pub tls_alert: Names,
    /// The target's certificate was refused.
    pub tls_certificate: u64,
    /// Of those, attempts by the fault of the certificate.
    #[serde(default, skip_serializing_if = "CertificateFaults::is_empty")]
    pub tls_certificate_faults: CertificateFaults,
    /// The target's key is none of the pinned ones (SPKI, RFC 7858, section 4.2).
    pub tls_pin: u64,
    /// The target chose no protocol by ALPN, or one that was not offered (RFC 7301).
    pub tls_alpn: u64,
    /// Another TLS error.
    pub tls_protocol: u64,
    /// The target broke the rules of HTTP/2 or HTTP/3 before the first query could be sent.
    pub http_protocol: u64,
    /// The target speaks no version of QUIC that we do.
    pub quic_version: u64,
    /// A QUIC transport error of either side (RFC 9000, section 20.1), by code, without TLS alerts.
    pub quic_transport: Codes,
    /// The target closed the QUIC connection with a code of the application.
    pub quic_application: Codes,
    /// Any other socket error.
    pub other: u64,
}

/// Connection attempts by the fault of the certificate that was refused. Those with any other fault
/// are in `tls_certificate` alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CertificateFaults {
    /// Its validity was over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub expired: u64,
    /// Its validity had not begun.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_yet_valid: u64,
    /// No trusted CA had signed it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unknown_issuer: u64,
    /// It was not valid for the name that was verified.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wrong_name: u64,
}

impl CertificateFaults {
    /// True without any of these faults.
    pub fn is_empty(&self) -> bool {
        *self == CertificateFaults::default()
    }
}

impl_add!(
    Connections,
    numbers: [
        attempted, established, fast_opened, messages_cut, quic_datagrams_not_sent, became_usable,
        tickets_missed, handshake_sent_octets, handshake_received_octets, abandoned,
        closed_by_client, closed_by_target, reset_by_target, given_up_by_kernel, ended_by_tls,
        ended_by_http,
        quic_idle_timeouts, quic_stream_limits_met,
    ],
    groups: [
        handshakes, early_data, failed, closed_by_client_for, closed_for_violation, ended_after,
        ended_by_goaway, quic_application, quic_transport,
    ]
);
impl_add!(EndedAfter, numbers: [connections, queries, queries_squared], groups: []);
impl_add!(Handshakes, numbers: [full, full_with_retry, resumed], groups: []);
impl_add!(EarlyData, numbers: [tried, accepted, rejected, queries], groups: []);
impl_add!(
    OwnClosures,
    numbers: [idle, duration, without_query, no_streams, reset],
    groups: []
);
impl_add!(
    ConnectionFailures,
    numbers: [
        refused, reset, closed, timed_out, unreachable, no_local_port, no_resources,
        tls_certificate, tls_pin, tls_alpn, tls_protocol, http_protocol, quic_version, other,
    ],
    groups: [tls_alert, tls_certificate_faults, quic_transport, quic_application]
);
impl_add!(
    CertificateFaults,
    numbers: [expired, not_yet_valid, unknown_issuer, wrong_name],
    groups: []
);

impl EndedAfter {
    /// One has ended after that many queries.
    pub fn record(&mut self, queries: u32) {
        let queries = u64::from(queries);
        self.connections += 1;
        self.queries += queries;
        self.queries_squared = self
            .queries_squared
            .saturating_add(queries.saturating_pow(2));
    }

    fn is_empty(&self) -> bool {
        self.connections == 0
    }

    /// Mean of the numbers, and their standard deviation as a share of it: 0 if all ended after the
    /// same number, 0.58 if any number up to a limit was as likely, nearly 1 if each query ended
    /// its connection by chance. None without queries.
    pub fn mean_and_deviation(&self) -> Option<(f64, f64)> {
        let mean = per(self.queries as f64, self.connections as f64);
        let mean_of_squares = per(self.queries_squared as f64, self.connections as f64);
        let variance = (mean_of_squares - mean * mean).max(0.0);
        (mean > 0.0).then(|| (mean, variance.sqrt() / mean))
    }
}

impl Handshakes {
    /// Handshakes of whatever kind.
    pub fn total(&self) -> u64 {
        self.with_certificate() + self.resumed
    }

    /// Handshakes in which the target showed its certificate.
    pub fn with_certificate(&self) -> u64 {
        self.full + self.full_with_retry
    }
}

impl Connections {
    /// Connections that became usable. Where the record does not count them apart, those of a
    /// scenario with or without handshakes of TLS or QUIC.
    pub fn usable(&self, has_handshakes: bool) -> u64 {
        match (self.became_usable, has_handshakes) {
            (0, true) => self.handshakes.total(),
            (0, false) => self.established,
            (usable, _) => usable,
        }
    }

    /// Bytes of handshakes, sent and received.
    pub fn handshake_octets(&self) -> u64 {
        self.handshake_sent_octets + self.handshake_received_octets
    }

    /// Usable connections that have ended, for any reason.
    pub fn ended(&self) -> u64 {
        let by_us = self.closed_by_client + self.closed_for_violation.total();
        by_us + self.ended_by_silence() + self.ended_by_target()
    }

    /// Usable connections that the target ended, in order or not.
    pub fn ended_by_target(&self) -> u64 {
        let in_order = self.closed_by_target + self.ended_by_goaway.total();
        let in_error = self.reset_by_target + self.ended_by_tls + self.ended_by_http;
        let quic = self.quic_application.total() + self.quic_transport.total();
        in_order + in_error + quic
    }

    /// Usable connections on which nothing came back for so long that this host gave them up.
    pub fn ended_by_silence(&self) -> u64 {
        self.given_up_by_kernel + self.quic_idle_timeouts
    }
}

impl ConnectionFailures {
    /// Attempts that never became usable, whatever the cause. Allocates nothing.
    pub fn total(&self) -> u64 {
        let of_sockets = [self.refused, self.reset, self.closed, self.timed_out];
        let of_host = [self.unreachable, self.no_local_port, self.no_resources];
        let all = of_sockets.iter().chain(&of_host).sum::<u64>();
        all + self.handshakes() + self.other
    }

    /// Of those, attempts that a handshake of TLS, QUIC or HTTP ended. Allocates nothing.
    pub fn handshakes(&self) -> u64 {
        let tls = self.tls_certificate + self.tls_pin + self.tls_alpn + self.tls_protocol;
        let quic = self.quic_version + self.quic_transport.total() + self.quic_application.total();
        self.tls_alert.total() + tls + self.http_protocol + quic
    }

    /// Every cause in plain words with its count, zero counts left out.
    pub fn by_cause(&self, transport: impl Into<Transports>) -> Vec<(String, u64)> {
        let transport = transport.into();
        // Names every field, so that a new one cannot be forgotten here.
        let ConnectionFailures {
            refused,
            reset,
            closed,
            timed_out,
            unreachable,
            no_local_port,
            no_resources,
            tls_alert,
            tls_certificate,
            tls_certificate_faults,
            tls_pin,
            tls_alpn,
            tls_protocol,
            http_protocol,
            quic_version,
            quic_transport,
            quic_application,
            other,
        } = self;
        let CertificateFaults {
            expired,
            not_yet_valid,
            unknown_issuer,
            wrong_name,
        } = tls_certificate_faults;
        let by_fault = expired + not_yet_valid + unknown_issuer + wrong_name;
        let certificate_otherwise = tls_certificate.saturating_sub(by_fault);
        let mut causes: Vec<(String, u64)> = [
            ("refused", refused),
            ("reset", reset),
            ("closed by the target", closed),
            ("timed out", timed_out),
            ("unreachable", unreachable),
            ("no free local port", no_local_port),
            ("out of file descriptors or memory", no_resources),
            ("TLS certificate refused (expired)", expired),
            ("TLS certificate refused (not valid yet)", not_yet_valid),
            ("TLS certificate refused (unknown issuer)", unknown_issuer),
            ("TLS certificate refused (wrong name)", wrong_name),
            ("TLS certificate refused", &certificate_otherwise),
            ("TLS key not pinned", tls_pin),
            ("no common protocol (ALPN)", tls_alpn),
            ("TLS error", tls_protocol),
            ("HTTP protocol error", http_protocol),
            ("no common QUIC version", quic_version),
        ]
        .map(|(cause, count)| (cause.to_owned(), *count))
        .into();
        let alerts = tls_alert.named();
        causes.extend(alerts.map(|(name, count)| (format!("TLS alert {name}"), count)));
        let words = |code| application_error(transport, code);
        causes.extend(coded("QUIC application error", quic_application, words));
        causes.extend(coded(
            "QUIC transport error",
            quic_transport,
            quic_transport_error,
        ));
        causes.push(("other".to_owned(), *other));
        causes.retain(|(_, count)| *count > 0);
        causes
    }
}

/// `what` with the name of each code, and its count.
fn coded(
    what: &str,
    codes: &Codes,
    words: impl Fn(u64) -> String,
) -> impl Iterator<Item = (String, u64)> {
    codes.named().map(move |(code, count)| {
        let code = code.map_or_else(|| "of another code".to_owned(), &words);
        (format!("{what} {code}"), count)
    })
}
