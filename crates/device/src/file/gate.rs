//! The gate of a device, which is shut when the device is released: calls in progress are waited
//! for, and none begins afterwards. So the next process that has the file never meets a write or a
//! read of the previous one.

use std::sync::Condvar;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;

/// Bit that is set in the count of pending calls once the gate is shut.
const SHUT: u64 = 1 << 63;

/// A gate, open at first. All threads change it, so it has its own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Gate {
    /// Number of calls in progress, and [`SHUT`].
    state: AtomicU64,
    ends: Mutex<()>,
    ended: Condvar,
}

/// A call in progress, until this is dropped.
#[derive(Debug)]
pub(super) struct Passage<'g>(&'g Gate);

impl Gate {
    /// Begins a call; `None` if the gate is shut.
    #[inline]
    pub(super) fn pass(&self) -> Option<Passage<'_>> {
        let before = self.state.fetch_add(1, SeqCst);
        let passage = Passage(self);
        (before & SHUT == 0).then_some(passage)
    }

    /// Shuts the gate, and waits until no call is in progress.
    pub(super) fn shut(&self) {
        self.state.fetch_or(SHUT, SeqCst);
        let mut ends = self.ends.lock().past_poison();
        while self.state.load(SeqCst) != SHUT {
            ends = self.ended.wait(ends).past_poison();
        }
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        if self.0.state.fetch_sub(1, SeqCst) == SHUT + 1 {
            drop(self.0.ends.lock().past_poison());
            self.0.ended.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_that_is_shut_lets_nobody_pass_and_has_waited_for_those_who_did() {
        let (gate, is_shut) = (Gate::default(), std::sync::atomic::AtomicBool::new(false));
        std::thread::scope(|scope| {
            let passage = gate.pass().unwrap();
            let inner = gate.pass().unwrap();
            scope.spawn(|| {
                gate.shut();
                is_shut.store(true, SeqCst);
            });
            while gate.state.load(SeqCst) & SHUT == 0 {
                std::thread::yield_now();
            }
            assert!(gate.pass().is_none());
            drop(inner);
            assert!(!is_shut.load(SeqCst), "one is under way");
            drop(passage);
        });
        gate.shut();
        assert!(gate.pass().is_none());
    }
}
