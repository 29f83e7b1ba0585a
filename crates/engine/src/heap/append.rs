//! Appends records, and grows the tree of directories for them.
//!
//! A record is inserted into the last data page, or into a page with room that a removal left. Each
//! attempt makes one change that is complete in itself. It fills a page, or allocates a data page
//! or a directory, or makes the root one level higher by moving its content into a new child.

use std::sync::atomic::Ordering;

use millpond_base::AccessKind;

use crate::heap::data::{Data, DataMut, NUMBER, New};
use crate::heap::descend::{mark, sound, wrong};
use crate::heap::directory::{count_in, init, set_count, set_level, span};
use crate::heap::error::WriteError;
use crate::heap::table::{Heap, RecordId};
use crate::page::edit::{put_bytes, put_u64};
use crate::page::{DIRECTORY_HEADER, Directory, View};
use crate::pool::{MiniTransaction, Pages, PoolError, Read, Swip, Try, Write};

/// A directory on the path to the last data page that has a slot for one more child.
struct Open<'o, P: Pages> {
    directory: Read<'o, P>,
    level: u8,
    count: usize,
}

/// Decision about an id that a record could get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placing {
    /// The id is refused, and the search goes on.
    Refuse,
    /// The id is returned. The record is inserted later, if there is still room then.
    Choose,
    /// The record is inserted.
    Insert,
}

/// An item to insert, and the decision about an id that it could get: a free one, or that of a
/// record that this transaction removed.
pub(crate) struct Wanted<'a, 'm> {
    pub(crate) new: New<'a>,
    pub(crate) may: &'m mut dyn FnMut(RecordId, Option<u64>) -> Placing,
}

impl Wanted<'_, '_> {
    /// Inserts the item into a data page, or only chooses its place there. Returns the place, or
    /// `None` if the page has none for it.
    pub(crate) fn put_into<P: Pages>(&mut self, page: &mut Write<'_, P>) -> Option<RecordId> {
        let data = Data(page.view());
        let (number, mut placing) = (data.number(), Placing::Refuse);
        let slot = data.slot_for(self.new.len(), &mut |slot, removed| {
            placing = (self.may)(RecordId::new(number, slot), removed);
            placing != Placing::Refuse
        })?;
        if placing == Placing::Insert && !DataMut(page.page_mut()).insert_at(slot, self.new) {
            return None;
        }
        Some(RecordId::new(number, slot))
    }
}

impl<P: Pages> Heap<P> {
    /// Appends a record, or inserts it where one was removed; returns its id.
    ///
    /// # Errors
    /// The record is too long, or the memory behind the heap failed.
    pub fn append(&self, record: &[u8]) -> Result<RecordId, WriteError> {
        self.check_size(record.len())?;
        Ok(self.put(New::Record(record))?)
    }

    /// Appends many records in order, page by page, without searching for gaps. Calls `each` with
    /// every id; returns the number of records.
    ///
    /// # Errors
    /// A record is too long, or the memory behind the heap failed. The records before that one are
    /// in the heap, and `each` was called for them.
    pub fn append_all<R: AsRef<[u8]>>(
        &self,
        records: impl IntoIterator<Item = R>,
        mut each: impl FnMut(RecordId),
    ) -> Result<u64, WriteError> {
        let mut records = records.into_iter().peekable();
        let mut appended = 0;
        while let Some(record) = records.peek() {
            self.check_size(record.as_ref().len())?;
            let mut too_long = None;
            self.at_tail(&mut |page| {
                let mut data = DataMut(page.page_mut());
                let mut any = false;
                while let Some(record) = records.peek() {
                    let record = record.as_ref();
                    if record.len() > self.limits.record_max {
                        too_long = Some(record.len());
                        return true;
                    }
                    let number = data.read().number();
                    let Some(slot) = data.insert(New::Record(record)) else { break };
                    each(RecordId::new(number, slot));
                    appended += 1;
                    any = true;
                    records.next();
                }
                any
            })?;
            if let Some(len) = too_long {
                self.check_size(len)?;
            }
        }
        Ok(appended)
    }

