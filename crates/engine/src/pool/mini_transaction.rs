//! What an attempt changed: kept until its end, and then logged as one record.
//!
//! # Rules
//! 1. A page that a logged attempt changed stays latched until the attempt's record is in the log:
//!    so the records about one page are in the order of its changes.
//! 2. One record covers all that an attempt changed. An attempt leaves a sound structure behind
//!    (`pool/pages.rs`, rule 2), so what is recovered from any prefix of the log is one, too.
//! 3. The first record about a page that was clean holds all of it. So recovery needs no page from
//!    storage, and a page that was torn while it was written does no harm.
//! 4. Page ids are given away, and used again, only after the record that says so.
//! 5. No pointer reaches the log: swips are logged in their evicted form.
//! 6. What takes or frees pages is logged under the mutex of [`PageSpace`], so that a checkpoint
//!    finds both as they were at one place of the log.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::ptr::NonNull;

use millpond_base::{Lsn, PageId};

use crate::io::simulated::planted::planted;
use crate::log::{Log, Record};
use crate::page::record_body::OrphanRoot;
use crate::page::{View, record_body};
use crate::pool::buffer_pool::{Pool, PoolStrategy, locked};
use crate::pool::frame::FrameHeader;
use crate::pool::stats::counters::Counter;

/// Records that pool and transactions write, by their kind.
pub mod kind {
    /// Changes of pages that nobody takes back: a whole operation, or a change of structure.
    pub const PAGES: u8 = 1;
    /// A change by a transaction, with what undoes it.
    pub const UPDATE: u8 = 2;
    /// A change that undoes another one.
    pub const COMPENSATION: u8 = 3;
    /// A transaction committed.
    pub const COMMIT: u8 = 4;
    /// A transaction was undone to its beginning.
    pub const ABORT: u8 = 5;
    /// A checkpoint.
    pub const CHECKPOINT: u8 = 6;
    /// A part of a checkpoint that is too long for one record.
    pub const CHECKPOINT_PART: u8 = 7;
}

/// On whose behalf an attempt changes pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Actor {
    /// Its own: what it does is done.
    #[default]
    Itself,
    /// A transaction, whose last record is `prev` (0: none).
    Transaction {
        /// Its id, not 0.
        tx: u64,
        /// Start of its last record.
        prev: Lsn,
    },
    /// A transaction that is being undone.
    Undo {
        /// Its id.
        tx: u64,
        /// Start of its last record.
        prev: Lsn,
        /// What is to be undone next; 0: nothing.
        next: Lsn,
    },
}

/// How a page was changed.
enum ChangeKind {
    /// It was clean: all of it is logged.
    Image,
    /// As the structure said, and then, perhaps, in a way that shows from its bytes before.
    Noted { notes: Notes, before: Option<Range<usize>> },
    /// It was given back.
    Freed,
}

/// Where the notes about a page are. Hardly any page gets more than two in one attempt, and so
/// these are kept without memory of their own.
#[derive(Default)]
struct Notes {
    first: Option<Range<usize>>,
    second: Option<Range<usize>>,
    others: Vec<Range<usize>>,
}

impl Notes {
    fn push(&mut self, note: Range<usize>) {
        if self.first.is_none() {
            self.first = Some(note);
        } else if self.second.is_none() {
            self.second = Some(note);
        } else {
            self.others.push(note);
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Range<usize>> {
        self.first.iter().chain(&self.second).chain(&self.others)
    }
}

struct ChangedPage {
    frame: NonNull<FrameHeader>,
    page: PageId,
    how: ChangeKind,
    is_new: bool,
}

impl ChangedPage {
    /// Whether it was given back before its record, which must not be.
    fn is_gone(&self) -> bool {
        planted!(FreedBeforeRecord) && matches!(self.how, ChangeKind::Freed)
    }
}

enum OrphanEvent {
    Orphaned(PageId, OrphanRoot),
    Attached(PageId),
}

/// What an attempt changed so far.
#[derive(Default)]
pub struct ChangeSet {
    pages: Vec<ChangedPage>,
    events: Vec<OrphanEvent>,
    actor: Actor,
    undo: Vec<u8>,
    /// Bytes of pages before they changed, and notes.
    arena: Vec<u8>,
    /// The record's body is put together here.
    body: Vec<u8>,
    scratch: Vec<u8>,
}

thread_local! {
    /// Used again and again, so that logging allocates nothing.
    static SPARE: Cell<Option<Box<ChangeSet>>> = const { Cell::new(None) };
}

/// The changes of one attempt, if there are any.
#[derive(Default)]
pub(crate) struct PendingChanges(RefCell<Option<Box<ChangeSet>>>);

impl PendingChanges {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        // Nobody holds it between two calls.
        self.0.try_borrow().is_ok_and(|changes| changes.is_none())
    }

    pub(crate) fn take(&self) -> Option<Box<ChangeSet>> {
        self.0.try_borrow_mut().ok().and_then(|mut changes| changes.take())
    }

    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut ChangeSet) -> R) -> R {
        let mut held = self.0.borrow_mut();
        f(held.get_or_insert_with(|| SPARE.take().unwrap_or_default()))
    }
}

