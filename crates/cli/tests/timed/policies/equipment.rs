//! How a row of the table starts its server, asks it, and is judged.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;

use lab::target::{Cell, Product, RunningServer, Zone, products};
use load::names_file;
use measure::Limit;
use proto::Transport;
use proto::query::QueryOptions;
use responder::Delay;
use testing::folder::Folder;
use testing::ports::Listener;

use crate::bench::{Load, Ran, Responder, ms};
use crate::disturbed::Hog;
use crate::situations::signal;

/// What is asked of a server, and what the verdict may be.
#[derive(Clone)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) run: Run,
    /// The advice followed.
    pub(super) followed: Option<Run>,
    /// It uses up a CPU, and runs beside no other row.
    pub(super) is_busy: bool,
}

/// A server with a policy, a load, and what is right to say of them.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) server: Server,
    pub(super) load: MakeLoad,
    pub(super) is_observed: bool,
    pub(super) expected: Expected,
}

/// Makes the load of one run.
pub(super) type MakeLoad = fn() -> Load;

/// What is right to say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) limits: &'static [Limit],
    /// The evidence contains one of these; none is anything.
    pub(super) said: &'static [&'static str],
    /// Neither evidence nor advice contains any of these.
    pub(super) not_said: &'static [&'static str],
}

/// How a server is started.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) product: &'static Product,
    /// As after `--set`; `{upstream}` is the port of the upstream.
    pub(super) settings: Vec<String>,
    /// The configuration of a custom server.
    pub(super) configuration: String,
    /// It serves another zone than the load asks for.
    pub(super) is_of_other_zone: bool,
    pub(super) upstream: Upstream,
    /// CPUs' worth of time that it may use.
    pub(super) quota: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Upstream {
    None,
    /// It answers this number of milliseconds after each query.
    Slow(u64),
    Silent,
}

/// What keeps a server running while its `RunningServer` lives.
pub(super) struct Started {
    server: RunningServer,
    _upstream: (Option<Responder>, Option<Listener>),
}

impl Server {
    pub(super) fn new(product: &'static Product, options: &str) -> Server {
        Server {
            product,
            settings: vec![format!("options={options}")],
            configuration: String::new(),
            is_of_other_zone: false,
            upstream: Upstream::None,
            quota: None,
        }
    }

    /// One by its command line and configuration.
    pub(super) fn custom(command: &str, configuration: &str) -> Server {
        Server {
            settings: vec![format!("command={command}")],
            configuration: configuration.to_owned(),
            ..Server::new(&products::CUSTOM, "")
        }
    }

    pub(super) fn set(mut self, setting: &str) -> Server {
        self.settings.push(setting.to_owned());
        self
    }

    pub(super) fn upstream(mut self, upstream: Upstream) -> Server {
        self.upstream = upstream;
        self
    }

    pub(super) fn quota(mut self, cpus: &'static str) -> Server {
        self.quota = Some(cpus);
        self
    }

    pub(super) fn of_other_zone(mut self) -> Server {
        self.is_of_other_zone = true;
        self
    }

    pub(super) fn start(&self, disturbed: Option<Disturbed>) -> Started {
        let responder = match self.upstream {
            Upstream::Slow(delay_ms) => Some(Responder::start(|config| {
                config.behaviour.delay = Delay::Constant(ms(delay_ms));
            })),
            _ => None,
        };
        let silent = (self.upstream == Upstream::Silent).then(Listener::new);
        let port = responder
            .as_ref()
            .map(|it| it.address(Transport::Udp))
            .or(silent.as_ref().map(Listener::address))
            .map_or(0, |it| it.port())
            .to_string();
        let mut zone = Zone::with_records(NAMES, 1);
        if self.is_of_other_zone {
            zone = Zone {
                text: zone.text.replace("lab.test.", "other.test."),
                origin: "other.test.".to_owned(),
            };
        }
        let mut cell = Cell::new(self.product, zone);
        for setting in &self.settings {
            cell = cell.set(&setting.replace("{upstream}", &port)).unwrap();
        }
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = Folder::new(&format!("policy-{number}"));
        if !self.configuration.is_empty() {
            let text = self.configuration.replace("{upstream}", &port);
            let file = folder.write("template", text);
            cell = cell.set(&format!("configuration={file}")).unwrap();
        }
        let disturbance = (disturbed == Some(Disturbed::Quota)).then_some("0.1");
        if let Some(cpus) = disturbance.or(self.quota) {
            cell = cell.limit("quota", cpus).unwrap();
        }
        Started {
            server: cell.start().unwrap(),
            _upstream: (responder, silent),
        }
    }
}

