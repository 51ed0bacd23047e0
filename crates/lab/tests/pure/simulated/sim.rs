//! The one way in which these tests run the simulator: a scenario in a few words, and its record.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use driver::sim::{Link, Outage, Stall};
use engine::{Observation, TlsSettings};
use lab::live::Live;
use lab::run::{
    Description, InjectedDatagram, RunRequest, Simulation, TlsRequest, simulate_servers,
    simulate_until_interrupted,
};
use load::arrival::{Arrival, Process};
use load::{Plan, QuestionSet, names_file};
use measure::{Counts, Histogram, RunRecord};
use proto::doh::{DohRequest, Method};
use proto::query::QueryOptions;
use proto::tls::rustls::pki_types::ServerName;
use proto::tls::{ClientTlsOptions, Roots, ServerTlsOptions, Tickets};
use proto::{Instant, Transport};
use responder::certificate::{SelfSigned, self_signed};
use responder::{Behaviour, Counters, ResponderConfig};

/// Where the target is.
pub(crate) const TARGET: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 53));
/// Where the generator is.
pub(crate) const GENERATOR: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// Octets of each query of [`Sim::names`].
pub(crate) const QUERY_OCTETS: u64 = 37;

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// As a flag has it, such as `exponential:4ms`.
pub(crate) fn delay(text: &str) -> responder::Delay {
    responder::behaviour::parse_delay(text).unwrap()
}

/// As a flag has it, such as `at=1s,for=1s`.
pub(crate) fn stall(text: &str) -> responder::Stall {
    responder::behaviour::parse_stall(text).unwrap()
}

/// An instant of the world, which begins shortly before the run.
pub(crate) fn at_ms(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

pub(crate) fn ns(milliseconds: u64) -> u64 {
    milliseconds * 1_000_000
}

/// A scenario. By default one client over UDP keeps one query in flight for a second, the network
/// takes no time and the target answers at once.
#[derive(Clone)]
pub(crate) struct Sim {
    pub(crate) plan: Plan,
    pub(crate) simulation: Simulation,
    certificate: SelfSigned,
    tls_verify: bool,
    tls_resume: load::Resume,
    tickets: Tickets,
    /// Octets of early data that the target takes; none is tried if it takes none.
    early_octets_max: u32,
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The octets of the questions would bury the rest.
        let mut plan = self.plan.clone();
        plan.questions = Arc::new(QuestionSet::new());
        let Simulation {
            world,
            responder,
            absences,
            injected,
        } = &self.simulation;
        f.debug_struct("Sim")
            .field("plan", &plan)
            .field("world", world)
            .field("behaviour", &responder.behaviour)
            .field("absences", absences)
            .field("injected", &injected.len())
            .finish_non_exhaustive()
    }
}

impl Sim {
    pub(crate) fn seed(seed: u64) -> Sim {
        let plan = Plan {
            duration: Some(ms(1_000)),
            seed,
            ..Plan::new(
                SocketAddr::new(TARGET, 53),
                Transport::Udp,
                Arc::new(QuestionSet::new()),
            )
        };
        let mut simulation = Simulation::default();
        simulation.world.seed = seed;
        simulation.world.link = Link::constant(Duration::ZERO);
        simulation.responder.seed = seed;
        let certificate = SelfSigned {
            deterministic_lengths: true,
            ..SelfSigned::default()
        };
        let sim = Sim {
            plan,
            simulation,
            certificate,
            tls_verify: true,
            tls_resume: load::Resume::NEVER,
            tickets: ServerTlsOptions::default().tickets,
            early_octets_max: 0,
        };
        sim.names(100)
    }

    pub(crate) fn udp(self) -> Sim {
        self.over(Transport::Udp)
    }

    pub(crate) fn tcp(self) -> Sim {
        self.over(Transport::Tcp)
    }

    pub(crate) fn over(mut self, transport: Transport) -> Sim {
        self.plan.transport = transport;
        self.plan.doh = transport.is_doh().then(|| {
            let uri = "https://localhost/dns-query";
            Arc::new(DohRequest::new(Method::Post, uri, &[]).unwrap())
        });
        self
    }

    /// Asks for `count` different names of equal length, in turn.
    pub(crate) fn names(self, count: u32) -> Sim {
        let lines = (0..count).map(|number| format!("record-{number:04}.example. A\n"));
        self.names_text(&lines.collect::<String>())
    }

