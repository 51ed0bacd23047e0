//! Connections that could not be opened for lack of open files or ports.

use crate::doctor::{Cure, Diagnosis, State};
use crate::limit::Limit;
use crate::notation::count;

use super::{Figures, Finding, Stage};

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let failed = figures.record.connections().failed;
    let (number, what) = match (failed.no_resources, failed.no_local_port) {
        (0, 0) => return None,
        (0, ports) => (ports, "local ports"),
        (files, _) => (files, "file descriptors or memory"),
    };
    let seen = format!(
        "{} connection attempts failed because this host ran out of {what}",
        count(number)
    );
    let found = match failed.no_resources {
        0 => Finding::met(of_ports(seen))
            .advising("give the clients more source addresses: --local-address"),
        _ => Finding::met(of_files(figures, seen)).advising("allow more open files: ulimit -n"),
    };
    Some(found.beside().limits(Stage::Generator, Limit::Generator))
}

fn of_files(figures: &Figures<'_>, seen: String) -> Diagnosis {
    let needed = 2 * figures.record.scenario.clients + 1_024;
    let matters = "clients without a socket send nothing, and the others send more in their place";
    Diagnosis::new("open files", State::Problem, seen, matters)
        .cure(Cure::open_files(needed))
        .cure(Cure::throng("--processes 2"))
}

fn of_ports(seen: String) -> Diagnosis {
    let matters = "each connection to one target needs a port of its own on each source address; \
                   closed ones keep theirs for 60 s";
    Diagnosis::new("source ports", State::Problem, seen, matters)
        .cure(Cure::throng("--local-address ADDRESS,ADDRESS,..."))
        .cure(Cure::sysctl("net.ipv4.ip_local_port_range", "1024 65535"))
        .cure(Cure::sysctl("net.ipv4.tcp_tw_reuse", 1))
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn too_few_descriptors_are_the_generators_limit() {
        let mut record = saturated();
        change_last(&mut record, |i| {
            i.counts.connections.failed.no_resources = 24
        });
        judged(
            &record,
            Limit::Generator,
            "24 connection attempts failed",
            "ulimit -n",
        );
    }

    #[test]
    fn files_and_ports_that_ran_out_have_their_commands() {
        let mut record = saturated();
        change_last(&mut record, |it| {
            it.counts.connections.failed.no_resources = 24
        });
        let seen = "24 connection attempts failed";
        told(&record, "open files").problem(seen, "prlimit --pid $$ --nofile=1044:1044");
        change_last(&mut record, |interval| {
            interval.counts.connections.failed.no_resources = 0;
            interval.counts.connections.failed.no_local_port = 24;
        });
        told(&record, "source ports").problem("local ports", "--local-address");
        told(&record, "source ports").problem("local ports", "tcp_tw_reuse=1");
    }
}
