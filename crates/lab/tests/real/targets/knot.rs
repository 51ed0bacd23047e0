//! Knot DNS.

use std::fs;

use lab::target::{Families, KnotOptions, KnotTarget};

use crate::query::{Answered, ask_tcp, ask_udp};
use crate::{broken_zone, check_gone, zone};

#[test]
fn knot_answers_over_udp_and_tcp_and_is_gone_after_drop() {
    let options = KnotOptions {
        families: Families::Both,
        tcp_clients_max: Some(50),
        ..KnotOptions::new(zone())
    };
    let target = KnotTarget::start(&options).unwrap();
    let (process, folder) = (target.process_id(), target.folder().to_owned());
    let address = target.endpoints().do53();
    for address in target.endpoints().do53_all() {
        let (first, second) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        assert_eq!(
            ask_udp(address, "test-record-1.lab.test"),
            Answered::address(first)
        );
        assert_eq!(
            ask_tcp(address, "test-record-2.lab.test"),
            Answered::address(second)
        );
    }
    assert_eq!(ask_udp(address, "missing.lab.test").rcode, 3);
    drop(target);
    check_gone(process, &folder, address);
}

#[test]
fn every_knot_thread_is_on_the_core_asked_for() {
    let options = KnotOptions {
        cpu: Some(0),
        workers: 2,
        ..KnotOptions::new(zone())
    };
    let target = KnotTarget::start(&options).unwrap();
    let folder = format!("/proc/{}/task", target.process_id());
    let threads: Vec<_> = fs::read_dir(folder).unwrap().collect();
    assert!(threads.len() >= 4);
    for thread in threads {
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
    }
}

#[test]
fn wrong_option_gives_an_error_with_knots_own_message() {
    let options = KnotOptions {
        extra_options: "    no-such-option: yes".to_owned(),
        ..KnotOptions::new(zone())
    };
    let error = format!("{:#}", KnotTarget::start(&options).unwrap_err());
    assert!(error.contains("no-such-option"), "{error}");
}

#[test]
fn broken_zone_gives_an_error_with_knots_own_message() {
    let error = format!(
        "{:#}",
        KnotTarget::start(&KnotOptions::new(broken_zone())).unwrap_err()
    );
    assert!(error.contains("zone.db"), "{error}");
}
