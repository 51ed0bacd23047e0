//! The Lua state of a worker: what it offers to the prelude, and what it limits.
//!
//! The libraries for files, processes, packages and debugging are never opened. LuaJIT's compiler
//! is off: compiled code checks no hooks, so a compiled loop could not be stopped. The interpreter
//! counts instructions, [`INSTRUCTIONS_PER_LOOK`] at a time. A C function is one instruction, and
//! so is `..`; the prelude counts the work of those that may take long: patterns with backtracking,
//! long strings and large sorts. No string of a script is longer than [`STRING_OCTETS_MAX`], which
//! bounds the others.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use load::QuestionSet;
use measure::script::{Failures, Metrics};
use mlua::debug::Debug;
use mlua::{HookTriggers, Lua, LuaOptions, StdLib, Table, Value, Variadic, VmState};
use proto::{name, rr};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::messages::Messages;
use crate::pattern::{Capture, Fault, Search};
use crate::script::{Limits, Settings};

/// Instructions between two calls of the hook.
const INSTRUCTIONS_PER_LOOK: u32 = 50_000;
/// Lines of `print` that are kept.
const PRINTED_MAX: usize = 1_000;
/// Distinct names of metrics.
const METRICS_MAX: u32 = 128;
/// Most queries that a client has sent and not waited for.
const SENDS_MAX: u32 = 1_000;
/// Names in one generation of those that are kept rendered.
const NAMES_PER_GENERATION: u32 = 4_096;
/// Most bytes of a script's string: sixteen times the longest DNS message, and short enough for
/// operators such as `<`, which read all of it in one instruction.
const STRING_OCTETS_MAX: u32 = 1 << 20;
/// Moduli of the generator in the prelude, less one.
const SEEDS_MAX: [u64; 2] = [4_294_967_086, 4_294_944_442];

/// State that callbacks from Lua change.
pub(crate) struct Shared {
    pub(crate) messages: Messages,
    pub(crate) failures: Failures,
    pub(crate) metrics: Metrics,
    /// Lines printed, with the number of the client, from 0, if a client printed it.
    pub(crate) printed: Vec<(Option<u32>, String)>,
    /// Lines beyond those that are kept.
    pub(crate) not_printed: u64,
    /// Why the current turn was stopped.
    stopped: Option<String>,
    /// The turn whose instructions were counted last, and how many it has had.
    counted: (f64, u64),
    /// True once the run is over: a turn is then cut short.
    is_over: Arc<AtomicBool>,
    file_name: String,
    limits: Limits,
}

/// Why a turn is stopped.
enum Stop {
    /// It has used up its instructions.
    Exhausted,
    /// The run is over.
    Over,
}

impl Shared {
    /// Counts instructions of a turn.
    fn count(&mut self, turn: f64, instructions: u64) -> Option<Stop> {
        if self.counted.0 != turn {
            self.counted = (turn, 0);
        }
        self.counted.1 = self.counted.1.saturating_add(instructions);
        if self.counted.1 > self.limits.instructions {
            return Some(Stop::Exhausted);
        }
        self.is_over.load(Ordering::Relaxed).then_some(Stop::Over)
    }

    /// Instructions that a turn has left.
    fn left(&self, turn: f64) -> u64 {
        let used = if self.counted.0 == turn {
            self.counted.1
        } else {
            0
        };
        self.limits.instructions.saturating_sub(used)
    }

    /// Stops the current turn; returns the reason, with the line of the script.
    fn stop(&mut self, lua: &Lua, stop: &Stop) -> String {
        let what = match stop {
            Stop::Over => "stopped: the run is over".to_owned(),
            Stop::Exhausted => format!(
                "stopped after {} instructions without waiting for anything; does a loop lack a \
                 c:sleep()?",
                self.limits.instructions
            ),
        };
        let message = at_line(lua, &self.file_name, &what);
        self.stopped.get_or_insert_with(|| message.clone());
        message
    }

    /// A message with its cure, if it is about memory.
    fn with_cure(&self, text: String) -> String {
        let is_memory = text.ends_with("not enough memory") || text == "error in error handling";
        if !is_memory {
            return text;
        }
        let mebibytes = self.limits.memory_bytes >> 20;
        let file_name = &self.file_name;
        format!("{file_name}: not enough memory: the scripts of one worker have {mebibytes} MiB")
    }
}