/// Names `test-record-1` and so on that the zone has.
const NAMES: u32 = 2_000;

/// A short load; its queries time out after half a second.
fn timed(load: Load) -> Load {
    load.plan(|plan| {
        plan.duration = Some(ms(1_600));
        plan.timeout = ms(500);
    })
}

pub(super) fn udp(rate_qps: f64) -> Load {
    over(Transport::Udp, rate_qps)
}

pub(super) fn over(transport: Transport, rate_qps: f64) -> Load {
    timed(Load::over(transport).rate(rate_qps))
}

/// This number of queries in flight all the time.
pub(super) fn closed(transport: Transport, outstanding: u32) -> Load {
    let load = Load::over(transport).clients(outstanding);
    timed(load.outstanding(outstanding))
}

/// What a load asks for, and where from.
pub(super) trait Asking {
    /// Names that the zone has, in turn.
    fn names(self, count: u32) -> Self;
    /// Every second name does not exist.
    fn half_missing(self) -> Self;
    /// Clients have the source addresses 127.0.0.2 and so on.
    fn sources(self, count: u8) -> Self;
}

impl Asking for Load {
    fn names(self, count: u32) -> Load {
        asking(
            self,
            (1..=count).map(|number| format!("test-record-{number}")),
        )
    }

    fn half_missing(self) -> Load {
        let names = (1..=50).flat_map(|number| {
            let missing = format!("missing-{number}");
            [format!("test-record-{number}"), missing]
        });
        asking(self, names)
    }

    fn sources(self, count: u8) -> Load {
        let address = |last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
        self.plan(|plan| plan.local_addresses = (2..2 + count).map(address).collect())
    }
}

fn asking(load: Load, labels: impl Iterator<Item = String>) -> Load {
    let text: String = labels
        .map(|label| format!("{label}.lab.test A\n"))
        .collect();
    let questions = names_file::parse_text(text.as_bytes(), &QueryOptions::default());
    load.plan(|plan| plan.questions = Arc::new(questions.unwrap()))
}

/// What is done to the host or the server on purpose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Disturbed {
    /// Programs use up these of the CPUs.
    Hogs(&'static [usize]),
    /// The server is stopped for 300 ms.
    Stop,
    /// The server may use a tenth of a CPU.
    Quota,
}

impl Disturbed {
    pub(super) const ALL: [Disturbed; 5] = [
        Disturbed::Hogs(&[0, 1]),
        Disturbed::Stop,
        Disturbed::Quota,
        Disturbed::Hogs(&[0]),
        Disturbed::Hogs(&[1]),
    ];

    /// They run as long as these are there.
    pub(super) fn hogs(self) -> Vec<Hog> {
        match self {
            Disturbed::Hogs(cpus) => cpus.iter().map(|cpu| Hog::begin(*cpu)).collect(),
            Disturbed::Stop | Disturbed::Quota => Vec::new(),
        }
    }

    /// Words of the deciding evidence with which the server is the limit because of it. Of a host
    /// whose CPUs others use up, the server is not.
    fn decides(self) -> &'static [&'static str] {
        match self {
            Disturbed::Hogs(_) => &[],
            Disturbed::Stop => &[
                "an outage of",
                "stopped by a signal",
                "after the timeout of",
            ],
            Disturbed::Quota => &["CPU quota", "queued at the target", "fell behind"],
        }
    }

    /// Words with which evidence names the disturbance itself: a program that gets no CPU is down
    /// meanwhile.
    fn words(self) -> &'static [&'static str] {
        match self {
            Disturbed::Hogs(_) => &[
                "CPU",
                "outage of",
                "the target was down",
                "stop the other processes",
            ],
            Disturbed::Stop => &[
                "outage of",
                "the target was down",
                "stopped by a signal",
                "timeout of",
                // A control group of its own waits for what others on the host use.
                "stop the other processes",
            ],
            Disturbed::Quota => &[
                "CPU",
                "outage of",
                "the target was down",
                "queued at the target",
                "fell behind",
                "timeout of",
            ],
        }
    }
}

