//! A worker among those that share the load.

/// The position of a worker among those of its responder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerPlace {
    /// From 0; seeds the worker's random numbers.
    pub index: u32,
    /// How many there are, at least 1; a rate ceiling is divided by it, and listening ports are
    /// shared if it is more than 1.
    pub count: u32,
}

impl WorkerPlace {
    /// The one worker of a responder.
    pub const ONLY: WorkerPlace = WorkerPlace { index: 0, count: 1 };
}
