//! A lead and its agents in virtual time: the production state machines and workers, on wires that
//! can be cut and processes that can be stopped.

mod fleet;
mod losses;
mod many;
mod same;
