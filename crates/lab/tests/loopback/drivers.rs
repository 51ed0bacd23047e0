//! The same runs on each driver for the kernel's sockets, with the same expectations.

use driver::kernel::DriverChoice;
use measure::DriverKind;
use proto::Transport;

use crate::bench::{Load, alone};

/// Queries that do not depend on how fast the machine is.
const QUERIES: u64 = 3_000;

/// True if this host lets us have io_uring.
fn has_uring() -> bool {
    let clock = driver::clock::Clock::start();
    match driver::uring::UringDriver::new(clock, driver::SocketOptions::default()) {
        Ok(_) => true,
        Err(reason) => {
            eprintln!("not tried: {reason}");
            false
        }
    }
}

fn check(transport: Transport, driver: DriverChoice, kind: DriverKind, reason: &str) {
    let load = Load::over(transport).clients(40).outstanding(200);
    let (ran, counters) = load.driver(driver).queries(QUERIES).run_against(|_| {});
    ran.assert_all_answered(QUERIES);
    assert_eq!(counters.queries.get(transport), QUERIES, "{transport}");
    let (record, context) = (&ran.record, format!("{transport} on {driver}"));
    assert_eq!(record.driver, kind, "{context}");
    let why = record.driver_reason.as_deref().unwrap();
    assert!(why.contains(reason), "{context}: {why}");
}

#[test]
fn every_transport_is_answered_in_full_on_every_driver() {
    let _alone = alone();
    for transport in Transport::ALL {
        check(
            transport,
            DriverChoice::Epoll,
            DriverKind::Epoll,
            "asked for",
        );
        if has_uring() {
            check(
                transport,
                DriverChoice::Uring,
                DriverKind::Uring,
                "asked for",
            );
        }
    }
}

#[test]
fn streams_go_through_io_uring_by_default_and_datagrams_do_not() {
    let _alone = alone();
    check(
        Transport::Udp,
        DriverChoice::Auto,
        DriverKind::Epoll,
        "few streams",
    );
    let (kind, reason) = match has_uring() {
        true => (DriverKind::Uring, "faster with 40 streams"),
        false => (DriverKind::Epoll, "io_uring"),
    };
    check(Transport::Tcp, DriverChoice::Auto, kind, reason);
}
