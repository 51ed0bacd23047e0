//! The cache of an observed resolver.

use crate::doctor::{Diagnosis, State};
use crate::notation::percent;

use super::{Figures, Finding};

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let servers = figures.record.servers();
    let server = servers.first()?;
    let hits = server.cache_hit_share?;
    let seen = format!(
        "the cache of {} answered {} of the lookups",
        server.name(),
        percent(hits)
    );
    let matters = "a miss costs a resolver many times what a hit does: rates are those of this mix";
    Some(Finding::met(Diagnosis::new(
        "cache of the server",
        State::Ok,
        seen,
        matters,
    )))
}
