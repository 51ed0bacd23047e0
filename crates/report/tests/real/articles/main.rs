//! The tables and charts of four published articles on DNS performance, from records with the
//! figures that they print; and the remarks that they miss.
//!
//! The pages are left in the folder for temporary files of the build, to be looked at.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod browser;
mod records;

use std::path::PathBuf;

use measure::{Limit, RunRecord};
use records::Printed;
use report::{Collection, Source, html, plain, several};

/// The runs as they would be in a folder.
fn collection(runs: &[Printed]) -> Collection {
    let sources = runs.iter().enumerate();
    let sources = sources.map(|(at, run)| Source::new(format!("{:02}.json", at + 1), run.record()));
    Collection::new(sources.collect()).unwrap()
}

#[test]
fn pages_are_whole_in_a_browser_on_any_screen() {
    for (name, runs) in [
        ("transports-page", records::transports()),
        ("udp-page", records::transports()[..1].to_vec()),
        (
            "clients-page",
            records::by_clients(&[("Unbound", 716_000.0, 0.67)]),
        ),
    ] {
        let page = html::render(&several::document(&collection(&runs)));
        browser::check_frames(name, &page);
    }
    let page = write("picture", &records::cpu_sizes());
    browser::check_picture("picture", &page);
}

#[test]
fn pages_are_accessible() {
    for (name, runs) in [
        ("transports-page", records::transports()),
        ("udp-page", records::transports()[..1].to_vec()),
    ] {
        let page = html::render(&several::document(&collection(&runs)));
        browser::check_accessibility(name, &page);
    }
}

/// The report as Markdown; its page is written where it can be looked at.
fn report(name: &str, runs: &[Printed]) -> String {
    write(name, runs);
    let document = several::document(&collection(runs));
    let markdown = plain::markdown(&document);
    assert!(!plain::text(&document).is_empty());
    markdown
}

/// Writes the page of the report.
fn write(name: &str, runs: &[Printed]) -> PathBuf {
    let page = html::render(&several::document(&collection(runs)));
    assert!(page.len() < 2 << 20, "{name}: {} bytes", page.len());
    browser::put(&format!("{name}.html"), &page)
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    for words in expected {
        assert!(text.contains(words), "no `{words}` in\n{text}");
    }
}

#[test]
fn transports_have_red_hats_table_and_costs() {
    let text = report("transports", &records::transports());
    check(
        &text,
        &[
            "| queries a second | 304,266 | 253,039 | 188,228 |",
            "| mean latency | 1.149 ms | 3.886 ms | 5.152 ms |",
            "-51,227 | -16.8 %",
            "-64,811 | -25.6 %",
            "-116,037 | -38.1 %",
            "UDP \u{2192} DoT",
            "3.886 ms",
        ],
    );
}

#[test]
fn what_the_article_on_transports_misses_is_said() {
    let text = report("transports", &records::transports());
    check(
        &text,
        &[
            // Lost queries held more than half of the places of the UDP run for 5 s each.
            "590 of 1,000 outstanding slots were held by lost queries",
            // Latency of a closed loop with all places in use is the number of places.
            "983.3 (TCP), 969.8 (DoT) queries in flight, of the 1,000 allowed",
        ],
    );
    let udp = report("udp", &records::transports()[..1]);
    check(
        &udp,
        &[
            "p99 fell from 7.193 ms",
            "p99 was 7.193 ms in the first tenth of the run and 2.793 ms in the last",
            "p99 fell from 7.193 ms to ",
            "**Limit: server.**",
        ],
    );
    let tcp = report("tcp", &records::transports()[1..2]);
    check(
        &tcp,
        &[
            "p99 was 12.48 ms in the first tenth of the run and 14.19 ms in the last",
            "p99 rose from 12.48 ms to 14.19 ms over the first",
            "**Limit: server.**",
        ],
    );
}

