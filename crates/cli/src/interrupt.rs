//! Ctrl-C: the first one asks long work to stop at the next batch, the second one ends at once.
//! SIGTERM likewise, for commands that would leave something behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use millpond::internals::lock::interrupt_waits_by;
use signal_hook::consts::SIGTERM;
use signal_hook::flag;

/// What shells expect of a program that a SIGTERM ended.
const TERMINATED: i32 = 143;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Begins to listen.
pub(crate) fn listen() {
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

/// Whether Ctrl-C was pressed.
pub(crate) fn asked() -> bool {
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
