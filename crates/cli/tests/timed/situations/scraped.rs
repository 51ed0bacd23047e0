//! A server that stands still while it is asked for its statistics.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use anyhow::ensure;
use proto::Transport;

use super::on_quiet_host;
use super::servers::has_evidence;
use crate::bench::{Load, ms};

/// Answers queries and gives statistics, one at a time, and takes 100 ms for the latter. It ends
/// with this process.
struct Stalling {
    queries: SocketAddr,
    statistics: SocketAddr,
}

impl Stalling {
    fn start() -> Stalling {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let http = TcpListener::bind("127.0.0.1:0").unwrap();
        let stalling = Stalling {
            queries: udp.local_addr().unwrap(),
            statistics: http.local_addr().unwrap(),
        };
        let whole = Arc::new(Mutex::new(()));
        let of_queries = Arc::clone(&whole);
        thread::spawn(move || {
            let mut message = [0; 512];
            while let Ok((octets, from)) = udp.recv_from(&mut message) {
                let _whole = of_queries.lock().unwrap();
                message[2] |= 0x80;
                let _ = udp.send_to(&message[..octets], from);
            }
        });
        thread::spawn(move || {
            for connection in http.incoming().flatten() {
                let _whole = whole.lock().unwrap();
                let _ = tell(connection);
            }
        });
        stalling
    }
}

/// One page, after 100 ms.
fn tell(mut connection: TcpStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut octet = [0];
    while !request.ends_with(b"\r\n\r\n") && connection.read(&mut octet)? == 1 {
        request.push(octet[0]);
    }
    let until = Instant::now() + ms(100);
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        thread::park_timeout(left);
    }
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\
                Connection: close\r\n\r\nup 1\n";
    connection.write_all(page.as_bytes())
}

#[test]
fn a_server_that_stands_still_at_each_scrape_is_told() {
    let server = Stalling::start();
    let source = format!(
        "prometheus=http://{}/metrics,allow=up,period=500ms",
        server.statistics
    );
    let run = || {
        let load = Load::over(Transport::Udp).rate(500.0).plan(|plan| {
            plan.duration = Some(ms(4_000));
            plan.timeout = ms(3_000);
        });
        // The server is threads of this process.
        let load = load.target_process(std::process::id());
        load.observe(&[&source]).run_at(server.queries)
    };
    on_quiet_host(run, |ran| {
        has_evidence(ran, &["the scrapes slow it down"])?;
        let all = measure::doctor::of_run(&ran.record);
        let mut cures = all.iter().flat_map(|it| &it.cures);
        ensure!(cures.any(|it| it.how.contains("mode=around")), "{all:#?}");
        Ok(())
    });
}
