//! The plan: one run as decided, before anything is started. Immutable, shared by all workers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use proto::Transport;
use proto::doh::DohRequest;
use settings::{ConnectionPolicy, Presence, SocketOptions, StubPolicy};

use crate::arrival::{Arrival, check_burst, check_rate};
use crate::plan_error::PlanError;
use crate::question_source::QuestionSource;
use crate::questions::QuestionSet;
use crate::replay::{Replay, ReplayQuery};
use crate::shape::Shape;
use crate::{client_arrival, connection_policy, presence, stub};

pub use crate::local_addresses::expand_local_addresses;
pub use crate::script_text::ScriptText;

/// The most queries in flight of one client: all message IDs (RFC 1035, section 4.1.1) except those
/// reserved for queries that timed out, so that a late response is never matched to a newer query.
pub const OUTSTANDING_PER_CLIENT_MAX: u64 = proto::pending::OPEN_MAX as u64;

/// Shortest interval of a record.
pub const INTERVAL_MIN: Duration = Duration::from_millis(1);
/// Longest message over a stream (RFC 1035, section 4.2.2).
const STREAM_MESSAGE_OCTETS_MAX: usize = 65_535;
/// Longest UDP payload in one IPv4 datagram: 65,535 less headers of 20 and 8 octets.
const UDP_PAYLOAD_OCTETS_MAX: usize = 65_507;

/// One run as decided.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The target's address and port.
    pub target: SocketAddr,
    /// How to reach it.
    pub transport: Transport,
    /// The questions: templates of messages.
    pub questions: Arc<QuestionSet>,
    /// Which question is next, and what is changed in its copy.
    pub question_source: QuestionSource,
    /// When queries are due.
    pub arrival: Arrival,
    /// Simulated clients over all workers; each has its own socket or connection. At least 1.
    pub clients: u32,
    /// Worker threads, at least 1 and at most `clients`.
    pub workers: u32,
    /// How long queries are offered in the measured run; `None` if only `queries_max` ends it.
    pub duration: Option<Duration>,
    /// Load offered before the measured run and excluded from its figures.
    pub warmup: Duration,
    /// End the run after this number of queries (`--queries`, or `--loops` times the questions).
    pub queries_max: Option<u64>,
    /// A query without response for this long has timed out; measured from when it was sent, or
    /// from when it was scheduled while it waits for its connection.
    pub timeout: Duration,
    /// Length of one interval of the record.
    pub interval: Duration,
    /// Seeds everything random.
    pub seed: u64,
    /// Local addresses, used in turn by the clients; empty lets the kernel choose.
    pub local_addresses: Vec<IpAddr>,
    /// First local port, 0 to let the kernel choose; client `n` gets this port plus `n`.
    pub local_port: u16,
    /// When the clients are present, and resets of their connections.
    pub presence: Presence,
    /// How the rate of each client changes over time (with [`Arrival::Clients`]).
    pub shape: Option<Arc<Shape>>,
    /// How long connections live, and how they are opened.
    pub connections: ConnectionPolicy,
    /// The requests of DoH; `None` on other transports.
    pub doh: Option<Arc<DohRequest>>,
    /// Repeat a query over TCP when its UDP response is truncated.
    pub tcp_fallback: bool,
    /// Attempts of each query and servers of each client; `None` sends each query once to one
    /// server, without extra cost.
    pub stub: Option<Arc<StubPolicy>>,
    /// How sockets are opened; timestamps are for UDP, and without offload.
    pub sockets: SocketOptions,
    /// Keep statistics of each client: some 120 bytes a client and about 85 instructions a query.
    pub client_statistics: bool,
    /// Accepts, as dnsperf does, any message with the ID of a query in flight as its response,
    /// regardless of QR bit and question, and over HTTP/2 also with the media type
    /// `application/dns`.
    pub matches_by_id_alone: bool,
    /// Signs every query.
    pub tsig: Option<proto::tsig::Key>,
}

/// Which share of `total` falls to `worker` of `workers`; the shares add up to `total`.
pub fn share(total: u64, worker: u32, workers: u32) -> u64 {
    let (worker, workers) = (u64::from(worker), u64::from(workers));
    total / workers + u64::from(worker < total % workers)
}

