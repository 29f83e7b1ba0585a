//! The changes of one mini-transaction so far.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::ptr::NonNull;

use millpond_base::{Lsn, PageId};

use crate::log::Record;
use crate::page::record_body;
use crate::page::record_body::OrphanRoot;
use crate::page::record_rows;
use crate::page::record_undo;
use crate::pool::frame::FrameHeader;
use crate::pool::mini_transaction::kind;
use crate::pool::mini_transaction::page_space::PageSpace;
use crate::pool::mini_transaction::row_counts::{HeldSlot, RowCounts};

/// The transaction context of a mini-transaction: the party that changes pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Actor {
    /// The mini-transaction itself: its changes are never undone.
    #[default]
    Itself,
    /// A transaction, whose last record is `prev`, or 0 if there is none.
    Transaction {
        /// Id of the transaction, not 0.
        tx: u64,
        /// Start of the transaction's last record.
        prev: Lsn,
    },
    /// A transaction that is being undone.
    Undo {
        /// Id of the transaction.
        tx: u64,
        /// Start of the transaction's last record.
        prev: Lsn,
        /// The record to undo next, or 0 if there is none.
        next: Lsn,
    },
}

/// The kind of a page's change.
enum ChangeKind {
    /// All of the page is logged: it is new, or was clean and will be written in place (rule 3).
    Image,
    /// The page changed as these physiological redo records describe, in their order. If `before`
    /// is set, the page then changed once more, and only its bytes show that change. `before` is a
    /// copy of the page from just before it, and no record follows.
    Redo { records: RedoRecords, before: Option<Range<usize>> },
    /// The page was freed.
    Freed,
}

/// Positions of a page's redo records in the arena. Up to two need no allocation.
#[derive(Default)]
struct RedoRecords {
    first: Option<Range<usize>>,
    second: Option<Range<usize>>,
    /// Empty while `second` is `None`, which is `None` while `first` is.
    others: Vec<Range<usize>>,
}

impl RedoRecords {
    fn push(&mut self, record: Range<usize>) {
        if self.first.is_none() {
            self.first = Some(record);
        } else if self.second.is_none() {
            self.second = Some(record);
        } else {
            self.others.push(record);
        }
    }

    /// Returns the only record, if there is exactly one.
    fn only(&self) -> Option<&Range<usize>> {
        if self.second.is_none() { self.first.as_ref() } else { None }
    }

    fn iter(&self) -> impl Iterator<Item = &Range<usize>> {
        self.first.iter().chain(&self.second).chain(&self.others)
    }
}

/// A page that a mini-transaction changed, and holds until its record is in the log.
pub(in crate::pool) struct ChangedPage {
    /// Frame of the page, latched exclusively until the mini-transaction ends (rule 1).
    frame: NonNull<FrameHeader>,
    /// The page in `frame`, which stays the same while the frame is latched.
    page: PageId,
    how: ChangeKind,
    /// `true` if the mini-transaction allocated the page: the record states that before anything
    /// else about it.
    is_new: bool,
}

impl ChangedPage {
    /// Returns the frame, latched exclusively.
    pub(in crate::pool) fn frame(&self) -> NonNull<FrameHeader> {
        self.frame
    }

    /// Returns whether the page is freed at the end of the mini-transaction.
    pub(in crate::pool) fn is_freed(&self) -> bool {
        matches!(self.how, ChangeKind::Freed)
    }
}

/// Change of the number of entries of a tree, by its owner id.
#[derive(Clone, Copy)]
enum RowEvent {
    /// The tree is new, without entries.
    Begun(u32),
    /// Number of entries added or, if it is negative, removed.
    Changed(u32, i64),
}

enum OrphanEvent {
    Orphaned(PageId, OrphanRoot),
    Attached(PageId),
}

/// Copies of pages for the log, in which no pointer is left (rule 5). Their frames are latched
/// exclusively.
pub(in crate::pool) trait PageCopies {
    /// Appends the page of `frame` to `copy`, with all its swips in evicted form.
    fn image(&self, frame: NonNull<FrameHeader>, copy: &mut Vec<u8>);

    /// Appends the page of `frame` to `copy`. Swips that differ from those in `before`, an earlier
    /// copy of the page, are put into evicted form.
    fn after(&self, frame: NonNull<FrameHeader>, before: &[u8], copy: &mut Vec<u8>);

