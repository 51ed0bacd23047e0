//! Counts that records leave out: those of what did not happen.

pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}
