use measure::record::Agent;
use measure::{Interval, Transport, judge};

use super::*;
use crate::example;

/// A record that is another one, changed and judged again.
fn changed(mut record: RunRecord, change: impl FnOnce(&mut RunRecord)) -> RunRecord {
    change(&mut record);
    record.verdict = judge(&record);
    record
}

fn healthy() -> RunRecord {
    changed(example::udp_self_test(), |record| {
        record.self_test = false;
        let rcodes = &mut record.total.counts.rcodes.by_rcode;
        rcodes[0] += std::mem::take(&mut rcodes[2]);
    })
}

fn generator_limited() -> RunRecord {
    changed(example::full(Transport::Udp, 500_000), |record| {
        record.workers[0].cpu_ns = record.workers[0].wall_ns;
    })
}

fn without_response() -> RunRecord {
    changed(healthy(), |record| {
        let mut interval = Interval {
            end_ns: 2_000_000_000,
            ..Interval::default()
        };
        let counts = &mut interval.counts;
        (counts.offered, counts.sent, counts.timeouts) = (10_000, 10_000, 10_000);
        record.intervals = vec![interval.clone()];
        record.total = interval;
        record.responses_in_window = 0;
    })
}

fn servfail() -> RunRecord {
    changed(healthy(), |record| {
        let counts = &mut record.total.counts;
        let responses = counts.responses;
        counts.rcodes.by_rcode = Default::default();
        counts.rcodes.record_many(2, responses - 4_000);
        counts.rcodes.record_many(5, 4_000);
        counts.truncated = 12;
    })
}

fn several_groups() -> RunRecord {
    changed(example::dot(), |record| {
        for number in 2..=9 {
            let mut group = record.groups[0].clone();
            group.name = format!("clients of site {number}");
            record.groups.push(group);
        }
    })
}

fn several_agents() -> RunRecord {
    changed(healthy(), |record| {
        record.agents = vec![Agent::default(); 3];
        for (agent, name) in record.agents.iter_mut().zip(["fra1", "ams1", "sin1"]) {
            agent.name = Some(name.into());
        }
        record.agents[2].limited_by = Some("worker out of CPU".into());
        (record.agent_count, record.generators) = (3, 3);
    })
}

fn simulated_and_lost_its_target() -> RunRecord {
    changed(healthy(), |record| {
        record.driver = DriverKind::Sim;
        record.ended_by = EndedBy::TargetGone;
    })
}

fn tcp() -> RunRecord {
    example::full(Transport::Tcp, 20_000)
}

/// Every request got HTTP 404.
fn wrong_path() -> RunRecord {
    changed(example::doh2(), |record| {
        let mut interval = Interval {
            end_ns: 2_000_000_000,
            ..Interval::default()
        };
        let counts = &mut interval.counts;
        (counts.offered, counts.sent) = (1_000, 1_000);
        let ended = &mut counts.exchange_failures;
        ended.http_status.record_many(404, 1_000);
        record.intervals = vec![interval.clone()];
        record.total = interval;
        record.responses_in_window = 0;
    })
}

/// A kind of run, what its result reads like, and how that begins.
type Case = (fn() -> RunRecord, &'static str, &'static str);

macro_rules! case {
    ($record:expr, $file:literal, $begin:literal) => {
        ($record, include_str!(concat!("expected/", $file)), $begin)
    };
}

fn cases() -> Vec<Case> {
    vec![
        case!(
            healthy,
            "healthy.txt",
            "Limit: rate, the server kept up. 20,000 qps "
        ),
        case!(
            example::udp_self_test,
            "self_test.txt",
            "Self-test. Limit: rate, "
        ),
        case!(
            example::doh2,
            "server.txt",
            "Limit: server. 1,000 qps answered, 2.91 % lost, "
        ),
        case!(
            example::dot,
            "interrupted.txt",
            "Interrupted. Limit: outstanding, "
        ),
        case!(
            example::observed,
            "observed.txt",
            "Interrupted. Limit: outstanding, "
        ),
        case!(
            generator_limited,
            "generator.txt",
            "Limit: generator, not the server. "
        ),
        case!(
            without_response,
            "no_response.txt",
            "Undecided: limit unknown. No response to 10,000"
        ),
        case!(
            wrong_path,
            "wrong_path.txt",
            "Undecided: limit unknown. HTTP 404 at /dns-query, 1,000 of 1,000 queries; doh2 to "
        ),
        case!(servfail, "servfail.txt", "Undecided: limit unknown. "),
        case!(several_groups, "groups.txt", "Interrupted. "),
        case!(several_agents, "agents.txt", "Limit: rate, "),
        case!(
            simulated_and_lost_its_target,
            "simulation.txt",
            "Target gone. SIMULATION. "
        ),
        case!(tcp, "tcp.txt", "Limit: server. 20,000 qps "),
        case!(
            example::without_queries,
            "no_queries.txt",
            "Limit: server. 494.0 connections a second "
        ),
    ]
}