/// Functions of the prelude, and what they share with us.
pub(crate) struct Sandbox {
    pub(crate) lua: Lua,
    pub(crate) environment: Table,
    pub(crate) limits: Table,
    pub(crate) begin: mlua::Function,
    pub(crate) step: mlua::Function,
    pub(crate) returned: mlua::Function,
    pub(crate) metrics: mlua::Function,
    pub(crate) shared: Rc<RefCell<Shared>>,
}

impl Sandbox {
    pub(crate) fn new(file_name: &str, settings: Settings) -> mlua::Result<Sandbox> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::BIT;
        let options = LuaOptions::new().catch_rust_panics(true);
        let lua = Lua::new_with(libraries, options)?;
        lua.set_memory_limit(settings.limits.memory_bytes)?;
        let shared = Rc::new(RefCell::new(Shared {
            messages: Messages::new(settings.questions.clone(), settings.defaults.clone()),
            failures: Failures::default(),
            metrics: Metrics::default(),
            printed: Vec::new(),
            not_printed: 0,
            stopped: None,
            counted: (-1.0, 0),
            is_over: Arc::clone(&settings.is_over),
            file_name: file_name.to_owned(),
            limits: settings.limits,
        }));
        let host = host(&lua, &shared, &settings)?;
        watch(&lua, &shared, host.get("watch")?)?;
        counted_functions(&lua, &shared, &host)?;
        let limits = limits(&lua, &settings)?;
        let prelude = lua.load(include_str!("prelude.lua")).set_name("=prelude");
        let (environment, begin, step, returned, metrics) = prelude.call((host, limits.clone()))?;
        Ok(Sandbox {
            lua,
            environment,
            limits,
            begin,
            step,
            returned,
            metrics,
            shared,
        })
    }
}

/// Text of a Lua error in messages; our own errors have their line already.
pub(crate) fn message_of(error: &mlua::Error) -> String {
    match error {
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        mlua::Error::RuntimeError(message) | mlua::Error::MemoryError(message) => message.clone(),
        mlua::Error::CallbackError { cause, .. } => message_of(cause),
        other => other.to_string(),
    }
}

/// Constants for the prelude.
fn limits(lua: &Lua, settings: &Settings) -> mlua::Result<Table> {
    let limits = lua.create_table()?;
    limits.set("questions", settings.questions.len())?;
    limits.set("names", NAMES_PER_GENERATION)?;
    limits.set("sends", SENDS_MAX)?;
    limits.set("metrics", METRICS_MAX)?;
    limits.set("string_octets", STRING_OCTETS_MAX)?;
    limits.set("first_client", u64::from(settings.first_client) + 1)?;
    limits.set("pause", pause(settings.clients))?;
    limits.set("group", settings.group.as_str())?;
    limits.set("start", 0)?;
    Ok(limits)
}

/// How far the heap grows between two cycles of the collector, in per cent: a client takes about 2
/// KiB, so few clients leave more memory for garbage.
fn pause(clients: u32) -> u32 {
    (3_200_000 / clients.max(1)).clamp(200, 1_000)
}

fn host(lua: &Lua, shared: &Rc<RefCell<Shared>>, settings: &Settings) -> mlua::Result<Table> {
    let host = lua.create_table()?;
    host.set("watch", lua.create_table()?)?;
    host.set("rcodes", rcodes(lua)?)?;
    let (seed, first_client) = (settings.seed, settings.first_client);
    let seeds = move |_: &Lua, client: u32| Ok(Variadic::from(seeds(seed, first_client, client)));
    host.set("seeds", lua.create_function(seeds)?)?;
    let questions = Arc::clone(&settings.questions);
    let question = move |_: &Lua, number: f64| Ok(question(&questions, number).unzip());
    host.set("question", lua.create_function(question)?)?;
    name_functions(lua, shared, &host)?;
    report_functions(lua, shared, &host)?;
    Ok(host)
}

fn rcodes(lua: &Lua) -> mlua::Result<Table> {
    let known =
        (0..=4_095_u16).filter(|rcode| rr::rcode_from_text(&rr::rcode_to_text(*rcode)).is_some());
    lua.create_table_from(known.map(|rcode| (rcode, rr::rcode_to_text(rcode))))
}

