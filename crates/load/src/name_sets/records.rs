//! `test-record-1..N.<zone>`: N names of one zone with one A record each.
//!
//! The texts: a names file, the zone as a file (RFC 1035, section 5) for an authoritative server,
//! as dynamic updates (RFC 2136) for dnsperf's and Throng's `-u` and for `nsupdate`, and as
//! commands for FreeIPA.

use std::fmt;
use std::net::Ipv4Addr;

use proto::name;

use super::check_ttl;
use crate::plan_error::PlanError;

/// The most records of a set: the addresses of 10.0.0.0/8 but its first and last.
pub const RECORDS_MAX: u32 = (1 << 24) - 2;

/// Records in one message of [`RecordSet::write_nsupdate`]: as many as safely fit.
const NSUPDATE_BATCH: u32 = 200;

/// A zone of generated A records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordSet {
    zone: String,
    count: u32,
    ttl_s: u32,
}

impl RecordSet {
    /// The set of `count` records in `zone`, each with a TTL of `ttl_s` seconds.
    ///
    /// # Errors
    /// The zone is no host name below the root or too long for its records, the count is not from
    /// 1 to [`RECORDS_MAX`], or the TTL is above 2^31 - 1.
    pub fn new(zone: &str, count: u32, ttl_s: u32) -> Result<Self, PlanError> {
        check_ttl(ttl_s)?;
        if !(1..=RECORDS_MAX).contains(&count) {
            let what = format!("{count} records cannot be made");
            let hint = format!("give a number from 1 to {RECORDS_MAX}");
            return Err(PlanError::new("count", what, hint));
        }
        let set = RecordSet {
            zone: zone.strip_suffix('.').unwrap_or(zone).to_owned(),
            count,
            ttl_s,
        };
        // The zone goes into shell commands: letters, digits and hyphens need no quoting there.
        let is_host_name = set
            .zone
            .bytes()
            .all(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_' | b'.'));
        let longest = format!("{}.{}", owner(RECORDS_MAX), set.zone);
        if !is_host_name || set.zone.is_empty() || name::parse(&longest, &mut Vec::new()).is_err() {
            let what = format!("`{zone}` cannot be the zone of generated records");
            let hint = "give a name of letters, digits, hyphens and dots, such as example.test";
            return Err(PlanError::new("zone", what, hint));
        }
        Ok(set)
    }

    /// The owner name, relative to the zone, and the address of each record.
    fn records(&self) -> impl Iterator<Item = (String, Ipv4Addr)> {
        (1..=self.count).map(|number| (owner(number), address(number)))
    }

    /// Writes the names file: one question of type A for each record.
    ///
    /// # Errors
    /// `out` failed, as with all writers here.
    pub fn write_names(&self, out: &mut impl fmt::Write) -> fmt::Result {
        for (owner, _) in self.records() {
            writeln!(out, "{owner}.{} A", self.zone)?;
        }
        Ok(())
    }

    /// Writes the zone file, with SOA and NS records.
    ///
    /// # Errors
    /// `out` failed.
    pub fn write_zone(&self, out: &mut impl fmt::Write) -> fmt::Result {
        let RecordSet { zone, ttl_s, .. } = self;
        writeln!(out, "$ORIGIN {zone}.")?;
        writeln!(out, "$TTL {ttl_s}")?;
        writeln!(out, "@ IN SOA ns1 hostmaster 1 3600 600 86400 {ttl_s}")?;
        writeln!(out, "@ IN NS ns1")?;
        writeln!(out, "ns1 IN A 192.0.2.1")?;
        for (owner, address) in self.records() {
            writeln!(out, "{owner} IN A {address}")?;
        }
        Ok(())
    }

    /// Writes the records as an [update file](crate::update_file): one message for each.
    ///
    /// # Errors
    /// `out` failed.
    pub fn write_updates(&self, out: &mut impl fmt::Write) -> fmt::Result {
        let RecordSet { zone, ttl_s, .. } = self;
        for (owner, address) in self.records() {
            writeln!(out, "{zone}.\nadd {owner} {ttl_s} A {address}\nsend")?;
        }
        Ok(())
    }

    /// Writes the records as input of `nsupdate`, in few messages.
    ///
    /// # Errors
    /// `out` failed.
    pub fn write_nsupdate(&self, out: &mut impl fmt::Write) -> fmt::Result {
        let RecordSet { zone, ttl_s, .. } = self;
        for (index, (owner, address)) in (0..).zip(self.records()) {
            if index % NSUPDATE_BATCH == 0 {
                writeln!(out, "zone {zone}.")?;
            }
            writeln!(out, "update add {owner}.{zone}. {ttl_s} A {address}")?;
            if (index + 1) % NSUPDATE_BATCH == 0 || index + 1 == self.count {
                writeln!(out, "send")?;
            }
        }
        Ok(())
    }

    /// Writes shell commands that add the records to a FreeIPA zone that exists.
    ///
    /// # Errors
    /// `out` failed.
    pub fn write_ipa(&self, out: &mut impl fmt::Write) -> fmt::Result {
        let RecordSet { zone, ttl_s, .. } = self;
        for (owner, address) in self.records() {
            writeln!(
                out,
                "ipa dnsrecord-add {zone} {owner} --a-rec={address} --ttl={ttl_s}"
            )?;
        }
        Ok(())
    }
}

fn owner(number: u32) -> String {
    format!("test-record-{number}")
}

/// The address of record `number`: 10.0.0.0 plus that number.
fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + number)
}
