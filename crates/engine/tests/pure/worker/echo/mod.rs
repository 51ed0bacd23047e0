//! A target that sends each query back as a response, and a plan for it.

mod quic;
mod stream;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use driver::sim::{Link, SimDriver, World, WorldConfig};
use driver::{Driver, Event, Outgoing, Received, SocketSpec};
use engine::{Control, RunInputs, ThreadWorkers};
use load::arrival::Arrival;
use load::{Plan, names_file};
use proto::doh::{DohRequest, Method};
use proto::query::QueryOptions;
use proto::tls::rustls::ServerConfig;
use proto::{Instant, Transport};

use quic::EchoQuic;
use stream::EchoStream;

/// A worker, half a millisecond away from a target that sends each query back.
pub(crate) struct Bench {
    pub(crate) world: World,
    pub(crate) echo: Echo,
    pub(crate) driver: SimDriver,
    pub(crate) workers: ThreadWorkers,
}

impl Bench {
    /// The worker is ready for `plan`, over a transport without TLS.
    pub(crate) fn open(plan: Plan) -> Bench {
        let world = World::new(WorldConfig {
            link: Link::constant(Duration::from_micros(500)),
            ..WorldConfig::default()
        });
        let echo = Echo::open(&world, &plan, None);
        let mut driver = world.endpoint(IpAddr::from([192, 0, 2, 1]));
        let inputs = [RunInputs {
            plan: Arc::new(plan),
            tls: None,
            observer: None,
        }];
        let mut workers = ThreadWorkers::new(&inputs, 0, &Arc::new(Control::new(1)));
        workers.open(&mut driver).unwrap();
        Bench {
            world,
            echo,
            driver,
            workers,
        }
    }
}

/// A target that sends each query back as a response.
pub(crate) struct Echo {
    /// Its end of the world.
    pub(crate) driver: SimDriver,
    transport: Transport,
    tls: Option<Arc<ServerConfig>>,
    streams: HashMap<u32, EchoStream>,
    quic: Option<EchoQuic>,
    /// Queries seen so far.
    pub(crate) queries: u64,
}

impl Echo {
    /// Listens where `plan` sends its queries, for its transport and for UDP; `tls` is there if
    /// the transport has it.
    pub(crate) fn open(world: &World, plan: &Plan, tls: Option<Arc<ServerConfig>>) -> Echo {
        let mut driver = world.endpoint(plan.target.ip());
        let spec = SocketSpec {
            local: Some(plan.target),
            peer: None,
            shared_port: false,
            fast_open: false,
        };
        driver.open_udp(&spec).unwrap();
        driver.listen_tcp(&spec).unwrap();
        let is_quic = plan.transport.is_quic();
        Echo {
            quic: is_quic.then(|| EchoQuic::new(plan.transport, tls.as_ref().unwrap(), &driver)),
            driver,
            transport: plan.transport,
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
            match (received.event, &mut self.quic) {
                (Event::Datagrams, Some(quic)) => quic.handle_datagrams(&received),
                (Event::Datagrams, None) => self.answer_datagrams(&received),
                (Event::Accepted { .. }, _) => {
                    let stream = EchoStream::new(self.transport, self.tls.clone());
                    self.streams.insert(socket.index, stream);
                }
                (Event::Bytes, _) => {
                    let stream = self.streams.get_mut(&socket.index).unwrap();
                    let (octets, queries) = stream.answer(received.bytes());
                    self.queries += queries;
                    let taken = self.driver.send_bytes(socket, &octets).unwrap();
                    assert_eq!(taken, octets.len(), "the window is wide enough");
                }
                _ => {}
            }
        }
        let mut until = Instant::FAR_FUTURE;
        if let Some(quic) = &mut self.quic {
            until = quic.finish(&mut self.driver);
            self.queries = quic.queries;
        }
        self.driver.wait(until);
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
}

/// A query as its own response.
fn response_to(query: &[u8]) -> Vec<u8> {
    let mut response = query.to_vec();
    response[2] |= 0x80;
    response
}

/// A run of 2 s without an end of an interval.
pub(crate) fn plan(transport: Transport, clients: u32, arrival: Arrival) -> Plan {
    let lines = (0..1_000).map(|number| format!("record-{number}.example A\n"));
    let text = lines.collect::<String>();
    let questions = names_file::parse_text(text.as_bytes(), &QueryOptions::default());
    Plan {
        arrival,
        clients,
        duration: Some(Duration::from_secs(2)),
        interval: Duration::from_secs(3_600),
        doh: transport.is_doh().then(|| {
            let uri = "https://localhost/dns-query";
            Arc::new(DohRequest::new(Method::Post, uri, &[]).unwrap())
        }),
        ..Plan::new(
            "192.0.2.53:53".parse().unwrap(),
            transport,
            Arc::new(questions.unwrap()),
        )
    }
}
