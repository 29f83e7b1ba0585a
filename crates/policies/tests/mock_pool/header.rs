//! A frame's header: a versioned try-latch, pins, and what the latch guards.

use millpond_base::FrameId;
use millpond_base::sync::Mutex;
use millpond_base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};

/// `Header::page` of a frame without one.
pub const NO_PAGE: u64 = u64::MAX;

/// One frame. `page`, `resident`, `permanent` and `parent` change only under the latch; `dirty` is
/// set by the thread that has the frame pinned; `children` has a lock of its own, and grows only
/// under the latch.
#[derive(Default)]
pub struct Header {
    /// Even: unlatched. Odd: latched. Each change of the page moves it on by two.
    version: AtomicU64,
    pub page: AtomicU64,
    pub resident: AtomicBool,
    pub pins: AtomicU32,
    pub dirty: AtomicBool,
    pub writing: AtomicBool,
    pub cooling: AtomicBool,
    pub permanent: AtomicBool,
    /// The frame whose page points to this one directly, plus one; 0 for none.
    pub parent: AtomicU32,
    pub children: Mutex<Vec<FrameId>>,
}

/// The latch, held. Dropping it leaves the version as it was.
pub struct Latched<'a> {
    header: &'a Header,
    version: u64,
}

impl Header {
    /// The version, if the frame is not latched.
    pub fn version(&self) -> Option<u64> {
        Some(self.version.load(SeqCst)).filter(|v| v % 2 == 0)
    }

    /// Returns `true` if the frame is unlatched and unchanged since `version` was read.
    pub fn is_still(&self, version: u64) -> bool {
        self.version.load(SeqCst) == version
    }

    /// Latches, if that can be had at once.
    pub fn try_latch(&self) -> Option<Latched<'_>> {
        let version = self.version()?;
        self.latch_at(version)
    }

    /// Latches, if nothing changed since `version` was read.
    pub fn latch_at(&self, version: u64) -> Option<Latched<'_>> {
        self.version.compare_exchange(version, version + 1, SeqCst, SeqCst).ok()?;
        Some(Latched { header: self, version })
    }
}

impl Latched<'_> {
    /// Releases, telling optimistic readers that the frame changed. Says the new version.
    pub fn changed(mut self) -> u64 {
        self.version += 2;
        self.version
    }
}

impl Drop for Latched<'_> {
    fn drop(&mut self) {
        self.header.version.store(self.version, SeqCst);
    }
}
