//! Reads single records.
//!
//! The record is copied while its page is read optimistically. The caller's closure sees the copy
//! after validation, outside the attempt: it runs once, and under no latch.

use crate::heap::data::{Data, Form, ID, Item};
use crate::heap::error::corrupt;
use crate::heap::table::{Heap, RecordId};
use crate::page::Scratch;
use crate::pool::{MiniTransaction, Pages, PoolError, Read, Try};

impl<P: Pages> Heap<P> {
    /// Calls `f` with a record and returns its result, or `None` if there is no such record.
    ///
    /// # Errors
    /// The memory behind the heap failed.
    #[inline]
    pub fn get<R>(&self, id: RecordId, f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>, PoolError> {
        let mut scratch = Scratch::default();
        Ok(if self.get_scratch(id, &mut scratch)? { Some(f(scratch.bytes())) } else { None })
    }

    /// Returns whether there is such a record, and copies it to `scratch`.
    #[inline]
    pub(crate) fn get_scratch(
        &self,
        id: RecordId,
        scratch: &mut Scratch,
    ) -> Result<bool, PoolError> {
        self.pages.run(|mtr| self.attempt_get(mtr, id, scratch))
    }

    /// Returns a copy of a record.
    ///
    /// # Errors
    /// The memory behind the heap failed.
    pub fn get_owned(&self, id: RecordId) -> Result<Option<Vec<u8>>, PoolError> {
        self.get(id, <[u8]>::to_vec)
    }

    /// Returns whether there is such a record.
    ///
    /// # Errors
    /// The memory behind the heap failed.
    pub fn contains(&self, id: RecordId) -> Result<bool, PoolError> {
        self.pages.run(|mtr| {
            let Some(page) = self.data_page(mtr, id.page())? else { return Ok(false) };
            let item = Data(page.view()).item(id.slot());
            page.validate()?;
            Ok(item.is_some_and(|item| matches!(item.form, Form::Record | Form::Forward)))
        })
    }

    #[inline(never)]
    fn attempt_get<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        id: RecordId,
        scratch: &mut Scratch,
    ) -> Try<bool> {
        let Some(page) = self.data_page_here(mtr, id.page())? else { return Ok(false) };
        let data = Data(page.view());
        match data.item(id.slot()) {
            None | Some(Item { form: Form::Guest | Form::Removed, .. }) => {
                page.validate()?;
                Ok(false)
            }
            Some(item @ Item { form: Form::Record, .. }) => copy(&page, item, 0, scratch),
            Some(item) => {
                let target = RecordId(data.id(item));
                page.validate()?;
                let guest = self.guest(mtr, id, target, scratch)?;
                // While the forward is unchanged, its guest is there.
                page.validate()?;
                if guest {
                    return Ok(true);
                }
                let page = page.header().page().unwrap_or_default();
                Err(corrupt(page, "a forward leads to no record of its own"))
            }
        }
    }

    /// Copies the guest in `target`, if it is the one of `id`; returns whether it is.
    fn guest<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        id: RecordId,
        target: RecordId,
        scratch: &mut Scratch,
    ) -> Try<bool> {
        let Some(page) = self.data_page(mtr, target.page())? else { return Ok(false) };
        let data = Data(page.view());
        match data.item(target.slot()) {
            Some(item) if item.form == Form::Guest && data.id(item) == id.0 => {
                copy(&page, item, ID, scratch)
            }
            _ => {
                page.validate()?;
                Ok(false)
            }
        }
    }
}

#[inline(always)]
fn copy<P: Pages>(page: &Read<'_, P>, item: Item, skip: usize, out: &mut Scratch) -> Try<bool> {
    let len = item.len.saturating_sub(skip);
    let copied = page.view().copy_out(item.at + skip, len, out);
    page.validate()?;
    if copied {
        return Ok(true);
    }
    let id = page.header().page().unwrap_or_default();
    Err(corrupt(id, "a record reaches beyond its page"))
}
