//! After the first moments of a run the engine allocates nothing for a query.
//!
//! A worker runs in virtual time against a target that echoes. Allocations are counted within the
//! turns of the worker alone; closing an interval copies its figures, so none ends meanwhile.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use driver::clock::Clock;
use driver::epoll::EpollDriver;
use driver::sim::{Bounds, Link, Stepper, Turn, World, WorldConfig};
use driver::{Driver, SocketOptions};
use engine::{Control, RunInputs, ThreadWorkers, TlsSettings};
use load::arrival::{Arrival, Process};
use load::profile::{ProfiledClients, RankNames, questions};
use load::replay::ReplayQuery;
use load::{Plan, Profile, Replay, StampSource};
use measure::client_latency::ClientLatency;
use proto::query::QueryOptions;
use proto::tls::rustls::pki_types::ServerName;
use proto::tls::rustls::{ClientConfig, ServerConfig};
use proto::tls::{ClientTls, ClientTlsOptions, Roots, ServerTls};
use proto::{Instant, Transport};

use crate::echo::{Echo, plan};

/// Allocations are counted between these instants of a run of 2 s.
const COUNTED: std::ops::Range<Instant> =
    Instant::from_nanos(1_000_000_000)..Instant::from_nanos(1_900_000_000);

/// A self-signed certificate at both ends.
fn tls() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let pem = made.cert.pem().into_bytes();
    let key = made.signing_key.serialize_pem().into_bytes();
    let server = proto::tls::server_config(&pem, &key).unwrap();
    let options = ClientTlsOptions {
        roots: Roots::Pem(pem),
        ..ClientTlsOptions::default()
    };
    (server, proto::tls::client_config(&options).unwrap())
}

/// Allocations of the worker, and queries that the target saw, while they were counted.
fn count(transport: Transport, clients: u32, population: Population) -> (u64, u64) {
    count_stamped(transport, clients, population, None)
}

/// The same, perhaps with datagrams that are stamped.
fn count_stamped(
    transport: Transport,
    clients: u32,
    population: Population,
    timestamps: Option<StampSource>,
) -> (u64, u64) {
    let world = World::new(WorldConfig {
        link: Link::constant(Duration::from_millis(1)),
        ..WorldConfig::default()
    });
    let closed = Arrival::Closed {
        outstanding: 1,
        rate_qps_max: None,
    };
    let mut plan = plan(transport, clients, closed);
    populate(&mut plan, population);
    plan.sockets.timestamps = timestamps;
    plan.sockets.offload = timestamps.is_none();
    let (server, client) = tls();
    let is_dot = transport == Transport::Dot;
    let echo = Echo::open(&world, &plan, is_dot.then_some(server));
    let echo = RefCell::new(echo);
    let inputs = RunInputs {
        plan: Arc::new(plan),
        tls: is_dot.then(|| TlsSettings {
            config: client,
            name: ServerName::try_from("localhost").unwrap(),
            resume: load::Resume::NEVER,
        }),
        observer: None,
    };
    let mut driver = world.endpoint(IpAddr::from([192, 0, 2, 1]));
    let mut worker =
        ThreadWorkers::new(std::slice::from_ref(&inputs), 0, &Arc::new(Control::new(1)));
    worker.open(&mut driver).unwrap();
    let allocations = Cell::new(0);
    let queries = Cell::new((0, 0));
    let echo_endpoint = echo.borrow().driver.endpoint();
    let mut steppers = [
        Stepper::serving(echo_endpoint, || {
            echo.borrow_mut().step();
            Turn::Waiting
        }),
        Stepper::leading(driver.endpoint(), || {
            let now = driver.now();
            let mut until = now;
            let counted = allocation_counter::measure(|| until = worker.step(&mut driver));
            let seen = echo.borrow().queries;
            if COUNTED.contains(&now) {
                allocations.set(allocations.get() + counted.count_total);
                queries.set((queries.get().0, seen));
            } else if now < COUNTED.start {
                queries.set((seen, seen));
            }
            driver.wait(until);
            match worker.is_finished() {
                true => Turn::Finished,
                false => Turn::Waiting,
            }
        }),
    ];
    world.run(&mut steppers, Bounds::default()).unwrap();
    drop(steppers);
    let (before, after) = queries.get();
    (allocations.get(), after - before)
}

