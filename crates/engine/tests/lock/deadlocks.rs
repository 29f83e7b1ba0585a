//! Circles of all kinds: one gives way, the youngest, and the others go on.

use std::ops::Bound::Included;
use std::sync::Arc;

use millpond::internals::lock::LockMode::{S, X};
use millpond::internals::lock::{LockError, LockManager, LockOwner};

use crate::lock::scene::{Working, manager, waits};

fn key(n: usize) -> [u8; 1] {
    [n as u8]
}

/// Lets all end, each in a thread that waits: who gave way releases what it has, and so do those
/// that got what they wanted. Returns the ids of those that gave way.
fn end(mut working: Vec<Working>) -> Vec<u64> {
    let mut victims = Vec::new();
    while !working.is_empty() {
        let (waiting, done): (Vec<_>, Vec<_>) =
            working.into_iter().partition(|working| working.is_waiting());
        working = waiting;
        for working in done {
            let (mut owner, result) = working.done();
            if let Err(error) = result {
                let LockError::Deadlock { victim, cycle, .. } = &error else { panic!("{error:?}") };
                assert_eq!(*victim, owner.id());
                assert_eq!(cycle.iter().max(), Some(victim));
                assert!(error.retriable());
                victims.push(*victim);
            }
            owner.release_all();
        }
        std::thread::yield_now();
    }
    victims
}

/// `count` owners, each of which waits for the next one's key. The last to wait is `last`.
fn ring(manager: &Arc<LockManager>, count: usize, last: usize) -> Vec<Working> {
    let mut owners: Vec<Option<LockOwner>> = Vec::new();
    for n in 0..count {
        let mut owner = LockOwner::begin(manager, n as u64 + 1);
        owner.lock_key(n as u32, &key(n), X).unwrap();
        owners.push(Some(owner));
    }
    let order = (0..count).filter(|n| *n != last).chain([last]);
    let mut working = Vec::new();
    for n in order.collect::<Vec<_>>() {
        let owner = owners[n].take().unwrap();
        let next = (n + 1) % count;
        working.push(waits(manager, owner, move |o| o.lock_key(next as u32, &key(next), X)));
    }
    working
}

#[test]
fn of_a_ring_the_youngest_gives_way_whoever_closes_it() {
    for count in 2..=5 {
        for last in 0..count {
            let manager = manager();
            let victims = end(ring(&manager, count, last));
            assert_eq!(victims, [count as u64], "ring of {count} closed by {last}");
            assert_eq!((manager.counts().deadlocks, manager.keys_locked()), (1, 0));
        }
    }
}

#[test]
fn of_two_readers_that_want_to_write_one_gives_way() {
    let manager = manager();
    let mut a = LockOwner::begin(&manager, 1);
    let mut b = LockOwner::begin(&manager, 2);
    a.lock_key(7, b"k", S).unwrap();
    b.lock_key(7, b"k", S).unwrap();
    let a = waits(&manager, a, |a| a.lock_key(7, b"k", X));
    let b = waits(&manager, b, |b| b.lock_key(7, b"k", X));
    assert_eq!(end(vec![a, b]), [2]);
}

#[test]
fn a_reader_that_wants_to_write_passes_those_who_wait_and_there_is_no_circle() {
    let manager = manager();
    let mut a = LockOwner::begin(&manager, 1);
    let mut b = LockOwner::begin(&manager, 2);
    a.lock_key(7, b"k", S).unwrap();
    b.lock_key(7, b"k", S).unwrap();
    let c = waits(&manager, LockOwner::begin(&manager, 3), |c| c.lock_key(7, b"k", X));
    let a = waits(&manager, a, |a| a.lock_key(7, b"k", X));
    b.release_all();
    let (mut a, got) = a.done();
    got.unwrap();
    assert!(c.is_waiting());
    a.release_all();
    c.done().1.unwrap();
    assert_eq!(manager.counts().deadlocks, 0);
}

