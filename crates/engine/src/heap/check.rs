//! Checks a heap.
//!
//! [`check_page`] checks one page by itself and trusts nothing in it: any bytes are read without a
//! panic. [`Heap::check`] walks all reachable pages, and compares children with their parents, and
//! forwards with guests. No thread may change the heap during that check.

use std::collections::{HashMap, HashSet};

use millpond_base::{AccessKind, PageId};

use crate::heap::data::{Data, Form, ID, NUMBER, room};
use crate::heap::descend::mark;
use crate::heap::directory::{COUNT, count_in, index_in, level_in, span};
use crate::heap::table::{Heap, RecordId};
use crate::lock::is_interrupted;
use crate::page::{Directory, PageBuffer, PageHeader, PageType, View};
use crate::pool::{Pages, PoolError, Read, Swip};

/// A violated invariant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The page is of another type than its place demands.
    #[error("the page has type {found}, not {expected}")]
    Type {
        /// Type as the page states.
        found: u8,
        /// Type that its place demands.
        expected: u8,
    },
    /// The page is on another level than its parent states.
    #[error("the page is on level {found}, not {expected}")]
    Level {
        /// Level as the page states.
        found: u8,
        /// Level that its place demands.
        expected: u8,
    },
    /// The page belongs to another structure.
    #[error("the page belongs to structure {found}, not {expected}")]
    Owner {
        /// Owner as the page states.
        found: u32,
        /// The heap's id.
        expected: u32,
    },
    /// The page carries another id than it is stored under.
    #[error("the page says it is page {found}")]
    Id {
        /// Id as the page states.
        found: PageId,
    },
    /// Two swips lead to the page.
    #[error("two swips lead to the page")]
    Twice,
    /// The page has another number than its place demands.
    #[error("the page says it begins with number {found}, not {expected}")]
    Number {
        /// Number as the page states.
        found: u64,
        /// Number that its place demands.
        expected: u64,
    },
    /// A directory states more children than fit.
    #[error("the directory says it has {count} children")]
    Children {
        /// Number of children that it states.
        count: u16,
    },
    /// A slot behind the last child holds a swip.
    #[error("slot {slot}, behind the last child, holds the word {word:#x}")]
    Swip {
        /// Index of the slot.
        slot: usize,
        /// The word.
        word: u64,
    },
    /// Slots, heap or garbage of a data page contradict each other or the page size.
    #[error("the header says {slots} slots, a heap from byte {heap} and {garbage} bytes unused")]
    Header {
        /// Slots.
        slots: usize,
        /// Start of the heap.
        heap: usize,
        /// Bytes of garbage.
        garbage: usize,
    },
    /// The header's count of slots in use is wrong.
    #[error("{found} slots are in use, not {expected}")]
    InUse {
        /// Slots in use.
        found: usize,
        /// The number in the header.
        expected: usize,
    },
    /// The item in a slot is outside the heap, or too short for its form.
    #[error("what slot {slot} holds lies outside the heap, at byte {at}")]
    Outside {
        /// Index of the slot.
        slot: usize,
        /// Offset of the item, as its slot states it.
        at: usize,
    },
    /// Records overlap, or the garbage between them was not counted.
    #[error("the records take {records} bytes of a heap that has {heap} in use")]
    Heap {
        /// Bytes of all records.
        records: usize,
        /// Bytes of the heap, less its garbage.
        heap: usize,
    },
    /// A forward leads to no guest of its own.
    #[error("record {id:?} is forwarded to {to:?}, which is no guest of its own")]
    Forward {
        /// The record.
        id: RecordId,
        /// The place that the forward leads to.
        to: RecordId,
    },
    /// No forward leads to a guest.
    #[error("no forward leads to the guest in {at:?}, which says it is record {id:?}")]
    Guest {
        /// Place of the record.
        at: RecordId,
        /// The id in the guest.
        id: RecordId,
    },
}