#[test]
fn each_kind_of_run_reads_as_expected() {
    for (record, expected, _) in cases() {
        let text = render(&record(), Some("run.json"));
        for (number, (line, wanted)) in text.lines().zip(expected.lines()).enumerate() {
            assert_eq!(line, wanted, "line {} of\n{text}", number + 1);
        }
        assert_eq!(text, expected);
    }
}

#[test]
fn every_result_fits_and_begins_with_its_verdict() {
    let long = "a ".repeat(400) + &"b".repeat(400);
    for (record, _, begin) in cases() {
        let mut record = record();
        for times in 0..2 {
            for file in [None, Some("run.json"), Some(long.as_str())] {
                let text = render(&record, file);
                let columns = text.lines().map(|line| line.chars().count()).max();
                assert!(columns <= Some(COLUMNS_MAX), "{text}");
                assert!(text.lines().count() <= LINES_MAX, "{text}");
                let headline = record.verdict.limit.headline();
                assert!(
                    text.lines().next().is_some_and(|it| it.contains(headline)),
                    "{text}"
                );
                assert!(times > 0 || text.starts_with(begin), "{text}");
            }
            // The same with texts of any length.
            let evidence = (0..40).map(|number| format!("{number} {long}"));
            record.verdict.evidence.extend(evidence);
            record.verdict.evidence[0].push_str(&long);
            record.warnings.push(long.clone());
            record.scenario.server_name = Some(long.clone());
            record.scenario.questions.source = long.clone();
        }
    }
}

/// The words between tags, the bars of a table, line ends and two blanks, with a bar after each.
fn cells(form: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for letter in form.chars() {
        match letter {
            '<' => is_tag = true,
            '>' => {
                is_tag = false;
                text.push_str("  ");
            }
            _ if is_tag => {}
            '|' | '\n' => text.push_str("  "),
            other => text.push(other),
        }
    }
    let words = text.split("  ").map(str::trim).filter(|it| !it.is_empty());
    words.map(|it| format!("{it}|")).collect()
}

/// The rows of a report that say what the summary, in cells, says of a run.
fn rows(summary: &str) -> Vec<String> {
    let cells: Vec<&str> = summary.split('|').collect();
    let after = |name: &str| &cells[cells.iter().position(|it| *it == name).unwrap() + 1..];
    let (offered, answered) = (after("offered"), after("answered"));
    let (lost, latency) = (after("lost"), after("latency"));
    let rate = offered[2].strip_suffix(" qps").unwrap();
    let mut rows = vec![
        format!("offered|{}|100 %|{rate}|", offered[0]),
        format!("completed|{}|{}|", answered[0], answered[2]),
        format!("Achieved|{}|", answered[1]),
        format!("lost|{}|{}|", lost[0], lost[1]),
    ];
    rows.extend(latency[..5].iter().map(|it| it.replacen(' ', "|", 1) + "|"));
    rows
}

#[test]
fn figures_read_the_same_in_summary_and_report() {
    let records = [
        healthy(),
        generator_limited(),
        tcp(),
        example::dot(),
        example::doh2(),
    ];
    for record in records {
        let rows = rows(&cells(&render(&record, None)));
        assert_eq!(rows.len(), 9, "{rows:?}");
        let document = crate::run::document(&record, "run.json");
        for form in [
            crate::plain::markdown(&document),
            crate::html::render(&document),
        ] {
            // A tile has a tag between figure and unit.
            let cells = cells(&form).replace("|qps|", " qps|");
            for row in &rows {
                assert!(cells.contains(row), "no {row} in {cells}");
            }
        }
    }
}

#[test]
fn remarks_left_out_are_counted() {
    let record = changed(healthy(), |_| {});
    assert!(!render(&record, None).contains("more remark"));
    let mut record = record;
    record.warnings = (0..30).map(|number| format!("warning {number}")).collect();
    let text = render(&record, None);
    let shown = text
        .lines()
        .filter(|line| line.starts_with("  - warning "))
        .count();
    let rest = format!("\n  {} more remarks: --details\n", 30 - shown);
    assert!(shown > 3 && text.contains(&rest), "{text}");
    assert_eq!(text.lines().count(), LINES_MAX);
}

#[test]
fn clients_that_differ_and_drift_are_remarks() {
    let mut record = healthy();
    let experience = record.groups[0].experience.as_mut().expect("has clients");
    experience.latency.p99.record(60_000_000);
    let text = render(&record, None);
    let remark = "  - clients differ: p99 ";
    assert!(text.contains(remark), "{text}");
    assert!(!render(&healthy(), None).contains(remark));
}
