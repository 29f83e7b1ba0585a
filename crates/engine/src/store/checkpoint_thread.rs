//! When pages are written and checkpoints taken: a thread of the store looks at the log's tail
//! periodically. What it does then is in `recovery/checkpointer.rs`.

use std::sync::Arc;
use std::time::Duration;

use crate::pool::{PoolError, PoolStrategy};
use crate::recovery::Checkpointer;
use crate::store::housekeeping::Housekeeping;

/// Time between two looks at the log's tail.
const PERIOD: Duration = Duration::from_millis(20);

/// Starts the thread that writes dirty pages and takes checkpoints until it is dropped.
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
