//! Locks that are granted at once, that wait, and that are released.

use std::ops::Bound::Included;
use std::time::Duration;

use millpond::internals::lock::LockMode::{IS, IX, S, SIX, X};
use millpond::internals::lock::{
    LockError, LockManager, LockMode, LockOptions, LockOwner, TreeName,
};

use crate::lock::scene::{manager, waits};

const MODES: [LockMode; 5] = [IS, IX, S, SIX, X];

fn goes(a: LockMode, b: LockMode) -> bool {
    matches!((a, b), (IS, IS | IX | S | SIX) | (IX | S | SIX, IS) | (IX, IX) | (S, S))
}

#[test]
fn trees_are_locked_together_as_the_matrix_says() {
    let manager = manager();
    for a in MODES {
        for b in MODES {
            let mut first = LockOwner::begin(&manager, 1);
            let mut second = LockOwner::begin(&manager, 2);
            second.set_wait_max(Duration::ZERO);
            first.lock_tree(7, a).unwrap();
            let got = second.lock_tree(7, b);
            assert_eq!(got.is_ok(), goes(a, b), "{a:?} and {b:?}: {got:?}");
            if let Err(error) = got {
                let LockError::Timeout { tree: TreeName { id: 7, .. }, holders, .. } = error else {
                    panic!("{error:?}")
                };
                assert_eq!(holders, [1]);
            }
            // What the first has released, the second gets.
            first.release_all();
            second.lock_tree(7, b).unwrap();
        }
    }
}

#[test]
fn keys_are_shared_by_readers_and_by_nobody_else() {
    let manager = manager();
    for (a, b) in [(S, S), (S, X), (X, S), (X, X)] {
        let mut first = LockOwner::begin(&manager, 1);
        let mut second = LockOwner::begin(&manager, 2);
        second.set_wait_max(Duration::ZERO);
        first.lock_key(7, b"k", a).unwrap();
        first.lock_key(7, b"k", a).unwrap();
        assert_eq!(second.lock_key(7, b"k", b).is_ok(), (a, b) == (S, S));
        second.lock_key(7, b"other", X).unwrap();
        second.lock_key(8, b"k", X).unwrap();
        assert_eq!(first.keys_held(), 1);
    }
    assert_eq!((manager.keys_locked(), manager.writers()), (0, 0));
}

#[test]
fn a_tree_that_is_locked_needs_no_locks_on_its_keys() {
    let manager = manager();
    let mut owner = LockOwner::begin(&manager, 1);
    owner.lock_tree(7, X).unwrap();
    owner.lock_key(7, b"k", X).unwrap();
    owner.lock_tree(8, S).unwrap();
    owner.lock_key(8, b"k", S).unwrap();
    assert_eq!(owner.keys_held(), 0);
    owner.lock_key(8, b"k", X).unwrap();
    assert_eq!(owner.keys_held(), 1);

    let mut other = LockOwner::begin(&manager, 2);
    other.set_wait_max(Duration::ZERO);
    assert!(other.lock_key(7, b"elsewhere", S).is_err());
    assert!(other.lock_key(8, b"elsewhere", X).is_err());
    assert!(other.lock_key(8, b"k", S).is_err());
    other.lock_key(8, b"elsewhere", S).unwrap();
}

#[test]
fn a_reader_that_was_alone_becomes_a_writer() {
    let manager = manager();
    let mut owner = LockOwner::begin(&manager, 1);
    owner.lock_key(7, b"k", S).unwrap();
    owner.lock_key(7, b"k", X).unwrap();
    assert_eq!(owner.keys_held(), 1);
    let mut other = LockOwner::begin(&manager, 2);
    other.set_wait_max(Duration::ZERO);
    assert!(other.lock_key(7, b"k", S).is_err());
    owner.release_all();
    other.lock_key(7, b"k", S).unwrap();
}

