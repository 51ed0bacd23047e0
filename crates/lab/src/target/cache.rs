//! What is in the cache of a resolver before a run.

use anyhow::Context;

use super::RunningServer;
use super::cell::{CACHE, Cell};

/// What has to be in the cache before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Whatever is.
    AsItIs,
    /// Nothing.
    Cold,
    /// Every name of the data.
    Warm,
}

impl Cell {
    /// What has to be in its cache before each run.
    pub fn cache(&self) -> Cache {
        match self.text(CACHE) {
            "cold" => Cache::Cold,
            "warm" => Cache::Warm,
            _ => Cache::AsItIs,
        }
    }

    /// Refuses a state of the cache that it does not have.
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

    /// Empties the cache of what was started from it.
    ///
    /// # Errors
    /// It has none, or it does not say that it is empty.
    pub fn flush(&self, server: &RunningServer) -> anyhow::Result<()> {
        let title = self.product.title;
        let control = self.product.cache_control();
        let control =
            control.with_context(|| format!("{title} has no cache that can be emptied"))?;
        (control.flush)(server).with_context(|| format!("cannot empty the cache of {title}"))
    }

    /// Removes names from that cache, with the errors that the server would repeat for them.
    ///
    /// # Errors
    /// The server does not say that it has removed them.
    pub fn forget(&self, server: &RunningServer, names: &[&str]) -> anyhow::Result<()> {
        let title = self.product.title;
        let forget = self.product.cache_control().and_then(|it| it.forget);
        forget.map_or(Ok(()), |forget| {
            forget(server, names)
                .with_context(|| format!("cannot remove names from the cache of {title}"))
        })
    }
}