    /// Of the names of [`Sim::names`], those with these numbers get no response.
    pub(crate) fn silent_names(self, numbers: impl IntoIterator<Item = u32>) -> Sim {
        let silent = numbers.into_iter().map(wire_name).collect();
        self.responder(|responder| responder.silent_names = silent)
    }

    /// Of the names of [`Sim::names`], the response to this one takes longer.
    pub(crate) fn slow_name(self, number: u32, delay_ms: u64) -> Sim {
        let slow = (wire_name(number), ms(delay_ms));
        self.responder(|responder| responder.slow_names.push(slow))
    }

    /// Asks for what a names file says.
    pub(crate) fn names_text(mut self, text: &str) -> Sim {
        let questions = names_file::parse_text(text.as_bytes(), &QueryOptions::default());
        self.plan.questions = Arc::new(questions.unwrap());
        self
    }

    pub(crate) fn clients(mut self, clients: u32) -> Sim {
        self.plan.clients = clients;
        self
    }

    pub(crate) fn workers(mut self, workers: u32) -> Sim {
        self.plan.workers = workers;
        self
    }

    /// Closed loop.
    pub(crate) fn outstanding(mut self, outstanding: u32) -> Sim {
        self.plan.arrival = Arrival::Closed {
            outstanding,
            rate_qps_max: None,
        };
        self
    }

    /// Closed loop with a cap on the rate.
    pub(crate) fn outstanding_capped(mut self, outstanding: u32, rate_qps: f64) -> Sim {
        self.plan.arrival = Arrival::Closed {
            outstanding,
            rate_qps_max: Some(rate_qps),
        };
        self
    }

    /// Open loop, equally spaced.
    pub(crate) fn rate(self, rate_qps: f64) -> Sim {
        self.open_loop(rate_qps, Process::Constant)
    }

    /// Open loop, exponential gaps.
    pub(crate) fn poisson(self, rate_qps: f64) -> Sim {
        self.open_loop(rate_qps, Process::Poisson)
    }

    fn open_loop(mut self, rate_qps: f64, process: Process) -> Sim {
        self.plan.arrival = Arrival::Open {
            rate_qps,
            process,
            burst: 1,
        };
        self
    }

    /// Each client does what this says.
    pub(crate) fn script(mut self, text: &str) -> Sim {
        self.plan.arrival = Arrival::Script(Arc::new(load::ScriptText {
            file_name: "test.lua".to_owned(),
            text: text.to_owned(),
            ..load::ScriptText::default()
        }));
        self
    }

    pub(crate) fn duration_ms(mut self, duration_ms: u64) -> Sim {
        self.plan.duration = Some(ms(duration_ms));
        self
    }

    /// Ends after `queries` queries, and for no other reason.
    pub(crate) fn queries(mut self, queries: u64) -> Sim {
        self.plan.queries_max = Some(queries);
        self.plan.duration = None;
        self
    }

    pub(crate) fn warmup_ms(mut self, warmup_ms: u64) -> Sim {
        self.plan.warmup = ms(warmup_ms);
        self
    }

    pub(crate) fn timeout_ms(mut self, timeout_ms: u64) -> Sim {
        self.plan.timeout = ms(timeout_ms);
        self
    }

    /// Anything else of the plan.
    pub(crate) fn plan(mut self, change: impl FnOnce(&mut Plan)) -> Sim {
        change(&mut self.plan);
        self
    }

    pub(crate) fn one_way_delay_ms(self, delay_ms: u64) -> Sim {
        self.link(|link| link.delay = ms(delay_ms))
    }

    /// Changes the network, both ways.
    pub(crate) fn link(mut self, change: impl FnOnce(&mut Link)) -> Sim {
        change(&mut self.simulation.world.link);
        self
    }

    /// Changes the way to one of the two alone.
    pub(crate) fn link_towards(mut self, to: IpAddr, change: impl FnOnce(&mut Link)) -> Sim {
        let mut link = self.simulation.world.link;
        change(&mut link);
        self.simulation.world.links_towards.push((to, link));
        self
    }

