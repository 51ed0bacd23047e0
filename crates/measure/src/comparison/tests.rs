use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::example::{SECOND, interval, record};
use crate::scenario::{Process, Transport};

/// A run of a second with `responses`, all of them after `latency_ns`.
fn run(transport: Transport, responses: u64, latency_ns: u64) -> RunRecord {
    let mut record = record(vec![interval(0, &[(latency_ns, responses)])]);
    record.scenario.transport = transport.into();
    record.verdict.limit = Limit::Server;
    record.verdict.evidence = vec!["queries queued at the target".into()];
    record
}

fn compare(records: &[RunRecord]) -> Comparison {
    let cells: Vec<Cell<'_>> = records
        .iter()
        .map(|record| Cell { record, file: None })
        .collect();
    Comparison::new(&cells).expect("has runs")
}

/// The figures of the Red Hat article's table: UDP, TCP, DoT.
fn red_hat() -> Vec<RunRecord> {
    vec![
        run(Transport::Udp, 305_000, 970_000),
        run(Transport::Tcp, 252_000, 3_000_000),
        run(Transport::Dot, 191_000, 3_700_000),
    ]
}

#[test]
fn red_hat_table_gives_the_costs_of_its_article() {
    let comparison = compare(&red_hat());
    let steps: Vec<(Transports, Transports)> =
        comparison.costs.iter().map(|it| (it.from, it.to)).collect();
    let [udp, tcp, dot] = [Transport::Udp, Transport::Tcp, Transport::Dot].map(Transports::One);
    assert_eq!(steps, [(udp, tcp), (tcp, dot), (udp, dot)]);
    let rates = comparison.costs.iter().filter_map(|it| it.achieved_qps);
    let rates: Vec<(f64, f64)> = rates
        .map(|it| (it.difference, it.percent.expect("has a rate").round()))
        .collect();
    let expected = [(-53_000.0, -17.0), (-61_000.0, -24.0), (-114_000.0, -37.0)];
    assert_eq!(rates, expected);
    let servers = comparison.costs[2].servers.expect("is known");
    assert!((servers - 305.0 / 191.0).abs() < 1e-9, "{servers}");
    let latency = comparison.costs[0].latency_p50_ns.expect("has a latency");
    assert_eq!(latency.percent.map(f64::round), Some(209.0));
    assert_eq!(comparison.costs[0].doubt, None);
    assert_eq!(comparison.costs[0].ranges_overlap, None);
}

#[test]
fn figures_of_several_runs_are_medians_with_the_least_and_the_greatest() {
    let rates = [90, 30, 60, 20];
    let mut records: Vec<RunRecord> = rates
        .iter()
        .map(|&rate| run(Transport::Udp, rate, 1_000_000 * rate))
        .collect();
    records.insert(1, run(Transport::Tcp, 50, 7));
    records.insert(3, run(Transport::Tcp, 95, 7));
    let comparison = compare(&records);
    let udp = &comparison.transports[0];
    let qps = [&udp.median, &udp.min, &udp.max].map(|it| it.achieved_qps);
    assert_eq!(qps, [45.0, 20.0, 90.0]);
    assert_eq!(udp.max.latency_mean_ns, Some(9e7));
    let positions: Vec<u64> = udp.runs.iter().map(|run| run.position).collect();
    assert_eq!(positions, [1, 3, 5, 6]);
    assert_eq!(comparison.costs[0].ranges_overlap, Some(true));
}

