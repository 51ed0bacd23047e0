//! The monotonic clock of the data path, and the wall clock.

use std::time::Duration;

use proto::Instant;

/// A clock whose epoch several workers share.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch_ns: u64,
}

impl Clock {
    /// A clock that starts at zero now.
    pub fn start() -> Self {
        Clock {
            epoch_ns: read_ns(libc::CLOCK_MONOTONIC),
        }
    }

    /// The clock that all processes of a host share: it starts when the host does.
    pub fn of_host() -> Self {
        Clock { epoch_ns: 0 }
    }

    /// Nanoseconds since the epoch; about 20 ns where the kernel's vDSO reads the TSC.
    #[inline]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(read_ns(libc::CLOCK_MONOTONIC).saturating_sub(self.epoch_ns))
    }

    /// Time since 1970.
    pub fn unix_time() -> Duration {
        Duration::from_nanos(read_ns(libc::CLOCK_REALTIME))
    }

    /// The maximum error of [`Clock::unix_time`]; none if the kernel does not know, because no
    /// program synchronises its clock.
    pub fn unix_time_error() -> Option<Duration> {
        // SAFETY: all of it is integers, for which zeros are values; with `modes` 0 the clock is
        // only read.
        let mut state: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: `state` is a valid place for the result.
        let result = unsafe { libc::adjtimex(&mut state) };
        let is_kept = result >= 0 && result != libc::TIME_ERROR;
        let micros = u64::try_from(state.maxerror).ok();
        micros.filter(|_| is_kept).map(Duration::from_micros)
    }

    /// CPU time, user and system, that the calling thread has used.
    pub fn thread_cpu_time() -> Duration {
        Duration::from_nanos(read_ns(libc::CLOCK_THREAD_CPUTIME_ID))
    }
}

#[inline]
fn read_ns(clock: libc::clockid_t) -> u64 {
    try_read_ns(clock).expect("every Linux has the three clocks used here")
}

/// The time of any clock in nanoseconds; none if there is no such clock.
#[inline]
pub(crate) fn try_read_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the result.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    (result == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
