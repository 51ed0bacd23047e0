//! Counters of a closed Internet's servers: root, top-level domain and zone, or one resolver.

use serde::{Deserialize, Serialize};

/// All of them, from the root down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Internet {
    /// One for each zone.
    pub servers: Vec<ZoneServer>,
}

/// The server of one zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneServer {
    /// `root`, `tld` or `zone`; `external` has an answer for every name.
    pub name: String,
    /// What it counted.
    #[serde(flatten)]
    pub counts: ZoneCounts,
}

/// What one of them counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneCounts {
    /// Queries that it received, over UDP and TCP.
    pub queries: u64,
    /// Responses that it sent.
    pub responses: u64,
    /// Responses that it lost on purpose.
    pub lost: u64,
}

impl Internet {
    /// What was counted after `before`.
    pub fn since(&self, before: &Internet) -> Internet {
        self.with(before, u64::saturating_sub)
    }

    /// Adds what the same servers counted at another time.
    pub fn add(&mut self, other: &Internet) {
        match self.servers.is_empty() {
            true => self.clone_from(other),
            false => *self = self.with(other, |a, b| a + b),
        }
    }

    fn with(&self, other: &Internet, joined: fn(u64, u64) -> u64) -> Internet {
        let of_each = |server: &ZoneServer| {
            let mut others = other.servers.iter();
            let other = others.find(|it| it.name == server.name);
            let other = other.map(|it| it.counts).unwrap_or_default();
            let ZoneCounts {
                queries,
                responses,
                lost,
            } = server.counts;
            ZoneServer {
                name: server.name.clone(),
                counts: ZoneCounts {
                    queries: joined(queries, other.queries),
                    responses: joined(responses, other.responses),
                    lost: joined(lost, other.lost),
                },
            }
        };
        Internet {
            servers: self.servers.iter().map(of_each).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn internet(queries: u64, lost: u64) -> Internet {
        let counts = ZoneCounts {
            queries,
            responses: queries - lost,
            lost,
        };
        let name = "root".to_owned();
        Internet {
            servers: vec![ZoneServer { name, counts }],
        }
    }

    #[test]
    fn counts_are_subtracted_and_added_server_by_server() {
        assert_eq!(internet(9, 2).since(&internet(4, 1)), internet(5, 1));
        let mut sum = Internet::default();
        sum.add(&internet(4, 1));
        sum.add(&internet(5, 1));
        assert_eq!(sum, internet(9, 2));
    }
}
