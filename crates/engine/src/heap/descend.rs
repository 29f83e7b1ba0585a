//! Descents from the root to a data page, by its number.

use millpond_base::{AccessKind, Mark, PageKind};

use crate::heap::data::Data;
use crate::heap::directory::{LEVEL, count_in, index_in, is_directory, span};
use crate::heap::error::corrupt;
use crate::heap::table::{Heap, RecordId};
use crate::pool::{MiniTransaction, Pages, Read, Swip, Try, Write};

/// Returns the mark of a reference to a page.
#[inline(always)]
pub(crate) fn mark(access: AccessKind, depth: u8) -> Mark {
    Mark::of(access).with_kind(PageKind::OTHER, depth)
}

/// Ends the attempt: the page does not match its parent's description, unless it has changed since.
#[cold]
pub(crate) fn wrong<P: Pages, T>(page: &Read<'_, P>) -> Try<T> {
    let id = page.header().page().unwrap_or_default();
    page.validate()?;
    Err(corrupt(id, "not the page of a heap that its parent expects"))
}

/// Checks that a page that is latched exclusively is a data page with a consistent header.
pub(crate) fn sound<P: Pages>(page: Write<'_, P>) -> Try<Write<'_, P>> {
    let data = Data(page.view());
    if data.is_data() && data.is_sound() {
        return Ok(page);
    }
    Err(corrupt(page.id(), "not the data page of a heap, or its header is inconsistent"))
}

/// The lowest directory above a data page, and the page's place in it.
pub(crate) struct DataPageSlot<'o, P: Pages> {
    pub(crate) directory: Read<'o, P>,
    pub(crate) index: usize,
    pub(crate) at: usize,
    pub(crate) depth: u8,
}

// A descent is long once it is compiled, and each compiled combination has it. So functions here
// are compiled once, and only look-ups and updates have a copy of their own.
impl<P: Pages> Heap<P> {
    /// Returns the root and its level, which is valid once the root was validated.
    #[inline(never)]
    pub(crate) fn root_page<'o>(&self, mtr: &'o MiniTransaction<'o, P>) -> Try<(Read<'o, P>, u8)> {
        self.root_page_here(mtr)
    }

    #[inline(always)]
    fn root_page_here<'o>(&self, mtr: &'o MiniTransaction<'o, P>) -> Try<(Read<'o, P>, u8)> {
        let root = Read::root(mtr, self.anchor, mark(AccessKind::Read, 0))?;
        let level = root.view().u8(LEVEL);
        if !is_directory(root.view(), level) {
            return wrong(&root);
        }
        Ok((root, level))
    }

    /// Returns a directory of level `level` below another.
    #[inline(never)]
    pub(crate) fn directory_below<'o>(
        &self,
        parent: &Read<'o, P>,
        at: usize,
        level: u8,
        depth: u8,
    ) -> Try<Read<'o, P>> {
        self.directory_below_here(parent, at, level, depth)
    }

    #[inline(always)]
    fn directory_below_here<'o>(
        &self,
        parent: &Read<'o, P>,
        at: usize,
        level: u8,
        depth: u8,
    ) -> Try<Read<'o, P>> {
        let child = parent.child(at, mark(AccessKind::Read, depth))?;
        if is_directory(child.view(), level) { Ok(child) } else { wrong(&child) }
    }

    /// Returns the place of data page `number`, or `None` if there is no such page.
    #[inline(never)]
    pub(crate) fn place<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        number: u64,
    ) -> Try<Option<DataPageSlot<'o, P>>> {
        self.place_here(mtr, number)
    }

    #[inline(always)]
    fn place_here<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        number: u64,
    ) -> Try<Option<DataPageSlot<'o, P>>> {
        let (mut directory, mut level) = self.root_page_here(mtr)?;
        if number / self.form.fan_out() as u64 >= span(self.form, level) {
            directory.validate()?;
            return Ok(None);
        }
        let mut depth = 0;
        loop {
            let index = index_in(self.form, level, number);
            let at = self.form.swip_at(index);
            if index >= count_in(self.form, directory.view()) || directory.swip(at) == Swip::NULL {
                directory.validate()?;
                return Ok(None);
            }
            if level == 1 {
                return Ok(Some(DataPageSlot { directory, index, at, depth }));
            }
            level -= 1;
            depth += 1;
            directory = self.directory_below_here(&directory, at, level, depth)?;
        }
    }

    /// Returns data page `number` for an optimistic read, or `None` if there is none.
    #[inline(never)]
    pub(crate) fn data_page<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        number: u64,
    ) -> Try<Option<Read<'o, P>>> {
        self.data_page_here(mtr, number)
    }

    /// Like [`Heap::data_page`], inlined: for look-ups.
    #[inline(always)]
    pub(crate) fn data_page_here<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        number: u64,
    ) -> Try<Option<Read<'o, P>>> {
        let Some(place) = self.place_here(mtr, number)? else { return Ok(None) };
        let page = place.directory.child(place.at, mark(AccessKind::Read, place.depth + 1))?;
        if Data(page.view()).is_data() { Ok(Some(page)) } else { wrong(&page) }
    }

    /// Returns the data page of a record, latched exclusively, or `None` if there is none.
    #[inline(never)]
    pub(crate) fn data_page_to_write<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        id: RecordId,
    ) -> Try<Option<Write<'o, P>>> {
        let Some(place) = self.place_here(mtr, id.page())? else { return Ok(None) };
        let to = mark(AccessKind::Write, place.depth + 1);
        Ok(Some(sound(place.directory.child_exclusive(place.at, to)?)?))
    }
}
