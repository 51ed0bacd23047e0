//! The offer of a script: each client queries, sleeps and closes as its function in Lua does.
//!
//! The ends of queries go to the script at once. It runs in batches, at the latest when no delivery
//! is left to be handled. A query is scheduled at the instant of the event that its client reacted
//! to, so that a late worker does not shorten latencies.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use load::Plan;
use load::plan::ScriptText;
use load::question_source::Question;
use load::questions::Template;
use measure::ScriptRecord;
use proto::Instant;
use proto::pending::Query;
use proto::response::ResponseFacts;
use script::{Action, End, Limits, Script, ScriptError, Settings};

use super::questions::QuestionCursor;
use super::submit::Asking;
use super::{Mode, Offer};
use crate::query_end::QueryEnd;
use crate::worker::ledger::Ledger;
use crate::worker::population::Population;
use crate::worker::population::client::Role;

/// Events after which the script runs although more deliveries wait: a call costs as much as a few
/// events.
const EVENTS_DUE: u32 = 64;

/// The scripted clients of one worker.
pub(crate) struct Scripted {
    text: Arc<ScriptText>,
    /// None until [`Scripted::load`].
    script: Option<Script>,
    /// Due instants with their clients; the valid entry of each client is the one in `armed`.
    sleepers: BinaryHeap<Reverse<(Instant, u32)>>,
    armed: Vec<Instant>,
    /// When each client is to be woken; may be later than its entry in `sleepers`.
    wanted: Vec<Instant>,
    actions: Vec<Action>,
    clients: u32,
    finished: u64,
}

impl Scripted {
    pub(crate) fn new(text: &Arc<ScriptText>, clients: u32) -> Self {
        Scripted {
            text: Arc::clone(text),
            script: None,
            sleepers: BinaryHeap::new(),
            armed: vec![Instant::FAR_FUTURE; clients as usize],
            wanted: vec![Instant::FAR_FUTURE; clients as usize],
            actions: Vec::new(),
            clients,
            finished: 0,
        }
    }

    /// Compiles the script and runs its `setup()`, for clients from number `first` on.
    /// They end in the middle of a turn once `is_over` is set.
    pub(crate) fn load(
        &mut self,
        plan: &Plan,
        first: u32,
        is_over: Arc<AtomicBool>,
    ) -> Result<(), ScriptError> {
        let text = &self.text;
        let settings = Settings {
            clients: self.clients,
            first_client: first,
            group: text.group.clone(),
            seed: plan.seed,
            questions: Arc::clone(&plan.questions),
            defaults: text.defaults.clone(),
            limits: Limits::for_clients(self.clients),
            is_over,
        };
        self.script = Some(Script::load(&text.text, &text.file_name, settings)?);
        Ok(())
    }

    /// The run starts at `start`; the clients begin at `joins_at`.
    pub(crate) fn start(&mut self, start: Instant, joins_at: Instant) {
        if let Some(script) = &mut self.script {
            script.set_start(start);
            (0..self.clients).for_each(|client| script.start(client, joins_at));
        }
    }

    /// When the script is next due.
    #[inline]
    pub(crate) fn next_due(&self) -> Instant {
        if self.events() > 0 {
            return Instant::ZERO;
        }
        let first = self.sleepers.peek();
        first.map_or(Instant::FAR_FUTURE, |Reverse((at, _))| *at)
    }

    fn events(&self) -> u32 {
        self.script.as_ref().map_or(0, Script::events)
    }

