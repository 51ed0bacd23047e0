//! Rules about names whose queries get no response.

use super::finding::Finding;
use super::phrases::{dig_at, smaller_answers, some_of};
use crate::doctor::{Cure, Diagnosis, State};
use crate::notation::{count, counted};
use crate::symptoms::Symptoms;
use crate::symptoms::losses_by_name::{LooksAlike, SilentNames};

/// Names that get no response, while the others do.
pub(super) fn silent_names(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let it = symptoms.silent_names.as_ref()?;
    let mut seen = format!(
        "all queries for {} of {} got no response, the others did: {}",
        count(it.silent),
        all_names(it),
        names(it)
    );
    let alike: Vec<String> = it.alike.iter().map(looks_like).collect();
    if !alike.is_empty() {
        seen.push_str(&format!(
            "; names were asked in turn, so {} would look the same",
            alike.join(" or ")
        ));
    }
    if let Some(size) = it.edns_size {
        seen.push_str(&format!(
            "; answers that are too large for the path would look the same: EDNS allows {}",
            counted(size, "byte")
        ));
    }
    let matters = match symptoms.silent_names_look_alike {
        Some(_) => {
            "a server without CPU time loses queries for all names alike: these may be lost to a \
             rule, a zone or an upstream of theirs, or to what meets the same names each time"
        }
        None => {
            "a server without CPU time loses queries for all names alike: these are lost to a \
             rule by name of the server or of a device before it, to a zone that is not loaded \
             or lame, or to an upstream that is silent; a lower rate changes nothing"
        }
    };
    let shuffled = Cure::throng("--question-order shuffled");
    let cures = (!it.alike.is_empty()).then_some(shuffled).into_iter();
    let diagnosis = Diagnosis::new("losses by name", State::Problem, seen, matters)
        .cures(cures.chain(smaller_answers(&symptoms.figures)))
        .cures(it.names.first().map(|first| {
            let at = dig_at(&symptoms.figures);
            Cure::shell(format!("dig {at} {} {}", first.name, first.qtype))
        }))
        .cure(Cure::words(
            "look for these names in the server's zones, rules and log, and ask their upstream",
        ));
    Some(diagnosis.into())
}

/// `3 names`, or those of a longer list that were counted each.
fn all_names(it: &SilentNames) -> String {
    match it.counted < it.questions {
        true => format!("the first {} names", count(it.counted)),
        false => counted(it.counted, "name"),
    }
}

fn names(it: &SilentNames) -> String {
    let named = it.names.iter();
    some_of(
        named.map(|it| format!("{} {}", it.name, it.qtype)),
        it.silent,
    )
}

/// What would look like the losses of names or clients that take turns.
pub(super) fn looks_like(alike: &LooksAlike) -> String {
    match *alike {
        LooksAlike::BackEnds { silent, of } => {
            format!(
                "{} of {} back-ends in turn without responses",
                count(silent),
                count(of)
            )
        }
        LooksAlike::RateLimit(limit_qps) => format!("a limit of {} qps", count(limit_qps)),
        LooksAlike::Clients => "clients that get no response".to_owned(),
    }
}
