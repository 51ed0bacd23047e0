//! How a timeline is written: an array of numbers for each column, without zeros at its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BINS_MAX, Timeline, WIDTH_NS_MIN};

/// Declares bins, the columns, and both ways between them.
macro_rules! columns {
    ($($(#[$doc:meta])* $column:ident,)*) => {
        /// Counts within one bin.
        ///
        /// Responses, and whatever ended without one, are of queries of the measured run alone.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Bin {
            $($(#[$doc])* pub $column: u64,)*
        }

        impl Bin {
            /// Changes each figure by the same one of another.
            pub(super) fn each_with(&mut self, other: &Bin, mut change: impl FnMut(&mut u64, u64)) {
                $(change(&mut self.$column, other.$column);)*
            }
        }

        /// Queries due, sent, answered and lost over time: an array for each column. Element i is
        /// of the time from i to i + 1 times `width_ns` after the start of the measured run;
        /// trailing zeros are left out, and arrays of zeros.
        #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[schemars(rename = "Timeline")]
        pub(super) struct Columns {
            /// Nanoseconds that each element stands for: 10 ms times a power of two.
            #[schemars(range(min = 10_000_000))]
            width_ns: u64,
            /// Workers whose timelines are merged here.
            workers: u64,
            $(
                $(#[$doc])*
                #[serde(default, skip_serializing_if = "Vec::is_empty")]
                #[schemars(length(max = 2_048))]
                $column: Vec<u64>,
            )*
        }

        impl From<Timeline> for Columns {
            fn from(timeline: Timeline) -> Columns {
                let column = |value: fn(&Bin) -> u64| {
                    let used = timeline.bins.iter().rposition(|bin| value(bin) > 0);
                    let used = used.map_or(0, |last| last + 1);
                    timeline.bins[..used].iter().map(value).collect()
                };
                Columns {
                    width_ns: timeline.width_ns,
                    workers: timeline.workers,
                    $($column: column(|bin| bin.$column),)*
                }
            }
        }

        impl TryFrom<Columns> for Timeline {
            type Error = String;

            fn try_from(columns: Columns) -> Result<Timeline, String> {
                let bins = [$(columns.$column.len()),*].into_iter().max().unwrap_or(0);
                check(columns.width_ns, bins)?;
                let mut timeline = Timeline {
                    width_ns: columns.width_ns,
                    workers: columns.workers,
                    bins: vec![Bin::default(); bins],
                };
                $(
                    for (bin, value) in timeline.bins.iter_mut().zip(columns.$column) {
                        bin.$column = value;
                    }
                )*
                timeline.trim();
                Ok(timeline)
            }
        }
    };
}

columns! {
    /// Queries that were due; adds up to `offered`.
    due,
    /// Queries handed to the network.
    sent,
    /// Responses, by the instant in which they came.
    responses,
    /// Of those, the ones with another RCODE than NOERROR and NXDOMAIN.
    errors,
    /// The sum of the latencies of all responses, in microseconds, rounded down.
    latency_us,
    /// Queries that ended without a response, whatever the cause, by the instant in which they were
    /// due.
    lost,
    /// The same queries by the instant in which they ended: timed out, were given up.
    unanswered,
    /// Connections refused, and datagrams answered by ICMP port unreachable.
    refused,
    /// Connections reset, usable or not.
    reset,
    /// Connections that the target closed otherwise, usable or not, and those that we closed
    /// because it broke a rule.
    closed,
    /// Handshakes of TLS, QUIC or HTTP that failed.
    handshakes_failed,
    /// Attempts to connect that failed otherwise, and connections that the kernel gave up: timed
    /// out, unreachable.
    attempts_failed,
    /// Attempts to connect for which this host had no open file, memory or local port left.
    no_resources,
    /// Datagrams that the kernel refused to send.
    send_failed,
    /// Microseconds in which workers should have taken turns and did not, added up over workers.
    frozen_us,
    /// Microseconds in which nothing could leave this host for the target: interface down or gone,
    /// no carrier, no route; of all workers together.
    cut_off_us,
}

fn check(width_ns: u64, bins: usize) -> Result<(), String> {
    let is_width =
        width_ns.is_multiple_of(WIDTH_NS_MIN) && (width_ns / WIDTH_NS_MIN).is_power_of_two();
    if !is_width {
        return Err(format!(
            "timeline: width_ns is {width_ns}, not {WIDTH_NS_MIN} times a power of two"
        ));
    }
    match bins > BINS_MAX {
        true => Err(format!("timeline: {bins} bins, {BINS_MAX} are the most")),
        false => Ok(()),
    }
}
