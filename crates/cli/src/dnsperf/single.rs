//! Lines for single queries: all of them with `-v`, otherwise those without response.
//!
//! As in dnsperf, a slow reader makes the workers wait: no line is left out.

use engine::{Ending, Observation, Observations, Observed, observer};
use lab::run::RunRequest;

use super::args::Settings;
use super::complaint::{Complaint, Messages};
use super::options::{SEND_FAILED, TIMEOUTS};
use super::output::{rcode_name, seconds};
use super::{questions, show};

/// The RCODE among the flags of a header (RFC 1035, section 4.1.1).
const RCODE: u16 = 0x000f;

/// Says what is printed of each query.
pub(super) struct Singles<'a> {
    /// The line of each question, with `-v`.
    lines: &'a questions::Lines,
    messages: &'a Messages,
    unit: &'static str,
    is_verbose: bool,
    shows_timeouts: bool,
    shows_failures: bool,
    shows_latency: bool,
}

impl<'a> Singles<'a> {
    pub(super) fn new(
        settings: &Settings,
        messages: &'a Messages,
        lines: &'a questions::Lines,
    ) -> Self {
        Singles {
            lines,
            messages,
            unit: if settings.updates { "Update" } else { "Query" },
            is_verbose: settings.verbose,
            shows_timeouts: !settings.long.suppresses(TIMEOUTS),
            shows_latency: true,
            shows_failures: settings.verbose && !settings.long.suppresses(SEND_FAILED),
        }
    }

    /// As queryperf prints them.
    pub(super) fn without_latency(self) -> Self {
        Singles {
            shows_latency: false,
            ..self
        }
    }

    /// Has the run tell of its queries, as far as anything is printed of them.
    pub(super) fn observe(&self, request: &mut RunRequest) -> Option<Observations> {
        if !self.is_verbose && !self.shows_timeouts {
            return None;
        }
        let (observer, observations) = observer();
        let observer = observer.never_missing();
        request.observer = Some(match self.is_verbose {
            true => observer,
            false => observer.without_responses(),
        });
        Some(observations)
    }

    /// Prints until the run is over, or standard output is closed.
    pub(super) fn show(&self, observations: &Observations) {
        for observation in observations {
            if self.show_one(&observation).is_err() {
                return;
            }
        }
    }

    fn show_one(&self, observation: &Observation) -> Result<(), Complaint> {
        let Observed::Ended {
            question,
            id,
            sent_at,
            how,
            ..
        } = observation.event
        else {
            return Ok(());
        };
        let line = || self.lines.get(question);
        match how {
            Ending::Response { flags, .. } => {
                let rcode = rcode_name(flags & RCODE);
                let latency = seconds(observation.at.nanos_since(sent_at) / 1_000);
                match self.shows_latency {
                    true => show(&format!("> {rcode} {} {latency}\n", line())),
                    false => show(&format!("> {rcode} {}\n", line())),
                }
            }
            // To dnsperf what is lost with a connection is a response that does not come.
            Ending::TimedOut | Ending::Lost => match (self.shows_timeouts, self.is_verbose) {
                (false, _) => Ok(()),
                (true, true) => show(&format!("> T {}\n", line())),
                (true, false) => {
                    let unit = self.unit;
                    show(&format!("[Timeout] {unit} timed out: msg id {id}\n"))
                }
            },
            Ending::NotSent => {
                if self.shows_failures {
                    let text = "failed to send packet: it was not sent in time";
                    self.messages.warn(text);
                }
                Ok(())
            }
        }
    }
}
