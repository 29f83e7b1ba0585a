//! Logs that make no sense: errors that say where, and never a panic. And what a sound log asks of
//! redo: each page once, in as many passes as memory allows.

use std::sync::Arc;

use millpond::internals::io::PageStore;
use millpond::internals::log::{Log, LogError, Record};
use millpond::internals::page::record_body::{
    OrphanRoot, put_difference, put_freed, put_image, put_orphaned, put_physiological, put_taken,
};
use millpond::internals::pool::mini_transaction::kind;
use millpond::internals::recovery::{
    Active, Checkpoint, Recovered, RecoveryError, RedoOptions, recover,
};
use millpond_base::{Lsn, PageId, Reason};
use millpond_device::MemoryDevice;

use super::world::{SIZE, apply_note, log_options};

/// A store whose log has a checkpoint and these records behind it, recovered.
struct Story {
    store: PageStore,
    log: Log,
}

impl Story {
    fn new() -> Story {
        let store = PageStore::create_on(Arc::new(MemoryDevice::new()), SIZE).unwrap();
        let log = Log::create(Arc::new(MemoryDevice::new()), store.uuid(), Lsn(0), &log_options())
            .unwrap();
        let story = Story { store, log };
        story.checkpoint(Vec::new());
        story
    }

    fn checkpoint(&self, active: Vec<Active>) {
        let (at, taken) = (self.log.tail(), self.store.taken_words());
        let pages = self.store.pages();
        let checkpoint =
            Checkpoint { redo: at, begin: at, pages, taken, active, ..Checkpoint::default() };
        let position = checkpoint.write(&self.log).unwrap();
        self.store.set_log_position(position, None, None).unwrap();
    }

    fn record(&self, kind: u8, body: &[u8]) -> Lsn {
        self.log.append(&Record { kind, tx: 7, prev: Lsn(0), parts: &[body] }).start
    }

    fn recover(&self, memory_bytes: usize) -> Result<Recovered, RecoveryError> {
        let options = RedoOptions { threads: 2, memory_bytes };
        recover(&self.store, &self.log, apply_note, &options, &mut |_| {})
    }

    fn error(&self) -> RecoveryError {
        let error = self.recover(1 << 20).unwrap_err();
        assert!(!error.to_string().is_empty());
        error
    }
}

fn page(id: u64, filler: u8) -> Vec<u8> {
    let mut bytes = vec![filler; SIZE.bytes()];
    bytes[16..24].copy_from_slice(&id.to_le_bytes());
    bytes
}

fn image(id: u64, filler: u8) -> Vec<u8> {
    let mut body = Vec::new();
    put_image(&mut body, PageId(id), &page(id, filler));
    body
}

#[test]
fn a_body_that_makes_no_sense_is_named_with_its_place() {
    let story = Story::new();
    let mut body = image(5, 1);
    let byte = body.len();
    body.extend([99, 1, 2]);
    let at = story.record(kind::PAGES, &body);
    assert_eq!(story.error(), RecoveryError::Body { at, byte });
}

#[test]
fn a_kind_of_record_that_nobody_knows_is_refused() {
    let story = Story::new();
    let at = story.record(29, b"what is it");
    assert_eq!(story.error(), RecoveryError::Kind { at, kind: 29 });
}

#[test]
fn records_that_do_not_fit_their_pages_are_named() {
    let damaged = |body: &[u8]| {
        let story = Story::new();
        story.record(kind::PAGES, &image(5, 1));
        let at = story.record(kind::PAGES, body);
        match story.error() {
            RecoveryError::Damaged { lsn, page, what } => {
                assert_eq!(lsn, at);
                (page, what)
            }
            other => panic!("{other}"),
        }
    };
    let mut body = Vec::new();
    let (before, mut after) = (page(5, 1).repeat(2), page(5, 1).repeat(2));
    after[1000] = 9;
    assert!(put_difference(&mut body, PageId(5), &before, &after));
    assert_eq!(damaged(&body), (PageId(5), "its difference is longer than a page"));
    body.clear();
    put_physiological(&mut body, PageId(5), &[0, 200, 9]);
    assert_eq!(damaged(&body), (PageId(5), "its redo record does not fit the page"));
    body.clear();
    put_image(&mut body, PageId(6), &page(6, 1).repeat(2));
    assert_eq!(damaged(&body), (PageId(6), "its image is longer than a page"));
    body.clear();
    put_image(&mut body, PageId(6), &page(7, 1));
    assert_eq!(damaged(&body).0, PageId(6));
    assert_eq!(damaged(&image(1 << 41, 1)).0, PageId(1 << 41));
    body.clear();
    put_physiological(&mut body, PageId(1 << 40), &[40, 0, 1]);
    assert_eq!(damaged(&body).0, PageId(1 << 40));
    body.clear();
    assert!(put_difference(&mut body, PageId(1 << 40), &page(5, 1), &page(5, 2)));
    assert_eq!(damaged(&body).0, PageId(1 << 40));
    body.clear();
    put_taken(&mut body, PageId(u64::MAX));
    assert_eq!(damaged(&body).0, PageId(u64::MAX));
    body.clear();
    put_freed(&mut body, PageId(u64::MAX));
    assert_eq!(damaged(&body).0, PageId(u64::MAX));
    body.clear();
    put_orphaned(&mut body, PageId(u64::MAX), OrphanRoot { kind: 3, stamp: 9 });
    assert_eq!(damaged(&body).0, PageId(u64::MAX));
}

