//! Check that a store keeps the promises of the trait, for every adapter.
//!
//! An adapter that returns wrong results would not crash a benchmark but falsify it. So each
//! adapter is first compared with a model. The check runs random operations on keys with shared
//! prefixes and on values of all lengths, empty ones included, and compares every result. It then
//! checks bulk loading, and threads that compete for the same keys: no update may be lost, and
//! each insert and remove has one winner.

use std::collections::BTreeMap;
use std::error::Error;
use std::ops::Bound;

use millpond_base::Seed;

use super::store::{Access, Direction, Extent, Scan, Session, Store, TableId};
use crate::generate::Random;

/// A difference between a store and the trait's promises.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Breach<E: Error + 'static> {
    /// An operation failed without reason.
    #[error("the store failed: {0}")]
    Store(#[from] E),
    /// A result differs from the model's.
    #[error("step {step}, {operation} with key {key:02x?}: the result is wrong")]
    Answer {
        /// Number of the operation within the check.
        step: u32,
        /// The operation.
        operation: &'static str,
        /// The key.
        key: Vec<u8>,
    },
    /// No order of the threads' operations explains their result.
    #[error("{what}: {found} instead of {expected} with two threads")]
    Race {
        /// Counted events.
        what: &'static str,
        /// The count.
        found: u64,
        /// Required count.
        expected: u64,
    },
}

/// Rounds of each thread in the races.
const ROUNDS: u32 = 2000;

/// Checks `store` with `steps` random operations of `seed`, and then with two threads. Creates
/// the tables `contract_random`, `contract_sorted` and `contract_race`, which must not exist.
pub fn check_contract<S: Store>(store: &S, seed: Seed, steps: u32) -> Result<(), Breach<S::Error>> {
    let wrong = |operation| Breach::Answer { step: 0, operation, key: Vec::new() };
    let random = store.create_table("contract_random")?;
    let sorted = store.create_table("contract_sorted")?;
    let race = store.create_table("contract_race")?;
    if store.create_table("contract_sorted")? != sorted || random == sorted || sorted == race {
        return Err(wrong("create_table"));
    }
    if store.table("contract_race")? != Some(race) || store.table("contract_none")?.is_some() {
        return Err(wrong("table"));
    }
    let mut session = store.session()?;
    Checker {
        session: &mut session,
        table: random,
        model: BTreeMap::new(),
        random: Random::new(seed),
        step: 0,
    }
    .run(steps)?;
    check_sorted(&mut session, sorted)?;
    drop(session);
    check_races(store, race)
}

/// A session, and the model of its results.
struct Checker<'s, S> {
    session: &'s mut S,
    table: TableId,
    model: BTreeMap<Vec<u8>, Vec<u8>>,
    random: Random,
    step: u32,
}

impl<S: Session> Checker<'_, S> {
    fn run(mut self, steps: u32) -> Result<(), Breach<S::Error>> {
        for step in 1..=steps {
            self.step = step;
            let key = self.key();
            self.session.begin(Access::Write)?;
            let (operation, is_right) = match self.random.below(8) {
                0 | 1 => ("insert", self.insert(&key)?),
                2 => ("put", self.put(&key)?),
                3 => ("update", self.update(&key)?),
                4 => ("remove", self.remove(&key)?),
                5 => ("get", self.get(&key)?),
                6 => ("scan upwards", self.scan(&key, Direction::Ascending, 7)?),
                _ => ("scan downwards", self.scan(&key, Direction::Descending, 7)?),
            };
            self.session.commit()?;
            if !is_right {
                return Err(Breach::Answer { step, operation, key });
            }
        }
        for direction in [Direction::Ascending, Direction::Descending] {
            let start = if direction == Direction::Ascending { vec![] } else { vec![u8::MAX; 50] };
            self.session.begin(Access::Read)?;
            let is_right = self.scan(&start, direction, usize::MAX)?;
            self.session.commit()?;
            if !is_right {
                return Err(Breach::Answer { step: steps, operation: "whole scan", key: start });
            }
        }
        Ok(())
    }

    /// Draws a key of 1 to 40 bytes from a few hundred, most of which share long prefixes.
    fn key(&mut self) -> Vec<u8> {
        let len = 1 + self.random.below(40) as usize;
        let mut key = vec![b'k'; len];
        // With the letter that all keys begin with, one key can be a prefix of another.
        key[len - 1] = [0, 1, 50, b'k', b'l', 128, 254, 255][self.random.below(8) as usize];
        key
    }

    fn value(&mut self) -> Vec<u8> {
        let len = self.random.below(4) * self.random.below(80);
        (0..len).map(|_| self.random.below(256) as u8).collect()
    }

    fn insert(&mut self, key: &[u8]) -> Result<bool, S::Error> {
        let value = self.value();
        let is_new = !self.model.contains_key(key);
        let answer = self.session.insert(self.table, key, &value)?;
        if is_new {
            self.model.insert(key.to_vec(), value);
        }
        Ok(answer == is_new)
    }

    fn put(&mut self, key: &[u8]) -> Result<bool, S::Error> {
        let value = self.value();
        self.session.put(self.table, key, &value)?;
        self.model.insert(key.to_vec(), value);
        self.get(key)
    }

    fn update(&mut self, key: &[u8]) -> Result<bool, S::Error> {
        let mut calls = 0u32;
        let change = |value: &mut [u8]| {
            value.reverse();
            value.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
            value.len()
        };
        let expected = self.model.get_mut(key).map(|value| change(value));
        let answer = self.session.update(self.table, key, |value| {
            calls += 1;
            change(value)
        })?;
        Ok(answer == expected && calls == u32::from(expected.is_some()) && self.get(key)?)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool, S::Error> {
        let answer = self.session.remove(self.table, key)?;
        Ok(answer == self.model.remove(key).is_some() && self.get(key)?)
    }

    fn get(&mut self, key: &[u8]) -> Result<bool, S::Error> {
        let mut calls = 0u32;
        let answer = self.session.get(self.table, key, |value| {
            calls += 1;
            value.to_vec()
        })?;
        let expected = self.model.get(key);
        Ok(answer.as_ref() == expected && calls == u32::from(expected.is_some()))
    }

    /// Compares at most `limit` rows, and checks that the scan stops there.
    fn scan(&mut self, start: &[u8], direction: Direction, limit: usize) -> Result<bool, S::Error> {
        let from = Bound::Included(start);
        let mut expected: Vec<(&Vec<u8>, &Vec<u8>)> = match direction {
            Direction::Ascending => self.model.range::<[u8], _>((from, Bound::Unbounded)).collect(),
            Direction::Descending => {
                self.model.range::<[u8], _>((Bound::Unbounded, from)).rev().collect()
            }
        };
        expected.truncate(limit);
        let extent = if limit == usize::MAX { Extent::Whole } else { Extent::Rows(limit as u32) };
        let (mut seen, mut is_right) = (0, true);
        self.session.scan(
            self.table,
            Scan { start, direction, extent, end: None },
            |key, value| {
                is_right &= expected
                    .get(seen)
                    .is_some_and(|row| (row.0.as_slice(), row.1.as_slice()) == (key, value));
                seen += 1;
                seen < limit
            },
        )?;
        Ok(is_right && seen == expected.len())
    }
}

