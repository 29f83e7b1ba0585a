//! Tells a thread that there may be work, or that it is to end.
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
    /// Notified when the bell rings, or when the thread is to end.
    changed: Condvar,
    /// The thread is to end.
    over: Condvar,
    /// True if a thread listens.
    has_listener: AtomicBool,
}

impl Bell {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().past_poison()
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
        self.over.notify_all();
    }

    pub(super) fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// Waits until it rings; returns whether the thread is to go on. A ring while the thread was at
    /// work counts.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.state();
        while !state.has_rung && !state.is_over {
            state = self.changed.wait(state).past_poison();
        }
        state.has_rung = false;
        !state.is_over
    }

    /// Waits for a while, or until the thread is to end.
    pub(super) fn pause(&self, time: Duration) {
        let state = self.state();
        if !state.is_over {
            // A wait that ends before its time has the thread try again before it.
            drop(self.over.wait_timeout(state, time));
        }
    }
}
