//! A histogram in JSON: compact, self-describing, and refused when it does not add up.
//!
//! `buckets` is flat: index of the first non-empty bucket, its count, distance to the next
//! non-empty bucket, its count, and so on. Sums may exceed what JSON readers keep exactly (2^53)
//! and are therefore decimal strings. `min_ns` and `max_ns` are null without values.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{BUCKETS, Histogram, bucket_bounds, bucket_index};

/// Names the layout: buckets per power of two, unit, end of range. Histograms of another layout
/// cannot be merged with these and are refused.
pub const LAYOUT: &str = "log-linear-128-ns-2^36";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Json {
    layout: Cow<'static, str>,
    count: u64,
    sum_ns: String,
    sum_squares_ns2: String,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    overflow: u64,
    buckets: Vec<u64>,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut buckets = Vec::new();
        let mut previous = 0;
        for (index, count) in self.occupied() {
            buckets.push((index - previous) as u64);
            buckets.push(count);
            previous = index;
        }
        let json = Json {
            layout: Cow::Borrowed(LAYOUT),
            count: self.count,
            sum_ns: self.sum_ns.to_string(),
            sum_squares_ns2: self.sum_squares_ns2.to_string(),
            min_ns: self.min_ns(),
            max_ns: self.max_ns(),
            overflow: self.overflow,
            buckets,
        };
        json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?;
        read(&json).map_err(serde::de::Error::custom)
    }
}

/// The histogram that `json` describes, held in its used range only.
fn read(json: &Json) -> Result<Histogram, String> {
    if json.layout != LAYOUT {
        return Err(format!(
            "histogram layout is `{}`, this binary knows `{LAYOUT}` only",
            json.layout
        ));
    }
    let mut histogram = read_buckets(&json.buckets)?;
    let in_buckets = histogram.count;
    if in_buckets.checked_add(json.overflow) != Some(json.count) {
        return Err(format!(
            "histogram: {in_buckets} values in buckets and {} in overflow do not add up to {}",
            json.overflow, json.count
        ));
    }
    histogram.count = json.count;
    histogram.overflow = json.overflow;
    histogram.sum_ns = read_sum("sum_ns", &json.sum_ns)?;
    histogram.sum_squares_ns2 = read_sum("sum_squares_ns2", &json.sum_squares_ns2)?;
    match (json.count, json.min_ns, json.max_ns) {
        (0, None, None) => check_empty(&histogram)?,
        (1.., Some(min), Some(max)) => {
            histogram.min_ns = min;
            histogram.max_ns = max;
            check_bounds(&histogram)?;
        }
        _ => return Err("histogram: min_ns and max_ns are null exactly when count is 0".into()),
    }
    Ok(histogram)
}

/// The buckets with their counts; `count` is their sum, and `min` and `max` enclose them.
fn read_buckets(flat: &[u64]) -> Result<Histogram, String> {
    let (pairs, rest) = flat.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("histogram: buckets are pairs of index distance and count".into());
    }
    let mut histogram = Histogram::unallocated();
    let mut index = 0_u64;
    for (position, &[distance, count]) in pairs.iter().enumerate() {
        if count == 0 || (distance == 0 && position > 0) {
            return Err("histogram: buckets are not ascending, or one of them is empty".into());
        }
        index = index.saturating_add(distance);
        if index >= BUCKETS as u64 {
            return Err(format!(
                "histogram: bucket {index} is out of range, the last one is {}",
                BUCKETS - 1
            ));
        }
        let bucket = index as usize;
        histogram.cover(bucket..bucket + 1);
        histogram.buckets[bucket - histogram.first] = count;
        let sum = histogram.count.checked_add(count);
        histogram.count = sum.ok_or("histogram: the counts exceed 2^64")?;
    }
    Ok(histogram)
}

fn read_sum(field: &str, text: &str) -> Result<u128, String> {
    let all_digits = !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
    let number = all_digits.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| format!("histogram: {field} `{text}` is not a 128-bit decimal number"))
}

fn check_empty(histogram: &Histogram) -> Result<(), String> {
    if histogram.sum_ns != 0 || histogram.sum_squares_ns2 != 0 {
        return Err("histogram: no values, but a sum".into());
    }
    Ok(())
}

/// `min` and `max` lie in the outermost buckets, and the sum between the two.
fn check_bounds(histogram: &Histogram) -> Result<(), String> {
    let (min, max) = (histogram.min_ns, histogram.max_ns);
    let held = histogram.buckets.iter().filter(|&&count| count > 0).count();
    let last = histogram.first + histogram.buckets.len().saturating_sub(1);
    let lowest = if held > 0 {
        bucket_index(min) == histogram.first
    } else {
        bucket_index(min) >= BUCKETS
    };
    let highest = if histogram.overflow > 0 {
        bucket_index(max) >= BUCKETS
    } else {
        bucket_index(max) == last
    };
    if min > max || !lowest || !highest {
        return Err(format!(
            "histogram: min_ns {min} and max_ns {max} are not in the outermost buckets"
        ));
    }
    let (low_sum, high_sum) = sum_bounds(histogram);
    if histogram.sum_ns < low_sum || histogram.sum_ns > high_sum {
        return Err(format!(
            "histogram: sum_ns {} cannot come from its buckets",
            histogram.sum_ns
        ));
    }
    Ok(())
}

/// The least and the greatest sum that the buckets allow.
fn sum_bounds(histogram: &Histogram) -> (u128, u128) {
    let overflow = u128::from(histogram.overflow);
    let mut low = overflow << super::RANGE_BITS;
    let mut high = overflow * u128::from(histogram.max_ns);
    let buckets = histogram.buckets.iter().enumerate();
    for (offset, &count) in buckets.filter(|(_, count)| **count > 0) {
        let (bucket_low, bucket_high) = bucket_bounds(histogram.first + offset);
        low += u128::from(bucket_low) * u128::from(count);
        high += u128::from(bucket_high) * u128::from(count);
    }
    (low, high)
}

impl JsonSchema for Histogram {
    fn schema_name() -> Cow<'static, str> {
        "Histogram".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let count = || json_schema!({ "type": "integer", "minimum": 0 });
        let bound = || json_schema!({ "type": ["integer", "null"], "minimum": 0 });
        let sum = || json_schema!({ "type": "string", "pattern": "^[0-9]{1,39}$" });
        json_schema!({
            "type": "object",
            "description": "A latency distribution in nanoseconds. Below 128 every value is its \
                own bucket; above, bucket i holds the 2^s values from (128 + i mod 128) * 2^s, \
                where s = floor(i / 128) - 1. Values from 2^36 are in overflow.",
            "properties": {
                "layout": { "const": LAYOUT },
                "count": count(),
                "sum_ns": sum(),
                "sum_squares_ns2": sum(),
                "min_ns": bound(),
                "max_ns": bound(),
                "overflow": count(),
                "buckets": {
                    "type": "array",
                    "description": "Index of the first non-empty bucket, its count, distance to \
                        the next non-empty bucket, its count, and so on.",
                    "items": count(),
                },
            },
            "required": [
                "layout", "count", "sum_ns", "sum_squares_ns2", "min_ns", "max_ns", "overflow",
                "buckets",
            ],
            "additionalProperties": false,
        })
    }
}
