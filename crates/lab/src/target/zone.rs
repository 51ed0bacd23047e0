//! The zone of a server, generated or from a file, and the questions about it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use super::signing::sign;
use super::{Expectation, Signing};

/// Questions about a zone from a file, at most.
const QUESTIONS_MAX: usize = 1_000_000;

/// Names and delegations that are generated, at most.
const RECORDS_MAX: u32 = 10_000_000;
/// The same for a signed zone: a signature takes 50 us, and each server reads them all.
const SIGNED_MAX: u32 = 1_000_000;

/// A zone to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The apex in presentation format with the final dot, `example.test.`.
    pub origin: String,
    /// The zone in master file format (RFC 1035, section 5); must hold an SOA RR at the apex.
    pub text: String,
}

impl Zone {
    /// `lab.test.` with `records` names, `test-record-1` and so on, each with one A RR of that TTL.
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

    /// Adds delegations, `test-zone-1` and so on. Their name servers are on loopback, so that
    /// following a referral sends no query to other hosts.
    fn delegate(&mut self, delegations: u32) {
        for number in 1..=delegations {
            let child = format!("test-zone-{number}");
            // Writing to a String does not fail.
            let _ = writeln!(
                self.text,
                "{child} IN NS ns.{child}\nns.{child} IN A 127.0.0.1"
            );
        }
    }
}

/// A zone and its questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// The zone.
    pub zone: Zone,
    /// `name type` a line.
    pub questions: String,
}

impl Data {
    /// Reads `zone:1000,ttl=1s,delegations=10,signed` (this number of names, each with an A RR of
    /// that TTL, and delegations, signed), or `file:PATH,origin=example.test.` (a master file).
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
                "`{text}` is not data\nhint: write zone:1000,ttl=1s or file:PATH,origin=ZONE"
            ),
        }
    }
}

fn generated(number: &str, keys: &[(&str, &str)]) -> anyhow::Result<Data> {
    let of_names = number.parse().ok().filter(|number| *number >= 1);
    let records: u32 = of_names.with_context(|| {
        format!("a zone of `{number}` names\nhint: give a number from 1 to {RECORDS_MAX}")
    })?;
    let (mut ttl, mut delegations, mut is_signed) = (Duration::from_secs(3_600), 0, false);
    for (key, value) in keys {
        match *key {
            "ttl" => {
                ttl = humantime::parse_duration(value).with_context(|| {
                    format!("ttl: `{value}` is not a time\nhint: write 1s, 5m or 1h")
                })?;
            }
            "delegations" => {
                let number = value.parse().ok();
                delegations = number.with_context(|| {
                    format!("delegations: `{value}` is not a number\nhint: write delegations=10")
                })?;
            }
            "signed" if value.is_empty() => is_signed = true,
            _ => anyhow::bail!(
                "a generated zone has no `{}`\nhint: it has ttl=1s, delegations=10 and signed",
                [*key, *value].join("=").trim_end_matches('=')
            ),
        }
    }
    let most = if is_signed { SIGNED_MAX } else { RECORDS_MAX };
    anyhow::ensure!(
        records.saturating_add(delegations) <= most,
        "{records} names and {delegations} delegations\nhint: {} has at most {most} together",
        if is_signed { "a signed zone" } else { "a zone" }
    );
    let ttl_s = u32::try_from(ttl.as_secs()).context("ttl: it is too long")?;
    let mut zone = Zone::with_records(records, ttl_s);
    zone.delegate(delegations);
    if is_signed {
        zone.text = sign(&zone)?;
    }
    Ok(Data {
        questions: questions(&zone.origin, records, delegations),
        zone,
    })
}

/// One for each name, and those below delegations among them at even distances.
fn questions(origin: &str, records: u32, delegations: u32) -> String {
    let mut text = String::new();
    let mut delegation = 0;
    for number in 1..=records {
        // Writing to a String does not fail.
        let _ = writeln!(text, "test-record-{number}.{origin} A");
        let due = u64::from(number) * u64::from(delegations) / u64::from(records);
        while delegation < due {
            delegation += 1;
            let _ = writeln!(text, "www.test-zone-{delegation}.{origin} A");
        }
    }
    text
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
    let all = Expectation::sample(&zone, QUESTIONS_MAX, Signing::default())
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
    fn delegations_are_asked_below_them_and_answered_with_referrals() {
        let data = Data::parse("zone:5,delegations=2").unwrap();
        let asked: Vec<&str> = data.questions.lines().collect();
        assert_eq!(asked.len(), 7);
        assert_eq!(asked[3], "www.test-zone-1.lab.test. A");
        assert_eq!(asked[6], "www.test-zone-2.lab.test. A");
        let many = Data::parse("zone:2,delegations=7").unwrap();
        assert_eq!(many.questions.matches("www.test-zone-").count(), 7);
        let expected = Expectation::sample(&data.zone, 100, Signing::default()).unwrap();
        let referrals = expected.iter().filter(|it| it.is_referral());
        assert_eq!(referrals.count(), 2);
    }

    #[test]
    fn data_that_cannot_be_is_an_error_with_the_cure() {
        for (text, says) in [
            ("zones:3", "zone:1000"),
            ("zone:0", "from 1 to"),
            ("zone:10000001", "at most 10000000"),
            ("zone:1,delegations=10000000", "at most 10000000"),
            (
                "zone:1000000,delegations=1,signed",
                "a signed zone has at most 1000000",
            ),
            ("zone:3,tll=1s", "`tll=1s`"),
            ("zone:3,signed=no", "`signed=no`"),
            ("zone:3,delegations=few", "delegations=10"),
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
