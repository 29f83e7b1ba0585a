//! Reads, writes and flushes of a volume.

use std::io::{IoSlice, IoSliceMut};
use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use millpond_base::{PageId, Reason};
use millpond_device::{AlignedBuffer, Device, DeviceError, ReadRequest, Tag, WriteRequest};
use millpond_tier::{AnyTier, TierCounts};

use super::backing::BackingFile;
use super::error::VolumeError;
use super::ranges::Ranges;
use super::room::Room;
use super::syncs::{Syncs, Wanted};

/// Allowed bytes per block: a power of two in this range.
pub const BLOCK_BYTES: RangeInclusive<u32> = 512..=64 << 10;

/// Size of the shared buffer of zeros, a multiple of every block size.
pub(super) const ZEROS: usize = 1 << 20;

/// Blocks in one request to the device: one system call takes no more buffers (`IOV_MAX`).
const PARTS_MAX: usize = 256;

/// A block device of bytes, for any number of threads.
///
/// Overlapping requests may run at the same time: each block then has the content of one of them. A
/// write is durable once a flush that began after it has returned.
pub struct Volume {
    pub(super) device: Arc<dyn Device>,
    pub(super) tier: Option<AnyTier>,
    pub(super) backing: Option<Arc<BackingFile>>,
    /// The files with written data. Flushes are confirmed as long as their names lead to them.
    pub(super) files: Vec<Arc<dyn Device>>,
    /// Set once a displaced file has been logged.
    pub(super) displaced: AtomicBool,
    pub(super) block: u32,
    pub(super) length: u64,
    pub(super) read_only: bool,
    pub(super) ranges: Ranges,
    pub(super) zeros: AlignedBuffer,
    pub(super) syncs: Syncs,
    /// The first sync that failed: a later success would prove nothing.
    pub(super) sync_failed: OnceLock<DeviceError>,
    pub(super) counts: Counts,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    partial_blocks: AtomicU64,
    syncs: AtomicU64,
}

/// Counters of a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VolumeCounts {
    /// Read requests.
    pub reads: u64,
    /// Bytes requested by reads.
    pub read_bytes: u64,
    /// Write requests.
    pub writes: u64,
    /// Bytes of writes.
    pub written_bytes: u64,
    /// Blocks that were read because a write covers them in part.
    pub partial_blocks: u64,
    /// Syncs of the device, for flushes and for durable writes. Syncs requested at the same time
    /// are one.
    pub syncs: u64,
}

impl std::fmt::Debug for Volume {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Volume")
            .field("path", &self.device.path())
            .field("length", &self.length)
            .field("block", &self.block)
            .finish_non_exhaustive()
    }
}

impl Volume {
    /// Returns a volume of the whole blocks of `device`. A `block` outside [`BLOCK_BYTES`] is
    /// replaced with an allowed size.
    pub fn over(device: Arc<dyn Device>, block: u32, read_only: bool) -> Volume {
        let block = block.clamp(*BLOCK_BYTES.start(), *BLOCK_BYTES.end());
        let block = if block.is_power_of_two() { block } else { block.next_power_of_two() / 2 };
        let length = device.length() / u64::from(block) * u64::from(block);
        Volume {
            device,
            tier: None,
            backing: None,
            files: Vec::new(),
            displaced: AtomicBool::new(false),
            block,
            length,
            read_only,
            ranges: Ranges::default(),
            zeros: AlignedBuffer::new(ZEROS),
            syncs: Syncs::default(),
            sync_failed: OnceLock::new(),
            counts: Counts::default(),
        }
    }

    /// Returns the length in bytes, a multiple of a block.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the bytes per block.
    pub fn block(&self) -> u32 {
        self.block
    }

    /// Returns `true` if writes are refused.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Returns the counters of the cache, if there is one.
    pub fn tier_counts(&self) -> Option<TierCounts> {
        self.tier.as_ref().map(|tier| tier.counts())
    }

