//! One script, for the clients of one worker.

use std::cell::Ref;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use load::QuestionSet;
use measure::script::{Failures, Metrics};
use mlua::Variadic;
use mlua::chunk::ChunkMode;
use proto::Instant;
use proto::query::QueryOptions;
use proto::response::ResponseFacts;

use crate::chains;
use crate::messages::Messages;
use crate::sandbox::{Sandbox, message_of};

/// Events that one call of Lua handles at most.
const BATCH_MAX: u32 = 256;
/// The kinds of events, as in the prelude.
const START: u64 = 0;
const WAKE: u64 = 1;
const TIMED_OUT: u64 = 2;
const LOST: u64 = 3;
const NOT_SENT: u64 = 4;
const RESPONSE: u64 = 16;
/// Encoding of events, as in the prelude.
const KIND_STEP: u64 = 1 << 22;
const TTL_STEP: u64 = 1 << 17;
const TRUNCATED: u64 = 1 << 16;
/// Encoding of actions, as in the prelude.
const CLIENT_STEP: u64 = 1 << 3;
const TEMPLATE_STEP: u64 = 1 << 25;
/// Most clients of one worker.
const CLIENTS_MAX: u32 = (TEMPLATE_STEP / CLIENT_STEP) as u32 - 2;

/// Limits of one worker's scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory of the Lua state, garbage included.
    pub memory_bytes: usize,
    /// Instructions of Lua's interpreter between two waits of a client, and for the file itself and
    /// `setup()` together. A turn that exceeds it is stopped.
    pub instructions: u64,
}

impl Limits {
    /// The default, and 8 KiB more for each client.
    pub fn for_clients(clients: u32) -> Self {
        let limits = Limits::default();
        Limits {
            memory_bytes: limits.memory_bytes + (clients as usize) * (8 << 10),
            ..limits
        }
    }
}

impl Default for Limits {
    /// 512 MiB; 20 million instructions, which take 50 to 500 ms.
    fn default() -> Self {
        Limits {
            memory_bytes: 512 << 20,
            instructions: 20_000_000,
        }
    }
}

/// Settings for loading a script.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Clients of this worker.
    pub clients: u32,
    /// Number of its first client among those of all workers, from 0.
    pub first_client: u32,
    /// The group of these clients; scripts see it as `c.group`.
    pub group: String,
    /// Seeds everything random; each client has its own stream.
    pub seed: u64,
    /// The questions of the run.
    pub questions: Arc<QuestionSet>,
    /// Options of queries for names of the script.
    pub defaults: QueryOptions,
    /// Its limits.
    pub limits: Limits,
    /// Set by the engine once the run is over, which stops all clients.
    pub is_over: Arc<AtomicBool>,
}

impl Default for Settings {
    /// One client, without questions.
    fn default() -> Self {
        Settings {
            clients: 1,
            first_client: 0,
            group: String::new(),
            seed: 0,
            questions: Arc::default(),
            defaults: QueryOptions::default(),
            limits: Limits::default(),
            is_over: Arc::default(),
        }
    }
}

/// Why a script cannot be used: `file.lua:3: '=' expected near 'x'`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// File, line and fault.
    pub what: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for ScriptError {}

/// How a query ended without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its timeout passed.
    TimedOut,
    /// Its connection or exchange was lost.
    Lost,
    /// It was never sent.
    NotSent,
}

/// An action that a client requests. Clients are numbered from 0 within the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a query; report its end with [`Script::respond`] or [`Script::end`].
    Query {
        /// The client.
        client: u32,
        /// Its record in [`Script::messages`].
        question: u32,
        /// When the client sent it: the instant of the event that it reacted to.
        at: Instant,
    },
    /// Wake the client with [`Script::wake`] at `until`; replaces an earlier request.
    Sleep {
        /// The client.
        client: u32,
        /// When to wake it.
        until: Instant,
    },
    /// Close the client's connection, if it has one.
    Close {
        /// The client.
        client: u32,
    },
    /// The client has returned from its function.
    Finished {
        /// Which.
        client: u32,
    },
    /// The client's script has failed; [`Script::failures`] has the error.
    Failed {
        /// Which.
        client: u32,
    },
}

/// Longest file name that Lua shows unabridged.
const FILE_NAME_OCTETS_MAX: usize = 55;

/// A file name as Lua's messages show it: the end of a long one.
fn shown(file_name: &str) -> String {
    let excess = file_name.len().saturating_sub(FILE_NAME_OCTETS_MAX);
    if excess == 0 {
        return file_name.to_owned();
    }
    let from = file_name.ceil_char_boundary(excess + 3);
    format!("...{}", &file_name[from..])
}

/// One script for the clients of one worker.
pub struct Script {
    sandbox: Sandbox,
    /// Events to be handled, a batch each.
    batches: VecDeque<Batch>,
    clients: u32,
    /// Clients that have not ended.
    running: u32,
    last_tag: u32,
    /// Lua itself failed: no client runs any more.
    is_broken: bool,
}

struct Batch {
    events: u32,
    /// Their number, then the numbers of the events.
    numbers: Vec<f64>,
}

