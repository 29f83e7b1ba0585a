//! The store's own thread: once a second it grows the file ahead of need, merges badly filled
//! leaves ([`merging`](crate::store::merging)) and publishes statistics. It sleeps between two
//! rounds, and a round does nothing if the pool was not used since the last one and nothing is left
//! to merge.

use std::sync::{Arc, Condvar, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use millpond_base::sync::unmodelled::Mutex;

use crate::pool::PoolError;

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
    /// returns whether it should end early.
    pub(crate) fn start(
        name: &'static str,
        period: Duration,
        mut round: impl FnMut(&dyn Fn() -> bool) + Send + 'static,
    ) -> Result<Housekeeping, PoolError> {
        let signal = Arc::new(Signal::default());
        let theirs = signal.clone();
        let body = move || {
            let is_over = || *theirs.stop.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                round(&is_over);
                let stop = theirs.stop.lock().unwrap_or_else(PoisonError::into_inner);
                let wait = theirs.changed.wait_timeout_while(stop, period, |stop| !*stop);
                if *wait.unwrap_or_else(PoisonError::into_inner).0 {
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
        *self.signal.stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.signal.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a background thread of the store ended by a panic");
        }
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