    /// Makes two copies of a page differ in every byte that the first one leaves free and the
    /// second one does not, and nowhere in the free part of the second one. Does nothing unless
    /// pages are written without their free part ([`Kind::gap`](crate::pool::Kind::gap)).
    fn leave_out_gaps(&self, before: &mut [u8], after: &mut [u8]);

    /// Counts an image of `bytes` bytes in the log.
    fn count_image(&self, bytes: u64);
}

/// The changes of a mini-transaction so far.
#[derive(Default)]
pub struct ChangeSet {
    /// Changed pages, each once, in the order of their first changes.
    pages: Vec<ChangedPage>,
    events: Vec<OrphanEvent>,
    rows: Option<RowEvent>,
    actor: Actor,
    /// The undo of the changes; empty where the actor is `Itself`.
    undo: Vec<u8>,
    /// Copies of pages from before they changed, and redo records. The ranges in `pages` point into
    /// it, so it only grows until the end.
    arena: Vec<u8>,
    /// Body of the record; empty before it is composed, and afterwards if nothing is to be logged.
    body: Vec<u8>,
    /// A page on its way into the body.
    scratch: Vec<u8>,
}

thread_local! {
    /// Change set that the thread reuses, so that logging allocates nothing. It never holds
    /// changes.
    static SPARE: Cell<Option<Box<ChangeSet>>> = const { Cell::new(None) };
}

/// The changes of one mini-transaction, if there are any.
#[derive(Default)]
pub(in crate::pool) struct PendingChanges(RefCell<Option<Box<ChangeSet>>>);

impl PendingChanges {
    #[inline(always)]
    pub(in crate::pool) fn is_empty(&self) -> bool {
        // The cell is not borrowed between two calls.
        self.0.try_borrow().is_ok_and(|changes| changes.is_none())
    }

    pub(in crate::pool) fn take(&self) -> Option<Box<ChangeSet>> {
        self.0.try_borrow_mut().ok().and_then(|mut changes| changes.take())
    }

    pub(in crate::pool) fn with<R>(&self, f: impl FnOnce(&mut ChangeSet) -> R) -> R {
        let mut held = self.0.borrow_mut();
        // A thread that is ending has dropped its spare one already.
        let spare = || SPARE.try_with(Cell::take).ok().flatten().unwrap_or_default();
        f(held.get_or_insert_with(spare))
    }
}

impl ChangeSet {
    fn position(&self, frame: NonNull<FrameHeader>) -> Option<usize> {
        self.pages.iter().rposition(|changed| changed.frame == frame)
    }

    /// Adds `page`, which `frame` holds, unless it was added before, and returns its index. `begin`
    /// begins a logged change of the page, and returns whether all of it is to be logged.
    #[inline]
    fn enter(
        &mut self,
        frame: NonNull<FrameHeader>,
        page: PageId,
        begin: impl FnOnce() -> bool,
    ) -> usize {
        if let Some(at) = self.position(frame) {
            debug_assert_eq!(self.pages[at].page, page, "its frame was latched all the time");
            debug_assert!(!self.pages[at].is_freed(), "{page:?} is changed after it was freed");
            return at;
        }
        let how = if begin() {
            ChangeKind::Image
        } else {
            ChangeKind::Redo { records: RedoRecords::default(), before: None }
        };
        self.pages.push(ChangedPage { frame, page, how, is_new: false });
        self.pages.len() - 1
    }

    /// Adds a page that is about to change without a redo record. `copy` appends the bytes of the
    /// page.
    #[inline]
    pub(in crate::pool) fn page_changes(
        &mut self,
        frame: NonNull<FrameHeader>,
        page: PageId,
        begin: impl FnOnce() -> bool,
        copy: impl FnOnce(&mut Vec<u8>),
    ) {
        let at = self.enter(frame, page, begin);
        let ChangeSet { pages, arena, .. } = self;
        if let Some(ChangedPage { how: ChangeKind::Redo { before: before @ None, .. }, .. }) =
            pages.get_mut(at)
        {
            let start = arena.len();
            copy(arena);
            *before = Some(start..arena.len());
        }
    }

    /// Adds a page that is about to change as the redo record of `redo` describes.
    #[inline]
    pub(in crate::pool) fn page_changes_by(
        &mut self,
        frame: NonNull<FrameHeader>,
        page: PageId,
        begin: impl FnOnce() -> bool,
        redo: impl FnOnce(&mut Vec<u8>),
    ) {
        let at = self.enter(frame, page, begin);
        let ChangeSet { pages, arena, .. } = self;
        if let Some(ChangedPage { how: ChangeKind::Redo { records, before: None }, .. }) =
            pages.get_mut(at)
        {
            let start = arena.len();
            redo(arena);
            records.push(start..arena.len());
        }
    }

