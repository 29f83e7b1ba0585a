//! A device that fails: by chance from a seed, or exactly where a test plants a fault.
//!
//! It wraps another device and passes on every call that it does not spoil. With
//! [`FaultyDevice::with_crashes`] it also remembers the synced bytes, and [`FaultyDevice::crash`]
//! draws the contents that a power failure at this moment may leave.
//!
//! Several of them can share one [`PowerSupply`](crate::simulated::power::PowerSupply), which then
//! counts their operations and fails for all of them at once; see there.
//!
//! One thread and one seed reproduce the same faults. With more threads the order of their calls
//! decides which of them a fault hits.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::buffer::AlignedBuffer;
use crate::device::{Alignment, Device};
use crate::error::{DeviceError, Errno, Operation};
use crate::memory::MemoryDevice;
use crate::simulated::crash::{Journal, Lean, SECTOR};
use crate::simulated::pause;
use crate::simulated::plug::{DeviceOperation, Fault, Plug, Turn};
use millpond_base::PastPoison;

/// Frequency of each fault, as a share of the operations (0 to 1).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Faults {
    /// Reads of a page that fail with `EIO`.
    pub read_error: f64,
    /// Writes of a page that fail with `EIO`; any number of first sectors may have landed.
    pub write_error: f64,
    /// Syncs that fail with `EIO`. They make nothing durable, and their writes become durable only
    /// if they are repeated.
    pub sync_error: f64,
    /// Writes of a page of which only the first sectors land, acknowledged.
    pub torn_write: f64,
    /// Writes of a page of which nothing lands, acknowledged.
    pub lost_write: f64,
    /// Reads of a page in which one bit comes back wrong.
    pub bit_flip: f64,
    /// Maximum added latency of each operation, in microseconds.
    pub latency_us_max: u32,
}

/// A fault at one place, until healed or, with `once`, until it has struck once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Planted {
    FailRead,
    FailWrite,
    /// Only the first sectors land; once.
    TearWrite(usize),
    /// Nothing lands; once.
    LoseWrite,
}

#[derive(Debug)]
struct State {
    random: fastrand::Rng,
    faults: Faults,
    planted: Vec<(u64, Planted)>,
    fail_next_sync: bool,
    /// Bytes by which the device may still grow.
    room: Option<u64>,
    /// Set if writes find no room either, as on thinly provisioned storage.
    is_full: bool,
    struck: u64,
    journal: Option<Journal>,
}

/// A device that fails.
pub struct FaultyDevice {
    inner: Arc<dyn Device>,
    state: Mutex<State>,
    plug: Option<Plug>,
}

impl std::fmt::Debug for FaultyDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyDevice").field("path", &self.path()).finish_non_exhaustive()
    }
}

/// Outcome drawn for a write.
enum Verdict {
    /// The first bytes land, and the write is acknowledged.
    Lands(usize),
    /// The first bytes land, and the write fails.
    Fails(usize),
    /// The device is full.
    Full,
    /// The power failed; any part of this write may land if the device `had_it` by then.
    Off { had_it: bool },
}

impl FaultyDevice {
    /// Creates a device that passes every call to `inner`, until faults are set. `seed` decides the
    /// random ones.
    pub fn new(inner: Arc<dyn Device>, seed: u64) -> FaultyDevice {
        let state = State {
            random: fastrand::Rng::with_seed(seed),
            faults: Faults::default(),
            planted: Vec::new(),
            fail_next_sync: false,
            room: None,
            is_full: false,
            struck: 0,
            journal: None,
        };
        FaultyDevice { inner, state: Mutex::new(state), plug: None }
    }

    /// Creates a device over memory that can [`crash`](FaultyDevice::crash). It takes twice the
    /// memory of the device, plus that of all writes since the last sync. The contents of `inner`
    /// count as durable.
    pub fn with_crashes(inner: MemoryDevice, seed: u64) -> FaultyDevice {
        let journal = Journal::new(inner.to_bytes());
        let device = Self::new(Arc::new(inner), seed);
        device.state().journal = Some(journal);
        device
    }

