//! Flows that the firewall of this host refused.

use crate::doctor::{Cure, Diagnosis, State};
use crate::notation::counted;

use super::{Figures, Finding};

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let network = &figures.record.network;
    let counter = |name| network.kernel_counter(name);
    let refused = counter("Conntrack.Dropped") + counter("Conntrack.InsertFailed");
    if refused == 0 {
        return None;
    }
    let seen = format!(
        "conntrack of this host refused {}: its table was full, or two flows collided in it",
        counted(refused, "new flow")
    );
    let matters = "the first packet of a refused flow is dropped: a query without response, or a \
                   connection that takes a second longer";
    let diagnosis = Diagnosis::new("conntrack", State::Problem, seen, matters)
        .cure(larger(figures, "net.netfilter.nf_conntrack_max", 1 << 20))
        .cure(Cure::untracked("OUTPUT", "dport"))
        .cure(Cure::untracked("PREROUTING", "sport"));
    Some(Finding::met(diagnosis))
}

/// Sets a kernel parameter to four times what it was during the run, at least to `least`.
pub(super) fn larger(figures: &Figures<'_>, name: &str, least: u64) -> Cure {
    let hosts = figures.record.hosts.iter();
    let values = hosts.filter_map(|host| host.sysctls.get(name)?.parse::<u64>().ok());
    Cure::sysctl(name, (4 * values.max().unwrap_or(0)).max(least))
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn flows_that_conntrack_refused_are_named() {
        let mut record = saturated();
        record.network.kernel.insert("Conntrack.Dropped".into(), 5);
        let rule = "--dport 53 -j NOTRACK";
        told(&record, "conntrack").problem("refused 5 new flows", rule);
        told(&record, "conntrack").problem("", "nf_conntrack_max=1048576");
    }
}
