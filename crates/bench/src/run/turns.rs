//! Order of turns among contestants.
//!
//! The previous run leaves its mark: warm or cold caches, a throttled processor, writes that the
//! device has not finished. A rotating order gives each contestant the same predecessor in every
//! round, and a bias that no number of rounds averages out. So each round has its own permutation,
//! dealt by the seed.

use millpond_base::Seed;

/// Returns the order of round `round`: a permutation of 0 to `contestants` − 1, all equally
/// likely.
///
/// The order depends only on the arguments, so a run can be repeated, or resumed in any round.
pub fn order(seed: Seed, round: u32, contestants: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..contestants).collect();
    let seed = seed.derive(&format!("order of round {round}"));
    fastrand::Rng::with_seed(seed.0).shuffle(&mut order);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contestant_follows_every_other_one_and_no_round_leaves_one_out() {
        const COUNT: usize = 7;
        let mut followed = [[0u32; COUNT]; COUNT];
        let rounds = 700;
        for round in 0..rounds {
            let order = order(Seed(1), round, COUNT);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..COUNT).collect::<Vec<_>>(), "round {round}");
            for pair in order.windows(2) {
                followed[pair[1]][pair[0]] += 1;
            }
        }
        // Each ordered pair of neighbours is expected 6 × 700 / 42 = 100 times.
        for (own, others) in followed.iter().enumerate() {
            for (other, times) in others.iter().enumerate().filter(|(other, _)| *other != own) {
                assert!((60..=140).contains(times), "{own} followed {other} {times} times");
            }
        }
    }

    #[test]
    fn the_same_seed_deals_the_same_orders_and_another_one_others() {
        let orders = |seed| (0..20).map(|round| order(Seed(seed), round, 5)).collect::<Vec<_>>();
        assert_eq!(orders(1), orders(1));
        assert_ne!(orders(1), orders(2));
        assert_eq!(order(Seed(1), 0, 0), Vec::<usize>::new());
    }
}
