//! The one way in which these tests run on real sockets: a load in a few words, and its record.
#![allow(dead_code, reason = "each of two test targets uses a part")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use driver::kernel::DriverChoice;
use engine::{Control, Progress, TlsSettings};
use lab::observing::Sources;
use lab::run::{Description, RunError, RunRequest, Serving, SocketUse, TlsRequest, run, serve};
use lab::target::RunningServer;
use load::arrival::{Arrival, Process};
use load::{Plan, names_file};
use measure::{Counts, RunRecord};
use proto::Transport;
use proto::doh::{DohRequest, Method, Scheme};
use proto::http2;
use proto::query::QueryOptions;
use proto::tls::rustls::pki_types::ServerName;
use proto::tls::{ClientTlsOptions, Roots, TlsVersions};
use responder::certificate::{Identity, SelfSigned, self_signed};
use responder::{Counters, ResponderConfig};
use testing::quiet::{Disturbance, run_queue_wait};

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A load. By default ten clients keep ten queries in flight for a second.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) plan: Plan,
    /// What the target's certificate is signed with, PEM.
    ca_pem: Option<String>,
    preflight: bool,
    resume: load::Resume,
    early_data: bool,
    driver: DriverChoice,
    goodput_rcodes: Vec<u16>,
    observe: Sources,
    /// The target, if it is a process whose run-queue wait counts as disturbance.
    target_process: Option<u32>,
}

impl Load {
    pub(crate) fn over(transport: Transport) -> Load {
        let lines = (1..=100).map(|number| format!("test-record-{number}.lab.test A\n"));
        let text = lines.collect::<String>();
        let questions = names_file::parse_text(text.as_bytes(), &QueryOptions::default());
        let plan = Plan {
            arrival: Arrival::Closed {
                outstanding: 10,
                rate_qps_max: None,
            },
            clients: 10,
            duration: Some(ms(1_000)),
            // No query times out because its target was not scheduled.
            timeout: ms(60_000),
            doh: transport.is_doh().then(|| {
                let uri = "https://localhost/dns-query";
                Arc::new(DohRequest::new(Method::Post, uri, &[]).unwrap())
            }),
            // No query is sent before a test gives the address.
            ..Plan::new(
                SocketAddr::from((Ipv4Addr::LOCALHOST, 53)),
                transport,
                Arc::new(questions.unwrap()),
            )
        };
        Load {
            plan,
            ca_pem: None,
            preflight: false,
            resume: load::Resume::NEVER,
            early_data: false,
            driver: DriverChoice::Auto,
            goodput_rcodes: vec![0, 3],
            observe: Sources::default(),
            target_process: None,
        }
    }

    /// Takes responses over UDP as long as they can be.
    pub(crate) fn edns_of_64_kb(mut self) -> Load {
        let text = "long.lab.test A +edns=65535\n";
        let questions = names_file::parse_text(text.as_bytes(), &QueryOptions::default());
        self.plan.questions = Arc::new(questions.unwrap());
        self
    }

    /// Counts the run-queue wait of that process as disturbance of the run.
    pub(crate) fn target_process(mut self, process: u32) -> Load {
        self.target_process = Some(process);
        self
    }

    /// What is asked beside the run, as it is typed.
    pub(crate) fn observe(mut self, sources: &[&str]) -> Load {
        let sources: Vec<String> = sources.iter().map(|it| (*it).to_owned()).collect();
        self.observe = Sources::parse(&sources).unwrap();
        self
    }

    /// RCODEs that count as answers.
    pub(crate) fn goodput(mut self, rcodes: &[u16]) -> Load {
        self.goodput_rcodes = rcodes.to_vec();
        self
    }

    pub(crate) fn clients(mut self, clients: u32) -> Load {
        self.plan.clients = clients;
        self
    }

    pub(crate) fn outstanding(mut self, outstanding: u32) -> Load {
        self.plan.arrival = Arrival::Closed {
            outstanding,
            rate_qps_max: None,
        };
        self
    }

    pub(crate) fn rate(mut self, rate_qps: f64) -> Load {
        self.plan.arrival = Arrival::Open {
            rate_qps,
            process: Process::Constant,
            burst: 1,
        };
        self
    }

    pub(crate) fn queries(mut self, queries: u64) -> Load {
        self.plan.queries_max = Some(queries);
        self.plan.duration = None;
        self
    }