    /// Adds a page that was just allocated.
    pub(in crate::pool) fn page_allocated(&mut self, frame: NonNull<FrameHeader>, page: PageId) {
        debug_assert!(self.position(frame).is_none(), "{page:?} is not new");
        self.pages.push(ChangedPage { frame, page, how: ChangeKind::Image, is_new: true });
    }

    /// Adds a page that is to be freed once the record is in the log.
    pub(in crate::pool) fn page_freed(&mut self, frame: NonNull<FrameHeader>, page: PageId) {
        match self.position(frame).and_then(|at| self.pages.get_mut(at)) {
            Some(changed) => {
                debug_assert!(!changed.is_freed(), "{page:?} is freed twice");
                changed.how = ChangeKind::Freed;
            }
            None => {
                let how = ChangeKind::Freed;
                self.pages.push(ChangedPage { frame, page, how, is_new: false });
            }
        }
    }

    /// Sets the undo of the mini-transaction's changes, on behalf of `actor`; once.
    pub(in crate::pool) fn undo(&mut self, actor: Actor, write: impl FnOnce(&mut Vec<u8>)) {
        debug_assert_eq!(self.actor, Actor::Itself, "a mini-transaction has one undo");
        self.actor = actor;
        self.undo.clear();
        write(&mut self.undo);
    }

    /// Records that the root `page` became an orphan.
    pub(in crate::pool) fn orphaned(&mut self, page: PageId, root: OrphanRoot) {
        self.events.push(OrphanEvent::Orphaned(page, root));
    }

    /// Records that the root `page` was attached.
    pub(in crate::pool) fn attached(&mut self, page: PageId) {
        self.events.push(OrphanEvent::Attached(page));
    }

    /// Records that the tree `owner` is new, and empty.
    pub(in crate::pool) fn rows_begin(&mut self, owner: u32) {
        self.rows = Some(RowEvent::Begun(owner));
    }

    /// Adds `rows` entries to the tree `owner`; once.
    pub(in crate::pool) fn rows_changed(&mut self, owner: u32, rows: i64) {
        debug_assert!(self.rows.is_none(), "a mini-transaction changes one tree's entries");
        self.rows = Some(RowEvent::Changed(owner, rows));
    }

    /// Returns the changed pages, which are still latched.
    pub(in crate::pool) fn pages(&self) -> impl Iterator<Item = &ChangedPage> {
        self.pages.iter()
    }

    /// Composes the body of the record.
    #[inline]
    pub(in crate::pool) fn compose(&mut self, copies: &impl PageCopies) {
        self.body.clear();
        if !self.compose_usual() {
            self.compose_any(copies);
        }
    }

    /// Composes the usual body, one redo record of one page and its undo; returns false if there is
    /// more to log, or less.
    #[inline]
    fn compose_usual(&mut self) -> bool {
        let ChangeSet { pages, events, rows, actor, undo, arena, body, .. } = self;
        let [ChangedPage { page, how, is_new: false, .. }] = &pages[..] else { return false };
        let ChangeKind::Redo { records, before: None } = how else { return false };
        let (Actor::Transaction { .. }, true) = (actor, events.is_empty()) else { return false };
        let (None | Some(RowEvent::Changed(..))) = rows else { return false };
        let Some(redo) = records.only().and_then(|range| arena.get(range.clone())) else {
            return false;
        };
        record_body::put_physiological(body, *page, redo);
        record_undo::put_undo(body, undo, Some(redo));
        true
    }

