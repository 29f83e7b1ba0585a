//! An event that wakes a thread for possible work, or ends it.
use std::time::Duration;

use millpond_base::PastPoison;
use millpond_base::sync::atomic::{AtomicBool, Ordering};
use millpond_base::sync::{Condvar, Mutex, MutexGuard};

#[derive(Default)]
struct State {
    has_rung: bool,
    is_over: bool,
}

/// Event that a thread waits for.
#[derive(Default)]
pub(super) struct Bell {
    state: Mutex<State>,
    /// Notified when the bell rings, or when the thread has to end.
    changed: Condvar,
    /// Notified when the thread has to end.
    over: Condvar,
    /// Set while a thread listens.
    has_listener: AtomicBool,
}

impl Bell {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().past_poison()
    }

    /// Records that a thread starts or stops listening.
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

    /// Asks the thread to end.
    pub(super) fn end(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
        self.over.notify_all();
    }

    pub(super) fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// Waits for a ring; returns `false` if the thread has to end. A ring during the thread's work
    /// counts.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.state();
        while !state.has_rung && !state.is_over {
            state = self.changed.wait(state).past_poison();
        }
        state.has_rung = false;
        !state.is_over
    }

    /// Waits for a while, or until the thread has to end.
    pub(super) fn pause(&self, time: Duration) {
        let state = self.state();
        if !state.is_over {
            // After a wait that ends early, the thread only tries again sooner.
            drop(self.over.wait_timeout(state, time));
        }
    }
}
