//! queryperf's standard output: its labels, columns and number formats.

use std::fmt::Write;
use std::net::IpAddr;

use super::super::figures::{Figures, Latency};
use super::super::output::rcode_name;
use super::args::Settings;

/// The first lines. What a script may look for comes first, who really ran after it.
pub(super) fn banner() -> String {
    let own = env!("CARGO_PKG_VERSION");
    format!(
        "\nDNS Query Performance Testing Tool\n\
         Version: $Id: queryperf.c,v 1.12 2007/09/05 07:36:04 marka Exp $ (throng {own})\n\n"
    )
}

/// What is about to be run.
pub(super) fn beginning(server: IpAddr) -> String {
    format!("[Status] Processing input data\n[Status] Sending queries (beginning with {server})\n")
}

/// What a block of statistics is about.
pub(super) struct Span<'a> {
    pub(super) figures: &'a Figures,
    /// From the first query to the last response or timeout.
    pub(super) seconds: f64,
    /// From the first query to the last.
    pub(super) sending_seconds: f64,
    /// When it began and ended.
    pub(super) times: (String, String),
    /// How often the file was run through, and whether that ended the run; none in between.
    pub(super) ended: Option<(u64, bool)>,
}

/// A block of statistics with the empty line after it.
pub(super) fn statistics(settings: &Settings, span: &Span<'_>) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write_statistics(&mut text, settings, span);
    text
}

fn write_statistics(text: &mut String, settings: &Settings, span: &Span<'_>) -> std::fmt::Result {
    let title = if span.ended.is_none() {
        "Intermediate "
    } else {
        ""
    };
    writeln!(text, "\n{title}Statistics:\n")?;
    if let Some(ended) = span.ended {
        write_end(text, settings, ended)?;
    }
    let figures = span.figures;
    let (sent, completed) = (figures.counts.sent, figures.counts.responses);
    let (lost, delayed) = (figures.lost(), delayed(settings, figures));
    writeln!(text, "  Queries sent:         {sent} queries")?;
    writeln!(text, "  Queries completed:    {completed} queries")?;
    writeln!(text, "  Queries lost:         {lost} queries")?;
    writeln!(text, "  Queries delayed(?):   {delayed} queries\n")?;
    write_rtt(text, settings, &figures.latency)?;
    if settings.counts_rcodes {
        let counts = figures.counts.rcodes.by_rcode.iter().enumerate().take(16);
        for (rcode, count) in counts.filter(|(_, count)| **count > 0) {
            let name = rcode_name(rcode as u16);
            writeln!(text, "  Returned {name:>8}:    {count} queries")?;
        }
        text.push('\n');
    }
    let percent = |part: u64| match completed {
        0 => 0.0,
        _ => 100.0 * part as f64 / sent as f64,
    };
    writeln!(text, "  Percentage completed: {:6.2}%", percent(completed))?;
    if delayed > 0 {
        let with = percent(completed + delayed);
        writeln!(text, "     (w/ delayed qrys): {with:6.2}%")?;
    }
    writeln!(text, "  Percentage lost:      {:6.2}%", percent(lost))?;
    if delayed > 0 {
        let without = percent(lost.saturating_sub(delayed));
        writeln!(text, "    (w/o delayed qrys): {without:6.2}%")?;
    }
    write_times(text, settings, span)
}

fn write_times(text: &mut String, settings: &Settings, span: &Span<'_>) -> std::fmt::Result {
    let figures = span.figures;
    let (sent, completed) = (figures.counts.sent, figures.counts.responses);
    let delayed = delayed(settings, figures);
    let (began, ended) = &span.times;
    writeln!(text, "\n  Started at:           {began}")?;
    writeln!(text, "  Finished at:          {ended}")?;
    writeln!(
        text,
        "  Ran for:              {:.6} seconds\n",
        span.seconds
    )?;
    let rate = |count: u64, seconds: f64| match seconds > 0.0 {
        true => count as f64 / seconds,
        false => 0.0,
    };
    let qps = rate(completed, span.seconds);
    writeln!(text, "  Queries per second:   {qps:.6} qps")?;
    if delayed > 0 {
        let with = rate(completed + delayed, span.seconds);
        writeln!(text, "   (w/ delayed qrys):   {with:.6} qps")?;
    }
    if settings.target_qps > 0 {
        let (total, target) = (rate(sent, span.sending_seconds), settings.target_qps);
        writeln!(text, "  Total QPS/target:     {total:.6}/{target} qps")?;
    }
    text.push('\n');
    Ok(())
}

/// With a rate wanted, responses that fit no open query are late ones.
fn delayed(settings: &Settings, figures: &Figures) -> u64 {
    match settings.target_qps {
        0 => 0,
        _ => figures.unexpected(),
    }
}

fn write_end(text: &mut String, settings: &Settings, ended: (u64, bool)) -> std::fmt::Result {
    let (runs, by_file) = ended;
    let times = if settings.is_once {
        "once"
    } else {
        "multiple times"
    };
    writeln!(text, "  Parse input file:     {times}")?;
    if let Some(limit) = settings.limit_s {
        writeln!(text, "  Run time limit:       {limit} seconds")?;
    }
    match (settings.is_once, by_file) {
        (false, _) => writeln!(text, "  Ran through file:     {runs} times\n"),
        (true, true) => writeln!(text, "  Ended due to:         reaching end of file\n"),
        (true, false) => writeln!(text, "  Ended due to:         reaching time limit\n"),
    }
}

fn write_rtt(text: &mut String, settings: &Settings, rtt: &Latency) -> std::fmt::Result {
    let second = |ns: u64| match rtt.count {
        0 => -1.0,
        _ => ns as f64 / 1e9,
    };
    let range_us = u64::from(settings.slots) * u64::from(settings.slot_us);
    let beyond = rtt.buckets.iter().filter(|bucket| bucket.0 >= range_us);
    let beyond: u64 = beyond.map(|bucket| bucket.2).sum();
    let deviation = rtt.stddev_ns.unwrap_or(0.0) / 1e9;
    writeln!(text, "  RTT max:         \t{:.6} sec", second(rtt.max_ns))?;
    writeln!(
        text,
        "  RTT min:              {:.6} sec",
        second(rtt.min_ns)
    )?;
    writeln!(text, "  RTT average:          {:.6} sec", rtt.mean_ns / 1e9)?;
    writeln!(text, "  RTT std deviation:    {deviation:.6} sec")?;
    writeln!(text, "  RTT out of range:     {beyond} queries\n")
}

/// The file of `-H`: the middle of each slot in microseconds, and its share in percent.
pub(super) fn histogram(settings: &Settings, rtt: &Latency) -> String {
    let mut slots = vec![0u64; settings.slots as usize];
    for (low_us, high_us, count) in &rtt.buckets {
        let slot = (low_us + high_us) / 2 / u64::from(settings.slot_us);
        if let Some(slot) = slots.get_mut(slot as usize) {
            *slot += count;
        }
    }
    let mut text = String::new();
    let width = f64::from(settings.slot_us);
    for (index, count) in slots.iter().enumerate() {
        let middle = index as f64 * width + width / 2.0;
        let share = 100.0 * *count as f64 / (rtt.count as f64).max(1.0);
        // Writing to a String does not fail.
        let _ = writeln!(text, "{middle:.6} {share:.3}");
    }
    text
}
