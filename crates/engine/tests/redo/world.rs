//! A store, its log, and their expected state after a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use millpond::internals::io::{PageStore, PageWrite};
use millpond::internals::log::{Log, LogOptions, Record};
use millpond::internals::page::PageSize;
use millpond::internals::page::record_body::{
    OrphanRoot, put_attached, put_difference, put_freed, put_image, put_orphaned,
    put_physiological, put_taken, put_undo_next,
};
use millpond::internals::page::record_undo::put_undo;
use millpond::internals::pool::mini_transaction::{PageSpace, kind};
use millpond::internals::recovery::{Active, Checkpoint, Loser};
use millpond_base::{Lsn, PageId, Reason};
use millpond_device::{FaultyDevice, MemoryDevice};

pub const SIZE: PageSize = PageSize::TINY;

/// A log that writes only when it is asked to, and has small segments.
pub fn log_options() -> LogOptions {
    LogOptions { segment_bytes: 16 << 10, buffer_bytes: 32 << 10, flush_interval: Duration::ZERO }
}

/// State of the store at one position of the log.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub pages: BTreeMap<PageId, Vec<u8>>,
    pub taken: Vec<u64>,
    pub orphans: BTreeMap<PageId, OrphanRoot>,
    pub active: BTreeMap<u64, Loser>,
    pub next_tx: u64,
}

/// Devices after a power failure.
pub struct Crash {
    pub data: MemoryDevice,
    pub log: MemoryDevice,
}

pub struct World {
    data: Arc<FaultyDevice>,
    log_device: Arc<FaultyDevice>,
    pub store: PageStore,
    pub log: Log,
    pub now: State,
    /// Dirty pages, and from where on the log has all about them.
    dirty: BTreeMap<PageId, Lsn>,
    /// First records of active transactions.
    first: BTreeMap<u64, Lsn>,
    /// States of the store, each with the log position from which it holds.
    pub history: Vec<(Lsn, State)>,
    pub crashes: Vec<Crash>,
    random: fastrand::Rng,
}

/// The note of these tests: a place, and the byte that it holds from now on.
pub fn apply_note(page: &mut [u8], note: &[u8]) -> bool {
    let &[low, high, value] = note else { return false };
    match page.get_mut(usize::from(u16::from_le_bytes([low, high]))) {
        Some(place) => *place = value,
        None => return false,
    }
    true
}

impl World {
    /// A new store with a log, most of whose first pages are in use.
    pub fn new(seed: u64) -> World {
        let data = Arc::new(FaultyDevice::with_crashes(MemoryDevice::new(), seed));
        let log_device = Arc::new(FaultyDevice::with_crashes(MemoryDevice::new(), seed + 1));
        let store = PageStore::create_on(data.clone(), SIZE).unwrap();
        let log = Log::create(log_device.clone(), store.uuid(), Lsn(0), &log_options()).unwrap();
        let free = store.free_pages() as usize;
        store.allocate_many(free - 20).unwrap();
        let now = State { taken: store.taken_words(), next_tx: 1, ..State::default() };
        let mut world = World::of(data, log_device, store, log, now, seed);
        world.checkpoint();
        world.crashes.clear();
        world
    }

    /// Creates a world that goes on with the state that recovery left on these devices.
    pub fn after(
        data: Arc<FaultyDevice>,
        log_device: Arc<FaultyDevice>,
        store: PageStore,
        log: Log,
        now: State,
        seed: u64,
    ) -> World {
        World::of(data, log_device, store, log, now, seed)
    }

    fn of(
        data: Arc<FaultyDevice>,
        log_device: Arc<FaultyDevice>,
        store: PageStore,
        log: Log,
        now: State,
        seed: u64,
    ) -> World {
        let history = vec![(log.tail(), now.clone())];
        // The oldest that recovery might ask for is not known here: nothing is forgotten.
        let first = now.active.keys().map(|&tx| (tx, Lsn(0))).collect();
        World {
            data,
            log_device,
            store,
            log,
            now,
            dirty: BTreeMap::new(),
            first,
            history,
            crashes: Vec::new(),
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// Does `steps` things.
    pub fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
            if self.random.u8(0..40) == 0 {
                self.checkpoint();
            }
        }
        self.crash();
    }

    fn some_steps(&mut self) {
        for _ in 0..self.random.usize(0..4) {
            self.step();
        }
        if self.random.u8(0..12) == 0 {
            self.crash();
        }
    }

    fn step(&mut self) {
        match self.random.u8(0..20) {
            0..12 => self.change(),
            12..16 => self.write(),
            16..18 => self.end_transaction(),
            18 => self.log.wait_durable(self.log.tail()).unwrap(),
            _ if self.random.bool() => self.store.sync().unwrap(),
            _ => {}
        }
        if self.random.u8(0..80) == 0 {
            self.crash();
        }
    }

