//! Time that an empty store takes to open, policy by policy.
//!
//! Each policy has its own store, created and closed before. A round opens and closes each store
//! once, in an order that the round's seed deals, and times only the opening. So ratios within a
//! round do not depend on the machine's mood.

use std::path::PathBuf;
use std::time::Instant;

use millpond::{Db, Options};
use millpond_base::Seed;
use millpond_lab::interval::Interval;
use millpond_policies::contract::Policy;
use millpond_policies::info::Tier;
use millpond_policies::registry::{Visitor, visit_all};

use crate::error::BenchError;
use crate::run::runner::Observer;
use crate::run::turns;

/// Set-up of the openings.
#[derive(Clone, Debug)]
pub struct Openings {
    /// Policies; ratios are to the first one.
    pub policies: Vec<String>,
    /// Options of the stores, except for their policy.
    pub options: Options,
    /// Folder in which they are created, and removed again.
    pub folder: PathBuf,
    /// Rounds.
    pub rounds: u32,
    /// Seed of the order within each round.
    pub seed: Seed,
}

/// Time of opening a store with one policy.
#[derive(Clone, PartialEq, Debug)]
pub struct Opening {
    /// The policy.
    pub policy: String,
    /// Frames of its pool.
    pub frames: u64,
    /// Milliseconds.
    pub ms: Interval,
    /// Ratio to the first policy, within the rounds.
    pub to_first: Interval,
}

/// Returns all policies that a store can run with, `lean-evict` first.
pub fn live_policies() -> Vec<String> {
    struct Live(Vec<&'static str>);
    impl Visitor for Live {
        fn visit<P: Policy>(&mut self) {
            if P::INFO.live && !P::NEEDS_FUTURE && P::INFO.tier == Tier::First {
                self.0.push(P::INFO.id);
            }
        }
    }
    let mut live = Live(Vec::new());
    visit_all(&mut live);
    live.0.sort_by_key(|id| *id != "lean-evict");
    live.0.into_iter().map(str::to_string).collect()
}

/// Runs the rounds: an [`Opening`] for each policy.
///
/// An observer that stops the run gets the results of the finished rounds.
///
/// # Errors
/// Any error of the store, or an error if not even one round was finished.
pub fn openings(what: &Openings, observer: &mut dyn Observer) -> Result<Vec<Opening>, BenchError> {
    let folder = tempfile::tempdir_in(&what.folder).map_err(|error| {
        BenchError::Usage(format!("no store can be made in {}: {error}", what.folder.display()))
    })?;
    let path = |at: usize| folder.path().join(format!("{at}.db"));
    let options = |at: usize| what.options.clone().policy(what.policies[at].as_str());
    let mut frames = Vec::new();
    for at in 0..what.policies.len() {
        observer.begin(&format!("making the store of {}", what.policies[at]));
        let db = Db::open(path(at), options(at))?;
        frames.push(db.stats().frames);
        db.close()?;
    }
    let mut ms: Vec<Vec<f64>> = vec![Vec::new(); what.policies.len()];
    for round in 0..what.rounds {
        observer.begin(&format!("round {} of {}", round + 1, what.rounds));
        if observer.stop() {
            break;
        }
        for at in turns::order(what.seed, round, what.policies.len()) {
            let options = options(at);
            let start = Instant::now();
            let db = Db::open(path(at), options)?;
            ms[at].push(start.elapsed().as_secs_f64() * 1e3);
            db.close()?;
        }
    }
    let all = what.policies.iter().zip(frames).zip(&ms);
    let opening = |((policy, frames), own): ((&String, u64), &Vec<f64>)| {
        Some(Opening {
            policy: policy.clone(),
            frames,
            ms: Interval::of_rates(own)?,
            to_first: Interval::of_ratios(own, &ms[0])?,
        })
    };
    all.map(|one| opening(one).ok_or(BenchError::Stopped)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::runner::Unwatched;

    #[test]
    fn each_policy_is_opened_beside_the_first_in_every_round() {
        let folder = tempfile::tempdir().unwrap();
        let what = Openings {
            policies: vec!["lean-evict".to_string(), "watt".to_string()],
            options: Options::new().memory(8 << 20),
            folder: folder.path().to_path_buf(),
            rounds: 3,
            seed: Seed(1),
        };
        let all = openings(&what, &mut Unwatched).unwrap();
        assert_eq!(all.iter().map(|o| o.policy.as_str()).collect::<Vec<_>>(), what.policies);
        assert_eq!(all[0].to_first.mean, 1.0);
        assert!(all.iter().all(|o| o.ms.mean > 0.0 && o.frames > 0), "{all:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(live_policies()[0], "lean-evict");
    }
}
