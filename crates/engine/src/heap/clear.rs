//! Removes all records.

use std::sync::atomic::Ordering;

use millpond_base::{AccessKind, Mark};

use crate::heap::descend::mark;
use crate::heap::directory::{count_in, set_count, set_level};
use crate::heap::table::Heap;
use crate::page::edit::{put_bytes, put_u64};
use crate::pool::{ANCHOR_SWIP, MiniTransaction, Pages, PoolError, Read, Swip, Try, Write};

impl<P: Pages> Heap<P> {
    /// Removes every record and frees every page except the root, the last page first. Use it while
    /// no other thread writes. Ids begin at 0 again.
    ///
    /// # Errors
    /// The memory behind the heap failed.
    pub fn clear(&self) -> Result<(), PoolError> {
        loop {
            self.pages.make_log_room(2 * self.pages.page_size())?;
            if !self.pages.run(|mtr| self.attempt_drop_last(mtr))? {
                break;
            }
        }
        self.tail.store(u64::MAX, Ordering::Relaxed);
        self.holes.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Frees all pages, and the anchor with them.
    ///
    /// # Errors
    /// The memory behind the heap failed.
    pub fn destroy(self) -> Result<(), PoolError> {
        self.clear()?;
        self.pages.run(|mtr| {
            let mut anchor = Read::anchor(mtr, self.anchor)?.upgrade()?;
            let root = anchor.child_exclusive(ANCHOR_SWIP, Mark::WRITE)?;
            put_u64(anchor.page_mut(), ANCHOR_SWIP, Swip::NULL.0);
            root.free();
            Ok(())
        })?;
        self.pages.release_anchor(self.anchor);
        Ok(())
    }

    /// Frees the last page that has no children; returns `false` if only the root is left.
    fn attempt_drop_last<'o>(&self, mtr: &'o MiniTransaction<'o, P>) -> Try<bool> {
        let (mut directory, mut level) = self.root_page(mtr)?;
        let mut parent: Option<Read<'o, P>> = None;
        let mut depth = 0;
        loop {
            let count = count_in(self.form, directory.view());
            if count == 0 {
                let Some(parent) = parent else { return self.flatten(directory, level) };
                drop(directory);
                return self.drop_child(parent.upgrade()?, depth, true);
            }
            let at = self.form.swip_at(count - 1);
            depth += 1;
            if level == 1 || directory.swip(at) == Swip::NULL {
                return self.drop_child(directory.upgrade()?, depth, false);
            }
            level -= 1;
            let child = self.directory_below(&directory, at, level, depth)?;
            parent = Some(std::mem::replace(&mut directory, child));
        }
    }

    /// Frees the last child of a directory, unless it must be empty and is not.
    fn drop_child(&self, mut parent: Write<'_, P>, depth: u8, empty: bool) -> Try<bool> {
        let Some(last) = count_in(self.form, parent.view()).checked_sub(1) else { return Ok(true) };
        let at = self.form.swip_at(last);
        let child = if parent.view().u64(at) == Swip::NULL.0 {
            None
        } else {
            Some(parent.child_exclusive(at, mark(AccessKind::Write, depth))?)
        };
        if empty && child.as_ref().is_some_and(|c| count_in(self.form, c.view()) > 0) {
            return Ok(true);
        }
        let page = parent.page_mut();
        put_u64(page, at, Swip::NULL.0);
        put_bytes(page, self.form.byte_at(last), &[0]);
        set_count(page, last);
        if let Some(child) = child {
            child.free();
        }
        Ok(true)
    }

    /// Makes the root, which has no children, a directory of level 1.
    fn flatten(&self, root: Read<'_, P>, level: u8) -> Try<bool> {
        if level > 1 {
            set_level(root.upgrade()?.page_mut(), 1);
        } else {
            root.validate()?;
        }
        Ok(false)
    }
}