impl ChangeSet {
    fn place(&mut self, frame: NonNull<FrameHeader>) -> Option<&mut ChangedPage> {
        self.pages.iter_mut().rev().find(|changed| changed.frame == frame)
    }

    /// The undo of what the attempt does, on behalf of `actor`; once.
    pub(crate) fn undo(&mut self, actor: Actor, write: impl FnOnce(&mut Vec<u8>)) {
        self.actor = actor;
        self.undo.clear();
        write(&mut self.undo);
    }

    pub(crate) fn orphaned(&mut self, page: PageId, root: OrphanRoot) {
        self.events.push(OrphanEvent::Orphaned(page, root));
    }

    pub(crate) fn attached(&mut self, page: PageId) {
        self.events.push(OrphanEvent::Attached(page));
    }

    fn clear(mut self: Box<Self>) {
        const KEPT: usize = 1 << 20;
        self.pages.clear();
        self.events.clear();
        self.actor = Actor::Itself;
        for bytes in [&mut self.undo, &mut self.arena, &mut self.body, &mut self.scratch] {
            bytes.clear();
            bytes.shrink_to(KEPT);
        }
        SPARE.set(Some(self));
    }

    fn has_space_events(&self) -> bool {
        !self.events.is_empty()
            || self.pages.iter().any(|c| c.is_new || matches!(c.how, ChangeKind::Freed))
    }
}

/// Which pages are in use, and which roots nothing refers to, as of the end of the log.
#[derive(Debug, Default)]
pub struct PageSpace {
    /// One bit per page; bits beyond the end are 0.
    taken: Vec<u64>,
    orphans: HashMap<PageId, OrphanRoot>,
}

impl PageSpace {
    /// What it is at the beginning.
    pub fn new(taken: Vec<u64>, orphans: HashMap<PageId, OrphanRoot>) -> PageSpace {
        PageSpace { taken, orphans }
    }

    /// The map's words.
    pub fn taken(&self) -> &[u64] {
        &self.taken
    }

    /// The roots that hang, and what they are the roots of.
    pub fn orphans(&self) -> &HashMap<PageId, OrphanRoot> {
        &self.orphans
    }

    /// `page` is in use, or is not.
    pub fn set(&mut self, page: PageId, taken: bool) {
        let at = (page.0 / 64) as usize;
        if at >= self.taken.len() {
            self.taken.resize(at + 1, 0);
        }
        let bit = 1 << (page.0 % 64);
        if let Some(word) = self.taken.get_mut(at) {
            *word = if taken { *word | bit } else { *word & !bit };
        }
        if !taken {
            self.orphans.remove(&page);
        }
    }

    /// The root `page` hangs.
    pub fn hang(&mut self, page: PageId, root: OrphanRoot) {
        self.orphans.insert(page, root);
    }

    /// The root `page` hangs no longer.
    pub fn place(&mut self, page: PageId) {
        self.orphans.remove(&page);
    }
}

impl<M: PoolStrategy> Pool<M> {
    /// Where changes are logged, if they are.
    #[inline(always)]
    pub fn log(&self) -> Option<&Log> {
        self.log.as_deref()
    }

    /// Which pages are in use as of the end of the log, and that end.
    pub fn space_at_tail<R>(&self, look: impl FnOnce(Lsn, &PageSpace) -> R) -> R {
        let space = locked(&self.space);
        let tail = self.log().map_or(Lsn(0), Log::tail);
        look(tail, &space)
    }

    /// Says which pages are in use; before anything is logged.
    pub fn set_space(&self, space: PageSpace) {
        *locked(&self.space) = space;
    }

    /// The page of `frame`, which the attempt latched exclusively, is about to change in a way that
    /// only its bytes tell.
    #[inline]
    pub(crate) fn about_to_change(&self, changes: &mut ChangeSet, frame: NonNull<FrameHeader>) {
        let Some(page) = self.begin_change(changes, frame) else { return };
        let ChangeSet { pages, arena, .. } = changes;
        let Some(changed) = pages.iter_mut().rev().find(|changed| changed.frame == frame) else {
            return;
        };
        debug_assert_eq!(changed.page, page);
        if let ChangeKind::Noted { before: before @ None, .. } = &mut changed.how {
            let start = arena.len();
            self.view(frame).copy_to(0, self.page_size, arena);
            *before = Some(start..start + self.page_size);
        }
    }