    /// Returns the counters of the volume.
    pub fn counts(&self) -> VolumeCounts {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { reads, read_bytes, writes, written_bytes, partial_blocks, syncs } =
            &self.counts;
        VolumeCounts {
            reads: get(reads),
            read_bytes: get(read_bytes),
            writes: get(writes),
            written_bytes: get(written_bytes),
            partial_blocks: get(partial_blocks),
            syncs: get(syncs),
        }
    }

    /// Checks that these bytes are within the volume.
    ///
    /// # Errors
    /// [`VolumeError::PastEnd`].
    pub fn check(&self, offset: u64, length: u64) -> Result<(), VolumeError> {
        match offset.checked_add(length) {
            Some(end) if end <= self.length => Ok(()),
            _ => Err(VolumeError::PastEnd { offset, length, size: self.length }),
        }
    }

    /// Checks that the volume accepts writes.
    ///
    /// # Errors
    /// The volume is read-only, or a sync failed.
    pub fn check_writable(&self) -> Result<(), VolumeError> {
        if self.read_only {
            return Err(VolumeError::ReadOnly);
        }
        match self.sync_failed.get() {
            Some(error) => Err(VolumeError::SyncFailed(error.clone())),
            None => Ok(()),
        }
    }

    /// Returns memory for `length` bytes at `offset`, to be filled for [`Volume::write`].
    pub fn room(&self, offset: u64, length: u32) -> Room {
        Room::new(offset, length, self.block)
    }

    /// Reads `length` bytes at `offset`.
    ///
    /// # Errors
    /// The bytes are not within the volume, or the device failed.
    pub fn read(&self, offset: u64, length: u32) -> Result<Room, VolumeError> {
        self.check(offset, length.into())?;
        let mut room = self.room(offset, length);
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        self.counts.read_bytes.fetch_add(length.into(), Ordering::Relaxed);
        let first = room.first_block();
        let _in_use = self.ranges.to_read(room.blocks(self.block));
        self.read_blocks(first, room.whole())?;
        Ok(room)
    }

    /// Reads several ranges, each an offset and a length, at the same time, as far as nobody writes
    /// there.
    ///
    /// # Errors
    /// Each range fails like a [`Volume::read`].
    pub fn read_many(&self, wanted: &[(u64, u32)]) -> Vec<Result<Room, VolumeError>> {
        let (mut rooms, mut in_use) = (Vec::with_capacity(wanted.len()), Vec::new());
        for (offset, length) in wanted {
            let room = self.check(*offset, (*length).into()).map(|()| self.room(*offset, *length));
            let free =
                room.as_ref().ok().and_then(|r| self.ranges.try_to_read(r.blocks(self.block)));
            rooms.push(room.ok().filter(|_| free.is_some()));
            in_use.extend(free);
        }
        let results = self.read_rooms(rooms.iter_mut().flatten());
        drop(in_use);
        let mut results = results.into_iter();
        let read = |(room, (offset, length)): (Option<Room>, &(u64, u32))| match room {
            Some(room) => {
                self.counts.reads.fetch_add(1, Ordering::Relaxed);
                self.counts.read_bytes.fetch_add((*length).into(), Ordering::Relaxed);
                results.next().unwrap_or(Ok(()))?;
                Ok(room)
            }
            None => self.read(*offset, *length),
        };
        rooms.into_iter().zip(wanted).map(read).collect()
    }

    /// Writes the bytes in `room`. With `is_durable`, they are durable when this returns. `reason`
    /// is a hint to the cache's policy.
    ///
    /// # Errors
    /// The bytes are not within the volume, or the device failed: then any part may have been
    /// written.
    pub fn write(
        &self,
        offset: u64,
        mut room: Room,
        reason: Reason,
        is_durable: bool,
    ) -> Result<(), VolumeError> {
        self.check_writable()?;
        let length = room.len() as u64;
        self.check(offset, length)?;
        if room.is_empty() {
            return Ok(());
        }
        self.counts.writes.fetch_add(1, Ordering::Relaxed);
        self.counts.written_bytes.fetch_add(length, Ordering::Relaxed);
        let blocks = room.blocks(self.block);
        {
            let _in_use = self.ranges.to_write(blocks.clone());
            self.complete(&mut room)?;
            self.write_blocks(room.first_block(), room.whole_ref(), reason)?;
        }
        if is_durable { self.sync_blocks(blocks) } else { Ok(()) }
    }

    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// The device does not confirm the sync, or did not confirm an earlier one.
    pub fn flush(&self) -> Result<(), VolumeError> {
        self.synced(Wanted::All)
    }

