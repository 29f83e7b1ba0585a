//! Fills the table.

use millpond_base::Seed;

use super::config::{Config, LoadOrder, TABLE};
use super::shape::{KEY_LEN_MAX, Shape};
use crate::keys::permute_keyed;
use crate::live::{Access, DriveError, Session, Store, TableId};

/// Rows of a transaction while loading in random order.
const BATCH: u64 = 1000;

/// Creates the table.
pub fn create<S: Store>(store: &S) -> Result<TableId, S::Error> {
    store.create_table(TABLE)
}

/// Loads part `part` of `parts` of the rows, all fields at version 0; returns their number.
///
/// Every row belongs to exactly one part, so that threads can load in parallel. In ascending order
/// only part 0 has rows, since a bulk load is one sequence.
pub fn load<S: Session>(
    session: &mut S,
    table: TableId,
    config: &Config,
    seed: Seed,
    part: u32,
    parts: u32,
) -> Result<u64, DriveError<S::Error>> {
    match config.load_order {
        LoadOrder::Ascending if part == 0 => load_ascending(session, table, config),
        LoadOrder::Ascending => Ok(0),
        LoadOrder::Random => load_random(session, table, config, seed, part, parts),
    }
}

fn load_ascending<S: Session>(
    session: &mut S,
    table: TableId,
    config: &Config,
) -> Result<u64, DriveError<S::Error>> {
    let shape = config.shape;
    let order = if shape.scattered_keys { Some(sorted_rows(&shape, config.rows)) } else { None };
    let mut at = 0u64;
    let loaded = session.load_sorted(table, |key, value| {
        if at == config.rows {
            return false;
        }
        let row = order.as_ref().map_or(at, |order| order[at as usize]);
        key.clear();
        key.extend_from_slice(shape.key(row, &mut [0; KEY_LEN_MAX]));
        value.resize(shape.value_len(), 0);
        shape.fill(value, row, 0);
        at += 1;
        true
    })?;
    Ok(loaded)
}

/// Returns the row numbers in key order.
fn sorted_rows(shape: &Shape, rows: u64) -> Vec<u64> {
    let mut order: Vec<([u8; KEY_LEN_MAX], u64)> = (0..rows)
        .map(|row| {
            let mut key = [0; KEY_LEN_MAX];
            shape.key(row, &mut key);
            (key, row)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, row)| row).collect()
}

/// Returns the row that is loaded as number `at` in random order.
///
/// The permutation differs from the one that spreads popular ranks over the rows. With the same
/// one, popular rows would be loaded one after the other, and be neighbours in a store that keeps
/// this order.
#[inline]
fn row_at(seed: Seed, at: u64, rows: u64) -> u64 {
    permute_keyed(seed.derive("load").0, at, rows)
}

fn load_random<S: Session>(
    session: &mut S,
    table: TableId,
    config: &Config,
    seed: Seed,
    part: u32,
    parts: u32,
) -> Result<u64, DriveError<S::Error>> {
    let shape = config.shape;
    let mut value = vec![0; shape.value_len()];
    let mut key = [0; KEY_LEN_MAX];
    let mut loaded = 0u64;
    session.begin(Access::Write)?;
    for at in (u64::from(part)..config.rows).step_by(parts.max(1) as usize) {
        let row = row_at(seed, at, config.rows);
        shape.fill(&mut value, row, 0);
        let key = shape.key(row, &mut key);
        if !session.insert(table, key, &value)? {
            return Err(DriveError::Duplicate { table: TABLE, key: key.into() });
        }
        loaded += 1;
        if loaded.is_multiple_of(BATCH) {
            session.commit()?;
            session.begin(Access::Write)?;
        }
    }
    session.commit()?;
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Scramble;

    #[test]
    fn rows_of_neighbouring_ranks_are_not_loaded_one_after_the_other() {
        let rows = 10_000u64;
        let mut loaded_as = vec![0u64; rows as usize];
        (0..rows).for_each(|at| loaded_as[row_at(Seed(1), at, rows) as usize] = at);
        let of_rank = |rank| loaded_as[Scramble::Permute.row(rank, rows) as usize];
        let near = |apart: u64| {
            let close = |rank: &u64| of_rank(*rank).abs_diff(of_rank(rank + apart)) <= 50;
            (0..1000).filter(close).count()
        };
        // One in a hundred is by chance.
        for apart in 1..10 {
            assert!(near(apart) < 40, "ranks {apart} apart: {} of 1000", near(apart));
        }
    }

    #[test]
    fn each_seed_loads_in_an_order_of_its_own() {
        let order = |seed| (0..100).map(|at| row_at(Seed(seed), at, 100)).collect::<Vec<_>>();
        assert_ne!(order(1), order(2));
        assert_eq!(order(1), order(1));
    }
}