impl Plan {
    /// One client on one worker that keeps one query in flight, without an end. All other settings
    /// are off or at the defaults of a run.
    pub fn new(target: SocketAddr, transport: Transport, questions: Arc<QuestionSet>) -> Plan {
        Plan {
            target,
            transport,
            questions,
            question_source: QuestionSource::default(),
            arrival: Arrival::Closed {
                outstanding: 1,
                rate_qps_max: None,
            },
            clients: 1,
            workers: 1,
            duration: None,
            warmup: Duration::ZERO,
            queries_max: None,
            timeout: Duration::from_secs(5),
            interval: Duration::from_secs(1),
            seed: 1,
            local_addresses: Vec::new(),
            local_port: 0,
            presence: Presence::default(),
            shape: None,
            connections: ConnectionPolicy::default(),
            doh: None,
            tcp_fallback: false,
            stub: None,
            sockets: SocketOptions::default(),
            client_statistics: true,
            matches_by_id_alone: false,
            tsig: None,
        }
    }

    /// How many of the clients `worker` simulates.
    pub fn worker_clients(&self, worker: u32) -> u32 {
        // A share of a u32 is one.
        share(self.clients.into(), worker, self.workers) as u32
    }

    /// How many queries `worker` keeps in flight; `None` in open loop, which has no limit.
    pub fn worker_outstanding(&self, worker: u32) -> Option<u32> {
        match self.arrival {
            Arrival::Closed { outstanding, .. } => {
                Some(share(outstanding.into(), worker, self.workers) as u32)
            }
            Arrival::Open { .. }
            | Arrival::Clients(_)
            | Arrival::Script(_)
            | Arrival::Profile(_)
            | Arrival::Replay(_) => None,
        }
    }

    /// Checks for settings that cannot be used or that contradict each other.
    ///
    /// # Errors
    /// The first one found; nothing may be started then.
    pub fn validate(&self) -> Result<(), PlanError> {
        self.validate_questions()?;
        self.validate_population()?;
        self.validate_arrival()?;
        self.validate_times()?;
        presence::validate(&self.presence, self.duration)?;
        self.validate_transport()?;
        self.validate_local()
    }

    fn validate_questions(&self) -> Result<(), PlanError> {
        if self.questions.is_empty() && !matches!(self.arrival, Arrival::Script(_)) {
            let hint = "give at least one question, such as `example.com A`";
            return Err(PlanError::new("names", "there are no questions", hint));
        }
        let signature_octets = self
            .tsig
            .as_ref()
            .map_or(0, proto::tsig::Key::record_octets);
        let label_octets = self.question_source.label_octets_max();
        let octets = self.questions.message_octets_max() + label_octets + signature_octets;
        let octets_max = if self.transport.has_connections() {
            STREAM_MESSAGE_OCTETS_MAX
        } else {
            UDP_PAYLOAD_OCTETS_MAX
        };
        if octets > octets_max {
            let transport = self.transport;
            let signed = if self.tsig.is_some() {
                " with its TSIG record"
            } else {
                ""
            };
            let what = format!(
                "the longest query has {octets} bytes{signed}, {transport} carries {octets_max}"
            );
            let hint = "shorten its EDNS options, or send less in one update";
            return Err(PlanError::new("names", what, hint));
        }
        self.question_source.validate(self)
    }

    fn validate_population(&self) -> Result<(), PlanError> {
        let (clients, workers) = (self.clients, self.workers);
        if clients == 0 {
            return Err(at_least_one("clients"));
        }
        if workers == 0 {
            return Err(at_least_one("workers"));
        }
        if workers > clients {
            let what = format!("{workers} workers have only {clients} clients to simulate");
            let hint = format!("use {clients} workers or fewer, or more clients");
            return Err(PlanError::new("workers", what, hint));
        }
        Ok(())
    }

