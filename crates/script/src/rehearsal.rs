//! Tries out a script on made-up responses, for `throng script check`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use measure::script::{Failures, Metrics};
use proto::Instant;
use proto::response::ResponseFacts;

use crate::script::{Action, End, Script, ScriptError, Settings};

/// Clients that rehearse.
const CLIENTS: u32 = 3;
/// Steps of them all together: enough for every branch of most scripts.
const STEPS_MAX: u32 = 3_000;
/// RCODE of a name that does not exist (RFC 1035, section 4.1.1).
const NXDOMAIN: u16 = 3;
/// RCODE of a server that failed.
const SERVFAIL: u16 = 2;

/// The result of a rehearsal.
#[derive(Clone, Debug, Default)]
pub struct Rehearsal {
    /// Number of clients.
    pub clients: u32,
    /// Queries of all clients.
    pub queries: u64,
    /// Sleeps, and queries that the script gave up after its own timeout.
    pub sleeps: u64,
    /// Clients that returned from their function.
    pub finished: u32,
    /// Virtual time that passed.
    pub passed: Duration,
    /// Errors of clients.
    pub failures: Failures,
    /// Counters and observations of the script.
    pub metrics: Metrics,
    /// Lines printed, with the number of the client, from 0, if a client printed it.
    pub printed: Vec<(Option<u32>, String)>,
}

/// Runs `text` for a few clients and some thousand steps in virtual time. Queries are answered in
/// turn with NOERROR, NXDOMAIN, a timeout, NOERROR truncated, SERVFAIL and a lost connection.
///
/// # Errors
/// [`ScriptError`] if it does not compile, or fails before its clients run.
pub fn rehearse(text: &str, file_name: &str, settings: Settings) -> Result<Rehearsal, ScriptError> {
    let settings = Settings {
        clients: CLIENTS,
        ..settings
    };
    let mut stage = Stage {
        script: Script::load(text, file_name, settings)?,
        queue: BinaryHeap::new(),
        next: 0,
        answered: 0,
        seen: Rehearsal {
            clients: CLIENTS,
            ..Rehearsal::default()
        },
    };
    for client in 0..CLIENTS {
        stage.script.start(client, Instant::ZERO);
    }
    Ok(stage.play())
}

/// A future event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cue {
    Wake,
    Response(u32, u8),
}

struct Stage {
    script: Script,
    /// Due instant, order, client, cue.
    queue: BinaryHeap<Reverse<(Instant, u64, u32, Cue)>>,
    next: u64,
    answered: u8,
    seen: Rehearsal,
}

impl Stage {
    fn play(mut self) -> Rehearsal {
        let mut actions = Vec::new();
        let mut now = Instant::ZERO;
        for _ in 0..STEPS_MAX {
            while self.script.step(&mut actions) {}
            for action in actions.drain(..) {
                self.act(action);
            }
            let Some(Reverse((at, _, client, cue))) = self.queue.pop() else {
                break;
            };
            now = now.max(at);
            self.cue(client, cue, at);
        }
        self.seen.passed = now.duration_since(Instant::ZERO);
        self.seen.failures = self.script.failures();
        self.seen.metrics = self.script.metrics();
        self.seen.printed = self.script.take_printed().0;
        self.seen
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Query {
                client,
                question,
                at,
            } => {
                let kind = self.answered;
                self.answered = (kind + 1) % 6;
                self.seen.queries += 1;
                let after = Duration::from_millis(if kind == 2 { 5_000 } else { 5 });
                self.plan(at + after, client, Cue::Response(question, kind));
            }
            Action::Sleep { client, until } => {
                self.seen.sleeps += 1;
                self.plan(until, client, Cue::Wake);
            }
            Action::Finished { .. } => self.seen.finished += 1,
            Action::Close { .. } | Action::Failed { .. } => {}
        }
    }

    fn plan(&mut self, at: Instant, client: u32, cue: Cue) {
        self.next += 1;
        self.queue.push(Reverse((at, self.next, client, cue)));
    }

    fn cue(&mut self, client: u32, cue: Cue, at: Instant) {
        let Cue::Response(question, kind) = cue else {
            return self.script.wake(client, at);
        };
        let found = ResponseFacts {
            rcode: 0,
            answers: 1,
            truncated: false,
            ttl_min: Some(300),
        };
        let refused = |rcode| ResponseFacts {
            rcode,
            ..ResponseFacts::default()
        };
        let truncated = ResponseFacts {
            truncated: true,
            ..ResponseFacts::default()
        };
        let response = match kind {
            0 => found,
            1 => refused(NXDOMAIN),
            3 => truncated,
            4 => refused(SERVFAIL),
            kind => {
                let (end, after_ns) = match kind {
                    2 => (End::TimedOut, 5_000_000_000),
                    _ => (End::Lost, 5_000_000),
                };
                return self.script.end(client, question, end, after_ns, at);
            }
        };
        self.script
            .respond(client, question, &response, 5_000_000, at);
    }
}
