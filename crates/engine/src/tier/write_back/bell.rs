//! Tells a thread that there may be work, or that it is to end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, MutexGuard, PoisonError};
use std::time::Duration;

use millpond_base::sync::unmodelled::Mutex;

#[derive(Default)]
struct State {
    has_rung: bool,
    is_over: bool,
}

/// What a thread waits for.
#[derive(Default)]
pub(super) struct Bell {
    state: Mutex<State>,
    changed: Condvar,
    /// Whether a thread listens.
    has_listener: AtomicBool,
}

impl Bell {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread listens from now on, or not any more.
    pub(super) fn listen(&self, listens: bool) {
        self.has_listener.store(listens, Ordering::Release);
    }

    pub(super) fn has_listener(&self) -> bool {
        self.has_listener.load(Ordering::Acquire)
    }

    pub(super) fn ring(&self) {
        self.state().has_rung = true;
        self.changed.notify_all();
    }

    /// The thread is to end.
    pub(super) fn end(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    pub(super) fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// Waits until it rings; returns whether the thread is to go on.
    pub(super) fn wait(&self) -> bool {
        let calm = |state: &mut State| !state.has_rung && !state.is_over;
        let waited = self.changed.wait_while(self.state(), calm);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.has_rung = false;
        !state.is_over
    }

    /// Waits for a while, or until the thread is to end.
    pub(super) fn pause(&self, time: Duration) {
        let goes_on = |state: &mut State| !state.is_over;
        drop(self.changed.wait_timeout_while(self.state(), time, goes_on));
    }
}
