//! Many keys become a tree lock, and memory has an end.

use std::ops::Bound::{Excluded, Included};
use std::sync::Arc;
use std::time::Duration;

use millpond::internals::lock::LockMode::{S, X};
use millpond::internals::lock::{LockError, LockManager, LockMode, LockOptions, LockOwner};

fn manager() -> Arc<LockManager> {
    let options = LockOptions::default().memory_bytes(1 << 20).escalate_after(100);
    Arc::new(LockManager::new(options.wait_max(Duration::ZERO)))
}

fn lock(
    owner: &mut LockOwner,
    keys: std::ops::Range<u32>,
    mode: LockMode,
) -> Result<(), LockError> {
    keys.into_iter().try_for_each(|n| owner.lock_key(7, &n.to_be_bytes(), mode))
}

#[test]
fn many_keys_become_a_lock_on_the_tree() {
    for mode in [S, X] {
        let manager = manager();
        let mut owner = LockOwner::begin(&manager, 1);
        lock(&mut owner, 0..99, mode).unwrap();
        assert_eq!((owner.keys_held(), manager.counts().escalations), (99, 0));
        lock(&mut owner, 0..50_000, mode).unwrap();
        assert_eq!((owner.keys_held(), manager.counts().escalations), (0, 1));
        let mut other = LockOwner::begin(&manager, 2);
        assert!(other.lock_key(7, b"elsewhere", X).is_err());
        assert_eq!(other.lock_key(7, b"elsewhere", S).is_ok(), mode == S);
        owner.release_all();
        other.lock_key(7, b"elsewhere", X).unwrap();
        assert_eq!(manager.keys_locked(), 1);
    }
}

#[test]
fn where_another_reads_what_was_read_is_locked_as_a_whole_and_what_was_written_by_key() {
    let manager = manager();
    let mut reader = LockOwner::begin(&manager, 1);
    reader.lock_key(7, b"elsewhere", S).unwrap();
    let mut owner = LockOwner::begin(&manager, 2);
    lock(&mut owner, 0..10, X).unwrap();
    lock(&mut owner, 10..1000, S).unwrap();
    assert_eq!(owner.keys_held(), 10);
    reader.lock_key(7, &500u32.to_be_bytes(), S).unwrap();
    assert!(reader.lock_key(7, &5u32.to_be_bytes(), S).is_err());
    assert!(reader.lock_key(7, b"elsewhere", X).is_err());
    use std::ops::Bound::Included;
    let five = 5u32.to_be_bytes();
    assert!(reader.lock_range(7, Included(&five), Included(&five)).is_err());
}

#[test]
fn without_the_tree_it_goes_on_by_key_until_memory_is_out() {
    let manager = manager();
    let mut other = LockOwner::begin(&manager, 1);
    other.lock_key(7, b"elsewhere", X).unwrap();
    let mut owner = LockOwner::begin(&manager, 2);
    let error = lock(&mut owner, 0..1_000_000, X).unwrap_err();
    let LockError::Memory { used, limit, keys, .. } = error else { panic!("{error:?}") };
    assert!(used <= limit && limit == 1 << 20 && keys > 5000, "{used} {keys}");
    assert!(!error.retriable());
    assert_eq!(keys as usize, owner.keys_held());
    assert!(manager.bytes() <= limit);
    let counts = manager.counts();
    assert!(counts.escalations == 0 && counts.escalations_refused > 10);
    // Nothing is lost, and once the other is gone the tree can be had.
    assert!(other.lock_key(7, &1u32.to_be_bytes(), S).is_err());
    other.release_all();
    lock(&mut owner, 0..1_000_000, X).unwrap();
    assert_eq!(owner.keys_held(), 0);
    drop((owner, other));
    assert_eq!((manager.bytes(), manager.keys_locked()), (0, 0));
}

#[test]
fn what_is_released_can_be_used_again() {
    let manager = manager();
    let mut other = LockOwner::begin(&manager, 1);
    other.lock_key(7, b"elsewhere", X).unwrap();
    let mut owner = LockOwner::begin(&manager, 2);
    for round in 0..20 {
        owner.renew(round + 2);
        lock(&mut owner, 0..3000, S).unwrap();
        owner.release_all_shared();
        lock(&mut owner, 0..3000, S).unwrap();
    }
    assert_eq!(owner.keys_held(), 3000);
}

