//! Data pages: records in slots that keep their number.
//!
//! ```text
//! offset size
//!      0   32  the common page header, type HEAP_DATA, level 0
//!     32    2  slots, n
//!     34    2  slots in use
//!     36    4  heap: where the lowest record begins; the page size if there is none
//!     40    4  garbage: bytes of the heap that no record uses
//!     44    4  reserved, 0
//!     48    8  the page's number in the heap
//!     56   4n  slots; all 0: free
//!                 0  2  where the record is, a multiple of 4, plus
//!                       0 a record · 1 a forward: the id of where the record is now (8)
//!                       2 a guest: the id that it is known by (8), then the record
//!                       3 removed, and its place reserved: the transaction's id (8)
//!                 2  2  its bytes
//!      …       free
//!   heap       records, each with room for at least 8 bytes, so that any can become a forward
//! ```
//! Everything below is safe on arbitrary bytes: offsets are checked, and loops are bounded by the
//! page size.

use crate::page::edit::{put_bytes, put_u16, put_u32, put_u64};
use crate::page::{PageBuffer, PageHeader, PageType, View};

const SLOT_COUNT: usize = 32;
const IN_USE: usize = 34;
const HEAP: usize = 36;
const GARBAGE: usize = 40;
/// Offset of the page's number; in directories, of the number of the first data page below.
pub(crate) const NUMBER: usize = 48;
/// Offset of the slots.
pub(crate) const SLOTS: usize = 56;
/// Bytes of a slot.
pub(crate) const SLOT: usize = 4;
/// Number of slots behind the last one that a record may get.
const NEW_SLOTS: usize = 16;
/// Bytes of an id in a forward or before a guest.
pub(crate) const ID: usize = 8;

/// The form of an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// A record.
    Record,
    /// The id of the place where the record is now.
    Forward,
    /// A record that is known by the id of its forward.
    Guest,
    /// A record that a transaction removed. Its slot and its bytes stay reserved until the
    /// transaction is over, so that no other record gets its id and undo finds room.
    Removed,
}

/// The content of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) form: Form,
    pub(crate) at: usize,
    pub(crate) len: usize,
}

/// Returns the number of bytes of the heap that an item of `len` bytes takes.
#[inline(always)]
pub(crate) const fn room(len: usize) -> usize {
    let len = if len < ID { ID } else { len };
    (len + 3) & !3
}

/// A data page, read through raw loads.
#[derive(Clone, Copy)]
pub(crate) struct Data<'a>(pub(crate) View<'a>);

impl<'a> Data<'a> {
    #[inline(always)]
    pub(crate) fn is_data(self) -> bool {
        PageHeader::type_in(self.0) == PageType::HEAP_DATA
    }

    /// Returns the number of slots, limited to those that fit on the page.
    #[inline(always)]
    pub(crate) fn slots(self) -> usize {
        usize::from(self.0.u16(SLOT_COUNT)).min(self.0.len().saturating_sub(SLOTS) / SLOT)
    }

    /// Returns the number of slots in use, as the header states it.
    pub(crate) fn in_use(self) -> usize {
        usize::from(self.0.u16(IN_USE))
    }

    pub(crate) fn heap(self) -> usize {
        self.0.u32(HEAP) as usize
    }

    pub(crate) fn garbage(self) -> usize {
        self.0.u32(GARBAGE) as usize
    }

    pub(crate) fn number(self) -> u64 {
        self.0.u64(NUMBER)
    }

    /// Returns whether slots, heap and garbage are consistent with each other and with the page
    /// size.
    pub(crate) fn is_sound(self) -> bool {
        let slots = usize::from(self.0.u16(SLOT_COUNT));
        let heap = self.heap();
        SLOTS + slots * SLOT <= heap
            && heap <= self.0.len()
            && self.garbage() <= self.0.len() - heap
            && self.in_use() <= slots
    }

    /// Returns the number of free bytes, garbage included.
    pub(crate) fn free(self) -> usize {
        (self.heap() + self.garbage()).saturating_sub(SLOTS + self.slots() * SLOT)
    }

    /// Returns whether a new item of `len` bytes fits.
    pub(crate) fn fits(self, len: usize) -> bool {
        let slot = if self.in_use() < self.slots() { 0 } else { SLOT };
        self.free() >= room(len) + slot
    }

