//! Which client sends the next query of the open loop.
//!
//! In each round every client sends once. If all rounds had one order, a target or path that treats
//! every n-th query differently (RRL's slip, round-robin back ends) would always hit the same
//! clients. Therefore each round starts at another client, chosen at random up to half a round
//! further on. Over many rounds all clients are equally often at each position, and two queries of
//! a client are at least half a round apart.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::random;

/// The order in which the clients of one worker send.
#[derive(Debug)]
pub struct ClientOrder {
    clients: u32,
    /// The client that is first in this round.
    first: u32,
    current: u32,
    /// Clients of this round that have not had their turn, the current one included.
    left: u32,
    generator: Xoshiro256PlusPlus,
}

impl ClientOrder {
    /// Keeps these random numbers apart from others that are drawn with the same seed.
    const STREAM: u64 = 0x636c_6965_6e74_7321; // "clients!"

    /// The order of `clients` clients of a worker; the first round starts at client 0.
    pub fn new(clients: u32, worker: u32, seed: u64) -> Self {
        ClientOrder {
            clients,
            first: 0,
            current: 0,
            left: clients,
            generator: random::generator(seed, Self::STREAM, worker),
        }
    }

    /// The client whose turn it is; 0 if there are none.
    #[inline]
    pub fn current(&self) -> u32 {
        self.current
    }

    /// Advances to the next client.
    #[inline]
    pub fn advance(&mut self) {
        if self.left <= 1 {
            return self.start_round();
        }
        self.left -= 1;
        self.current = self.wrapped(self.current + 1);
    }

    #[cold]
    fn start_round(&mut self) {
        if self.clients < 2 {
            return;
        }
        self.left = self.clients;
        let most = u64::from(self.clients / 2);
        let shift = random::below(&mut self.generator, most + 1) as u32;
        self.first = self.wrapped(self.first + shift);
        self.current = self.first;
    }

    fn wrapped(&self, client: u32) -> u32 {
        match client < self.clients {
            true => client,
            false => client - self.clients,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(clients: u32, rounds: u32, seed: u64) -> Vec<Vec<u32>> {
        let mut order = ClientOrder::new(clients, 0, seed);
        let mut take = || {
            let client = order.current();
            order.advance();
            client
        };
        let mut round = || (0..clients).map(|_| take()).collect();
        (0..rounds).map(|_| round()).collect()
    }

    #[test]
    fn every_client_sends_once_in_each_round() {
        for clients in [1, 2, 3, 5, 6, 8, 30, 210, 1_000] {
            for mut round in rounds(clients, 40, 7) {
                round.sort_unstable();
                assert!(round.into_iter().eq(0..clients));
            }
        }
    }

    #[test]
    fn rounds_differ_and_follow_from_the_seed() {
        let first = rounds(12, 8, 1);
        assert_eq!(first, rounds(12, 8, 1));
        assert_ne!(first, rounds(12, 8, 2));
        assert!(first.windows(2).any(|it| it[0] != it[1]));
    }

    #[test]
    fn half_a_round_lies_between_two_queries_of_a_client() {
        let all: Vec<u32> = rounds(10, 500, 5).concat();
        for client in 0..10 {
            let turns = all.iter().enumerate().filter(|(_, it)| **it == client);
            let turns: Vec<usize> = turns.map(|(turn, _)| turn).collect();
            assert!(
                turns
                    .windows(2)
                    .all(|it| (5..20).contains(&(it[1] - it[0])))
            );
        }
    }

    /// A target that answers every n-th query answers each client about as often.
    #[test]
    fn no_client_is_always_at_a_position_of_one_kind() {
        for (clients, period) in [(2, 2), (10, 2), (10, 5), (12, 3), (16, 4), (100, 10)] {
            let (rounds, mut hit) = (rounds(clients, 2_000, 3), vec![0_u32; clients as usize]);
            for (position, client) in rounds.into_iter().flatten().enumerate() {
                hit[client as usize] += u32::from((position as u32).is_multiple_of(period));
            }
            let expected = 2_000 / period;
            let within = expected * 3 / 4..expected * 5 / 4;
            assert!(
                hit.iter().all(|it| within.contains(it)),
                "{clients} {period}: {hit:?}"
            );
        }
    }
}