    /// Reads blocks for the cache, which may keep them.
    ///
    /// # Errors
    /// The bytes are not within the volume, or the device failed.
    pub fn prefetch(&self, offset: u64, length: u32) -> Result<(), VolumeError> {
        const STEP: u64 = 1 << 20;
        self.check(offset, length.into())?;
        let end = offset + u64::from(length);
        let mut at = offset;
        while at < end {
            let next = (at - at % STEP + STEP).min(end);
            self.read(at, (next - at) as u32)?;
            at = next;
        }
        Ok(())
    }

    /// Makes earlier writes into these bytes durable; other writes may become durable, too.
    ///
    /// # Errors
    /// The bytes are not within the volume, or the sync fails like a [`Volume::flush`].
    pub fn sync_range(&self, offset: u64, length: u32) -> Result<(), VolumeError> {
        self.check(offset, length.into())?;
        let block = u64::from(self.block);
        self.sync_blocks(offset / block..(offset + u64::from(length)).div_ceil(block))
    }

    pub(super) fn sync_blocks(&self, blocks: Range<u64>) -> Result<(), VolumeError> {
        let block = u64::from(self.block);
        let range = blocks.start * block..blocks.end * block;
        self.synced(Wanted::Ranges(vec![range]))
    }

    fn synced(&self, wanted: Wanted) -> Result<(), VolumeError> {
        if let Some(error) = self.sync_failed.get() {
            return Err(VolumeError::SyncFailed(error.clone()));
        }
        if self.read_only {
            return Ok(());
        }
        self.syncs.share(wanted, |wanted| {
            self.counts.syncs.fetch_add(1, Ordering::Relaxed);
            let synced = match wanted {
                Wanted::All => self.device.sync(),
                Wanted::Ranges(ranges) => self.device.sync_ranges(&ranges),
            };
            if let Err(error) = synced {
                tracing::error!(%error, "a sync failed: the volume takes no more writes");
                let _ = self.sync_failed.set(error);
            }
        });
        match self.sync_failed.get() {
            Some(error) => Err(VolumeError::SyncFailed(error.clone())),
            None => self.check_places(),
        }
    }

    /// Checks that the names of the volume's files still lead to them.
    fn check_places(&self) -> Result<(), VolumeError> {
        let displaced = self.files.iter().find(|file| file.is_displaced());
        let was_displaced = self.displaced.swap(displaced.is_some(), Ordering::Relaxed);
        let Some(file) = displaced else { return Ok(()) };
        let error = VolumeError::Displaced { path: file.path().to_path_buf() };
        if !was_displaced {
            tracing::error!(%error, "a flush is not confirmed");
        }
        Err(error)
    }

    /// Returns `true` if all syncs so far were confirmed.
    pub(super) fn is_sound(&self) -> bool {
        self.sync_failed.get().is_none()
    }

    /// Reads the missing parts of the first and the last block.
    fn complete(&self, room: &mut Room) -> Result<(), VolumeError> {
        let (before, behind) = room.others();
        let (first, block) = (room.first_block(), self.block as usize);
        let last = room.blocks(self.block).end - 1;
        let is_one = last == first;
        let mut found = AlignedBuffer::new(block);
        let mut fill = |number: u64, parts: &[Range<usize>]| -> Result<(), VolumeError> {
            self.counts.partial_blocks.fetch_add(1, Ordering::Relaxed);
            self.read_blocks(number, &mut found)?;
            let begin = (number - first) as usize * block;
            for part in parts.iter().filter(|part| !part.is_empty()) {
                let from = part.start - begin..part.end - begin;
                let (to, from) = (room.whole().get_mut(part.clone()), found.get(from));
                to.zip(from).into_iter().for_each(|(to, from)| to.copy_from_slice(from));
            }
            Ok(())
        };
        match (before.is_empty(), behind.is_empty()) {
            (true, true) => Ok(()),
            (_, _) if is_one => fill(first, &[before, behind]),
            (has_none, has_no_end) => {
                if !has_none {
                    fill(first, &[before])?;
                }
                if has_no_end { Ok(()) } else { fill(last, &[behind]) }
            }
        }
    }

