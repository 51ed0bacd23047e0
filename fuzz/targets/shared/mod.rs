//! What several targets check.

// Each target uses some of it.
#![allow(dead_code)]

pub(crate) mod faults;
pub(crate) mod messages;
pub(crate) mod profiles;