    /// Checks the length of a record against the limits.
    pub(crate) fn check_size(&self, len: usize) -> Result<(), WriteError> {
        let max = self.limits.record_max;
        if len > max { Err(WriteError::TooLong { len, max }) } else { Ok(()) }
    }

    /// Finds an id for a record and returns it; inserts the record if `may` decides so. Offers ids
    /// to `may` until it accepts one. If the place is that of a record that a transaction removed,
    /// `may` receives the transaction. `may` is called under the page's latch.
    ///
    /// # Errors
    /// See [`Heap::append`].
    pub(crate) fn place_record(
        &self,
        record: &[u8],
        may: &mut dyn FnMut(RecordId, Option<u64>) -> Placing,
    ) -> Result<RecordId, WriteError> {
        self.check_size(record.len())?;
        Ok(self.put_where(Wanted { new: New::Record(record), may })?)
    }

    /// Inserts an item into any page with room.
    pub(crate) fn put(&self, new: New<'_>) -> Result<RecordId, PoolError> {
        // The place of a removed record belongs to its transaction.
        let may = &mut |_, removed: Option<u64>| match removed {
            None => Placing::Insert,
            Some(_) => Placing::Refuse,
        };
        self.put_where(Wanted { new, may })
    }

    fn put_where(&self, mut wanted: Wanted<'_, '_>) -> Result<RecordId, PoolError> {
        if let Some(id) = self.put_into_hole(&mut wanted)? {
            return Ok(id);
        }
        let mut id = RecordId(0);
        self.at_tail(&mut |page| match wanted.put_into(page) {
            Some(place) => {
                id = place;
                true
            }
            None => false,
        })?;
        Ok(id)
    }

