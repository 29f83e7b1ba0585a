//! A device with a second tier: a slow one below, and a cache of its pages on a fast one.
//!
//! - **Write-through.** Each write goes to storage, and completes when storage has it; the cache
//!   has copies. So the cache may be lost, wiped or exchanged at any time: the storage below is
//!   complete without it.
//! - **A copy is verified** by its checksum each time it is read. A page whose copy has a wrong
//!   checksum is read from storage.
//! - **Warm restart.** A tier that is closed keeps its directory, for the same storage contents and
//!   no others (`Identity`). After a crash it is empty.
//! - **A failing cache** is bypassed: after some errors in a row it is out of use, with a warning,
//!   until the store is opened again.
//!
//! The mutex is held for the tables only, never during I/O.

use std::io::IoSliceMut;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, MutexGuard};

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;
use millpond_base::{Mark, PageId};
use millpond_device::{Alignment, Device, DeviceError, ReadRequest, WriteRequest};
use millpond_policies::contract::Shape;
use millpond_policies::policy_host::ErasedPolicyHost;
use xxhash_rust::xxh3::xxh3_64;

use crate::cache::{Cache, PageLocation};
use crate::counts::TierCounts;
pub use crate::directory::Identity;
use crate::directory::{Layout, load, mark_closed, mark_open};
use crate::error::TierError;
use crate::frames::frames_of;
use crate::options::TierOptions;
use crate::parts::{FromCache, ToCache, grow_for_slot, read_below, write_slots};
use crate::waiting::{NewCopy, Waiting, WaitingCopy};
use crate::write_back::BackTier;

/// Errors in a row after which a cache is out of use.
const ERRORS_MAX: u32 = 16;

type IdentityOf = Box<dyn Fn(&dyn Device) -> Option<Identity> + Send + Sync>;

/// A device, and a cache of its pages.
pub struct SecondTier {
    below: Arc<dyn Device>,
    fast: Arc<dyn Device>,
    layout: Layout,
    cache: Mutex<Cache>,
    identity: IdentityOf,
    waiting: Waiting,
    /// Held while the cache's file grows.
    growing: Mutex<()>,
    is_off: AtomicBool,
    is_closed: AtomicBool,
    errors_in_a_row: AtomicU32,
    errors: AtomicU32,
}

impl std::fmt::Debug for SecondTier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (below, fast) = (self.below.path(), self.fast.path());
        f.debug_struct("SecondTier")
            .field("below", &below)
            .field("fast", &fast)
            .finish_non_exhaustive()
    }
}

impl SecondTier {
    /// Opens a tier above `below`. Its cache is on `fast`, which is empty or another tier's.
    /// `identity` distinguishes the present contents of `below` from those at another time. It
    /// returns `None` if the cache must not be kept.
    ///
    /// If `fast` fails, the tier is out of use from the beginning.
    ///
    /// # Errors
    /// The cache has no room, or `fast` holds something else.
    pub fn open(
        below: Arc<dyn Device>,
        fast: Arc<dyn Device>,
        options: &TierOptions,
        identity: impl Fn(&dyn Device) -> Option<Identity> + Send + Sync + 'static,
        policy: impl FnOnce(&Shape) -> Box<dyn ErasedPolicyHost>,
    ) -> Result<SecondTier, TierError> {
        options.frames()?;
        let layout = options.layout();
        match BackTier::is_pair(&*below, &*fast) {
            // A failing cache is bypassed, and its device is asked again below.
            Ok(false) | Err(TierError::Device(_)) => {}
            Ok(true) => {
                let (path, store) = (fast.path().to_path_buf(), below.path().to_path_buf());
                return Err(TierError::NotItsStore { path, store });
            }
            Err(error) => return Err(error),
        }
        let loaded = load(&*fast, &layout, identity(&*below)).and_then(|entries| {
            mark_open(&*fast, &layout)?;
            Ok(entries)
        });
        let mut cache = Cache::new(&layout, options.seed, policy);
        let is_off = match loaded {
            Ok(entries) => {
                cache.restore(entries);
                false
            }
            Err(TierError::Device(error)) => {
                tracing::warn!(%error, "the second tier fails: the store is opened without it");
                true
            }
            Err(error) => return Err(error),
        };
        Ok(SecondTier {
            below,
            fast,
            layout,
            cache: Mutex::new(cache),
            identity: Box::new(identity),
            waiting: Waiting::default(),
            growing: Mutex::default(),
            is_off: AtomicBool::new(is_off),
            is_closed: AtomicBool::new(false),
            errors_in_a_row: AtomicU32::new(0),
            errors: AtomicU32::new(0),
        })
    }

