//! The built-in responder on threads: the target of a self-test, and `throng responder`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use driver::clock::Clock;
use driver::kernel::{DriverChoice, KernelDriver, Load};
use driver::uring::Unavailable;
use driver::{Close, Driver, SocketOptions, cpu};
use measure::{ResponderFacts, RunRecord};
use proto::Transport;
use responder::WorkerPlace;
use responder::{Counters, ResponderConfig, ResponderWorker};

/// How often an idle responder looks whether it shall stop.
const STOP_POLL: Duration = Duration::from_millis(20);

/// How long a responder that shall stop goes on with what has arrived already.
const REST_MAX: Duration = Duration::from_millis(100);

/// A responder that is serving; dropping it stops it.
pub struct Serving {
    stop: Arc<AtomicBool>,
    /// Nanoseconds that threads which have ended waited for a CPU.
    waited_ns: Arc<AtomicU64>,
    threads: Vec<JoinHandle<Counters>>,
    /// Who wants to know what each thread has counted so far.
    asking: Vec<Sender<Sender<Counters>>>,
    addresses: Vec<(Transport, SocketAddr)>,
}

type Opened = io::Result<Vec<(Transport, SocketAddr)>>;

/// Serves `config` on one thread a CPU of `cpus`, or on one unpinned thread if there is none.
///
/// # Errors
/// The configuration contradicts itself or a socket could not be opened.
pub fn serve(config: &ResponderConfig, cpus: &[usize], sockets: SocketUse) -> io::Result<Serving> {
    serve_share(config, cpus, sockets, &ResponderShare::default())
}

/// The cure for an error of [`serve`].
pub fn serve_hint(error: &io::Error) -> &'static str {
    match error.get_ref().is_some_and(|it| it.is::<Unavailable>()) {
        true => "let --driver auto choose, or use --driver epoll",
        false => "give addresses of this host and free ports, or port 0 for any free one",
    }
}

/// Puts what the target of a self-test counted into the record, and how long it waited for a CPU.
pub fn note_responder(record: &mut RunRecord, counted: &Counters, waited: Option<Duration>) {
    if record.degraded.is_some() {
        // It counted what came after the result too.
        return;
    }
    let accepts_failed = counted.accepts_failed;
    record.responder = Some(ResponderFacts {
        accepts_failed,
        cpu_wait_ns: waited.and_then(|waited| u64::try_from(waited.as_nanos()).ok()),
    });
    if accepts_failed > 0 {
        record.warnings.push(format!(
            "the built-in responder could not accept connections {} times, mostly for lack of file \
                descriptors: it shares the limit of a process with the clients, or with others of \
                its own",
            measure::notation::count(accepts_failed)
        ));
    }
}

/// How a responder uses the kernel's sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketUse {
    /// What is to move the octets.
    pub driver: DriverChoice,
    /// UDP GSO and GRO where the kernel has them.
    pub offload: bool,
}

impl Default for SocketUse {
    /// With offload, by whichever driver suits.
    fn default() -> Self {
        SocketUse {
            driver: DriverChoice::Auto,
            offload: true,
        }
    }
}

/// Which part of a responder in several processes a process serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponderShare {
    /// From 0.
    pub index: u32,
    /// How many processes there are, at least 1.
    pub count: u32,
    /// Where the first one listens; none for the first one.
    pub addresses: Option<Vec<(Transport, SocketAddr)>>,
}

impl Default for ResponderShare {
    /// All of it.
    fn default() -> Self {
        ResponderShare {
            index: 0,
            count: 1,
            addresses: None,
        }
    }
}

/// As [`serve`], one process of several that listen on the same addresses.
///
/// # Errors
/// As [`serve`].
pub fn serve_share(
    config: &ResponderConfig,
    cpus: &[usize],
    sockets: SocketUse,
    share: &ResponderShare,
) -> io::Result<Serving> {
    let pins: Vec<Option<usize>> = if cpus.is_empty() {
        vec![None]
    } else {
        cpus.iter().copied().map(Some).collect()
    };
    let count = u32::try_from(pins.len()).unwrap_or(1);
    let mut serving = Serving {
        stop: Arc::new(AtomicBool::new(false)),
        waited_ns: Arc::new(AtomicU64::new(0)),
        threads: Vec::new(),
        asking: Vec::new(),
        addresses: Vec::new(),
    };
    let clock = Clock::start();
    for (index, pin) in (0..count).zip(pins) {
        let (sender, receiver) = channel();
        let (asking, asked) = channel();
        let thread = Thread {
            config: Arc::new(config.clone()),
            place: WorkerPlace {
                index: share.index * count + index,
                count: share.count * count,
            },
            pin,
            sockets,
            clock,
            // The first opens free ports, the others share them.
            shared: match index {
                0 => share.addresses.clone(),
                _ => Some(serving.addresses.clone()),
            },
            stop: Arc::clone(&serving.stop),
            waited_ns: Arc::clone(&serving.waited_ns),
            asked,
        };
        serving.asking.push(asking);
        serving
            .threads
            .push(std::thread::spawn(move || thread.run(&sender)));
        let opened = receiver
            .recv()
            .map_err(|_| io::Error::other("responder thread died"))??;
        if index == 0 {
            serving.addresses = opened;
        }
    }
    Ok(serving)
}

