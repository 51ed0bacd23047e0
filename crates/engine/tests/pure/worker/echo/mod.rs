//! A target that sends each query back as a response, and a plan for it.

mod quic;
mod stream;

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use driver::sim::{Link, SimDriver, World, WorldConfig};
use driver::{Close, Driver, Event, Outgoing, Received, SocketId, SocketSpec};
use engine::{Control, RunInputs, ThreadWorkers};
use load::arrival::Arrival;
use load::{Plan, names_file};
use proto::doh::{DohRequest, Method};
use proto::query::QueryOptions;
use proto::tls::rustls::{ClientConfig, ServerConfig};
use proto::tls::{
    ClientTlsOptions, Roots, ServerTlsOptions, Tickets, client_config, server_config_with,
};
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
    streams: HashMap<SocketId, EchoStream>,
    /// Streams that are served at a time.
    pub(crate) slots: usize,
    /// Streams that wait for a slot, and what has come on them.
    waiting: VecDeque<(SocketId, Vec<u8>)>,
    /// Streams that were accepted so far.
    pub(crate) accepted: u64,
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
            slots: usize::MAX,
            waiting: VecDeque::new(),
            accepted: 0,
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
                    self.accepted += 1;
                    self.waiting.push_back((socket, Vec::new()));
                }
                (Event::Bytes, _) => self.take_bytes(socket, received.bytes()),
                (Event::EndOfStream | Event::Failed(_), _) => {
                    self.waiting.retain(|(waiting, _)| *waiting != socket);
                    self.end_stream(socket);
                }
                _ => {}
            }
            self.fill_slots();
        }
        let mut until = Instant::FAR_FUTURE;
        if let Some(quic) = &mut self.quic {
            until = quic.finish(&mut self.driver);
            self.queries = quic.queries;
        }
        self.driver.wait(until);
    }

    /// Serves streams that wait, as far as there are slots.
    pub(crate) fn fill_slots(&mut self) {
        while self.streams.len() < self.slots
            && let Some((socket, bytes)) = self.waiting.pop_front()
        {
            let stream = EchoStream::new(self.transport, self.tls.clone());
            self.streams.insert(socket, stream);
            if !bytes.is_empty() {
                self.take_bytes(socket, &bytes);
            }
        }
    }

    /// Ends the streams that are served.
    pub(crate) fn end_streams(&mut self) {
        let served: Vec<SocketId> = self.streams.keys().copied().collect();
        served
            .into_iter()
            .for_each(|socket| self.end_stream(socket));
    }

    fn end_stream(&mut self, socket: SocketId) {
        self.streams.remove(&socket);
        self.driver.close(socket, Close::Graceful);
    }

    fn take_bytes(&mut self, socket: SocketId, bytes: &[u8]) {
        let Some(stream) = self.streams.get_mut(&socket) else {
            let mut waiting = self.waiting.iter_mut();
            let (_, kept) = waiting.find(|(it, _)| *it == socket).unwrap();
            return kept.extend_from_slice(bytes);
        };
        let (octets, queries) = stream.answer(bytes);
        self.queries += queries;
        match self.driver.send_bytes(socket, &octets) {
            Ok(taken) => assert_eq!(taken, octets.len(), "the window is wide enough"),
            // Its client gave it up while it waited for a slot.
            Err(_) => self.end_stream(socket),
        }
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

/// A self-signed certificate at both ends; the client remembers its sessions if it `resumes`.
pub(crate) fn tls(transport: Transport, resumes: bool) -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let pem = made.cert.pem().into_bytes();
    let key = made.signing_key.serialize_pem().into_bytes();
    let alpn = load::tls::default_alpn(transport);
    let server = server_config_with(
        &pem,
        &key,
        &ServerTlsOptions {
            quic: transport.is_quic(),
            alpn: alpn.clone(),
            tickets: Tickets::Stateless { count: 2 },
            ..ServerTlsOptions::default()
        },
    );
    let client = client_config(&ClientTlsOptions {
        roots: Roots::Pem(pem),
        alpn,
        resumption: resumes,
        ..ClientTlsOptions::default()
    });
    (server.unwrap(), client.unwrap())
}