/// Result of a check.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Pages that can be reached: all of them belong to the heap.
    pub pages: HashSet<PageId>,
    /// Number of records in the pages.
    pub records: u64,
    /// The violations, each with its page.
    pub violations: Vec<(PageId, Violation)>,
}

/// Returns the faults of a page of a heap, as far as the page alone shows them.
pub fn check_page(page: &[u8]) -> Vec<Violation> {
    let copy = PageBuffer::copy_of(page);
    let mut found = Vec::new();
    match PageHeader::type_in(copy.view()) {
        PageType::HEAP_DIRECTORY => check_directory(copy.view(), &mut found),
        PageType::HEAP_DATA => check_data(copy.view(), &mut found),
        other => {
            let expected = PageType::HEAP_DATA.0;
            found.push(Violation::Type { found: other.0, expected });
        }
    }
    found
}

fn check_directory(view: View<'_>, found: &mut Vec<Violation>) {
    let form = Directory::of(view.len());
    let count = view.u16(COUNT);
    if usize::from(count) > form.fan_out() {
        found.push(Violation::Children { count });
        return;
    }
    for slot in usize::from(count)..form.fan_out() {
        let word = view.u64(form.swip_at(slot));
        if word != Swip::NULL.0 {
            found.push(Violation::Swip { slot, word });
        }
    }
}

fn check_data(view: View<'_>, found: &mut Vec<Violation>) {
    let data = Data(view);
    let (slots, heap, garbage) = (data.slots(), data.heap(), data.garbage());
    if !data.is_sound() {
        found.push(Violation::Header { slots, heap, garbage });
        return;
    }
    let mut places = Vec::with_capacity(slots);
    let mut in_use = 0;
    for slot in 0..slots {
        let Some(item) = data.item(slot) else { continue };
        in_use += 1;
        if !data.holds(item) || (item.form == Form::Forward && item.len != ID) {
            found.push(Violation::Outside { slot, at: item.at });
            continue;
        }
        places.push((item.at, room(item.len)));
    }
    if in_use != data.in_use() {
        found.push(Violation::InUse { found: in_use, expected: data.in_use() });
    }
    places.sort_unstable();
    let records: usize = places.iter().map(|place| place.1).sum();
    let overlap = places.windows(2).any(|pair| pair[0].0 + pair[0].1 > pair[1].0);
    let used = view.len() - heap - garbage;
    if overlap || (records != used && places.len() == in_use) {
        found.push(Violation::Heap { records, heap: used });
    }
}

/// A page to check, as its parent describes it.
struct Expected {
    first: u64,
    level: u8,
    /// Number of pages above.
    depth: u8,
}

/// Forwards and guests that the walk found.
#[derive(Default)]
struct Moves {
    /// By record id: the place that its forward leads to, and the page of the forward.
    forwards: HashMap<RecordId, (RecordId, PageId)>,
    /// By place: the id of the guest there, and its page.
    guests: HashMap<RecordId, (RecordId, PageId)>,
}

impl<P: Pages> Heap<P> {
    /// Checks every page of the heap. Use it while no thread writes.
    ///
    /// # Errors
    /// The memory behind the heap failed; faults in a page are reported instead.
    pub fn check(&self) -> Result<Report, PoolError> {
        let mut report = Report::default();
        let mut moves = Moves::default();
        let mut page = PageBuffer::new(self.pages.page_size());
        let mut todo = Vec::new();
        self.copy_at(&Expected { first: 0, level: 0, depth: 0 }, 0, &mut page)?;
        let top = level_in(page.view());
        todo.push(Expected { first: 0, level: top, depth: 0 });
        while let Some(expected) = todo.pop() {
            if is_interrupted() {
                return Err(PoolError::Interrupted);
            }
            let Some(id) = self.copy_at(&expected, top, &mut page)? else { continue };
            let before = report.violations.len();
            let mut note = |violation| report.violations.push((id, violation));
            if !report.pages.insert(id) {
                note(Violation::Twice);
                continue;
            }
            self.check_place(&expected, id, &page, &mut note);
            check_page(page.bytes()).into_iter().for_each(&mut note);
            if report.violations.len() > before {
                continue;
            }
            if expected.level == 0 {
                report.records += look(&page, id, expected.first, &mut moves);
            } else {
                self.expect_children(&expected, page.view(), &mut todo);
            }
        }
        match_up(&moves, &mut report.violations);
        Ok(report)
    }

