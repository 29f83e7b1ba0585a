//! The background thread: flushes what nobody waits for, and keeps a segment ready.
//!
//! It sleeps while there is nothing to do. Who appends to a log whose thread sleeps wakes it; it
//! then gives the interval to others, flushes what they left, and sleeps again. When half of the
//! buffer is in use it does not wait for the interval's end.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use millpond_base::sync::atomic::{AtomicBool, Ordering};
use millpond_base::sync::{Condvar, Mutex};

use super::error::LogError;
use super::flush::GroupCommitWait;
use super::shared::Shared;
use super::shared::locked;

#[cfg(not(any(loom, shuttle)))]
pub(super) type Handle = std::thread::JoinHandle<()>;
#[cfg(any(loom, shuttle))]
pub(super) type Handle = millpond_base::sync::thread::JoinHandle<()>;

/// What wakes the background thread.
pub(super) struct Alarm {
    /// The thread sleeps until somebody appends.
    is_asleep: AtomicBool,
    state: Mutex<Wanted>,
    bell: Condvar,
}

#[derive(Default)]
struct Wanted {
    is_urgent: bool,
    is_stopping: bool,
}

impl Alarm {
    pub(super) fn new() -> Alarm {
        let is_asleep = AtomicBool::new(false);
        Alarm { is_asleep, state: Mutex::new(Wanted::default()), bell: Condvar::new() }
    }

    #[inline]
    pub(super) fn is_asleep(&self) -> bool {
        self.is_asleep.load(Ordering::SeqCst)
    }

    /// There is something to do again.
    #[cold]
    #[inline(never)]
    pub(super) fn rouse(&self) {
        // One of those who saw it asleep rings.
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            let _state = locked(&self.state);
            self.bell.notify_one();
        }
    }

    /// The buffer fills up.
    #[cold]
    #[inline(never)]
    pub(super) fn urge(&self) {
        let mut state = locked(&self.state);
        if !state.is_urgent {
            state.is_urgent = true;
            self.bell.notify_one();
        }
    }

    pub(super) fn stop(&self) {
        locked(&self.state).is_stopping = true;
        self.bell.notify_one();
    }

    /// Sleeps until there is something to flush, then for `interval` or until it is urgent.
    /// Returns up to where to flush, `None` to stop.
    fn next(&self, shared: &Shared, interval: Duration) -> Option<u64> {
        let mut state = locked(&self.state);
        loop {
            if state.is_stopping {
                return None;
            }
            // Asleep first, then the tail: an append is seen here, or sees that this sleeps
            // (rule 9).
            self.is_asleep.store(true, Ordering::SeqCst);
            if shared.ring.tail() > shared.ring.durable() {
                break;
            }
            state = self.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.is_asleep.store(false, Ordering::SeqCst);
        let target = shared.ring.tail();
        let deadline = Instant::now() + interval;
        while !state.is_stopping && !state.is_urgent {
            let left = deadline.saturating_duration_since(Instant::now());
            // In a model no time passes.
            if left.is_zero() || cfg!(any(loom, shuttle)) {
                break;
            }
            let waited = self.bell.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let is_urgent = std::mem::take(&mut state.is_urgent);
        // What is urgent is room: up to now, not up to when the interval began.
        (!state.is_stopping).then(|| if is_urgent { shared.ring.tail() } else { target })
    }
}

/// Starts the thread.
pub(super) fn start(shared: &Arc<Shared>, interval: Duration) -> Result<Handle, LogError> {
    let own = shared.clone();
    let body = move || {
        loop {
            if own.segments.runs_short(own.ring.tail()) {
                own.grow_ahead(&own.segments);
            }
            let Some(target) = own.alarm.next(&own, interval) else { return };
            if own.wait(target, GroupCommitWait::None).is_err() {
                return;
            }
        }
    };
    #[cfg(not(any(loom, shuttle)))]
    {
        let builder = std::thread::Builder::new().name("millpond-log".to_string());
        builder.spawn(body).map_err(|error| LogError::NoThread {
            path: shared.path().to_path_buf(),
            reason: error.to_string(),
        })
    }
    #[cfg(any(loom, shuttle))]
    Ok(millpond_base::sync::thread::spawn(body))
}
