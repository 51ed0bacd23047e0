//! Checks when clients are present, before anything is started.

use std::time::Duration;

use settings::Presence;

use crate::plan_error::PlanError;

/// Checks the times of a presence.
pub(crate) fn validate(presence: &Presence, duration: Option<Duration>) -> Result<(), PlanError> {
    let wrong = |flag, what: &str, hint: &str| Err(PlanError::new(flag, what, hint));
    if presence
        .leaves_after
        .is_some_and(|at| at <= presence.joins_after)
    {
        return wrong(
            "leave-after",
            "clients leave before they join",
            "let them leave later",
        );
    }
    if duration.is_some_and(|length| presence.joins_after >= length)
        && !presence.joins_after.is_zero()
    {
        return wrong(
            "join-after",
            "clients join after the end of the run",
            "let them join earlier",
        );
    }
    if (presence.resets.iter()).any(|reset| !(0.0..=1.0).contains(&reset.share)) {
        return wrong(
            "reset",
            "a share is not within 0 to 1",
            "give a share such as 0.1",
        );
    }
    if !presence.resets.is_sorted_by_key(|reset| reset.after) {
        return wrong(
            "reset",
            "resets are not in order of time",
            "put the earlier one first",
        );
    }
    Ok(())
}
