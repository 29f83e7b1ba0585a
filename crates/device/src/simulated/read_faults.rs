//! A device that reads wrongly: fault injection for the read path.
//!
//! It is in front of another device and passes all writes on, unchanged. It spoils some of its
//! reads, page by page, chosen by its seed: they fail, end too early, or return bytes other than
//! those written. The device below is never damaged, so [`ReadFaultDevice::heal`] gives a sound
//! device again. Any damage found then was written back by its user.
//!
//! - **The spoilt reads** depend only on the seed, the page, and the number of reads of that page
//!   since the faults were set. Threads that read other pages in another order change nothing.
//! - **A request of several pages** is judged page by page. A failed read makes its request fail,
//!   and the rest of the request is not read.
//! - **A fault that persists** spoils each later read of its page in the same way, until the page
//!   is written (a drive remaps a bad sector then) or the device healed.
//! - **The ledger** has an entry for each spoilt read: the page, the number of the read, the fault,
//!   and a flag if any returned byte was wrong.
//!
//! Former versions of pages, which [`ReadFault::OlderVersion`] needs, are kept from the creation of
//! the device on: a few of each page. A reader sees such a version as a lost write.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use millpond_base::PageId;
use millpond_base::PastPoison;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::device::{Alignment, Device};
use crate::error::{DeviceError, Errno, Operation};
use crate::simulated::crash::SECTOR;

/// Maximum number of older versions of a page that are kept.
const VERSIONS_MAX: usize = 6;
/// Bytes of the page that the ledger keeps for each misread.
const HEAD_BYTES: usize = 32;

/// A way in which a read goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum ReadFault {
    /// The device reports `EIO`.
    Error,
    /// The device returns a part of the bytes, and reports that there were no more.
    Short,
    /// One to eight bits come back flipped.
    BitFlips,
    /// One or more sectors come back as zeros.
    ZeroedSectors,
    /// The bytes of another page come back.
    OtherPage,
    /// An older version of the page comes back, the last one or one before it. A page that was
    /// never overwritten is read correctly.
    OlderVersion,
}

impl ReadFault {
    /// All kinds of faults.
    pub const ALL: [ReadFault; 6] = [
        ReadFault::Error,
        ReadFault::Short,
        ReadFault::BitFlips,
        ReadFault::ZeroedSectors,
        ReadFault::OtherPage,
        ReadFault::OlderVersion,
    ];
}

/// Selection of the reads that go wrong, and of their faults.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReadFaults {
    /// Share of the reads of a page that go wrong, 0 to 1.
    pub share: f64,
    /// Kinds of faults, with equal probability. If empty, no read goes wrong.
    pub kinds: Vec<ReadFault>,
    /// Pages whose reads may go wrong; `None` for all.
    pub pages: Option<BTreeSet<PageId>>,
    /// `true` if a damaged page stays damaged until it is written.
    pub persists: bool,
}

/// A read that was spoilt.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Misread {
    /// The page: the offset divided by the device's `page_bytes`.
    pub page: PageId,
    /// Number of this read among the page's reads since the faults were set, from 1 on.
    pub read: u64,
    /// The fault.
    pub fault: ReadFault,
    /// `true` if a returned byte differs from the stored one. Never set for a read that failed.
    pub changed: bool,
    /// The first bytes of the page as stored: its header, if it is a page of a store.
    pub head: [u8; HEAD_BYTES],
    /// For an older version that differs: its bytes, and the stored ones.
    pub versions: Option<Box<(Vec<u8>, Vec<u8>)>>,
}

#[derive(Debug, Default)]
struct State {
    faults: ReadFaults,
    seed: u64,
    /// Number of reads of each page since the faults were set.
    reads: HashMap<u64, u64>,
    /// Pages that stay damaged, each with its fault and the salt of its random choices.
    damaged: BTreeMap<u64, (ReadFault, u64)>,
    /// Former contents of each page, the oldest first.
    versions: HashMap<u64, Vec<Vec<u8>>>,
    ledger: Vec<Misread>,
}

/// A device that reads wrongly.
pub struct ReadFaultDevice {
    inner: Arc<dyn Device>,
    page_bytes: u64,
    state: Mutex<State>,
}