/// Six seeds of a client's random number generator; `client` is 0 for code that runs before
/// clients.
fn seeds(seed: u64, first_client: u32, client: u32) -> Vec<f64> {
    let stream = match client {
        0 => u64::MAX,
        client => u64::from(first_client) + u64::from(client) - 1,
    };
    let mixed = seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(mixed);
    let mut draw = |place: usize| 1 + generator.next_u64() % SEEDS_MAX[place / 3];
    (0..6).map(|place| draw(place) as f64).collect()
}

fn name_functions(lua: &Lua, shared: &Rc<RefCell<Shared>>, host: &Table) -> mlua::Result<()> {
    let mine = Rc::clone(shared);
    let template = move |lua: &Lua, (name, kind): (mlua::LuaString, mlua::LuaString)| {
        let (name, kind) = (name.to_string_lossy(), kind.to_string_lossy());
        match mine.borrow_mut().messages.make(&name, &kind) {
            Ok(template) => Ok((Value::Number(template.into()), Value::Nil)),
            Err(what) => Ok((Value::Nil, Value::String(lua.create_string(what)?))),
        }
    };
    host.set("template", lua.create_function(template)?)?;
    let mine = Rc::clone(shared);
    let keep = move |_: &Lua, template: u32| {
        mine.borrow_mut().messages.keep(template);
        Ok(())
    };
    host.set("keep", lua.create_function(keep)?)?;
    let mine = Rc::clone(shared);
    let age = move |_: &Lua, ()| {
        mine.borrow_mut().messages.age();
        Ok(())
    };
    host.set("age", lua.create_function(age)?)
}

fn report_functions(lua: &Lua, shared: &Rc<RefCell<Shared>>, host: &Table) -> mlua::Result<()> {
    let mine = Rc::clone(shared);
    let place = move |lua: &Lua, failure: Value| Ok(placed(lua, &mine.borrow(), &failure));
    host.set("place", lua.create_function(place)?)?;
    let mine = Rc::clone(shared);
    let failed = move |_: &Lua, failure: Value| {
        let shared = &mut *mine.borrow_mut();
        let stopped = shared.stopped.take();
        if stopped.is_some() && shared.is_over.load(Ordering::Relaxed) {
            // Being stopped at the end of the run is not an error.
            return Ok(());
        }
        let message = match stopped {
            Some(message) => message,
            None => shared.with_cure(text_of(&failure)),
        };
        shared.failures.add(&message, 1);
        Ok(())
    };
    host.set("failed", lua.create_function(failed)?)?;
    let mine = Rc::clone(shared);
    let observe = move |_: &Lua, (name, values): (mlua::LuaString, Variadic<f64>)| {
        let metrics = &mut mine.borrow_mut().metrics;
        metrics.observe(&name.to_string_lossy(), &values);
        Ok(())
    };
    host.set("observe", lua.create_function(observe)?)?;
    let mine = Rc::clone(shared);
    let print = move |_: &Lua, (client, line): (u32, mlua::LuaString)| {
        let shared = &mut *mine.borrow_mut();
        if shared.printed.len() < PRINTED_MAX {
            let line = (client.checked_sub(1), line.to_string_lossy());
            shared.printed.push(line);
        } else {
            shared.not_printed += 1;
        }
        Ok(())
    };
    host.set("print", lua.create_function(print)?)
}

/// Stops a turn that takes too many instructions. Counted, not timed, so that a script behaves
/// alike on every host and in the simulator.
fn watch(lua: &Lua, shared: &Rc<RefCell<Shared>>, watch: Table) -> mlua::Result<()> {
    let shared = Rc::clone(shared);
    let triggers = HookTriggers::new().every_nth_instruction(INSTRUCTIONS_PER_LOOK);
    lua.set_global_hook(triggers, move |lua: &Lua, _: &Debug| {
        let turn: f64 = watch.raw_get(1)?;
        let mut shared = shared.borrow_mut();
        let Some(stop) = shared.count(turn, u64::from(INSTRUCTIONS_PER_LOOK)) else {
            return Ok(VmState::Continue);
        };
        let message = shared.stop(lua, &stop);
        watch.raw_set("stopped", true)?;
        Err(mlua::Error::RuntimeError(message))
    })
}

/// The values by which a callback makes the prelude raise an error.
fn raise(lua: &Lua, message: &str) -> mlua::Result<Variadic<Value>> {
    let message = Value::String(lua.create_string(message)?);
    Ok(Variadic::from(vec![Value::Boolean(false), message]))
}