#[test]
fn a_stream_of_readers_does_not_pass_a_writer_that_waits() {
    let manager = manager();
    let mut reader = LockOwner::begin(&manager, 1);
    reader.lock_key(7, b"k", S).unwrap();
    let writer = waits(&manager, LockOwner::begin(&manager, 2), |w| w.lock_key(7, b"k", X));
    let late = waits(&manager, LockOwner::begin(&manager, 3), |r| r.lock_key(7, b"k", S));
    reader.release_all();
    let (mut writer, got) = writer.done();
    got.unwrap();
    assert!(late.is_waiting());
    writer.release_all();
    late.done().1.unwrap();
}

#[test]
fn nobody_new_enters_a_tree_that_somebody_waits_to_lock_as_a_whole() {
    let manager = manager();
    let mut writer = LockOwner::begin(&manager, 1);
    writer.lock_key(7, b"k", X).unwrap();
    let whole = waits(&manager, LockOwner::begin(&manager, 2), |w| w.lock_tree(7, S));
    let late = waits(&manager, LockOwner::begin(&manager, 3), |w| w.lock_key(7, b"l", X));
    // Readers go with the one that waits, and who is in already goes on.
    LockOwner::begin(&manager, 4).lock_key(7, b"m", S).unwrap();
    writer.lock_key(7, b"n", X).unwrap();
    writer.release_all();
    let (mut whole, got) = whole.done();
    got.unwrap();
    assert!(late.is_waiting());
    whole.release_all();
    late.done().1.unwrap();
}

#[test]
fn one_that_gives_up_lets_those_behind_it_pass() {
    let manager = manager();
    let mut reader = LockOwner::begin(&manager, 1);
    reader.lock_key(7, b"k", S).unwrap();
    let mut impatient = LockOwner::begin(&manager, 2);
    impatient.set_wait_max(Duration::from_millis(50));
    let impatient = waits(&manager, impatient, |w| w.lock_key(7, b"k", X));
    // It waits behind the writer, unless that has given up meanwhile.
    let mut late = LockOwner::begin(&manager, 3);
    let behind = std::thread::spawn(move || late.lock_key(7, b"k", S));
    let error = impatient.done().1.unwrap_err();
    assert!(matches!(&error, LockError::Timeout { holders, .. } if holders == &[1]));
    assert!(error.retriable());
    behind.join().unwrap().unwrap();
    assert_eq!(manager.counts().timeouts, 1);
}

#[test]
fn shared_locks_end_with_the_statement_if_they_need_not_be_repeatable() {
    let manager = manager();
    let mut owner = LockOwner::begin(&manager, 1);
    let mut other = LockOwner::begin(&manager, 2);
    owner.lock_key(7, b"read", S).unwrap();
    owner.lock_key(7, b"raised", S).unwrap();
    owner.lock_key(7, b"raised", X).unwrap();
    owner.lock_key(7, b"read too", S).unwrap();
    assert!(owner.release_shared(7, b"read"));
    assert!(!owner.release_shared(7, b"read"));
    assert!(!owner.release_shared(7, b"raised"));
    other.lock_key(7, b"read", X).unwrap();

    use std::ops::Bound::Included;
    owner.lock_range(7, Included(b"s"), Included(b"t")).unwrap();
    owner.release_all_shared();
    assert_eq!(owner.keys_held(), 1);
    other.lock_key(7, b"read too", X).unwrap();
    other.lock_key(7, b"s", X).unwrap();
    other.set_wait_max(Duration::ZERO);
    assert!(other.lock_key(7, b"raised", X).is_err());
}

#[test]
fn reads_know_whether_somebody_has_written_meanwhile() {
    let manager = manager();
    let token = manager.quiet().unwrap();
    let mut owner = LockOwner::begin(&manager, 1);
    owner.lock_key(7, b"k", S).unwrap();
    assert!(manager.still_quiet(token));
    owner.lock_key(7, b"k", X).unwrap();
    owner.lock_key(7, b"l", X).unwrap();
    assert!(!manager.still_quiet(token));
    assert!(manager.quiet().is_none());
    assert_eq!((manager.writers(), manager.generation()), (1, 1));
    owner.release_all();
    assert!(!manager.still_quiet(token));
    assert_eq!((manager.writers(), manager.generation()), (0, 1));
    assert!(manager.still_quiet(manager.quiet().unwrap()));
}