    fn validate_arrival(&self) -> Result<(), PlanError> {
        if self.shape.is_some()
            && !matches!(self.arrival, Arrival::Clients(_) | Arrival::Profile(_))
        {
            let hint = "give each client a rate, with --per-client or --profile";
            return Err(PlanError::new(
                "shape",
                "no client has a rate to shape",
                hint,
            ));
        }
        let (outstanding, rate_qps_max) = match &self.arrival {
            Arrival::Script(_) => return self.validate_script(),
            Arrival::Profile(_) => return self.validate_profile(),
            Arrival::Replay(replay) => return self.validate_replay(replay),
            &Arrival::Open {
                rate_qps, burst, ..
            } => {
                check_burst(burst)?;
                return check_rate("rate", rate_qps).map(drop);
            }
            Arrival::Clients(clients) => {
                if self.shape.is_some() && clients.rate_qps().is_none() {
                    let hint = "leave it out, or give each client a rate";
                    let what = "clients that wait for responses have no rate to shape";
                    return Err(PlanError::new("shape", what, hint));
                }
                return client_arrival::validate(clients);
            }
            &Arrival::Closed {
                outstanding,
                rate_qps_max,
            } => (outstanding, rate_qps_max),
        };
        if outstanding == 0 {
            return Err(at_least_one("outstanding"));
        }
        if outstanding < self.workers {
            let workers = self.workers;
            let what = format!(
                "{outstanding} in flight is too few for {workers} workers: some would never send"
            );
            let hint = format!("use {outstanding} workers or fewer, or raise outstanding");
            return Err(PlanError::new("outstanding", what, hint));
        }
        self.validate_outstanding_per_client()?;
        rate_qps_max.map_or(Ok(()), |rate| check_rate("rate", rate).map(drop))
    }

    fn validate_script(&self) -> Result<(), PlanError> {
        let what = if self.connections.asks_nothing() {
            "connections without queries leave it nothing to do"
        } else if self.question_source != QuestionSource::default() {
            "a script chooses its questions itself"
        } else {
            return Ok(());
        };
        let hint = "leave out the one or the other";
        Err(PlanError::new("script", what, hint))
    }

    fn validate_profile(&self) -> Result<(), PlanError> {
        let what = if self.question_source.ranked.is_none() {
            "the names are not those of the profile"
        } else if self.connections.asks_nothing() {
            "connections without queries leave its clients nothing to ask"
        } else {
            return Ok(());
        };
        let hint = "leave out the one or the other";
        Err(PlanError::new("profile", what, hint))
    }

    fn validate_replay(&self, replay: &Replay) -> Result<(), PlanError> {
        let wrong = |setting, what: &str, hint: &str| Err(PlanError::new(setting, what, hint));
        let (questions, either) = (self.questions.len(), "leave out the one or the other");
        let is_beyond = |query: &ReplayQuery| {
            query.client >= self.clients || query.question as usize >= questions
        };
        if self.question_source != QuestionSource::default() {
            return wrong("replay", "it asks the questions of the capture", either);
        }
        if !self.warmup.is_zero() {
            let what = "all queries of the capture count, none is there to warm up with";
            return wrong("warmup", what, "leave it out, and replay some part before");
        }
        if self.presence != Presence::default() {
            return wrong("replay", "its clients are there when they ask", either);
        }
        if self.connections.asks_nothing() {
            let what = "connections without queries leave its clients nothing to ask";
            return wrong("replay", what, either);
        }
        if self.clients != replay.clients() || replay.queries().iter().any(is_beyond) {
            return wrong("clients", "they are those of the capture", "leave it out");
        }
        Ok(())
    }

    /// Most queries in flight at one client; `None` in open loop, which has no limit.
    pub(crate) fn client_outstanding_max(&self) -> Option<u64> {
        // Shares never grow from one worker to the next, and the quotient is largest either at
        // the first worker or at the first with one client less.
        let first_smaller = self.clients % self.workers;
        let per_client = [0, first_smaller].into_iter().filter_map(|worker| {
            let outstanding = u64::from(self.worker_outstanding(worker)?);
            Some(outstanding.div_ceil(u64::from(self.worker_clients(worker))))
        });
        per_client.max()
    }

    /// Message IDs must tell the queries in flight on one socket or connection apart.
    fn validate_outstanding_per_client(&self) -> Result<(), PlanError> {
        let per_client_max = self.client_outstanding_max().unwrap_or(0);
        if per_client_max > OUTSTANDING_PER_CLIENT_MAX {
            let what = format!(
                "{per_client_max} queries in flight fall to one client, which may have \
                 {OUTSTANDING_PER_CLIENT_MAX} open"
            );
            let hint = "use more clients or lower outstanding";
            return Err(PlanError::new("outstanding", what, hint));
        }
        Ok(())
    }