    /// Like `with_crashes`, connected to a power supply.
    pub(crate) fn plugged_in(inner: MemoryDevice, seed: u64, plug: Plug) -> FaultyDevice {
        FaultyDevice { plug: Some(plug), ..Self::with_crashes(inner, seed) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().past_poison()
    }

    /// Sets random faults, from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Makes reads that touch byte `offset` fail until [`FaultyDevice::heal`].
    pub fn fail_reads_at(&self, offset: u64) {
        self.state().planted.push((offset, Planted::FailRead));
    }

    /// Makes writes that touch byte `offset` fail, with nothing landing, until
    /// [`FaultyDevice::heal`].
    pub fn fail_writes_at(&self, offset: u64) {
        self.state().planted.push((offset, Planted::FailWrite));
    }

    /// Lets only the first `sectors` of the next write that touches byte `offset` land.
    pub fn tear_next_write_at(&self, offset: u64, sectors: usize) {
        self.state().planted.push((offset, Planted::TearWrite(sectors)));
    }

    /// Acknowledges the next write that touches byte `offset`, and never lets it land.
    pub fn lose_next_write_at(&self, offset: u64) {
        self.state().planted.push((offset, Planted::LoseWrite));
    }

    /// Makes the next sync fail.
    pub fn fail_next_sync(&self) {
        self.state().fail_next_sync = true;
    }

    /// Lets the device grow by `bytes` more; it is full then.
    pub fn limit_room(&self, bytes: u64) {
        self.state().room = Some(bytes);
    }

    /// Refuses room for growth and writes until [`FaultyDevice::heal`].
    pub fn fill(&self) {
        self.state().is_full = true;
    }

    /// Ends all faults, planted and by chance. Their effects stay.
    pub fn heal(&self) {
        let mut state = self.state();
        state.faults = Faults::default();
        state.planted.clear();
        (state.fail_next_sync, state.room, state.is_full) = (false, None, false);
    }

    /// Returns the number of faults that struck so far.
    pub fn struck(&self) -> u64 {
        self.state().struck
    }

    /// Flips bit `bit` (0 to 7) of the stored byte at `offset`, for good.
    ///
    /// # Errors
    /// The device under this one fails, or has no such byte.
    pub fn flip_bit(&self, offset: u64, bit: u8) -> Result<(), DeviceError> {
        let block = self.inner.alignment().offset.max(1);
        let begin = offset - offset % block;
        let mut bytes = AlignedBuffer::new(block as usize);
        self.inner.read(begin, &mut bytes)?;
        let mask = 1 << (bit % 8);
        bytes[(offset - begin) as usize] ^= mask;
        if let Some(journal) = &mut self.state().journal {
            journal.flip(offset, mask);
        }
        self.inner.write(begin, &bytes)
    }

    /// Draws, from `seed`, the contents that a power failure at this moment may leave: everything
    /// synced, and each later write kept, lost or torn. `None` unless the device was created by
    /// [`FaultyDevice::with_crashes`].
    pub fn crash(&self, seed: u64) -> Option<MemoryDevice> {
        self.image(None, &mut fastrand::Rng::with_seed(seed))
    }

    /// Like `crash`, biased towards the outcome that `lean` describes.
    pub(crate) fn image(
        &self,
        lean: Option<Lean>,
        random: &mut fastrand::Rng,
    ) -> Option<MemoryDevice> {
        self.state().journal.as_ref().map(|journal| journal.image(lean, random))
    }

    fn broken(&self, operation: Operation, offset: u64, length: u64) -> DeviceError {
        let path = self.path().to_path_buf();
        DeviceError::Io { operation, path, offset, length, errno: Errno::IO }
    }

    /// Decides the outcome of an operation other than a read. The state must be locked, so that one
    /// device's operations reach its journal in the order in which they were counted.
    fn turn(&self, operation: DeviceOperation) -> Turn {
        self.plug.as_ref().map_or(Turn::Works, |plug| plug.turn(operation))
    }

    fn no_power(&self, operation: Operation, offset: u64, length: u64) -> DeviceError {
        let path = self.path().to_path_buf();
        DeviceError::Io { operation, path, offset, length, errno: Errno::NO_DEVICE }
    }

    fn disk_full(&self, offset: u64, needed: u64) -> DeviceError {
        DeviceError::DiskFull { path: self.path().to_path_buf(), offset, needed }
    }

    /// Calls `sync` and then `journal`, unless the sync is to fail.
    fn sync_with(
        &self,
        sync: impl FnOnce() -> Result<(), DeviceError>,
        journal: impl FnOnce(&mut Journal),
    ) -> Result<(), DeviceError> {
        self.delay();
        let mut state = self.state();
        let turn = self.turn(DeviceOperation::Sync);
        if matches!(turn, Turn::Cut | Turn::Off) {
            // The image decides which earlier writes landed.
            return Err(self.no_power(Operation::Sync, 0, self.length()));
        }
        let faults = state.faults;
        if turn != Turn::Works
            || std::mem::take(&mut state.fail_next_sync)
            || state.strikes(faults.sync_error)
        {
            state.journal.iter_mut().for_each(Journal::fail_sync);
            return Err(self.broken(Operation::Sync, 0, self.length()));
        }
        sync()?;
        if let Some(state) = &mut state.journal {
            journal(state);
        }
        drop(state);
        // The failure takes a while, and others may write in the meantime.
        self.delay();
        Ok(())
    }

    fn delay(&self) {
        let mut state = self.state();
        let us_max = state.faults.latency_us_max;
        if us_max > 0 {
            let us = state.random.u32(0..=us_max);
            drop(state);
            pause::until(Instant::now() + Duration::from_micros(us.into()));
        }
    }
}

impl State {
    fn strikes(&mut self, share: f64) -> bool {
        let strikes = share > 0.0 && self.random.f64() < share;
        self.struck += u64::from(strikes);
        strikes
    }

