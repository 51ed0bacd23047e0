//! Where a load meets a responder: a bed for each driver, with that driver at both ends.

use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use driver::clock::Clock;
use driver::kernel::{DriverChoice, KernelDriver};
use driver::null::{NullTime, pair};
use driver::sim::Outage;
use driver::{Driver, SocketOptions};
use engine::{Control, RunInputs, ThreadWorkers};
use lab::run::{RunRequest, Simulation, simulate};
use lab::target::Namespace;
use measure::counts::Connections;
use measure::{Counts, DriverKind, Interval, RunRecord};
use proto::{Instant, Transport};
use responder::WorkerPlace;
use responder::{Counters, ResponderConfig, ResponderWorker};
use testing::host::is_root;

use crate::bench::{Load, Responder, certified, ms, own_address};

/// Names drivers that this machine may do without, separated by commas, though the test runs as
/// root.
const FORBIDDEN: &str = "THRONG_FORBIDDEN_DRIVERS";

/// Where the target of the simulator is.
const SIMULATED_TARGET: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 53));

/// Turns of both ends of the null driver before a run is given up.
const TURNS_MAX: usize = 1_000_000;

/// A driver at both ends, and what is between them.
pub(super) enum Bed {
    /// The kernel's sockets on loopback.
    Kernel(DriverChoice),
    /// AF_XDP between two network namespaces.
    Frames(Wire),
    /// The simulator.
    Simulated,
    /// The null driver.
    Null,
}

/// What both ends counted.
pub(super) struct Seen {
    /// Bed and transport, for messages.
    pub(super) context: String,
    pub(super) total: Interval,
    pub(super) connections: Connections,
    pub(super) target: Counters,
    /// The null driver has none.
    pub(super) record: Option<RunRecord>,
}

impl Seen {
    fn new(context: String, record: RunRecord, target: Counters) -> Seen {
        Seen {
            context,
            total: record.total.clone(),
            connections: record.connections(),
            target,
            record: Some(record),
        }
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.total.counts
    }
}

/// Makes a bed, or says why the machine forbids it.
type Make = fn() -> io::Result<Bed>;

/// Calls `check` with every driver that there is and every transport it carries.
pub(super) fn each(check: impl Fn(&Bed, Transport)) {
    let drivers: [(&str, Make); 5] = [
        ("epoll", || kernel(DriverChoice::Epoll)),
        ("uring", || kernel(DriverChoice::Uring)),
        ("xdp", || Wire::lay().map(Bed::Frames)),
        ("sim", || Ok(Bed::Simulated)),
        ("null", || Ok(Bed::Null)),
    ];
    for (name, make) in drivers {
        match make() {
            Ok(bed) => {
                let carried = Transport::ALL.into_iter();
                let carried = carried.filter(|it| !(name == "xdp" && it.is_stream()));
                carried.for_each(|transport| check(&bed, transport));
            }
            Err(reason) => leave_out(name, &reason),
        }
    }
}

/// Leaves out a driver that the machine forbids, and prints why. Root should be allowed every
/// driver, so there it is a failure, unless the variable [`FORBIDDEN`] lists the driver.
fn leave_out(name: &str, reason: &io::Error) {
    // Past the harness, which keeps what a test that passes prints.
    let _ = writeln!(io::stderr(), "not tried on {name}: {reason}");
    let known = std::env::var(FORBIDDEN).unwrap_or_default();
    let is_known = known.split(',').any(|it| it == name);
    assert!(
        is_known || !is_root(),
        "{name} is forbidden on this machine: {reason}; {FORBIDDEN}={name} does without"
    );
}

/// True if the machine allows io_uring; otherwise it has been said why not.
pub(super) fn has_uring() -> bool {
    let opened = kernel(DriverChoice::Uring);
    opened.inspect_err(|it| leave_out("uring", it)).is_ok()
}

/// The drivers for the kernel's sockets that the machine allows.
pub(super) fn kernel_drivers() -> Vec<DriverChoice> {
    let mut drivers = vec![DriverChoice::Epoll];
    drivers.extend(has_uring().then_some(DriverChoice::Uring));
    drivers
}

