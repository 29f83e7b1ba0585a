//! The memory limit of locks (rule 9).
//!
//! Owners reserve memory in pieces that grow with their share, and keep a first piece while they
//! are reused. So a small transaction touches no counter that others touch. The first piece is
//! small, because an open transaction keeps it, however little it locks.

use millpond_base::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that an owner reserves first, and keeps.
pub(super) const FIRST_PIECE: usize = 1 << 10;
/// Maximum number of bytes that an owner reserves at a time.
pub(super) const PIECE_MAX: usize = 16 << 10;
/// Bytes of a key lock: its entry, its share of empty places in tables, and the owner's `KeyHold`.
pub(super) const KEY_BYTES: usize = 96;

/// Bytes in use, and their limit.
pub(super) struct Budget {
    used: AtomicUsize,
    pub limit: usize,
}

impl Budget {
    pub fn new(limit: usize) -> Budget {
        Budget { used: AtomicUsize::new(0), limit }
    }

    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Reserves `bytes` if they are available; returns whether they were.
    pub fn reserve(&self, bytes: usize) -> bool {
        let add = |used: usize| used.checked_add(bytes).filter(|after| *after <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    pub fn give_back(&self, bytes: usize) {
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{bytes} bytes are given back, and {before} were reserved");
    }
}