impl Serving {
    /// Where it listens.
    pub fn addresses(&self) -> &[(Transport, SocketAddr)] {
        &self.addresses
    }

    /// Where it listens for one transport.
    pub fn address(&self, transport: Transport) -> Option<SocketAddr> {
        self.addresses
            .iter()
            .find(|(each, _)| *each == transport)
            .map(|(_, address)| *address)
    }

    /// What was counted so far.
    pub fn counted(&self) -> Counters {
        let mut counters = Counters::default();
        for asking in &self.asking {
            let (sender, receiver) = channel();
            // A thread that panicked has said why on standard error.
            if asking.send(sender).is_ok()
                && let Ok(counted) = receiver.recv()
            {
                counters += &counted;
            }
        }
        counters
    }

    /// Stops serving; returns what was counted.
    pub fn stop(mut self) -> Counters {
        self.join()
    }

    /// As [`Serving::stop`], with the time that its threads waited for a CPU.
    pub fn stop_and_tell(mut self) -> (Counters, Duration) {
        let counters = self.join();
        let waited_ns = self.waited_ns.load(Ordering::Relaxed);
        (counters, Duration::from_nanos(waited_ns))
    }

    fn join(&mut self) -> Counters {
        self.stop.store(true, Ordering::Relaxed);
        let mut counters = Counters::default();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said why on standard error.
            if let Ok(counted) = thread.join() {
                counters += &counted;
            }
        }
        counters
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.join();
    }
}

/// What arrived before the responder was to stop counts, such as connections in the listen queue.
fn take_the_rest(worker: &mut ResponderWorker, driver: &mut KernelDriver) {
    let end = driver.now() + REST_MAX;
    loop {
        let now = driver.now();
        driver.wait(now);
        let has_taken_all = worker.step(driver) > driver.now();
        if has_taken_all || now >= end {
            return;
        }
    }
}

struct Thread {
    config: Arc<ResponderConfig>,
    place: WorkerPlace,
    pin: Option<usize>,
    sockets: SocketUse,
    clock: Clock,
    shared: Option<Vec<(Transport, SocketAddr)>>,
    stop: Arc<AtomicBool>,
    waited_ns: Arc<AtomicU64>,
    asked: Receiver<Sender<Counters>>,
}

impl Thread {
    fn run(self, opened: &Sender<Opened>) -> Counters {
        let (mut worker, mut driver) = match self.open() {
            Ok(pair) => pair,
            Err(error) => {
                // The receiver is gone only if `serve` has failed already.
                let _ = opened.send(Err(error));
                return Counters::default();
            }
        };
        let _ = opened.send(Ok(worker.addresses().to_vec()));
        while !self.stop.load(Ordering::Relaxed) {
            let until = worker.step(&mut driver);
            if let Ok(sender) = self.asked.try_recv() {
                // The receiver may be gone.
                let _ = sender.send(worker.counters().clone());
            }
            let poll = driver.now() + STOP_POLL;
            driver.wait(until.min(poll));
        }
        take_the_rest(&mut worker, &mut driver);
        let mut counters = worker.counters().clone();
        let stats = driver.stats();
        counters.accepts_failed = stats.accepts_failed;
        counters.receives_dropped = stats.receive_drops;
        worker.close(&mut driver, Close::Graceful);
        let waited_ns = u64::try_from(cpu::run_queue_wait().as_nanos()).unwrap_or(u64::MAX);
        self.waited_ns.fetch_add(waited_ns, Ordering::Relaxed);
        counters
    }

    /// As many streams as clients may open; their number is not known in advance.
    fn streams(&self) -> u32 {
        let mut listen = self.config.listen.iter();
        let has_streams = listen.any(|(transport, _)| transport.is_stream());
        match has_streams || !self.config.listen_http.is_empty() {
            true => u32::MAX,
            false => 0,
        }
    }

    fn open(&self) -> io::Result<(ResponderWorker, KernelDriver)> {
        if let Some(cpu) = self.pin {
            cpu::pin(cpu)?;
        }
        cpu::sharpen_timers();
        let options = SocketOptions {
            offload: self.sockets.offload,
            ..SocketOptions::default()
        };
        let load = Load {
            streams: self.streams(),
            thread: self.place.index,
            threads: self.place.count,
        };
        let (mut driver, _) = KernelDriver::open(self.sockets.driver, load, self.clock, options)?;
        let mut worker = ResponderWorker::new(Arc::clone(&self.config), self.place)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        match &self.shared {
            Some(addresses) => worker.open_shared(&mut driver, addresses)?,
            None => worker.open(&mut driver)?,
        }
        Ok((worker, driver))
    }
}