#[test]
fn a_superblock_that_names_no_checkpoint_is_refused() {
    let story = Story::new();
    let checkpoint = story.store.log_position();
    let at = story.record(kind::PAGES, &image(5, 1));
    story.store.set_log_position(at, None, None).unwrap();
    assert_eq!(story.error(), RecoveryError::NoCheckpoint { at, kind: kind::PAGES });
    story.store.set_log_position(Lsn(at.0 + 8), None, None).unwrap();
    assert!(matches!(story.error(), RecoveryError::Log(LogError::NoRecord { .. })));

    // One that is chained to something else, one to nothing, one to another checkpoint, one cut
    // short.
    for prev in [at, Lsn(4096), checkpoint, Lsn(0)] {
        let record = Record { kind: kind::CHECKPOINT, tx: 0, prev, parts: &[b"?"] };
        let at = story.log.append(&record).start;
        story.store.set_log_position(at, None, None).unwrap();
        let error = story.error();
        assert!(matches!(error, RecoveryError::Checkpoint { at: place, .. } if place == at));
    }
    story.store.set_log_position(checkpoint, None, None).unwrap();
    story.recover(1 << 20).unwrap();
}

#[test]
fn a_transaction_whose_last_record_says_nothing_of_undoing_is_refused() {
    let story = Story::new();
    let last = story.record(kind::PAGES, &image(5, 1));
    story.checkpoint(vec![Active { tx: 7, last }]);
    assert_eq!(story.error(), RecoveryError::Kind { at: last, kind: kind::PAGES });
}

#[test]
fn bodies_of_any_bytes_are_errors_or_not_and_never_a_panic() {
    let mut random = fastrand::Rng::with_seed(21);
    for _ in 0..300 {
        let story = Story::new();
        for _ in 0..4 {
            let mut body = image(random.u64(2..9), 3);
            put_physiological(&mut body, PageId(random.u64(2..9)), &[40, 0, 1]);
            for _ in 0..random.usize(0..3) {
                let at = random.usize(0..body.len());
                body[at] = random.u8(..);
            }
            body.truncate(random.usize(1..body.len() + 200));
            story.record([kind::PAGES, kind::UPDATE][random.usize(0..2)], &body);
        }
        let _ = story.recover(1 << 20);
    }
}

#[test]
fn each_page_is_written_once_in_as_many_passes_as_memory_asks_for() {
    for (memory_pages, passes) in [(1600, 1), (400, 4), (1, 100)] {
        let story = Story::new();
        let pages = 100;
        for id in 2..2 + pages {
            story.record(kind::PAGES, &image(id, 1));
        }
        for value in 0..3 {
            for id in 2..2 + pages {
                let mut body = Vec::new();
                put_physiological(&mut body, PageId(id), &[40, 0, value]);
                story.record(kind::PAGES, &body);
            }
        }
        let found = story.recover(memory_pages * SIZE.bytes()).unwrap();
        assert_eq!((found.redone.pages, found.redone.passes), (pages, passes));
        assert_eq!(story.store.counts().writes_for(Reason::Recov), pages);
        for id in 2..2 + pages {
            let mut bytes = page(0, 0);
            story.store.read(PageId(id), &mut bytes).unwrap();
            assert_eq!((bytes[40], bytes[41]), (2, 1));
        }
    }
}

#[test]
fn what_was_before_a_page_was_freed_or_had_an_image_is_not_looked_at() {
    let story = Story::new();
    let mut body = Vec::new();
    // Nonsense, if anybody tried it.
    put_physiological(&mut body, PageId(5), b"nonsense");
    story.record(kind::PAGES, &body);
    story.record(kind::PAGES, &image(5, 1));
    story.record(kind::PAGES, &body);
    story.record(kind::PAGES, &image(5, 2));
    story.record(kind::PAGES, &image(6, 1));
    story.record(kind::PAGES, &{
        let mut body = Vec::new();
        put_freed(&mut body, PageId(6));
        body
    });
    let found = story.recover(1 << 20).unwrap();
    assert_eq!(found.redone.pages, 1);
    let mut bytes = page(0, 0);
    story.store.read(PageId(5), &mut bytes).unwrap();
    assert_eq!(bytes[100], 2);
    assert!(story.store.read(PageId(6), &mut bytes).is_err(), "nothing was written there");
}
