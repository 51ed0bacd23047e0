//! Steps that ask Kubernetes something, each of which a signal ends.

use std::thread;
use std::time::Duration;

use lab::kubernetes::{Cluster, ClusterError};

use crate::failure::Failure;
use crate::signals::BY_SIGNAL;

/// How soon the end of a step is seen.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Why a step has no result.
#[derive(Debug)]
pub(super) enum Stop {
    /// A signal came.
    Interrupted(i32),
    /// It failed.
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

impl From<ClusterError> for Stop {
    fn from(error: ClusterError) -> Stop {
        Stop::Failed(error.into())
    }
}

/// Does a step until a signal comes, which ends its calls of `kubectl`; `signal` waits for one for
/// that time.
///
/// # Errors
/// A signal came, before the step or within it. What was asked may have been done.
pub(super) fn beside<T: Send, S>(
    signal: impl Fn(Duration) -> Option<S>,
    cluster: &Cluster,
    step: impl FnOnce(&Cluster) -> T + Send,
) -> Result<T, S> {
    let cluster = cluster.with_own_calls();
    thread::scope(|scope| {
        let step = scope.spawn(|| step(&cluster));
        while !step.is_finished() {
            if let Some(signal) = signal(LOOK_EVERY) {
                cluster.end_calls();
                return Err(signal);
            }
        }
        Ok(step.join().expect("a step does not panic"))
    })
}

/// A command that a signal has ended.
pub(super) fn interrupted(signal: i32, what: &str, hint: &str) -> Failure {
    let code = u8::try_from(BY_SIGNAL + signal).unwrap_or(u8::MAX);
    Failure::coded(format!("interrupted: {what}"), hint, code)
}
