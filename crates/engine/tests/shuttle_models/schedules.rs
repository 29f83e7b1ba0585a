//! Drawing of schedules: from fixed seeds, at random and by priorities that change now and then.
//!
//! `MILLPOND_SCHEDULES=20` draws twenty times as many, `MILLPOND_SEED=7` others.

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

/// Steps that a schedule may take: thirty times the usual, so that who waits in vain is found.
const STEPS_MAX: usize = 300_000;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Runs `body` under `count` schedules drawn at random, and half as many by priority.
pub fn check<F: Fn() + Send + Sync + Copy + 'static>(count: usize, body: F) {
    let seed = setting("MILLPOND_SEED", 1);
    let count = count * setting("MILLPOND_SCHEDULES", 1) as usize;
    let mut config = Config::new();
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    // The seed and the test's name are enough to see a failure again.
    config.failure_persistence = FailurePersistence::None;
    Runner::new(RandomScheduler::new_from_seed(seed, count), config.clone()).run(body);
    // A thread that waits for one of lower priority must get out of its way by yielding.
    Runner::new(PctScheduler::new_from_seed(seed, 3, count / 2), config).run(body);
}

/// A seed that belongs to the schedule: what repeats the one repeats the other.
#[allow(dead_code, reason = "not every program that has this module draws by it")]
pub fn seed() -> u64 {
    shuttle::rand::RngCore::next_u64(&mut shuttle::rand::thread_rng())
}
