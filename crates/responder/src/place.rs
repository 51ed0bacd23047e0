//! A worker among those that share the load.

/// Which of a responder's workers this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerPlace {
    /// From 0; workers of one responder draw different chances.
    pub index: u32,
    /// How many there are, at least 1; a rate ceiling is divided by it, and listening ports are
    /// shared if it is more than 1.
    pub count: u32,
}

impl WorkerPlace {
    /// The one worker of a responder.
    pub const ONLY: WorkerPlace = WorkerPlace { index: 0, count: 1 };
}