    fn planted_in(&mut self, range: Range<u64>, wanted: fn(Planted) -> bool) -> Option<Planted> {
        let here = |(at, fault): &(u64, Planted)| range.contains(at) && wanted(*fault);
        let index = self.planted.iter().position(here)?;
        self.struck += 1;
        let fault = self.planted[index].1;
        if matches!(fault, Planted::TearWrite(_) | Planted::LoseWrite) {
            self.planted.swap_remove(index);
        }
        Some(fault)
    }

    /// Fails a write after any number of its sectors.
    fn fail_write(&mut self, length: usize) -> Verdict {
        let sectors = length.div_ceil(SECTOR);
        Verdict::Fails(length.min(self.random.usize(0..=sectors) * SECTOR))
    }

    fn judge_write(&mut self, range: Range<u64>, length: usize) -> Verdict {
        if self.is_full {
            self.struck += 1;
            return Verdict::Full;
        }
        match self.planted_in(range, |fault| fault != Planted::FailRead) {
            Some(Planted::TearWrite(sectors)) => {
                return Verdict::Lands(length.min(sectors * SECTOR));
            }
            Some(Planted::LoseWrite) => return Verdict::Lands(0),
            Some(_) => return Verdict::Fails(0),
            None => {}
        }
        let faults = self.faults;
        let sectors = length.div_ceil(SECTOR);
        if self.strikes(faults.write_error) {
            return self.fail_write(length);
        }
        if self.strikes(faults.lost_write) {
            return Verdict::Lands(0);
        }
        if sectors > 1 && self.strikes(faults.torn_write) {
            return Verdict::Lands(self.random.usize(1..sectors) * SECTOR);
        }
        Verdict::Lands(length)
    }
}

impl Device for FaultyDevice {
    fn path(&self) -> &Path {
        self.plug.as_ref().map_or_else(|| self.inner.path(), Plug::name)
    }

    fn length(&self) -> u64 {
        self.inner.length()
    }