    /// What arrives at `address` within the span is held until its end.
    pub(crate) fn held_at(mut self, address: IpAddr, start: Instant, length_ms: u64) -> Sim {
        self.simulation.world.stalls.push(Stall {
            address,
            start,
            length: ms(length_ms),
        });
        self
    }

    /// The target's process is dead for a while.
    pub(crate) fn target_dead(mut self, start_ms: u64, length_ms: u64) -> Sim {
        self.simulation.absences.push(Outage {
            start: at_ms(start_ms),
            length: ms(length_ms),
        });
        self
    }

    /// A datagram arrives at client 0, which then has local port 40,000.
    pub(crate) fn injected(mut self, from: SocketAddr, octets: Vec<u8>, at: Instant) -> Sim {
        self.plan.local_port = 40_000;
        self.simulation.injected.push(InjectedDatagram {
            from,
            to: SocketAddr::new(GENERATOR, 40_000),
            octets,
            at,
        });
        self
    }

    pub(crate) fn behaviour(self, change: impl FnOnce(&mut Behaviour)) -> Sim {
        self.responder(|responder| change(&mut responder.behaviour))
    }

    pub(crate) fn responder(mut self, change: impl FnOnce(&mut ResponderConfig)) -> Sim {
        change(&mut self.simulation.responder);
        self
    }

    pub(crate) fn certificate(mut self, change: impl FnOnce(&mut SelfSigned)) -> Sim {
        change(&mut self.certificate);
        self
    }

    pub(crate) fn tls_insecure(mut self) -> Sim {
        self.tls_verify = false;
        self
    }

    /// Every connection resumes its client's session, if the target gave a ticket.
    pub(crate) fn resuming(mut self, tickets: Tickets) -> Sim {
        self.tls_resume = load::Resume::ALWAYS;
        self.tickets = tickets;
        self
    }

    /// This share of the connections resumes its client's session, with early data, of which the
    /// target accepts `octets_max` octets.
    pub(crate) fn resuming_early(mut self, share: f64, octets_max: u32) -> Sim {
        self.tls_resume = share.to_string().parse().unwrap();
        self.early_octets_max = octets_max;
        self.tickets = Tickets::Stored {
            count: 2,
            sessions_max: 1_000,
        };
        self
    }

    /// Asks one question `queries` times.
    pub(crate) fn ask(self, queries: u64, question: &str) -> Run {
        self.names_text(question).queries(queries).run()
    }

    /// Runs it. Every record has to agree with itself and to survive being written and read.
    pub(crate) fn run(self) -> Run {
        let seed = self.plan.seed;
        let (record, servers) = self.try_run_servers().unwrap_or_else(|what| {
            panic!("seed {seed}: {what}");
        });
        let responder = sum(&servers);
        Run {
            record,
            responder,
            servers,
        }
    }

    /// Runs it; an error says what is wrong with the run or its record.
    pub(crate) fn try_run(self) -> Result<(RunRecord, Counters), String> {
        let (record, servers) = self.try_run_servers()?;
        Ok((record, sum(&servers)))
    }

    /// As [`Sim::try_run`], with what each server counted.
    pub(crate) fn try_run_servers(mut self) -> Result<(RunRecord, Vec<Counters>), String> {
        let request = self.request()?;
        self.simulate(&[request])
    }

    /// Runs with others beside it, each a group of clients; the world is that of this one.
    pub(crate) fn try_run_beside(mut self, others: Vec<Sim>) -> Result<RunRecord, String> {
        let mut requests = vec![self.request()?];
        for (mut other, number) in others.into_iter().zip(2..) {
            let mut request = other.request()?;
            request.group = format!("group {number}");
            requests.push(request);
        }
        Ok(self.simulate(&requests)?.0)
    }

    /// Runs it until an observer of its queries and connections has `is_enough`, and is interrupted
    /// then, at whatever virtual time that is.
    pub(crate) fn run_until(
        mut self,
        mut is_enough: impl FnMut(Observation) -> bool + Send + 'static,
    ) -> RunRecord {
        let mut request = self.request().unwrap();
        let (observer, observations) = engine::observer();
        request.observer = Some(observer);
        let groups = [request];
        let control = lab::run::control(&groups);
        let interrupting = Arc::clone(&control);
        let watching = std::thread::spawn(move || {
            if (&observations).into_iter().any(&mut is_enough) {
                interrupting.interrupt();
            }
        });
        let record =
            simulate_until_interrupted(&groups, &self.simulation, &control, &Live::default())
                .unwrap();
        drop(groups);
        watching.join().unwrap();
        check(&record).unwrap();
        record
    }

