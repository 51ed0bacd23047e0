//! The workers of one thread: one for each group of clients, all on one driver.
//!
//! A population is made of groups that differ in transport, arrivals, questions and connections. A
//! [`Worker`] knows one group, and nothing of the others: [`ThreadWorkers`] hand each delivery to
//! the worker whose socket it is, and give every worker its turn. That costs one table lookup a
//! delivery, and nothing where there is only one group.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use driver::random::SEED_OCTETS;
use driver::{
    Accepted, Close, CpuTime, Driver, DriverStats, Outgoing, Received, SendStamp, SocketError,
    SocketId, SocketSpec,
};
use measure::Interval;
use proto::Instant;

use crate::worker::{RunInputs, STOP_POLL, Worker, WorkerSummary};
use crate::{Control, SetupError};

/// How long a thread may handle deliveries before its workers take their turns. A delivery takes
/// some microseconds, except one that makes room for thousands of waiting queries. The watchdog
/// considers a thread stuck that takes no turn for long.
const DELIVERIES_MAX: Duration = Duration::from_millis(50);

/// The workers of one thread.
pub struct ThreadWorkers {
    control: Arc<Control>,
    members: Vec<Member>,
    /// Which member opened the socket, by socket index.
    owners: Vec<u16>,
    received: Received,
}

struct Member {
    /// Its group, by position in the run.
    group: usize,
    worker: Worker,
    /// Its end has been reported.
    is_done: bool,
}

impl ThreadWorkers {
    /// The workers of thread number `index`: one of each group that has a worker on it. Opens
    /// nothing yet.
    pub fn new(groups: &[RunInputs], index: u32, control: &Arc<Control>) -> Self {
        let has_worker = |(_, inputs): &(usize, &RunInputs)| index < inputs.plan.workers;
        let member = |(group, inputs): (usize, &RunInputs)| Member {
            group,
            worker: Worker::new(inputs, index, Arc::clone(control)),
            is_done: false,
        };
        let groups = groups.iter().enumerate();
        ThreadWorkers {
            control: Arc::clone(control),
            members: groups.filter(has_worker).map(member).collect(),
            owners: Vec::new(),
            received: Received::new(),
        }
    }

    /// Threads that the groups need together.
    pub fn threads(groups: &[RunInputs]) -> u32 {
        let workers = groups.iter().map(|inputs| inputs.plan.workers);
        workers.max().unwrap_or(0)
    }

    /// Number of workers of all groups on these threads, for which [`Control`] waits.
    pub fn workers_on(groups: &[RunInputs], threads: Range<u32>) -> u32 {
        let on = |inputs: &RunInputs| {
            let end = threads.end.min(inputs.plan.workers);
            end.saturating_sub(threads.start)
        };
        groups.iter().map(on).sum()
    }

    /// Opens the datagram sockets of all members.
    ///
    /// # Errors
    /// [`SetupError`] names the socket that could not be opened.
    pub fn open(&mut self, driver: &mut impl Driver) -> Result<(), SetupError> {
        self.each(driver, |worker, driver| worker.open(driver))
            .collect()
    }

    /// Does all that can be done now; returns when it next wants to be called, at the latest.
    pub fn step(&mut self, driver: &mut impl Driver) -> Instant {
        let paused = self.control.paused(|| driver.now());
        let mut received = std::mem::take(&mut self.received);
        let mut turn_due = Instant::FAR_FUTURE;
        // The delivery that ends the loop still has to be handled.
        while received.at < turn_due && driver.receive(&mut received) {
            if turn_due == Instant::FAR_FUTURE {
                turn_due = received.at + DELIVERIES_MAX;
            }
            let index = received.socket.index as usize;
            let owner = self.owners.get(index).copied().unwrap_or(0);
            let Some(member) = self.members.get_mut(usize::from(owner)) else {
                continue;
            };
            let mut own = Own {
                inner: driver,
                member: owner,
                owners: &mut self.owners,
            };
            member.worker.handle(&mut own, &received, paused.is_none());
        }
        self.received = received;
        if let Some(now) = paused {
            return now + STOP_POLL;
        }
        self.each(driver, |worker, driver| worker.turn(driver))
            .min()
            .unwrap_or(Instant::FAR_FUTURE)
    }

    /// True when there is nothing left to do.
    pub fn is_finished(&self) -> bool {
        self.members
            .iter()
            .all(|member| member.worker.is_finished())
    }

    /// The next interval that has ended of any group, with the group's position.
    pub fn poll_interval(&mut self) -> Option<(usize, Interval)> {
        self.members.iter_mut().find_map(|member| {
            let interval = member.worker.poll_interval()?;
            Some((member.group, interval))
        })
    }

    /// What the worker of a group had measured at the end of the interval that was polled last, if
    /// that is a checkpoint.
    pub fn poll_checkpoint(&mut self, group: usize) -> Option<WorkerSummary> {
        let mut members = self.members.iter_mut();
        let member = members.find(|member| member.group == group)?;
        member.worker.poll_checkpoint()
    }

