//! A write request that is being applied, and the findings of its attempts.

use millpond_base::Lsn;

use crate::btree::node::edit::Reference;
use crate::btree::value::large::{Detached, LargeValue};
use crate::btree::write::request::WriteRequest;
use crate::pool::{Actor, Anchor, PoolError};

/// A write request that is being applied, and its outcome. An attempt writes its findings here
/// field by field, and they are read in the same way. A struct of several fields that is returned
/// through memory is read in one piece before its parts have arrived, which costs more than the
/// call.
pub(super) struct Pending<'r, 'a> {
    pub(super) request: &'r mut WriteRequest<'a>,
    /// The anchor for the overflow pages of the entry's old value, once one is needed.
    pub(super) trash: Option<Anchor>,
    /// The old value, once its pages are below that anchor.
    pub(super) gone: Option<LargeValue>,
    pub(super) existed: bool,
    pub(super) applied: bool,
    /// Value for [`WriteOutcome::rows`].
    pub(super) rows: i8,
    /// True if nothing was done, because the value has to go to overflow pages: see
    /// [`Step::Spill`].
    pub(super) spills: bool,
    /// True if the leaf may be merged with a neighbour.
    pub(super) thin: bool,
    /// Position of the write's record in the log.
    pub(super) at: Lsn,
    /// Value for [`WriteOutcome::gone`].
    pub(super) detached: Option<Detached>,
    /// Room that the leaf lacks, for [`Step::Split`].
    pub(super) need: Need,
    /// Value to compare, for [`Step::Compare`].
    pub(super) compare: Option<Reference>,
}

/// Outcome of an attempt; its needs are in [`Pending`].
#[derive(Clone, Copy)]
pub(super) enum Step {
    Done,
    /// The leaf has no room.
    Split,
    /// The leaf's fences leave no room for the value.
    Spill,
    /// The old value's pages need an anchor.
    Trash,
    /// The entry's value in overflow pages has to be compared with the expected one.
    Compare,
}

/// The room that a leaf lacks.
pub(super) struct Need {
    pub(super) bytes: usize,
    /// True for a new key.
    pub(super) is_new: bool,
}

impl<'r, 'a> Pending<'r, 'a> {
    #[inline(always)]
    pub(super) fn new(request: &'r mut WriteRequest<'a>) -> Pending<'r, 'a> {
        Pending {
            request,
            trash: None,
            gone: None,
            existed: false,
            applied: false,
            rows: 0,
            spills: false,
            thin: false,
            at: Lsn(0),
            detached: None,
            need: Need { bytes: 0, is_new: false },
            compare: None,
        }
    }

    #[inline(always)]
    pub(super) fn done(&mut self, existed: bool, applied: bool, thin: bool) -> Step {
        (self.existed, self.applied, self.thin) = (existed, applied, thin);
        Step::Done
    }

    #[inline(always)]
    pub(super) fn split(&mut self, bytes: usize, is_new: bool) -> Step {
        self.need = Need { bytes, is_new };
        Step::Split
    }

    #[inline(always)]
    pub(super) fn refused(&mut self, existed: bool) -> Step {
        self.done(existed, false, false)
    }

    #[inline(always)]
    pub(super) fn applied(&mut self, existed: bool) -> Step {
        self.done(existed, true, false)
    }
}

/// Logs an error of the work that follows a write on behalf of an actor, and continues: the write
/// is applied, and its transaction must not treat it as failed.
pub(crate) fn done_anyway(actor: Actor, after: Result<(), PoolError>) -> Result<(), PoolError> {
    match after {
        Err(error) if actor != Actor::Itself => {
            tracing::warn!(%error, "an entry was written, but not all was tidied up after it");
            Ok(())
        }
        other => other,
    }
}