    fn check_place(
        &self,
        expected: &Expected,
        id: PageId,
        page: &PageBuffer,
        note: &mut impl FnMut(Violation),
    ) {
        let header = PageHeader::read(page.bytes());
        let kind = if expected.level > 0 { PageType::HEAP_DIRECTORY } else { PageType::HEAP_DATA };
        if header.kind != kind {
            note(Violation::Type { found: header.kind.0, expected: kind.0 });
        }
        if header.level != expected.level {
            note(Violation::Level { found: header.level, expected: expected.level });
        }
        if header.owner != self.owner {
            note(Violation::Owner { found: header.owner, expected: self.owner });
        }
        if header.page != id {
            note(Violation::Id { found: header.page });
        }
        let number = page.view().u64(NUMBER);
        if number != expected.first {
            note(Violation::Number { found: number, expected: expected.first });
        }
    }

    fn expect_children(&self, parent: &Expected, view: View<'_>, todo: &mut Vec<Expected>) {
        for i in 0..count_in(self.form, view) {
            if view.u64(self.form.swip_at(i)) != Swip::NULL.0 {
                let offset = span(self.form, parent.level).saturating_mul(i as u64);
                let first = parent.first.saturating_add(offset);
                let (level, depth) = (parent.level - 1, parent.depth + 1);
                todo.push(Expected { first, level, depth });
            }
        }
    }

    /// Copies a page whose ancestors were found sound; returns `None` if there is none.
    fn copy_at(
        &self,
        expected: &Expected,
        top: u8,
        copy: &mut PageBuffer,
    ) -> Result<Option<PageId>, PoolError> {
        self.pages.run(|mtr| {
            let mut page = Read::root(mtr, self.anchor, mark(AccessKind::Read, 0))?;
            for depth in 0..expected.depth {
                let i = index_in(self.form, top.saturating_sub(depth), expected.first);
                let at = self.form.swip_at(i);
                if page.swip(at) == Swip::NULL {
                    page.validate()?;
                    return Ok(None);
                }
                page = page.child(at, mark(AccessKind::Read, depth + 1))?;
            }
            let id = page.header().page().unwrap_or_default();
            page.view().copy_into(0, copy.bytes_mut());
            page.validate()?;
            Ok(Some(id))
        })
    }
}

/// Collects the forwards and guests of a sound data page; returns the number of records with ids of
/// this page.
fn look(page: &PageBuffer, id: PageId, number: u64, moves: &mut Moves) -> u64 {
    let data = Data(page.view());
    let mut records = 0;
    for i in 0..data.slots() {
        let Some(item) = data.item(i) else { continue };
        let here = RecordId::new(number, i);
        records += u64::from(matches!(item.form, Form::Record | Form::Forward));
        match item.form {
            Form::Record | Form::Removed => {}
            Form::Forward => {
                moves.forwards.insert(here, (RecordId(data.id(item)), id));
            }
            Form::Guest => {
                moves.guests.insert(here, (RecordId(data.id(item)), id));
            }
        }
    }
    records
}

/// Matches forwards and guests.
fn match_up(moves: &Moves, violations: &mut Vec<(PageId, Violation)>) {
    for (&id, &(to, page)) in &moves.forwards {
        if moves.guests.get(&to).is_none_or(|&(known, _)| known != id) {
            violations.push((page, Violation::Forward { id, to }));
        }
    }
    for (&at, &(id, page)) in &moves.guests {
        if moves.forwards.get(&id).is_none_or(|&(to, _)| to != at) {
            violations.push((page, Violation::Guest { at, id }));
        }
    }
}