/// A hundred queries a second of each of ten clients, in bursts of five, for names that are kept,
/// numbered or new.
const PROFILE: &str = r#"
version = 1
span_s = 10.0
clients = 10
queries = 10000
unanswered = 0
queries_per_connection = []
gaps_s = []
[transports]
udp = 10000
[qtypes]
A = 7000
AAAA = 3000
[rcodes]
[flags]
recursion_desired = 10000
checking_disabled = 100
edns = 5000
dnssec_ok = 1000
[names]
distinct = 1000
once = 500
zipf_exponent = 1.0
ranks = [[1, 0.2], [500, 0.9], [1000, 1.0]]
kept = ["www.example."]
[[class]]
rates_qps = [[100.0, 10]]
bursts = [[5, 100]]
active_gaps = [[0.2, 400]]
idle_gaps = [[4.2, 100]]
"#;

/// Who the clients are, if they are no crowd that is all alike.
#[derive(Clone, Debug)]
enum Population {
    Alike(Arrival),
    OfProfile,
    OfCapture,
}

/// Gives a plan its clients, and what they ask.
fn populate(plan: &mut Plan, population: Population) {
    plan.arrival = match population {
        Population::Alike(arrival) => arrival,
        Population::OfProfile => {
            let profile = Profile::from_toml(PROFILE).unwrap();
            let names = RankNames::of(&profile, Some("example")).unwrap();
            let asked = questions(&profile, &names, &QueryOptions::default()).unwrap();
            plan.questions = Arc::new(asked.0);
            plan.question_source = asked.1;
            let population = load::profile::Population::new(&profile).unwrap();
            Arrival::Profile(Arc::new(ProfiledClients::new(population, 1.0).unwrap()))
        }
        Population::OfCapture => {
            let query = |number: u32| ReplayQuery {
                at_ns: u64::from(number) * 1_000_000,
                client: number % plan.clients,
                question: number * 7 % plan.questions.len() as u32,
            };
            let replay = Replay::new((0..500).map(query).collect(), plan.clients, 5).unwrap();
            plan.queries_max = Some(replay.queries_total());
            Arrival::Replay(Arc::new(replay))
        }
    };
}

/// Closed and open loop, few and many queries in a batch, populations.
fn loads() -> [(u32, Population); 6] {
    let closed = |outstanding| {
        Population::Alike(Arrival::Closed {
            outstanding,
            rate_qps_max: None,
        })
    };
    let open = |process| {
        Population::Alike(Arrival::Open {
            rate_qps: 10_000.0,
            process,
            burst: 1,
        })
    };
    [
        (1, closed(1)),
        (10, closed(1_000)),
        (10, open(Process::Constant)),
        (10, open(Process::Poisson)),
        (10, Population::OfProfile),
        (10, Population::OfCapture),
    ]
}

/// The table of a client's open queries doubles when it has more open than ever before, which
/// random arrivals may bring about at any time; nothing else allocates.
fn most_allocations(population: &Population, clients: u32) -> u64 {
    match population {
        Population::Alike(Arrival::Open {
            process: Process::Poisson,
            ..
        }) => clients.into(),
        _ => 0,
    }
}

#[test]
fn queries_over_udp_and_tcp_allocate_nothing() {
    for transport in [Transport::Udp, Transport::Tcp] {
        for (clients, population) in loads() {
            let what = format!("{transport} {population:?}");
            let (allocations, queries) = count(transport, clients, population.clone());
            assert!(queries >= 400, "{what}: {queries} queries");
            let most = most_allocations(&population, clients);
            assert!(
                allocations <= most,
                "{what}: {allocations} for {queries} queries"
            );
        }
    }
}

#[test]
fn timestamps_allocate_nothing_for_a_query() {
    for (clients, population) in loads() {
        let what = format!("{population:?}");
        let stamping = Some(StampSource::Kernel);
        let (allocations, queries) =
            count_stamped(Transport::Udp, clients, population.clone(), stamping);
        assert!(queries >= 400, "{what}: {queries} queries");
        let most = most_allocations(&population, clients);
        assert!(
            allocations <= most,
            "{what}: {allocations} for {queries} queries"
        );
    }
}

