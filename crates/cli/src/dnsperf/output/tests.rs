//! The layout against texts as dnsperf 2.14.0 prints them.

use measure::Interval;

use super::*;

const UNIT: &str = "Queries";

fn interval() -> Interval {
    let mut interval = Interval {
        start_ns: 0,
        end_ns: 1_001_021_000,
        ..Interval::default()
    };
    let counts = &mut interval.counts;
    (counts.offered, counts.sent, counts.responses) = (103, 102, 101);
    counts.timeouts = 1;
    (counts.sent_octets, counts.received_octets) = (102 * 50 + 7, 101 * 66);
    (0..98).for_each(|_| counts.rcodes.record(0));
    (0..3).for_each(|_| counts.rcodes.record(3));
    let service = &mut interval.distributions.service;
    service.record_many(58_400, 100);
    service.record(1_400_000);
    interval
}

fn layout(histogram: bool) -> Layout {
    Layout {
        unit: UNIT,
        histogram,
        http: false,
    }
}

#[test]
fn statistics_of_a_run_have_dnsperfs_lines() {
    let figures = Figures::of_interval(&interval());
    let expected = "Statistics:\n\
        \n\
        \x20 Queries sent:         102\n\
        \x20 Queries completed:    101 (99.02%)\n\
        \x20 Queries lost:         1 (0.98%)\n\
        \n\
        \x20 Response codes:       NOERROR 98 (97.03%), NXDOMAIN 3 (2.97%)\n\
        \x20 Average packet size:  request 50, response 66\n\
        \x20 Run time (s):         1.001021\n\
        \x20 Queries per second:   100.896984\n\
        \n\
        \x20 Average Latency (s):  0.000071 (min 0.000058, max 0.001400)\n\
        \x20 Latency StdDev (s):   0.000133\n\
        \n";
    assert_eq!(layout(false).statistics(&figures, Scope::Run), expected);
}

#[test]
fn statistics_of_an_interval_have_no_extremes_but_buckets() {
    let figures = Figures::of_interval(&interval());
    let text = layout(true).statistics(&figures, Scope::Interval);
    let expected = "  Queries per second:   100.896984\n\
        \n\
        \x20 Average Latency (s):  0.000071\n\
        \x20 Latency StdDev (s):   0.000133\n\
        \x20 Latency bucket (s):   answer count\n\
        \x20 0.000058 - 0.000058:  100\n\
        \x20 0.001376 - 0.001407:  1\n\
        \n";
    assert!(text.starts_with("Interval Statistics:\n\n"), "{text}");
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn connections_have_a_block_of_their_own() {
    let mut interval = interval();
    interval.counts.connections.attempted = 4;
    interval.counts.connections.established = 3;
    interval
        .distributions
        .connections
        .tcp_connect
        .record_many(20_000, 3);
    let text = layout(true).statistics(&Figures::of_interval(&interval), Scope::Run);
    let expected = "\n\nConnection Statistics:\n\
        \n\
        \x20 Connection attempts:  4 (3 successful, 75.00%)\n\
        \n\
        \x20 Average Latency (s):  0.000020 (min 0.000020, max 0.000020)\n\
        \x20 Latency StdDev (s):   0.000000\n\
        \x20 Latency bucket (s):   connection count\n\
        \x20 0.000020 - 0.000020:  3\n\
        \n";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn a_run_without_responses_divides_nothing_by_zero() {
    let figures = Figures::of_interval(&Interval::default());
    let text = layout(true).statistics(&figures, Scope::Run);
    assert!(
        text.contains("  Queries completed:    0 (0.00%)\n"),
        "{text}"
    );
    assert!(text.contains("  Response codes:       \n"), "{text}");
    assert!(text.contains("request 0, response 0\n"), "{text}");
    assert!(
        text.contains("  Queries per second:   0.000000\n"),
        "{text}"
    );
    let latency = "  Average Latency (s):  0.000000 (min 0.000000, max 0.000000)\n";
    assert!(text.contains(latency), "{text}");
    assert!(
        !text.contains("StdDev") && !text.contains("bucket"),
        "{text}"
    );
}

#[test]
fn strange_rcodes_and_responses_are_shown() {
    let mut interval = interval();
    interval.counts.rcodes.record(12);
    interval.counts.rcodes.record(16);
    interval.counts.rcodes.record(99);
    interval.counts.late = 2;
    interval.counts.unexpected.wrong_id = 1;
    let text = layout(false).statistics(&Figures::of_interval(&interval), Scope::Run);
    assert!(
        text.contains(", rcode12 1 (0.99%), BADVERS 1 (0.99%), other 1 (0.99%)\n"),
        "{text}"
    );
    assert!(
        text.contains("  Unexpected IDs:       3 (2.94%)\n"),
        "{text}"
    );
}

#[test]
fn status_lines_are_dnsperfs() {
    assert!(banner().starts_with("DNS Performance Testing Tool\nVersion 2.14.0 (throng "));
    assert!(banner().ends_with(")\n\n"));
    let ended = final_status(EndedBy::Duration);
    assert_eq!(ended, "[Status] Testing complete (time limit)\n\n");
    let figures = Figures::of_interval(&interval());
    let line = rate_line(Duration::from_micros(1_700_000_000_000_042), &figures);
    assert_eq!(line, "1700000000.000042: 100.896984\n");
}

#[test]
fn http_statuses_follow_the_connections_of_a_run() {
    let mut interval = interval();
    interval.counts.exchange_failures.media_type = 2;
    interval
        .counts
        .exchange_failures
        .http_status
        .record_many(429, 7);
    interval.counts.exchange_failures.http_status.record(103);
    let layout = Layout {
        http: true,
        ..layout(false)
    };
    let text = layout.statistics(&Figures::of_interval(&interval), Scope::Run);
    let expected = "\n\nDNS-over-HTTPS statistics:\n\n  HTTP/2 return codes:  103: 1, 200: 103, \
                    429: 7\n\n";
    assert!(text.ends_with(expected), "{text}");
    let text = layout.statistics(&Figures::of_interval(&interval), Scope::Interval);
    assert!(!text.contains("HTTP"), "{text}");
}