    fn alignment(&self) -> Alignment {
        self.inner.alignment()
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.delay();
        let length = bytes.len() as u64;
        if self.plug.as_ref().is_some_and(Plug::is_off) {
            return Err(self.no_power(Operation::Read, offset, length));
        }
        let flipped = {
            let mut state = self.state();
            let faults = state.faults;
            let range = offset..offset.saturating_add(length);
            if state.planted_in(range, |fault| fault == Planted::FailRead).is_some()
                || state.strikes(faults.read_error)
            {
                return Err(self.broken(Operation::Read, offset, length));
            }
            let flips = length > 0 && state.strikes(faults.bit_flip);
            flips.then(|| (state.random.usize(0..bytes.len()), 1 << state.random.u8(0..8)))
        };
        self.inner.read(offset, bytes)?;
        if let Some((at, mask)) = flipped {
            bytes[at] ^= mask;
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.delay();
        let length = bytes.len() as u64;
        // Locked until the journal has the write: their order is the order of the writes.
        let mut state = self.state();
        let verdict = match self.turn(DeviceOperation::Write(offset)) {
            Turn::Works => state.judge_write(offset..offset.saturating_add(length), bytes.len()),
            Turn::Fails(Fault::Error) => state.fail_write(bytes.len()),
            Turn::Fails(Fault::DiskFull) => Verdict::Full,
            Turn::Cut => Verdict::Off { had_it: true },
            Turn::Off => Verdict::Off { had_it: false },
        };
        let (landed, answer) = match verdict {
            Verdict::Lands(count) => (count, Ok(())),
            Verdict::Fails(count) => (count, Err(self.broken(Operation::Write, offset, length))),
            Verdict::Full => (0, Err(self.disk_full(offset, length))),
            Verdict::Off { had_it } => {
                if let Some(journal) = state.journal.as_mut().filter(|_| had_it) {
                    journal.write(offset, bytes);
                }
                (0, Err(self.no_power(Operation::Write, offset, length)))
            }
        };
        if landed > 0 {
            // A device under this one may require whole blocks: bytes that did not land stay
            // unchanged.
            let mut whole = AlignedBuffer::new(bytes.len());
            if landed < bytes.len() {
                self.inner.read(offset, &mut whole)?;
            }
            whole[..landed].copy_from_slice(&bytes[..landed]);
            self.inner.write(offset, &whole)?;
            if let Some(journal) = &mut state.journal {
                journal.write(offset, &bytes[..landed]);
            }
        }
        answer
    }

    fn sync(&self) -> Result<(), DeviceError> {
        self.sync_with(|| self.inner.sync(), Journal::sync)
    }

    fn sync_ranges(&self, ranges: &[Range<u64>]) -> Result<(), DeviceError> {
        self.sync_with(|| self.inner.sync_ranges(ranges), |journal| journal.sync_ranges(ranges))
    }

    fn grow(&self, length: u64) -> Result<(), DeviceError> {
        self.delay();
        let mut state = self.state();
        let old = self.length();
        let needed = length.saturating_sub(old);
        if needed == 0 {
            return self.inner.grow(length);
        }
        match self.turn(DeviceOperation::Length) {
            Turn::Works => {}
            Turn::Fails(Fault::Error) => return Err(self.broken(Operation::Grow, old, needed)),
            Turn::Fails(Fault::DiskFull) => return Err(self.disk_full(old, needed)),
            turn @ (Turn::Cut | Turn::Off) => {
                if let Some(journal) = state.journal.as_mut().filter(|_| turn == Turn::Cut) {
                    journal.grow(length);
                }
                return Err(self.no_power(Operation::Grow, old, needed));
            }
        }
        if state.is_full || state.room.is_some_and(|room| needed > room) {
            state.struck += 1;
            return Err(self.disk_full(old, needed));
        }
        self.inner.grow(length)?;
        state.room = state.room.map(|room| room - needed);
        if let Some(journal) = &mut state.journal {
            journal.grow(length);
        }
        Ok(())
    }

    fn shrink(&self, length: u64) -> Result<(), DeviceError> {
        self.delay();
        let mut state = self.state();
        let less = self.length().saturating_sub(length);
        if less == 0 {
            return Ok(());
        }
        match self.turn(DeviceOperation::Length) {
            Turn::Works => {}
            Turn::Fails(_) => return Err(self.broken(Operation::Shrink, length, less)),
            turn @ (Turn::Cut | Turn::Off) => {
                if let Some(journal) = state.journal.as_mut().filter(|_| turn == Turn::Cut) {
                    journal.shrink(length);
                }
                return Err(self.no_power(Operation::Shrink, length, less));
            }
        }
        self.inner.shrink(length)?;
        if let Some(journal) = &mut state.journal {
            journal.shrink(length);
        }
        Ok(())
    }

    fn is_displaced(&self) -> bool {
        self.inner.is_displaced()
    }

    fn release(&self) {
        self.inner.release();
    }
}