impl Run {
    pub(super) fn run(&self, started: &Started, disturbed: Option<Disturbed>) -> Ran {
        let server = &started.server;
        // A zombie has none.
        let program = fs::read_link(format!("/proc/{}/exe", server.process_id()));
        assert!(program.is_ok(), "the server has ended");
        let mut load = (self.load)();
        if let Some(ca_pem) = server.ca_pem() {
            load = load.ca_pem(ca_pem);
        }
        if self.is_observed {
            let process = format!("process={},period=100ms", server.process_id());
            load = load.observe(&["auto", &process]);
        }
        if disturbed != Some(Disturbed::Stop) {
            return load.run_on(server);
        }
        let load = load.plan(|plan| plan.interval = ms(100));
        let address = server.endpoints().address(load.plan.transport).unwrap();
        let processes = family(server.process_id());
        let signal_all = |name| processes.iter().for_each(|it| signal(*it, name));
        let ran = load.run_watched(address, |progress, _| match progress.index {
            8 => signal_all("STOP"),
            11 => signal_all("CONT"),
            _ => {}
        });
        signal_all("CONT");
        ran
    }

    /// The verdict names no wrong cause, which no disturbance excuses.
    #[track_caller]
    pub(super) fn check_cause(&self, name: &str, ran: &Ran, disturbed: Option<Disturbed>) {
        let verdict = &ran.record.verdict;
        let all = [&verdict.evidence[..], &verdict.advice].concat().join("\n");
        let shows = || format!("{name}, disturbed by {disturbed:?}: {verdict:#?}");
        if std::env::var_os("POLICY").is_some() {
            eprintln!("{}", shows());
        }
        let decides = disturbed.map_or(&[][..], Disturbed::decides);
        let decided = verdict.evidence.first().map_or("", String::as_str);
        let is_disturbance = decides.iter().any(|it| decided.contains(it));
        let is_allowed = match verdict.limit {
            Limit::Generator | Limit::Unknown => true,
            Limit::Server if is_disturbance => true,
            limit => self.expected.limits.contains(&limit),
        };
        assert!(is_allowed, "{}", shows());
        let words = disturbed.map_or(&[][..], Disturbed::words);
        for wrong in self.expected.not_said {
            let is_disturbance = words
                .iter()
                .any(|it| it.contains(wrong) || wrong.contains(it));
            assert!(
                !all.contains(wrong) || is_disturbance,
                "`{wrong}`: {}",
                shows()
            );
        }
    }

    /// The verdict is the expected one.
    pub(super) fn check_verdict(&self, name: &str, ran: &Ran) -> Result<(), String> {
        let verdict = &ran.record.verdict;
        let evidence = verdict.evidence.join("\n");
        let expected = self.expected;
        let said = expected.said;
        let is_said = said.is_empty() || said.iter().any(|it| evidence.contains(it));
        let is_right = expected.limits.contains(&verdict.limit) && is_said;
        let wrong = || format!("{name}: {verdict:#?}, expected {expected:?}");
        is_right.then_some(()).ok_or_else(wrong)
    }
}

/// A process and its children.
fn family(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = fs::read_to_string(path).unwrap_or_default();
    let children = children.split_whitespace().flat_map(|it| it.parse().ok());
    children.flat_map(family).chain([process]).collect()
}

/// Checks this number of rows at a time.
pub(super) fn at_once(rows: &[Row], count: usize, check: impl Fn(&Row) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..count {
            scope.spawn(|| taken(rows, &next).for_each(&check));
        }
    });
}

/// The rows that this thread takes of all, one after the other.
pub(super) fn taken<'a>(rows: &'a [Row], next: &'a AtomicUsize) -> impl Iterator<Item = &'a Row> {
    std::iter::from_fn(|| rows.get(next.fetch_add(1, Ordering::Relaxed)))
}
