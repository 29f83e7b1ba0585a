//! A device with a second tier that writes back: a slow device below, and a cache with the last
//! writes on a fast one.
//!
//! 1. **Synced bytes survive**, on the two devices together. `sync` returns when the copies of all
//!    pages written before are durable in the cache, and so is a directory that names them.
//! 2. **A slot that the directory names is not written to.** Each write of a page goes to a new
//!    slot; the old one becomes free once a later directory is durable.
//! 3. **A place leaves the directory once storage has it, durably**, or when nobody needs its
//!    contents.
//! 4. **Storage below is marked**: its first sector is in the cache until the tier is given up, so
//!    that nobody takes the storage for complete (`back_mark`).
//! 5. **A copy is verified** by its checksum each time it is read. If it is wrong, a clean copy's
//!    page is read from storage instead; a dirty copy is an error.
//! 6. **A failed sync is final**: no later one confirms durability.
//!
//! A write that is not a page, or finds no slot, goes to storage; its place leaves the directory
//! once that write is durable. The mutex of the tables is held only for steps of them, never during
//! I/O. Locks are taken in this order: writes to the beginning of the device, destaging, the
//! journal, the tables.

use std::ops::{Deref, DerefMut, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use millpond_base::PastPoison;
use millpond_base::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use millpond_base::sync::{Condvar, Mutex, MutexGuard};
use millpond_base::{Mark, PageId};
use millpond_device::{Alignment, Device, DeviceError, ReadRequest, WriteRequest};

use crate::back_layout::BackLayout;
use crate::cache::Cache;
use crate::counts::TierCounts;
use crate::parts::grow_for_slot;
use crate::waiting::Waiting;
use crate::write_back::bell::Bell;
use crate::write_back::format::{Journal, State};

/// Bytes that may wait to be discarded, however small the cache is.
const SUPERSEDED_LEAST: u64 = 1 << 20;

/// Longest wait for the end of a pending read or write, before the waiting copies are written.
/// Those copies hold slots, too.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A device, and a cache with the last writes to it.
pub struct BackDevice {
    pub(super) below: Arc<dyn Device>,
    pub(super) fast: Arc<dyn Device>,
    pub(super) layout: BackLayout,
    pub(super) cache: Mutex<Cache>,
    /// Notified when a read or a write of a slot has ended while a thread waits for it.
    pub(super) arrival: Condvar,
    pub(super) journal: Mutex<Journal>,
    /// Held while extents are written to storage.
    pub(super) destaging: Mutex<()>,
    pub(super) writing_pinned: Mutex<()>,
    pub(super) waiting: Waiting,
    /// Held while the cache's file grows.
    pub(super) growing: Mutex<()>,
    /// Bytes at the beginning of the device that stay in the cache.
    pub(super) pinned_bytes: u64,
    pub(super) spare_slots: usize,
    /// Set while writes to storage are not synced.
    pub(super) below_is_ahead: AtomicBool,
    /// Set while copies in the cache are not synced.
    pub(super) fast_is_ahead: AtomicBool,
    /// Rings when the destaging thread may have work.
    pub(super) bell: Bell,
    pub(super) has_failed: AtomicBool,
    pub(super) is_closed: AtomicBool,
    pub(super) errors: AtomicU32,
    /// Copies dropped at opening.
    pub(super) cut_off: u64,
}

impl std::fmt::Debug for BackDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (below, fast) = (self.below.path(), self.fast.path());
        f.debug_struct("BackDevice")
            .field("below", &below)
            .field("fast", &fast)
            .finish_non_exhaustive()
    }
}

/// The locked tables. Dropping the guard notifies a thread that waits for a slot if one arrived.
pub(crate) struct CacheGuard<'c> {
    cache: MutexGuard<'c, Cache>,
    arrival: &'c Condvar,
}

impl Deref for CacheGuard<'_> {
    type Target = Cache;

    fn deref(&self) -> &Cache {
        &self.cache
    }
}

impl DerefMut for CacheGuard<'_> {
    fn deref_mut(&mut self) -> &mut Cache {
        &mut self.cache
    }
}

impl Drop for CacheGuard<'_> {
    fn drop(&mut self) {
        let tables = &self.cache.tables;
        if tables.awaited.is_some_and(|seen| seen != tables.arrivals) {
            self.arrival.notify_all();
        }
    }
}

impl BackDevice {
    /// Returns the tier's counters.
    pub fn counts(&self) -> TierCounts {
        TierCounts {
            errors: u64::from(self.errors.load(Ordering::Relaxed)),
            cut_off: self.cut_off,
            is_off: self.has_failed.load(Ordering::Acquire),
            ..self.cache().counts()
        }
    }

    /// Returns `true` if a write waits for a slot that others read or write.
    pub fn awaits_slot(&self) -> bool {
        self.cache().tables.awaited.is_some()
    }

    /// Records requests from now on, in the order in which the policy gets them.
    pub fn record(&self) {
        self.cache().record();
    }

    /// Takes the recorded requests.
    pub fn recorded(&self) -> Vec<(PageId, Mark)> {
        self.cache().recorded()
    }

    /// Verifies the tables and the policy. No read or write may be in progress.
    ///
    /// # Errors
    /// A description of the inconsistency.
    pub fn check(&self) -> Result<(), String> {
        self.cache().check()
    }

