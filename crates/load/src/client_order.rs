//! Which client sends the next query of the open loop.
//!
//! In each round every client sends once. If all rounds had one order, a target or a path that
//! treats every n-th query in its own way (RRL's slip, back-ends that take turns) would always
//! treat the same clients so. Therefore each round starts at a random client, and goes on by a
//! random step: over many rounds each client is as often at each position as any other.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::random;

/// Steps are at most that long, so that memory of clients is still read nearly in order.
const STEP_MAX: u64 = 8;
/// Steps that are drawn at most for a round: most numbers have no common divisor with most others.
const DRAWS_MAX: u32 = 16;

/// The order in which the clients of one worker send.
#[derive(Debug)]
pub struct ClientOrder {
    clients: u32,
    current: u32,
    step: u32,
    /// Clients of this round that have not had their turn, the current one included.
    left: u32,
    generator: Xoshiro256PlusPlus,
}

impl ClientOrder {
    /// Keeps these random numbers apart from others that are drawn with the same seed.
    const STREAM: u64 = 0x636c_6965_6e74_7321; // "clients!"

    /// The order of `clients` clients of a worker.
    pub fn new(clients: u32, worker: u32, seed: u64) -> Self {
        let mut order = ClientOrder {
            clients,
            current: 0,
            step: 1,
            left: clients,
            generator: random::generator(seed, Self::STREAM, worker),
        };
        order.start_round();
        order
    }

    /// The client whose turn it is; 0 if there are none.
    #[inline]
    pub fn current(&self) -> u32 {
        self.current
    }

    /// Goes on to the next client.
    #[inline]
    pub fn advance(&mut self) {
        if self.left <= 1 {
            return self.start_round();
        }
        self.left -= 1;
        let next = self.current + self.step;
        self.current = match next < self.clients {
            true => next,
            false => next - self.clients,
        };
    }

    #[cold]
    fn start_round(&mut self) {
        if self.clients < 2 {
            return;
        }
        let clients = u64::from(self.clients);
        self.left = self.clients;
        self.current = random::below(&mut self.generator, clients) as u32;
        let longest = STEP_MAX.min(clients - 1);
        let mut draw = || 1 + random::below(&mut self.generator, longest) as u32;
        let mut steps = (0..DRAWS_MAX).map(|_| draw());
        // Only such a step comes to every client.
        let step = steps.find(|step| is_coprime(self.clients, *step));
        self.step = step.unwrap_or(1);
    }
}

fn is_coprime(a: u32, b: u32) -> bool {
    match b {
        0 => a == 1,
        _ => is_coprime(b, a % b),
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