    /// Reads all blocks of the rooms.
    fn read_rooms<'r>(
        &self,
        rooms: impl Iterator<Item = &'r mut Room>,
    ) -> Vec<Result<(), DeviceError>> {
        let block = self.block as usize;
        let mut all: Vec<(u64, Vec<IoSliceMut<'_>>, Vec<Tag>)> = rooms
            .map(|room| {
                let first = room.first_block();
                let parts: Vec<_> = room.whole().chunks_mut(block).map(IoSliceMut::new).collect();
                let tags = (first..).zip(&parts).map(|(page, _)| Tag::read(PageId(page))).collect();
                (first, parts, tags)
            })
            .collect();
        let (mut requests, mut counts) = (Vec::with_capacity(all.len()), Vec::new());
        for (first, parts, tags) in &mut all {
            let before = requests.len();
            let chunks = parts.chunks_mut(PARTS_MAX).zip(tags.chunks(PARTS_MAX));
            requests.extend(
                chunks
                    .zip(self.offsets(*first))
                    .map(|((parts, tags), offset)| ReadRequest::new(offset, parts).tagged(tags)),
            );
            counts.push(requests.len() - before);
        }
        self.device.read_batch(&mut requests);
        let mut results = requests.into_iter().map(|request| request.result);
        let of_room = |count| results.by_ref().take(count).fold(Ok(()), Result::and);
        counts.into_iter().map(of_room).collect()
    }

    /// Reads whole blocks.
    fn read_blocks(&self, first: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let mut parts: Vec<IoSliceMut<'_>> =
            bytes.chunks_mut(self.block as usize).map(IoSliceMut::new).collect();
        let tags: Vec<Tag> =
            (first..).zip(&parts).map(|(page, _)| Tag::read(PageId(page))).collect();
        let mut requests: Vec<ReadRequest<'_, '_>> = (parts.chunks_mut(PARTS_MAX))
            .zip(tags.chunks(PARTS_MAX))
            .zip(self.offsets(first))
            .map(|((parts, tags), offset)| ReadRequest::new(offset, parts).tagged(tags))
            .collect();
        self.device.read_batch(&mut requests);
        requests.into_iter().try_for_each(|request| request.result)
    }

    /// Writes whole blocks.
    pub(super) fn write_blocks(
        &self,
        first: u64,
        bytes: &[u8],
        reason: Reason,
    ) -> Result<(), DeviceError> {
        let parts: Vec<IoSlice<'_>> = bytes.chunks(self.block as usize).map(IoSlice::new).collect();
        let tag = |page| Tag { page: PageId(page), reason };
        let tags: Vec<Tag> = (first..).zip(&parts).map(|(page, _)| tag(page)).collect();
        let mut requests: Vec<WriteRequest<'_, '_>> = (parts.chunks(PARTS_MAX))
            .zip(tags.chunks(PARTS_MAX))
            .zip(self.offsets(first))
            .map(|((parts, tags), offset)| WriteRequest::new(offset, parts).tagged(tags))
            .collect();
        self.device.write_batch(&mut requests);
        requests.into_iter().try_for_each(|request| request.result)
    }

    /// Returns the byte offsets at which requests of [`PARTS_MAX`] blocks begin.
    fn offsets(&self, first: u64) -> impl Iterator<Item = u64> + use<> {
        let block = u64::from(self.block);
        (0..).map(move |at: u64| (first + at * PARTS_MAX as u64) * block)
    }
}