    /// Returns the tier's counters.
    pub fn counts(&self) -> TierCounts {
        TierCounts {
            errors: u64::from(self.errors.load(Ordering::Relaxed)),
            is_off: self.is_off(),
            ..self.cache().counts()
        }
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

    pub(super) fn cache(&self) -> MutexGuard<'_, Cache> {
        // A thread that panicked between two steps of the tables is a bug in them. Copies are
        // verified when they are read.
        self.cache.lock().past_poison()
    }

    pub(super) fn is_off(&self) -> bool {
        self.is_off.load(Ordering::Acquire)
    }

    /// Returns `true` if a part of a request at `range` can have a copy.
    pub(super) fn has_slot(&self, range: &Range<u64>) -> bool {
        let length = range.end - range.start;
        let (unit, block) = (u64::from(self.layout.unit.max(1)), self.fast.alignment().offset);
        length > 0
            && length <= u64::from(self.layout.slot_bytes)
            && range.start.is_multiple_of(unit)
            && length.is_multiple_of(block)
            && u64::from(self.layout.slot_bytes).is_multiple_of(block)
    }

    /// Records a success or a failure of the cache's device.
    fn judge<T>(&self, result: Result<T, DeviceError>) -> Option<T> {
        let error = match result {
            Ok(value) => {
                if self.errors_in_a_row.load(Ordering::Relaxed) > 0 {
                    self.errors_in_a_row.store(0, Ordering::Relaxed);
                }
                return Some(value);
            }
            Err(error) => error,
        };
        self.errors.fetch_add(1, Ordering::Relaxed);
        if self.errors_in_a_row.fetch_add(1, Ordering::Relaxed) + 1 == ERRORS_MAX {
            self.is_off.store(true, Ordering::Release);
            self.cache().clear();
            let path = self.fast.path().display();
            tracing::warn!(%path, %error, "the second tier failed too often: it is out of use");
        }
        None
    }

    /// Makes the cache's file long enough for `slot`.
    fn make_room(&self, slot: u32) -> Result<(), DeviceError> {
        let end = self.layout.slot_offset(slot) + u64::from(self.layout.slot_bytes);
        if end <= self.fast.length() {
            return Ok(());
        }
        let _growing = self.growing.lock().past_poison();
        if end <= self.fast.length() {
            return Ok(());
        }
        let bytes = u64::from(self.layout.slot_bytes);
        grow_for_slot(&*self.fast, bytes, end, self.layout.end())
    }

    /// Limits the cache to the slots that the file has, since it cannot grow.
    fn take_what_there_is(&self, error: &DeviceError) {
        let there = self.fast.length().saturating_sub(self.layout.slots_begin());
        let slots = there / u64::from(self.layout.slot_bytes);
        let slots = u32::try_from(slots).unwrap_or(u32::MAX);
        if self.cache().limit_slots(slots) {
            tracing::warn!(%error, slots, "the second tier is smaller than it was to be");
        }
    }

