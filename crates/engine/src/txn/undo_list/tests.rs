//! Tests of undo lists.

use millpond_device::MemoryDevice;

use super::*;
use crate::io::SpillFile;
use crate::log::{Log, LogOptions};

fn kinds() -> [Before<'static>; 3] {
    [Before::Absent, Before::Value(b"old"), Before::Part { offset: 3, bytes: b"xy" }]
}

fn put(list: &mut UndoList, at: u64, before: Before<'_>) {
    let start = list.end();
    Undo { owner: at as u32, key: &at.to_be_bytes(), before, removes: false }.put(list.room());
    list.record(start, Lsn(at), 0);
}

#[test]
fn changes_are_undone_from_the_newest() {
    let mut list = UndoList::default();
    for (at, before) in kinds().into_iter().enumerate() {
        put(&mut list, at as u64, before);
    }
    // A change that was not made leaves nothing.
    list.record(list.end(), Lsn(9), 0);
    assert_eq!(list.len(), 3);
    for at in (0..3).rev() {
        let Newest { prev, undo, .. } = list.newest().unwrap().unwrap();
        assert_eq!((prev, undo.owner), (Lsn(at), at as u32));
        assert_eq!(undo.before, kinds()[at as usize]);
        list.pop();
    }
    assert!(list.is_empty() && list.end() == 0 && list.newest().unwrap().is_none());
}

/// Returns the entries that [`UndoList::each`] passes to its closure, as numbers.
fn numbers(list: &UndoList, from: usize, forward: bool) -> Vec<u64> {
    let mut seen = Vec::new();
    let each = list.each(from, forward, |(owner, key, before, _)| {
        assert_eq!(before, kinds()[owner as usize % 3]);
        seen.push(u64::from_be_bytes(key.try_into().unwrap()));
        Ok(ControlFlow::Continue(()))
    });
    each.unwrap();
    seen
}

#[test]
fn chunks_that_do_not_fit_are_spilled_and_come_back() {
    const CHANGES: u64 = 30_000;
    let folder = tempfile::tempdir().unwrap();
    let spill = SpillFile::beside(&folder.path().join("s"), 1 << 30);
    let room = Arc::new(UndoRoom::new(3 * CHUNK, Some(spill.clone())));
    let mut list = UndoList::default();
    for at in 0..CHANGES {
        list.make_room(&room).unwrap();
        put(&mut list, at, kinds()[at as usize % 3]);
    }
    assert!(room.used() <= 4 * CHUNK && spill.bytes() > 5 * CHUNK as u64);
    for from in [0, 1, 2_000, 17_123, CHANGES - 1, CHANGES] {
        let mut expected: Vec<u64> = (from..CHANGES).collect();
        assert_eq!(numbers(&list, from as usize, true), expected);
        expected.reverse();
        assert_eq!(numbers(&list, from as usize, false), expected);
    }
    for at in (CHANGES / 3..CHANGES).rev() {
        let Newest { prev, undo, .. } = list.newest().unwrap().unwrap();
        assert_eq!((prev, undo.owner), (Lsn(at), at as u32));
        list.pop();
    }
    assert_eq!(list.len() as u64, CHANGES / 3);
    for at in CHANGES / 3..CHANGES {
        list.make_room(&room).unwrap();
        put(&mut list, at, kinds()[at as usize % 3]);
    }
    assert_eq!(numbers(&list, 0, true), (0..CHANGES).collect::<Vec<_>>());
    drop(list);
    assert_eq!((room.used(), spill.bytes()), (0, 8));
}

#[test]
fn what_fits_nowhere_is_refused_before_the_change_and_the_rest_can_be_undone() {
    let folder = tempfile::tempdir().unwrap();
    let spill = SpillFile::beside(&folder.path().join("s"), 2 * CHUNK as u64);
    for spill in [None, Some(spill)] {
        let room = Arc::new(UndoRoom::new(2 * CHUNK, spill));
        let (mut list, mut done) = (UndoList::default(), 0);
        let error = loop {
            match list.make_room(&room) {
                Ok(()) => put(&mut list, done, kinds()[done as usize % 3]),
                Err(error) => break error,
            }
            done += 1;
        };
        assert!(matches!(error, TxnError::UndoTooLarge { .. }), "{error}");
        assert!(list.make_room(&room).is_err());
        while let Some(newest) = list.newest().unwrap() {
            done -= 1;
            assert_eq!(newest.prev, Lsn(done));
            list.pop();
        }
        assert_eq!((done, room.used()), (0, 0));
    }
}

#[test]
fn room_in_the_log_is_reserved_ahead_of_changes_and_given_back() {
    const CHANGES: u64 = 3000;
    let options = LogOptions::default();
    let log = Log::create(Arc::new(MemoryDevice::new()), [7; 16], Lsn(0), &options).unwrap();
    let log = Arc::new(log);
    let room = Arc::new(UndoRoom::new(1 << 20, None).logged(Some(log.clone()), 4096));
    let mut list = UndoList::default();
    list.claim_ahead(&room);
    let first = log.reserved();
    assert!(first >= 16 << 10, "{first}");
    for at in 0..CHANGES {
        list.make_room(&room).unwrap();
        put(&mut list, at, kinds()[at as usize % 3]);
        assert!(log.reserved() > (at + 1) * CLR_BYTES as u64, "change {at}");
    }
    while list.newest().unwrap().is_some() {
        list.pop();
    }
    // The thread's next transaction has the first reservation, unless the log is full.
    list.clear();
    assert_eq!(log.reserved(), first);
    list.unclaim();
    assert_eq!(log.reserved(), 0);
    list.make_room(&room).unwrap();
    put(&mut list, CHANGES, kinds()[0]);
    list.unclaim();
    assert_eq!(log.reserved(), first);
    drop(list);
    assert_eq!(log.reserved(), 0);
}
