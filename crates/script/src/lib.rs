//! The behaviour of simulated clients, written in Lua (LuaJIT, by way of `mlua`).
//!
//! A script defines `function client(c)`, which runs once for each client, as a coroutine. It waits
//! by calling methods of `c`; all clients of a worker take turns in one Lua state.
//! `docs/scripting.md` describes what scripts see.
//!
//! Opens no socket and reads no clock. Events go in with their instants: [`Script::start`],
//! [`Script::wake`], [`Script::respond`], [`Script::end`]. [`Script::step`] runs the clients
//! concerned, in batches, and returns the [`Action`]s that they request. The messages of their
//! queries are in [`Script::messages`].
//!
//! | module | contents |
//! |---|---|
//! | `script` | one script for the clients of one worker |
//! | [`messages`] | what it asks, rendered; bounded, however many names it makes up |
//! | `chains` | has the results of `..` counted |
//! | `pattern` | Lua's patterns with a bound on their work |
//! | `sandbox` | what a script may see and how much it may take |
//! | [`rehearsal`] | a script tried out on invented responses |
//! | `prelude.lua` | the scheduler of the coroutines, and the methods of `c` |

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")
)]

mod chains;
pub mod messages;
mod pattern;
pub mod rehearsal;
mod sandbox;
mod script;

pub use messages::Messages;
pub use script::{Action, End, Limits, Script, ScriptError, Settings};
