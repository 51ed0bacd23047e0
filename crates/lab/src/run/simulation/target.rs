//! The target of a simulated run: a responder that can die and come back.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use driver::sim::{EndpointId, Outage, SimDriver, World};
use driver::{Close, Driver};
use engine::Control;
use proto::{Instant, Transport};
use responder::WorkerPlace;
use responder::{Counters, ResponderWorker, ServiceCounts};

use super::Simulation;
use crate::run::RunRequest;

/// A responder with its endpoint of the world.
pub(crate) struct Target {
    worker: ResponderWorker,
    driver: SimDriver,
    listen: Vec<(Transport, std::net::SocketAddr)>,
    /// Absences to come, the next one last.
    absences: Vec<Outage>,
    /// When it comes back, while it is away.
    back_at: Option<Instant>,
    started_at: Instant,
    /// Knows when the run starts; none once its span is known to the modelled server.
    control: Option<Arc<Control>>,
    warmup: Duration,
    duration: Option<Duration>,
}

impl Target {
    /// A responder for each address that the groups ask, listening over their transports; over TCP
    /// too if truncated responses are repeated. Only the first one is ever away.
    ///
    /// # Errors
    /// The responder's configuration contradicts itself, or models one server where there are more.
    pub(crate) fn open_all(
        groups: &[RunRequest],
        simulation: &Simulation,
        world: (&World, &Arc<Control>),
    ) -> io::Result<Vec<Target>> {
        let all = listen_addresses(groups);
        let mut addresses: Vec<IpAddr> = Vec::new();
        for (_, address) in &all {
            if !addresses.contains(&address.ip()) {
                addresses.push(address.ip());
            }
        }
        if addresses.len() > 1 && simulation.responder.service.is_some() {
            let what = "a modelled server has one address";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let mut targets = Vec::new();
        for address in addresses {
            let mut own = simulation.clone();
            let listen = all.iter().filter(|(_, other)| other.ip() == address);
            own.responder.listen = listen.copied().collect();
            if !targets.is_empty() {
                own.absences.clear();
            }
            targets.push(Target::open(groups, own, (address, world.0, world.1))?);
        }
        Ok(targets)
    }

    fn open(
        groups: &[RunRequest],
        simulation: Simulation,
        (address, world, control): (IpAddr, &World, &Arc<Control>),
    ) -> io::Result<Target> {
        let config = simulation.responder;
        let listen = config.listen.clone();
        let worker = ResponderWorker::new(Arc::new(config), WorkerPlace::ONLY)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        let mut absences = simulation.absences;
        absences.reverse();
        let mut target = Target {
            worker,
            driver: world.endpoint(address),
            listen,
            absences,
            back_at: None,
            started_at: world.now(),
            control: Some(Arc::clone(control)),
            warmup: groups[0].plan.warmup,
            duration: groups[0].plan.duration,
        };
        target.worker.open(&mut target.driver)?;
        target.limit_backlog();
        Ok(target)
    }

    pub(crate) fn endpoint(&self) -> EndpointId {
        self.driver.endpoint()
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.worker.counters()
    }

    /// One turn.
    pub(crate) fn step(&mut self) {
        self.come_and_go();
        self.observe_run();
        let until = self.worker.step(&mut self.driver).min(self.limit_backlog());
        let change = self
            .back_at
            .or(self.absences.last().map(|absence| absence.start))
            .unwrap_or(Instant::FAR_FUTURE);
        self.driver.wait(until.min(change));
    }

    /// What the modelled server saw of the measured run.
    pub(super) fn service_counts(&self) -> Option<&ServiceCounts> {
        self.worker.service_counts()
    }

    /// Tells the modelled server when the measured run begins and ends, once that is decided.
    fn observe_run(&mut self) {
        let start = self.control.as_ref().and_then(|control| control.start());
        if let Some(start) = start {
            let from = start + self.warmup;
            let until = self.duration.map_or(Instant::FAR_FUTURE, |run| from + run);
            self.worker.observe_service(from, until);
            self.control = None;
        }
    }

    /// Lets no more connections arrive than may wait; returns when there will be room for more.
    fn limit_backlog(&mut self) -> Instant {
        let now = self.driver.now();
        match self.worker.backlog(now) {
            Some((room, next)) => {
                self.driver.set_backlog_room(room);
                next
            }
            None => Instant::FAR_FUTURE,
        }
    }

    fn come_and_go(&mut self) {
        let now = self.driver.now();
        if self.back_at.is_some_and(|back_at| back_at <= now) {
            self.back_at = None;
            self.worker
                .open_shared(&mut self.driver, &self.listen)
                .expect("its own addresses are free");
            self.worker.set_start(self.started_at);
        }
        if let Some(absence) = self.absences.pop_if(|absence| absence.start <= now) {
            // As the kernel closes the sockets of a process that dies.
            self.worker.close(&mut self.driver, Close::Graceful);
            self.back_at = Some(absence.start + absence.length);
        }
    }
}

/// What the groups ask, over what; each once.
fn listen_addresses(groups: &[RunRequest]) -> Vec<(Transport, std::net::SocketAddr)> {
    let mut listen = Vec::new();
    for plan in groups.iter().map(|request| &request.plan) {
        let fallback = plan.tcp_fallback.then_some(Transport::Tcp);
        let servers = plan.stub.as_ref().map(|stub| stub.servers.as_slice());
        let servers = servers.unwrap_or(std::slice::from_ref(&plan.target));
        for transport in [Some(plan.transport), fallback].into_iter().flatten() {
            for server in servers {
                if !listen.contains(&(transport, *server)) {
                    listen.push((transport, *server));
                }
            }
        }
    }
    listen
}