    /// What the finished worker of a group contributes to all later checkpoints.
    pub fn last_checkpoint(
        &mut self,
        group: usize,
        driver: &mut impl Driver,
    ) -> Option<WorkerSummary> {
        let position = self
            .members
            .iter()
            .position(|member| member.group == group)?;
        let own = Own {
            inner: driver,
            member: position as u16,
            owners: &mut self.owners,
        };
        Some(self.members[position].worker.last_checkpoint(&own))
    }

    /// The next group whose worker has finished and has no more intervals to report; each once.
    pub fn poll_finished(&mut self) -> Option<usize> {
        let new = |member: &&mut Member| member.worker.is_finished() && !member.is_done;
        let member = self.members.iter_mut().find(new)?;
        member.is_done = true;
        Some(member.group)
    }

    /// The rest, once [`ThreadWorkers::is_finished`]: the group's position and its worker's
    /// summary.
    pub fn summaries(&mut self, driver: &mut impl Driver) -> Vec<(usize, WorkerSummary)> {
        let groups: Vec<usize> = self.members.iter().map(|member| member.group).collect();
        let summaries = self.each(driver, |worker, driver| worker.summary(driver));
        groups.into_iter().zip(summaries).collect()
    }

    /// What `call` returns for each member in turn, with its view of the driver.
    fn each<'a, D: Driver, T>(
        &'a mut self,
        driver: &'a mut D,
        mut call: impl FnMut(&mut Worker, &mut Own<'_, D>) -> T,
    ) -> impl Iterator<Item = T> {
        let owners = &mut self.owners;
        let members = self.members.iter_mut().zip(0..);
        members.map(move |(member, number)| {
            let mut own = Own {
                inner: driver,
                member: number,
                owners,
            };
            call(&mut member.worker, &mut own)
        })
    }
}

/// A member's view of the driver: sockets that it opens are noted as its own. What the thread did
/// as a whole, such as its CPU time, the first member reports for all.
struct Own<'a, D> {
    inner: &'a mut D,
    member: u16,
    owners: &'a mut Vec<u16>,
}

impl<D> Own<'_, D> {
    fn note(&mut self, socket: SocketId) -> SocketId {
        let index = socket.index as usize;
        if self.owners.len() <= index {
            self.owners.resize(index + 1, 0);
        }
        self.owners[index] = self.member;
        socket
    }
}

impl<D: Driver> Driver for Own<'_, D> {
    #[inline]
    fn now(&mut self) -> Instant {
        self.inner.now()
    }

    fn epoch(&self) -> std::time::Instant {
        self.inner.epoch()
    }

    fn unix_time(&self) -> std::time::Duration {
        self.inner.unix_time()
    }

    fn seed(&self) -> [u8; SEED_OCTETS] {
        let mut seed = self.inner.seed();
        // A simulated endpoint has one seed, and members must not share connection IDs.
        let member = u64::from(self.member).to_le_bytes();
        seed.iter_mut()
            .zip(member)
            .for_each(|(it, octet)| *it ^= octet);
        seed
    }

    fn cpu_time(&self) -> CpuTime {
        match self.member {
            0 => self.inner.cpu_time(),
            _ => CpuTime::default(),
        }
    }

    fn open_udp(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        let socket = self.inner.open_udp(spec)?;
        Ok(self.note(socket))
    }

    fn connect_tcp(&mut self, spec: &SocketSpec) -> Result<SocketId, SocketError> {
        let socket = self.inner.connect_tcp(spec)?;
        Ok(self.note(socket))
    }

    fn listen_tcp(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        let socket = self.inner.listen_tcp(spec)?;
        Ok(self.note(socket))
    }

    fn was_fast_opened(&self, socket: SocketId) -> bool {
        self.inner.was_fast_opened(socket)
    }

    fn local_addr(&self, socket: SocketId) -> io::Result<SocketAddr> {
        self.inner.local_addr(socket)
    }

    #[inline]
    fn send_datagrams(&mut self, socket: SocketId, outgoing: &Outgoing) -> Accepted {
        self.inner.send_datagrams(socket, outgoing)
    }

    fn read_send_stamps(&mut self, socket: SocketId, stamps: &mut Vec<SendStamp>) {
        self.inner.read_send_stamps(socket, stamps);
    }

    #[inline]
    fn send_bytes(&mut self, socket: SocketId, bytes: &[u8]) -> Result<usize, SocketError> {
        self.inner.send_bytes(socket, bytes)
    }

    fn pause_reading(&mut self, socket: SocketId, paused: bool) {
        self.inner.pause_reading(socket, paused);
    }

    fn finish_sending(&mut self, socket: SocketId) {
        self.inner.finish_sending(socket);
    }

    fn close(&mut self, socket: SocketId, how: Close) {
        self.inner.close(socket, how);
    }

    fn receive(&mut self, received: &mut Received) -> bool {
        self.inner.receive(received)
    }

    fn wait(&mut self, until: Instant) {
        self.inner.wait(until);
    }

    fn stats(&self) -> DriverStats {
        match self.member {
            0 => self.inner.stats(),
            _ => DriverStats::default(),
        }
    }
}
