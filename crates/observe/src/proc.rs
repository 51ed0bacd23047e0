//! This host's /proc and /sys: one program, its control group, or all of the host.
//!
//! The parsers are pure. [`Root`] is this host, or a folder that stands for another one.

use std::fs;
use std::path::PathBuf;

mod counters;
mod diagnostics;
mod find;
mod group;
mod host;
mod inside;
mod name;
mod program;
mod sockets;
#[cfg(test)]
mod tests;

pub(crate) use find::{Target, is_of_this_host};
pub use group::{Group, Throttled};
pub(crate) use host::HostSource;
pub use host::hexadecimal_column;
pub(crate) use inside::{FoundSocket, Inside, NotOpened};
pub(crate) use program::{GroupSource, Program};
use sockets::Listening;

/// A tick of the times in /proc: a hundredth of a second, whatever the kernel's own.
const TICKS_PER_SECOND: f64 = 100.0;

/// Octets of a file in /proc that are read, at most: of the sockets of a busy host there are more,
/// but those that listen come first.
const FILE_OCTETS_MAX: u64 = 4 << 20;

/// Entries of a folder that are counted one by one, at most: each takes a microsecond.
const COUNTED_MAX: f64 = 4_096.0;

/// Where `proc` and `sys` are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// This host.
    pub fn this() -> Root {
        Root(PathBuf::from("/"))
    }

    /// A folder that stands for another one.
    pub fn at(path: impl Into<PathBuf>) -> Root {
        Root(path.into())
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    /// The file's text; none if it cannot be read.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let octets = crate::files::read_start(&self.path(path), FILE_OCTETS_MAX).ok()?;
        Some(String::from_utf8_lossy(&octets).into_owned())
    }

    /// A file that holds one number.
    pub(crate) fn number(&self, path: &str) -> Option<f64> {
        self.text(path)?.trim().parse().ok()
    }

    /// Names in a folder that are numbers.
    pub(crate) fn numbers(&self, path: &str) -> Vec<u32> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut numbers: Vec<u32> = names.filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }

    /// How many entries a folder of /proc has: since Linux 6.2 that is its size. Before, they have
    /// to be counted; there are `entries_max` at most.
    pub(crate) fn count(&self, path: &str, entries_max: f64) -> Option<f64> {
        let path = self.path(path);
        let size = fs::metadata(&path).ok()?.len() as f64;
        match size > 0.0 {
            true => Some(size),
            false if entries_max > COUNTED_MAX => None,
            false => Some(fs::read_dir(path).ok()?.count() as f64),
        }
    }

    /// Where a link leads, as text.
    pub(crate) fn link(&self, path: &str) -> Option<String> {
        fs::read_link(self.path(path))
            .ok()?
            .to_str()
            .map(str::to_owned)
    }
}

/// The number in the row of `name`, in texts of `name: value` or `name value` a line.
pub(crate) fn row(text: &str, name: &str) -> Option<f64> {
    let of_name = |line: &str| {
        let rest = line.strip_prefix(name)?;
        let rest = rest
            .strip_prefix(':')
            .or_else(|| rest.strip_prefix([' ', '\t']))?;
        rest.split_ascii_whitespace().next()?.parse().ok()
    };
    text.lines().find_map(of_name)
}

/// /proc/PID/stat, as far as it is looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stat {
    pub(crate) name: String,
    pub(crate) user_s: f64,
    pub(crate) system_s: f64,
    /// A signal has stopped it, or a debugger has.
    pub(crate) is_stopped: bool,
    /// Pages that it had to wait for until they were read from a disk.
    pub(crate) major_faults: u64,
    /// Ticks since boot: with the number, it tells a process from all others.
    pub(crate) started: u64,
}

impl Stat {
    /// Its name is in parentheses and may hold anything, parentheses too.
    pub(crate) fn parse(text: &str) -> Option<Stat> {
        let (before, after) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let fields: Vec<&str> = after.split_ascii_whitespace().collect();
        // The first field behind the name is the third of proc(5).
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Stat {
            name: name.to_owned(),
            user_s: field(14)? as f64 / TICKS_PER_SECOND,
            system_s: field(15)? as f64 / TICKS_PER_SECOND,
            is_stopped: matches!(fields.first(), Some(&("T" | "t"))),
            major_faults: field(12)?,
            started: field(22)?,
        })
    }
}