    /// Writes copies to the cache, or queues them; `bytes_of` returns the bytes of a part of a
    /// request.
    pub(super) fn fill<'b>(
        &self,
        fills: Vec<ToCache>,
        bytes_of: impl Fn(&ToCache) -> Option<&'b [u8]>,
    ) {
        if fills.is_empty() {
            return;
        }
        if self.waiting.is_on() {
            if self.waiting.push(fills, bytes_of) {
                self.write_waiting(true);
            }
            return;
        }
        let copy = |to: ToCache| NewCopy { bytes: bytes_of(&to), range: to.range, fill: to.fill };
        self.write_copies(fills.into_iter().map(copy).collect());
    }

    /// Queues copies of pages read from now on, until [`SecondTier::write_waiting`] is called.
    pub(super) fn let_copies_wait(&self) {
        self.waiting.begin(self.layout.slots - frames_of(self.layout.slots));
    }

    /// Writes the waiting copies if there are many; any number if `even_few`.
    pub(super) fn write_waiting(&self, even_few: bool) {
        let waiting = self.waiting.take(even_few);
        self.write_copies(waiting.iter().map(WaitingCopy::as_new).collect());
    }

    /// Returns `true` if the cache's file has room for a slot; extends the file if it can.
    fn has_room(&self, slot: u32) -> bool {
        match self.make_room(slot) {
            // If there was room already, this is not a success of the device.
            Ok(()) => true,
            Err(error) if error.is_disk_full() => {
                self.take_what_there_is(&error);
                false
            }
            failed => self.judge(failed).is_some(),
        }
    }

    fn write_copies(&self, mut copies: Vec<NewCopy<'_>>) {
        if copies.is_empty() {
            return;
        }
        copies.sort_unstable_by_key(|copy| copy.fill.slot);
        for copy in &mut copies {
            copy.bytes = copy.bytes.filter(|_| self.has_room(copy.fill.slot));
        }
        let there: Vec<(u32, &[u8])> =
            copies.iter().filter_map(|copy| Some((copy.fill.slot, copy.bytes?))).collect();
        let offset_of = |slot| self.layout.slot_offset(slot);
        let runs = write_slots(&*self.fast, self.layout.slot_bytes, offset_of, &there);
        let judge = |(count, result)| std::iter::repeat_n(self.judge(result).is_some(), count);
        let mut written = runs.into_iter().flat_map(judge);
        let mut done = Vec::with_capacity(copies.len());
        for NewCopy { range, fill, bytes } in copies {
            let is_written = |_: &&[u8]| written.next() == Some(true) && !self.is_off();
            done.push((fill, range, bytes.filter(is_written).map(xxh3_64)));
        }
        let mut cache = self.cache();
        for (fill, range, checksum) in done {
            cache.filled(fill, range, checksum);
        }
    }

    /// Asks for the pages of `requests`, and reads the parts that the cache has. Returns, for each
    /// part, whether it has to be read from storage, and whether it is then kept.
    fn look_up(
        &self,
        requests: &[ReadRequest<'_, '_>],
    ) -> (Vec<Vec<bool>>, Vec<FromCache>, Vec<ToCache>) {
        let (mut found, mut fills) = (Vec::new(), Vec::new());
        let mut cache = self.cache();
        let look = |(at, request): (usize, &ReadRequest<'_, '_>)| {
            let mut offset = request.offset;
            let lengths: Vec<u64> = request.parts.iter().map(|part| part.len() as u64).collect();
            let mut is_below = vec![true; lengths.len()];
            for ((part, length), tag) in lengths.into_iter().enumerate().zip(request.tags) {
                let range = offset..offset + length;
                offset = range.end;
                if !self.has_slot(&range) {
                    continue;
                }
                match cache.read(*tag, range.clone()) {
                    PageLocation::Cache(copy) => {
                        if let Some(is_below) = is_below.get_mut(part) {
                            *is_below = false;
                        }
                        found.push(FromCache { request: at, part, found: copy });
                    }
                    PageLocation::Storage(Some(fill)) => {
                        fills.push(ToCache { request: at, part, range, fill });
                    }
                    PageLocation::Storage(None) => {}
                }
            }
            is_below
        };
        let is_below = requests.iter().enumerate().map(look).collect();
        (is_below, found, fills)
    }

    /// Reads copies from the cache; returns the parts that could not be read from it.
    pub(super) fn read_copies(
        &self,
        requests: &mut [ReadRequest<'_, '_>],
        found: Vec<FromCache>,
    ) -> Vec<(usize, usize)> {
        let mut copies = Vec::with_capacity(found.len());
        let mut wanted = found.iter().peekable();
        for (at, request) in requests.iter_mut().enumerate() {
            for (part, bytes) in request.parts.iter_mut().enumerate() {
                if let Some(from) = wanted.next_if(|from| (from.request, from.part) == (at, part)) {
                    let offset = self.layout.slot_offset(from.found.slot);
                    copies.push((offset, [IoSliceMut::new(bytes)]));
                }
            }
        }
        let mut reads: Vec<ReadRequest<'_, '_>> = (copies.iter_mut())
            .map(|(offset, bytes)| ReadRequest::new(*offset, &mut bytes[..]))
            .collect();
        self.fast.read_batch(&mut reads);
        let results: Vec<_> =
            reads.into_iter().map(|read| self.judge(read.result).is_some()).collect();
        let sound: Vec<bool> = (copies.iter().zip(&found).zip(results))
            .map(|(((_, [bytes]), from), was_read)| {
                let is_it = xxh3_64(bytes) == from.found.checksum;
                was_read && is_it
            })
            .collect();
        drop(copies);
        let mut cache = self.cache();
        let mut lost = Vec::new();
        for (from, is_sound) in found.into_iter().zip(sound) {
            cache.unpin(from.found, is_sound);
            if !is_sound {
                lost.push((from.request, from.part));
            }
        }
        lost
    }
}

