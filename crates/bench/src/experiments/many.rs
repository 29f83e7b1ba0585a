//! Lookups of several keys by one call, compared with one call per key.
//!
//! One store is loaded once. A round draws separate keys for each way, uniformly from all rows, so
//! that neither way finds the other's rows in the processor's caches. The round's seed deals the
//! order of the ways. Ratios are taken within rounds.

use std::path::PathBuf;
use std::time::Instant;

use millpond::{Db, Options, RawTree};
use millpond_base::Seed;
use millpond_lab::interval::Interval;

use crate::error::BenchError;
use crate::run::runner::Observer;
use crate::run::turns;

/// Bytes of a key; those of redb's benchmark.
pub const KEY_BYTES: usize = 24;
/// Bytes of a value; those of redb's benchmark.
pub const VALUE_BYTES: usize = 150;

/// Set-up of the lookups.
#[derive(Clone, Debug)]
pub struct Manies {
    /// Rows of the store.
    pub rows: u64,
    /// Keys of a call.
    pub keys: Vec<u32>,
    /// Keys that each way looks up in a round.
    pub per_round: u32,
    /// The store's options.
    pub options: Options,
    /// Folder in which it is created, and removed again.
    pub folder: PathBuf,
    /// Rounds.
    pub rounds: u32,
    /// Seed of keys and turns.
    pub seed: Seed,
}

/// Results for calls of one number of keys.
#[derive(Clone, PartialEq, Debug)]
pub struct Many {
    /// Keys of a call.
    pub keys: u32,
    /// Keys per second, looked up one by one.
    pub single: Interval,
    /// Keys per second, looked up together.
    pub many: Interval,
    /// Speed together over speed one by one, within the rounds.
    pub ratio: Interval,
    /// Pages read per key, looked up together.
    pub reads_per_key: f64,
}

/// Returns the key of a row. Keys are spread, so that rows inserted together are not neighbours.
fn key_of(row: u64) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    let (head, tail) = key.split_at_mut(8);
    head.copy_from_slice(&row.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    tail.copy_from_slice(format!("{row:016}").as_bytes());
    key
}

fn load(db: &Db, rows: u64) -> Result<RawTree, BenchError> {
    let tree = db.raw_tree("rows")?;
    let mut keys: Vec<[u8; KEY_BYTES]> = (0..rows).map(key_of).collect();
    keys.sort_unstable();
    let rows = keys.into_iter().map(|key| (key.to_vec(), vec![key[KEY_BYTES - 1]; VALUE_BYTES]));
    tree.bulk_load(rows, Default::default())?;
    Ok(tree)
}

/// Looks `keys` up in calls of `count`, or one by one; returns keys per second.
fn look_up(
    tree: &RawTree,
    keys: &[[u8; KEY_BYTES]],
    count: Option<u32>,
) -> Result<f64, BenchError> {
    let start = Instant::now();
    let mut found = 0;
    match count {
        None => {
            for key in keys {
                found += usize::from(tree.get(key)?.is_some_and(|v| v[0] == key[KEY_BYTES - 1]));
            }
        }
        Some(count) => {
            for keys in keys.chunks(count.max(1) as usize) {
                let values = tree.get_many(keys.iter().map(|key| &key[..]))?;
                let pairs = keys.iter().zip(values);
                found += pairs
                    .filter(|(key, v)| v.as_ref().is_some_and(|v| v[0] == key[KEY_BYTES - 1]))
                    .count();
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    if found != keys.len() {
        let missing = keys.len() - found;
        return Err(BenchError::Usage(format!("{missing} rows were not found: this is a bug")));
    }
    Ok(keys.len() as f64 / seconds)
}

/// Loads the store and runs the rounds: a [`Many`] for each number of keys.
///
/// An observer that stops the run gets the results of the finished rounds.
///
/// # Errors
/// Any error of the store, or an error if not even one round was finished.
pub fn manies(what: &Manies, observer: &mut dyn Observer) -> Result<Vec<Many>, BenchError> {
    let folder = tempfile::tempdir_in(&what.folder).map_err(|error| {
        BenchError::Usage(format!("no store can be made in {}: {error}", what.folder.display()))
    })?;
    observer.begin(&format!("loading {} rows", what.rows));
    let db = Db::open(folder.path().join("store.mill"), what.options.clone())?;
    let tree = load(&db, what.rows)?;
    db.checkpoint()?;
    let mut all = Vec::new();
    for &keys in &what.keys {
        let (mut single, mut many) = (Vec::new(), Vec::new());
        let mut random = fastrand::Rng::with_seed(what.seed.derive(&format!("{keys} keys")).0);
        let mut draw = || -> Vec<[u8; KEY_BYTES]> {
            (0..what.per_round).map(|_| key_of(random.u64(..what.rows))).collect()
        };
        let mut reads = 0;
        // The first round does not count, since the pool and the caches are cold.
        for round in 0..=what.rounds {
            observer.begin(&format!("{keys} keys, round {round} of {}", what.rounds));
            if observer.stop() {
                break;
            }
            for turn in turns::order(what.seed, round, 2) {
                let drawn = draw();
                let before = db.stats();
                let rate = look_up(&tree, &drawn, (turn == 1).then_some(keys))?;
                if round > 0 {
                    [&mut single, &mut many][turn].push(rate);
                    reads += if turn == 1 { db.stats().since(&before).reads } else { 0 };
                }
            }
        }
        let rounds = single.len().min(many.len());
        single.truncate(rounds);
        many.truncate(rounds);
        let (Some(single_rate), Some(rate), Some(ratio)) = (
            Interval::of_rates(&single),
            Interval::of_rates(&many),
            Interval::of_ratios(&many, &single),
        ) else {
            break;
        };
        let reads_per_key = reads as f64 / (rounds as f64 * f64::from(what.per_round));
        all.push(Many { keys, single: single_rate, many: rate, ratio, reads_per_key });
    }
    drop(tree);
    db.close()?;
    if all.is_empty() { Err(BenchError::Stopped) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::runner::Unwatched;

    #[test]
    fn both_ways_find_all_rows_in_memory_and_beyond_it() {
        let folder = tempfile::tempdir().unwrap();
        for (memory, is_beyond) in [(64 << 20, false), (16 << 20, true)] {
            let what = Manies {
                rows: 100_000,
                keys: vec![1, 40],
                per_round: 1000,
                options: Options::new().memory(memory),
                folder: folder.path().to_path_buf(),
                rounds: 2,
                seed: Seed(1),
            };
            let all = manies(&what, &mut Unwatched).unwrap();
            assert_eq!(all.iter().map(|many| many.keys).collect::<Vec<_>>(), what.keys);
            assert!(all.iter().all(|many| many.ratio.mean > 0.0), "{all:?}");
            assert_eq!(all[1].reads_per_key > 0.1, is_beyond, "{all:?}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
