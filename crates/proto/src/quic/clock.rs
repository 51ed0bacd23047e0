//! Instants of the run to instants of quinn-proto, and back.

use crate::Instant;
use std::time::Duration;

/// Converts between [`Instant`] and `std::time::Instant` at a fixed epoch.
///
/// The epoch is any instant; in the simulator, virtual time counts from it. quinn-proto only ever
/// compares and subtracts.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: std::time::Instant,
}

impl Clock {
    /// `epoch` is what [`Instant::ZERO`] corresponds to.
    pub const fn new(epoch: std::time::Instant) -> Self {
        Clock { epoch }
    }

    /// The instant that quinn-proto understands.
    pub(super) fn to_std(self, instant: Instant) -> std::time::Instant {
        self.epoch + Duration::from_nanos(instant.as_nanos())
    }

    /// The instant of the run; zero for what lies before the epoch.
    pub(super) fn of_std(self, instant: std::time::Instant) -> Instant {
        Instant::ZERO + instant.saturating_duration_since(self.epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "any instant will do")]
    fn instants_survive_both_ways_to_the_nanosecond() {
        let clock = Clock::new(std::time::Instant::now());
        for ns in [0, 1, 999_999_999, 1_000_000_000, 86_400_000_000_000] {
            let instant = Instant::from_nanos(ns);
            assert_eq!(clock.of_std(clock.to_std(instant)), instant);
        }
        let before = clock.to_std(Instant::ZERO) - Duration::from_secs(1);
        assert_eq!(clock.of_std(before), Instant::ZERO);
    }
}
