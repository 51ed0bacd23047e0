//! A histogram in one line.

use measure::Histogram;

/// Columns, each a bucket.
const COLUMNS: usize = 32;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How often latencies occurred, from the least to the greatest on a logarithmic scale; an empty
/// bucket is a space. None where all of them are alike.
pub(super) fn sparkline(histogram: &Histogram) -> Option<String> {
    let (low, high) = (histogram.min_ns()?.max(1), histogram.max_ns()?);
    let width = (high as f64 / low as f64).ln();
    if high <= low + low / 10 {
        return None;
    }
    let mut columns = [0_u64; COLUMNS];
    for (from, to, number) in histogram.buckets() {
        let middle = (from as f64 + to as f64) / 2.0;
        let share = (middle / low as f64).max(1.0).ln() / width;
        let column = (share * COLUMNS as f64) as usize;
        columns[column.min(COLUMNS - 1)] += number;
    }
    let most = columns.iter().copied().max().unwrap_or(0).max(1);
    let bar = |number: &u64| match number {
        0 => ' ',
        _ => BARS[(number.saturating_mul(BARS.len() as u64 - 1) / most) as usize],
    };
    Some(columns.iter().map(bar).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparkline_shows_a_rare_tail_and_nothing_where_all_are_alike() {
        let mut histogram = Histogram::on_demand();
        assert_eq!(sparkline(&histogram), None);
        histogram.record_many(1_000_000, 1_000);
        assert_eq!(sparkline(&histogram), None);
        histogram.record_many(2_000_000, 500);
        histogram.record_many(100_000_000, 1);
        let line = sparkline(&histogram).expect("latencies differ");
        assert_eq!(line.chars().count(), COLUMNS);
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["█", "▄", "▁"]);
        assert!(line.starts_with('█') && line.ends_with('▁'), "{line}");
    }
}
