//! dnsperf 2.14's standard output: its labels, columns and number formats.
//!
//! Everything here makes text; nothing is printed.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

use measure::record::EndedBy;

use super::args::Settings;
use super::figures::{Figures, Latency};

/// The version whose options and output these are.
pub(super) const VERSION: &str = "2.14.0";

/// The first lines. What a script may look for comes first, who really ran after it.
pub(super) fn banner() -> String {
    let own = env!("CARGO_PKG_VERSION");
    format!("DNS Performance Testing Tool\nVersion {VERSION} (throng {own})\n\n")
}

/// What is about to be run.
pub(super) fn initial_status(settings: &Settings, target: SocketAddr, now: &str) -> String {
    let unit = settings.unit().to_lowercase();
    let mut stop = Vec::new();
    if let Some(limit) = settings.time_limit {
        stop.push(format!("{} seconds", seconds(limit_us(limit))));
    }
    if let Some(runs) = settings.runs {
        let plural = if runs == 1 { "" } else { "s" };
        stop.push(format!("{runs} run{plural} through file"));
    }
    format!(
        "[Status] Command line: {}\n\
         [Status] Sending {unit} (to {target})\n\
         [Status] Started at: {now}\n\
         [Status] Stopping after {}\n",
        settings.command_line,
        stop.join(" or ")
    )
}

fn limit_us(limit: Duration) -> u64 {
    u64::try_from(limit.as_micros()).unwrap_or(u64::MAX)
}

/// How the run ended.
pub(super) fn final_status(ended_by: EndedBy) -> String {
    let reason = match ended_by {
        EndedBy::Queries => "end of file",
        // dnsperf goes on asking a target that is gone until its time is over.
        EndedBy::Duration | EndedBy::TargetGone => "time limit",
        EndedBy::Aborted | EndedBy::Interrupted | EndedBy::AgentLost | EndedBy::Killed => {
            "interruption"
        }
    };
    format!("[Status] Testing complete ({reason})\n\n")
}

/// The line of `-S`: time since the epoch, and responses a second since the line before.
pub(super) fn rate_line(since_epoch: Duration, figures: &Figures) -> String {
    let (whole, micros) = (since_epoch.as_secs(), since_epoch.subsec_micros());
    format!("{whole}.{micros:06}: {:.6}\n", figures.rate_qps())
}

/// Statuses of the final HTTP responses with their counts; 200 includes those that carried another
/// media type.
fn http_codes(figures: &Figures) -> String {
    let ended = &figures.counts.exchange_failures;
    let mut codes: Vec<(u64, u64)> = vec![(200, figures.counts.responses + ended.media_type)];
    let named = ended.http_status.named();
    codes.extend(named.filter_map(|(code, count)| code.map(|code| (code, count))));
    codes.retain(|(_, count)| *count > 0);
    codes.sort_unstable();
    if codes.is_empty() {
        return "none".to_owned();
    }
    let each = codes.iter().map(|(code, count)| format!("{code}: {count}"));
    each.collect::<Vec<String>>().join(", ")
}

/// The block of DNS over HTTPS with the empty line after it.
pub(super) fn http_statistics(figures: &Figures) -> String {
    let codes = http_codes(figures);
    format!("DNS-over-HTTPS statistics:\n\n  HTTP/2 return codes:  {codes}\n\n")
}

/// Which block of statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// One interval, in the middle of the run; without minimum and maximum, as in dnsperf.
    Interval,
    /// The whole run.
    Run,
}

/// How statistics are shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// `Queries` or `Updates`.
    pub(super) unit: &'static str,
    /// Latency histograms are shown.
    pub(super) histogram: bool,
    /// HTTP statuses are shown.
    pub(super) http: bool,
}

impl Layout {
    pub(super) fn of(settings: &Settings) -> Self {
        Layout {
            unit: settings.unit(),
            histogram: settings.long.latency_histogram,
            http: settings.transport.is_doh(),
        }
    }

    /// A block of statistics with the empty line after it.
    pub(super) fn statistics(&self, figures: &Figures, scope: Scope) -> String {
        let mut text = String::new();
        // Writing to a String does not fail, here and below.
        let _ = self.write_counts(&mut text, figures, scope);
        let _ = self.write_latency(&mut text, &figures.latency, (scope, "answer count"));
        text.push('\n');
        if figures.connections.attempted > 0 {
            let _ = self.write_connections(&mut text, figures, scope);
            text.push('\n');
        }
        if self.http && scope == Scope::Run {
            text.push_str(&http_statistics(figures));
        }
        text
    }

