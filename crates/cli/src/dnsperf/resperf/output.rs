//! resperf's standard output: its labels, columns and number formats.

use std::fmt::Write;

use measure::ramp::Ramp;

use super::super::figures::Figures;
use super::super::output::{VERSION, connection_attempts, response_codes, seconds};
use super::args::Settings;

/// The first lines. What a script may look for comes first, who really ran after it.
pub(super) fn banner() -> String {
    let own = env!("CARGO_PKG_VERSION");
    format!("DNS Resolution Performance Testing Tool\nVersion {VERSION} (throng {own})\n\n")
}

/// What is about to be run.
pub(super) fn initial_status(settings: &Settings) -> String {
    format!(
        "[Status] Command line: {}\n[Status] Sending\n",
        settings.base.command_line
    )
}

/// The figures of the whole run with the empty line after them.
pub(super) fn statistics(figures: &Figures, ramp: &Ramp) -> String {
    let counts = &figures.counts;
    let (qps, lost_percent) = match &ramp.peak {
        Some(peak) => (peak.responses_qps, 100.0 * peak.lost_share),
        None => (0.0, 0.0),
    };
    let mut text = String::from("Statistics:\n\n");
    // Writing to a String does not fail.
    let mut row = |label: &str, value: String| {
        let _ = writeln!(text, "  {label:<21} {value}");
    };
    row("Queries sent:", counts.sent.to_string());
    row("Queries completed:", counts.responses.to_string());
    row("Queries lost:", figures.lost().to_string());
    let unexpected = figures.unexpected();
    if unexpected > 0 {
        row("Unexpected IDs:", unexpected.to_string());
    }
    row("Response codes:", format!("{}\n", response_codes(figures)));
    row("Run time (s):", seconds(figures.run_time_ns / 1_000));
    row("Maximum throughput:", format!("{qps:.6} qps"));
    row("Lost at that point:", format!("{lost_percent:.2}%\n"));
    row(
        "Connection attempts:",
        format!("{}\n", connection_attempts(figures)),
    );
    text
}
