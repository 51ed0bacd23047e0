//! What one of several agents counted itself: sums over all agents hide the one that had them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counts::SendFailures;
use crate::interval::per;

/// An agent's counts of its share of the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentCounts {
    /// Queries that were scheduled.
    pub offered: u64,
    /// Queries handed to the network.
    pub sent: u64,
    /// Of those, queries that timed out or were lost with their connection.
    pub unanswered: u64,
    /// Responses that came within the window; none in a record of a version that did not write it.
    pub responses_in_window: Option<u64>,
    /// Of the queries offered, those that got no response, whatever the cause; none as above.
    pub lost: Option<u64>,
    /// Queries that the kernel refused to send.
    pub send_failed: u64,
    /// Of those, why.
    pub send_failed_for: SendFailures,
    /// 99th percentile of the time by which queries left late, nanoseconds; none if none was sent.
    pub send_lateness_p99_ns: Option<u64>,
    /// Connection attempts that failed for lack of file descriptors or memory.
    pub no_resources: u64,
    /// Connection attempts that failed for lack of a local port.
    pub no_local_port: u64,
    /// TCP segments sent by the connections that were read (TCP_INFO).
    pub segments_sent: u64,
    /// Of those, segments that were lost.
    pub segments_lost: u64,
    /// Frames that left AF_XDP and were dropped by the interface or its peer.
    pub frames_dropped: u64,
    /// Time that stamped queries waited until they left, microseconds in total.
    pub wait_to_send_us: u64,
    /// Time from then until their responses arrived at the host, microseconds in total.
    pub network_us: u64,
    /// Time that these responses waited until they were read, microseconds in total.
    pub wait_to_read_us: u64,
}

impl AgentCounts {
    /// Share of the offered queries that got no response, 0 to 1; none if that is not known.
    pub fn lost_share(&self) -> Option<f64> {
        Some(per(self.lost? as f64, self.offered as f64))
    }

    /// Shares of the mean latency of stamped queries that passed in the agent's host: until
    /// queries left, and until responses were read.
    pub(crate) fn waits_in_host(&self) -> (f64, f64) {
        let [sending, network, reading] =
            [self.wait_to_send_us, self.network_us, self.wait_to_read_us].map(|us| us as f64);
        let all = sending + network + reading;
        (per(sending, all), per(reading, all))
    }
}
