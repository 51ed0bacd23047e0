//! Flags of `throng line`.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::{DocumentFormat, duration};

/// Flags of `throng line`.
#[derive(Debug, Args)]
#[command(
    after_help = "Values of the line may be given for each direction: `--delay 10ms,50ms` is 10 ms \
    to the far end and 50 ms back. Requires root, and ip (iproute2)."
)]
pub(crate) struct LineArguments {
    /// Command to run at the near end, such as `throng run`; the line ends with it. $THRONG_NEAR
    /// and $THRONG_FAR are the names of the namespaces
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    /// Names of the network namespaces, for `ip netns exec`; the line creates them, and at its end
    /// stops what still runs in them and removes them
    #[arg(
        long,
        value_name = "NEAR,FAR",
        default_value = "throng-near,throng-far",
        value_parser = two_names,
        help_heading = "Ends"
    )]
    pub(crate) between: EachWay<String>,
    /// Connect existing namespaces, and leave them as they were
    #[arg(long, help_heading = "Ends")]
    pub(crate) join: bool,
    /// Addresses of the near end, in networks of 24 and 64 bits
    #[arg(
        long,
        value_name = "IP[,IP...]",
        default_value = "10.98.0.1,fd98::1",
        value_delimiter = ',',
        help_heading = "Ends"
    )]
    pub(crate) near_addresses: Vec<IpAddr>,
    /// Addresses of the far end
    #[arg(
        long,
        value_name = "IP[,IP...]",
        default_value = "10.98.0.2,fd98::2",
        value_delimiter = ',',
        help_heading = "Ends"
    )]
    pub(crate) far_addresses: Vec<IpAddr>,

    /// Time that each packet takes, at most 10s
    #[arg(long, value_name = "TIME[,BACK]", default_value = "0s", value_parser = times,
          help_heading = "Line")]
    pub(crate) delay: EachWay<Duration>,
    /// Maximum of a uniform random extra delay; the order of packets is kept
    #[arg(long, value_name = "TIME[,BACK]", default_value = "0s", value_parser = times,
          help_heading = "Line")]
    pub(crate) jitter: EachWay<Duration>,
    /// Share of packets that are lost
    #[arg(long, value_name = "SHARE[,BACK]", default_value = "0", value_parser = shares,
          help_heading = "Line")]
    pub(crate) loss: EachWay<f64>,
    /// Share of packets that are delayed, so that later ones overtake them
    #[arg(long, value_name = "SHARE[,BACK]", default_value = "0", value_parser = shares,
          help_heading = "Line")]
    pub(crate) reorder: EachWay<f64>,
    /// How long those are delayed
    #[arg(long, value_name = "TIME[,BACK]", default_value = "1ms", value_parser = times,
          help_heading = "Line")]
    pub(crate) reorder_by: EachWay<Duration>,
    /// Share of packets that arrive twice
    #[arg(long, value_name = "SHARE[,BACK]", default_value = "0", value_parser = shares,
          help_heading = "Line")]
    pub(crate) duplicate: EachWay<f64>,
    /// Bits a second, IP headers included: 512k, 10M, 1G [default: no limit]
    #[arg(long, value_name = "BITS[,BACK]", value_parser = bit_rates, help_heading = "Line")]
    pub(crate) rate: Option<EachWay<u64>>,
    /// Packets that may queue at that rate; further ones are dropped and counted
    #[arg(long, value_name = "PACKETS[,BACK]", default_value = "1000", value_parser = numbers,
          requires = "rate", help_heading = "Line")]
    pub(crate) queue: EachWay<u64>,
    /// Seed of all randomness: packets that come in the same order meet the same fate
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Line")]
    pub(crate) seed: u64,

    /// End after this time [default: at Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "command")]
    pub(crate) duration: Option<Duration>,
    /// Write the line's report to this file instead of standard output (with COMMAND: standard
    /// error)
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Format of the line's report [default: json for a file that ends in .json, else text]
    #[arg(long, value_enum, help_heading = "Output")]
    pub(crate) format: Option<DocumentFormat>,
}

/// A value to the far end, and one back.
#[derive(Clone, Debug)]
pub(crate) struct EachWay<T>(pub(crate) [T; 2]);

fn each_way<T: Clone>(
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<EachWay<T>, String> {
    let mut values = text.split(',').map(|value| read(value.trim()));
    let there = values.next().unwrap_or_else(|| read(""))?;
    let back = values.next().unwrap_or_else(|| Ok(there.clone()))?;
    match values.next() {
        None => Ok(EachWay([there, back])),
        Some(_) => Err("there are two directions, give one value or two".to_owned()),
    }
}

fn two_names(text: &str) -> Result<EachWay<String>, String> {
    match text.split_once(',') {
        Some((near, far)) => Ok(EachWay([near.to_owned(), far.to_owned()])),
        None => Err("give two names, as in near,far".to_owned()),
    }
}

fn times(text: &str) -> Result<EachWay<Duration>, String> {
    each_way(text, duration)
}

fn shares(text: &str) -> Result<EachWay<f64>, String> {
    let share = ::responder::behaviour::parse_share;
    each_way(text, |text| share(text).map_err(|error| error.to_string()))
}

fn numbers(text: &str) -> Result<EachWay<u64>, String> {
    let wrong = |text: &str| format!("`{text}` is not a number of packets");
    each_way(text, |text| text.parse().map_err(|_| wrong(text)))
}

fn bit_rates(text: &str) -> Result<EachWay<u64>, String> {
    each_way(text, |text| {
        lab::line::parse_bit_rate(text).ok_or_else(|| {
            format!(
                "`{text}` is not a rate, write bits a second as in 512k, 10M, \
                1G"
            )
        })
    })
}