/// State of the decoding of a script's actions.
#[derive(Default)]
struct Reader {
    /// The client whose wake-up time is the next number.
    sleeper: Option<u32>,
    /// The instant of the queries that follow.
    at: Instant,
}

impl Script {
    /// Compiles `text`, runs it and its `setup()`; `file_name` is for messages.
    ///
    /// # Errors
    /// [`ScriptError`] names the line that does not compile or fails.
    pub fn load(text: &str, file_name: &str, settings: Settings) -> Result<Script, ScriptError> {
        let clients = settings.clients;
        let file_name = &shown(file_name);
        let fault = |what: &str| ScriptError {
            what: match what.starts_with(&format!("{file_name}:")) {
                true => what.to_owned(),
                false => format!("{file_name}: {what}"),
            },
        };
        if clients > CLIENTS_MAX {
            let what = format!("one worker runs it for at most {CLIENTS_MAX} clients");
            return Err(fault(&what));
        }
        let inner = |error: mlua::Error| fault(&message_of(&error));
        let sandbox = Sandbox::new(file_name, settings).map_err(inner)?;
        let compiled = |text: &str| {
            let chunk = sandbox.lua.load(text).set_name(format!("={file_name}"));
            let chunk = chunk.set_mode(ChunkMode::Text);
            let chunk = chunk.set_environment(sandbox.environment.clone());
            chunk.into_function().map_err(inner)
        };
        // Compile the unchanged text first: for its error messages, and because only valid text can
        // be tokenised.
        compiled(text)?;
        let made = compiled(&chains::weighed(text))?;
        let failure: Option<mlua::LuaString> = sandbox.begin.call(made).map_err(inner)?;
        if let Some(failure) = failure {
            return Err(fault(&failure.to_string_lossy()));
        }
        Ok(Script {
            sandbox,
            batches: VecDeque::new(),
            clients,
            running: 0,
            last_tag: 0,
            is_broken: false,
        })
    }

    #[inline]
    fn push(&mut self, client: u32, kind: u64, at: Instant, details: &[f64]) {
        if self.is_broken {
            return;
        }
        let is_full = self.batches.back().is_none_or(|it| it.events == BATCH_MAX);
        if is_full {
            self.batches.push_back(Batch {
                events: 0,
                numbers: {
                    let mut numbers = Vec::with_capacity(1 + 5 * BATCH_MAX as usize);
                    numbers.push(0.0);
                    numbers
                },
            });
        }
        let batch = self.batches.back_mut().expect("one was pushed if none was");
        batch.events += 1;
        let client_and_kind = kind * KIND_STEP + u64::from(client) + 1;
        // All of these are far below 2^53.
        batch.numbers.push(client_and_kind as f64);
        batch.numbers.push(at.as_nanos() as f64);
        batch.numbers.extend_from_slice(details);
    }

    /// The run starts at `start`: `c:now()` counts from there.
    pub fn set_start(&mut self, start: Instant) {
        let limits = &self.sandbox.limits;
        // Cannot fail: the field exists, so no memory is allocated.
        let written = limits.raw_set("start", start.as_nanos());
        written.expect("the table of limits takes a number");
    }

    /// A client begins its function at `at`.
    ///
    /// # Panics
    /// If there is no such client.
    pub fn start(&mut self, client: u32, at: Instant) {
        assert!(client < self.clients, "clients count from 0");
        self.running += 1;
        self.push(client, START, at, &[]);
    }

    /// A client's sleep is over. `at` is the instant of [`Action::Sleep`], however late it is now.
    pub fn wake(&mut self, client: u32, at: Instant) {
        self.push(client, WAKE, at, &[]);
    }

    /// A query has been answered `latency_ns` after the client sent it.
    pub fn respond(
        &mut self,
        client: u32,
        question: u32,
        response: &ResponseFacts,
        latency_ns: u64,
        at: Instant,
    ) {
        let tag = self.end_record(question, true);
        let truncated = if response.truncated { TRUNCATED } else { 0 };
        let ttl = response.ttl_min.map_or(0, |ttl| u64::from(ttl) + 1);
        let facts = ttl * TTL_STEP + truncated + u64::from(response.answers);
        let kind = RESPONSE + u64::from(response.rcode);
        self.push(client, kind, at, &[tag, latency_ns as f64, facts as f64]);
    }

    /// A query has ended without a response, `after_ns` after the client sent it.
    pub fn end(&mut self, client: u32, question: u32, end: End, after_ns: u64, at: Instant) {
        let tag = self.end_record(question, false);
        let kind = match end {
            End::TimedOut => TIMED_OUT,
            End::Lost => LOST,
            End::NotSent => NOT_SENT,
        };
        self.push(client, kind, at, &[tag, after_ns as f64, 0.0]);
    }

    fn end_record(&mut self, question: u32, was_answered: bool) -> f64 {
        let messages = &mut self.sandbox.shared.borrow_mut().messages;
        messages.end(question, was_answered);
        f64::from(messages.tag(question))
    }

    /// Events that wait for [`Script::step`].
    pub fn events(&self) -> u32 {
        self.batches.iter().map(|batch| batch.events).sum()
    }

