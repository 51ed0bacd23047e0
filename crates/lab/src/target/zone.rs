//! What a server serves: a zone, generated or from a file, and the questions about it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use super::Expectation;

/// Questions about a zone from a file, at most.
const QUESTIONS_MAX: usize = 1_000_000;

/// Names that are generated, at most.
const RECORDS_MAX: u32 = 10_000_000;

/// A zone to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The apex in presentation format with the final dot, `example.test.`.
    pub origin: String,
    /// The zone in master file format (RFC 1035, section 5); must hold an SOA RR at the apex.
    pub text: String,
}

impl Zone {
    /// `lab.test.` with so many names, `test-record-1` and so on, each with one A RR of that TTL.
    pub fn with_records(records: u32, ttl_s: u32) -> Zone {
        let mut text = format!(
            "$ORIGIN lab.test.\n$TTL {ttl_s}\n@ IN SOA ns hostmaster 1 3600 600 86400 1\n\
             @ IN NS ns\nns IN A 127.0.0.1\n"
        );
        for number in 1..=records {
            let last = (number - 1) % 254 + 1;
            // Writing to a String does not fail.
            let _ = writeln!(text, "test-record-{number} IN A 192.0.2.{last}");
        }
        Zone {
            origin: "lab.test.".to_owned(),
            text,
        }
    }
}

/// A zone, and what can be asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// The zone.
    pub zone: Zone,
    /// `name type` a line.
    pub questions: String,
}

impl Data {
    /// Reads `zone:1000,ttl=1s` (as many names, each with an A RR of that TTL), or
    /// `file:PATH,origin=example.test.` (a master file).
    ///
    /// # Errors
    /// It is neither, or the file cannot be read.
    pub fn parse(text: &str) -> anyhow::Result<Data> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut words = rest.split(',');
        let first = words.next().unwrap_or_default();
        let keys: Vec<(&str, &str)> = words
            .map(|word| word.split_once('=').unwrap_or((word, "")))
            .collect();
        match kind {
            "zone" => generated(first, &keys),
            "file" => from_file(Path::new(first), &keys),
            _ => anyhow::bail!(
                "`{text}` is no data\nhint: write zone:1000,ttl=1s or file:PATH,origin=ZONE"
            ),
        }
    }
}

fn generated(number: &str, keys: &[(&str, &str)]) -> anyhow::Result<Data> {
    let records = number
        .parse()
        .ok()
        .filter(|number| (1..=RECORDS_MAX).contains(number));
    let records = records.with_context(|| {
        format!("a zone of `{number}` names\nhint: give a number from 1 to {RECORDS_MAX}")
    })?;
    let mut ttl = Duration::from_secs(3_600);
    for (key, value) in keys {
        anyhow::ensure!(
            *key == "ttl",
            "a generated zone has no `{key}`\nhint: set ttl"
        );
        ttl = humantime::parse_duration(value)
            .with_context(|| format!("ttl: `{value}` is no time\nhint: write 1s, 5m or 1h"))?;
    }
    let ttl_s = u32::try_from(ttl.as_secs()).context("ttl: it is too long")?;
    let zone = Zone::with_records(records, ttl_s);
    let mut questions = String::new();
    for number in 1..=records {
        // Writing to a String does not fail.
        let _ = writeln!(questions, "test-record-{number}.{} A", zone.origin);
    }
    Ok(Data { zone, questions })
}

fn from_file(path: &Path, keys: &[(&str, &str)]) -> anyhow::Result<Data> {
    let hint = "hint: write file:PATH,origin=example.test.";
    let mut origin = None;
    for (key, value) in keys {
        anyhow::ensure!(*key == "origin", "a zone file has no `{key}`\n{hint}");
        origin = Some(format!("{}.", value.trim_end_matches('.')));
    }
    let origin = origin.with_context(|| format!("the origin of the zone is missing\n{hint}"))?;
    let text = fs::read_to_string(path)
        .with_context(|| format!("cannot read the zone file `{}`", path.display()))?;
    let zone = Zone { origin, text };
    let all = Expectation::sample(&zone, QUESTIONS_MAX)
        .with_context(|| format!("cannot read the zone file `{}`", path.display()))?;
    let questions = all.iter().map(|it| format!("{}\n", it.question));
    Ok(Data {
        questions: questions.collect(),
        zone,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_zone_has_a_question_for_each_name() {
        let data = Data::parse("zone:3,ttl=1s").unwrap();
        assert_eq!(data.zone, Zone::with_records(3, 1));
        let questions = data.questions;
        assert_eq!(questions.lines().count(), 3);
        assert!(questions.starts_with("test-record-1.lab.test. A\n"));
    }

    #[test]
    fn data_that_cannot_be_is_an_error_with_the_cure() {
        for (text, says) in [
            ("zones:3", "zone:1000"),
            ("zone:0", "from 1 to"),
            ("zone:3,tll=1s", "`tll`"),
            ("zone:3,ttl=often", "1h"),
            ("file:/no/such/zone", "origin"),
            ("file:/dev/null,origin=a.test", "no SOA record"),
            ("file:/no/such/zone,origin=a.test", "/no/such/zone"),
        ] {
            let error = format!("{:#}", Data::parse(text).unwrap_err());
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
