//! The log's background thread: flushes records that no thread waits for, and keeps a segment
//! ready.
//!
//! It sleeps while there is nothing to do. An append to a log whose thread sleeps wakes the thread.
//! The thread then waits for the flush interval, flushes the records that are not durable by then,
//! and sleeps again. It does not wait for the interval's end when half of the buffer is in use, or
//! when somebody listens for a record to become durable.

use std::sync::Arc;
use std::time::Duration;

use super::error::LogError;
use super::group_commit::GroupCommitWait;
use super::shared::Shared;

#[cfg(not(feature = "model"))]
pub(super) type Handle = std::thread::JoinHandle<()>;
#[cfg(feature = "model")]
pub(super) type Handle = millpond_base::sync::thread::JoinHandle<()>;

/// Starts the thread.
pub(super) fn start(shared: &Arc<Shared>, interval: Duration) -> Result<Handle, LogError> {
    let own = shared.clone();
    let body = move || {
        loop {
            // The change that needs the room gets the error.
            let _ = own.grow_if_short();
            let Some(target) = own.alarm.next(&own.ring, interval) else {
                let closed = LogError::Closed { path: own.path().to_path_buf() };
                let error = own.poisoned().unwrap_or(closed);
                return own.listeners.finish(own.ring.durable(), &error);
            };
            let flushed = own.wait(None, target, GroupCommitWait::None);
            match flushed {
                Ok(()) => own.listeners.complete(own.ring.durable(), None),
                Err(error) => return own.listeners.finish(own.ring.durable(), &error),
            }
        }
    };
    #[cfg(not(feature = "model"))]
    {
        let builder = std::thread::Builder::new().name("millpond-log".to_string());
        builder.spawn(body).map_err(|error| LogError::NoThread {
            path: shared.path().to_path_buf(),
            reason: error.to_string(),
        })
    }
    #[cfg(feature = "model")]
    Ok(millpond_base::sync::thread::spawn(body))
}