/// Checks that bulk loading stores exactly the given rows, and returns their number.
fn check_sorted<S: Session>(session: &mut S, table: TableId) -> Result<(), Breach<S::Error>> {
    const ROWS: u32 = 5000;
    let row = |n: u32| (n.to_be_bytes(), vec![n as u8; (n % 200) as usize]);
    let mut next = 0u32;
    let loaded = session.load_sorted(table, |key, value| {
        let (new_key, new_value) = row(next);
        key.clear();
        key.extend_from_slice(&new_key);
        *value = new_value;
        next += 1;
        next <= ROWS
    })?;
    let (mut seen, mut is_right) = (0u32, loaded == u64::from(ROWS));
    session.begin(Access::Read)?;
    session.scan(table, Scan::whole(), |key, value| {
        let (right_key, right_value) = row(seen);
        is_right &= key == right_key && value == right_value;
        seen += 1;
        is_right
    })?;
    session.commit()?;
    if is_right && seen == ROWS {
        Ok(())
    } else {
        let key = seen.to_be_bytes().to_vec();
        Err(Breach::Answer { step: seen, operation: "load_sorted", key })
    }
}

/// Lets two threads increment one counter, and insert and remove the same rows.
fn check_races<S: Store>(store: &S, table: TableId) -> Result<(), Breach<S::Error>> {
    let mut session = store.session()?;
    retried(&mut session, |session| session.insert(table, b"counter", &[0; 8]))?;
    let expect = |what, found, expected| {
        if found == expected { Ok(()) } else { Err(Breach::Race { what, found, expected }) }
    };
    let rounds = u64::from(ROUNDS);
    expect("updates", wins(store, |session, _| count_up(session, table))?, 2 * rounds)?;
    let counted = retried(&mut session, |session| {
        session.get(table, b"counter", |value| {
            value.first_chunk::<8>().map(|c| u64::from_le_bytes(*c))
        })
    })?;
    expect("counted updates", counted.flatten().unwrap_or(0), 2 * rounds)?;
    let inserted = wins(store, |session, round| session.insert(table, &row_key(round), b"row"))?;
    expect("inserts of the same rows", inserted, rounds)?;
    let removed = wins(store, |session, round| session.remove(table, &row_key(round)))?;
    expect("removes of the same rows", removed, rounds)
}

/// Counts how often `operation` returns `true` in [`ROUNDS`] calls in each of two threads.
fn wins<S: Store>(
    store: &S,
    operation: impl Fn(&mut S::Session<'_>, u32) -> Result<bool, S::Error> + Sync,
) -> Result<u64, S::Error> {
    let thread = || -> Result<u64, S::Error> {
        let mut session = store.session()?;
        let mut wins = 0;
        for round in 0..ROUNDS {
            wins += u64::from(retried(&mut session, |session| operation(session, round))?);
        }
        Ok(wins)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(thread);
        let ours = thread();
        let theirs = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(ours? + theirs?)
    })
}

fn row_key(round: u32) -> [u8; 8] {
    (u64::from(round) | 1 << 63).to_be_bytes()
}

fn count_up<S: Session>(session: &mut S, table: TableId) -> Result<bool, S::Error> {
    let done = session.update(table, b"counter", |value| {
        if let Some(bytes) = value.first_chunk_mut::<8>() {
            *bytes = (u64::from_le_bytes(*bytes) + 1).to_le_bytes();
        }
    })?;
    Ok(done.is_some())
}

/// Runs `operation` in a transaction, and repeats it while the store asks for that, up to a
/// limit.
fn retried<S: Session, R>(
    session: &mut S,
    mut operation: impl FnMut(&mut S) -> Result<R, S::Error>,
) -> Result<R, S::Error> {
    let mut tries = 0;
    loop {
        let done = session
            .begin(Access::Write)
            .and_then(|()| operation(session))
            .and_then(|answer| session.commit().map(|()| answer));
        match done {
            Err(error) if S::is_retriable(&error) && tries < 100_000 => {
                tries += 1;
                session.rollback()?;
            }
            other => return other,
        }
    }
}
