//! What was done to the target in mid-run, in words.

use measure::around::Part;
use measure::notation::{count, latency, seconds};
use measure::{Event, RunRecord};

/// A line for each event, with how the load fared before, around and after it.
pub(crate) fn lines(record: &RunRecord) -> Vec<String> {
    let line = |event: &Event| format!("{}{}", what(event), around(event, record));
    record.events.iter().map(line).collect()
}

/// `restart at 4.0 s: took 80.0 ms, down for 60.0 ms`
fn what(event: &Event) -> String {
    let mut text = format!(
        "{} at {}: took {}",
        event.name,
        seconds(event.began_ns),
        latency(event.length_ns() as f64)
    );
    if let Some(down_ns) = event.down_ns {
        text += &format!(", down for {}", latency(down_ns as f64));
    }
    if let Some(error) = &event.error {
        text += &format!(", failed: {}", error.lines().next().unwrap_or_default());
    }
    text
}

fn around(event: &Event, record: &RunRecord) -> String {
    let Some(found) = event.around(record) else {
        return String::new();
    };
    let part = |name: &str, part: &Part| {
        let p99 = part.p99_ns.map_or_else(String::new, |ns| {
            let p99 = latency(ns as f64);
            format!(", p99 {p99}")
        });
        let (lost, due) = (count(part.lost), count(part.due));
        format!("{name} lost {lost} of {due}{p99}")
    };
    let parts = [
        part("before", &found.before),
        part("around", &found.around),
        part("after", &found.after),
    ];
    let silence = latency(found.silence_ns as f64);
    format!(
        "; longest time without a response {silence}; {}",
        parts.join("; ")
    )
}
