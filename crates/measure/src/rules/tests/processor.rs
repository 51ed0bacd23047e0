//! Workers without CPU time to spare: generator-bound results read as limits of the server.

use crate::rules::situations::*;

#[test]
fn busy_worker_in_closed_loop_is_the_generators_limit() {
    let mut record = saturated();
    busy(&mut record, 0.985);
    let evidence = "worker 0 used 98.5 % of its CPU: this tool, not the target, set the rate";
    judged(
        &record,
        Limit::Generator,
        evidence,
        "give the generator another worker: --workers 2",
    );
    record.hosts[0].cores = Some(1);
    judged(
        &record,
        Limit::Generator,
        evidence,
        "run from a second machine",
    );
}

#[test]
fn worker_that_waits_for_its_cpu_is_the_generators_limit() {
    let mut record = saturated();
    busy(&mut record, 0.5);
    record.workers[0].cpu_wait_ns = Some(48 * record.measured_ns / 100);
    let evidence = "worker 0 waited for its CPU 48.0 % of the time: another process uses this CPU";
    judged(&record, Limit::Generator, evidence, "--cpus");
}

#[test]
fn closed_loop_worker_that_often_waits_for_its_cpu_is_the_generators_limit_though_not_busy() {
    let mut record = saturated();
    busy(&mut record, 0.5);
    record.workers[0].cpu_wait_ns = Some(12 * record.measured_ns / 100);
    let evidence = "worker 0 waited for its CPU 12.0 % of the time: another process uses this CPU";
    judged(&record, Limit::Generator, evidence, "--cpus");
}

#[test]
fn open_loop_worker_that_is_late_and_busy_is_the_generators_limit() {
    let mut record = in_time(10_000.0);
    late(&mut record, 4 * MS);
    busy(&mut record, 0.92);
    let evidence = "worker 0 used 92.0 % of its CPU and queries were sent up to 4.00";
    judged(&record, Limit::Generator, evidence, "--workers 2");
}

#[test]
fn busy_open_loop_worker_that_is_on_time_is_not_the_limit() {
    let mut record = in_time(10_000.0);
    busy(&mut record, 0.99);
    judged(
        &record,
        Limit::Rate,
        "100 % of the queries offered at 10,000 qps",
        "raise --rate",
    );
}

#[test]
fn a_worker_that_waited_for_its_cpu_is_not_said_to_have_had_enough() {
    let mut record = in_time(10_000.0);
    late(&mut record, 4 * MS);
    busy(&mut record, 0.3);
    record.workers[0].cpu_wait_ns = Some(34 * record.measured_ns / 100);
    let evidence = "worker 0 waited for its CPU 34.0 % of the time: another process uses this CPU";
    judged(&record, Limit::Generator, evidence, "--cpus");
    // The share is never more than all of the time.
    record.workers[0].cpu_wait_ns = Some(2 * record.measured_ns);
    judged(&record, Limit::Generator, "100.0 % of the time", "--cpus");
}

#[test]
fn busy_worker_with_short_lived_connections_is_told_from_one_with_queries() {
    let mut record = churn(&[(90 * MS, 1_000)]);
    busy(&mut record, 0.985);
    let evidence = "worker 0 used 98.5 % of its CPU, with 1,000 handshakes a second beside \
                    the queries: this tool, not the target, set the rate";
    judged(&record, Limit::Generator, evidence, "--workers 2");
}

#[test]
fn a_worker_that_is_nearly_busy_is_warned_of() {
    let mut record = saturated();
    busy(&mut record, 0.99);
    let topic = "generator's CPU";
    told(&record, topic).problem("worker 0 used 99.0 % of its CPU", "--workers 2");
    busy(&mut record, 0.92);
    told(&record, topic).warning("worker 0 used 92.0 % of its CPU", "--workers 2");
}
