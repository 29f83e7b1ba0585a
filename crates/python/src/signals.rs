//! Signals during calls that take time: their handlers run, and what they raise ends the call.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use millpond::internals::lock::interrupt_waits_by;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Time between two looks at whether a signal has come.
const PERIOD: Duration = Duration::from_millis(100);

thread_local! {
    /// The error that a handler raised while the thread waited for a lock, or was in another long
    /// call.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Runs the handlers of signals now and then, and keeps what one of them raised.
pub(crate) struct Signals {
    /// When it asked last; `None` if it has not.
    asked: Option<Instant>,
    pub(crate) raised: Option<PyErr>,
}

impl Signals {
    pub(crate) fn new() -> Signals {
        Signals { asked: None, raised: None }
    }

    /// Returns whether to stop.
    pub(crate) fn stop(&mut self) -> bool {
        let is_time = self.asked.is_none_or(|asked| asked.elapsed() >= PERIOD);
        if self.raised.is_none() && is_time {
            self.raised = Python::attach(|py| py.check_signals()).err();
            self.asked = Some(Instant::now());
        }
        self.raised.is_some()
    }
}

/// Runs `work` on a thread of its own while this one runs the handlers of signals. A handler that
/// raises ends the call at once; `work` ends when it next asks its argument whether to stop.
pub(crate) fn interruptibly<R: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> R + Send + 'static,
) -> PyResult<R> {
    let is_over = Arc::new(AtomicBool::new(false));
    let (done, result) = channel();
    let ask = is_over.clone();
    let worker = std::thread::spawn(move || {
        // The caller that was to take the result may be gone.
        let _ = done.send(work(&|| ask.load(Ordering::Relaxed)));
    });
    py.detach(move || {
        loop {
            if let Err(raised) = Python::attach(|py| py.check_signals()) {
                is_over.store(true, Ordering::Relaxed);
                return Err(raised);
            }
            match result.recv_timeout(PERIOD) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // It panicked, and so does the caller.
        match worker.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => Err(PyRuntimeError::new_err("the call has no result")),
        }
    })
}

/// Has the handlers of signals run while this thread waits for locks, recovers a store, or walks a
/// whole tree.
pub(crate) fn watch_waits() {
    interrupt_waits_by(Some(is_interrupted));
}

fn is_interrupted() -> bool {
    let Some(Err(raised)) = Python::try_attach(|py| py.check_signals()) else { return false };
    // A thread that ends has no use for it.
    let _ = RAISED.try_with(|kept| kept.replace(Some(raised)));
    true
}

/// Takes the error that a handler raised while the thread was in a call of the engine, if that
/// ended the call.
pub(crate) fn take_raised() -> Option<PyErr> {
    RAISED.try_with(RefCell::take).ok().flatten()
}
