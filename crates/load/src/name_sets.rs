//! Generated names together with the zones that hold them, and shuffling (`throng names`).
//!
//! | module | set |
//! |---|---|
//! | [`records`] | `test-record-1..N.<zone>`, each with one A record |
//! | [`services`] | Kubernetes Services that exist, Services that do not, names of the Internet |
//! | [`shuffle`] | the lines of any names file in another order |
//!
//! Everything is written to a [`std::fmt::Write`]; the same numbers always give the same text.

pub mod records;
pub mod services;
pub mod shuffle;

mod external;

pub use records::RecordSet;
pub use services::ServiceSet;
pub use shuffle::write_shuffled;

use crate::plan_error::PlanError;

/// RFC 2181, section 8.
const TTL_S_MAX: u32 = (1 << 31) - 1;

fn check_ttl(ttl_s: u32) -> Result<(), PlanError> {
    if ttl_s <= TTL_S_MAX {
        return Ok(());
    }
    let what = format!("{ttl_s} s is longer than a TTL can be");
    Err(PlanError::new("ttl", what, "give at most 2147483647"))
}

#[cfg(test)]
mod tests;