    /// The same for a change that `note` says all about.
    #[inline]
    pub(crate) fn about_to_do(
        &self,
        changes: &mut ChangeSet,
        frame: NonNull<FrameHeader>,
        note: impl FnOnce(&mut Vec<u8>),
    ) {
        if self.begin_change(changes, frame).is_none() {
            return;
        }
        let ChangeSet { pages, arena, .. } = changes;
        let changed = pages.iter_mut().rev().find(|changed| changed.frame == frame);
        if let Some(ChangedPage { how: ChangeKind::Noted { notes, before: None }, .. }) = changed {
            let start = arena.len();
            note(arena);
            notes.push(start..arena.len());
        }
    }

    /// Enters the page of `frame` into what the attempt changed; `None` for an anchor.
    #[inline]
    fn begin_change(&self, changes: &mut ChangeSet, frame: NonNull<FrameHeader>) -> Option<PageId> {
        let header = self.header(frame);
        let page = header.page()?;
        if changes.place(frame).is_none() {
            let tail = self.log().map_or(Lsn(0), Log::tail);
            let was_clean = header.begin_logged_change(tail);
            let how = if was_clean && !planted!(NoFullImage) {
                ChangeKind::Image
            } else {
                ChangeKind::Noted { notes: Notes::default(), before: None }
            };
            changes.pages.push(ChangedPage { frame, page, how, is_new: false });
        }
        Some(page)
    }

    /// The page of `frame` is new.
    pub(crate) fn made_new(&self, changes: &mut ChangeSet, frame: NonNull<FrameHeader>) {
        let Some(page) = self.header(frame).page() else { return };
        changes.pages.push(ChangedPage { frame, page, how: ChangeKind::Image, is_new: true });
    }

    /// The page of `frame`, which is latched exclusively, is given back when all is logged.
    pub(crate) fn freed_later(&self, changes: &mut ChangeSet, frame: NonNull<FrameHeader>) {
        let Some(page) = self.header(frame).page() else { return };
        match changes.place(frame) {
            Some(changed) => changed.how = ChangeKind::Freed,
            None => {
                changes.pages.push(ChangedPage {
                    frame,
                    page,
                    how: ChangeKind::Freed,
                    is_new: false,
                });
            }
        }
    }

    /// Logs what the attempt changed, lets go of its pages, and gives back those that it freed.
    /// Answers where the record begins; 0 if there was nothing to log.
    pub(crate) fn log_changes(&self, mut changes: Box<ChangeSet>) -> Lsn {
        self.compose(&mut changes);
        planted!(FreedBeforeRecord, self.free_early(&changes));
        let Some(log) = self.log() else { return Lsn(0) };
        let mut at = Lsn(0);
        if !changes.body.is_empty() {
            let (kind, tx, prev) = match changes.actor {
                Actor::Itself => (kind::PAGES, 0, Lsn(0)),
                Actor::Transaction { tx, prev } => (kind::UPDATE, tx, prev),
                Actor::Undo { .. } if planted!(UndoLoggedAsOther) => (kind::PAGES, 0, Lsn(0)),
                Actor::Undo { tx, prev, .. } => (kind::COMPENSATION, tx, prev),
            };
            let record = Record { kind, tx, prev, parts: &[&changes.body] };
            let appended = if changes.has_space_events() {
                let mut space = locked(&self.space);
                let appended = log.append(&record);
                changes.apply_to(&mut space);
                appended
            } else {
                log.append(&record)
            };
            at = appended.start;
            for changed in changes.pages.iter().filter(|changed| !changed.is_gone()) {
                self.set_page_lsn(changed.frame, appended.end);
            }
        }
        for changed in changes.pages.iter().filter(|changed| !changed.is_gone()) {
            if matches!(changed.how, ChangeKind::Freed) {
                self.free_page(changed.frame);
            } else {
                self.header(changed.frame).latch.release_exclusive();
            }
        }
        changes.clear();
        at
    }

