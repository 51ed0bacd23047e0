//! What the working directory's file may set. The folder may be someone else's, such as a cloned
//! repository: its file describes load, target and output, and grants, starts, opens, reads and
//! writes nothing.

/// These flags, and no others.
const FLAGS: &[&str] = &[
    // Target
    "server",
    "transport",
    "transports",
    // Questions
    "type",
    "qtypes",
    "question-order",
    "zipf",
    "random-labels",
    "cache-hit-ratio",
    "no-recursion",
    "dnssec",
    "edns-size",
    "nsid",
    "tcp-fallback",
    // Load
    "rate",
    "max-rate",
    "outstanding",
    "clients",
    "per-client",
    "arrival",
    "burst",
    "speed",
    // Searches
    "search",
    "start",
    "max",
    "max-loss",
    "max-p99",
    "min-goodput",
    "precision",
    "trial-duration",
    "max-duration",
    "to",
    "over",
    "sustain",
    "repeat",
    // Length
    "duration",
    "warmup",
    "queries",
    "loops",
    "count",
    "timeout",
    "interval",
    "seed",
    // Conditions
    "goodput",
    "fail-if",
    "require",
    "abort-if",
    "undecided",
    "same-within",
    // Output
    "format",
    "details",
    "quiet",
    "label",
    "sorted",
];

/// True if the working directory's file may set this flag, by its long name.
pub(super) fn is_safe(flag: &str) -> bool {
    FLAGS.contains(&flag)
}

#[cfg(test)]
pub(super) fn flags() -> &'static [&'static str] {
    FLAGS
}
