//! The offer of a script: each client asks, sleeps and closes as its function in Lua says.
//!
//! What happens to queries is told to the script as it happens; it goes on in batches, at the
//! latest when no delivery is left to be handled. A query is scheduled at the instant of the event
//! that its client reacted to, so a worker that is late does not make its latencies look shorter.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use driver::Driver;
use load::Plan;
use load::plan::ScriptText;
use load::question_source::Question;
use load::questions::Template;
use measure::ScriptRecord;
use proto::Instant;
use proto::framing;
use proto::pending::Query;
use proto::response::{ResponseFacts, question_matches};
use script::{Action, End, Limits, Script, ScriptError, Settings};

use super::offer::Offer;
use super::{Phase, Worker};
use crate::client::{Link, Reason, Role};

/// Events after which the script goes on although more deliveries wait: a call of it costs as much
/// as a few events.
const EVENTS_DUE: u32 = 64;
/// Batches that the script handles in one turn, before another look at the sockets.
const BATCHES_MAX: u32 = 32;

/// How a query ended, for the script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told<'a> {
    /// With this response.
    Response(&'a [u8]),
    /// Without one.
    End(End),
}

/// What the clients of one worker do.
pub(super) struct Scripted {
    text: Arc<ScriptText>,
    /// None until [`Scripted::load`].
    script: Option<Script>,
    /// Due instants, and whose; each client has one that counts: that in `armed`.
    sleepers: BinaryHeap<Reverse<(Instant, u32)>>,
    armed: Vec<Instant>,
    /// When each client wants to be woken. It may have become later since its entry was made.
    wanted: Vec<Instant>,
    actions: Vec<Action>,
    clients: u32,
    finished: u64,
}

