//! Queries that the protocol around DNS ended: HTTP (RFC 8484) and QUIC streams (RFC 9250).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Codes;
use super::error_codes::{application_error, http_status};
use crate::scenario::transports::Transports;
use crate::zero::is_zero;

/// What [`ExchangeFailures::media_type_dns`] counts.
const SHORT_MEDIA_TYPE: &str = "responses with the media type application/dns instead of \
                                application/dns-message (RFC 8484, section 6)";

/// Queries sent whose HTTP request or QUIC stream ended without a DNS message, by cause.
///
/// The causes are those of one exchange. When the whole connection ends, its queries are
/// connection losses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExchangeFailures {
    /// HTTP responses with a final status other than 200, by status.
    pub http_status: Codes,
    /// HTTP responses with status 200 and another media type than `application/dns-message`.
    pub media_type: u64,
    /// Of these, responses with the media type `application/dns`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub media_type_dns: u64,
    /// Streams that the target reset or stopped, by error code: of HTTP/2 (RFC 9113, section 7),
    /// of HTTP/3 (RFC 9114, section 8.1) or of DoQ (RFC 9250, section 4.3).
    pub stream_reset: Codes,
    /// Streams that carried no message, more than one, or one that its framing contradicts.
    pub malformed: u64,
    /// The target said that it had not processed the query, and it was not sent again: the run
    /// was ending, or it had been sent again often enough.
    pub not_processed: u64,
}

impl_add!(
    ExchangeFailures,
    numbers: [media_type, media_type_dns, malformed, not_processed],
    groups: [http_status, stream_reset]
);

impl ExchangeFailures {
    /// Queries that ended so, whatever the cause.
    pub fn total(&self) -> u64 {
        let coded = self.http_status.total() + self.stream_reset.total();
        coded + self.media_type + self.malformed + self.not_processed
    }

    /// Every cause in plain words with its count, zero counts left out.
    pub fn by_cause(&self, transport: impl Into<Transports>) -> Vec<(String, u64)> {
        let transport = transport.into();
        // Names every field, so that a new one cannot be forgotten here.
        let ExchangeFailures {
            http_status: statuses,
            media_type,
            media_type_dns,
            stream_reset,
            malformed,
            not_processed,
        } = self;
        let mut causes = Vec::new();
        for (status, count) in statuses.named() {
            let status = status.map_or_else(|| "of another status".into(), http_status);
            causes.push((format!("HTTP {status}"), count));
        }
        for (code, count) in stream_reset.named() {
            let code = code.map(|code| application_error(transport, code));
            let code = code.unwrap_or_else(|| "another code".into());
            causes.push((format!("streams reset with {code}"), count));
        }
        causes.extend([
            (SHORT_MEDIA_TYPE.into(), *media_type_dns),
            (
                "another media type".into(),
                media_type.saturating_sub(*media_type_dns),
            ),
            ("malformed".into(), *malformed),
            ("not processed by the target".into(), *not_processed),
        ]);
        causes.retain(|(_, count)| *count > 0);
        causes
    }

    /// The HTTP status with which at least half of the queries `sent` ended, with their number.
    pub fn status_of_most(&self, sent: u64) -> Option<(u64, u64)> {
        let coded = self.http_status.named();
        let coded = coded.filter_map(|(status, number)| Some((status?, number)));
        let most = coded.max_by_key(|(_, number)| *number)?;
        (2 * most.1 >= sent).then_some(most)
    }

    /// HTTP 429 (Too Many Requests) and 503 (Service Unavailable): the target limits its clients.
    pub fn turned_away(&self) -> u64 {
        self.http_status.get(429) + self.http_status.get(503)
    }
}