    /// Runs it as a command does, and publishes.
    pub(crate) fn run_live(mut self, live: &Live) -> RunRecord {
        let groups = [self.request().unwrap()];
        let control = lab::run::control(&groups);
        simulate_until_interrupted(&groups, &self.simulation, &control, live).unwrap()
    }

    fn simulate(&self, groups: &[RunRequest]) -> Result<(RunRecord, Vec<Counters>), String> {
        let simulated = simulate_servers(groups, &self.simulation);
        let (record, servers) = simulated.map_err(|error| error.to_string())?;
        check(&record)?;
        Ok((record, servers))
    }

    fn request(&mut self) -> Result<RunRequest, String> {
        self.plan.validate().map_err(|error| error.to_string())?;
        let tls = self.plan.transport.has_tls().then(|| self.tls());
        Ok(RunRequest {
            group: measure::experience::GroupRecord::PLAIN.to_owned(),
            plan: self.plan.clone(),
            tls,
            cpus: Vec::new(),
            driver: driver::kernel::DriverChoice::Auto,
            asked: Arc::new(settings::Run {
                servers: vec![self.plan.target.to_string()],
                ..settings::Run::default()
            }),
            description: Description {
                questions_source: "test".to_owned(),
                ..Description::default()
            },
            preflight: false,
            observer: None,
            observe: lab::observing::Sources::default(),
        })
    }

    fn tls(&mut self) -> TlsRequest {
        let identity = self_signed(&self.certificate).unwrap();
        let transport = self.plan.transport;
        let options = ServerTlsOptions {
            tickets: self.tickets,
            early_data_octets_max: self.early_octets_max,
            ..ServerTlsOptions::default()
        };
        let server = identity.config(transport, &options);
        self.simulation.responder.tls = Some(server.unwrap());
        let config = proto::tls::client_config(&ClientTlsOptions {
            roots: Roots::Pem(identity.certificate_pem.into_bytes()),
            verify: self.tls_verify,
            alpn: load::tls::default_alpn(self.plan.transport),
            resumption: !self.tls_resume.is_never(),
            early_data: self.early_octets_max > 0,
            ..ClientTlsOptions::default()
        });
        TlsRequest {
            asked: load::TlsAsked::default(),
            key_log: None,
            settings: TlsSettings {
                config: config.unwrap(),
                name: ServerName::try_from("localhost").unwrap(),
                resume: self.tls_resume,
            },
            verified: self.tls_verify,
            name: "localhost".to_owned(),
        }
    }
}

/// A name of [`Sim::names`], in wire format.
fn wire_name(number: u32) -> Vec<u8> {
    let mut wire = Vec::new();
    proto::name::parse(&format!("record-{number:04}.example."), &mut wire).unwrap();
    wire
}

fn sum(servers: &[Counters]) -> Counters {
    let mut all = Counters::default();
    servers.iter().for_each(|server| all += server);
    all
}

/// What holds for every record.
fn check(record: &RunRecord) -> Result<(), String> {
    record.check()?;
    check_connections(record)?;
    check_open_connections(record)?;
    check_losses_by_question(record)?;
    for pair in record.intervals.windows(2) {
        if pair[0].end_ns != pair[1].start_ns {
            let gap = (pair[0].end_ns, pair[1].start_ns);
            return Err(format!("an interval ends and the next begins at {gap:?}"));
        }
    }
    if let Some(empty) = record
        .intervals
        .iter()
        .find(|interval| interval.length_ns() == 0)
    {
        return Err(format!(
            "an interval without length at {} ns",
            empty.start_ns
        ));
    }
    let service = record.total.distributions.service.count();
    let lateness = record.total.distributions.send_lateness.count();
    if (service, lateness) != (record.total.counts.responses, record.total.counts.sent) {
        return Err(format!(
            "{service} service times and {lateness} send latenesses"
        ));
    }
    let back = RunRecord::from_json(&record.to_json())?;
    match back == *record {
        true => Ok(()),
        false => Err("the record read from its JSON differs".to_owned()),
    }
}