    fn crash(&mut self) {
        let (data, log) = (self.random.u64(..), self.random.u64(..));
        self.crashes.push(Crash {
            data: self.data.crash(data).unwrap(),
            log: self.log_device.crash(log).unwrap(),
        });
    }

    fn remember(&mut self, end: Lsn) {
        self.history.push((end, self.now.clone()));
    }

    fn space(&self) -> PageSpace {
        let orphans = self.now.orphans.iter().map(|(&page, &kind)| (page, kind)).collect();
        PageSpace::new(self.now.taken.clone(), orphans)
    }

    fn set_space(&mut self, space: &PageSpace) {
        self.now.taken = space.taken().to_vec();
        self.now.orphans = space.orphans().iter().map(|(&page, &kind)| (page, kind)).collect();
    }

    /// One record about some pages, as an attempt would write it.
    fn change(&mut self) {
        let tail = self.log.tail();
        let mut body = Vec::new();
        let mut space = self.space();
        let (mut changed, mut freed) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..self.random.usize(1..4) {
            let page = match self.random.u8(0..10) {
                0..3 => self.new_page(tail, &mut body, &mut space),
                action => {
                    let known: Vec<PageId> = self.now.pages.keys().copied().collect();
                    let Some(&page) = known.get(self.random.usize(0..known.len().max(1))) else {
                        continue;
                    };
                    if changed.contains(&page) || freed.contains(&page) {
                        continue;
                    }
                    if action == 9 {
                        put_freed(&mut body, page);
                        space.set(page, false);
                        freed.insert(page);
                        continue;
                    }
                    if !self.change_page(page, tail, &mut body) {
                        continue;
                    }
                    page
                }
            };
            changed.insert(page);
        }
        self.move_roots(&changed, &mut body, &mut space);
        if body.is_empty() {
            return;
        }
        let end = self.log_body(&mut body);
        self.set_space(&space);
        for page in &changed {
            let bytes = self.now.pages.get_mut(page).unwrap();
            bytes[8..16].copy_from_slice(&end.0.to_le_bytes());
        }
        for page in freed {
            self.now.pages.remove(&page);
            self.dirty.remove(&page);
            self.store.free(page).unwrap();
        }
        self.remember(end);
    }

    fn new_page(&mut self, tail: Lsn, body: &mut Vec<u8>, space: &mut PageSpace) -> PageId {
        let page = self.store.allocate().unwrap();
        let mut bytes = vec![0; SIZE.bytes()];
        bytes[16..24].copy_from_slice(&page.0.to_le_bytes());
        self.scribble(&mut bytes);
        put_taken(body, page);
        put_image(body, page, &bytes);
        space.set(page, true);
        self.now.pages.insert(page, bytes);
        self.dirty.insert(page, tail);
        page
    }

    fn scribble(&mut self, bytes: &mut [u8]) {
        for _ in 0..self.random.usize(1..6) {
            let at = self.random.usize(32..bytes.len());
            let end = (at + self.random.usize(0..40)).min(bytes.len());
            bytes[at..end].fill(self.random.u8(..));
        }
    }

    /// Changes `page`; `false` if the body has nothing of it.
    fn change_page(&mut self, page: PageId, tail: Lsn, body: &mut Vec<u8>) -> bool {
        let before_all = body.len();
        let mut bytes = self.now.pages[&page].clone();
        if self.dirty.contains_key(&page) {
            for _ in 0..self.random.usize(0..3) {
                let (at, value) = (self.random.u16(32..512), self.random.u8(..));
                let [low, high] = at.to_le_bytes();
                put_physiological(body, page, &[low, high, value]);
                assert!(apply_note(&mut bytes, &[low, high, value]));
            }
            let before = bytes.clone();
            self.scribble(&mut bytes);
            put_difference(body, page, &before, &bytes);
        } else {
            self.scribble(&mut bytes);
            put_image(body, page, &bytes);
            self.dirty.insert(page, tail);
        }
        self.now.pages.insert(page, bytes);
        body.len() > before_all
    }

    fn move_roots(
        &mut self,
        changed: &BTreeSet<PageId>,
        body: &mut Vec<u8>,
        space: &mut PageSpace,
    ) {
        if let Some(&page) = changed.first()
            && self.random.u8(0..4) == 0
        {
            let root = OrphanRoot { kind: self.random.u8(..), stamp: self.random.u64(..) };
            put_orphaned(body, page, root);
            space.hang(page, root);
        }
        let orphans: BTreeSet<PageId> = space.orphans().keys().copied().collect();
        if let Some(&page) = orphans.first()
            && self.random.u8(0..4) == 0
        {
            put_attached(body, page);
            space.place(page);
        }
    }