#[test]
fn factor_is_doubted_when_a_run_measured_something_else() {
    let mut records = red_hat();
    records[1].verdict.limit = Limit::Generator;
    let comparison = compare(&records);
    let doubt = Some("tcp measured the generator (1 of 1 run)".to_owned());
    assert_eq!(comparison.costs[0].doubt, doubt);
    assert_eq!(comparison.costs[1].doubt, doubt);
    assert_eq!(comparison.costs[2].doubt, None);
    let note = "tcp measured the generator or its host, not the target, in 1 of 1 run: left out \
                of the figures";
    assert!(
        comparison.notes.iter().any(|line| line == note),
        "{:?}",
        comparison.notes
    );
    let udp_to_tcp = &comparison.costs[0];
    assert_eq!((udp_to_tcp.achieved_qps, udp_to_tcp.servers), (None, None));
    let tcp = &comparison.transports[1].median;
    assert!(
        tcp.achieved_is_at_least && tcp.latency_p50_ns.is_none(),
        "{tcp:?}"
    );
    assert!(comparison.costs[2].servers.is_some());
}

#[test]
fn rate_that_was_asked_for_gives_no_factor() {
    let mut records = red_hat();
    for record in &mut records {
        record.verdict.limit = Limit::Rate;
        record.scenario.arrival = Arrival::Open {
            rate_qps: 1_000.0,
            process: Process::Constant,
            burst: 1,
        };
    }
    let comparison = compare(&records);
    assert!(comparison.costs.iter().all(|cost| cost.servers.is_none()));
    let doubt = comparison.costs[0].doubt.as_deref();
    let expected = "udp held the rate asked for (1 of 1 run), tcp held the rate asked for (1 of 1 \
                    run)";
    assert_eq!(doubt, Some(expected));
    assert!(
        !comparison
            .notes
            .iter()
            .any(|line| line.contains("closed loop"))
    );
}

#[test]
fn rate_that_was_given_and_not_reached_gives_no_factor_either() {
    let mut records = red_hat();
    for record in &mut records {
        record.scenario.arrival = Arrival::Clients {
            rate_qps: Some(400_000.0),
        };
    }
    let comparison = compare(&records);
    assert!(comparison.has_rate());
    for cost in &comparison.costs {
        assert_eq!(cost.servers, None);
        let doubt = cost.doubt.as_deref().expect("says why");
        assert!(doubt.starts_with("the rate was given"), "{doubt}");
    }
}

#[test]
fn document_fits_its_schema() {
    let json: serde_json::Value =
        serde_json::from_str(&compare(&red_hat()).to_json_pretty()).expect("is JSON");
    let offences = crate::conforms::offences(&Comparison::json_schema(), &json);
    assert_eq!(offences, Vec::<String>::new());
}

#[test]
fn full_closed_loop_is_said_to_make_latency_and_rate_one() {
    let full = compare(&[run(Transport::Udp, 1_000, SECOND / 10)]);
    assert!(
        full.notes[0].contains("mean latency is outstanding / rate"),
        "{:?}",
        full.notes
    );
    let empty = compare(&[run(Transport::Udp, 1_000, SECOND / 100)]);
    assert!(
        !empty.notes[0].contains("outstanding / rate"),
        "{:?}",
        empty.notes
    );
}

#[test]
fn transport_without_a_response_has_no_latency_and_no_factor() {
    let comparison = compare(&[run(Transport::Udp, 100, 5), run(Transport::Doq, 0, 5)]);
    let cost = &comparison.costs[0];
    assert_eq!((cost.servers, cost.latency_mean_ns), (None, None));
    let change = cost.achieved_qps.expect("both rates are known");
    assert_eq!(change.percent, Some(-100.0));
    assert_eq!(Comparison::new(&[]), None);
}

proptest! {
    #[test]
    fn comparison_survives_json(rates in vec(1_u64..1_000, 1..6)) {
        let transports = [Transport::Udp, Transport::Doh2, Transport::Doq];
        let records: Vec<RunRecord> = rates
            .iter()
            .zip(transports.into_iter().cycle())
            .map(|(&rate, transport)| run(transport, rate, 1_000 + rate))
            .collect();
        let comparison = compare(&records);
        let back: Comparison =
            serde_json::from_str(&comparison.to_json_pretty()).expect("reads its own output");
        prop_assert_eq!(back, comparison);
    }
}