/// Every attempt to connect, and every usable connection, has exactly one end.
fn check_connections(record: &RunRecord) -> Result<(), String> {
    let connections = record.connections();
    let usable = record.scenario.usable(&connections);
    let races_lost = record.warmup.counts.stub.races_lost + record.total.counts.stub.races_lost;
    let begun = usable + connections.failed.total() + connections.abandoned + races_lost;
    let ended = connections.ended();
    let (by_target, counted) = (
        connections.ended_by_target(),
        connections.ended_after.connections,
    );
    if by_target != counted {
        return Err(format!(
            "queries of {counted} connections were counted, and {by_target} ended by the target"
        ));
    }
    match (connections.attempted, usable) == (begun, ended) {
        true => Ok(()),
        false => Err(format!(
            "of {} attempts {begun} are accounted for, of {usable} usable connections {ended}: \
             {connections:?}",
            connections.attempted
        )),
    }
}

/// Each query without a response asked some question.
fn check_losses_by_question(record: &RunRecord) -> Result<(), String> {
    let counts = &record.total.counts;
    let lost = counts.timeouts + counts.connection_losses;
    match &record.losses_by_question {
        Some(it) if record.groups.len() == 1 && it.lost + it.lost_of_others != lost => Err(
            format!("{lost} queries without a response, by question: {it:?}"),
        ),
        _ => Ok(()),
    }
}

/// However connections came and went: at no time more were open than there were, or than clients
/// and their fallbacks have. A client over HTTP/2 has up to eight that retire beside its own.
fn check_open_connections(record: &RunRecord) -> Result<(), String> {
    let clients: u64 = record.groups.iter().map(|group| group.clients).sum();
    let retiring = if record.scenario.http.is_some() { 8 } else { 0 };
    let places = clients * (1 + u64::from(record.scenario.tcp_fallback) + retiring);
    let mut there = 0;
    for interval in std::iter::once(&record.warmup).chain(&record.intervals) {
        let counts = &interval.counts.connections;
        let met = there + record.scenario.usable(counts);
        there = met.saturating_sub(counts.ended());
        let (at_end, most) = (interval.connections_open, interval.connections_open_max);
        let most = most.unwrap_or(0);
        if at_end > most || most > places.min(met) {
            return Err(format!(
                "{at_end} connections open at {} ns and {most} at most, of {places} clients and \
                 {met} connections",
                interval.end_ns
            ));
        }
    }
    Ok(())
}

/// A run that has ended.
pub(crate) struct Run {
    pub(crate) record: RunRecord,
    /// What the target counted, all servers together.
    pub(crate) responder: Counters,
    /// What each server counted.
    pub(crate) servers: Vec<Counters>,
}

impl Run {
    pub(crate) fn counts(&self) -> &Counts {
        &self.record.total.counts
    }

    pub(crate) fn offered(&self) -> u64 {
        self.counts().offered
    }

    pub(crate) fn sent(&self) -> u64 {
        self.counts().sent
    }

    pub(crate) fn responses(&self) -> u64 {
        self.counts().responses
    }

    pub(crate) fn timeouts(&self) -> u64 {
        self.counts().timeouts
    }

    pub(crate) fn late(&self) -> u64 {
        self.counts().late
    }

    pub(crate) fn latency(&self) -> &Histogram {
        &self.record.total.distributions.latency
    }

    pub(crate) fn service(&self) -> &Histogram {
        &self.record.total.distributions.service
    }

    /// Queries that the target counted over the transport of the run.
    pub(crate) fn target_queries(&self) -> u64 {
        self.responder.queries.total()
    }

    /// Asserts that what was sent, warm-up included, is what the target received.
    pub(crate) fn assert_all_arrived(&self) {
        let sent = self.sent() + self.record.warmup.counts.sent;
        assert_eq!(sent, self.target_queries());
    }
}

/// Asserts that `value` is within the error of a histogram bucket of `expected`, or within
/// `slack_ns` of it.
#[track_caller]
pub(crate) fn assert_near(value: Option<u64>, expected: u64, slack_ns: u64) {
    let value = value.unwrap();
    let allowed = slack_ns + expected / 128;
    assert!(
        value.abs_diff(expected) <= allowed,
        "{value} ns is not within {allowed} ns of {expected} ns"
    );
}
