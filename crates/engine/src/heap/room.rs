//! Records the free space that removals leave, finds it again, and frees empty pages.
//!
//! Beside each child, a directory keeps a byte: the free space in that data page, or the largest
//! free space in any page below. The bytes are hints. A removal raises them, from the root down,
//! once a page's free space has grown by an eighth of a page. A writer that finds less than
//! recorded lowers them. So a search is wrong at most once per byte, and appending searches nothing
//! while there are no gaps.

use std::sync::atomic::Ordering;

use millpond_base::AccessKind;

use crate::heap::append::{Wanted, most_room};
use crate::heap::data::{Data, DataMut, NUMBER, SLOT, room};
use crate::heap::descend::{mark, sound};
use crate::heap::directory::{count_in, index_in};
use crate::heap::table::{Heap, RecordId};
use crate::page::View;
use crate::page::edit::{put_bytes, put_u64};
use crate::pool::{MiniTransaction, Pages, PoolError, Read, Swip, Try};

/// Step in which free space is recorded, in 255ths of a page.
const STEP: u8 = 32;
/// The byte of a data page that was freed: all of it is free space.
const ALL: u8 = u8::MAX;

/// The free space of a data page before and after a removal.
#[derive(Clone, Copy)]
pub(crate) struct RoomLeft {
    /// The page's number.
    pub(crate) page: u64,
    /// Free bytes before.
    pub(crate) before: usize,
    /// Free bytes after.
    pub(crate) after: usize,
    /// True if no slot is in use any more.
    pub(crate) is_empty: bool,
}

/// Outcome of a search for a page with room.
enum Hole {
    /// The item was inserted.
    Done(RecordId),
    /// A hint was wrong, and was corrected.
    Again,
    /// No page has enough room.
    None,
}

impl<P: Pages> Heap<P> {
    /// Returns the byte that records `bytes` of free space.
    pub(crate) fn class(&self, bytes: usize) -> u8 {
        (bytes * 255 / self.pages.page_size()).min(255) as u8
    }

    /// Inserts an item where a removal left room; returns `None` if there is no such page.
    pub(crate) fn put_into_hole(
        &self,
        wanted: &mut Wanted<'_, '_>,
    ) -> Result<Option<RecordId>, PoolError> {
        let need = self.class(room(wanted.new.len()) + SLOT).saturating_add(1).max(STEP);
        loop {
            let most = self.holes.load(Ordering::Relaxed);
            if need > most {
                return Ok(None);
            }
            match self.pages.run(|mtr| self.attempt_hole(mtr, wanted, need, most))? {
                Hole::Done(id) => return Ok(Some(id)),
                Hole::Again => {}
                Hole::None => return Ok(None),
            }
        }
    }

