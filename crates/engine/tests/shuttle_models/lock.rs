//! Waiting for locks and being woken under schedules that shuttle draws.
//!
//! Time stands still here: nobody's wait runs out. So a wake-up that is lost, or a circle that is
//! not found, leaves threads that wait for ever, and shuttle reports it.

use std::ops::Bound::Included;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::schedules::{check, seed};
use millpond::internals::lock::LockMode::{S, X};
use millpond::internals::lock::{LockError, LockManager, LockMode, LockOptions, LockOwner};

const SCHEDULES: usize = 400;
const KEYS: u8 = 4;

/// Per key: how many have read it, or -1 if one writes it.
struct Ground([AtomicI64; KEYS as usize]);

impl Ground {
    fn new() -> Arc<Ground> {
        Arc::new(Ground(std::array::from_fn(|_| AtomicI64::new(0))))
    }

    fn got(&self, holds: &mut [Option<LockMode>; KEYS as usize], key: u8, mode: LockMode) {
        let at = usize::from(key);
        let ground = &self.0[at];
        match (holds[at], mode) {
            (Some(X), _) | (Some(_), S) => return,
            (Some(_), _) => assert_eq!(ground.swap(-1, Ordering::SeqCst), 1, "key {key} raised"),
            (None, S) => assert!(ground.fetch_add(1, Ordering::SeqCst) >= 0, "key {key} read"),
            (None, _) => assert_eq!(ground.swap(-1, Ordering::SeqCst), 0, "key {key} written"),
        }
        holds[at] = Some(mode);
    }

    fn release(&self, holds: &mut [Option<LockMode>; KEYS as usize]) {
        for (hold, ground) in holds.iter_mut().zip(&self.0) {
            match hold.take() {
                None => {}
                Some(S) => assert!(ground.fetch_sub(1, Ordering::SeqCst) > 0),
                Some(_) => assert_eq!(ground.swap(0, Ordering::SeqCst), -1),
            }
        }
    }
}

/// Operations of a model's threads, out of a hundred: reads, writes, ranges; the rest whole trees.
#[derive(Clone, Copy)]
struct Mix {
    threads: u64,
    steps: u32,
    reads: u32,
    writes: u32,
    ranges: u32,
    escalate_after: u32,
}

/// Keys whose ranges have prefixes of all lengths: none, one byte, and two.
fn bytes(key: u8) -> [u8; 2] {
    [key / 2, key % 2]
}

fn step(
    owner: &mut LockOwner,
    rng: &mut fastrand::Rng,
    mix: Mix,
    mut got: impl FnMut(u8, LockMode),
) -> Result<(), LockError> {
    let key = rng.u8(0..KEYS);
    let draw = rng.u32(0..100);
    if draw < mix.reads {
        owner.lock_key(1, &bytes(key), S)?;
        got(key, S);
    } else if draw < mix.reads + mix.writes {
        owner.lock_key(1, &bytes(key), X)?;
        got(key, X);
    } else if draw < mix.reads + mix.writes + mix.ranges {
        let to = rng.u8(key..KEYS);
        owner.lock_range(1, Included(&bytes(key)), Included(&bytes(to)))?;
        (key..=to).for_each(|key| got(key, S));
    } else {
        let mode = if draw % 2 == 0 { S } else { X };
        owner.lock_tree(1, mode)?;
        (0..KEYS).for_each(|key| got(key, mode));
    }
    Ok(())
}

/// Counts of events in all schedules of a test: a model in which nobody waits proves nothing.
#[derive(Default)]
struct Seen {
    waits: AtomicU64,
    deadlocks: AtomicU64,
}