impl std::fmt::Debug for ReadFaultDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadFaultDevice").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl ReadFaultDevice {
    /// Creates a device that reads like `inner`, until faults are set. Reads are spoilt in pages of
    /// `page_bytes`, at least a sector of 512 bytes.
    pub fn new(inner: Arc<dyn Device>, page_bytes: usize) -> ReadFaultDevice {
        let page_bytes = page_bytes.max(SECTOR) as u64;
        ReadFaultDevice { inner, page_bytes, state: Mutex::default() }
    }

    /// Creates a device over `inner`, which holds the contents after a crash. The new device keeps
    /// the older versions of pages, and starts without faults and with an empty ledger.
    pub fn succeeded_by(&self, inner: Arc<dyn Device>) -> ReadFaultDevice {
        let versions = self.state().versions.clone();
        let state = Mutex::new(State { versions, ..State::default() });
        ReadFaultDevice { inner, page_bytes: self.page_bytes, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().past_poison()
    }

    /// Sets new faults instead of the old ones; `seed` decides where they strike. Damaged pages
    /// stay damaged.
    pub fn set_faults(&self, faults: ReadFaults, seed: u64) {
        let mut state = self.state();
        (state.faults, state.seed) = (faults, seed);
        state.reads.clear();
    }

    /// Damages `page` until it is written or the device healed.
    pub fn damage(&self, page: PageId, fault: ReadFault, seed: u64) {
        self.state().damaged.insert(page.0, (fault, seed));
    }

    /// Ends all faults: the device reads the stored bytes. The ledger stays.
    pub fn heal(&self) {
        let mut state = self.state();
        state.faults = ReadFaults::default();
        state.damaged.clear();
    }

    /// Returns the spoilt reads so far, in their order.
    pub fn ledger(&self) -> Vec<Misread> {
        self.state().ledger.clone()
    }

    /// Returns the number of spoilt reads so far.
    pub fn struck(&self) -> usize {
        self.state().ledger.len()
    }

    fn read_page(&self, page: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.read(page * self.page_bytes, bytes)
    }

    /// Draws the fault of this read of a page, if any.
    fn draw(&self, page: u64) -> Option<Struck> {
        let mut state = self.state();
        let read = state.reads.entry(page).or_default();
        *read += 1;
        let read = *read;
        let damaged = state.damaged.get(&page).copied();
        let (fault, salt) = damaged.or_else(|| state.chance(page, read))?;
        if damaged.is_none() && state.faults.persists {
            state.damaged.insert(page, (fault, salt));
        }
        Some(Struck { page, read, fault, salt })
    }

    /// Spoils `bytes`, which were read from the place `part` of the page.
    fn spoil(
        &self,
        struck: &Struck,
        part: &Range<usize>,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        let mut random = fastrand::Rng::with_seed(struck.salt);
        let mut other = vec![0; self.page_bytes as usize];
        let before = bytes.to_vec();
        let mut versions = None;
        match struck.fault {
            ReadFault::BitFlips => {
                for _ in 0..random.usize(1..=8) {
                    let (at, bit) = (random.usize(0..other.len()), random.u8(0..8));
                    if part.contains(&at) {
                        bytes[at - part.start] ^= 1 << bit;
                    }
                }
            }
            ReadFault::ZeroedSectors => {
                let sectors = other.len() / SECTOR;
                let first = random.usize(0..sectors);
                let end = random.usize(first + 1..=sectors);
                let zeroed = part.start.max(first * SECTOR)..part.end.min(end * SECTOR);
                if !zeroed.is_empty() {
                    bytes[zeroed.start - part.start..zeroed.end - part.start].fill(0);
                }
            }
            ReadFault::OtherPage => {
                let pages = (self.inner.length() / self.page_bytes).max(1);
                self.read_page(random.u64(0..pages), &mut other)?;
                bytes.copy_from_slice(&other[part.clone()]);
            }
            ReadFault::OlderVersion => {
                if let Some(older) = self.older(struck.page, &mut random) {
                    bytes.copy_from_slice(&older[part.clone()]);
                    self.read_page(struck.page, &mut other)?;
                    versions = (older != other).then(|| Box::new((older, other)));
                }
            }
            ReadFault::Error | ReadFault::Short => {}
        }
        self.note(struck, *bytes != *before, versions);
        Ok(())
    }

    fn older(&self, page: u64, random: &mut fastrand::Rng) -> Option<Vec<u8>> {
        let state = self.state();
        let versions = state.versions.get(&page).filter(|versions| !versions.is_empty())?;
        Some(versions[random.usize(0..versions.len())].clone())
    }

    fn note(&self, struck: &Struck, changed: bool, versions: Option<Box<(Vec<u8>, Vec<u8>)>>) {
        let Struck { page, read, fault, .. } = *struck;
        let (page_id, mut head, mut whole) =
            (PageId(page), [0; HEAD_BYTES], vec![0; self.page_bytes as usize]);
        if self.read_page(page, &mut whole).is_ok() {
            head.copy_from_slice(&whole[..HEAD_BYTES]);
        }
        let misread = Misread { page: page_id, read, fault, changed, head, versions };
        self.state().ledger.push(misread);
    }

    /// Fails a read of `length` bytes at `offset` whose part `bytes`, from `at` on, is spoilt.
    fn fail(&self, struck: &Struck, offset: u64, length: u64, bytes: &mut [u8]) -> DeviceError {
        self.note(struck, false, None);
        let path = self.path().to_path_buf();
        if struck.fault == ReadFault::Short {
            // Number of sectors that arrived; the buffer behind them is undefined.
            let came = (struck.salt as usize % (bytes.len() / SECTOR + 1)) * SECTOR;
            bytes[came..].fill(0xA5);
            let device_length = offset + came as u64;
            return DeviceError::PastEnd { path, offset, length, device_length };
        }
        bytes.fill(0xA5);
        DeviceError::Io { operation: Operation::Read, path, offset, length, errno: Errno::IO }
    }

    /// Keeps the present contents of the pages of a write.
    fn keep(&self, offset: u64, length: u64) {
        let pages = offset / self.page_bytes..(offset + length).div_ceil(self.page_bytes);
        for page in pages {
            let mut old = vec![0; self.page_bytes as usize];
            let mut state = self.state();
            state.damaged.remove(&page);
            if self.read_page(page, &mut old).is_err() || old.iter().all(|byte| *byte == 0) {
                continue;
            }
            let versions = state.versions.entry(page).or_default();
            if versions.last() != Some(&old) {
                versions.push(old);
            }
            if versions.len() > VERSIONS_MAX {
                versions.remove(0);
            }
        }
    }
}