/// Functions whose work is counted as instructions.
fn counted_functions(lua: &Lua, shared: &Rc<RefCell<Shared>>, host: &Table) -> mlua::Result<()> {
    let watch: Table = host.get("watch")?;
    let (mine, own_watch) = (Rc::clone(shared), watch.clone());
    let count = move |lua: &Lua, instructions: f64| {
        let turn: f64 = own_watch.raw_get(1)?;
        let mut shared = mine.borrow_mut();
        let Some(stop) = shared.count(turn, instructions as u64) else {
            return Ok(Variadic::new());
        };
        own_watch.raw_set("stopped", true)?;
        raise(lua, &shared.stop(lua, &stop))
    };
    host.set("count", lua.create_function(count)?)?;
    let mine = Rc::clone(shared);
    type Asked = (mlua::LuaString, mlua::LuaString, usize, bool);
    let search = move |lua: &Lua, (subject, pattern, from, caret_is_plain): Asked| {
        let turn: f64 = watch.raw_get(1)?;
        let mut shared = mine.borrow_mut();
        let before = shared.left(turn);
        let mut steps = before;
        let search = Search {
            subject: &subject.as_bytes(),
            pattern: &pattern.as_bytes(),
            from: from.saturating_sub(1).min(subject.as_bytes().len()),
            caret_is_plain,
        };
        let found = search.run(&mut steps);
        let used = match found {
            // One more than there were.
            Err(Fault::Exhausted) => before + 1,
            _ => before - steps,
        };
        if let Some(stop) = shared.count(turn, used) {
            watch.raw_set("stopped", true)?;
            return raise(lua, &shared.stop(lua, &stop));
        }
        match found {
            Ok(captures) => Ok(captures.into_iter().flat_map(numbers).collect()),
            Err(Fault::Malformed(what)) => raise(lua, what),
            Err(Fault::Exhausted) => Ok(Variadic::new()),
        }
    };
    host.set("search", lua.create_function(search)?)
}

/// First and last octet of a capture, from 1; for a position capture the position and -1.
fn numbers(capture: Capture) -> [Value; 2] {
    let (first, last) = match capture {
        Capture::Part(start, end) => (start as f64 + 1.0, end as f64),
        Capture::Place(at) | Capture::Open(at) => (at as f64 + 1.0, -1.0),
    };
    [Value::Number(first), Value::Number(last)]
}

/// The message of a failure with the line of the script at which it came up.
fn placed(lua: &Lua, shared: &Shared, failure: &Value) -> String {
    if let Some(message) = &shared.stopped {
        return message.clone();
    }
    let text = text_of(failure);
    let prefix = format!("{}:", shared.file_name);
    if text.starts_with(&prefix) {
        return text;
    }
    // Remove positions within the prelude: they mean nothing to users.
    let text = match text
        .strip_prefix("prelude:")
        .and_then(|rest| rest.split_once(": "))
    {
        Some((_, what)) => what.to_owned(),
        None => text,
    };
    at_line(lua, &shared.file_name, &text)
}

/// `what`, prefixed with the current line of the script.
fn at_line(lua: &Lua, file_name: &str, what: &str) -> String {
    for level in 0..64 {
        let line = lua.inspect_stack(level, |debug| {
            let source = debug.source();
            let is_script = source.short_src.as_deref() == Some(file_name);
            debug.current_line().filter(|_| is_script)
        });
        match line {
            None => break,
            Some(Some(line)) => return format!("{file_name}:{line}: {what}"),
            Some(None) => {}
        }
    }
    format!("{file_name}: {what}")
}

fn text_of(failure: &Value) -> String {
    match failure {
        Value::String(text) => text.to_string_lossy(),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Error(error) => message_of(error),
        other => format!("an error that is a {}, not a text", other.type_name()),
    }
}

/// Name and type of the question with this number, from 1.
fn question(questions: &QuestionSet, number: f64) -> Option<(String, String)> {
    // Saturates; only whole numbers survive the conversion unchanged.
    let index = (number as usize).checked_sub(1)?;
    if index >= questions.len() || number.fract() != 0.0 {
        return None;
    }
    let template = questions.get(index);
    let question = &template.message[12..12 + template.question_octets];
    let octets = name::wire_length(question)?;
    let qtype = question.get(octets..octets + 2)?;
    let qtype = u16::from_be_bytes([qtype[0], qtype[1]]);
    let mut name = name::to_text(&question[..octets])?;
    if name.len() > 1 {
        name.pop();
    }
    Some((name, rr::type_to_text(qtype)))
}