    /// Returns the item in slot `i`, or `None` if the slot is free or does not exist. The item may
    /// be outside the page.
    #[inline(always)]
    pub(crate) fn item(self, i: usize) -> Option<Item> {
        if i >= self.slots() {
            return None;
        }
        let place = self.0.u16(SLOTS + i * SLOT);
        let len = usize::from(self.0.u16(SLOTS + i * SLOT + 2));
        let form = match place & 3 {
            _ if place == 0 => return None,
            0 => Form::Record,
            1 => Form::Forward,
            2 => Form::Guest,
            _ => Form::Removed,
        };
        Some(Item { form, at: usize::from(place & !3), len })
    }

    /// Returns whether an item is inside the heap, and long enough for its id if its form has one.
    pub(crate) fn holds(self, item: Item) -> bool {
        item.at >= self.heap()
            && item.at + room(item.len) <= self.0.len()
            && (item.form == Form::Record || item.len >= ID)
    }

    /// Returns a slot with room for a new record of `len` bytes. `may` must return `true` for the
    /// slot's number and, if a record was removed there, for the transaction. Slots of removed
    /// records come last.
    pub(crate) fn slot_for(
        self,
        len: usize,
        may: &mut dyn FnMut(usize, Option<u64>) -> bool,
    ) -> Option<usize> {
        let (n, free, need) = (self.slots(), self.free(), room(len));
        if self.in_use() < n
            && free >= need
            && let Some(slot) = (0..n).find(|&i| self.item(i).is_none() && may(i, None))
        {
            return Some(slot);
        }
        // New slots may be refused, too: another transaction may have seen that they are free.
        let mut new = (n..n + NEW_SLOTS).take_while(|i| free >= need + (i + 1 - n) * SLOT);
        let new = new.find(|&i| may(i, None));
        new.or_else(|| {
            (0..n).find(|&i| match self.item(i) {
                Some(item) if item.form == Form::Removed && self.holds(item) => {
                    free + room(item.len) >= need && may(i, Some(self.id(item)))
                }
                _ => false,
            })
        })
    }

    /// Returns whether a new item of `len` bytes fits in slot `i`, which is free or behind the last
    /// one.
    pub(crate) fn fits_at(self, i: usize, len: usize) -> bool {
        self.free() >= room(len) + (i + 1).saturating_sub(self.slots()) * SLOT
    }

    /// Returns `true` if an item of `len` bytes can replace the one in slot `i`.
    pub(crate) fn fits_in_place(self, i: usize, len: usize) -> bool {
        self.item(i).is_some_and(|old| self.free() + room(old.len) >= room(len))
    }

    /// Returns the id in a forward or a guest, or that of the transaction that removed a record.
    #[inline(always)]
    pub(crate) fn id(self, item: Item) -> u64 {
        u64::from(self.0.u32(item.at)) | u64::from(self.0.u32(item.at + 4)) << 32
    }
}

/// Returns an item's bytes of the record: none for a forward, or if the item is outside the page.
pub(crate) fn bytes_of(page: &[u8], item: Item) -> &[u8] {
    let skip = if item.form == Form::Record { 0 } else { ID };
    page.get(item.at + skip..(item.at + item.len).max(item.at + skip)).unwrap_or(&[])
}

/// The new content of a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum New<'a> {
    Record(&'a [u8]),
    Forward(u64),
    Guest(u64, &'a [u8]),
    /// A record that the transaction removed, and the number of bytes that stay reserved, at least
    /// those of an id.
    Removed(u64, usize),
}

impl New<'_> {
    pub(crate) fn len(self) -> usize {
        match self {
            New::Record(bytes) => bytes.len(),
            New::Forward(_) => ID,
            New::Guest(_, bytes) => ID + bytes.len(),
            New::Removed(_, len) => len,
        }
    }

    fn tag(self) -> u16 {
        match self {
            New::Record(_) => 0,
            New::Forward(_) => 1,
            New::Guest(..) => 2,
            New::Removed(..) => 3,
        }
    }
}

/// A data page that is latched exclusively, or a draft; its header is sound.
pub(crate) struct DataMut<'a>(pub(crate) &'a mut [u8]);