fn model(mix: Mix, seen: &Seen) {
    let options = LockOptions::default().escalate_after(mix.escalate_after);
    let manager = Arc::new(LockManager::new(options));
    let ground = Ground::new();
    let seed = seed();
    let threads: Vec<_> = (0..mix.threads)
        .map(|thread| {
            let (manager, ground) = (Arc::clone(&manager), Arc::clone(&ground));
            shuttle::thread::spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed ^ thread);
                let mut owner = LockOwner::begin(&manager, 0);
                let mut holds = [None; KEYS as usize];
                for transaction in 0..2 {
                    owner.renew(1 + thread + transaction * mix.threads);
                    for _ in 0..mix.steps {
                        let got = |key, mode| ground.got(&mut holds, key, mode);
                        match step(&mut owner, &mut rng, mix, got) {
                            Ok(()) => {}
                            Err(LockError::Deadlock { victim, cycle, .. }) => {
                                assert_eq!(victim, owner.id());
                                assert!(cycle.contains(&victim) && cycle.len() > 1);
                                break;
                            }
                            Err(error) => panic!("{error:?}"),
                        }
                    }
                    ground.release(&mut holds);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!((manager.keys_locked(), manager.writers(), manager.bytes()), (0, 0, 0));
    assert_eq!(manager.ranges_counted(), 0);
    let mut owner = LockOwner::begin(&manager, 1000);
    owner.lock_tree(1, X).unwrap();
    assert_eq!(manager.counts().timeouts, 0);
    seen.waits.fetch_add(manager.counts().waits, Ordering::Relaxed);
    seen.deadlocks.fetch_add(manager.counts().deadlocks, Ordering::Relaxed);
}

fn run(mix: Mix) {
    static SEEN: [Seen; 8] =
        [const { Seen { waits: AtomicU64::new(0), deadlocks: AtomicU64::new(0) } }; 8];
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let seen = &SEEN[NEXT.fetch_add(1, Ordering::Relaxed) as usize];
    check(SCHEDULES, move || model(mix, seen));
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    assert!(of(&seen.waits) > 100 && of(&seen.deadlocks) > 10, "{} waits", of(&seen.waits));
}

const USUAL: Mix =
    Mix { threads: 3, steps: 3, reads: 0, writes: 0, ranges: 0, escalate_after: 1000 };

#[test]
fn keys_are_granted_and_circles_broken() {
    run(Mix { reads: 50, writes: 50, ..USUAL });
}

#[test]
fn ranges_keep_writes_out() {
    run(Mix { writes: 60, ranges: 40, ..USUAL });
}

#[test]
fn trees_ranges_and_keys_get_along() {
    run(Mix { reads: 20, writes: 40, ranges: 20, ..USUAL });
}

#[test]
fn keys_become_trees_while_others_come_and_go() {
    run(Mix { reads: 30, writes: 40, ranges: 20, escalate_after: 2, ..USUAL });
}

#[test]
fn who_sees_no_writer_has_read_nothing_uncommitted() {
    check(SCHEDULES, || {
        let manager = Arc::new(LockManager::new(LockOptions::default()));
        // 0, or 1 while a transaction that rolls back has changed it.
        let value = Arc::new(shuttle::sync::atomic::AtomicU64::new(0));
        let theirs = (Arc::clone(&manager), Arc::clone(&value));
        let writer = shuttle::thread::spawn(move || {
            let (manager, value) = theirs;
            let mut owner = LockOwner::begin(&manager, 0);
            for id in 1..4 {
                owner.renew(id);
                owner.lock_key(1, b"k", X).unwrap();
                value.store(1, Ordering::SeqCst);
                value.store(0, Ordering::SeqCst);
            }
        });
        for _ in 0..4 {
            if let Some(token) = manager.quiet() {
                let read = value.load(Ordering::SeqCst);
                if manager.still_quiet(token) {
                    assert_eq!(read, 0, "an uncommitted change was read");
                }
            }
        }
        writer.join().unwrap();
    });
}

/// A transaction that changes two keys and rolls back: under locks on them, on their tree, or on
/// keys that become one on the tree.
fn change_in_vain(owner: &mut LockOwner, rng: &mut fastrand::Rng, values: &[Value; 2]) {
    match rng.u8(0..3) {
        0 => owner.lock_tree(1, X).unwrap(),
        1 => owner.lock_key(1, &[0], S).unwrap(),
        _ => {}
    }
    for (key, value) in values.iter().enumerate() {
        owner.lock_key(1, &[key as u8], X).unwrap();
        value.store(1, Ordering::SeqCst);
    }
    values.iter().for_each(|value| value.store(0, Ordering::SeqCst));
}

type Value = shuttle::sync::atomic::AtomicU64;

/// Reads of keys beside a writer that always rolls back. Returns how many were of use.
fn read_beside_writer(escalate_after: u32) -> u64 {
    let options = LockOptions::default().escalate_after(escalate_after);
    let manager = Arc::new(LockManager::new(options));
    let values = Arc::new([Value::new(0), Value::new(0)]);
    let theirs = (Arc::clone(&manager), Arc::clone(&values));
    let seed = seed();
    let writer = shuttle::thread::spawn(move || {
        let (manager, values) = theirs;
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut owner = LockOwner::begin(&manager, 0);
        for id in 1..4 {
            owner.renew(id);
            change_in_vain(&mut owner, &mut rng, &values);
        }
    });
    let mut reads = 0;
    for look in 0..6 {
        let key = look % 2;
        if let Some(token) = manager.key_quiet(1, &[key as u8]) {
            let read = values[key].load(Ordering::SeqCst);
            if manager.key_still_quiet(&token) {
                assert_eq!(read, 0, "an uncommitted change was read");
                reads += 1;
            }
        }
    }
    writer.join().unwrap();
    assert!(manager.key_quiet(1, &[0]).is_some(), "nobody writes any more");
    reads
}

#[test]
fn who_sees_no_writer_of_a_key_has_read_nothing_uncommitted_of_it() {
    static READ: AtomicU64 = AtomicU64::new(0);
    for escalate_after in [1, 2, 1000] {
        check(SCHEDULES, move || {
            READ.fetch_add(read_beside_writer(escalate_after), Ordering::Relaxed);
        });
    }
    assert!(READ.load(Ordering::Relaxed) > 1000, "the reads were in vain");
}
