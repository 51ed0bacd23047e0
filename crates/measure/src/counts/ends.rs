//! The ends of queries without a response: one list, for the accounting identity and for every
//! table and sentence that distinguishes them.

use super::Counts;

/// One way in which queries end without a response.
#[derive(Clone, Copy)]
pub struct End {
    /// The counter.
    pub counter: &'static str,
    /// In a table.
    pub name: &'static str,
    /// In a sentence, after the number.
    pub words: &'static str,
    /// How many ended so.
    pub count: fn(&Counts) -> u64,
    /// They had been handed to the network.
    pub was_sent: bool,
    /// These are known to be lost; the fate of others is unknown.
    pub is_lost: bool,
    /// Their causes are counted apart, by the rules of their transport.
    pub has_causes: bool,
}

/// All of them, those that are lost first.
pub const ENDS: [End; 5] = [
    End {
        counter: "timeouts",
        name: "timed out",
        words: "timed out",
        count: |counts| counts.timeouts,
        was_sent: true,
        is_lost: true,
        has_causes: false,
    },
    End {
        counter: "connection_losses",
        name: "connection lost",
        words: "lost with their connection",
        count: |counts| counts.connection_losses,
        was_sent: true,
        is_lost: true,
        has_causes: false,
    },
    End {
        counter: "exchange_failures",
        name: "no DNS message",
        words: "ended without a DNS message",
        count: |counts| counts.exchange_failures.total(),
        was_sent: true,
        is_lost: true,
        has_causes: true,
    },
    End {
        counter: "not_sent",
        name: "not sent",
        words: "not sent",
        count: |counts| counts.not_sent.total(),
        was_sent: false,
        is_lost: true,
        has_causes: false,
    },
    End {
        counter: "interrupted",
        name: "still open",
        words: "still open at the end",
        count: |counts| counts.interrupted,
        was_sent: true,
        is_lost: false,
        has_causes: false,
    },
];

impl Counts {
    /// Queries that got no response, whatever the cause: timed out, lost with their connection,
    /// ended by HTTP or their stream, or never sent.
    pub fn lost(&self) -> u64 {
        self.ended_so(|end| end.is_lost)
    }

    /// Queries that have come to an end, whichever it was.
    pub fn ended(&self) -> u64 {
        self.responses.saturating_add(self.ended_so(|_| true))
    }

    /// Queries that were sent and ended without a response.
    pub(super) fn sent_in_vain(&self) -> u64 {
        self.ended_so(|end| end.was_sent)
    }

    /// The ends that there were, with their numbers.
    pub fn ends(&self) -> impl Iterator<Item = (End, u64)> {
        let each = ENDS.into_iter().map(|end| (end, (end.count)(self)));
        each.filter(|(_, number)| *number > 0)
    }

    fn ended_so(&self, choice: fn(&End) -> bool) -> u64 {
        let chosen = ENDS.iter().filter(|end| choice(end));
        chosen.map(|end| (end.count)(self)).sum()
    }
}
