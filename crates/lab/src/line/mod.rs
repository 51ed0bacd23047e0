//! A delay line in user space: two TUN devices in network namespaces, and a thread that forwards
//! packets between them with the configured impairments.
//!
//! For kernels without netem, and because it keeps its own account: the line reports how late it
//! was itself and what it lost by which cause, so that neither is attributed to the server. Needs
//! root.
//!
//! Order of calls: [`check`], [`clear_leftovers`], [`Line::lay`], [`Line::end`]. It is a device for
//! measurements, not a network: two ends, no routers, whole packets.
//!
//! * `lane`: one direction as a state machine, and all that is random.
//! * `pump`: the thread.
//! * `end`: namespaces and devices, and that they go.
//! * `pair`: two namespaces without a line, joined by virtual network cards.
//! * `shape`: what is asked of a line in one word.

use std::io::{self, PipeWriter, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use load::random::Draws;
use measure::line::Impairment;

use crate::run::RunError;
use end::{End, Origin};
use lane::Lane;
use pump::{Pump, Pumped};

mod end;
mod lane;
mod pair;
mod pump;
mod shape;

pub use end::{Leftover, check_rights, clear_leftovers, exists, remove_made, within, words};
pub use pair::Pair;
pub use shape::{Shape, share as parse_share};

/// The longest delay, jitter and time of holding back; a longer one is a typing error.
pub const TIME_MAX: Duration = Duration::from_secs(10);
/// How long a line may take to say what it did.
const PATIENCE: Duration = Duration::from_secs(60);
/// The highest rate that can be asked for: beyond it none is a limit.
const RATE_BPS_MAX: u64 = 1_000_000_000_000;
/// The most packets that may wait for a rate.
pub const QUEUE_MAX: u64 = 1_000_000;

/// A line as it is asked for.
#[derive(Clone, Debug)]
pub struct LineRequest {
    /// Names of the network namespaces at its near and its far end.
    pub between: [String; 2],
    /// They are there already, rather than made and removed with the line.
    pub joins: bool,
    /// Addresses of its ends; those of IPv4 have 24 bits of network, those of IPv6 64.
    pub addresses: [Vec<IpAddr>; 2],
    /// Seed of all chances.
    pub seed: u64,
    /// From near to far, and back.
    pub asked: [Impairment; 2],
}

/// A line that moves packets. Ends with all that was made for it when dropped.
#[derive(Debug)]
pub struct Line {
    between: [String; 2],
    seed: u64,
    shall_end: Arc<AtomicBool>,
    shall_account: Arc<AtomicBool>,
    /// Written to or closed to wake the thread, after one of these is set.
    wake: Option<PipeWriter>,
    accounts: Receiver<Pumped>,
    thread: Option<JoinHandle<Pumped>>,
    ends: Option<[End; 2]>,
}

/// What a line did, and what was left in its namespaces.
#[derive(Debug)]
pub struct Ended {
    /// What it did.
    pub line: measure::line::Line,
    /// Processes that were still in namespaces that it made, and were ended.
    pub processes: usize,
}

/// Refuses what cannot be done, before anything is made.
///
/// # Errors
/// What is wrong, with its cure.
pub fn check(request: &LineRequest) -> Result<(), RunError> {
    check_ends(&request.between, &request.addresses)?;
    request.asked.iter().try_for_each(check_direction)
}

fn check_ends(between: &[String; 2], addresses: &[Vec<IpAddr>; 2]) -> Result<(), RunError> {
    let [near, far] = between;
    for name in [near, far] {
        let is_good = |octet: u8| octet.is_ascii_alphanumeric() || b"._-".contains(&octet);
        let begins_well = name.starts_with(|first: char| first.is_ascii_alphanumeric());
        if !begins_well || name.len() > 64 || !name.bytes().all(is_good) {
            return Err(RunError::new(
                format!("`{name}` is not a name for a network namespace"),
                "begin it with a letter or digit, and use letters, digits, `.`, `_` and `-`",
            ));
        }
    }
    if near == far {
        return Err(RunError::new(
            format!("both ends are `{near}`"),
            "give the two ends different names",
        ));
    }
    let [near, far] = addresses;
    for address in near.iter().chain(far) {
        let is_anybody = address.is_unspecified() || address.is_multicast();
        if is_anybody || (near.contains(address) && far.contains(address)) {
            return Err(RunError::new(
                format!("{address} is not an address for one end of a line"),
                "give each end its own, such as 10.98.0.1 and 10.98.0.2",
            ));
        }
    }
    Ok(())
}

fn check_direction(asked: &Impairment) -> Result<(), RunError> {
    let times = [
        ("delay", asked.delay_ns),
        ("jitter", asked.jitter_ns),
        ("reorder-by", asked.reorder_by_ns),
    ];
    for (name, ns) in times {
        if Duration::from_nanos(ns) > TIME_MAX {
            return Err(RunError::new(
                format!("--{name}: {:?} is too long", Duration::from_nanos(ns)),
                format!("give at most {TIME_MAX:?}"),
            ));
        }
    }
    let shares = [
        ("loss", asked.loss),
        ("reorder", asked.reorder),
        ("duplicate", asked.duplicate),
    ];
    for (name, share) in shares {
        if !(0.0..=1.0).contains(&share) {
            return Err(RunError::new(
                format!("--{name}: {share} is not a share"),
                "give a number from 0 to 1",
            ));
        }
    }
    if asked.rate_bps == Some(0) {
        return Err(RunError::new(
            "--rate: nothing passes at 0 bits a second",
            "give a rate such as 10M, or leave it out for no limit",
        ));
    }
    if asked.queue > QUEUE_MAX {
        return Err(RunError::new(
            format!("--queue: {} packets are too many", asked.queue),
            format!("give at most {QUEUE_MAX}"),
        ));
    }
    Ok(())
}

/// Reads bits a second: `9600`, `512k`, `10M`, `1.5G`; none for anything else.
pub fn parse_bit_rate(text: &str) -> Option<u64> {
    let (number, factor) = match text.char_indices().next_back()? {
        (end, 'k' | 'K') => (&text[..end], 1e3),
        (end, 'M') => (&text[..end], 1e6),
        (end, 'G') => (&text[..end], 1e9),
        _ => (text, 1.0),
    };
    // `f64` alone would also read `inf`, `NaN`, `1e5` and signs.
    let is_plain = |octet: u8| octet.is_ascii_digit() || octet == b'.';
    let number = Some(number).filter(|number| number.bytes().all(is_plain))?;
    let rate = number.parse::<f64>().ok()? * factor;
    (rate <= RATE_BPS_MAX as f64).then(|| rate.round() as u64)
}

impl Line {
    /// Lays it; packets move from now on.
    ///
    /// # Errors
    /// It cannot be laid here, or names are taken; nothing is left then.
    pub fn lay(request: &LineRequest) -> Result<Line, RunError> {
        check(request)?;
        let origin = match request.joins {
            true => Origin::Joined,
            false => Origin::Made,
        };
        let lay = |end: usize| End::lay(&request.between[end], origin, &request.addresses[end]);
        let (near, near_device) = lay(0)?;
        let (far, far_device) = lay(1)?;
        let cannot = |error: io::Error| RunError::plain(format!("cannot start the line: {error}"));
        let (woken, wake) = io::pipe().map_err(cannot)?;
        let (shall_end, shall_account) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let (sender, accounts) = channel();
        let lane = |direction: usize| {
            let mut seeds = Draws::of(request.seed, direction as u64);
            Lane::new(request.asked[direction], seeds.bits())
        };
        let pump = Pump {
            ends: [near_device, far_device],
            lanes: [0, 1].map(lane),
            shall_end: Arc::clone(&shall_end),
            shall_account: Arc::clone(&shall_account),
            woken,
            accounts: sender,
        };
        let thread = Builder::new().name("line".into());
        let thread = thread.spawn(move || pump.run()).map_err(cannot)?;
        Ok(Line {
            between: request.between.clone(),
            seed: request.seed,
            shall_end,
            shall_account,
            wake: Some(wake),
            accounts,
            thread: Some(thread),
            ends: Some([near, far]),
        })
    }

    /// What it did since it was laid, or since this was last asked; none if its thread has ended.
    /// Asked when nothing is under way, it is exactly about what went over it meanwhile.
    pub fn account(&mut self) -> Option<measure::line::Line> {
        self.shall_account.store(true, Ordering::Relaxed);
        self.wake.as_mut()?.write_all(&[1]).ok()?;
        let pumped = self.accounts.recv_timeout(PATIENCE).ok()?;
        Some(self.of(pumped))
    }

    fn of(&self, pumped: Pumped) -> measure::line::Line {
        let [to_far, to_near] = pumped.directions;
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        measure::line::Line {
            between: self.between.clone(),
            seed: self.seed,
            duration_ns: nanos(pumped.time),
            cpu_ns: nanos(pumped.cpu),
            cpu_waited_ns: nanos(pumped.cpu_waited),
            to_far,
            to_near,
        }
    }

    /// Ends it, and removes what was made for it.
    ///
    /// # Panics
    /// If its thread has panicked.
    pub fn end(mut self) -> Ended {
        let pumped = self.stop().expect("its thread has not panicked");
        let line = self.of(pumped);
        let ends = self.ends.take().into_iter().flatten();
        Ended {
            line,
            processes: ends.map(End::clear).sum(),
        }
    }

    /// What its thread did; none if that is known already, or the thread has panicked.
    fn stop(&mut self) -> Option<Pumped> {
        self.shall_end.store(true, Ordering::Relaxed);
        self.wake = None;
        self.thread.take()?.join().ok()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.stop();
    }
}