    fn write_counts(&self, text: &mut String, figures: &Figures, scope: Scope) -> std::fmt::Result {
        let (unit, counts) = (self.unit, &figures.counts);
        let (sent, responses) = (counts.sent, counts.responses);
        let share = |count: u64| percent(count, sent);
        let (lost, unexpected) = (figures.lost(), figures.unexpected());
        let title = if scope == Scope::Interval {
            "Interval "
        } else {
            ""
        };
        writeln!(text, "{title}Statistics:\n")?;
        writeln!(text, "  {unit} sent:         {sent}")?;
        writeln!(
            text,
            "  {unit} completed:    {responses} ({})",
            share(responses)
        )?;
        writeln!(text, "  {unit} lost:         {lost} ({})", share(lost))?;
        let interrupted = counts.interrupted;
        if interrupted > 0 {
            writeln!(
                text,
                "  {unit} interrupted:  {interrupted} ({})",
                share(interrupted)
            )?;
        }
        if unexpected > 0 {
            writeln!(
                text,
                "  Unexpected IDs:       {unexpected} ({})",
                share(unexpected)
            )?;
        }
        writeln!(
            text,
            "\n  Response codes:       {}",
            response_codes(figures)
        )?;
        writeln!(
            text,
            "  Average packet size:  request {}, response {}",
            counts.sent_octets.checked_div(sent).unwrap_or(0),
            counts.received_octets.checked_div(responses).unwrap_or(0)
        )?;
        writeln!(
            text,
            "  Run time (s):         {}",
            seconds(figures.run_time_ns / 1_000)
        )?;
        writeln!(text, "  {unit} per second:   {:.6}\n", figures.rate_qps())
    }

    fn write_latency(
        &self,
        text: &mut String,
        latency: &Latency,
        (scope, counted): (Scope, &str),
    ) -> std::fmt::Result {
        write!(
            text,
            "  Average Latency (s):  {}",
            seconds((latency.mean_ns / 1e3) as u64)
        )?;
        if scope == Scope::Run {
            let (min_us, max_us) = (latency.min_ns / 1_000, latency.max_ns / 1_000);
            write!(text, " (min {}, max {})", seconds(min_us), seconds(max_us))?;
        }
        text.push('\n');
        let Some(stddev_ns) = latency.stddev_ns else {
            return Ok(());
        };
        writeln!(text, "  Latency StdDev (s):   {:.6}", stddev_ns / 1e9)?;
        if self.histogram {
            writeln!(text, "  Latency bucket (s):   {counted}")?;
            for (low, high, count) in &latency.buckets {
                writeln!(text, "  {} - {}:  {count}", seconds(*low), seconds(*high))?;
            }
        }
        Ok(())
    }

    fn write_connections(
        &self,
        text: &mut String,
        figures: &Figures,
        scope: Scope,
    ) -> std::fmt::Result {
        writeln!(text, "Connection Statistics:\n")?;
        let attempts = connection_attempts(figures);
        writeln!(text, "  Connection attempts:  {attempts}\n")?;
        self.write_latency(
            text,
            &figures.connection_latency,
            (scope, "connection count"),
        )
    }
}

/// What dnsperf calls an RCODE of a header.
pub(super) fn rcode_name(rcode: u16) -> String {
    match rcode {
        // It has no names for these.
        11..=15 => format!("rcode{rcode}"),
        _ => measure::counts::rcode_name(rcode).to_owned(),
    }
}

pub(super) fn response_codes(figures: &Figures) -> String {
    let rcodes = &figures.counts.rcodes;
    let known = rcodes
        .by_rcode
        .iter()
        .enumerate()
        .map(|(rcode, count)| (rcode_name(rcode as u16), *count));
    let all = known.chain(std::iter::once(("other".to_owned(), rcodes.other)));
    let shown = all.filter(|(_, count)| *count > 0).map(|(name, count)| {
        let share = percent(count, figures.counts.responses);
        format!("{name} {count} ({share})")
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn percent(part: u64, whole: u64) -> String {
    let share = if whole == 0 {
        0.0
    } else {
        100.0 * part as f64 / whole as f64
    };
    format!("{share:.2}%")
}

/// `N (N successful, P%)`, of attempts to connect.
pub(super) fn connection_attempts(figures: &Figures) -> String {
    let (attempted, usable) = (figures.connections.attempted, figures.connections_usable);
    let share = percent(usable, attempted);
    format!("{attempted} ({usable} successful, {share})")
}

/// Microseconds as seconds with six places.
pub(super) fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

#[cfg(test)]
mod tests;
