//! Changes and removes single records.

use crate::heap::data::{Data, DataMut, Form, ID, Item, New, bytes_of};
use crate::heap::error::{WriteError, corrupt};
use crate::heap::room::RoomLeft;
use crate::heap::table::{Heap, RecordId};
use crate::pool::{MiniTransaction, Pages, PoolError, Try, Write};

/// Outcome of an update.
enum Step {
    Missing,
    Done,
    /// Neither the record's page nor its guest's has room.
    Move,
}

/// A record whose pages are latched exclusively.
pub(crate) struct HeldRecord<'o, P: Pages> {
    /// The page that its id names.
    pub(crate) page: Write<'o, P>,
    /// The item in its slot: the record itself, or the forward to its guest.
    pub(crate) item: Item,
    pub(crate) guest: Option<HeldGuest<'o, P>>,
}

/// The guest of a forwarded record.
pub(crate) struct HeldGuest<'o, P: Pages> {
    /// The guest's page; `None` if it is the forward's own page.
    pub(crate) other: Option<Write<'o, P>>,
    /// The guest's place.
    pub(crate) target: RecordId,
    pub(crate) item: Item,
}

/// Outcome of making a slot a forward.
pub(crate) enum Forwarded {
    /// There is no record in the slot.
    Missing,
    /// The slot had the record itself.
    First,
    /// The slot had a forward to this place.
    Again(RecordId),
}

/// Returns the item in a slot of a latched page, or `None` if the slot is free. Checks that the
/// item is inside the heap.
pub(crate) fn item_of<P: Pages>(page: &Write<'_, P>, slot: usize) -> Try<Option<Item>> {
    let data = Data(page.view());
    match data.item(slot) {
        Some(item) if !data.holds(item) => {
            Err(corrupt(page.id(), "a record reaches beyond its page"))
        }
        item => Ok(item),
    }
}

/// Empties a slot.
pub(crate) fn empty<P: Pages>(page: &mut Write<'_, P>, slot: usize) -> RoomLeft {
    let before = Data(page.view()).free();
    let mut data = DataMut(page.page_mut());
    data.remove(slot);
    let data = data.read();
    let is_empty = data.in_use() == 0;
    RoomLeft { page: data.number(), before, after: data.free(), is_empty }
}

impl<P: Pages> Heap<P> {
    /// Replaces a record; returns `false` if there is none. A record that outgrows its page moves,
    /// and keeps its id.
    ///
    /// # Errors
    /// The record is too long, or the memory behind the heap failed.
    pub fn update(&self, id: RecordId, record: &[u8]) -> Result<bool, WriteError> {
        self.check_size(record.len())?;
        match self.pages.run(|mtr| self.attempt_update(mtr, id, record))? {
            Step::Missing => Ok(false),
            Step::Done => Ok(true),
            Step::Move => Ok(self.move_out(id, record)?),
        }
    }