#[test]
fn runs_that_are_left_out_say_nothing_of_places() {
    let mut records: Vec<RunRecord> = records::transports().iter().map(|it| it.record()).collect();
    for (limited, has_tcp) in [(2, true), (1, false)] {
        records[limited].verdict.limit = Limit::Generator;
        let sources = records.iter().enumerate();
        let sources = sources.map(|(at, it)| Source::new(format!("{at}.json"), it.clone()));
        let collection = Collection::new(sources.collect()).unwrap();
        let text = plain::markdown(&several::document(&collection));
        let of_tcp = "is 983.3 (TCP) queries in flight, of the 1,000 allowed";
        assert_eq!(text.contains(of_tcp), has_tcp, "{text}");
        assert_eq!(text.contains("queries in flight, of"), has_tcp, "{text}");
    }
}

#[test]
fn the_coredns_limit_had_idle_places() {
    let text = report("coredns", &records::through_coredns());
    check(
        &text,
        &[
            "reached the same rate (118,500 qps and 118,500 qps, 0.0 % apart)",
            "the verdict on each is unknown, so what they differ in was not tested",
            "of at most 1,000 queries were in flight on average, though no worker was out of CPU",
        ],
    );
}

#[test]
fn cpu_sizes_have_northflanks_table() {
    let text = report("cpu-sizes", &records::cpu_sizes());
    check(
        &text,
        &[
            "| 1 | 9,195,050 | 9,195,028 | 21.3 | 15,325 | 6.497 ms | 99.9997 % | 0.0002 % | \
             54.60 % | 45.40 % |",
            "| 2 | 19,428,544 | 19,428,520 | 23.4 | 32,380 | 3.064 ms | 99.9998 % | 0.0001 % | \
             54.60 % | 45.40 % |",
            "| 4 | 39,182,222 | 39,182,220 | 2.7 | 65,304 | 1.516 ms | 99.9999 % | \
             &lt;0.0001 % | 54.60 % | 45.40 % |",
        ],
    );
}

#[test]
fn northflanks_latency_column_is_its_rate_column() {
    let text = report("cpu-sizes", &records::cpu_sizes());
    check(
        &text,
        &[
            "99.6 (cpu=1), 99.2 (cpu=2), 99.0 (cpu=4) queries in flight, of the 100 allowed",
            "rom cpu=1 to cpu=4 the rate went from",
            "(4.26 times)",
        ],
    );
}

#[test]
fn tuning_steps_have_the_cpu_of_the_server_beside_the_rate() {
    let text = report("tuning", &records::tuning());
    check(
        &text,
        &["CPU against rate", "target", "84.0 %", "no query log"],
    );
}

#[test]
fn what_red_hat_set_is_advised_where_the_runs_show_the_gain() {
    let text = report("settings", &records::settings());
    check(
        &text,
        &[
            "114,164 qps with tcp-clients=150, 161,186 qps with tcp-clients=1000: 41.2 % more",
            "BIND, named.conf, options: tcp-clients 1000;",
            "161,186 qps with querylog=on, 242,442 qps with querylog=off: 50.4 % more",
            "BIND, on the server, as root: rndc querylog off",
            "BIND, named.conf, options: querylog no;",
            "50: 6.2 % more",
            "On the server, as root: sysctl -w net.core.busy",
        ],
    );
}

/// Unbound with 32 threads: TCP has 67 % of UDP's rate at 24,000 clients, 20 qps each.
#[test]
fn clients_have_sinoduns_three_charts() {
    let text = report(
        "clients",
        &records::by_clients(&[("Unbound", 716_000.0, 0.67)]),
    );
    check(
        &text,
        &[
            "Throughput against clients",
            "Throughput as a share of UDP's, against clients",
            "Queries a second of each client, against clients",
            "At 24,000 clients, of the rate over UDP: TCP 67.0 %",
            "TCP: at 24,000 clients each client had 20.0 qps",
        ],
    );
}

#[test]
fn servers_are_told_apart_by_their_label() {
    let servers = [
        ("Unbound, 1 thread", 200_000.0, 0.32),
        ("Unbound, 32 threads", 716_000.0, 0.67),
        ("Knot Resolver", 700_000.0, 0.50),
        ("BIND", 500_000.0, 0.25),
    ];
    let text = report("servers", &records::by_clients(&servers));
    check(
        &text,
        &[
            "TCP, Unbound, 1 thread 32.0 %; TCP, Unbound, 32 threads 67.0 %; \
             TCP, Knot Resolver 50.0 %; TCP, BIND 25.0 %",
        ],
    );
}
