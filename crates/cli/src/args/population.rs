//! Flags about how each client of a population asks, and when it is there.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use load::{ClientArrival, Presence, client_arrival};
use settings::Reset;

use super::values::duration;
use crate::failure::Failure;

/// How each client asks by itself, and when it is there.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Population")]
pub(crate) struct PopulationArguments {
    /// How each client sends queries by itself: constant:2, poisson:0.5, onoff:5,on=2s,off=30s,
    /// bursts:8,every=20s, closed:4,think=1s, or full for as fast as its connection allows
    #[arg(long, value_name = "HOW", conflicts_with_all = ["rate", "outstanding", "max_rate"])]
    pub(crate) per_client: Option<String>,
    /// What each client does, as a script in Lua: function client(c) ... end (test it with `throng
    /// script check FILE`)
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["rate", "outstanding", "max_rate", "per_client", "loops"]
    )]
    pub(crate) script: Option<PathBuf>,
    /// How the rate of each client changes over time: steps:0s=1,30s=4, linear:0s=0,60s=1 or
    /// diurnal:24h=0.2..1 (factors on the rates of --per-client or --profile)
    #[arg(long, value_name = "SHAPE")]
    pub(crate) shape: Option<String>,
    /// How long after the start the clients join and connect
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) join_after: Option<Duration>,
    /// How long after the start the clients leave and close their connections
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) leave_after: Option<Duration>,
    /// Reset a share of the connections at a time after the start, such as 90s=0.1; may be repeated
    #[arg(long, value_name = "TIME=SHARE")]
    pub(crate) reset: Vec<String>,
}

impl PopulationArguments {
    /// How each client asks, if it does so by itself.
    pub(crate) fn arrival(&self) -> Result<Option<ClientArrival>, Failure> {
        let text = self.per_client.as_deref();
        Ok(text.map(client_arrival::parse).transpose()?)
    }

    /// When the clients are there.
    pub(crate) fn presence(&self) -> Result<Presence, Failure> {
        let reset = |text: &String| {
            let (after, share) = text.split_once('=')?;
            Some(Reset {
                after: proto::time::parse_duration(after)?,
                share: share.parse().ok()?,
            })
        };
        let wrong = |text: &String| {
            Failure::usage(
                format!("--reset {text}: not a time and a share"),
                "write TIME=SHARE, such as 90s=0.1",
            )
        };
        let each = self.reset.iter();
        let mut resets: Vec<Reset> = each
            .map(|text| reset(text).ok_or_else(|| wrong(text)))
            .collect::<Result<_, _>>()?;
        resets.sort_by_key(|reset| reset.after);
        Ok(Presence {
            joins_after: self.join_after.unwrap_or_default(),
            leaves_after: self.leave_after,
            resets,
        })
    }
}
