//! Writes on behalf of a transaction. Their log records include undo information.
//!
//! A record is an entry whose key is its id. Unlike a tree's keys, ids are assigned by the heap,
//! and reused. So a transaction that removes a record leaves its slot and all of its bytes in use
//! ([`Form::Removed`]). No other record gets the id, and undo puts the record back in its place. A
//! forwarded record leaves the bytes of its forward, and its guest is removed at once. Undo makes
//! the record a guest again, like an update that outgrows its page.
//!
//! Once the transaction has committed, [`Heap::release`] frees the slot. If a crash prevents that,
//! a later append to the page reuses the slot (`append.rs`): the transaction in it is over, since
//! no owner has locked the id.

use crate::btree::{
    Before, NewValue, Undo, UpdateOutcome, Updated, WriteCondition, WriteContext, WriteOutcome,
    WriteRequest, differing, done_anyway,
};
use crate::heap::change::{Forwarded, HeldGuest, HeldRecord, empty, item_of};
use crate::heap::data::{Data, DataMut, Form, ID, Item, New, bytes_of};
use crate::heap::error::{WriteError, corrupt};
use crate::heap::room::RoomLeft;
use crate::heap::table::{Heap, RecordId};
use crate::pool::{Actor, MiniTransaction, Pages, PoolError, Try, Write};

/// Outcome of an attempt.
enum Step {
    Done(Done),
    /// Neither the record's page nor its guest's has room.
    Move,
}

/// An attempt that ended without an obstacle.
struct Done {
    existed: bool,
    applied: bool,
    /// Free space that the attempt left.
    left: [Option<RoomLeft>; 2],
}

impl Step {
    fn refused(existed: bool) -> Step {
        Step::Done(Done { existed, applied: false, left: [None, None] })
    }

    fn applied(existed: bool) -> Step {
        Step::Done(Done { existed, applied: true, left: [None, None] })
    }
}

/// Returns the bytes of a latched record.
fn record_of<'h, P: Pages>(held: &'h HeldRecord<'_, P>) -> &'h [u8] {
    match &held.guest {
        None => bytes_of(held.page.page(), held.item),
        Some(HeldGuest { other, item, .. }) => {
            bytes_of(other.as_ref().unwrap_or(&held.page).page(), *item)
        }
    }
}

impl<P: Pages> Heap<P> {
    /// Changes or removes the record whose id is the request's key, or inserts it under an id that
    /// `Heap::place_record` returned, if the request's condition holds.
    ///
    /// # Errors
    /// The record is too long, or the memory behind the heap failed.
    pub fn write(&self, mut request: WriteRequest<'_>) -> Result<WriteOutcome, WriteError> {
        let Some(id) = RecordId::of_key(request.key) else {
            return Ok(WriteOutcome::refused(false));
        };
        if let NewValue::Bytes(record) = request.value {
            self.check_size(record.len())?;
        }
        let (step, at) = self.pages.run_logged(|mtr| self.attempt_write(mtr, id, &mut request))?;
        match step {
            Step::Done(Done { existed, applied, left }) => {
                for left in left.into_iter().flatten() {
                    done_anyway(request.context.actor, self.record_room(left))?;
                }
                Ok(WriteOutcome { existed, applied, at, ..WriteOutcome::default() })
            }
            Step::Move => Ok(self.write_moving(id, request)?),
        }
    }