    /// Calls `fill` with the last data page, and with new ones after it, until it returns `true`:
    /// it has inserted an item.
    fn at_tail(&self, fill: &mut impl FnMut(&mut Write<'_, P>) -> bool) -> Result<(), PoolError> {
        while !self.pages.run(|mtr| self.attempt_tail(mtr, fill))? {}
        Ok(())
    }

    fn attempt_tail<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        fill: &mut impl FnMut(&mut Write<'_, P>) -> bool,
    ) -> Try<bool> {
        let (mut directory, mut level) = self.root_page(mtr)?;
        let mut open = None;
        let mut depth = 0;
        loop {
            let count = count_in(self.form, directory.view());
            let last = self.form.swip_at(count.saturating_sub(1));
            let missing = count == 0 || directory.swip(last) == Swip::NULL;
            directory.validate()?;
            if missing && level > 1 && count > 0 {
                return wrong(&directory);
            }
            depth += 1;
            if level == 1 || missing {
                if level == 1 && !missing {
                    let page = directory.child_exclusive(last, mark(AccessKind::Write, depth))?;
                    if self.fill(&mut sound(page)?, fill) {
                        return Ok(true);
                    }
                }
                if count < self.form.fan_out() {
                    open = Some(Open { directory, level, count });
                } else {
                    // The directory may be the root, which is upgraded next: this read must have
                    // ended.
                    drop(directory);
                }
                break;
            }
            let child = self.directory_below(&directory, last, level - 1, depth)?;
            let parent = std::mem::replace(&mut directory, child);
            if count < self.form.fan_out() {
                open = Some(Open { directory: parent, level, count });
            }
            level -= 1;
        }
        match open {
            Some(open) => self.add_child(mtr, open, fill),
            None => self.grow_root(mtr),
        }
    }

    /// Lets `fill` insert items into a data page; a page where nothing fits stays as it is.
    fn fill(
        &self,
        page: &mut Write<'_, P>,
        fill: &mut impl FnMut(&mut Write<'_, P>) -> bool,
    ) -> bool {
        let number = Data(page.view()).number();
        let filled = fill(page);
        if filled && self.tail.load(Ordering::Relaxed) != number {
            self.tail.store(number, Ordering::Relaxed);
        }
        filled
    }

    /// Allocates one more child of a directory. If it is a data page, fills it at once.
    fn add_child<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        open: Open<'o, P>,
        fill: &mut impl FnMut(&mut Write<'_, P>) -> bool,
    ) -> Try<bool> {
        let Open { directory, level, count } = open;
        debug_assert!(count < self.form.fan_out());
        debug_assert!(level > 0);
        let mut directory = directory.upgrade()?;
        let first = directory.view().u64(NUMBER);
        let number = first.wrapping_add(span(self.form, level).wrapping_mul(count as u64));
        let new = if level == 1 { self.new_data() } else { self.new_directory(level - 1) };
        let mut page = mtr.allocate(new)?;
        let mut filled = false;
        if level == 1 {
            DataMut(page.page_mut()).init(number);
            filled = self.fill(&mut page, fill);
        } else {
            init(page.page_mut(), number);
        }
        let swip = page.swip();
        let parent = directory.page_mut();
        put_u64(parent, self.form.swip_at(count), swip.0);
        put_bytes(parent, self.form.byte_at(count), &[0]);
        set_count(parent, count + 1);
        mtr.adopt(swip, &directory);
        Ok(filled)
    }

    /// Moves the root's content into a new child, since all directories on the path to the last
    /// page are full.
    fn grow_root<'o>(&self, mtr: &'o MiniTransaction<'o, P>) -> Try<bool> {
        let (root, level) = self.root_page(mtr)?;
        let mut root = root.upgrade()?;
        let mut child = mtr.allocate(self.new_directory(level))?;
        let content = root.page()[DIRECTORY_HEADER.min(root.page().len())..].to_vec();
        let count = count_in(self.form, root.view());
        init(child.page_mut(), 0);
        set_count(child.page_mut(), count);
        put_bytes(child.page_mut(), DIRECTORY_HEADER, &content);
        for i in 0..count {
            let word = Swip(child.view().u64(self.form.swip_at(i)));
            if word != Swip::NULL {
                mtr.adopt(word, &child);
            }
        }
        let swip = child.swip();
        let most = most_room(self.form, child.view());
        let page = root.page_mut();
        if let Some(content) = page.get_mut(DIRECTORY_HEADER..) {
            content.fill(0);
        }
        set_level(page, level + 1);
        set_count(page, 1);
        put_u64(page, self.form.swip_at(0), swip.0);
        put_bytes(page, self.form.byte_at(0), &[most]);
        mtr.adopt(swip, &root);
        Ok(false)
    }
}

/// Returns the largest free space that a directory records for a child.
pub(crate) fn most_room(form: Directory, view: View<'_>) -> u8 {
    (0..count_in(form, view)).map(|i| view.u8(form.byte_at(i))).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use crate::heap::data::{Data, DataMut, New, bytes_of};
    use crate::page::PageBuffer;

    #[test]
    fn the_place_of_a_removed_record_is_given_last_and_only_to_whom_it_may_be() {
        let mut page = PageBuffer::new(512);
        let mut data = DataMut(page.bytes_mut());
        data.init(3);
        while data.insert(New::Record(&[7; 20])).is_some() {}
        let n = data.read().slots();
        for slot in [2, 5] {
            assert!(data.replace(slot, New::Removed(70 + slot as u64, 20)));
        }
        let read = data.read();
        assert_eq!((read.slots(), read.in_use()), (n, n), "its slot stays in use");
        let mut offered = Vec::new();
        let slot = read.slot_for(20, &mut |slot, by| {
            offered.push((slot, by));
            by == Some(75)
        });
        assert_eq!((slot, offered), (Some(5), vec![(2, Some(72)), (5, Some(75))]));
        // A free slot comes first, then one behind the last.
        data.remove(4);
        data.remove(n - 1);
        let read = data.read();
        assert_eq!(read.slot_for(20, &mut |_, _| true), Some(4));
        assert_eq!(read.slot_for(20, &mut |slot, _| slot != 4), Some(n - 1));
        assert!(!data.insert_at(3, New::Record(&[1; 8])), "it is in use");
        assert!(data.insert_at(2, New::Record(&[1; 8])));
        assert!(data.insert_at(n + 1, New::Record(&[2; 8])));
        assert!(data.read().is_sound() && data.read().item(n).is_none());
        let record = |slot| bytes_of(page.bytes(), Data(page.view()).item(slot).unwrap());
        assert_eq!((record(2), record(n + 1)), (&[1; 8][..], &[2; 8][..]));
    }
}