    /// Anything else of the plan.
    pub(crate) fn plan(mut self, change: impl FnOnce(&mut Plan)) -> Load {
        change(&mut self.plan);
        self
    }

    pub(crate) fn ca_pem(mut self, ca_pem: &str) -> Load {
        self.ca_pem = Some(ca_pem.to_owned());
        self
    }

    /// How a query becomes an HTTP request.
    pub(crate) fn doh(mut self, method: Method, uri: &str) -> Load {
        self.plan.doh = Some(Arc::new(DohRequest::new(method, uri, &[]).unwrap()));
        self
    }

    /// Each connection resumes its client's last session, with early data if asked for.
    pub(crate) fn resuming(mut self, early_data: bool) -> Load {
        self.resume = load::Resume::ALWAYS;
        self.early_data = early_data;
        self
    }

    /// What is to move its octets.
    pub(crate) fn driver(mut self, driver: DriverChoice) -> Load {
        self.driver = driver;
        self
    }

    /// Looks for the target before the run.
    pub(crate) fn preflight(mut self) -> Load {
        self.preflight = true;
        self
    }

    /// Runs it against a server that somebody else has started.
    pub(crate) fn run_at(self, target: SocketAddr) -> Ran {
        self.run_watched(target, |_, _| {})
    }

    /// Runs it against a real server, whose run-queue wait counts as disturbance.
    pub(crate) fn run_on(self, target: &RunningServer) -> Ran {
        let address = target.endpoints().address(self.plan.transport).unwrap();
        self.target_process(target.process_id()).run_at(address)
    }

    /// Runs it; `watch` sees each interval as it ends.
    pub(crate) fn run_watched(
        self,
        target: SocketAddr,
        watch: impl FnMut(&Progress, &Control),
    ) -> Ran {
        let process = self.target_process;
        let waited = || process.map(run_queue_wait).unwrap_or_default();
        let before = waited();
        let record = self.try_run(target, watch).unwrap();
        record.check().unwrap();
        assert_eq!(RunRecord::from_json(&record.to_json()).unwrap(), record);
        Ran {
            record,
            // Less than before if the process ended in mid run.
            target_waited: waited().saturating_sub(before),
        }
    }

    pub(crate) fn try_run(
        self,
        target: SocketAddr,
        mut watch: impl FnMut(&Progress, &Control),
    ) -> Result<RunRecord, RunError> {
        let request = self.request(target);
        let control = Arc::new(Control::new(request.plan.workers));
        let watched = Arc::clone(&control);
        run(&request, &control, |progress| watch(progress, &watched))
    }

    /// The run as `lab` has it, against a server there.
    pub(crate) fn request(mut self, target: SocketAddr) -> RunRequest {
        self.plan.target = target;
        self.plan.validate().unwrap();
        let is_plain_http = self
            .plan
            .doh
            .as_ref()
            .is_some_and(|doh| doh.scheme() == Scheme::Http);
        let has_tls = self.plan.transport.has_tls() && !is_plain_http;
        let mut asked = settings::Run {
            servers: vec![target.to_string()],
            transport: self.plan.transport,
            goodput_rcodes: self.goodput_rcodes.clone(),
            ..settings::Run::default()
        };
        asked.generator.sockets = self.plan.sockets;
        RunRequest {
            group: measure::experience::GroupRecord::PLAIN.to_owned(),
            tls: has_tls.then(|| self.tls()),
            cpus: Vec::new(),
            driver: self.driver,
            asked: Arc::new(asked),
            description: Description {
                questions_source: "test".to_owned(),
                ..Description::default()
            },
            preflight: self.preflight,
            observer: None,
            observe: self.observe,
            plan: self.plan,
        }
    }

    fn tls(&self) -> TlsRequest {
        let ca_pem = self.ca_pem.clone().unwrap();
        let config = proto::tls::client_config(&ClientTlsOptions {
            roots: Roots::Pem(ca_pem.into_bytes()),
            // QUIC brings its own.
            alpn: match self.plan.transport {
                Transport::Doh2 => vec![http2::ALPN.to_vec()],
                _ => Vec::new(),
            },
            versions: match self.plan.transport.is_quic() || self.early_data {
                true => TlsVersions::Tls13,
                false => TlsVersions::All,
            },
            resumption: !self.resume.is_never(),
            early_data: self.early_data,
            ..ClientTlsOptions::default()
        });
        TlsRequest {
            asked: load::TlsAsked::default(),
            key_log: None,
            settings: TlsSettings {
                config: config.unwrap(),
                name: ServerName::try_from("localhost").unwrap(),
                resume: self.resume,
            },
            verified: true,
            name: "localhost".to_owned(),
        }
    }