    /// Clients that were started and have not ended.
    pub fn running(&self) -> u32 {
        self.running
    }

    /// Passes one batch of events to the script and appends its clients' actions to `actions`, in
    /// order. False if there was no event.
    ///
    /// A call costs some hundred nanoseconds, an event and its action about as much.
    pub fn step(&mut self, actions: &mut Vec<Action>) -> bool {
        let Some(batch) = self.batches.pop_front() else {
            return false;
        };
        let mut arguments = batch.numbers;
        arguments[0] = (arguments.len() - 1) as f64;
        if let Err(error) = self.call(arguments, actions) {
            self.break_down(&error);
        }
        true
    }

    fn call(&mut self, arguments: Vec<f64>, actions: &mut Vec<Action>) -> mlua::Result<()> {
        let mut taken = 0;
        let mut reader = Reader::default();
        let mut values: Variadic<f64> = self.sandbox.step.call(Variadic::from(arguments))?;
        loop {
            let (used, list) = values
                .split_first()
                .expect("its first value is their number");
            for value in list {
                self.take(*value, &mut reader, actions);
            }
            taken += list.len();
            if taken >= *used as usize {
                break;
            }
            values = self.sandbox.returned.call(taken + 1)?;
        }
        self.sandbox.shared.borrow_mut().messages.settle();
        Ok(())
    }

    /// Decodes one number of the script's result.
    #[inline]
    fn take(&mut self, value: f64, reader: &mut Reader, actions: &mut Vec<Action>) {
        if let Some(client) = reader.sleeper.take() {
            let until = Instant::from_nanos(value as u64);
            actions.push(Action::Sleep { client, until });
            return;
        }
        if value <= 0.0 {
            reader.at = Instant::from_nanos(-value as u64);
            return;
        }
        let value = value as u64;
        let client = ((value % TEMPLATE_STEP) / CLIENT_STEP) as u32 - 1;
        actions.push(match value % CLIENT_STEP {
            0 => {
                self.last_tag += 1;
                let template = (value / TEMPLATE_STEP) as u32;
                let messages = &mut self.sandbox.shared.borrow_mut().messages;
                let question = messages.ask(template, self.last_tag);
                Action::Query {
                    client,
                    question,
                    at: reader.at,
                }
            }
            1 => {
                reader.sleeper = Some(client);
                return;
            }
            2 => Action::Close { client },
            code => {
                self.running -= 1;
                match code {
                    3 => Action::Finished { client },
                    _ => Action::Failed { client },
                }
            }
        });
    }

    /// Handles an error of Lua itself outside of script code, usually lack of memory.
    #[cold]
    fn break_down(&mut self, error: &mlua::Error) {
        let shared = &mut *self.sandbox.shared.borrow_mut();
        let message = match error {
            mlua::Error::MemoryError(_) => "not enough memory to run any client".to_owned(),
            other => message_of(other),
        };
        let clients = u64::from(self.running);
        shared.failures.add(&message, clients.max(1));
        self.is_broken = true;
        self.running = 0;
        self.batches.clear();
    }

    /// The script's messages, by the `question` of [`Action::Query`].
    #[inline]
    pub fn messages(&self) -> Ref<'_, Messages> {
        Ref::map(self.sandbox.shared.borrow(), |shared| &shared.messages)
    }

    /// A question is sent once more beside the query that the script knows of, as over TCP after a
    /// truncated response; [`Script::end_again`] ends it.
    pub fn ask_again(&mut self, question: u32) {
        self.sandbox
            .shared
            .borrow_mut()
            .messages
            .ask_again(question);
    }

    /// The query of [`Script::ask_again`] has ended.
    pub fn end_again(&mut self, question: u32, was_answered: bool) {
        let messages = &mut self.sandbox.shared.borrow_mut().messages;
        messages.end(question, was_answered);
    }

    /// Errors of clients.
    pub fn failures(&self) -> Failures {
        self.sandbox.shared.borrow().failures.clone()
    }

    /// What the script has counted and observed so far.
    pub fn metrics(&self) -> Metrics {
        let counters: mlua::Result<mlua::Table> = self.sandbox.metrics.call(());
        let mut metrics = self.sandbox.shared.borrow().metrics.clone();
        // Out of memory: earlier metrics are kept.
        for pair in counters
            .iter()
            .flat_map(|it| it.pairs::<mlua::LuaString, f64>())
        {
            let Ok((name, number)) = pair else { continue };
            metrics.counters.insert(name.to_string_lossy(), number);
        }
        metrics
    }

    /// Lines printed since the last call, with the number of the client, from 0, and the number of
    /// lines dropped.
    pub fn take_printed(&mut self) -> (Vec<(Option<u32>, String)>, u64) {
        let shared = &mut *self.sandbox.shared.borrow_mut();
        let not_printed = std::mem::take(&mut shared.not_printed);
        (std::mem::take(&mut shared.printed), not_printed)
    }

    /// Bytes that the Lua state holds.
    pub fn memory_bytes(&self) -> usize {
        self.sandbox.lua.used_memory()
    }
}
