//! The store's own thread: once a second it grows the file ahead of need, merges badly filled
//! leaves ([`merging`](crate::store::merging)) and publishes statistics. It sleeps between two
//! rounds, and a round does nothing if the pool was not used since the last one and nothing is left
//! to merge.
//!
//! # Unfinished aborts
//!
//! Undo may have to split a leaf, since others may have used the room that a transaction's removals
//! left. A full data file keeps a few pages for that. When they are used up, a checkpoint is taken,
//! which frees places. If that does not help, the transaction comes here, with its locks. The
//! checkpoint thread tries again, round after round, and so does the closing of the store. Others
//! may make room in the meantime, for example by removing entries. The log keeps the records that
//! undo needs: nothing is lost if the process ends before.

use std::sync::{Arc, Condvar, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;

use crate::pool::PoolError;
use crate::store::error::kind::is_disk_full;
use crate::txn::TxnError;

#[derive(Default)]
struct Signal {
    stop: Mutex<bool>,
    changed: Condvar,
}

/// A thread that repeats its round until this is dropped.
pub(crate) struct Housekeeping {
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

impl Housekeeping {
    /// Starts the thread `name`, with `period` between two rounds. A round receives a closure that
    /// returns `true` if it should end early.
    pub(crate) fn start(
        name: &'static str,
        period: Duration,
        mut round: impl FnMut(&dyn Fn() -> bool) + Send + 'static,
    ) -> Result<Housekeeping, PoolError> {
        let signal = Arc::new(Signal::default());
        let theirs = signal.clone();
        let body = move || {
            let is_over = || *theirs.stop.lock().past_poison();
            loop {
                round(&is_over);
                let stop = theirs.stop.lock().past_poison();
                let wait = theirs.changed.wait_timeout_while(stop, period, |stop| !*stop);
                if *wait.past_poison().0 {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name(name.to_string());
        let thread =
            thread.spawn(body).map_err(|error| PoolError::Thread { reason: error.to_string() })?;
        Ok(Housekeeping { signal, thread: Some(thread) })
    }
}

impl Drop for Housekeeping {
    fn drop(&mut self) {
        *self.signal.stop.lock().past_poison() = true;
        self.signal.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a background thread of the store ended by a panic");
        }
    }
}

/// A transaction to be aborted, with everything that the abort needs.
pub(in crate::store) trait Abort: Send {
    /// Undoes its changes and ends it.
    fn abort(&mut self) -> Result<(), TxnError>;

    /// Leaves it to the next opening of the store, because of `error`.
    fn strand(&mut self, error: &TxnError);
}

/// Transactions whose abort waits for room, each with the error of the last attempt.
#[derive(Default)]
pub(crate) struct Unfinished(Mutex<Vec<(Box<dyn Abort>, TxnError)>>);

impl Unfinished {
    fn lock(&self) -> MutexGuard<'_, Vec<(Box<dyn Abort>, TxnError)>> {
        self.0.lock().past_poison()
    }

    /// Takes over a transaction whose abort failed with `error`.
    pub(in crate::store) fn push(&self, tx: Box<dyn Abort>, error: TxnError) {
        self.lock().push((tx, error));
    }

    /// Tries to abort each of them. Returns `true` if some are left.
    pub(in crate::store) fn retry(&self) -> bool {
        let mut all = self.lock();
        all.retain_mut(|(tx, _)| match tx.abort() {
            Ok(()) => false,
            Err(error) if is_disk_full(&error) => true,
            Err(error) => {
                tx.strand(&error);
                false
            }
        });
        !all.is_empty()
    }

    /// Leaves them to the next opening of the store.
    pub(in crate::store) fn strand(&self) {
        self.lock().drain(..).for_each(|(mut tx, error)| tx.strand(&error));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn it_makes_a_round_at_once_and_ends_when_it_is_dropped() {
        let rounds = Arc::new(AtomicU32::new(0));
        let count = rounds.clone();
        let house = Housekeeping::start("house", Duration::from_secs(1), move |_| {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let house = house.unwrap();
        while rounds.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        drop(house);
        assert_eq!(Arc::strong_count(&rounds), 1, "the thread is gone");
    }
}
