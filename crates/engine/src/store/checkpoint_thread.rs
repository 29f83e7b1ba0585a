//! When checkpoints are taken: a thread of the store looks at the log again and again. What a
//! checkpoint is, and in which order it is taken, is `recovery/checkpointer.rs`.

use std::sync::Arc;
use std::time::Duration;

use crate::pool::{PoolError, PoolStrategy};
use crate::recovery::Checkpointer;
use crate::store::housekeeping::Housekeeping;

/// Time between two looks at the log.
const PERIOD: Duration = Duration::from_millis(20);

/// Starts the thread that takes checkpoints, until it is dropped.
pub(crate) fn start<M: PoolStrategy>(
    checkpointer: Arc<Checkpointer<M>>,
) -> Result<Housekeeping, PoolError> {
    let mut failed = false;
    Housekeeping::start("millpond-check", PERIOD, move |_| {
        if let Err(error) = checkpointer.round() {
            checkpointer.txns.room().failed();
            if !std::mem::replace(&mut failed, true) {
                tracing::warn!(%error, "a checkpoint failed: the log is kept, and grows");
            }
        }
    })
}