/// A read that is to be spoilt.
struct Struck {
    page: u64,
    read: u64,
    fault: ReadFault,
    salt: u64,
}

impl State {
    fn chance(&self, page: u64, read: u64) -> Option<(ReadFault, u64)> {
        let faults = &self.faults;
        if faults.share <= 0.0 || faults.kinds.is_empty() {
            return None;
        }
        if faults.pages.as_ref().is_some_and(|pages| !pages.contains(&PageId(page))) {
            return None;
        }
        let place = [page.to_le_bytes(), read.to_le_bytes()].concat();
        let mut random = fastrand::Rng::with_seed(xxh3_64_with_seed(&place, self.seed));
        let strikes = random.f64() < faults.share;
        strikes.then(|| (faults.kinds[random.usize(0..faults.kinds.len())], random.u64(..)))
    }
}

impl Device for ReadFaultDevice {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn length(&self) -> u64 {
        self.inner.length()
    }

    fn alignment(&self) -> Alignment {
        self.inner.alignment()
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.inner.read(offset, bytes)?;
        let (length, end) = (bytes.len() as u64, offset + bytes.len() as u64);
        for page in offset / self.page_bytes..end.div_ceil(self.page_bytes) {
            let Some(struck) = self.draw(page) else { continue };
            let begin = page * self.page_bytes;
            let (from, to) = (offset.max(begin), end.min(begin + self.page_bytes));
            if matches!(struck.fault, ReadFault::Error | ReadFault::Short) {
                let rest = &mut bytes[(from - offset) as usize..];
                return Err(self.fail(&struck, offset, length, rest));
            }
            let here = &mut bytes[(from - offset) as usize..(to - offset) as usize];
            self.spoil(&struck, &((from - begin) as usize..(to - begin) as usize), here)?;
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.keep(offset, bytes.len() as u64);
        self.inner.write(offset, bytes)
    }

    fn sync(&self) -> Result<(), DeviceError> {
        self.inner.sync()
    }

    fn sync_ranges(&self, ranges: &[Range<u64>]) -> Result<(), DeviceError> {
        self.inner.sync_ranges(ranges)
    }

    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        self.inner.grow(length)
    }

    fn shrink(&self, length: u64) -> Result<(), DeviceError> {
        self.inner.shrink(length)
    }

    fn is_displaced(&self) -> bool {
        self.inner.is_displaced()
    }

    fn release(&self) {
        self.inner.release();
    }
}