    /// Puts the record's body together.
    fn compose(&self, changes: &mut ChangeSet) {
        let ChangeSet { pages, events, actor, undo, arena, body, scratch } = changes;
        body.clear();
        for changed in pages.iter() {
            let page = changed.page;
            match &changed.how {
                ChangeKind::Freed => {
                    record_body::put_freed(body, page);
                    continue;
                }
                ChangeKind::Image => {
                    if changed.is_new {
                        record_body::put_taken(body, page);
                    }
                    scratch.clear();
                    self.view(changed.frame).copy_to(0, self.page_size, scratch);
                    self.unswizzle_all(changed.frame, scratch, |_| !planted!(SwipLoggedAsPointer));
                    let start = body.len();
                    record_body::put_image(body, page, scratch);
                    self.counters().add(Counter::LogImages, 1);
                    self.counters().add(Counter::LogImageBytes, (body.len() - start) as u64);
                }
                ChangeKind::Noted { notes, before } => {
                    for note in notes.iter() {
                        record_body::put_physiological(
                            body,
                            page,
                            arena.get(note.clone()).unwrap_or(&[]),
                        );
                    }
                    if let Some(before) = before.as_ref().and_then(|r| arena.get(r.clone())) {
                        self.compose_difference(changed, before, scratch, body);
                    }
                }
            }
        }
        for event in events.iter() {
            match event {
                OrphanEvent::Orphaned(page, root) => record_body::put_orphaned(body, *page, *root),
                OrphanEvent::Attached(page) => record_body::put_attached(body, *page),
            }
        }
        if body.is_empty() {
            return;
        }
        match actor {
            Actor::Itself => {}
            Actor::Transaction { .. } => record_body::put_undo(body, undo),
            Actor::Undo { .. } if planted!(NoUndoNext) => {}
            Actor::Undo { next, .. } => record_body::put_undo_next(body, *next),
        }
    }

    fn compose_difference(
        &self,
        changed: &ChangedPage,
        before: &[u8],
        scratch: &mut Vec<u8>,
        body: &mut Vec<u8>,
    ) {
        scratch.clear();
        self.view(changed.frame).copy_to(0, self.page_size, scratch);
        if M::SWIZZLES && self.kind(self.view(changed.frame)).is_some() {
            // A word that is the same, and was a swip before, means the same child, and the log has
            // it. One that was not is what an entry left behind, as a pointer perhaps: the log may
            // have that pointer, too, in an image.
            let was = View::of(before);
            let mut swips = Vec::new();
            if let Some(kind) = self.kind(was) {
                kind.swips(was, &mut |at| {
                    swips.push(at);
                    true
                });
                swips.sort_unstable();
            }
            let same = |at: usize| {
                before.get(at..at + 8) == scratch.get(at..at + 8)
                    && (swips.binary_search(&at).is_ok() || planted!(StaleSwipNotLogged))
            };
            let mut others = Vec::new();
            if let Some(kind) = self.kind(self.view(changed.frame)) {
                kind.swips(self.view(changed.frame), &mut |at| {
                    if !same(at) {
                        others.push(at);
                    }
                    true
                });
            }
            for at in others {
                self.unswizzle_copy(self.view(changed.frame), scratch, at);
            }
        }
        record_body::put_difference(body, changed.page, before, scratch);
    }

    /// Turns the swips of a copy of the page of `frame` into their evicted form.
    fn unswizzle_all(
        &self,
        frame: NonNull<FrameHeader>,
        copy: &mut [u8],
        mut wanted: impl FnMut(usize) -> bool,
    ) {
        let view = self.view(frame);
        if M::SWIZZLES
            && let Some(kind) = self.kind(view)
        {
            kind.swips(view, &mut |at| {
                if wanted(at) {
                    self.unswizzle_copy(view, copy, at);
                }
                true
            });
        }
    }

    /// Frees pages before the record, which is a planted bug.
    #[cfg(feature = "planted")]
    fn free_early(&self, changes: &ChangeSet) {
        let gone = changes.pages.iter().filter(|changed| changed.is_gone());
        gone.for_each(|changed| self.free_page(changed.frame));
        planted!(FreedBeforeRecord, dawdle);
    }

    /// Says in the page of `frame`, which is latched exclusively, which record was the last.
    fn set_page_lsn(&self, frame: NonNull<FrameHeader>, lsn: Lsn) {
        if let Some(place) = self.bytes(frame).get_mut(8..16)
            && !planted!(PageLsnNotSet)
        {
            place.copy_from_slice(&lsn.0.to_le_bytes());
        }
    }

    /// A bound of the log below which no page in memory needs it: the least recLSN of all pages
    /// that are dirty or being written, and not beyond the tail of the log as it is now.
    pub fn redo_bound(&self) -> Lsn {
        let mut bound = self.log().map_or(Lsn(0), Log::tail);
        for id in (0..self.frames()).map(millpond_base::FrameId) {
            let Some(header) = self.memory.header(id) else { continue };
            if header.is_dirty_or_writing()
                && (header.is_dirty() || !planted!(WritingCountsAsClean))
            {
                bound = bound.min(header.rec_lsn());
            }
        }
        bound
    }
}

impl ChangeSet {
    fn apply_to(&self, space: &mut PageSpace) {
        for changed in &self.pages {
            match changed.how {
                ChangeKind::Freed => space.set(changed.page, false),
                _ if changed.is_new => space.set(changed.page, true),
                _ => {}
            }
        }
        for event in &self.events {
            match event {
                OrphanEvent::Orphaned(page, root) => space.hang(*page, *root),
                OrphanEvent::Attached(page) => space.place(*page),
            }
        }
    }
}
