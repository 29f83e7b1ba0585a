//! Ctrl-C: the first one asks long work to stop at the next batch, the second one ends at once.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

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

/// Whether Ctrl-C was pressed.
pub(crate) fn asked() -> bool {
    ASKED.load(Relaxed)
}