    fn attempt_write<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        id: RecordId,
        request: &mut WriteRequest<'_>,
    ) -> Try<Step> {
        let Some(page) = self.data_page_to_write(mtr, id)? else {
            return Ok(Step::refused(false));
        };
        match item_of(&page, id.slot())? {
            Some(Item { form: Form::Guest, .. }) => Ok(Step::refused(false)),
            None | Some(Item { form: Form::Removed, .. }) => {
                self.attempt_insert(mtr, page, id, request)
            }
            Some(_) => match self.held_in(mtr, page, id)? {
                Some(held) => self.attempt_present(mtr, held, id, request),
                None => Ok(Step::refused(false)),
            },
        }
    }

    /// Inserts a record into a slot that is free, or that of a removed record.
    fn attempt_insert<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        mut page: Write<'o, P>,
        id: RecordId,
        request: &mut WriteRequest<'_>,
    ) -> Try<Step> {
        let (WriteCondition::Always | WriteCondition::Absent, NewValue::Bytes(record)) =
            (request.condition, request.value)
        else {
            return Ok(Step::refused(false));
        };
        let new = New::Record(record);
        let data = Data(page.view());
        let fits = match data.item(id.slot()) {
            Some(_) => data.fits_in_place(id.slot(), new.len()),
            None => data.fits_at(id.slot(), new.len()),
        };
        if !fits {
            // A record that undo restores has at least its slot.
            let is_undo = matches!(request.context.actor, Actor::Undo { .. });
            return Ok(if is_undo { Step::Move } else { Step::refused(false) });
        }
        self.log_undo(mtr, request, Before::Absent);
        if !DataMut(page.page_mut()).insert_at(id.slot(), new) {
            return Err(corrupt(page.id(), "its free room cannot be used"));
        }
        Ok(Step::applied(false))
    }

    /// Applies a write to a record that exists.
    fn attempt_present<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        held: HeldRecord<'o, P>,
        id: RecordId,
        request: &mut WriteRequest<'_>,
    ) -> Try<Step> {
        let old = record_of(&held);
        let is_wanted = match request.condition {
            WriteCondition::Always | WriteCondition::Present => true,
            WriteCondition::Absent | WriteCondition::Stamp(_) => false,
            WriteCondition::Equals(expected) => old == expected,
        };
        if !is_wanted {
            return Ok(Step::refused(true));
        }
        let NewValue::Bytes(new) = request.value else {
            self.log_undo(mtr, request, Before::Value(old));
            let left = remove(held, id, request.context.actor);
            return Ok(Step::Done(Done { existed: true, applied: true, left }));
        };
        if new.len() == old.len() {
            self.overwrite(mtr, held, request, new);
            return Ok(Step::applied(true));
        }
        let (page, slot, new) = match &held.guest {
            None => (&held.page, id.slot(), New::Record(new)),
            Some(HeldGuest { other, target, .. }) => {
                (other.as_ref().unwrap_or(&held.page), target.slot(), New::Guest(id.0, new))
            }
        };
        if !Data(page.view()).fits_in_place(slot, new.len()) {
            return Ok(Step::Move);
        }
        self.log_undo(mtr, request, Before::Value(old));
        let HeldRecord { mut page, guest, .. } = held;
        let mut other = guest.and_then(|guest| guest.other);
        let page = other.as_mut().unwrap_or(&mut page);
        if !DataMut(page.page_mut()).replace(slot, new) {
            return Err(corrupt(page.id(), "its free room cannot be used"));
        }
        Ok(Step::applied(true))
    }

    /// Overwrites a record with one of the same length; writes only the bytes that differ.
    fn overwrite<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        held: HeldRecord<'o, P>,
        request: &mut WriteRequest<'_>,
        new: &[u8],
    ) {
        let old = record_of(&held);
        let (from, to) = differing(old, new);
        if from == to {
            return;
        }
        self.log_undo(mtr, request, Before::Part { offset: from, bytes: &old[from..to] });
        let HeldRecord { mut page, item, guest } = held;
        let (mut other, item) = match guest {
            Some(HeldGuest { other, item, .. }) => (other, item),
            None => (None, item),
        };
        let page = other.as_mut().unwrap_or(&mut page);
        let begin = item.at + if item.form == Form::Record { 0 } else { ID };
        if let Some(place) = page.page_mut().get_mut(begin + from..begin + to) {
            place.copy_from_slice(&new[from..to]);
        }
    }

    fn log_undo(
        &self,
        mtr: &MiniTransaction<'_, P>,
        request: &mut WriteRequest<'_>,
        before: Before<'_>,
    ) {
        let undo = Undo { owner: self.owner, key: request.key, before, removes: false };
        request.context.log_undo(mtr, &undo);
    }

    /// Inserts the record as a guest into another page, in a mini-transaction of its own, which is
    /// not undone. Then makes its slot a forward.
    fn write_moving(
        &self,
        id: RecordId,
        mut request: WriteRequest<'_>,
    ) -> Result<WriteOutcome, PoolError> {
        let actor = request.context.actor;
        let NewValue::Bytes(record) = request.value else {
            return Ok(WriteOutcome::refused(true));
        };
        let target = self.put(New::Guest(id.0, record))?;
        let moved = self.pages.run_logged(|mtr| self.attempt_move(mtr, id, target, &mut request));
        match moved {
            Ok((Forwarded::Missing, _)) => {
                done_anyway(actor, self.drop_guest(id, target))?;
                Ok(WriteOutcome::refused(false))
            }
            Ok((forwarded, at)) => {
                if let Forwarded::Again(old) = forwarded {
                    done_anyway(actor, self.drop_guest(id, old))?;
                }
                let (existed, applied) = (true, true);
                Ok(WriteOutcome { existed, applied, at, ..WriteOutcome::default() })
            }
            Err(error) => {
                // The first error is returned; no reader sees a guest without a forward.
                let _ = self.drop_guest(id, target);
                Err(error)
            }
        }
    }

    /// Makes slot `id` a forward to `target`.
    fn attempt_move<'o>(
        &self,
        mtr: &'o MiniTransaction<'o, P>,
        id: RecordId,
        target: RecordId,
        request: &mut WriteRequest<'_>,
    ) -> Try<Forwarded> {
        let Some(mut page) = self.data_page_to_write(mtr, id)? else {
            return Ok(Forwarded::Missing);
        };
        let is_undo = matches!(request.context.actor, Actor::Undo { .. });
        let forwarded = match item_of(&page, id.slot())?.map(|item| item.form) {
            None | Some(Form::Guest) => return Ok(Forwarded::Missing),
            Some(Form::Removed) if !is_undo => return Ok(Forwarded::Missing),
            Some(Form::Removed) => {
                self.log_undo(mtr, request, Before::Absent);
                Forwarded::First
            }
            Some(Form::Record | Form::Forward) => {
                let Some(held) = self.held_in(mtr, page, id)? else {
                    return Ok(Forwarded::Missing);
                };
                self.log_undo(mtr, request, Before::Value(record_of(&held)));
                page = held.page;
                held.guest.map_or(Forwarded::First, |guest| Forwarded::Again(guest.target))
            }
        };
        DataMut(page.page_mut()).replace(id.slot(), New::Forward(target.0));
        Ok(forwarded)
    }

    /// Calls `f` to change the bytes of a record in place, in `context`. Appends the undo, the
    /// bytes that differ, to the context's buffer. `scratch` is for a copy of the record.
    ///
    /// # Errors
    /// The memory behind the heap failed.
    pub fn update_inline(
        &self,
        key: &[u8],
        mut context: WriteContext<'_>,
        scratch: &mut Vec<u8>,
        f: &mut dyn FnMut(&mut [u8]),
    ) -> Result<UpdateOutcome, PoolError> {
        let Some(id) = RecordId::of_key(key) else {
            return Ok(UpdateOutcome { updated: Updated::Absent, at: millpond_base::Lsn(0) });
        };
        let (updated, at) = self.pages.run_logged(|mtr| {
            let Some(held) = self.held(mtr, id)? else { return Ok(Updated::Absent) };
            scratch.clear();
            scratch.extend_from_slice(record_of(&held));
            // Nothing after this restarts the attempt.
            f(scratch);
            let WriteContext { actor, root, .. } = context;
            let undo = context.undo.as_deref_mut();
            let context = WriteContext { actor, root, undo, ..WriteContext::default() };
            let (new, present) = (NewValue::Bytes(scratch), WriteCondition::Present);
            let mut request = WriteRequest::new(key, new, present).within(context);
            self.overwrite(mtr, held, &mut request, scratch);
            Ok(Updated::Done)
        })?;
        Ok(UpdateOutcome { updated, at })
    }

    /// Frees the slot of a record that transaction `tx` removed; call it when the transaction has
    /// committed.
    ///
    /// # Errors
    /// The memory behind the heap failed.
    pub fn release(&self, id: RecordId, tx: u64) -> Result<(), PoolError> {
        let left = self.pages.run(|mtr| {
            let Some(mut page) = self.data_page_to_write(mtr, id)? else { return Ok(None) };
            let data = Data(page.view());
            let is_its = item_of(&page, id.slot())?
                .is_some_and(|item| item.form == Form::Removed && data.id(item) == tx);
            Ok(is_its.then(|| empty(&mut page, id.slot())))
        })?;
        left.map_or(Ok(()), |left| self.record_room(left))
    }
}

/// Removes a latched record, and its guest. The slot stays in use if a transaction removes the
/// record.
fn remove<P: Pages>(held: HeldRecord<'_, P>, id: RecordId, actor: Actor) -> [Option<RoomLeft>; 2] {
    let HeldRecord { mut page, item, guest } = held;
    let here = if let Actor::Transaction { tx, .. } = actor {
        DataMut(page.page_mut()).replace(id.slot(), New::Removed(tx, item.len.max(ID)));
        None
    } else {
        Some(empty(&mut page, id.slot()))
    };
    let there = guest.map(|HeldGuest { mut other, target, .. }| {
        empty(other.as_mut().unwrap_or(&mut page), target.slot())
    });
    [here, there]
}
