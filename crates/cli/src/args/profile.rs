//! Flags about clients that are drawn from a profile.

use std::path::PathBuf;

use clap::Args;

/// Whom the clients are drawn from.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Population")]
pub(crate) struct ProfileArguments {
    /// Draw each client from this profile, which `throng fit` made of a capture: its rate, gaps and
    /// pauses, QTYPEs, names and repeats [default number of clients: as many as were seen]
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// Make the names of the profile below this zone, 000000000000.ZONE and so on, those most asked
    /// for first; not needed where the profile has names, or --names
    #[arg(long, value_name = "ZONE", requires = "profile")]
    pub(crate) profile_zone: Option<String>,
    /// Spread the clients over transports as the profile's queries were
    #[arg(long, requires = "profile", conflicts_with = "transport")]
    pub(crate) profile_mix: bool,
    /// Let each client ask that many times as often as those of the profile (0.5, 2)
    #[arg(long, value_name = "FACTOR", requires = "profile")]
    pub(crate) rate_factor: Option<f64>,
}
