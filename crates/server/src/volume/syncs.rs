//! Shared syncs: syncs that are requested at the same time are one.
//!
//! A sync makes durable everything written before it began. So requests that arrive during a sync
//! wait for the next one, and share it.

use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard};

use millpond_base::PastPoison;

/// Range to sync: some bytes, or all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    All,
    Ranges(Vec<Range<u64>>),
}

impl Wanted {
    fn join(&mut self, other: Wanted) {
        match (&mut *self, other) {
            (Wanted::Ranges(ranges), Wanted::Ranges(more)) => ranges.extend(more),
            (_, Wanted::All) => *self = Wanted::All,
            (Wanted::All, _) => {}
        }
    }
}

/// Syncs of a device.
#[derive(Debug)]
pub(super) struct Syncs {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Range of the next sync.
    next: Wanted,
    /// Number of syncs begun.
    begun: u64,
    ended: u64,
}

impl Default for Syncs {
    fn default() -> Syncs {
        let state = State { next: Wanted::Ranges(Vec::new()), begun: 0, ended: 0 };
        Syncs { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl Syncs {
    fn state(&self) -> MutexGuard<'_, State> {
        // A sync is counted as ended even if it panics.
        self.state.lock().past_poison()
    }

    /// Returns after a sync for `wanted` that began after the call: run with `sync`, or by another
    /// caller. The caller that ran it records its result.
    pub fn share(&self, wanted: Wanted, sync: impl FnOnce(Wanted)) {
        let mut state = self.state();
        state.next.join(wanted);
        let mine = state.begun + 1;
        while state.ended < mine {
            if state.begun > state.ended {
                state = self.changed.wait(state).past_poison();
                continue;
            }
            state.begun += 1;
            let all = std::mem::replace(&mut state.next, Wanted::Ranges(Vec::new()));
            drop(state);
            let _ended = Ended(self);
            return sync(all);
        }
    }
}

/// Ends a sync when it is dropped.
struct Ended<'s>(&'s Syncs);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.state().ended += 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of one range are lists of ranges")]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn those_that_come_during_a_sync_share_the_next_one() {
        let (syncs, done) = (Syncs::default(), Mutex::new(Vec::new()));
        let (begin, begun) = channel();
        let (go_on, goes_on) = channel();
        std::thread::scope(|scope| {
            let (syncs, done) = (&syncs, &done);
            let note = move |all| done.lock().unwrap().push(all);
            let first = move |all| {
                note(all);
                begin.send(()).unwrap();
                goes_on.recv().unwrap();
            };
            scope.spawn(move || syncs.share(Wanted::Ranges(vec![0..1]), first));
            begun.recv().unwrap();
            for at in 1..4 {
                scope.spawn(move || syncs.share(Wanted::Ranges(vec![at..at + 1]), note));
            }
            let waits = |count: usize| {
                while !matches!(&syncs.state().next, Wanted::Ranges(all) if all.len() == count) {
                    std::thread::yield_now();
                }
            };
            waits(3);
            assert_eq!(*done.lock().unwrap(), [Wanted::Ranges(vec![0..1])]);
            go_on.send(()).unwrap();
        });
        let mut done = done.into_inner().unwrap();
        assert_eq!(done.len(), 2);
        let Some(Wanted::Ranges(mut second)) = done.pop() else { panic!() };
        second.sort_unstable_by_key(|range| range.start);
        assert_eq!(second, [1..2, 2..3, 3..4]);
    }

    #[test]
    fn all_includes_ranges() {
        let mut wanted = Wanted::Ranges(vec![0..1]);
        wanted.join(Wanted::All);
        wanted.join(Wanted::Ranges(vec![3..4]));
        assert_eq!(wanted, Wanted::All);
        let syncs = Syncs::default();
        let mut seen = None;
        syncs.share(Wanted::All, |all| seen = Some(all));
        assert_eq!(seen, Some(Wanted::All));
        syncs.share(Wanted::Ranges(vec![5..6]), |all| seen = Some(all));
        assert_eq!(seen, Some(Wanted::Ranges(vec![5..6])));
    }
}