impl Device for SecondTier {
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
        self.below.read(offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let range = offset..offset.saturating_add(bytes.len() as u64);
        self.cache().overwrite(range.clone());
        let written = self.below.write(offset, bytes);
        self.cache().overwrite(range);
        written
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_, '_>]) {
        if self.is_off() || requests.iter().all(|request| request.tags.is_empty()) {
            return self.below.read_batch(requests);
        }
        let (mut is_below, found, fills) = self.look_up(requests);
        if !found.is_empty() {
            let lost = self.read_copies(requests, found);
            for (request, part) in lost {
                if let Some(place) = is_below.get_mut(request).and_then(|all| all.get_mut(part)) {
                    *place = true;
                }
            }
        }
        read_below(&*self.below, requests, &is_below);
        let bytes_of = |to: &ToCache| {
            let request = requests.get(to.request).filter(|request| request.result.is_ok())?;
            request.parts.get(to.part).map(|part| &part[..])
        };
        self.fill(fills, bytes_of);
    }

    fn write_batch(&self, requests: &mut [WriteRequest<'_, '_>]) {
        if self.is_off() {
            return self.below.write_batch(requests);
        }
        let (mut fills, mut writes, mut others) = (Vec::new(), Vec::new(), Vec::new());
        {
            let mut cache = self.cache();
            for (at, request) in requests.iter().enumerate() {
                let mut offset = request.offset;
                let tags = request.tags.iter().map(Some).chain(std::iter::repeat(None));
                for ((part, bytes), tag) in request.parts.iter().enumerate().zip(tags) {
                    let range = offset..offset + bytes.len() as u64;
                    offset = range.end;
                    match tag.filter(|_| self.has_slot(&range)) {
                        None => {
                            cache.overwrite(range.clone());
                            others.push(range);
                        }
                        Some(tag) => {
                            let (write, fill) = cache.write(*tag, range.clone());
                            writes.push(write);
                            let to = |fill| ToCache { request: at, part, range, fill };
                            fills.extend(fill.map(to));
                        }
                    }
                }
            }
        }
        self.below.write_batch(requests);
        {
            let mut cache = self.cache();
            writes.iter().for_each(|write| cache.wrote(write));
            others.into_iter().for_each(|range| cache.overwrite(range));
        }
        let bytes_of = |to: &ToCache| {
            let request = requests.get(to.request).filter(|request| request.result.is_ok())?;
            request.parts.get(to.part).map(|part| &part[..])
        };
        self.fill(fills, bytes_of);
    }

    fn sync(&self) -> Result<(), DeviceError> {
        self.below.sync()
    }

    fn sync_ranges(&self, ranges: &[Range<u64>]) -> Result<(), DeviceError> {
        self.below.sync_ranges(ranges)
    }

    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        self.below.grow(length)
    }

    fn append(&self, bytes: &[u8]) -> Result<(), DeviceError> {
        self.cache().overwrite(self.below.length()..u64::MAX);
        self.below.append(bytes)
    }

    fn shrink(&self, length: u64) -> Result<(), DeviceError> {
        self.cache().overwrite(length..u64::MAX);
        self.below.shrink(length)
    }

    fn distrust(&self, range: Range<u64>) -> bool {
        self.cache().distrust(range)
    }

    fn is_displaced(&self) -> bool {
        self.below.is_displaced()
    }

    fn release(&self) {
        if !self.is_closed.swap(true, Ordering::AcqRel) {
            self.write_waiting(true);
            let identity = (self.identity)(&*self.below).filter(|_| !self.is_off());
            if let Some(identity) = identity {
                let entries = self.cache().entries();
                if let Err(error) = mark_closed(&*self.fast, &self.layout, &entries, identity) {
                    tracing::warn!(%error, "the second tier is not kept: it will start empty");
                }
            }
            self.fast.release();
        }
        self.below.release();
    }
}
