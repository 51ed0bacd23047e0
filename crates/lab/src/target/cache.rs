//! The state of a resolver's cache before a run.

use anyhow::Context;

use super::RunningServer;
use super::cell::{CACHE, Cell};

/// The required state of a cache before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Unchanged.
    AsItIs,
    /// Empty.
    Cold,
    /// Holds every name of the data.
    Warm,
}

impl Cell {
    /// The required state of its cache before each run.
    pub fn cache(&self) -> Cache {
        match self.text(CACHE) {
            "cold" => Cache::Cold,
            "warm" => Cache::Warm,
            _ => Cache::AsItIs,
        }
    }

    /// Refuses a state of the cache that the product does not support.
    pub(super) fn check_cache(&self) -> anyhow::Result<()> {
        let resolves =
            !self.text("internet").is_empty() || !self.product.servers_behind().is_empty();
        anyhow::ensure!(
            resolves || self.cache() == Cache::AsItIs,
            "{}, cache: it serves the zone itself, and has nothing of it in a cache\nhint: set \
             internet too, as in internet=0ms/50ms/10ms",
            self.product.title
        );
        Ok(())
    }

    /// Empties the cache of a server started from this cell.
    ///
    /// # Errors
    /// It has no cache, or does not confirm that it is empty.
    pub fn flush(&self, server: &RunningServer) -> anyhow::Result<()> {
        let title = self.product.title;
        let control = self.product.cache_control();
        let control =
            control.with_context(|| format!("{title} has no cache that can be emptied"))?;
        (control.flush)(server).with_context(|| format!("cannot empty the cache of {title}"))
    }

    /// Removes names from the cache, including cached errors.
    ///
    /// # Errors
    /// The server does not confirm it.
    pub fn forget(&self, server: &RunningServer, names: &[&str]) -> anyhow::Result<()> {
        let title = self.product.title;
        let forget = self.product.cache_control().and_then(|it| it.forget);
        forget.map_or(Ok(()), |forget| {
            forget(server, names)
                .with_context(|| format!("cannot remove names from the cache of {title}"))
        })
    }
}