#[test]
fn a_tree_that_is_locked_to_write_stays_so_when_its_keys_make_room() {
    let manager = manager();
    let mut owner = LockOwner::begin(&manager, 1);
    lock(&mut owner, 0..50, S).unwrap();
    owner.lock_tree(7, X).unwrap();
    let mut other = LockOwner::begin(&manager, 2);
    other.lock_key(10_000, b"key", S).unwrap();
    // Keys of other trees, until memory is out: the tree with most keys makes room.
    let mut trees = (8..10_000).take_while(|_| manager.counts().escalations == 0);
    let locked = trees.try_for_each(|tree| {
        (0..40u32).try_for_each(|n| owner.lock_key(tree, &n.to_be_bytes(), S))
    });
    locked.unwrap();
    assert!(manager.counts().escalations > 0, "memory is out");
    let got = other.lock_key(7, b"key", S);
    assert!(matches!(got, Err(LockError::Timeout { .. })), "the tree is locked in X: {got:?}");
    assert!(manager.key_quiet(7, b"key").is_none());
    owner.release_all();
    other.lock_key(7, b"key", S).unwrap();
    assert!(manager.key_quiet(7, b"key").is_some());
}

/// Sixteen KiB for each made the memory of a small store run out with 128 of them.
#[test]
fn a_transaction_that_locks_little_reserves_a_kibibyte_at_most() {
    let manager = manager();
    let owners: Vec<_> = (0..1000u64)
        .map(|id| {
            let mut owner = LockOwner::begin(&manager, id + 1);
            owner.lock_key(7, &id.to_be_bytes(), if id % 2 == 0 { S } else { X }).unwrap();
            owner
        })
        .collect();
    assert!(manager.bytes() <= 1000 << 10, "{} bytes", manager.bytes());
    drop(owners);
    // One that locked much keeps no more for the next transaction of its thread.
    let mut owner = LockOwner::begin(&manager, 1);
    lock(&mut owner, 0..99, S).unwrap();
    owner.renew(2);
    assert!(manager.bytes() <= 1 << 10, "{} bytes", manager.bytes());
}

#[test]
fn where_others_have_the_memory_its_want_is_retriable() {
    let manager = manager();
    let owners: Vec<_> = (0..)
        .map(|id| {
            let mut owner = LockOwner::begin(&manager, id + 1);
            owner.lock_key(7, &id.to_be_bytes(), X).map(|()| owner)
        })
        .take_while(Result::is_ok)
        .collect();
    let mut owner = LockOwner::begin(&manager, 1 << 40);
    let error = owner.lock_key(7, b"key", S).unwrap_err();
    assert!(matches!(error, LockError::Memory { .. }) && error.retriable(), "{error}");
    assert!(error.to_string().contains("try again"), "{error}");
    drop(owners);
    owner.lock_key(7, b"key", S).unwrap();
    // Where nobody else has any, no other try gets more.
    let LockError::Memory { limit, tree, keys, .. } = error else { panic!("{error}") };
    for own in [0, 1024, limit / 4, limit / 2, limit] {
        let error = LockError::Memory { used: own, own, limit, tree: tree.clone(), keys };
        assert!(!error.retriable(), "{error}");
    }
    let half = limit / 2;
    assert!(LockError::Memory { used: limit, own: half, limit, tree, keys }.retriable());
}

#[test]
fn a_bound_that_is_longer_than_any_key_takes_no_more_memory_than_one() {
    let manager = manager();
    let mut owner = LockOwner::begin(&manager, 1);
    let (low, high) = (vec![3; 8 << 20], vec![7; 8 << 20]);
    owner.lock_range(7, Included(&low), Excluded(&high)).unwrap();
    assert!(manager.bytes() < 512 << 10, "{} bytes", manager.bytes());
    assert!(owner.covers_range(7, Included(&low), Excluded(&high)));
    // What lies between is locked, and what does not is not.
    let mut other = LockOwner::begin(&manager, 2);
    let is_locked = |key: &[u8], other: &mut LockOwner| other.lock_key(7, key, X).is_err();
    assert!(is_locked(&[4], &mut other) && is_locked(&[7; 1000], &mut other));
    assert!(!is_locked(&[3; 1000], &mut other) && !is_locked(&[8], &mut other));
}
