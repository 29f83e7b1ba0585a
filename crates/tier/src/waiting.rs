//! Copies of pages read, on their way into the cache. They are written at once, or later, many
//! together, so that no reader waits for them.

use std::ops::Range;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicUsize, Ordering};

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;
use millpond_device::AlignedBuffer;

use crate::cache::Fill;
use crate::parts::ToCache;

/// Copies that wait, at most, before they are written.
const WAITING_MAX: usize = 64;

/// A copy to be written; without bytes, the read was of no use.
pub(super) struct NewCopy<'b> {
    pub range: Range<u64>,
    pub fill: Fill,
    pub bytes: Option<&'b [u8]>,
}

/// A copy that waits, with bytes of its own.
pub(super) struct WaitingCopy {
    range: Range<u64>,
    fill: Fill,
    bytes: Option<AlignedBuffer>,
}

impl WaitingCopy {
    /// The copy as it is written.
    pub fn as_new(&self) -> NewCopy<'_> {
        NewCopy { range: self.range.clone(), fill: self.fill, bytes: self.bytes.as_deref() }
    }
}

/// Copies that wait. The slot of each stays its own meanwhile; so no more wait than a part of the
/// slots that have no frame.
#[derive(Default)]
pub(super) struct Waiting {
    copies: Mutex<Vec<WaitingCopy>>,
    /// 0: none waits.
    most: AtomicUsize,
}

impl Waiting {
    /// From now on copies wait, where there are `spare` slots without a frame.
    pub fn begin(&self, spare: u32) {
        self.most.store(WAITING_MAX.min(spare as usize / 4), Ordering::Relaxed);
    }

    /// Returns `true` if copies wait.
    pub fn is_on(&self) -> bool {
        self.most.load(Ordering::Relaxed) > 0
    }

    fn copies(&self) -> MutexGuard<'_, Vec<WaitingCopy>> {
        // Nothing below can panic between two steps.
        self.copies.lock().past_poison()
    }

    /// Adds copies to those that wait. Returns `true` if there are too many; the caller then
    /// writes them.
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

    /// Takes all, unless they can wait for more: `even_few` says that they cannot.
    pub fn take(&self, even_few: bool) -> Vec<WaitingCopy> {
        let mut copies = self.copies();
        let are_many = copies.len() >= self.most.load(Ordering::Relaxed);
        if are_many || even_few { std::mem::take(&mut copies) } else { Vec::new() }
    }
}
