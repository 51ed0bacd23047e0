//! Rules about clients that lose queries, while others do not.

use super::finding::Finding;
use super::phrases::by_source;
use crate::doctor::{Diagnosis, State};
use crate::notation::{count, counted, percent};
use crate::symptoms::Symptoms;

pub(super) fn losses_of_some_clients(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.losses_of_some_clients.as_ref()?;
    let seen = format!(
        "{} of {}, each with its source port, lost up to {} of their queries, and the others next \
         to nothing",
        count(it.some),
        counted(it.all, "client"),
        percent(it.lost)
    );
    let matters = "a server without CPU time, a path or a limit on the rate of all loses queries \
                   of all clients alike: these are lost to a part of the target, or to a limit on \
                   each source";
    let diagnosis = Diagnosis::new("losses by client", State::Problem, seen, matters);
    Some(diagnosis.cures(by_source(&symptoms.figures)).into())
}
