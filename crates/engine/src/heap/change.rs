//! Changing and removing one record.

use crate::heap::data::{Data, DataMut, Form, ID, Item, New, bytes_of};
use crate::heap::descend::corrupt;
use crate::heap::error::WriteError;
use crate::heap::table::{Heap, RecordId};
use crate::pool::{MiniTransaction, Pages, PoolError, Try, Write};

enum Step {
    Missing,
    Done,
    /// Neither the record's page nor its guest's has room.
    Move,
}

/// Room that a removal left, to be noted.
#[derive(Clone, Copy)]
struct Left {
    page: u64,
    before: usize,
    after: usize,
    empty: bool,
}

/// What a slot of a held page holds, checked to lie inside; `None` if it is free.
fn item_of<P: Pages>(page: &Write<'_, P>, slot: usize) -> Try<Option<Item>> {
    let data = Data(page.view());
    match data.item(slot) {
        Some(item) if !data.holds(item) => {
            Err(corrupt(page.id(), "a record reaches beyond its page"))
        }
        item => Ok(item),
    }
}

/// Empties a slot.
fn empty<P: Pages>(page: &mut Write<'_, P>, slot: usize) -> Left {
    let before = Data(page.view()).free();
    let mut data = DataMut(page.page_mut());
    data.remove(slot);
    let data = data.read();
    Left { page: data.number(), before, after: data.free(), empty: data.in_use() == 0 }
}

impl<P: Pages> Heap<P> {
    /// Replaces a record; `false` if there is none. A record that outgrows its page moves, and
    /// keeps its id.
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

