//! Flags about clients that are drawn from a profile.

use std::path::PathBuf;

use clap::Args;

/// Whom the clients are drawn from.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Population")]
pub(crate) struct ProfileArguments {
    /// Draw each client from this profile, made from a capture by `throng fit`: its rate, gaps and
    /// pauses, QTYPEs, names and repeats [default number of clients: as many as were seen]
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// Generate the profile's names below this zone, 000000000000.ZONE and so on, the most popular
    /// first; not needed if the profile has names, or with --names
    #[arg(long, value_name = "ZONE", requires = "profile")]
    pub(crate) profile_zone: Option<String>,
    /// Spread the clients over transports in the proportions of the profile's queries
    #[arg(long, requires = "profile", conflicts_with = "transport")]
    pub(crate) profile_mix: bool,
    /// Multiply the rate of each client of the profile by this factor (0.5, 2)
    #[arg(long, value_name = "FACTOR", requires = "profile")]
    pub(crate) rate_factor: Option<f64>,
}
