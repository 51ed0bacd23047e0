//! A zone signed with DNSSEC (RFC 4033 to 4035): one key for all of it, and NSEC.

use std::fs;
use std::time::Duration;

use anyhow::Context;
use domain::base::name::FlattenInto;
use domain::base::{Name, Record, Ttl};
use domain::rdata::ZoneRecordData;
use domain::zonefile::inplace::{Entry, Zonefile};

use super::Zone;
use super::control;
use super::folder::TempFolder;
use super::process::Program;

/// Bytes as the library reads them from a zone.
type Octets = bytes::Bytes;
type ZoneRecord = Record<Name<Octets>, ZoneRecordData<Octets, Name<Octets>>>;

/// Valid from an hour ago, because a resolver's clock may be slow, until after any experiment.
const VALID: [&str; 4] = ["-s", "now-3600", "-e", "now+7776000"];

/// The zone as a master file, signed with a new key (ECDSA P-256 with SHA-256, RFC 6605), by the
/// tools of BIND.
///
/// # Errors
/// The tools are not installed (the message names the package), or cannot sign the zone.
pub(super) fn sign(zone: &Zone) -> anyhow::Result<String> {
    let folder = TempFolder::new("signing")?;
    folder.write("zone.db", &zone.text)?;
    let tool = |name: &'static str, words: &[&str]| {
        let package = "bind9-utils";
        control::run_before(&folder, Program::Debian { name, package }, words)
    };
    let key = ["-q", "-a", "ECDSAP256SHA256", "-f", "KSK", &zone.origin];
    tool("dnssec-keygen", &key)?;
    // Signs the whole zone with all keys of the folder.
    let all = [
        "-q",
        "-S",
        "-z",
        "-o",
        &zone.origin,
        "-N",
        "keep",
        "-O",
        "full",
    ];
    let files = ["-f", "signed.db", "zone.db"];
    tool("dnssec-signzone", &[&all[..], &VALID, &files].concat())?;
    fs::read_to_string(folder.path().join("signed.db")).context("the signed zone is not there")
}

/// The greatest TTL of a zone, for which a cache may keep old signatures.
///
/// # Errors
/// It cannot be read.
pub(super) fn ttl_max(zone: &Zone) -> anyhow::Result<Duration> {
    let records = read(zone)?;
    let greatest = records.iter().map(Record::ttl).max();
    Ok(greatest.unwrap_or(Ttl::ZERO).into_duration())
}

fn read(zone: &Zone) -> anyhow::Result<Vec<ZoneRecord>> {
    let mut file = Zonefile::from(zone.text.as_str());
    file.set_origin(zone.origin.parse()?);
    let mut records = Vec::new();
    while let Some(entry) = file.next_entry()? {
        if let Entry::Record(record) = entry {
            records.push(record.flatten_into());
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_the_zone_answers_for_is_signed_and_nothing_that_it_delegates() {
        let mut zone = Zone::with_records(3, 60);
        zone.text
            .push_str("child IN NS ns.child\nns.child IN A 127.0.0.1\n");
        let text = sign(&zone).unwrap();
        // Owner, TTL, class, type, and the type that a signature covers.
        let signed = |owner: &str, covered: &str| {
            let lines = text.lines().map(|line| line.split_ascii_whitespace());
            let is_one = |words: &Vec<&str>| {
                words.first().is_some_and(|it| it.ends_with(owner))
                    && words.get(3..5) == Some(&["RRSIG", covered])
            };
            lines.map(Iterator::collect).filter(is_one).count()
        };
        for covered in ["SOA", "NS", "DNSKEY"] {
            assert_eq!(signed("lab.test.", covered), 1, "{covered}: {text}");
        }
        // Three names and the name server; glue and the delegation itself are not.
        assert_eq!(signed("lab.test.", "A"), 4, "{text}");
        assert_eq!(signed("child.lab.test.", "NSEC"), 1, "{text}");
        assert_eq!(signed("child.lab.test.", "A"), 0, "{text}");
        assert!(zone_of(text).is_signed().unwrap());
        assert!(!zone.is_signed().unwrap());
    }

    fn zone_of(text: String) -> Zone {
        Zone {
            origin: "lab.test.".to_owned(),
            text,
        }
    }
}
