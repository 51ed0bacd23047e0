//! Flags about which question is asked next, and about generated names.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::values::{count, duration};

/// How the question of each query is chosen.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Questions")]
pub(crate) struct QuestionArguments {
    /// Which question is asked next
    #[arg(long, value_enum, default_value = "in-order")]
    pub(crate) question_order: QuestionOrder,
    /// Ask the first questions most often, by Zipf's law: question k in proportion to k^-EXPONENT
    #[arg(long, value_name = "EXPONENT", conflicts_with = "question_order")]
    pub(crate) zipf: Option<f64>,
    /// Ask for these QTYPEs instead of those of the names, by weight (A=60,AAAA=30,HTTPS=10)
    #[arg(long, value_name = "QTYPE=WEIGHT[,...]")]
    pub(crate) qtypes: Option<String>,
    /// Query names below this zone that were never asked before, with a new random label for each
    /// query; --names is not needed
    #[arg(long, value_name = "ZONE", conflicts_with_all = ["walk", "water_torture"])]
    pub(crate) random_labels: Option<String>,
    /// Walk through this zone: names with ascending numbers as labels, 000000000 and so on; --names
    /// is not needed
    #[arg(long, value_name = "ZONE", conflicts_with = "water_torture")]
    pub(crate) walk: Option<String>,
    /// Put a random label of random length before each name (random subdomain attack)
    #[arg(long)]
    pub(crate) water_torture: bool,
    /// Length of generated labels in bytes, such as 12 or 4..16 [default: 10; with --walk 9 digits,
    /// with --water-torture 4..16]
    #[arg(long, value_name = "N|MIN..MAX")]
    pub(crate) label_octets: Option<String>,
    /// Seed of random labels [default: the time, so that no cache knows the names from an earlier
    /// run; without --server, the value of --seed]
    #[arg(long, value_name = "N")]
    pub(crate) label_seed: Option<u64>,
    /// Share of the queries that repeat a question asked before in this run, so that a cache can
    /// answer it; the others are new, from --names first and then by --random-labels
    #[arg(long, value_name = "SHARE", requires = "random_labels")]
    pub(crate) cache_hit_ratio: Option<f64>,
    /// Repeat a question only within this time of when it was asked: at most the TTL of the
    /// target's answers [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "cache_hit_ratio")]
    pub(crate) cache_ttl: Option<Duration>,
    /// Without --names: how many of the most recent names can be repeated [default: 10000]
    #[arg(
        long,
        value_name = "N",
        requires = "cache_hit_ratio",
        conflicts_with = "names",
        value_parser = count::<u32>,
    )]
    pub(crate) hot_names: Option<u32>,
}

/// Which question is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum QuestionOrder {
    /// One after another
    InOrder,
    /// Any, all equally likely
    Uniform,
    /// Each once in a random order, then each once in another random order
    Shuffled,
}

impl QuestionArguments {
    /// The zone of generated names and the flag that names it, if there is one.
    pub(crate) fn zone(&self) -> Option<(&'static str, &str)> {
        let random = self.random_labels.as_deref();
        let walk = self.walk.as_deref();
        let zone = random.map(|zone| ("random-labels", zone));
        zone.or(walk.map(|zone| ("walk", zone)))
    }
}