    /// Calls `each` with the message of a query.
    #[inline]
    pub(crate) fn with_template<R>(
        &self,
        question: u32,
        each: impl FnOnce(Template<'_>) -> R,
    ) -> R {
        let script = self.script.as_ref();
        let script = script.expect("a query was asked by the script that was loaded");
        each(script.messages().get(question))
    }

    pub(crate) fn wake_at(&mut self, client: u32, until: Instant) {
        let place = client as usize;
        self.wanted[place] = until;
        if until < self.armed[place] {
            self.armed[place] = until;
            self.sleepers.push(Reverse((until, client)));
        }
    }

    /// Wakes the clients whose sleep is over at `now`.
    pub(crate) fn wake(&mut self, now: Instant) {
        while let Some(&Reverse((at, client))) = self.sleepers.peek()
            && at <= now
        {
            self.sleepers.pop();
            let place = client as usize;
            // An entry that an earlier one replaced is stale.
            if self.armed[place] != at {
                continue;
            }
            self.armed[place] = Instant::FAR_FUTURE;
            let wanted = self.wanted[place];
            if wanted > now {
                if wanted != Instant::FAR_FUTURE {
                    self.wake_at(client, wanted);
                }
                continue;
            }
            self.wanted[place] = Instant::FAR_FUTURE;
            if let Some(script) = &mut self.script {
                script.wake(client, wanted);
            }
        }
    }

    pub(crate) fn report_end(
        &mut self,
        role: Role,
        index: u32,
        query: &Query,
        end: QueryEnd<'_>,
        at: Instant,
    ) {
        let Some(script) = &mut self.script else {
            return;
        };
        if role == Role::Fallback {
            let was_answered = matches!(end, QueryEnd::Response(_));
            return script.end_again(query.question.template, was_answered);
        }
        let after_ns = at.nanos_since(query.scheduled_at);
        match end {
            QueryEnd::Response(message) => {
                let facts = ResponseFacts::read(message).unwrap_or_default();
                script.respond(index, query.question.template, &facts, after_ns, at);
            }
            QueryEnd::End(end) => script.end(index, query.question.template, end, after_ns, at),
        }
    }

    /// What the scripts of this worker did.
    pub(crate) fn record(&self) -> Option<ScriptRecord> {
        let script = self.script.as_ref()?;
        Some(ScriptRecord {
            finished: self.finished,
            failures: script.failures(),
            metrics: script.metrics(),
        })
    }

    /// Keeps the message of `query`, whose question is repeated over TCP.
    pub(super) fn ask_again(&mut self, query: &Query) {
        if let Some(script) = &mut self.script {
            script.ask_again(query.question.template);
        }
    }

    /// True if enough events have queued that the script has to run.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.events() >= EVENTS_DUE
    }

    /// Submits a query of a client.
    fn ask(
        &mut self,
        questions: &mut QuestionCursor,
        (client, question): (u32, u32),
        at: Instant,
        (population, ledger): (&mut Population, &mut Ledger),
    ) {
        if questions.left == 0 {
            return;
        }
        ledger.tally.due_at(at);
        let asking = Asking {
            client,
            scheduled_at: at,
            queries: 1,
            question: Some(Question::plain(question)),
        };
        let whose = (
            &mut population.clients[client as usize],
            &mut population.to_send,
        );
        if asking.submit(questions, whose, ledger) == 0
            && let Some(script) = &mut self.script
        {
            script.end(client, question, End::NotSent, 0, at);
        }
    }
}

/// Actions that the clients of a script have requested.
pub(crate) struct Batch {
    /// Taken out of [`Scripted`], to be returned with [`Offer::end_batch`].
    pub(crate) actions: Vec<Action>,
    /// There may be more to do.
    pub(crate) has_run: bool,
    /// The functions of all clients have returned.
    pub(crate) is_over: bool,
}

impl Offer {
    /// Runs the clients that have events by `now`; none without a script.
    pub(crate) fn run_script(&mut self, now: Instant) -> Option<Batch> {
        let Mode::Scripted(scripted) = &mut self.mode else {
            return None;
        };
        scripted.wake(now);
        let script = scripted.script.as_mut()?;
        let mut actions = std::mem::take(&mut scripted.actions);
        Some(Batch {
            has_run: script.step(&mut actions),
            is_over: script.running() == 0,
            actions,
        })
    }

    /// Takes the buffer of actions back.
    pub(crate) fn end_batch(&mut self, actions: Vec<Action>) {
        if let Mode::Scripted(scripted) = &mut self.mode {
            scripted.actions = actions;
        }
    }

    /// Carries out an action of a scripted client; returns the client if its connection is to be
    /// closed.
    pub(crate) fn act(
        &mut self,
        action: Action,
        parts: (&mut Population, &mut Ledger),
    ) -> Option<u32> {
        let Mode::Scripted(scripted) = &mut self.mode else {
            return None;
        };
        match action {
            Action::Query {
                client,
                question,
                at,
            } => scripted.ask(&mut self.questions, (client, question), at, parts),
            Action::Close { client } => return Some(client),
            Action::Sleep { client, until } => scripted.wake_at(client, until),
            Action::Finished { .. } => scripted.finished += 1,
            Action::Failed { .. } => {}
        }
        None
    }
}