    #[inline(never)]
    fn compose_any(&mut self, copies: &impl PageCopies) {
        let ChangeSet { pages, events, rows, actor, undo, arena, body, scratch } = self;
        for changed in pages.iter() {
            changed.compose(copies, arena, scratch, body);
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
        match rows {
            Some(RowEvent::Begun(owner)) => record_rows::put_rows_begin(body, *owner),
            // The undo of a transaction states the change, too.
            Some(RowEvent::Changed(..)) if matches!(actor, Actor::Transaction { .. }) => {}
            Some(RowEvent::Changed(owner, change)) => {
                record_rows::put_rows(body, *owner, *change);
            }
            None => {}
        }
        match actor {
            Actor::Itself => {}
            Actor::Transaction { .. } => record_undo::put_undo(body, undo, last_redo(pages, arena)),
            Actor::Undo { next, .. } => record_body::put_undo_next(body, *next),
        }
    }

    /// Returns the composed record without its body; `None` if nothing is to be logged.
    pub(super) fn record<'a>(&self, parts: &'a [&'a [u8]]) -> Option<Record<'a>> {
        if self.body.is_empty() {
            return None;
        }
        let (kind, tx, prev) = match self.actor {
            Actor::Itself => (kind::PAGES, 0, Lsn(0)),
            Actor::Transaction { tx, prev } => (kind::UPDATE, tx, prev),
            Actor::Undo { tx, prev, .. } => (kind::COMPENSATION, tx, prev),
        };
        debug_assert_eq!(tx == 0, kind == kind::PAGES, "records of transactions have their id");
        Some(Record { kind, tx, prev, parts })
    }

    /// Returns the body that was composed.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Returns whether the record changes the page space.
    pub(super) fn has_space_events(&self) -> bool {
        !self.events.is_empty() || self.pages.iter().any(|c| c.is_new || c.is_freed())
    }

    /// Returns whether the record changes the number of entries of a tree.
    pub(super) fn has_row_events(&self) -> bool {
        self.rows.is_some()
    }

    /// Applies the change of a tree's number of entries, in the slot that is held.
    pub(super) fn count_rows(&self, counts: &RowCounts, slot: &mut HeldSlot<'_>) {
        match self.rows {
            Some(RowEvent::Begun(owner)) => counts.begin(owner),
            Some(RowEvent::Changed(owner, rows)) => {
                slot.add(owner, rows, self.actor != Actor::Itself);
            }
            None => {}
        }
    }

    /// Applies the record's changes to the page space.
    pub(super) fn apply_to(&self, space: &mut PageSpace) {
        for changed in &self.pages {
            debug_assert_ne!(
                changed.is_new,
                space.is_taken(changed.page),
                "{:?} is allocated while it is free",
                changed.page
            );
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

    /// Forgets all changes, and keeps the memory for the next mini-transaction of this thread.
    #[inline]
    pub(in crate::pool) fn recycle(mut self: Box<Self>) {
        // Bytes that a thread keeps of each of four buffers.
        const KEPT: usize = 32 << 10;
        self.pages.clear();
        self.events.clear();
        self.rows = None;
        self.actor = Actor::Itself;
        for bytes in [&mut self.undo, &mut self.arena, &mut self.body, &mut self.scratch] {
            bytes.clear();
            if bytes.capacity() > KEPT {
                bytes.shrink_to(KEPT);
            }
        }
        let _ = SPARE.try_with(|spare| spare.set(Some(self)));
    }
}

/// Returns the physiological redo record that was composed last, if nothing else about a page
/// followed.
fn last_redo<'a>(pages: &[ChangedPage], arena: &'a [u8]) -> Option<&'a [u8]> {
    match &pages.last()?.how {
        ChangeKind::Redo { records, before: None } => arena.get(records.iter().last()?.clone()),
        _ => None,
    }
}

impl ChangedPage {
    /// Appends the logged form of the page's change to `body`.
    fn compose(
        &self,
        copies: &impl PageCopies,
        arena: &mut [u8],
        scratch: &mut Vec<u8>,
        body: &mut Vec<u8>,
    ) {
        match &self.how {
            ChangeKind::Freed => record_body::put_freed(body, self.page),
            ChangeKind::Image => {
                if self.is_new {
                    record_body::put_taken(body, self.page);
                }
                scratch.clear();
                copies.image(self.frame, scratch);
                let start = body.len();
                record_body::put_image(body, self.page, scratch);
                copies.count_image((body.len() - start) as u64);
            }
            ChangeKind::Redo { records, before } => {
                for record in records.iter() {
                    let record = arena.get(record.clone()).unwrap_or(&[]);
                    record_body::put_physiological(body, self.page, record);
                }
                if let Some(before) = before.as_ref().and_then(|r| arena.get_mut(r.clone())) {
                    scratch.clear();
                    copies.after(self.frame, before, scratch);
                    debug_assert_eq!(scratch.len(), before.len(), "both are copies of the page");
                    copies.leave_out_gaps(before, scratch);
                    record_body::put_difference(body, self.page, before, scratch);
                }
            }
        }
    }
}
