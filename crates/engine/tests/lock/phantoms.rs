//! Ranges against writes in them, whichever comes first.

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::time::Duration;

use millpond::internals::lock::LockMode::{S, X};
use millpond::internals::lock::{LockError, LockOwner};

use crate::lock::scene::{manager, waits};

#[test]
fn a_range_keeps_others_from_writing_in_it_and_nowhere_else() {
    let manager = manager();
    let mut scanner = LockOwner::begin(&manager, 1);
    scanner.lock_range(7, Included(b"d"), Excluded(b"k")).unwrap();
    let mut other = LockOwner::begin(&manager, 2);
    other.set_wait_max(Duration::ZERO);
    for (key, free) in [(b"c", true), (b"d", false), (b"e", false), (b"j", false), (b"k", true)] {
        let got = other.lock_key(7, key, X);
        assert_eq!(got.is_ok(), free, "{key:?}: {got:?}");
    }
    other.lock_key(7, b"f", S).unwrap();
    other.lock_key(8, b"f", X).unwrap();
    // A write that was refused is locked by nobody.
    scanner.lock_key(7, b"e", X).unwrap();
    scanner.release_all();
    other.lock_key(7, b"e", X).unwrap();
}

#[test]
fn a_range_waits_for_writes_in_it_whether_their_keys_are_there_or_not() {
    let manager = manager();
    let mut writer = LockOwner::begin(&manager, 1);
    writer.lock_key(7, b"x", X).unwrap();
    writer.lock_key(7, b"f", S).unwrap();
    LockOwner::begin(&manager, 9).lock_range(7, Included(b"a"), Included(b"w")).unwrap();
    // A key that was read before it was written counts, too.
    writer.lock_key(7, b"f", X).unwrap();
    let mut scanner = LockOwner::begin(&manager, 2);
    scanner.set_wait_max(Duration::ZERO);
    for (lower, upper, free) in
        [(b"a", b"e", true), (b"a", b"f", false), (b"f", b"g", false), (b"g", b"w", true)]
    {
        let got = scanner.lock_range(7, Included(lower), Included(upper));
        assert_eq!(got.is_ok(), free, "{lower:?} to {upper:?}: {got:?}");
    }
    assert!(scanner.lock_range(7, Excluded(b"w"), Unbounded).is_err());
    assert!(matches!(
        scanner.lock_range(7, Unbounded, Unbounded),
        Err(LockError::Timeout { holders, .. }) if holders == [1]
    ));
    writer.release_all();
    scanner.lock_range(7, Unbounded, Unbounded).unwrap();
}

#[test]
fn a_writer_that_waits_for_a_range_has_not_locked_its_key() {
    let manager = manager();
    let mut scanner = LockOwner::begin(&manager, 1);
    scanner.lock_range(7, Included(b"a"), Included(b"f")).unwrap();
    let mut writer = LockOwner::begin(&manager, 2);
    writer.lock_key(7, b"d", S).unwrap();
    let writer = waits(&manager, writer, |w| {
        w.lock_key(7, b"c", X)?;
        w.lock_key(7, b"d", X)
    });
    scanner.lock_key(7, b"c", X).unwrap();
    LockOwner::begin(&manager, 3).lock_key(7, b"d", S).unwrap();
    scanner.release_all();
    let (mut writer, got) = writer.done();
    got.unwrap();
    assert_eq!(writer.keys_held(), 2);
    let mut other = LockOwner::begin(&manager, 4);
    other.set_wait_max(Duration::ZERO);
    assert!(other.lock_key(7, b"c", S).is_err());
    assert!(other.lock_range(7, Included(b"c"), Included(b"c")).is_err());
    assert!(other.lock_range(7, Included(b"d"), Included(b"e")).is_err());
    writer.release_all();
}

#[test]
fn scanners_do_not_pass_a_writer_that_waits_for_a_scanner() {
    let manager = manager();
    let mut first = LockOwner::begin(&manager, 1);
    first.lock_range(7, Included(b"a"), Included(b"f")).unwrap();
    let writer = waits(&manager, LockOwner::begin(&manager, 2), |w| w.lock_key(7, b"c", X));
    let late = waits(&manager, LockOwner::begin(&manager, 3), |s| {
        s.lock_range(7, Included(b"b"), Included(b"d"))
    });
    // Who has the key in a range already goes on.
    first.lock_range(7, Included(b"c"), Included(b"z")).unwrap();
    LockOwner::begin(&manager, 4).lock_range(7, Included(b"d"), Included(b"e")).unwrap();
    first.release_all();
    let (mut writer, got) = writer.done();
    got.unwrap();
    writer.release_all();
    late.done().1.unwrap();
}

#[test]
fn a_writer_goes_on_in_a_range_whose_scanner_waits_for_it() {
    let manager = manager();
    let mut writer = LockOwner::begin(&manager, 1);
    writer.lock_key(7, b"b", X).unwrap();
    let scanner = waits(&manager, LockOwner::begin(&manager, 2), |s| {
        s.lock_range(7, Included(b"a"), Included(b"f"))
    });
    writer.lock_key(7, b"c", X).unwrap();
    // Others let the scanner go first.
    let other = waits(&manager, LockOwner::begin(&manager, 3), |w| w.lock_key(7, b"d", X));
    writer.release_all();
    let (mut scanner, got) = scanner.done();
    got.unwrap();
    assert!(other.is_waiting());
    scanner.release_all();
    other.done().1.unwrap();
}

#[test]
fn the_batches_of_a_scan_become_one_range_and_reads_in_it_are_free() {
    let manager = manager();
    let mut scanner = LockOwner::begin(&manager, 1);
    let reserved = manager.bytes();
    for n in 0..10_000u32 {
        let (from, to) = (n.to_be_bytes(), (n + 1).to_be_bytes());
        scanner.lock_range(7, Excluded(&from), Included(&to)).unwrap();
        scanner.lock_key(7, &to, S).unwrap();
    }
    assert_eq!(scanner.keys_held(), 0);
    assert!(manager.bytes() - reserved <= 16 << 10);
    let mut other = LockOwner::begin(&manager, 2);
    other.set_wait_max(Duration::ZERO);
    assert!(other.lock_key(7, &5000u32.to_be_bytes(), X).is_err());
    other.lock_key(7, &0u32.to_be_bytes(), X).unwrap();
    other.lock_key(7, &10_001u32.to_be_bytes(), X).unwrap();
}