#[test]
fn settings_that_cannot_be_become_the_nearest_that_can() {
    let options = LockOptions::default().shards(0).memory_bytes(0).escalate_after(0);
    let manager = LockManager::new(options);
    let options = manager.options();
    assert_eq!((options.shards, options.memory_bytes), (1, 1 << 20));
    assert_eq!(options.escalate_after, 1);
    assert_eq!(LockManager::new(LockOptions::default().shards(9)).options().shards, 16);
}

#[test]
fn nobody_waits_for_one_that_keeps_its_locks_for_good() {
    let manager = manager();
    let mut stranded = LockOwner::begin(&manager, 1);
    stranded.lock_key(7, b"k", X).unwrap();
    let patient = |id| {
        let mut owner = LockOwner::begin(&manager, id);
        owner.set_wait_max(Duration::MAX);
        owner
    };
    let asleep = waits(&manager, patient(2), |w| w.lock_key(7, b"k", S));
    stranded.strand();
    for got in [asleep.done().1, patient(3).lock_key(7, b"k", X), patient(4).lock_tree(7, S)] {
        let error = got.unwrap_err();
        let is_stranded = |tree: &TreeName, holder| tree.id == 7 && holder == 1;
        assert!(
            matches!(&error, LockError::Stranded { holder, tree } if is_stranded(tree, *holder)),
            "{error:?}"
        );
        assert!(!error.retriable());
    }
    // What it does not keep is available.
    patient(5).lock_key(7, b"other", X).unwrap();
}

/// A heap tries an id before it assigns it, without waiting for an owner of a lock on only that id.
#[test]
fn a_key_is_tried_without_waiting_and_looked_at_without_a_lock() {
    let manager = manager();
    let begin = |id| LockOwner::begin(&manager, id);
    let (mut first, mut second) = (begin(1), begin(2));
    second.announce_write(7).unwrap();
    assert!(second.is_writing() && second.is_free(7, b"k"));
    assert!(first.try_lock_key(7, b"k").unwrap());
    assert!(first.try_lock_key(7, b"k").unwrap(), "its own");
    assert!(!second.is_free(7, b"k") && second.is_free(7, b"l"));
    assert!(!second.try_lock_key(7, b"k").unwrap());
    first.release_all();
    assert!(second.is_free(7, b"k") && second.try_lock_key(7, b"k").unwrap());
    second.release_all();
    // Readers of the key, of a range, and of all.
    first.lock_key(7, b"k", S).unwrap();
    assert!(!second.try_lock_key(7, b"k").unwrap());
    assert!(first.try_lock_key(7, b"k").unwrap(), "what only it has read");
    first.release_all();
    first.lock_range(7, Included(b"a"), Included(b"m")).unwrap();
    second.announce_write(7).unwrap();
    assert!(!second.is_free(7, b"k") && second.is_free(7, b"n"));
    assert!(!second.try_lock_key(7, b"k").unwrap() && second.try_lock_key(7, b"n").unwrap());
    // The range sees what was locked so.
    first.release_all();
    let asleep =
        waits(&manager, first, |first| first.lock_range(7, Included(b"m"), Included(b"z")));
    second.release_all();
    let (mut first, locked) = asleep.done();
    locked.unwrap();
    first.release_all();
    first.lock_tree(7, X).unwrap();
    assert!(first.try_lock_key(7, b"k").unwrap() && first.keys_held() == 0);
    let asleep = waits(&manager, second, |second| second.try_lock_key(7, b"k").map(drop));
    first.release_all();
    let (mut second, locked) = asleep.done();
    locked.unwrap();
    second.release_all();
    assert_eq!((manager.keys_locked(), manager.writers()), (0, 0));
}
