//! Profiles that were read: clients can be drawn, ask again and again, and never go back in time.

use load::Profile;
use load::profile::{Population, ProfiledClients, RankNames, questions};
use proto::Instant;
use proto::query::QueryOptions;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// Clients that are drawn.
const CLIENTS: u32 = 3;

/// Draws clients, gaps and questions; false if the profile cannot be drawn from.
pub(crate) fn draw(profile: &Profile) -> bool {
    let Ok(population) = Population::new(profile) else {
        return false;
    };
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(1);
    for mut client in population.clients(CLIENTS, 1) {
        client.first_gap(&population, &mut generator);
        for _ in 0..10 {
            client.next_gap(&population, &mut generator);
        }
        let (rank, _) = population.question(&mut generator);
        assert!((1..=profile.names.distinct).contains(&rank), "rank {rank}");
    }
    if let Ok(clients) = ProfiledClients::new(population, 2.0) {
        for mut pace in clients.paces(1, CLIENTS, 0..CLIENTS) {
            let mut due = pace.first_due(&clients, None, Instant::ZERO);
            for _ in 0..10 {
                let next = pace.next_due(&clients, None, due);
                assert!(next >= due, "{due:?} {next:?}");
                due = next;
            }
        }
    }
    if let Ok(names) = RankNames::of(profile, Some("example"))
        && let Ok((set, _)) = questions(profile, &names, &QueryOptions::default())
    {
        assert!(!set.is_empty());
    }
    true
}