fn kernel(choice: DriverChoice) -> io::Result<Bed> {
    let options = SocketOptions::default();
    let load = driver::kernel::Load::default();
    KernelDriver::open(choice, load, Clock::start(), options)?;
    Ok(Bed::Kernel(choice))
}

impl Bed {
    pub(super) fn kind(&self) -> DriverKind {
        match self {
            Bed::Kernel(DriverChoice::Uring) => DriverKind::Uring,
            Bed::Kernel(_) => DriverKind::Epoll,
            Bed::Frames(_) => DriverKind::Xdp,
            Bed::Simulated | Bed::Null => DriverKind::Sim,
        }
    }

    fn context(&self, transport: Transport) -> String {
        match self {
            Bed::Null => format!("{transport} on the null driver"),
            _ => format!("{transport} on {:?}", self.kind()),
        }
    }

    /// Runs a load against a responder that `change` shapes.
    pub(super) fn run(&self, load: Load, change: impl Fn(&mut ResponderConfig) + Sync) -> Seen {
        let transport = load.plan.transport;
        let context = self.context(transport);
        let (record, target) = match self {
            Bed::Kernel(choice) => {
                let address = Ipv4Addr::LOCALHOST.into();
                let target = Responder::start_on(*choice, address, change);
                let load = load.ca_pem(&target.certificate_pem).driver(*choice);
                let ran = load.run_at(target.address(transport));
                (ran.record, target.serving.stop())
            }
            Bed::Frames(wire) => wire.run(&load, change),
            Bed::Simulated => simulated(load, Vec::new(), change),
            Bed::Null => return on_null(load, context, change),
        };
        assert_eq!(record.driver, self.kind(), "{context}");
        Seen::new(context, record, target)
    }

    /// Runs a load against an address without a listener; none where that is not modelled.
    pub(super) fn run_alone(&self, load: Load) -> Option<Seen> {
        let transport = load.plan.transport;
        let record = match self {
            Bed::Kernel(choice) => {
                let target = Responder::start_at(own_address(), |_| {});
                let address = target.address(transport);
                let load = load.ca_pem(&target.certificate_pem).driver(*choice);
                target.serving.stop();
                load.run_at(address).record
            }
            Bed::Frames(wire) => wire.run_alone(&load),
            Bed::Simulated => {
                let always = Outage {
                    start: Instant::ZERO,
                    length: ms(3_600_000),
                };
                simulated(load, vec![always], |_| {}).0
            }
            Bed::Null => return None,
        };
        let context = self.context(transport);
        Some(Seen::new(context, record, Counters::default()))
    }
}

fn simulated(
    load: Load,
    absences: Vec<Outage>,
    change: impl Fn(&mut ResponderConfig),
) -> (RunRecord, Counters) {
    let (identity, mut config) = certified();
    change(&mut config);
    let target = SocketAddr::new(SIMULATED_TARGET, load.plan.transport.default_port());
    let request = load.ca_pem(&identity.certificate_pem).request(target);
    let simulation = Simulation {
        responder: config,
        absences,
        ..Simulation::default()
    };
    let (record, target) = simulate(&request, &simulation).unwrap();
    record.check().unwrap();
    (record, target)
}

/// Runs both ends on this thread, in virtual time.
fn on_null(load: Load, context: String, change: impl Fn(&mut ResponderConfig)) -> Seen {
    let transport = load.plan.transport;
    let (mut near, mut far) = pair(NullTime::Virtual);
    let (identity, mut config) = certified();
    let target = SocketAddr::from((Ipv4Addr::LOCALHOST, transport.default_port()));
    config.listen = vec![(transport, target)];
    change(&mut config);
    let mut responder = ResponderWorker::new(Arc::new(config), WorkerPlace::ONLY).unwrap();
    responder.open(&mut far).unwrap();
    let load = load.ca_pem(&identity.certificate_pem);
    let RunRequest { plan, tls, .. } = load.request(target);
    let inputs = RunInputs {
        plan: Arc::new(plan),
        tls: tls.map(|it| it.settings),
        observer: None,
    };
    let mut workers = ThreadWorkers::new(&[inputs], 0, &Arc::new(Control::new(1)));
    workers.open(&mut near).unwrap();
    let mut intervals = Vec::new();
    for turn in 0.. {
        assert!(turn < TURNS_MAX, "{context}: it does not end");
        let until = workers.step(&mut near);
        while let Some((_, interval)) = workers.poll_interval() {
            intervals.push(interval);
        }
        if workers.is_finished() {
            break;
        }
        let next = responder.step(&mut far);
        near.wait(until.min(next));
    }
    let total = Interval::total(&intervals);
    let mut connections = total.counts.connections.clone();
    for (_, summary) in workers.summaries(&mut near) {
        connections.add(&summary.warmup.counts.connections);
    }
    Seen {
        context,
        total,
        connections,
        target: responder.counters().clone(),
        record: None,
    }
}

