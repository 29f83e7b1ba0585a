//! A test of the campaign itself. Each bug of the read path that can be planted in the engine
//! (`crates/device/src/planted.rs`) is planted alone, and stories are told until one of them fails.
//!
//! `READS_SEEDS` bounds the stories; with `READS_BUG` only that bug is planted.

use millpond_device::planted::{Bug, plant};

use crate::campaign::{Seeds, attempt};

#[test]
fn every_planted_bug_of_the_read_path_is_caught() {
    let seeds = Seeds::asked_for(Seeds { from: 0, count: 400, jobs: 1 });
    let mut missed = Vec::new();
    println!("| bug | caught in story | by |");
    println!("|---|---:|---|");
    let only = std::env::var("READS_BUG").ok();
    let is_meant = |bug: &Bug| only.as_ref().is_none_or(|only| *only == format!("{bug:?}"));
    for bug in Bug::OF_READS.into_iter().filter(is_meant) {
        plant(Some(bug));
        let told = (seeds.from..seeds.from + seeds.count).map(|seed| (seed, attempt(seed)));
        let caught = told.filter_map(|(seed, told)| Some((seed, told.err()?))).next();
        plant(None);
        match caught {
            Some((seed, what)) => {
                let line: String =
                    what.lines().next().unwrap_or_default().chars().take(110).collect();
                println!("| `{bug:?}` | {seed} | {line} |");
            }
            None => {
                println!("| `{bug:?}` | **not caught** | |");
                missed.push(bug);
            }
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
