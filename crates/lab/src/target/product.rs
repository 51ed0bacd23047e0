//! A product: its program, its factors, and how it starts.

use std::process::{Command, Stdio};

use anyhow::Context;

use super::cell::{CacheControl, Cell, Factor, Values};
use super::operation::Means;
use super::place::Server;
use super::version::version_in;
use super::{RunningServer, Service, Zone};

/// A server program that can be put under test: a file in `products`, and a place in
/// [`ALL`](super::products::ALL).
#[derive(Debug)]
pub struct Product {
    /// The name on the command line.
    pub name: &'static str,
    /// The name as its authors write it.
    pub title: &'static str,
    /// Its settings.
    pub factors: &'static [Factor],
    /// Its program, and how its readiness is detected.
    pub(super) server: &'static Server,
    /// The argument that makes the program print its version.
    pub(super) version_flag: &'static str,
    /// How to make it reload its configuration and zone; none if it cannot.
    pub(super) reload: Option<Means>,
    /// How to make it roll over its key; none if it cannot sign.
    pub(super) key_roll: Option<Means>,
    /// True if it supports zone transfers (RFC 5936).
    pub(super) gives_zone: bool,
    /// Starts it with the settings of a cell.
    pub(super) start: fn(&Cell) -> anyhow::Result<RunningServer>,
}

impl Product {
    /// What it offers beside TCP and, HAProxy excepted, UDP.
    pub const fn services(&self) -> &'static [Service] {
        self.server.services
    }

    /// The name of its program.
    pub const fn program_name(&self) -> &'static str {
        self.server.program.name()
    }

    /// The products that it can stand in front of, the usual one first; none if it needs none.
    pub fn servers_behind(&self) -> &'static [&'static Product] {
        let servers = self.factors.iter().find_map(|factor| match factor.values {
            Values::OfBehind(servers) => Some(servers),
            _ => None,
        });
        servers.unwrap_or_default()
    }

    /// How its cache is changed, if it has one.
    pub(super) fn cache_control(&self) -> Option<CacheControl> {
        self.factors.iter().find_map(|factor| match factor.values {
            Values::Cache(control) => Some(control),
            _ => None,
        })
    }

    /// Starts it with all its services on 127.0.0.1, nothing set, and waits until it answers for
    /// the zone.
    ///
    /// # Errors
    /// As of [`Cell::start`].
    pub fn start(&'static self, zone: &Zone) -> anyhow::Result<RunningServer> {
        Cell::new(self, zone.clone()).start()
    }

    /// The version of what is installed, such as `9.18.33-1~deb12u2-Debian`.
    ///
    /// # Errors
    /// It is not installed (the message says how to get it), or does not print its version.
    pub fn version(&self) -> anyhow::Result<String> {
        let words = self.server.program.words()?;
        let (program, words) = words.split_first().context("no program")?;
        let output = Command::new(program)
            .args(words)
            .arg(self.version_flag)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run `{}`", self.server.program.name()))?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let version = version_in(&text).map(str::to_owned);
        version.with_context(|| format!("{} does not report its version: {text}", self.title))
    }
}
