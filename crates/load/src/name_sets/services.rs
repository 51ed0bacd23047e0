//! The names that Pods of a Kubernetes cluster look up: Services that exist, Services that do
//! not, and names of the Internet, all in the cluster domain `cluster.local`.
//!
//! The existing ones come as a zone file for an authoritative server or as Service manifests for
//! a cluster.

use std::fmt;
use std::net::Ipv4Addr;

use super::check_ttl;
use super::external::EXTERNAL_NAMES;
use crate::plan_error::PlanError;

/// The most services of each kind: all have addresses in 10.96.0.0/12.
pub const SERVICES_MAX: u32 = 1_000_000;

/// The namespace of the services, existing or not.
pub const NAMESPACE: &str = "coredns-services";

/// How many names of each kind there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceSet {
    /// Services that exist.
    pub existing: u32,
    /// Services that do not exist.
    pub missing: u32,
    /// Well-known names outside the cluster.
    pub external: u32,
    /// TTL in the zone file, in seconds.
    pub ttl_s: u32,
}

impl Default for ServiceSet {
    /// 500 existing, 500 missing, 100 external; a TTL of 5 s as CoreDNS gives to Services.
    fn default() -> Self {
        ServiceSet {
            existing: 500,
            missing: 500,
            external: 100,
            ttl_s: 5,
        }
    }
}

impl ServiceSet {
    /// Looks for numbers that cannot be had.
    ///
    /// # Errors
    /// More than [`SERVICES_MAX`] services, more external names than are built in (100), no name
    /// at all, or a TTL above 2^31 - 1.
    pub fn validate(&self) -> Result<(), PlanError> {
        check_ttl(self.ttl_s)?;
        let external_max = EXTERNAL_NAMES.len() as u32;
        let limits = [
            ("existing", self.existing, SERVICES_MAX),
            ("missing", self.missing, SERVICES_MAX),
            ("external", self.external, external_max),
        ];
        for (setting, number, number_max) in limits {
            if number > number_max {
                let what = format!("{number} such names cannot be made");
                let hint = format!("give at most {number_max}");
                return Err(PlanError::new(setting, what, hint));
            }
        }
        if self.existing == 0 && self.missing == 0 && self.external == 0 {
            let hint = "ask for at least one name of one kind";
            return Err(PlanError::new("existing", "no name of any kind", hint));
        }
        Ok(())
    }

    /// Writes the names file: questions of type A for existing, missing, then external names.
    ///
    /// # Errors
    /// `out` failed, as with all writers here.
    pub fn write_names(&self, out: &mut impl fmt::Write) -> fmt::Result {
        for number in 1..=self.existing {
            writeln!(out, "service-{number}.{NAMESPACE}.svc.cluster.local A")?;
        }
        for number in 1..=self.missing {
            writeln!(out, "missing-{number}.{NAMESPACE}.svc.cluster.local A")?;
        }
        for name in EXTERNAL_NAMES.iter().take(self.external as usize) {
            writeln!(out, "{name} A")?;
        }
        Ok(())
    }

    /// Writes a zone file of `cluster.local` that holds the existing services.
    ///
    /// # Errors
    /// `out` failed.
    pub fn write_zone(&self, out: &mut impl fmt::Write) -> fmt::Result {
        let ttl_s = self.ttl_s;
        writeln!(out, "$ORIGIN cluster.local.")?;
        writeln!(out, "$TTL {ttl_s}")?;
        writeln!(out, "@ IN SOA ns.dns hostmaster 1 7200 1800 86400 {ttl_s}")?;
        writeln!(out, "@ IN NS ns.dns")?;
        writeln!(out, "ns.dns IN A 10.96.0.10")?;
        for number in 1..=self.existing {
            let address = address(number);
            writeln!(out, "service-{number}.{NAMESPACE}.svc IN A {address}")?;
        }
        Ok(())
    }

    /// Writes manifests (YAML) of the namespace and of the existing services, for
    /// `kubectl apply -f`.
    ///
    /// # Errors
    /// `out` failed.
    pub fn write_manifests(&self, out: &mut impl fmt::Write) -> fmt::Result {
        writeln!(out, "apiVersion: v1\nkind: List\nitems:")?;
        writeln!(out, "- apiVersion: v1\n  kind: Namespace")?;
        writeln!(out, "  metadata:\n    name: {NAMESPACE}")?;
        for number in 1..=self.existing {
            writeln!(out, "- apiVersion: v1\n  kind: Service")?;
            writeln!(out, "  metadata:\n    name: service-{number}")?;
            writeln!(out, "    namespace: {NAMESPACE}")?;
            writeln!(out, "  spec:\n    type: ClusterIP")?;
            writeln!(out, "    ports:\n    - port: 80\n      protocol: TCP")?;
        }
        Ok(())
    }
}

/// The address of service `number`: 10.96.1.0 plus that number, clear of the API and DNS services.
fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 96, 1, 0).to_bits() + number)
}
