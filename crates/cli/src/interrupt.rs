//! Ctrl-C: the first one asks long work to stop at the next batch, the second one ends the program
//! at once. SIGTERM does the same for commands that would leave something behind.

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

/// Installs the handler.
pub fn listen() {
    // If no handler can be installed, Ctrl-C keeps its usual meaning.
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Relaxed) {
            std::process::exit(130);
        }
    });
}

/// Lets Ctrl-C end recoveries, lock waits and other long store calls of the calling thread.
pub(crate) fn end_long_calls() {
    interrupt_waits_by(Some(asked));
}

/// Writer that fails after Ctrl-C, which ends calls that only write.
pub(crate) struct UntilAsked<W>(pub W);

impl<W: Write> Write for UntilAsked<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if asked() { Err(io::Error::other("interrupted")) } else { self.0.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Returns `Failure::Interrupted` if Ctrl-C was pressed, else `failure`.
pub(crate) fn or_interrupted(failure: Failure) -> Failure {
    if asked() { Failure::Interrupted } else { failure }
}

/// Returns `true` if Ctrl-C was pressed.
pub fn asked() -> bool {
    ASKED.load(Relaxed)
}

/// Returns a flag that SIGTERM sets; a second SIGTERM ends the program.
pub(crate) fn terminated() -> Arc<AtomicBool> {
    let asked = Arc::new(AtomicBool::new(false));
    // If no handler can be installed, the signal keeps its usual meaning.
    let _ = flag::register_conditional_shutdown(SIGTERM, TERMINATED, asked.clone());
    let _ = flag::register(SIGTERM, asked.clone());
    asked
}
