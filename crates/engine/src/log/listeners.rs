//! Calls to be made once records are durable: commits that return at once.
//!
//! The background thread makes them, after each of its flushes, in the order of their records. So
//! no thread that waits for its own commit runs the code of another.

use std::panic::{AssertUnwindSafe, catch_unwind};

use millpond_base::PastPoison;
use millpond_base::sync::Mutex;

use super::error::LogError;

/// A call to be made once a record is durable, or once it is known that the log takes nothing more.
pub type OnDurable = Box<dyn FnOnce(Result<(), LogError>) + Send>;

/// The calls that wait.
pub(super) struct Listeners(Mutex<Waiting>);

struct Waiting {
    /// Each with the end of its record.
    calls: Vec<(u64, OnDurable)>,
    /// There is no background thread, or it has ended: nobody makes calls any more.
    is_over: bool,
}

impl Listeners {
    /// Returns a list of no calls. `is_over` if there is no background thread.
    pub(super) fn new(is_over: bool) -> Listeners {
        Listeners(Mutex::new(Waiting { calls: Vec::new(), is_over }))
    }

    /// Adds a call for the record that ends at `end`.
    ///
    /// # Errors
    /// No thread would make it: returns the call.
    pub(super) fn add(&self, end: u64, call: OnDurable) -> Result<(), OnDurable> {
        let mut waiting = self.0.lock().past_poison();
        if waiting.is_over {
            return Err(call);
        }
        waiting.calls.push((end, call));
        Ok(())
    }

    /// Makes the calls of records before `durable`, and all others with `error` if there is one.
    pub(super) fn complete(&self, durable: u64, error: Option<&LogError>) {
        let mut ready = {
            let mut waiting = self.0.lock().past_poison();
            let is_ready = |(end, _): &mut (u64, OnDurable)| *end <= durable || error.is_some();
            waiting.calls.extract_if(.., is_ready).collect::<Vec<_>>()
        };
        ready.sort_by_key(|(end, _)| *end);
        for (end, call) in ready {
            let outcome = match error {
                Some(error) if end > durable => Err(error.clone()),
                _ => Ok(()),
            };
            // The thread has more to do than to serve the one that panics.
            let _ = catch_unwind(AssertUnwindSafe(|| call(outcome)));
        }
    }

    /// Makes all calls, and refuses others from now on.
    pub(super) fn finish(&self, durable: u64, error: &LogError) {
        self.0.lock().past_poison().is_over = true;
        self.complete(durable, Some(error));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn calls_are_made_in_the_order_of_their_records_and_each_once() {
        let (listeners, seen) = (Listeners::new(false), Arc::new(Mutex::new(Vec::new())));
        let add = |end: u64| {
            let seen = seen.clone();
            let call = move |outcome: Result<(), LogError>| {
                seen.lock().unwrap().push((end, outcome.is_ok()));
                assert!(end != 16, "a call that panics harms no other");
            };
            listeners.add(end, Box::new(call)).is_ok()
        };
        assert!([24, 8, 16, 40, 32].map(add).iter().all(|was_added| *was_added));
        listeners.complete(7, None);
        assert!(seen.lock().unwrap().is_empty());
        listeners.complete(24, None);
        assert_eq!(*seen.lock().unwrap(), [(8, true), (16, true), (24, true)]);
        let closed = LogError::Closed { path: "here".into() };
        listeners.finish(32, &closed);
        assert_eq!(seen.lock().unwrap()[3..], [(32, true), (40, false)]);
        assert!(!add(48), "the caller has to wait by itself");
    }
}
