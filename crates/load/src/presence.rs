//! When the clients of a group are there: some come late, some leave early, and now and then some
//! lose their connections.

use std::time::Duration;

use crate::plan::PlanError;

/// When the clients of a plan are there. The default has them all there from start to end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Presence {
    /// They come that long after the start of the run (its warm-up included), and connect then.
    pub joins_after: Duration,
    /// They leave that long after the start: no further query, and the connections are closed when
    /// their responses are in.
    pub leaves_after: Option<Duration>,
    /// When connections are reset, in order of time.
    pub resets: Vec<Reset>,
}

/// Connections that are reset (RST) by their clients, all at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reset {
    /// That long after the start of the run.
    pub after: Duration,
    /// Share of the clients whose connection is reset, 0 to 1; evenly spread over them.
    pub share: f64,
}

impl Presence {
    /// Looks for times that make no sense.
    pub(crate) fn validate(&self, duration: Option<Duration>) -> Result<(), PlanError> {
        let wrong = |what: &str, hint: &str| Err(PlanError::new("presence", what, hint));
        if self.leaves_after.is_some_and(|at| at <= self.joins_after) {
            return wrong("clients leave before they join", "let them leave later");
        }
        if duration.is_some_and(|length| self.joins_after >= length) && !self.joins_after.is_zero()
        {
            return wrong(
                "clients join after the end of the run",
                "let them join earlier",
            );
        }
        if (self.resets.iter()).any(|reset| !(0.0..=1.0).contains(&reset.share)) {
            return wrong("a share is not within 0 to 1", "give a share such as 0.1");
        }
        if !self.resets.is_sorted_by_key(|reset| reset.after) {
            return wrong(
                "resets are not in order of time",
                "put the earlier one first",
            );
        }
        Ok(())
    }
}
