//! Flags about clients that ask again and have several servers.

use std::time::Duration;

use clap::Args;
use load::stub::{self, RACE_DELAY, Retry, ServerOrder, Stub};

use super::values::duration;
use crate::failure::Failure;

/// What each client does as a stub resolver does it.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Stub resolver")]
pub(crate) struct StubArguments {
    /// Retry unanswered queries: the timeout of each attempt (3s,3s), or the schedule of a stub
    /// resolver: glibc[,timeout=S] [,attempts=N], musl, systemd-resolved, windows [default: one
    /// attempt at each server]
    #[arg(long, value_name = "SCHEDULE", conflicts_with = "timeout",
          value_parser = stub::parse_retry)]
    retry: Option<Retry>,
    /// Which of several servers a client queries first: first, rotate (each in turn), stay (with
    /// the one that answers), all (at once, UDP only) [default: first, or as --retry NAME does]
    #[arg(long, value_name = "ORDER")]
    server_order: Option<ServerOrder>,
    /// Query the next server instead of accepting a response with one of these RCODEs [default:
    /// none, or as --retry NAME does]
    #[arg(long, value_name = "RCODE[,RCODE...]", value_delimiter = ',')]
    failover_rcodes: Vec<String>,
    /// Skip a server for this long after it failed to answer [default: never]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    server_dead_for: Option<Duration>,
    /// Race connections to the servers (RFC 8305): start each attempt this long after the one
    /// before, and use the first that is established [default if no time is given: 250ms]
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        default_missing_value = default_delay(),
        value_parser = duration
    )]
    pub(crate) race_delay: Option<Duration>,
}

fn default_delay() -> &'static str {
    const TEXT: &str = "250ms";
    debug_assert_eq!(duration(TEXT), Ok(RACE_DELAY));
    TEXT
}

impl StubArguments {
    /// What is asked of the clients.
    ///
    /// # Errors
    /// An RCODE is unknown.
    pub(crate) fn asked(&self) -> Result<Stub, Failure> {
        Ok(Stub {
            retry: self.retry.clone(),
            order: self.server_order,
            failover_rcodes: self.rcodes()?,
            dead_for: self.server_dead_for,
            race_delay: self.race_delay,
        })
    }

    fn rcodes(&self) -> Result<Vec<u16>, Failure> {
        let rcode = |text: &String| {
            proto::rr::rcode_from_text(text).ok_or_else(|| {
                Failure::usage(
                    format!("--failover-rcodes: unknown RCODE `{text}`"),
                    "give RCODEs by name, such as SERVFAIL,REFUSED",
                )
            })
        };
        self.failover_rcodes.iter().map(rcode).collect()
    }
}