    fn attempt_hole<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        wanted: &mut Wanted<'_, '_>,
        need: u8,
        most: u8,
    ) -> Try<Hole> {
        let (mut directory, mut level) = self.root_page(mtr)?;
        let mut above: Option<(Read<'o, P>, usize)> = None;
        let mut depth = 0;
        loop {
            let view = directory.view();
            let Some(i) = self.first_with(view, need) else {
                let left = most_room(self.form, view);
                directory.validate()?;
                return self.lower(above, left, most);
            };
            let at = self.form.swip_at(i);
            if level == 1 {
                return self.put_into_child(mtr, directory, i, wanted, depth);
            }
            level -= 1;
            depth += 1;
            if directory.swip(at) == Swip::NULL {
                directory.validate()?;
                return self.lower(Some((directory, i)), 0, most);
            }
            let child = self.directory_below(&directory, at, level, depth)?;
            above = Some((directory, i));
            directory = child;
        }
    }

    fn first_with(&self, view: View<'_>, need: u8) -> Option<usize> {
        (0..count_in(self.form, view)).find(|&i| view.u8(self.form.byte_at(i)) >= need)
    }

    /// Records that there is at most `left` of free space below a slot, or in the whole heap.
    fn lower<'o>(&self, above: Option<(Read<'o, P>, usize)>, left: u8, most: u8) -> Try<Hole> {
        let Some((parent, i)) = above else {
            // A removal that has raised the hint since is right.
            let _ = self.holes.compare_exchange(most, left, Ordering::Relaxed, Ordering::Relaxed);
            return Ok(Hole::None);
        };
        put_bytes(parent.upgrade()?.page_mut(), self.form.byte_at(i), &[left]);
        Ok(Hole::Again)
    }

    /// Inserts an item into the data page at slot `i`, if it fits.
    fn put_into_child<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        directory: Read<'o, P>,
        i: usize,
        wanted: &mut Wanted<'_, '_>,
        depth: u8,
    ) -> Try<Hole> {
        let at = self.form.swip_at(i);
        if directory.swip(at) == Swip::NULL {
            let mut directory = directory.upgrade()?;
            let mut page = mtr.allocate(self.new_data())?;
            let number = directory.view().u64(NUMBER) + i as u64;
            DataMut(page.page_mut()).init(number);
            let Some(id) = wanted.put_into(&mut page) else {
                page.free();
                return Ok(Hole::None);
            };
            let left = self.class(Data(page.view()).free());
            let swip = page.swip();
            put_u64(directory.page_mut(), at, swip.0);
            put_bytes(directory.page_mut(), self.form.byte_at(i), &[left]);
            mtr.adopt(swip, &directory);
            return Ok(Hole::Done(id));
        }
        let mut page = sound(directory.child_exclusive(at, mark(AccessKind::Write, depth + 1))?)?;
        if let Some(id) = wanted.put_into(&mut page) {
            return Ok(Hole::Done(id));
        }
        let left = self.class(Data(page.view()).free());
        drop(page);
        // The page may have room for smaller items.
        let byte = directory.view().u8(self.form.byte_at(i));
        let lowered = left.min(byte.saturating_sub(1));
        put_bytes(directory.upgrade()?.page_mut(), self.form.byte_at(i), &[lowered]);
        Ok(Hole::Again)
    }

    /// Records the free space that a removal left, or frees the page if it is empty.
    pub(crate) fn record_room(&self, left: RoomLeft) -> Result<(), PoolError> {
        let RoomLeft { page: number, before, after, is_empty } = left;
        if is_empty && self.tail.load(Ordering::Relaxed) != number {
            return self.free_empty(number);
        }
        let (before, after) = (self.class(before) / STEP, self.class(after) / STEP);
        if after > before { self.raise(number, after * STEP) } else { Ok(()) }
    }

    /// Raises each byte on the path from the root to a page to at least `class`.
    fn raise(&self, number: u64, class: u8) -> Result<(), PoolError> {
        while self.pages.run(|mtr| self.attempt_raise(mtr, number, class))? {}
        self.holes.fetch_max(class, Ordering::Relaxed);
        Ok(())
    }

    fn attempt_raise<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        number: u64,
        class: u8,
    ) -> Try<bool> {
        let (mut directory, mut level) = self.root_page(mtr)?;
        let mut depth = 0;
        loop {
            let index = index_in(self.form, level, number);
            let (byte, at) = (self.form.byte_at(index), self.form.swip_at(index));
            let view = directory.view();
            if index >= count_in(self.form, view) {
                directory.validate()?;
                return Ok(false);
            }
            if view.u8(byte) < class {
                put_bytes(directory.upgrade()?.page_mut(), byte, &[class]);
                return Ok(true);
            }
            if level == 1 || directory.swip(at) == Swip::NULL {
                directory.validate()?;
                return Ok(false);
            }
            level -= 1;
            depth += 1;
            directory = self.directory_below(&directory, at, level, depth)?;
        }
    }

    /// Frees a data page if it is still empty.
    fn free_empty(&self, number: u64) -> Result<(), PoolError> {
        let gone = self.pages.run(|mtr| {
            let Some(place) = self.place(mtr, number)? else { return Ok(false) };
            let mut directory = place.directory.upgrade()?;
            let page =
                directory.child_exclusive(place.at, mark(AccessKind::Write, place.depth + 1))?;
            let page = sound(page)?;
            if Data(page.view()).in_use() > 0 {
                return Ok(false);
            }
            put_u64(directory.page_mut(), place.at, Swip::NULL.0);
            put_bytes(directory.page_mut(), self.form.byte_at(place.index), &[ALL]);
            page.free();
            Ok(true)
        })?;
        if gone { self.raise(number, ALL) } else { Ok(()) }
    }
}