    pub(crate) fn cache(&self) -> CacheGuard<'_> {
        // A thread that panicked between two steps of the tables is a bug in them.
        let cache = self.cache.lock().past_poison();
        CacheGuard { cache, arrival: &self.arrival }
    }

    /// Waits for a pending read or write of a slot to end, unless one has ended since the count was
    /// `seen`. Returns `true` if another look at the slots is worth it; `false` if none is pending.
    pub(super) fn await_arrival(&self, seen: u64) -> bool {
        let mut cache = self.cache.lock().past_poison();
        if cache.tables.arrivals == seen && cache.tables.is_under_way() {
            cache.tables.awaited = Some(seen);
            let waited = self.arrival.wait_timeout(cache, LOOK_AGAIN);
            cache = waited.past_poison().0;
        }
        cache.tables.awaited = None;
        cache.tables.arrivals != seen || cache.tables.is_under_way()
    }

    pub(super) fn path_below(&self) -> PathBuf {
        self.below.path().to_path_buf()
    }

    /// Returns `true` if a part of a request at `range` can be in a slot.
    pub(super) fn has_slot(&self, range: &Range<u64>) -> bool {
        let length = range.end - range.start;
        let slots = &self.layout.slots;
        let (unit, block) = (u64::from(slots.unit.max(1)), self.fast.alignment().offset);
        range.start >= self.pinned_bytes
            && length > 0
            && length <= u64::from(slots.slot_bytes)
            && range.start.is_multiple_of(unit)
            && length.is_multiple_of(block)
    }

    /// Counts an error of the cache's device.
    pub(super) fn judge<T>(&self, result: Result<T, DeviceError>) -> Option<T> {
        if result.is_err() {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
        result.ok()
    }

    /// Makes the cache's file long enough for `slot`.
    pub(super) fn reach(&self, slot: u32) -> Result<(), DeviceError> {
        let bytes = u64::from(self.layout.slots.slot_bytes);
        let end = self.layout.slot_offset(slot) + bytes;
        if end <= self.fast.length() {
            return Ok(());
        }
        let _growing = self.growing.lock().past_poison();
        if end <= self.fast.length() {
            return Ok(());
        }
        let grown = grow_for_slot(&*self.fast, bytes, end, self.layout.end());
        self.fast_is_ahead.store(true, Ordering::Release);
        grown
    }

    /// Records that the file cannot grow to this slot, which was taken.
    pub(super) fn no_room_for(&self, slot: u32, error: &DeviceError) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let mut cache = self.cache();
        if error.is_disk_full() {
            let there = self.fast.length().saturating_sub(self.layout.slots_begin());
            let slots = there / u64::from(self.layout.slots.slot_bytes);
            let slots = u32::try_from(slots).unwrap_or(u32::MAX);
            if cache.limit_slots(slots) {
                tracing::warn!(%error, slots, "the second tier is smaller than it was to be");
            }
        }
        cache.give_slot(slot);
    }
}

impl Device for BackDevice {
    fn path(&self) -> &Path {
        self.below.path()
    }

    fn length(&self) -> u64 {
        self.below.length()
    }

    fn alignment(&self) -> Alignment {
        self.below.alignment()
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.read_both(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let parts = [std::io::IoSlice::new(bytes)];
        let mut requests = [WriteRequest::new(offset, &parts)];
        self.write_requests(&mut requests);
        let [request] = requests;
        request.result
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_, '_>]) {
        self.read_requests(requests);
    }

    fn write_batch(&self, requests: &mut [WriteRequest<'_, '_>]) {
        self.write_requests(requests);
    }

    fn sync(&self) -> Result<(), DeviceError> {
        self.commit()
    }

    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        let grown = self.below.grow(length);
        self.below_is_ahead.store(true, Ordering::Release);
        grown
    }

    fn append(&self, bytes: &[u8]) -> Result<(), DeviceError> {
        self.change_storage(self.below.length()..u64::MAX, || self.below.append(bytes))
    }

    fn shrink(&self, length: u64) -> Result<(), DeviceError> {
        let length = length.max(self.pinned_bytes);
        self.change_storage(length..u64::MAX, || self.below.shrink(length))
    }

    fn distrust(&self, range: Range<u64>) -> bool {
        self.cache().distrust(range)
    }

    fn discard(&self, ranges: &[Range<u64>]) {
        let mut cache = self.cache();
        ranges.iter().for_each(|range| cache.discard(range));
    }

    fn superseded_max(&self) -> u64 {
        let slot = u64::from(self.layout.slots.slot_bytes);
        (self.spare_slots as u64 / 2 * slot).max(SUPERSEDED_LEAST)
    }

    fn is_displaced(&self) -> bool {
        self.below.is_displaced() || self.fast.is_displaced()
    }

    fn displaced(&self) -> Option<PathBuf> {
        self.below.displaced().or_else(|| self.fast.displaced())
    }

    fn release(&self) {
        if !self.is_closed.swap(true, Ordering::AcqRel) {
            self.write_waiting(true);
            if let Err(error) = self.close_as(State::Closed) {
                let path = self.fast.path().display().to_string();
                tracing::warn!(%error, path, "the second tier cannot be closed");
            }
            self.fast.release();
        }
        self.below.release();
    }
}
