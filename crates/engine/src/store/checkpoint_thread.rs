//! The checkpoint thread: checks the log's tail periodically, and writes pages and takes
//! checkpoints when they are due. `recovery/checkpointer.rs` does that work.

use std::sync::Arc;
use std::time::Duration;

use crate::pool::{PoolError, PoolStrategy};
use crate::recovery::Checkpointer;
use crate::store::housekeeping::{Housekeeping, Unfinished};

/// Time between two checks of the log's tail.
const PERIOD: Duration = Duration::from_millis(20);

/// Starts the thread that writes dirty pages, takes checkpoints, and finishes aborts that found no
/// room. It runs until the result is dropped.
pub(crate) fn start<M: PoolStrategy>(
    checkpointer: &Arc<Checkpointer<M>>,
    unfinished: &Arc<Unfinished>,
) -> Result<Housekeeping, PoolError> {
    let (checkpointer, unfinished) = (checkpointer.clone(), unfinished.clone());
    let mut failed = false;
    Housekeeping::start("millpond-check", PERIOD, move |_| {
        unfinished.retry();
        if let Err(error) = checkpointer.round() {
            checkpointer.txns.room().failed();
            if !std::mem::replace(&mut failed, true) {
                tracing::warn!(%error, "a checkpoint failed: the log is kept, and grows");
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use millpond_base::{FrameId, Lsn};

    use super::*;
    use crate::Options;
    use crate::store::combinations::SwizzledAny;
    use crate::store::{Builder, Store};
    use millpond_device::MemoryDevice;

    /// Returns a store whose housekeeping takes no checkpoint in a test that logs so little.
    fn store() -> Arc<Store<SwizzledAny>> {
        let device = || Arc::new(MemoryDevice::new());
        Builder::devices(device(), device(), &Options::new()).open().unwrap()
    }

    /// Makes a page dirty, with a recLSN that its thread has read before.
    fn make_dirty(store: &Store<SwizzledAny>, rec_lsn: Lsn) {
        let header = store.pool.frame(FrameId(0)).unwrap();
        assert!(header.latch.exclusive());
        assert!(header.begin_logged_change(|| rec_lsn), "it was clean");
        header.latch.release_exclusive();
    }

    #[test]
    fn what_a_checkpoint_keeps_of_the_log_never_begins_before_what_the_last_one_kept() {
        let store = store();
        let checkpointer = store.checkpointer().unwrap();
        let log = &checkpointer.log;
        let before = log.tail();
        for name in ["one", "two"] {
            store.tree(name).unwrap();
        }
        // A thread read the tail, and did nothing else before a checkpoint was taken.
        let redo = checkpointer.take_here().unwrap();
        let oldest = log.oldest();
        assert!(redo > before && oldest > before, "{redo:?}, {oldest:?}, {before:?}");
        store.txns.active().enter(store.txns.active().new_id(), before, Lsn(0));
        assert!(checkpointer.take().unwrap() >= redo);
        assert!(log.oldest() >= oldest);
        let (taken, pin) = checkpointer.take_pinned().unwrap();
        assert!(taken.kept >= oldest, "{:?} is forgotten: {oldest:?}", taken.kept);
        log.copy(taken.kept).unwrap();
        drop(pin);
        make_dirty(&store, before);
        assert!(checkpointer.take().unwrap() >= redo);
    }
}
