//! What the lead of a run and its agents have to decide alike.
//!
//! Settings and inputs travel, and each agent makes its plan of them: a plan is longer than what it
//! is made from. That it is the plan of its lead is not left to trust.

use std::fmt::Write as _;
use std::sync::Arc;

use load::Plan;
use load::arrival::Arrival;

use super::RunRequest;

/// The plans of all groups as text, a setting a line. What was made of inputs is only counted: they
/// have hashes. Addresses and CPUs of its own are left to an agent.
pub fn decided(requests: &[RunRequest]) -> String {
    let mut text = String::new();
    for request in requests {
        let plan = &request.plan;
        let (arrival, made_of_input) = match &plan.arrival {
            Arrival::Script(_) => (None, "script"),
            Arrival::Profile(_) => (None, "profile"),
            Arrival::Replay(_) => (None, "replay"),
            own => (Some(own.clone()), "rate"),
        };
        let settings = Plan {
            questions: Arc::default(),
            arrival: arrival.unwrap_or(Arrival::Closed {
                outstanding: 0,
                rate_qps_max: None,
            }),
            local_addresses: Vec::new(),
            local_port: 0,
            ..plan.clone()
        };
        let questions = plan.questions.len();
        // A string takes all that is written.
        let _ = writeln!(text, "{made_of_input}, {questions} questions");
        let _ = writeln!(text, "{settings:#?}");
    }
    text
}

/// The first line in which two texts of [`decided`] differ, of both.
pub fn difference<'a>(own: &'a str, other: &'a str) -> Option<(&'a str, &'a str)> {
    let (mut own, mut other) = (own.lines(), other.lines());
    loop {
        match (own.next(), other.next()) {
            (None, None) => return None,
            (own, other) if own == other => {}
            (own, other) => {
                let shown = |line: Option<&'a str>| line.map_or("nothing", str::trim);
                return Some((shown(own), shown(other)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_shown_of_both() {
        assert_eq!(difference("a\n b: 1\nc", "a\n b: 1\nc"), None);
        let found = difference("a\n b: 1,\nc", "a\n b: 2,\nd");
        assert_eq!(found, Some(("b: 1,", "b: 2,")));
        assert_eq!(difference("a", "a\nb"), Some(("nothing", "b")));
    }
}