    /// Appends `body` on somebody's behalf, and says where its record ends.
    fn log_body(&mut self, body: &mut Vec<u8>) -> Lsn {
        let (mut kind, mut tx, mut prev, mut next) = (kind::PAGES, 0, Lsn(0), Lsn(0));
        if self.random.bool() {
            kind = kind::UPDATE;
            let known: Vec<Loser> = self.now.active.values().copied().collect();
            match known.get(self.random.usize(0..6)) {
                None => {
                    tx = self.now.next_tx;
                    self.now.next_tx += 1;
                    put_undo(body, b"how to", None);
                }
                Some(loser) => {
                    (tx, prev) = (loser.tx, loser.last_record);
                    if self.random.bool() {
                        kind = kind::COMPENSATION;
                        next = if self.random.bool() { self.first[&tx] } else { Lsn(0) };
                        put_undo_next(body, next);
                    } else {
                        put_undo(body, b"how to", None);
                    }
                }
            }
        }
        let at = self.log.append(&Record { kind, tx, prev, parts: &[body] });
        if tx != 0 {
            self.first.entry(tx).or_insert(at.start);
            let last = if kind == kind::UPDATE { at.start } else { next };
            self.now.active.insert(tx, Loser { tx, last, last_record: at.start });
        }
        at.end
    }

    fn end_transaction(&mut self) {
        let known: Vec<Loser> = self.now.active.values().copied().collect();
        let Some(loser) = known.get(self.random.usize(0..known.len().max(1))) else { return };
        let kind = if self.random.bool() { kind::COMMIT } else { kind::ABORT };
        let (tx, prev) = (loser.tx, loser.last_record);
        let at = self.log.append(&Record { kind, tx, prev, parts: &[] });
        if self.random.bool() {
            self.log.wait_durable(at.end).unwrap();
        }
        self.now.active.remove(&tx);
        self.first.remove(&tx);
        self.remember(at.end);
    }

    /// Writes some dirty pages, the log before them.
    fn write(&mut self) {
        let mut wanted: Vec<PageId> = self.dirty.keys().copied().collect();
        wanted.retain(|_| self.random.bool());
        let mut copies: Vec<(PageId, Vec<u8>)> =
            wanted.iter().map(|&page| (page, self.now.pages[&page].clone())).collect();
        let lsn = |bytes: &[u8]| u64::from_le_bytes(bytes[8..16].try_into().unwrap());
        if let Some(last) = copies.iter().map(|(_, bytes)| lsn(bytes)).max() {
            self.log.wait_durable(Lsn(last)).unwrap();
        }
        let mut batch: Vec<PageWrite<'_>> = copies
            .iter_mut()
            .map(|(page, bytes)| PageWrite::new(*page, Reason::Replace, bytes))
            .collect();
        self.store.write_batch(&mut batch).unwrap();
        for page in wanted {
            self.dirty.remove(&page);
        }
    }

    /// A checkpoint, step by step, with other things happening between the steps.
    pub fn checkpoint(&mut self) {
        let redo = self.dirty.values().copied().min().unwrap_or(self.log.tail());
        self.some_steps();
        self.store.sync().unwrap();
        self.some_steps();
        let begin = self.log.tail();
        let (taken, orphans) = (self.now.taken.clone(), self.now.orphans.clone());
        self.some_steps();
        let active: Vec<Active> =
            self.now.active.values().map(|l| Active { tx: l.tx, last: l.last_record }).collect();
        let oldest = self.first.values().copied().min().unwrap_or(begin).min(redo);
        let checkpoint = Checkpoint {
            redo,
            begin,
            next_tx: self.now.next_tx,
            pages: self.store.pages(),
            taken,
            orphans: orphans.into_iter().collect(),
            rows: Vec::new(),
            active,
            catalog_root: Some(PageId(2)),
        };
        self.some_steps();
        let at = checkpoint.write(&self.log).unwrap();
        self.remember(self.log.tail());
        assert_eq!(Checkpoint::read(&self.log, at).unwrap(), checkpoint);
        self.some_steps();
        self.store.set_log_position(at, Some(PageId(2)), None).unwrap();
        self.some_steps();
        self.log.forget_before(oldest);
    }

    /// Returns the state at `end` of the log.
    pub fn state_at(&self, end: Lsn) -> &State {
        let at = self.history.partition_point(|&(place, _)| place <= end);
        &self.history[at - 1].1
    }
}