impl DataMut<'_> {
    pub(crate) fn read(&self) -> Data<'_> {
        Data(View::of(self.0))
    }

    /// Initialises an empty page with the given number.
    pub(crate) fn init(&mut self, number: u64) {
        put_u16(self.0, SLOT_COUNT, 0);
        put_u16(self.0, IN_USE, 0);
        put_u32(self.0, HEAP, self.0.len() as u32);
        put_u32(self.0, GARBAGE, 0);
        put_u64(self.0, NUMBER, number);
    }

    /// Inserts an item into a free slot and returns the slot. Returns `None`, and changes nothing,
    /// if there is no room.
    pub(crate) fn insert(&mut self, new: New<'_>) -> Option<usize> {
        let data = self.read();
        if !data.fits(new.len()) {
            return None;
        }
        let n = data.slots();
        let free = if data.in_use() < n { (0..n).find(|&i| data.item(i).is_none()) } else { None };
        let slot = match free {
            Some(slot) => slot,
            None => {
                if data.heap() < SLOTS + (n + 1) * SLOT {
                    self.sweep();
                }
                if self.read().heap() < SLOTS + (n + 1) * SLOT {
                    return None;
                }
                put_u32(self.0, SLOTS + n * SLOT, 0);
                put_u16(self.0, SLOT_COUNT, (n + 1) as u16);
                n
            }
        };
        if !self.place(slot, new) {
            return None;
        }
        let in_use = self.read().in_use();
        put_u16(self.0, IN_USE, (in_use + 1) as u16);
        Some(slot)
    }

    /// Inserts an item into slot `slot`, if it is free, new, or has a removed record. Returns
    /// `false`, and changes nothing, if it is in use or there is no room.
    pub(crate) fn insert_at(&mut self, slot: usize, new: New<'_>) -> bool {
        let (n, free) = (self.read().slots(), self.read().free());
        match self.read().item(slot) {
            Some(Item { form: Form::Removed, .. }) => return self.replace(slot, new),
            Some(_) => return false,
            None => {}
        }
        let more = (slot + 1).saturating_sub(n);
        if free < room(new.len()) + more * SLOT {
            return false;
        }
        if more > 0 {
            if self.read().heap() < SLOTS + (slot + 1) * SLOT {
                self.sweep();
            }
            for i in n..=slot {
                put_u32(self.0, SLOTS + i * SLOT, 0);
            }
            put_u16(self.0, SLOT_COUNT, (slot + 1) as u16);
        }
        if !self.place(slot, new) {
            return false;
        }
        let in_use = self.read().in_use();
        put_u16(self.0, IN_USE, (in_use + 1) as u16);
        true
    }

    /// Writes an item below the heap, and the slot, which was free.
    fn place(&mut self, slot: usize, new: New<'_>) -> bool {
        debug_assert!(slot < self.read().slots());
        debug_assert!(self.read().item(slot).is_none());
        let bytes = room(new.len());
        let end = SLOTS + self.read().slots() * SLOT;
        if self.read().heap() < end + bytes {
            self.sweep();
        }
        let Some(at) = self.read().heap().checked_sub(bytes).filter(|&at| at >= end) else {
            return false;
        };
        put_u32(self.0, HEAP, at as u32);
        self.write(slot, at, new);
        true
    }

    fn write(&mut self, slot: usize, at: usize, new: New<'_>) {
        match new {
            New::Record(bytes) => put_bytes(self.0, at, bytes),
            New::Forward(id) | New::Removed(id, _) => put_u64(self.0, at, id),
            New::Guest(id, bytes) => {
                put_u64(self.0, at, id);
                put_bytes(self.0, at + ID, bytes);
            }
        }
        put_u16(self.0, SLOTS + slot * SLOT, at as u16 | new.tag());
        put_u16(self.0, SLOTS + slot * SLOT + 2, new.len() as u16);
    }

    /// Replaces the item in slot `i`, which is in use. Returns `false`, and changes nothing, if
    /// there is no room. There is always room for a forward.
    pub(crate) fn replace(&mut self, i: usize, new: New<'_>) -> bool {
        let Some(old) = self.read().item(i) else { return false };
        let (before, after) = (room(old.len), room(new.len()));
        if after <= before {
            self.write(i, old.at, new);
            self.add_garbage(before - after);
            return true;
        }
        if self.read().free() + before < after {
            return false;
        }
        put_u32(self.0, SLOTS + i * SLOT, 0);
        self.add_garbage(before);
        self.place(i, new)
    }

    fn add_garbage(&mut self, bytes: usize) {
        let garbage = self.read().garbage();
        put_u32(self.0, GARBAGE, (garbage + bytes) as u32);
    }

    /// Empties slot `i`.
    pub(crate) fn remove(&mut self, i: usize) {
        let Some(old) = self.read().item(i) else { return };
        put_u32(self.0, SLOTS + i * SLOT, 0);
        let in_use = self.read().in_use().saturating_sub(1);
        put_u16(self.0, IN_USE, in_use as u16);
        if in_use == 0 {
            let number = self.read().number();
            self.init(number);
            return;
        }
        let heap = self.read().heap();
        if old.at == heap {
            put_u32(self.0, HEAP, (heap + room(old.len)) as u32);
        } else {
            self.add_garbage(room(old.len));
        }
        let mut n = self.read().slots();
        while n > 0 && self.read().item(n - 1).is_none() {
            n -= 1;
            put_u16(self.0, SLOT_COUNT, n as u16);
        }
    }

    /// Compacts the heap, so that the free bytes are contiguous; slots keep their numbers.
    fn sweep(&mut self) {
        let old = PageBuffer::copy_of(self.0);
        let data = Data(old.view());
        let mut at = self.0.len();
        let end = SLOTS + data.slots() * SLOT;
        for i in 0..data.slots() {
            let Some(item) = data.item(i) else { continue };
            let bytes = old.bytes().get(item.at..item.at + item.len).unwrap_or(&[]);
            let Some(next) = at.checked_sub(room(item.len)).filter(|&next| next >= end) else {
                return;
            };
            at = next;
            put_bytes(self.0, at, bytes);
            let tag = data.0.u16(SLOTS + i * SLOT) & 3;
            put_u16(self.0, SLOTS + i * SLOT, at as u16 | tag);
        }
        put_u32(self.0, HEAP, at as u32);
        put_u32(self.0, GARBAGE, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(page: &PageBuffer, i: usize) -> Option<Vec<u8>> {
        let data = Data(page.view());
        data.item(i).map(|item| {
            assert!(data.holds(item));
            bytes_of(page.bytes(), item).to_vec()
        })
    }

    #[test]
    fn slots_keep_their_records_through_everything() {
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..30 {
            let mut page = PageBuffer::new(512);
            DataMut(page.bytes_mut()).init(3);
            let mut model: Vec<Option<Vec<u8>>> = Vec::new();
            for _ in 0..300 {
                let bytes = vec![random.u8(..); random.usize(..60)];
                let slot = random.usize(..model.len().max(1));
                let mut data = DataMut(page.bytes_mut());
                match random.u8(..4) {
                    0 | 1 => {
                        let fits = data.read().fits(bytes.len());
                        let slot = data.insert(New::Record(&bytes));
                        assert_eq!(slot.is_some(), fits);
                        let Some(slot) = slot else { continue };
                        model.resize(model.len().max(slot + 1), None);
                        assert_eq!(model[slot], None);
                        model[slot] = Some(bytes);
                    }
                    2 => {
                        data.remove(slot);
                        if let Some(place) = model.get_mut(slot) {
                            *place = None;
                        }
                    }
                    _ => {
                        if data.replace(slot, New::Record(&bytes)) {
                            model[slot] = Some(bytes);
                        }
                    }
                }
                assert!(data.read().is_sound());
                for (i, expect) in model.iter().enumerate() {
                    assert_eq!(&seen(&page, i), expect);
                }
            }
        }
    }

    #[test]
    fn a_full_page_can_turn_every_record_into_a_forward() {
        let mut page = PageBuffer::new(512);
        let mut data = DataMut(page.bytes_mut());
        data.init(0);
        let mut n = 0;
        while data.insert(New::Record(&[n])).is_some() {
            n += 1;
        }
        for i in 0..usize::from(n) {
            assert!(data.replace(i, New::Forward(i as u64 * 77)));
        }
        let data = Data(page.view());
        for i in 0..usize::from(n) {
            let item = data.item(i).unwrap();
            assert_eq!((item.form, data.id(item)), (Form::Forward, i as u64 * 77));
        }
    }
}
