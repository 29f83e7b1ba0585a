//! State that all threads of a log share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use millpond_base::PastPoison;
use millpond_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use millpond_base::sync::{Condvar, Mutex};

use super::group_commit::Flush;
use super::listeners::Listeners;
use super::ring::Ring;
use super::segments::Segments;
use crate::stats::Statistics;

/// LSN of the first record of a new log: one block, so that 0 can mean none.
pub(super) const FIRST: u64 = super::options::BLOCK;

/// State of a log, except for the background thread itself.
pub(super) struct Shared {
    pub(super) ring: Ring,
    pub(super) segments: Arc<Segments>,
    pub(super) flush: Flush,
    pub(super) alarm: Alarm,
    pub(super) listeners: Listeners,
    pub(super) statistics: Statistics,
    pub(super) salt: u64,
    pub(super) path: PathBuf,
    /// Maximum length of a record's body in bytes.
    pub(super) record_max: usize,
    /// Position up to which the file has room for records, when last looked up.
    pub(super) room_until: AtomicU64,
    /// Held while the file grows ahead of need, and while free segments are given back. So promised
    /// room is kept, and threads that need the same room grow the file once. Locked before the
    /// leader's mutex and before [`Segments::growing`].
    pub(super) growing_ahead: Mutex<()>,
    /// Bytes that are reserved for records that must find room.
    pub(super) reserved: AtomicU64,
    /// True if a change found no room, and no checkpoint was taken since to make some.
    pub(super) is_refusing: AtomicBool,
    /// End of the log when it was opened.
    pub(super) opened_at: u64,
}

impl Shared {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Wakes the background thread.
pub(super) struct Alarm {
    /// True if the thread sleeps until a record is appended.
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

    /// Wakes the background thread, because a record was appended.
    #[cold]
    #[inline(never)]
    pub(super) fn rouse(&self) {
        // Only one of the threads that saw it asleep wakes it.
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            let _state = self.state.lock().past_poison();
            self.bell.notify_one();
        }
    }

    /// Cuts the background thread's interval short, because the buffer fills up or somebody listens
    /// for a record to become durable.
    #[cold]
    #[inline(never)]
    pub(super) fn urge(&self) {
        let mut state = self.state.lock().past_poison();
        if !state.is_urgent {
            state.is_urgent = true;
            self.bell.notify_one();
        }
    }

    pub(super) fn stop(&self) {
        self.state.lock().past_poison().is_stopping = true;
        self.bell.notify_one();
    }

    /// Sleeps until there is a record to flush, then for `interval` or until it is urgent. Returns
    /// the position up to which to flush, or `None` to stop.
    pub(super) fn next(&self, ring: &Ring, interval: Duration) -> Option<u64> {
        let mut state = self.state.lock().past_poison();
        loop {
            if state.is_stopping {
                return None;
            }
            // Asleep first, then the tail: either the append is seen here, or the appender sees
            // this thread asleep (rule 9).
            self.is_asleep.store(true, Ordering::SeqCst);
            if ring.tail() > ring.durable() || state.is_urgent {
                break;
            }
            state = self.bell.wait(state).past_poison();
        }
        self.is_asleep.store(false, Ordering::SeqCst);
        let target = ring.tail();
        let deadline = Instant::now() + interval;
        while !state.is_stopping && !state.is_urgent {
            let left = deadline.saturating_duration_since(Instant::now());
            // In a model no time passes.
            if left.is_zero() || cfg!(feature = "model") {
                break;
            }
            let waited = self.bell.wait_timeout(state, left);
            state = waited.past_poison().0;
        }
        let is_urgent = std::mem::take(&mut state.is_urgent);
        // An urgent flush goes up to the present tail, not up to the one when the interval began.
        (!state.is_stopping).then(|| if is_urgent { ring.tail() } else { target })
    }
}