    /// Calls `f` to change the bytes of a record, but not their number. Returns `None` if there is
    /// no such record. `f` runs once, under exclusive latches, so it must be short and must not use
    /// the store. If it panics, the latches are released, and the record stays as `f` left it.
    ///
    /// # Errors
    /// The memory behind the heap failed.
    pub fn update_in_place<R>(
        &self,
        id: RecordId,
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<Option<R>, PoolError> {
        let mut f = Some(f);
        self.pages.run(|mtr| {
            let Some(record) = self.held(mtr, id)? else { return Ok(None) };
            let HeldRecord { mut page, item, guest } = record;
            let (mut other, item) = match guest {
                Some(HeldGuest { other, item, .. }) => (other, item),
                None => (None, item),
            };
            let page = other.as_mut().unwrap_or(&mut page);
            let skip = if item.form == Form::Record { 0 } else { ID };
            let number = page.id();
            match (page.page_mut().get_mut(item.at + skip..item.at + item.len), f.take()) {
                (Some(bytes), Some(f)) => Ok(Some(f(bytes))),
                _ => Err(corrupt(number, "a record reaches beyond its page")),
            }
        })
    }

    /// Removes a record; returns `false` if there is none.
    ///
    /// # Errors
    /// The memory behind the heap failed.
    pub fn remove(&self, id: RecordId) -> Result<bool, PoolError> {
        self.take(id, None)
    }

    /// Removes a record; returns it.
    ///
    /// # Errors
    /// The memory behind the heap failed.
    pub fn remove_returning(&self, id: RecordId) -> Result<Option<Vec<u8>>, PoolError> {
        let mut old = Vec::new();
        Ok(self.take(id, Some(&mut old))?.then_some(old))
    }

    /// Latches the page of a record and, if it is forwarded, its guest's. Returns `None` if there
    /// is no such record.
    pub(crate) fn held<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        id: RecordId,
    ) -> Try<Option<HeldRecord<'o, P>>> {
        let Some(page) = self.data_page_to_write(mtr, id)? else { return Ok(None) };
        self.held_in(mtr, page, id)
    }

    /// Like [`Heap::held`], once the page of the record is latched.
    pub(crate) fn held_in<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        page: Write<'o, P>,
        id: RecordId,
    ) -> Try<Option<HeldRecord<'o, P>>> {
        let Some(item) = item_of(&page, id.slot())? else { return Ok(None) };
        match item.form {
            Form::Guest | Form::Removed => Ok(None),
            Form::Record => Ok(Some(HeldRecord { page, item, guest: None })),
            Form::Forward => {
                let target = RecordId(Data(page.view()).id(item));
                let other = if target.page() == id.page() {
                    None
                } else {
                    self.data_page_to_write(mtr, target)?
                };
                let guest = self.guest_in(other.as_ref().unwrap_or(&page), id, target)?;
                let guest = Some(HeldGuest { other, target, item: guest });
                Ok(Some(HeldRecord { page, item, guest }))
            }
        }
    }

    /// Returns the guest of `id`, which must be in slot `target` of this page.
    fn guest_in(&self, page: &Write<'_, P>, id: RecordId, target: RecordId) -> Try<Item> {
        match item_of(page, target.slot())? {
            Some(item)
                if item.form == Form::Guest
                    && Data(page.view()).number() == target.page()
                    && Data(page.view()).id(item) == id.0 =>
            {
                Ok(item)
            }
            _ => Err(corrupt(page.id(), "a forward leads to no record of its own")),
        }
    }

    fn attempt_update<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        id: RecordId,
        record: &[u8],
    ) -> Try<Step> {
        let Some(held) = self.held(mtr, id)? else { return Ok(Step::Missing) };
        let HeldRecord { mut page, guest, .. } = held;
        let done = match guest {
            None => DataMut(page.page_mut()).replace(id.slot(), New::Record(record)),
            Some(HeldGuest { mut other, target, .. }) => {
                let page = other.as_mut().unwrap_or(&mut page);
                DataMut(page.page_mut()).replace(target.slot(), New::Guest(id.0, record))
            }
        };
        Ok(if done { Step::Done } else { Step::Move })
    }

    /// Inserts the record as a guest into another page, then makes its slot a forward.
    fn move_out(&self, id: RecordId, record: &[u8]) -> Result<bool, PoolError> {
        let target = self.put(New::Guest(id.0, record))?;
        match self.pages.run(|mtr| self.attempt_forward(mtr, id, target)) {
            Ok(Forwarded::First) => Ok(true),
            Ok(Forwarded::Again(old)) => {
                self.drop_guest(id, old)?;
                Ok(true)
            }
            Ok(Forwarded::Missing) => {
                self.drop_guest(id, target)?;
                Ok(false)
            }
            Err(error) => {
                // The first error is returned; no reader sees a guest without a forward.
                let _ = self.drop_guest(id, target);
                Err(error)
            }
        }
    }

    /// Makes slot `id` a forward to `target`.
    fn attempt_forward<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        id: RecordId,
        target: RecordId,
    ) -> Try<Forwarded> {
        let Some(mut page) = self.data_page_to_write(mtr, id)? else {
            return Ok(Forwarded::Missing);
        };
        let Some(item) = item_of(&page, id.slot())? else { return Ok(Forwarded::Missing) };
        let old = match item.form {
            Form::Guest | Form::Removed => return Ok(Forwarded::Missing),
            Form::Record => Forwarded::First,
            Form::Forward => Forwarded::Again(RecordId(Data(page.view()).id(item))),
        };
        DataMut(page.page_mut()).replace(id.slot(), New::Forward(target.0));
        Ok(old)
    }

    /// Removes the guest of `id` in slot `target`, to which no forward refers.
    pub(crate) fn drop_guest(&self, id: RecordId, target: RecordId) -> Result<(), PoolError> {
        let left = self.pages.run(|mtr| {
            let Some(mut page) = self.data_page_to_write(mtr, target)? else { return Ok(None) };
            let data = Data(page.view());
            let is_guest = item_of(&page, target.slot())?
                .is_some_and(|item| item.form == Form::Guest && data.id(item) == id.0);
            Ok(is_guest.then(|| empty(&mut page, target.slot())))
        })?;
        left.map_or(Ok(()), |left| self.record_room(left))
    }

    /// Removes a record and copies it to `old`; returns `false` if there is none.
    fn take(&self, id: RecordId, mut old: Option<&mut Vec<u8>>) -> Result<bool, PoolError> {
        let taken = self.pages.run(|mtr| {
            let Some(record) = self.held(mtr, id)? else { return Ok(None) };
            let HeldRecord { mut page, item, guest } = record;
            if let Some(old) = old.as_deref_mut() {
                old.clear();
                match &guest {
                    None => old.extend_from_slice(bytes_of(page.page(), item)),
                    Some(HeldGuest { other, item, .. }) => {
                        let page = other.as_ref().unwrap_or(&page);
                        old.extend_from_slice(bytes_of(page.page(), *item));
                    }
                }
            }
            let left = empty(&mut page, id.slot());
            let of_guest = guest.map(|HeldGuest { mut other, target, .. }| {
                empty(other.as_mut().unwrap_or(&mut page), target.slot())
            });
            Ok(Some([Some(left), of_guest]))
        })?;
        let Some(left) = taken else { return Ok(false) };
        for left in left.into_iter().flatten() {
            self.record_room(left)?;
        }
        Ok(true)
    }
}
