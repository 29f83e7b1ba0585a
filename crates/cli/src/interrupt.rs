//! Ctrl-C: the first one asks long work to stop at the next batch, the second one ends at once.
//! SIGTERM likewise, for commands that would leave something behind.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use millpond::internals::lock::interrupt_waits_by;
use signal_hook::consts::SIGTERM;
use signal_hook::flag;

use crate::error::Failure;

/// The exit code that shells expect of a program that a SIGTERM ended.
const TERMINATED: i32 = 143;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Begins to listen.
pub fn listen() {
    // Where no handler can be installed, Ctrl-C keeps its usual meaning.
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Relaxed) {
            std::process::exit(130);
        }
    });
}

/// Has Ctrl-C end recoveries, waits for locks and other long calls of stores, as far as the calling
/// thread makes them.
pub(crate) fn end_long_calls() {
    interrupt_waits_by(Some(asked));
}

/// Fails each write after Ctrl-C, which ends calls that only write.
pub(crate) struct UntilAsked<W>(pub W);

impl<W: Write> Write for UntilAsked<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if asked() { Err(io::Error::other("interrupted")) } else { self.0.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The failure of what a Ctrl-C may have ended.
pub(crate) fn or_interrupted(failure: Failure) -> Failure {
    if asked() { Failure::Interrupted } else { failure }
}

/// Returns whether Ctrl-C was pressed.
pub fn asked() -> bool {
    ASKED.load(Relaxed)
}

/// A flag that SIGTERM sets; the second one ends the program.
pub(crate) fn terminated() -> Arc<AtomicBool> {
    let asked = Arc::new(AtomicBool::new(false));
    // Where no handler can be installed, the signal keeps its usual meaning.
    let _ = flag::register_conditional_shutdown(SIGTERM, TERMINATED, asked.clone());
    let _ = flag::register(SIGTERM, asked.clone());
    asked
}