impl Scripted {
    pub(super) fn new(plan: &Plan, clients: u32) -> Self {
        Scripted {
            text: plan.script.clone().unwrap_or_default(),
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
    pub(super) fn load(
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
    pub(super) fn start(&mut self, start: Instant, joins_at: Instant) {
        if let Some(script) = &mut self.script {
            script.set_start(start);
            (0..self.clients).for_each(|client| script.start(client, joins_at));
        }
    }

    /// When the script has something to do.
    #[inline]
    pub(super) fn next_due(&self) -> Instant {
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
    pub(super) fn with_template<R>(
        &self,
        question: u32,
        each: impl FnOnce(Template<'_>) -> R,
    ) -> R {
        let script = self.script.as_ref();
        let script = script.expect("a query was asked by the script that was loaded");
        each(script.messages().get(question))
    }

    fn wake_at(&mut self, client: u32, until: Instant) {
        let place = client as usize;
        self.wanted[place] = until;
        if until < self.armed[place] {
            self.armed[place] = until;
            self.sleepers.push(Reverse((until, client)));
        }
    }

    /// Tells the script of the clients whose sleep is over at `now`.
    fn wake(&mut self, now: Instant) {
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

    fn tell(&mut self, role: Role, index: u32, query: &Query, told: Told<'_>, at: Instant) {
        let Some(script) = &mut self.script else {
            return;
        };
        if role == Role::Fallback {
            let was_answered = matches!(told, Told::Response(_));
            return script.end_again(query.question.template, was_answered);
        }
        let after_ns = at.nanos_since(query.scheduled_at);
        match told {
            Told::Response(message) => {
                let facts = ResponseFacts::read(message).unwrap_or_default();
                script.respond(index, query.question.template, &facts, after_ns, at);
            }
            Told::End(end) => script.end(index, query.question.template, end, after_ns, at),
        }
    }

    /// What the scripts of this worker did.
    pub(super) fn record(&self) -> Option<ScriptRecord> {
        let script = self.script.as_ref()?;
        Some(ScriptRecord {
            finished: self.finished,
            failures: script.failures(),
            metrics: script.metrics(),
        })
    }
}

impl Offer {
    /// Tells the script how a query of client `index` has ended.
    #[inline]
    pub(super) fn tell(
        &mut self,
        (role, index): (Role, u32),
        query: &Query,
        told: Told<'_>,
        at: Instant,
    ) {
        if let Offer::Scripted(scripted) = self {
            scripted.tell(role, index, query, told, at);
        }
    }

    /// The question of `query` is asked once more, over TCP.
    pub(super) fn ask_again(&mut self, query: &Query) {
        if let Offer::Scripted(scripted) = self
            && let Some(script) = &mut scripted.script
        {
            script.ask_again(query.question.template);
        }
    }

    /// True if so much has happened that the script is to go on.
    #[inline]
    pub(super) fn is_script_due(&self) -> bool {
        matches!(self, Offer::Scripted(scripted) if scripted.events() >= EVENTS_DUE)
    }
}

impl Worker {
    /// Tells the script and the observer, if there are any, how a query of client `index` has
    /// ended.
    #[inline]
    pub(super) fn tell(
        &mut self,
        (role, index): (Role, u32),
        query: &Query,
        told: Told<'_>,
        at: Instant,
    ) {
        if let Some(observer) = &self.observer
            && role == Role::Primary
        {
            observer.ended(query, &told, at);
        }
        self.offer.tell((role, index), query, told, at);
    }

    /// Lets the clients go on to which something has happened, and does what they say.
    pub(super) fn run_script(&mut self, driver: &mut impl Driver, now: Instant) {
        if self.phase != Phase::Offering || now < self.joins_at || now >= self.offer_end() {
            return;
        }
        for _ in 0..BATCHES_MAX {
            let Offer::Scripted(scripted) = &mut self.offer else {
                return;
            };
            scripted.wake(now);
            let Some(script) = &mut scripted.script else {
                return;
            };
            let mut actions = std::mem::take(&mut scripted.actions);
            let has_run = script.step(&mut actions);
            let is_over = script.running() == 0;
            for action in actions.drain(..) {
                self.act(driver, action, now);
            }
            if let Offer::Scripted(scripted) = &mut self.offer {
                scripted.actions = actions;
            }
            // Clients that were stopped because the run is over have not run out.
            if is_over && !self.control.is_stopped() {
                // As with a number of queries, of which the last has been asked.
                self.questions.left = 0;
            }
            if !has_run || self.questions.left == 0 {
                return;
            }
        }
    }

    fn act(&mut self, driver: &mut impl Driver, action: Action, now: Instant) {
        match action {
            Action::Query {
                client,
                question,
                at,
            } => self.ask(client, question, at),
            Action::Close { client } => self.close_for_script(driver, client, now),
            Action::Sleep { client, until } => {
                if let Offer::Scripted(scripted) = &mut self.offer {
                    scripted.wake_at(client, until);
                }
            }
            Action::Finished { .. } => {
                if let Offer::Scripted(scripted) = &mut self.offer {
                    scripted.finished += 1;
                }
            }
            Action::Failed { .. } => {}
        }
    }

    fn ask(&mut self, index: u32, question: u32, scheduled_at: Instant) {
        if self.questions.left == 0 {
            return;
        }
        let is_measured = self.tally.is_measured(scheduled_at);
        self.questions.left -= u64::from(is_measured);
        self.tally.due_at(scheduled_at);
        self.tally.of_query(scheduled_at).counts.offered += 1;
        let client = &mut self.clients[index as usize];
        let question = Question::plain(question);
        let is_alone = client.open_queries() == 0;
        let is_submitted = client.pending.submit(scheduled_at, question);
        if is_measured {
            let first = is_alone.then(|| client.pending.newest());
            self.statistics.count_queries(index, 1, first, scheduled_at);
        }
        if is_submitted {
            if !client.dirty {
                client.dirty = true;
                self.dirty.push(index);
            }
            return;
        }
        let counts = &mut self.tally.of_lost(scheduled_at, 1).counts;
        counts.not_sent.no_free_id += 1;
        if let Offer::Scripted(scripted) = &mut self.offer
            && let Some(script) = &mut scripted.script
        {
            script.end(index, question.template, End::NotSent, 0, scheduled_at);
        }
    }

    /// Closes a client's connection once what was asked before has its responses.
    fn close_for_script(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        let is_open = matches!(
            &self.clients[index as usize].link,
            Link::Connected(connection) if connection.is_open()
        );
        if !is_open {
            return;
        }
        self.send_waiting(driver, index);
        self.retire(index, Reason::Done);
        self.close_if_used_up(driver, index, now);
    }
}

/// Appends the message of a query, of the run's questions or of a script.
#[inline(always)]
pub(super) fn write_query(
    (plan, offer): (&Plan, &Offer),
    asked: Question,
    id: u16,
    message: &mut Vec<u8>,
) {
    match offer {
        Offer::Scripted(scripted) => scripted.with_template(asked.template, |template| {
            let start = message.len();
            message.extend_from_slice(template.message);
            message[start..start + 2].copy_from_slice(&id.to_be_bytes());
        }),
        _ => plan.write_query(asked, id, message),
    }
}

/// As [`write_query`], with the length before it that streams need (RFC 1035, section 4.2.2).
#[inline(always)]
pub(super) fn write_framed_query(
    (plan, offer): (&Plan, &Offer),
    asked: Question,
    id: u16,
    stream: &mut Vec<u8>,
) {
    match offer {
        Offer::Scripted(scripted) => scripted.with_template(asked.template, |template| {
            let message = stream.len() + framing::PREFIX_OCTETS;
            framing::write_message(template.message, stream);
            stream[message..message + 2].copy_from_slice(&id.to_be_bytes());
        }),
        _ => plan.write_framed_query(asked, id, stream),
    }
}

/// True if `response` carries the question of a query; the content of `scratch` is lost.
#[inline]
pub(super) fn is_answered_by(
    (plan, offer): (&Plan, &Offer),
    asked: Question,
    response: &[u8],
    scratch: &mut Vec<u8>,
) -> bool {
    match offer {
        Offer::Scripted(scripted) => scripted.with_template(asked.template, |template| {
            question_matches(template.message, template.question_octets, response)
        }),
        _ => plan.is_answered_by(asked, response, scratch),
    }
}
