//! Signs without their causes: a few events of each kind that a run counts, and counters of the
//! kernel that other programs moved.

use serde_json::Value;

use crate::counts::Counts;
use crate::rules::situations::*;

/// Events of a kind, beside 100,000 queries: fewer than 0.1 %.
const FEW: u64 = 40;

/// Runs that held their rate, and some with a queue at the target or with losses.
fn runs() -> Vec<RunRecord> {
    let mut lossy = in_time(10_000.0);
    lose(&mut lossy, 1_000);
    let transports = [
        Transport::Udp,
        Transport::Tcp,
        Transport::Doh2,
        Transport::Doq,
    ];
    let over = |record: RunRecord| {
        transports.map(|transport| {
            let mut record = record.clone();
            record.scenario.transport = transport.into();
            record.groups[0].scenario.transport = transport.into();
            record
        })
    };
    [in_time(10_000.0), saturated(), lossy]
        .into_iter()
        .flat_map(over)
        .collect()
}

/// A connection for each query.
fn connect_for_each(record: &mut RunRecord) {
    record.scenario.connections.queries_max = Some(1);
    for interval in &mut record.intervals {
        let connections = &mut interval.counts.connections;
        connections.attempted = 10_000;
        connections.established = 10_000;
        connections.became_usable = 10_000;
    }
    record.total = Interval::total(&record.intervals);
}

/// The counters in `counts`, as JSON pointers.
fn pointers(counts: &Value, from: &str) -> Vec<String> {
    match counts {
        Value::Object(map) => {
            let each = map.iter();
            each.flat_map(|(name, value)| pointers(value, &format!("{from}/{name}")))
                .collect()
        }
        _ => vec![from.to_owned()],
    }
}

/// `counts` with a few more events of the counter at `pointer`.
fn with_few(counts: &Counts, pointer: &str) -> Counts {
    let before = serde_json::to_value(counts).expect("serializes");
    let mut after = Counts::json_without_zero();
    for each in pointers(&after, "") {
        let number = before.pointer(&each).and_then(Value::as_u64).unwrap_or(0);
        let more = if each == pointer { FEW } else { 0 };
        *after.pointer_mut(&each).expect("is there") = (number + more).into();
    }
    serde_json::from_value(after).expect("same structure")
}

#[test]
fn few_events_of_any_kind_change_no_limit() {
    for mut record in runs() {
        connect_for_each(&mut record);
        let verdict = judge(&record);
        for pointer in pointers(&Counts::json_without_zero(), "") {
            let mut record = record.clone();
            change_last(&mut record, |it| it.counts = with_few(&it.counts, &pointer));
            let changed = judge(&record);
            let transport = record.scenario.transport;
            assert_eq!(
                changed.limit, verdict.limit,
                "{pointer}, {transport:?}: {verdict:#?} {changed:#?}"
            );
        }
    }
}

/// Counters of the kernel that count what all programs of a host or a network namespace do.
const OF_KERNEL: &[&str] = &[
    "Conntrack.Dropped",
    "Conntrack.EarlyDropped",
    "Conntrack.InsertFailed",
    "Icmp.InDestUnreachs",
    "Icmp6.InDestUnreachs",
    "Softnet.Dropped",
    "Softnet.TimeSqueezed",
    "Tcp.RetransSegs",
    "TcpExt.ListenDrops",
    "TcpExt.ListenOverflows",
    "TcpExt.TCPTimeouts",
    "TcpExt.TWRecycled",
    "Udp.InCsumErrors",
    "Udp.InErrors",
    "Udp.NoPorts",
    "Udp.RcvbufErrors",
    "Udp.SndbufErrors",
    "Udp6.RcvbufErrors",
    "Udp6.SndbufErrors",
];

#[test]
fn counters_that_other_programs_moved_change_no_limit() {
    for mut record in runs() {
        for target in ["192.0.2.1:53", "127.0.0.1:53"] {
            record.scenario.target = target.into();
            let verdict = judge(&record);
            for counter in OF_KERNEL {
                let mut record = record.clone();
                let kernel = &mut record.network.kernel;
                kernel.insert((*counter).to_owned(), 1_000_000);
                let changed = judge(&record);
                let transport = record.scenario.transport;
                assert_eq!(
                    changed.limit, verdict.limit,
                    "{counter}, {transport:?}, {target}: {verdict:#?} {changed:#?}"
                );
            }
        }
    }
}