/// Sends each query back as its response.
fn answer(target: &UdpSocket) -> u64 {
    let mut message = [0; 512];
    let mut answered = 0;
    while let Ok((octets, from)) = target.recv_from(&mut message) {
        // QR (RFC 1035, section 4.1.1).
        message[2] |= 0x80;
        target.send_to(&message[..octets], from).unwrap();
        answered += 1;
    }
    answered
}

#[test]
fn the_kernels_timestamps_allocate_nothing_for_a_query() {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target.set_nonblocking(true).unwrap();
    let arrival = Arrival::Closed {
        outstanding: 100,
        rate_qps_max: None,
    };
    let mut plan = plan(Transport::Udp, 10, arrival);
    plan.target = target.local_addr().unwrap();
    plan.sockets.timestamps = Some(StampSource::Kernel);
    plan.sockets.offload = false;
    let inputs = RunInputs {
        plan: Arc::new(plan),
        tls: None,
        observer: None,
    };
    let options = SocketOptions {
        timestamps: Some(StampSource::Kernel),
        offload: false,
        ..SocketOptions::default()
    };
    let mut driver = EpollDriver::new(Clock::start(), options).unwrap();
    let mut worker =
        ThreadWorkers::new(std::slice::from_ref(&inputs), 0, &Arc::new(Control::new(1)));
    worker.open(&mut driver).unwrap();
    let (mut answered, mut allocations) = (0, 0);
    while answered < 20_000 && !worker.is_finished() {
        let counted = allocation_counter::measure(|| {
            let now = driver.now();
            worker.step(&mut driver);
            driver.wait(now);
        });
        if answered > 5_000 {
            allocations += counted.count_total;
        }
        answered += answer(&target);
    }
    assert!(answered > 5_000, "{answered} queries");
    // Closing an interval copies its figures. How long responses take is the machine's affair: the
    // latencies of a client grow with one that is shorter or longer than all before.
    let of_intervals = std::iter::from_fn(|| worker.poll_interval()).count() as u64 * 100;
    let of_clients = 10 * ClientLatency::ALLOCATIONS_MAX;
    assert!(
        allocations <= of_intervals + of_clients,
        "{allocations} for {answered} queries"
    );
}

/// Allocations of a TLS session by itself for one query and one response, a record each.
fn allocations_of_tls() -> u64 {
    let (server, client) = tls();
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientTls::new(client, name).unwrap();
    let mut server = ServerTls::new(server).unwrap();
    let (mut up, mut down, mut plaintext) = (Vec::new(), Vec::new(), Vec::with_capacity(4_096));
    for _ in 0..10 {
        client.poll_transmit(&mut up);
        server.handle_bytes(&up, &mut plaintext).unwrap();
        server.poll_transmit(&mut down);
        client.handle_bytes(&down, &mut plaintext).unwrap();
        up.clear();
        down.clear();
    }
    assert!(!client.is_handshaking() && plaintext.is_empty());
    let mut allocations = 0;
    for round in 0..20 {
        up.clear();
        plaintext.clear();
        let sent = allocation_counter::measure(|| {
            client.write_into(&[7; 40], &mut up);
        });
        server.handle_bytes(&up, &mut plaintext).unwrap();
        server.write(&plaintext);
        down.clear();
        server.poll_transmit(&mut down);
        plaintext.clear();
        let received = allocation_counter::measure(|| {
            client.handle_bytes(&down, &mut plaintext).unwrap();
        });
        // The buffers have their size after some rounds.
        if round >= 10 {
            allocations = allocations.max(sent.count_total + received.count_total);
        }
    }
    allocations
}

#[test]
fn queries_over_dot_allocate_nothing() {
    let of_tls = allocations_of_tls();
    assert_eq!(of_tls, 0);
    for (clients, population) in loads() {
        let what = format!("{population:?}");
        let (allocations, queries) = count(Transport::Dot, clients, population);
        assert!(queries >= 400, "{what}: {queries} queries");
        // Buffers may grow once more under the largest batch so far.
        assert!(
            allocations <= 16,
            "{what}: {allocations} for {queries} queries"
        );
    }
}
