//! Connections that could not be opened for lack of open files or ports.

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