/// Two network namespaces and a veth pair between them.
pub(super) struct Wire {
    near: Namespace,
    far: Namespace,
    /// Tells the interfaces of this pair from those of others: a process keeps what it has
    /// attached by their names.
    number: u32,
}

impl Wire {
    const NEAR: &str = "10.79.0.1";
    const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 79, 0, 2));

    fn lay() -> io::Result<Wire> {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let (near, far) = (Namespace::new()?, Namespace::new()?);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let peer = format!("peer name far{number} netns {}", far.id());
        ip(&near, &format!("link add near{number} type veth {peer}"))?;
        let far_address = Wire::FAR.to_string();
        for (end, name, address) in [
            (&near, "near", Wire::NEAR),
            (&far, "far", far_address.as_str()),
        ] {
            ip(end, "link set lo up")?;
            ip(end, &format!("addr add {address}/24 dev {name}{number}"))?;
            ip(end, &format!("link set {name}{number} up"))?;
        }
        let wire = Wire { near, far, number };
        // The kernel sends a peer that is not this host one ICMP error a second otherwise.
        let limit = "/proc/sys/net/ipv4/icmp_ratelimit";
        wire.at(&wire.far, || fs::write(limit, "0"))?;
        let opened = wire.at(&wire.near, || {
            let load = driver::kernel::Load::default();
            let options = SocketOptions::default();
            KernelDriver::open(wire.choice("near"), load, Clock::start(), options).map(drop)
        });
        opened.map(|()| wire)
    }

    fn choice(&self, end: &str) -> DriverChoice {
        DriverChoice::Xdp(format!("{end}{}", self.number).parse().unwrap())
    }

    /// Does something on a thread that belongs to one end, as do all that it starts.
    fn at<T: Send>(&self, end: &Namespace, act: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                end.enter().unwrap();
                act()
            });
            thread.join().unwrap()
        })
    }

    fn responder(
        &self,
        transport: Transport,
        change: impl Fn(&mut ResponderConfig) + Sync,
    ) -> Responder {
        self.at(&self.far, || {
            Responder::start_on(self.choice("far"), Wire::FAR, |config| {
                config.listen.retain(|(each, _)| *each == transport);
                change(config);
            })
        })
    }

    fn run(
        &self,
        load: &Load,
        change: impl Fn(&mut ResponderConfig) + Sync,
    ) -> (RunRecord, Counters) {
        let transport = load.plan.transport;
        let target = self.responder(transport, change);
        let record = self.run_at(load, &target.certificate_pem, target.address(transport));
        (record, target.serving.stop())
    }

    fn run_alone(&self, load: &Load) -> RunRecord {
        let transport = load.plan.transport;
        let target = self.responder(transport, |_| {});
        let (pem, address) = (target.certificate_pem.clone(), target.address(transport));
        target.serving.stop();
        self.run_at(load, &pem, address)
    }

    fn run_at(&self, load: &Load, ca_pem: &str, target: SocketAddr) -> RunRecord {
        let load = load.clone().ca_pem(ca_pem).driver(self.choice("near"));
        self.at(&self.near, || load.run_at(target).record)
    }
}

fn ip(end: &Namespace, line: &str) -> io::Result<()> {
    let output = end.command("ip").args(line.split(' ')).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("ip {line}: {said}"))),
    }
}
