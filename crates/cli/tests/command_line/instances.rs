//! Responses by the instance of the server that sent them (NSID, RFC 5001).

use std::net::{SocketAddr, UdpSocket};
use std::thread;

use measure::RunRecord;

use crate::process::{Folder, throng};

/// Octets of an empty NSID option at the end of a query, its length in the OPT record among them.
const ASKED_OCTETS: usize = 6;

/// A service whose instances respond in turn until it is asked for `end.example`, three of four
/// times the first; who is asked without NSID does not say who responds.
fn service() -> (SocketAddr, thread::JoinHandle<()>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let service = thread::spawn(move || {
        let mut message = [0; 512];
        let mut asked = 0;
        loop {
            let (octets, client) = socket.recv_from(&mut message).unwrap();
            let query = &message[..octets];
            if query.len() < 12 {
                continue;
            }
            if query.windows(4).any(|it| it == b"\x03end") {
                return;
            }
            let name = if asked % 4 == 0 { "two" } else { "one" };
            asked += 1;
            let mut response = query.to_vec();
            response[2] |= 0x80;
            if response.ends_with(&[0, 4, 0, 3, 0, 0]) {
                response.truncate(octets - ASKED_OCTETS);
                response.extend_from_slice(&[0, 7, 0, 3, 0, 3]);
                response.extend_from_slice(name.as_bytes());
            }
            // One that has ended does not hear it.
            let _ = socket.send_to(&response, client);
        }
    });
    (address, service)
}

#[test]
fn responses_are_counted_by_the_instance_that_sent_them_if_that_is_asked() {
    let folder = Folder::new("instances");
    let names = folder.write("names", "www.example. A\n");
    let (server, service) = service();
    let run = |flags: &str| {
        let run = format!("run --quiet --server {server} --names {names} --queries 400 {flags}");
        throng(&run).succeeded()
    };
    let plain = "--workers 1 --clients 4 --outstanding 4";
    let record = |flags: &str| {
        let json = run(&format!("{plain} --format json {flags}"));
        RunRecord::from_json(&json).unwrap()
    };
    assert_eq!(record("").instances, None);
    for processes in ["", "--processes 2 --workers 2"] {
        let flags = format!("--edns-option nsid {processes}");
        let flags = flags.replace("--workers 2", "");
        let whole = match processes {
            "" => record(&flags),
            _ => {
                let flags = format!("--clients 4 --outstanding 4 --format json {flags}");
                RunRecord::from_json(&run(&flags)).unwrap()
            }
        };
        let instances = whole.instances.unwrap();
        assert_eq!(instances.total(), whole.total.counts.responses);
        assert_eq!(
            (instances.by_name["one"], instances.by_name["two"]),
            (300, 100)
        );
    }
    let shown = run(&format!("{plain} --edns-option nsid"));
    assert!(shown.contains("\nInstances\n"), "{shown}");
    let row: &[&str] = &["one", "300", "75.0", "%"];
    let mut rows = shown
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert!(rows.any(|it| it == row), "{shown}");
    let stop = UdpSocket::bind("127.0.0.1:0").unwrap();
    stop.send_to(b"\0\0\0\0\0\x01\0\0\0\0\0\0\x03end\x00", server)
        .unwrap();
    service.join().unwrap();
}
