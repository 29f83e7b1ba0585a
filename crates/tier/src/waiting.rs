//! Copies of pages read that wait to be written to the cache. Writing many of them later, together,
//! spares readers the wait.

use std::ops::Range;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicUsize, Ordering};

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;
use millpond_device::AlignedBuffer;

use crate::cache::Fill;
use crate::parts::ToCache;

/// Maximum number of copies that wait.
const WAITING_MAX: usize = 64;

/// A copy to be written; without bytes, the read failed.
pub(super) struct NewCopy<'b> {
    pub range: Range<u64>,
    pub fill: Fill,
    pub bytes: Option<&'b [u8]>,
}

/// A waiting copy, which owns its bytes.
pub(super) struct WaitingCopy {
    range: Range<u64>,
    fill: Fill,
    bytes: Option<AlignedBuffer>,
}

impl WaitingCopy {
    /// Returns the copy in the form to be written.
    pub fn as_new(&self) -> NewCopy<'_> {
        NewCopy { range: self.range.clone(), fill: self.fill, bytes: self.bytes.as_deref() }
    }
}

/// The waiting copies. Each of them keeps its slot until it is written. So at most a part of the
/// slots without a frame wait.
#[derive(Default)]
pub(super) struct Waiting {
    copies: Mutex<Vec<WaitingCopy>>,
    /// Maximum number of waiting copies; 0 if none may wait.
    most: AtomicUsize,
}

impl Waiting {
    /// Lets copies wait from now on, in a cache with `spare` slots without a frame.
    pub fn begin(&self, spare: u32) {
        self.most.store(WAITING_MAX.min(spare as usize / 4), Ordering::Relaxed);
    }

    /// Returns `true` if copies may wait.
    pub fn is_on(&self) -> bool {
        self.most.load(Ordering::Relaxed) > 0
    }

    fn copies(&self) -> MutexGuard<'_, Vec<WaitingCopy>> {
        // Nothing below can panic between two steps.
        self.copies.lock().past_poison()
    }

    /// Adds waiting copies. Returns `true` if there are too many; the caller then writes them.
    pub fn push<'b>(
        &self,
        fills: Vec<ToCache>,
        bytes_of: impl Fn(&ToCache) -> Option<&'b [u8]>,
    ) -> bool {
        let own = |bytes: &[u8]| {
            let mut buffer = AlignedBuffer::new(bytes.len());
            buffer.copy_from_slice(bytes);
            buffer
        };
        let wait = |to: ToCache| {
            let bytes = bytes_of(&to).map(own);
            WaitingCopy { range: to.range, fill: to.fill, bytes }
        };
        let new: Vec<WaitingCopy> = fills.into_iter().map(wait).collect();
        let mut copies = self.copies();
        copies.extend(new);
        copies.len() >= 2 * self.most.load(Ordering::Relaxed)
    }

    /// Takes all waiting copies if there are many, or if `even_few` is set.
    pub fn take(&self, even_few: bool) -> Vec<WaitingCopy> {
        let mut copies = self.copies();
        let are_many = copies.len() >= self.most.load(Ordering::Relaxed);
        if are_many || even_few { std::mem::take(&mut copies) } else { Vec::new() }
    }
}
