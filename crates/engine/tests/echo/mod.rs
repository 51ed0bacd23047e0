//! A target that sends each query back as a response, and a plan for it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use driver::sim::{SimDriver, World};
use driver::{Driver, Event, Outgoing, Received, SocketId, SocketSpec};
use load::arrival::Arrival;
use load::{Plan, QuestionSet, QuestionSource, names_file};
use proto::framing::{Deframer, write_message};
use proto::query::QueryOptions;
use proto::tls::ServerTls;
use proto::tls::rustls::ServerConfig;
use proto::{Instant, Transport};

/// A target that sends each query back as a response.
pub(crate) struct Echo {
    /// Its end of the world.
    pub(crate) driver: SimDriver,
    tls: Option<Arc<ServerConfig>>,
    streams: HashMap<u32, (Deframer, Option<ServerTls>)>,
    /// Queries seen so far.
    pub(crate) queries: u64,
}

impl Echo {
    /// Listens on `address` for UDP and for TCP, or for DoT if `tls` is given.
    pub(crate) fn open(world: &World, address: SocketAddr, tls: Option<Arc<ServerConfig>>) -> Echo {
        let mut driver = world.endpoint(address.ip());
        let spec = SocketSpec {
            local: Some(address),
            peer: None,
            shared_port: false,
            fast_open: false,
        };
        driver.open_udp(&spec).unwrap();
        driver.listen_tcp(&spec).unwrap();
        Echo {
            driver,
            tls,
            streams: HashMap::new(),
            queries: 0,
        }
    }

    /// One turn.
    pub(crate) fn step(&mut self) {
        let mut received = Received::new();
        while self.driver.receive(&mut received) {
            let socket = received.socket;
            match received.event {
                Event::Datagrams => self.answer_datagrams(&received),
                Event::Accepted { .. } => {
                    let tls = self.tls.clone().map(|tls| ServerTls::new(tls).unwrap());
                    let stream = (Deframer::default(), tls);
                    self.streams.insert(socket.index, stream);
                }
                Event::Bytes => self.answer_stream(socket, received.bytes()),
                _ => {}
            }
        }
        self.driver.wait(Instant::FAR_FUTURE);
    }

    fn answer_datagrams(&mut self, received: &Received) {
        let mut outgoing = Outgoing::default();
        for datagram in &received.datagrams {
            let start = outgoing.octets.len();
            outgoing
                .octets
                .extend_from_slice(received.datagram(*datagram));
            outgoing.octets[start + 2] |= 0x80;
            outgoing.finish(start, Some(datagram.from));
            self.queries += 1;
        }
        self.driver.send_datagrams(received.socket, &outgoing);
    }

    fn answer_stream(&mut self, socket: SocketId, bytes: &[u8]) {
        let (deframer, tls) = self.streams.get_mut(&socket.index).unwrap();
        let mut plaintext = Vec::new();
        match tls {
            Some(tls) => drop(tls.handle_bytes(bytes, &mut plaintext).unwrap()),
            None => plaintext.extend_from_slice(bytes),
        }
        let mut responses = Vec::new();
        deframer.handle_bytes(&plaintext, |query| {
            let start = responses.len();
            write_message(query, &mut responses);
            responses[start + 4] |= 0x80;
            self.queries += 1;
        });
        let mut octets = Vec::new();
        match tls {
            Some(tls) => {
                tls.write(&responses);
                tls.poll_transmit(&mut octets);
            }
            None => octets = responses,
        }
        let taken = self.driver.send_bytes(socket, &octets).unwrap();
        assert_eq!(taken, octets.len(), "the window is wide enough");
    }
}

/// A run of 2 s without an end of an interval.
pub(crate) fn plan(transport: Transport, clients: u32, arrival: Arrival) -> Plan {
    let lines = (0..1_000).map(|number| format!("record-{number}.example A\n"));
    let text = lines.collect::<String>();
    let questions = names_file::parse_text(text.as_bytes(), &QueryOptions::default());
    Plan {
        target: "192.0.2.53:53".parse().unwrap(),
        transport,
        questions: Arc::<QuestionSet>::new(questions.unwrap()),
        question_source: QuestionSource::default(),
        arrival,
        clients,
        workers: 1,
        duration: Some(Duration::from_secs(2)),
        warmup: Duration::ZERO,
        queries_max: None,
        timeout: Duration::from_secs(5),
        interval: Duration::from_secs(3_600),
        seed: 1,
        local_addresses: Vec::new(),
        local_port: 0,
        presence: load::Presence::default(),
        shape: None,
        connections: load::ConnectionPolicy::default(),
        doh: None,
        tcp_fallback: false,
        socket_buffer_octets: None,
        offload: true,
        client_statistics: true,
        tsig: None,
    }
}
