//! Whatever can be asked repeatedly.

use measure::observation::ServerFacts;

use crate::gap::Gap;
use crate::reading::Reading;
use crate::stream::Allowance;

/// What one scrape gave, and how many octets that took.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) reading: Reading,
    pub(crate) octets: u64,
}

/// Something that is asked on a thread of its own.
pub(crate) trait Source: Send {
    /// Asks once, within what is allowed.
    fn read(&mut self, allowance: &Allowance) -> Result<Answer, Gap>;

    /// What is known of it beside its readings. Asked once, before the first of them.
    fn facts(&mut self) -> ServerFacts {
        ServerFacts::default()
    }

    /// What could not be known of it, and why. Asked once, after its facts.
    fn gaps(&mut self) -> Vec<String> {
        Vec::new()
    }
}
