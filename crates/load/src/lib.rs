//! What to ask, who asks, and when: names files, question sets, arrival schedules, the plan.
//!
//! Opens no file and reads no clock: texts go in, a [`Plan`] comes out; the same plan and seed
//! always give the same queries in the same order.

#![forbid(unsafe_code)]

pub mod arrival;
pub mod name_sets;
pub mod names_file;
pub mod plan;
pub mod questions;
pub mod update_file;

pub use arrival::{Arrival, Schedule};
pub use plan::Plan;
pub use questions::QuestionSet;
