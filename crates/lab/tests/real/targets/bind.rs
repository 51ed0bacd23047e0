//! BIND.

use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lab::target::{BindOptions, BindTarget, Families, Service, TsigKey};

use crate::query::{Answered, ask_dot, ask_tcp, ask_udp};
use crate::{broken_zone, check_gone, zone};

fn key() -> TsigKey {
    TsigKey {
        name: "lab-key".to_owned(),
        algorithm: "hmac-sha256".to_owned(),
        secret_base64: "c2VjcmV0IG9mIHRoZSBsYWI=".to_owned(),
    }
}

#[test]
fn bind_answers_counts_each_transport_and_is_gone_after_drop() {
    let target = BindTarget::start(&BindOptions::new(zone())).unwrap();
    let (process, folder) = (target.process_id(), target.folder().to_owned());
    let address = target.endpoints().do53();

    let before = target.statistics().unwrap();
    assert_eq!(
        ask_udp(address, "test-record-1.lab.test"),
        Answered::address([192, 0, 2, 1])
    );
    assert_eq!(ask_udp(address, "missing.lab.test").rcode, 3);
    assert_eq!(
        ask_tcp(address, "test-record-2.lab.test"),
        Answered::address([192, 0, 2, 2])
    );
    let counted = target.statistics().unwrap().since(&before);
    assert_eq!(
        (counted.queries_udp, counted.queries_tcp),
        (2, 1),
        "{counted:?}"
    );
    assert_eq!(
        (counted.messages_v4, counted.messages_tcp),
        (3, 1),
        "{counted:?}"
    );

    drop(target);
    check_gone(process, &folder, address);
}

#[test]
fn bind_serves_both_families_and_counts_a_query_over_verified_tls() {
    let options = BindOptions {
        families: Families::Both,
        services: vec![Service::Dot],
        tcp_clients_max: Some(20),
        ..BindOptions::new(zone())
    };
    let target = BindTarget::start(&options).unwrap();
    let before = target.statistics().unwrap();
    for address in target.endpoints().do53_all() {
        let expected = Answered::address([192, 0, 2, 3]);
        assert_eq!(
            ask_udp(address, "test-record-3.lab.test"),
            expected,
            "{address}"
        );
    }
    let counted = target.statistics().unwrap().since(&before);
    assert_eq!(
        (counted.messages_v4, counted.messages_v6),
        (1, 1),
        "{counted:?}"
    );

    let (dot, ca_pem) = (target.endpoints().dot().unwrap(), target.ca_pem().unwrap());
    let printed = ask_dot(dot, ca_pem, target.folder(), "test-record-1.lab.test");
    assert_eq!(printed.trim(), "192.0.2.1");
    let counted = target.statistics().unwrap().since(&before);
    assert_eq!(
        counted.queries_tcp.max(counted.queries_dot),
        1,
        "{counted:?}"
    );
}

#[test]
fn bind_serves_ipv6_alone() {
    let options = BindOptions {
        families: Families::V6,
        ..BindOptions::new(zone())
    };
    let target = BindTarget::start(&options).unwrap();
    let address = target.endpoints().do53();
    assert!(address.is_ipv6());
    assert_eq!(
        ask_udp(address, "test-record-1.lab.test"),
        Answered::address([192, 0, 2, 1])
    );
}

#[test]
fn bind_with_a_query_key_answers_signed_queries_alone() {
    let options = BindOptions {
        query_key: Some(key()),
        ..BindOptions::new(zone())
    };
    let target = BindTarget::start(&options).unwrap();
    let address = target.endpoints().do53();
    assert_eq!(ask_udp(address, "test-record-1.lab.test").rcode, 5);

    let signed = key().argument();
    let output = Command::new("dig")
        .args([
            "@127.0.0.1",
            "-p",
            &address.port().to_string(),
            "-y",
            &signed,
        ])
        .args([
            "+short",
            "+tries=1",
            "+time=60",
            "test-record-1.lab.test",
            "A",
        ])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap().trim(),
        "192.0.2.1"
    );
}

#[test]
fn bind_with_an_update_key_takes_signed_updates_and_counts_them() {
    let options = BindOptions {
        update_key: Some(key()),
        ..BindOptions::new(zone())
    };
    let target = BindTarget::start(&options).unwrap();
    let address = target.endpoints().do53();
    let before = target.statistics().unwrap();
    let script = format!(
        "server 127.0.0.1 {}\nzone lab.test\nkey {}:{} {}\n\
         update add new.lab.test 1 A 192.0.2.9\nsend\n",
        address.port(),
        key().algorithm,
        key().name,
        key().secret_base64
    );
    let mut update = Command::new("nsupdate")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    update
        .stdin
        .take()
        .unwrap()
        .write_all(script.as_bytes())
        .unwrap();
    assert!(update.wait().unwrap().success());
    assert_eq!(
        ask_udp(address, "new.lab.test"),
        Answered::address([192, 0, 2, 9])
    );
    let counted = target.statistics().unwrap().since(&before);
    assert_eq!(
        (counted.updates_done, counted.queries_udp),
        (1, 1),
        "{counted:?}"
    );
}

#[test]
fn bind_stays_on_its_core() {
    let options = BindOptions {
        cpu: Some(0),
        ..BindOptions::new(zone())
    };
    let target = BindTarget::start(&options).unwrap();
    let status = fs::read_to_string(format!("/proc/{}/status", target.process_id())).unwrap();
    assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
}

#[test]
fn wrong_statement_gives_an_error_with_binds_own_message() {
    let options = BindOptions {
        extra_options: "no-such-statement yes;".to_owned(),
        ..BindOptions::new(zone())
    };
    let error = format!("{:#}", BindTarget::start(&options).unwrap_err());
    assert!(
        error.contains("unknown option 'no-such-statement'"),
        "{error}"
    );
}

#[test]
fn broken_zone_gives_an_error_with_binds_own_message() {
    let error = format!(
        "{:#}",
        BindTarget::start(&BindOptions::new(broken_zone())).unwrap_err()
    );
    assert!(error.contains("zone.db:3: unknown RR type"), "{error}");
}

#[test]
fn server_dies_with_the_thread_that_started_it() {
    let start = || {
        let target = BindTarget::start(&BindOptions::new(zone())).unwrap();
        let found = (target.endpoints().do53(), target.folder().to_owned());
        // A crash runs no destructors.
        std::mem::forget(target);
        found
    };
    let (address, folder) = std::thread::spawn(start).join().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(address).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let refused = |result: std::io::Result<usize>| {
        result.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    };
    // An octet that is no DNS message gets no response: only a closed port ends the loop.
    while !refused(socket.send(&[0])) && !refused(socket.recv(&mut [0; 64])) {
        assert!(Instant::now() < deadline, "named still holds {address}");
    }
    fs::remove_dir_all(folder).unwrap();
}
