//! Unbound.

use lab::target::{Families, Service, UnboundOptions, UnboundTarget};

use crate::query::{Answered, ask_dot, ask_tcp, ask_udp};
use crate::{broken_zone, check_gone, zone};

#[test]
fn unbound_answers_over_udp_tcp_and_verified_tls_and_is_gone_after_drop() {
    let options = UnboundOptions {
        families: Families::Both,
        services: vec![Service::Dot],
        tcp_clients_max: Some(50),
        cpu: Some(0),
        ..UnboundOptions::new(zone())
    };
    let target = UnboundTarget::start(&options).unwrap();
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
    let (dot, ca_pem) = (target.endpoints().dot().unwrap(), target.ca_pem().unwrap());
    let printed = ask_dot(dot, ca_pem, target.folder(), "test-record-1.lab.test");
    assert_eq!(printed.trim(), "192.0.2.1");
    drop(target);
    check_gone(process, &folder, address);
}

#[test]
fn unbound_refuses_names_outside_the_zone_instead_of_asking_the_internet() {
    let target = UnboundTarget::start(&UnboundOptions::new(zone())).unwrap();
    assert_eq!(
        ask_udp(target.endpoints().do53(), "www.example.org").rcode,
        5
    );
}

#[test]
fn wrong_option_gives_an_error_with_unbounds_own_message() {
    let options = UnboundOptions {
        extra_options: "  no-such-option: yes".to_owned(),
        ..UnboundOptions::new(zone())
    };
    let error = format!("{:#}", UnboundTarget::start(&options).unwrap_err());
    assert!(
        error.contains("unknown keyword 'no-such-option'"),
        "{error}"
    );
}

#[test]
fn broken_zone_gives_an_error_with_unbounds_own_message() {
    let started = UnboundTarget::start(&UnboundOptions::new(broken_zone()));
    let error = format!("{:#}", started.unwrap_err());
    assert!(error.contains("zone.db"), "{error}");
}