    /// Lets `f` change the bytes of a record, but not how many they are; `None` if there is no such
    /// record. `f` runs once, under exclusive latches, so it must be short and must not use the
    /// store. If it panics, the latches are released, and the record is what `f` left.
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
            let Some((mut page, guest)) = self.held(mtr, id)? else { return Ok(None) };
            let Some(item) = item_of(&page, id.slot())? else { return Ok(None) };
            let (mut other, at) = match guest {
                Some((other, item)) => (other, item),
                None => (None, item),
            };
            let page = other.as_mut().unwrap_or(&mut page);
            let skip = if at.form == Form::Record { 0 } else { ID };
            let number = page.id();
            match (page.page_mut().get_mut(at.at + skip..at.at + at.len), f.take()) {
                (Some(bytes), Some(f)) => Ok(Some(f(bytes))),
                _ => Err(corrupt(number, "a record reaches beyond its page")),
            }
        })
    }

    /// Removes a record; `false` if there is none.
    ///
    /// # Errors
    /// The memory behind the heap failed.
    pub fn remove(&self, id: RecordId) -> Result<bool, PoolError> {
        Ok(self.take(id, None)?.is_some())
    }

    /// The same, answering with the record.
    ///
    /// # Errors
    /// The memory behind the heap failed.
    pub fn remove_returning(&self, id: RecordId) -> Result<Option<Vec<u8>>, PoolError> {
        let mut old = Vec::new();
        Ok(self.take(id, Some(&mut old))?.map(|()| old))
    }

    /// The page of a record, and its guest's page and place if it has one, all latched; the page
    /// is `None` where the guest is on the record's own. `None` if there is no such record.
    #[allow(clippy::type_complexity)]
    fn held<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        id: RecordId,
    ) -> Try<Option<(Write<'o, P>, Option<(Option<Write<'o, P>>, Item)>)>> {
        let Some(page) = self.data_page_to_write(mtr, id)? else { return Ok(None) };
        let Some(item) = item_of(&page, id.slot())? else { return Ok(None) };
        match item.form {
            Form::Guest => Ok(None),
            Form::Record => Ok(Some((page, None))),
            Form::Forward => {
                let target = RecordId(Data(page.view()).id(item));
                let other = if target.page() == id.page() {
                    None
                } else {
                    self.data_page_to_write(mtr, target)?
                };
                let guest = self.guest_in(other.as_ref().unwrap_or(&page), id, target)?;
                Ok(Some((page, Some((other, guest)))))
            }
        }
    }

    /// The guest of `id`, which its forward says is in slot `target` of this page.
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
        let Some((mut page, guest)) = self.held(mtr, id)? else { return Ok(Step::Missing) };
        let done = match guest {
            None => DataMut(page.page_mut()).replace(id.slot(), New::Record(record)),
            Some((mut other, _)) => {
                let Some(item) = item_of(&page, id.slot())? else { return Ok(Step::Missing) };
                let target = RecordId(Data(page.view()).id(item));
                let page = other.as_mut().unwrap_or(&mut page);
                DataMut(page.page_mut()).replace(target.slot(), New::Guest(id.0, record))
            }
        };
        Ok(if done { Step::Done } else { Step::Move })
    }

    /// Puts the record elsewhere, then lets its slot refer to there.
    fn move_out(&self, id: RecordId, record: &[u8]) -> Result<bool, PoolError> {
        let target = self.put(New::Guest(id.0, record))?;
        let gone = match self.pages.run(|mtr| self.attempt_forward(mtr, id, target)) {
            Ok(Some(old)) => old.map(RecordId),
            Ok(None) => {
                self.drop_guest(id, target)?;
                return Ok(false);
            }
            Err(error) => {
                // The first error counts; a guest that stays is seen by nobody.
                let _ = self.drop_guest(id, target);
                return Err(error);
            }
        };
        if let Some(old) = gone {
            self.drop_guest(id, old)?;
        }
        Ok(true)
    }

    /// Lets slot `id` refer to `target`; answers what it referred to, or `None` if it is free.
    fn attempt_forward<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        id: RecordId,
        target: RecordId,
    ) -> Try<Option<Option<u64>>> {
        let Some(mut page) = self.data_page_to_write(mtr, id)? else { return Ok(None) };
        let Some(item) = item_of(&page, id.slot())? else { return Ok(None) };
        let old = match item.form {
            Form::Guest => return Ok(None),
            Form::Record => None,
            Form::Forward => Some(Data(page.view()).id(item)),
        };
        DataMut(page.page_mut()).replace(id.slot(), New::Forward(target.0));
        Ok(Some(old))
    }

    /// Removes the guest of `id` in slot `target`, which nothing refers to any more.
    fn drop_guest(&self, id: RecordId, target: RecordId) -> Result<(), PoolError> {
        let left = self.pages.run(|mtr| {
            let Some(mut page) = self.data_page_to_write(mtr, target)? else { return Ok(None) };
            let data = Data(page.view());
            let is_guest = item_of(&page, target.slot())?
                .is_some_and(|item| item.form == Form::Guest && data.id(item) == id.0);
            Ok(is_guest.then(|| empty(&mut page, target.slot())))
        })?;
        self.note(left)
    }

    fn note(&self, left: Option<Left>) -> Result<(), PoolError> {
        match left {
            Some(left) => self.note_room(left.page, left.before, left.after, left.empty),
            None => Ok(()),
        }
    }

    fn take(&self, id: RecordId, mut old: Option<&mut Vec<u8>>) -> Result<Option<()>, PoolError> {
        let taken = self.pages.run(|mtr| {
            let Some((mut page, guest)) = self.held(mtr, id)? else { return Ok(None) };
            let Some(item) = item_of(&page, id.slot())? else { return Ok(None) };
            let target = guest.as_ref().map(|_| RecordId(Data(page.view()).id(item)));
            if let Some(old) = old.as_deref_mut() {
                old.clear();
                match &guest {
                    None => old.extend_from_slice(bytes_of(page.page(), item)),
                    Some((other, at)) => {
                        let page = other.as_ref().unwrap_or(&page);
                        old.extend_from_slice(bytes_of(page.page(), *at));
                    }
                }
            }
            let left = empty(&mut page, id.slot());
            let Some((other, _)) = guest else { return Ok(Some((left, None))) };
            let target = target.unwrap_or(id);
            let mut other = other;
            let of_guest = empty(other.as_mut().unwrap_or(&mut page), target.slot());
            Ok(Some((left, Some(of_guest))))
        })?;
        let Some((left, of_guest)) = taken else { return Ok(None) };
        self.note(Some(left))?;
        self.note(of_guest)?;
        Ok(Some(()))
    }
}