    /// Runs it against a responder that `change` shapes, and returns what that counted too.
    pub(crate) fn run_against(self, change: impl FnOnce(&mut ResponderConfig)) -> (Ran, Counters) {
        let target = Responder::start(change);
        let load = self.ca_pem(&target.certificate_pem);
        let address = target.address(load.plan.transport);
        let mut ran = load.run_at(address);
        let (counters, waited) = target.serving.stop_and_tell();
        ran.target_waited = waited;
        (ran, counters)
    }
}

/// A certificate, and a responder's configuration with it.
pub(crate) fn certified() -> (Identity, ResponderConfig) {
    let identity = self_signed(&SelfSigned::default()).unwrap();
    let config = ResponderConfig {
        tls: Some(Arc::clone(&identity.server_config)),
        ..ResponderConfig::default()
    };
    (identity, config)
}

/// The responder on free ports of one address, all transports.
pub(crate) struct Responder {
    pub(crate) serving: Serving,
    pub(crate) certificate_pem: String,
    config: ResponderConfig,
}

impl Responder {
    pub(crate) fn start(change: impl FnOnce(&mut ResponderConfig)) -> Responder {
        Responder::start_at(Ipv4Addr::LOCALHOST.into(), change)
    }

    pub(crate) fn start_at(
        address: IpAddr,
        change: impl FnOnce(&mut ResponderConfig),
    ) -> Responder {
        Responder::start_on(DriverChoice::Auto, address, change)
    }

    pub(crate) fn start_on(
        driver: DriverChoice,
        address: IpAddr,
        change: impl FnOnce(&mut ResponderConfig),
    ) -> Responder {
        let (identity, mut config) = certified();
        config.listen = Transport::ALL.map(|it| (it, (address, 0).into())).to_vec();
        change(&mut config);
        let sockets = SocketUse {
            driver,
            ..SocketUse::default()
        };
        let serving = serve(&config, &[], sockets).unwrap();
        config.listen = serving.addresses().to_vec();
        Responder {
            serving,
            certificate_pem: identity.certificate_pem,
            config,
        }
    }

    pub(crate) fn address(&self, transport: Transport) -> SocketAddr {
        self.serving.address(transport).unwrap()
    }

    /// What is needed to start it again where it was.
    pub(crate) fn config(&self) -> ResponderConfig {
        ResponderConfig {
            open_connections: Default::default(),
            ..self.config.clone()
        }
    }
}

/// A loopback address that other processes do not use: a port of a target that is gone stays free
/// there until the target is back.
pub(crate) fn own_address() -> IpAddr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    IpAddr::from([127, 64 | high & 63, middle, low.max(1)])
}

/// Both loopback addresses.
pub(crate) const FAMILIES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

/// A run that has ended.
#[derive(Clone)]
pub(crate) struct Ran {
    pub(crate) record: RunRecord,
    /// Time in which threads of the target were ready to run and had no CPU, as far as known.
    pub(crate) target_waited: Duration,
}

impl Ran {
    pub(crate) fn counts(&self) -> &Counts {
        &self.record.total.counts
    }

    /// How much the host disturbed generator and target.
    pub(crate) fn disturbance(&self) -> Disturbance {
        Disturbance::of(&self.record).and_target(&self.record, self.target_waited)
    }

    /// Queries sent, those of the warm-up included.
    pub(crate) fn sent(&self) -> u64 {
        self.counts().sent + self.record.warmup.counts.sent
    }

    /// Asserts that `offered` queries were offered and every one was answered.
    #[track_caller]
    pub(crate) fn assert_all_answered(&self, offered: u64) {
        let counts = self.counts();
        let answered = (counts.offered, counts.sent, counts.responses);
        assert_eq!(answered, (offered, offered, offered), "{counts:?}");
        assert_eq!(
            counts.unexpected.total() + counts.duplicate + counts.late,
            0
        );
        assert_eq!(counts.rcodes.by_rcode[0], offered, "{counts:?}");
    }
}
