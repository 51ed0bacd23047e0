//! The responder on the kernel's sockets, over loopback.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;

use driver::clock::Clock;
use driver::kernel::{DriverChoice, KernelDriver, Load};
use driver::{Driver, SocketOptions};
use proto::Transport;
use responder::certificate::{SelfSigned, self_signed};
use responder::{ConnectionEnd, ResponderConfig, ResponderWorker, WorkerPlace};

use crate::certificates;
use crate::network::{framed, id, ms, query, unframe};

/// Turns of the worker before a test gives up.
const TURNS_MAX: usize = 1000;

struct Loopback {
    worker: ResponderWorker,
    driver: KernelDriver,
}

impl Loopback {
    fn new(
        driver: DriverChoice,
        address: IpAddr,
        change: impl FnOnce(&mut ResponderConfig),
    ) -> Loopback {
        let address = SocketAddr::new(address, 0);
        let mut config = ResponderConfig {
            listen: vec![(Transport::Udp, address), (Transport::Tcp, address)],
            ..ResponderConfig::default()
        };
        change(&mut config);
        let options = SocketOptions {
            offload: true,
            ..SocketOptions::default()
        };
        let opened = KernelDriver::open(driver, Load::default(), Clock::start(), options);
        let (mut driver, _) = opened.unwrap();
        let mut worker = ResponderWorker::new(Arc::new(config), WorkerPlace::ONLY).unwrap();
        worker.open(&mut driver).unwrap();
        Loopback { worker, driver }
    }

    fn turn(&mut self) {
        let until = self.worker.step(&mut self.driver);
        let soon = self.driver.now() + ms(5);
        self.driver.wait(until.min(soon));
    }

    fn connect(&self, transport: Transport) -> TcpStream {
        let stream = TcpStream::connect(self.worker.address(transport).unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    }

    /// Reads until `enough` says so or the stream ends; true if it ended.
    fn read(
        &mut self,
        stream: &mut TcpStream,
        octets: &mut Vec<u8>,
        enough: impl Fn(&[u8]) -> bool,
    ) -> bool {
        let mut buffer = [0; 4096];
        for _ in 0..TURNS_MAX {
            if enough(octets) {
                return false;
            }
            match stream.read(&mut buffer) {
                Ok(0) => return true,
                Ok(count) => octets.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.turn(),
                Err(error) => panic!("{error}"),
            }
        }
        panic!("nothing came");
    }
}

/// The drivers that this host has.
fn each(check: impl Fn(DriverChoice)) {
    check(DriverChoice::Epoll);
    let options = SocketOptions::default();
    let (choice, load) = (DriverChoice::Uring, Load::default());
    match KernelDriver::open(choice, load, Clock::start(), options) {
        Ok(_) => check(choice),
        Err(reason) => eprintln!("not tried with io_uring: {reason}"),
    }
}

#[test]
fn datagrams_are_answered_on_both_families() {
    each(|choice| {
        for address in [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ] {
            let mut loopback = Loopback::new(choice, address, |_| {});
            let client = UdpSocket::bind(SocketAddr::new(address, 0)).unwrap();
            client
                .connect(loopback.worker.address(Transport::Udp).unwrap())
                .unwrap();
            client.set_nonblocking(true).unwrap();
            for id in 0..100 {
                client.send(&query(id, "name.example A")).unwrap();
            }
            let mut answered = Vec::new();
            let mut buffer = [0; 512];
            for _ in 0..TURNS_MAX {
                match client.recv(&mut buffer) {
                    Ok(count) => answered.push(id(&buffer[..count])),
                    Err(_) if answered.len() < 100 => loopback.turn(),
                    Err(_) => break,
                }
            }
            assert_eq!(answered, (0..100).collect::<Vec<_>>());
            assert_eq!(loopback.worker.counters().queries.get(Transport::Udp), 100);
            assert_eq!(
                loopback.worker.counters().responses.get(Transport::Udp),
                100
            );
        }
    });
}

#[test]
fn a_stream_is_answered_on_the_port_of_udp_and_ends_as_told() {
    each(|choice| {
        let mut loopback = Loopback::new(choice, Ipv4Addr::LOCALHOST.into(), |config| {
            config.behaviour.end_after = Some((20, ConnectionEnd::Close));
        });
        let addresses = loopback.worker.addresses();
        assert_eq!(addresses[0].1, addresses[1].1);
        let mut stream = loopback.connect(Transport::Tcp);
        let queries: Vec<_> = (0..20).map(|id| query(id, "name.example A")).collect();
        stream.write_all(&framed(&queries)).unwrap();
        let mut octets = Vec::new();
        assert!(loopback.read(&mut stream, &mut octets, |_| false));
        let ids: Vec<_> = unframe(&octets).iter().map(|message| id(message)).collect();
        assert_eq!(ids, (0..20).collect::<Vec<_>>());
        assert_eq!(
            loopback
                .worker
                .counters()
                .connections_closed
                .get(Transport::Tcp),
            1
        );
    });
}

#[test]
fn a_tls_session_is_answered() {
    each(|choice| {
        let identity = self_signed(&SelfSigned::default()).unwrap();
        let mut loopback = Loopback::new(choice, Ipv4Addr::LOCALHOST.into(), |config| {
            config
                .listen
                .push((Transport::Dot, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))));
            config.tls = Some(identity.server_config.clone());
        });
        let mut stream = loopback.connect(Transport::Dot);
        let mut tls = certificates::client(&identity.certificate_pem, "127.0.0.1");
        tls.write(&framed(&[query(7, "name.example A")]));
        let mut plaintext = Vec::new();
        for _ in 0..TURNS_MAX {
            let mut flight = Vec::new();
            tls.poll_transmit(&mut flight);
            stream.write_all(&flight).unwrap();
            if !plaintext.is_empty() {
                break;
            }
            let mut octets = Vec::new();
            loopback.read(&mut stream, &mut octets, |octets| !octets.is_empty());
            tls.handle_bytes(&octets, &mut plaintext).unwrap();
        }
        assert_eq!(id(&unframe(&plaintext)[0]), 7);
        assert_eq!(loopback.worker.counters().handshakes_completed, 1);
    });
}