#[test]
fn circles_through_the_order_of_a_queue_are_found() {
    // 1 reads k; 2 waits to write it; 3 would read it but for 2, and has what 1 wants.
    let manager = manager();
    let mut one = LockOwner::begin(&manager, 1);
    let mut three = LockOwner::begin(&manager, 3);
    one.lock_key(7, b"k", S).unwrap();
    three.lock_key(7, b"l", X).unwrap();
    let two = waits(&manager, LockOwner::begin(&manager, 2), |o| o.lock_key(7, b"k", X));
    let three = waits(&manager, three, |o| o.lock_key(7, b"k", S));
    let one = waits(&manager, one, |o| o.lock_key(7, b"l", X));
    assert_eq!(end(vec![one, two, three]), [3]);
}

#[test]
fn circles_through_trees_are_found() {
    let manager = manager();
    let mut a = LockOwner::begin(&manager, 1);
    let mut b = LockOwner::begin(&manager, 2);
    a.lock_key(7, b"k", X).unwrap();
    b.lock_tree(8, X).unwrap();
    let a = waits(&manager, a, |a| a.lock_key(8, b"k", S));
    let b = waits(&manager, b, |b| b.lock_tree(7, S));
    assert_eq!(end(vec![a, b]), [2]);

    // Two that write in a tree and then want all of it.
    let mut a = LockOwner::begin(&manager, 1);
    let mut b = LockOwner::begin(&manager, 2);
    a.lock_key(7, b"k", X).unwrap();
    b.lock_key(7, b"l", X).unwrap();
    let a = waits(&manager, a, |a| a.lock_tree(7, S));
    let b = waits(&manager, b, |b| b.lock_tree(7, X));
    assert_eq!(end(vec![a, b]), [2]);
}

#[test]
fn circles_through_ranges_are_found() {
    // Each has read a range into which the other wants to write.
    let manager = manager();
    let mut a = LockOwner::begin(&manager, 1);
    let mut b = LockOwner::begin(&manager, 2);
    a.lock_range(7, Included(b"a"), Included(b"c")).unwrap();
    b.lock_range(7, Included(b"x"), Included(b"z")).unwrap();
    let a = waits(&manager, a, |a| a.lock_key(7, b"y", X));
    let b = waits(&manager, b, |b| b.lock_key(7, b"b", X));
    assert_eq!(end(vec![a, b]), [2]);

    // One has written where the other wants to read, and the other way round.
    let mut a = LockOwner::begin(&manager, 1);
    let mut b = LockOwner::begin(&manager, 2);
    a.lock_key(7, b"b", X).unwrap();
    b.lock_key(7, b"y", X).unwrap();
    let b = waits(&manager, b, |b| b.lock_range(7, Included(b"a"), Included(b"c")));
    let a = waits(&manager, a, |a| a.lock_range(7, Included(b"x"), Included(b"z")));
    assert_eq!(end(vec![a, b]), [2]);

    // A range and a key.
    let mut a = LockOwner::begin(&manager, 1);
    let mut b = LockOwner::begin(&manager, 2);
    a.lock_key(8, b"k", X).unwrap();
    b.lock_range(7, Included(b"a"), Included(b"c")).unwrap();
    let a = waits(&manager, a, |a| a.lock_key(7, b"b", X));
    let b = waits(&manager, b, |b| b.lock_key(8, b"k", S));
    assert_eq!(end(vec![a, b]), [2]);
}

#[test]
fn one_that_closes_two_circles_breaks_both() {
    // 2 and 3 wait for 1's keys; 1 then wants what both have read.
    let manager = manager();
    let mut one = LockOwner::begin(&manager, 1);
    one.lock_key(7, b"a", X).unwrap();
    one.lock_key(7, b"b", X).unwrap();
    let mut working = Vec::new();
    for (id, key) in [(2, b"a"), (3, b"b")] {
        let mut owner = LockOwner::begin(&manager, id);
        owner.lock_key(7, b"shared", S).unwrap();
        working.push(waits(&manager, owner, |o| o.lock_key(7, key, X)));
    }
    working.push(waits(&manager, one, |o| o.lock_key(7, b"shared", X)));
    let mut victims = end(working);
    victims.sort_unstable();
    assert_eq!(victims, [2, 3]);
}
