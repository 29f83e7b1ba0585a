//! Random transactions of several threads on few keys. Each lock that is granted is written down
//! where all see it: two that do not go together are never there at a time.

use std::ops::Bound::Included;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use millpond::internals::lock::LockMode::{S, X};
use millpond::internals::lock::{LockError, LockManager, LockMode, LockOptions, LockOwner};

use crate::lock::scene::LONG;

const KEYS: u8 = 24;
const TREES: u32 = 2;

/// Per key: how many have read it, or -1 if one has written it. A transaction counts once.
struct Ground(Vec<AtomicI64>);

/// Locks that a transaction believes it holds.
#[derive(Default)]
struct Holds(Vec<(usize, LockMode)>);

impl Ground {
    fn new() -> Ground {
        Ground((0..u32::from(KEYS) * TREES).map(|_| AtomicI64::new(0)).collect())
    }

    fn got(&self, holds: &mut Holds, tree: u32, key: u8, mode: LockMode) {
        let at = tree as usize * usize::from(KEYS) + usize::from(key);
        let had = holds.0.iter_mut().find(|hold| hold.0 == at);
        match (had, mode) {
            (Some((_, X)), _) | (Some((_, S)), S) => {}
            (Some(hold), _) => {
                let readers = self.0[at].swap(-1, Ordering::SeqCst);
                assert_eq!(readers, 1, "key {at} was read by others when it was to be written");
                hold.1 = X;
            }
            (None, S) => {
                let before = self.0[at].fetch_add(1, Ordering::SeqCst);
                assert!(before >= 0, "key {at} was being written when it was read");
                holds.0.push((at, S));
            }
            (None, _) => {
                let before = self.0[at].swap(-1, Ordering::SeqCst);
                assert_eq!(before, 0, "key {at} was held by others when it was written");
                holds.0.push((at, X));
            }
        }
    }

    fn release(&self, holds: &mut Holds) {
        for (at, mode) in holds.0.drain(..) {
            match mode {
                S => assert!(self.0[at].fetch_sub(1, Ordering::SeqCst) > 0),
                _ => assert_eq!(self.0[at].swap(0, Ordering::SeqCst), -1),
            }
        }
    }
}

fn step(
    owner: &mut LockOwner,
    rng: &mut fastrand::Rng,
    ground: &Ground,
    holds: &mut Holds,
) -> Result<(), LockError> {
    let tree = rng.u32(0..TREES);
    let key = rng.u8(0..KEYS);
    match rng.u32(0..100) {
        0..40 => {
            owner.lock_key(tree, &[key], S)?;
            ground.got(holds, tree, key, S);
        }
        40..75 => {
            owner.lock_key(tree, &[key], X)?;
            ground.got(holds, tree, key, X);
        }
        75..97 => {
            let to = key.saturating_add(rng.u8(0..5)).min(KEYS - 1);
            owner.lock_range(tree, Included(&[key]), Included(&[to]))?;
            (key..=to).for_each(|key| ground.got(holds, tree, key, S));
        }
        97..99 => {
            owner.lock_tree(tree, S)?;
            (0..KEYS).for_each(|key| ground.got(holds, tree, key, S));
        }
        _ => {
            owner.lock_tree(tree, X)?;
            (0..KEYS).for_each(|key| ground.got(holds, tree, key, X));
        }
    }
    Ok(())
}

/// Runs `threads` × `transactions`; returns how many ended in each way.
fn run(options: LockOptions, threads: u64, transactions: u64, seed: u64) -> (u64, u64) {
    let manager = Arc::new(LockManager::new(options.wait_max(LONG)));
    let ground = Ground::new();
    let ids = AtomicU64::new(1);
    let ends = Mutex::new((0, 0));
    let start = Barrier::new(threads as usize);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (manager, ground, ids, ends) = (&manager, &ground, &ids, &ends);
            let start = &start;
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed * 100 + thread);
                let mut owner = LockOwner::begin(manager, 0);
                let mut holds = Holds::default();
                start.wait();
                for _ in 0..transactions {
                    owner.renew(ids.fetch_add(1, Ordering::Relaxed));
                    let steps = rng.u32(1..8);
                    let result = (0..steps).try_for_each(|_| {
                        let result = step(&mut owner, &mut rng, ground, &mut holds);
                        thread::yield_now();
                        result
                    });
                    ground.release(&mut holds);
                    owner.release_all();
                    let mut ends = ends.lock().unwrap();
                    match result {
                        Ok(()) => ends.0 += 1,
                        Err(LockError::Deadlock { .. }) => ends.1 += 1,
                        Err(error) => panic!("{error:?}, seed {seed}"),
                    }
                }
            });
        }
    });
    assert_eq!((manager.keys_locked(), manager.writers(), manager.bytes()), (0, 0, 0));
    assert_eq!(manager.ranges_counted(), 0);
    assert!(manager.quiet().is_some());
    // The trees are free, too.
    let mut owner = LockOwner::begin(&manager, u64::MAX);
    (0..TREES).for_each(|tree| owner.lock_tree(tree, X).unwrap());
    ends.into_inner().unwrap()
}

/// Runs until `enough` transactions have given way: without them nothing was tried out. How the
/// threads meet is not for the test to say, so it goes on for as many rounds as that takes.
fn run_until(options: &LockOptions, threads: u64, seed: u64, enough: u64) {
    let (mut done, mut given_way) = (0, 0);
    for round in 0..1000 {
        let ends = run(options.clone(), threads, 1000 / threads, seed + round);
        (done, given_way) = (done + ends.0, given_way + ends.1);
        if given_way >= enough && done >= enough {
            return;
        }
    }
    panic!("{done} transactions came to their ends, {given_way} gave way");
}

#[test]
fn no_two_locks_that_do_not_go_together_are_ever_granted() {
    for (seed, threads) in [(1, 2), (2, 4), (3, 8)] {
        run_until(&LockOptions::default(), threads, seed, 10);
    }
}

#[test]
fn nor_with_few_parts_and_early_escalation() {
    let options = LockOptions::default().shards(1).escalate_after(3);
    run_until(&options, 4, 4, 10);
}
