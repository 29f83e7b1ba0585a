//! Threads that wait for locks, stepped one after the other without looking at a clock.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use millpond::internals::lock::{LockError, LockManager, LockOptions, LockOwner};

/// A wait that only a bug lets come to its end.
pub const LONG: Duration = Duration::from_secs(100);

pub fn manager() -> Arc<LockManager> {
    Arc::new(LockManager::new(LockOptions::default().wait_max(LONG)))
}

/// An owner at work in another thread, which comes back with it.
pub struct Working(JoinHandle<(LockOwner, Result<(), LockError>)>);

impl Working {
    pub fn done(self) -> (LockOwner, Result<(), LockError>) {
        self.0.join().unwrap()
    }

    pub fn is_waiting(&self) -> bool {
        !self.0.is_finished()
    }
}

/// Starts `request`, and returns once it waits.
pub fn waits(
    manager: &LockManager,
    mut owner: LockOwner,
    request: impl FnOnce(&mut LockOwner) -> Result<(), LockError> + Send + 'static,
) -> Working {
    let waits = manager.counts().waits;
    let working = thread::spawn(move || {
        let result = request(&mut owner);
        (owner, result)
    });
    let has_waited = || manager.counts().waits != waits;
    while !has_waited() {
        // One that is the victim may have waited, and be over, by now.
        assert!(!working.is_finished() || has_waited(), "it did not have to wait");
        thread::yield_now();
    }
    Working(working)
}