    fn validate_times(&self) -> Result<(), PlanError> {
        let times = [
            ("timeout", Some(self.timeout)),
            ("interval", Some(self.interval)),
            ("duration", self.duration),
        ];
        for (setting, time) in times {
            if time.is_some_and(|time| time.is_zero()) {
                let hint = "give a time above zero, such as 5s";
                return Err(PlanError::new(setting, "must not be zero", hint));
            }
        }
        if self.interval < INTERVAL_MIN {
            let what = "it is less than 1ms";
            let hint = "give 1ms or more: what is shorter shows single queries, and cutting it \
                        would take the generator's time";
            return Err(PlanError::new("interval", what, hint));
        }
        if self.queries_max == Some(0) {
            return Err(at_least_one("queries"));
        }
        if self.duration.is_none() && self.queries_max.is_none() {
            let hint = "give a duration, a number of queries, or a number of loops";
            return Err(PlanError::new(
                "duration",
                "nothing would end the run",
                hint,
            ));
        }
        Ok(())
    }

    fn validate_transport(&self) -> Result<(), PlanError> {
        if self.target.port() == 0 {
            let what = format!("{} has port 0", self.target);
            return Err(PlanError::new(
                "server",
                what,
                "give the port it listens on",
            ));
        }
        connection_policy::validate(self)?;
        if let Some(policy) = &self.stub {
            stub::validate(policy, self)?;
        }
        if self.transport.is_doh() != self.doh.is_some() {
            let transport = self.transport;
            let what = match self.doh {
                None => format!("{transport} needs the URI of its requests"),
                Some(_) => format!("{transport} has no HTTP requests"),
            };
            return Err(PlanError::new(
                "doh-path",
                what,
                "use it with doh2 and doh3",
            ));
        }
        self.validate_timestamps()?;
        if self.tcp_fallback && self.transport.has_connections() {
            let transport = self.transport;
            let what = format!("{transport} has no truncated responses to repeat over TCP");
            return Err(PlanError::new(
                "tcp-fallback",
                what,
                "use it with transport udp",
            ));
        }
        Ok(())
    }

    fn validate_timestamps(&self) -> Result<(), PlanError> {
        const OTHER: &str = "use transport udp, or leave them out";
        if self.sockets.timestamps.is_none() {
            return Ok(());
        }
        let transport = self.transport;
        let (what, hint) = if transport.is_stream() {
            let why = "has the kernel cut bytes into segments, of which none is a query";
            (format!("{transport} {why}"), OTHER)
        } else if transport.has_connections() {
            let why = "puts several queries into a datagram, encrypted, and sends them again";
            (format!("{transport} {why}"), OTHER)
        } else if self.stub.is_some() {
            let what = "clients that ask again send a query in several datagrams";
            (what.into(), "leave out the one or the other")
        } else if self.sockets.offload {
            let what = "datagrams that leave in one burst have one stamp";
            (what.into(), "switch offload off")
        } else {
            return Ok(());
        };
        Err(PlanError::new("timestamps", what, hint))
    }

    fn validate_local(&self) -> Result<(), PlanError> {
        let is_ipv4 = self.target.is_ipv4();
        let other = self
            .local_addresses
            .iter()
            .find(|address| address.is_ipv4() != is_ipv4);
        if let Some(address) = other {
            let target = self.target.ip();
            let what = format!("{address} is not of the address family of the target {target}");
            let hint = "give local addresses of the target's family";
            return Err(PlanError::new("local-address", what, hint));
        }
        let last_port = u64::from(self.local_port) + u64::from(self.clients) - 1;
        if self.local_port != 0 && last_port > u64::from(u16::MAX) {
            let what = format!(
                "{} clients from port {} on would need port {last_port}",
                self.clients, self.local_port
            );
            let hint = "give a lower port or fewer clients, or let the kernel choose ports";
            return Err(PlanError::new("local-port", what, hint));
        }
        Ok(())
    }
}

fn at_least_one(setting: &'static str) -> PlanError {
    PlanError::new(setting, "must not be zero", "give 1 or more")
}

#[cfg(test)]
pub(crate) mod tests;
