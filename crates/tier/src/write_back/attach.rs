//! Attaching a cache to a device, opening the pair again, and detaching it.
//!
//! The cache's header and the mark on the device below carry the same uuid and generation. The
//! header is written first: while its state is *opening*, the mark may be of this generation or the
//! one before. So a device or a cache of another time is recognised, unless it was copied while the
//! pair was open in that same generation.

use std::sync::Arc;

use millpond_base::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use millpond_base::sync::{Condvar, Mutex};
use millpond_base::uuid::new_uuid;
use millpond_device::{AlignedBuffer, Device, DeviceError};
use millpond_policies::contract::Shape;
use millpond_policies::policy_host::ErasedPolicyHost;
use xxhash_rust::xxh3::xxh3_64;

use crate::back_layout::BackLayout;
use crate::back_mark::{BackMark, MARK_BYTES};
use crate::cache::Cache;
use crate::directory::{Entry, is_other_file};
use crate::error::TierError;
use crate::frames::spare_of;
use crate::options::TierOptions;
use crate::waiting::Waiting;
use crate::write_back::back_device::BackDevice;
use crate::write_back::bell::Bell;
use crate::write_back::format::{Header, Journal, Kind, Record, State, load_directory};

impl BackDevice {
    /// Opens a tier above `below`, with its cache on `fast`. The cache is the one that `below` was
    /// last opened with. If there was none, `fast` may be empty, or hold a tier that is no longer
    /// needed.
    ///
    /// # Errors
    /// The cache has no room, the two do not belong together, or one of them fails.
    pub fn open(
        below: Arc<dyn Device>,
        fast: Arc<dyn Device>,
        options: &TierOptions,
        policy: impl FnOnce(&Shape) -> Box<dyn ErasedPolicyHost>,
    ) -> Result<BackDevice, TierError> {
        let frames = TierOptions { writes_back: true, ..*options }.frames()?;
        let layout = options.back_layout();
        let pinned_bytes = u64::from(layout.slots.slot_bytes);
        let Attached { header, records, cut_off } = match pair(&*below, &*fast)? {
            None => found(&*below, &*fast, layout)?,
            Some((header, _)) if header.layout != layout => {
                let path = fast.path().to_path_buf();
                let (found, asked) = (header.layout.bytes, layout.bytes);
                return Err(TierError::OtherSize { path, found, asked });
            }
            Some((header, generation)) => open_again(&*below, &*fast, header, generation)?,
        };
        let mut cache = Cache::writing_back(&layout.slots, frames, options.seed, policy);
        cache.restore_back(records);
        let tier = BackDevice {
            below,
            fast,
            layout,
            cache: Mutex::new(cache),
            arrival: Condvar::new(),
            journal: Mutex::new(Journal::new(header)),
            destaging: Mutex::default(),
            writing_pinned: Mutex::default(),
            waiting: Waiting::default(),
            growing: Mutex::default(),
            pinned_bytes,
            spare_slots: spare_of(layout.slots.slots) as usize,
            below_is_ahead: AtomicBool::new(false),
            fast_is_ahead: AtomicBool::new(false),
            bell: Bell::default(),
            has_failed: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            errors: AtomicU32::new(0),
            cut_off,
        };
        Ok(tier)
    }

    /// Returns `true` if `fast`, as the second tier of `below`, has data that `below` lacks.
    ///
    /// # Errors
    /// Same as [`BackDevice::open`].
    pub fn is_pair(below: &dyn Device, fast: &dyn Device) -> Result<bool, TierError> {
        Ok(pair(below, fast)?.is_some())
    }

    /// Returns the options for opening the tier that has data `below` lacks; `None` if no tier
    /// does.
    ///
    /// # Errors
    /// Same as [`BackDevice::open`].
    pub fn options_of(
        below: &dyn Device,
        fast: &dyn Device,
    ) -> Result<Option<TierOptions>, TierError> {
        let Some((header, _)) = pair(below, fast)? else { return Ok(None) };
        let BackLayout { slots, bytes, .. } = header.layout;
        let (page_bytes, unit) = (slots.slot_bytes, slots.unit);
        Ok(Some(TierOptions { bytes, page_bytes, unit, seed: 0, writes_back: true }))
    }

    /// Writes everything to the device below, which is then complete without the cache. Nothing
    /// else may be read or written during the call or after it.
    ///
    /// # Errors
    /// A device fails. The two still belong together, and all synced bytes are there.
    pub fn give_up(&self) -> Result<(), DeviceError> {
        self.is_closed.store(true, Ordering::Release);
        self.destage_all()?;
        // Everything but the first sector: without it the device is incomplete, and marked as such.
        let first = self.read_own(0, self.pinned_bytes as usize)?;
        let mut marked = AlignedBuffer::new(first.len());
        marked.copy_from_slice(&first);
        let block = (MARK_BYTES as u64).next_multiple_of(self.below.alignment().offset.max(1));
        let mut sector = AlignedBuffer::new(block as usize);
        self.below.read(0, &mut sector)?;
        if let (Some(to), Some(from)) = (marked.get_mut(..MARK_BYTES), sector.get(..MARK_BYTES)) {
            to.copy_from_slice(from);
        }
        self.below.write(0, &marked)?;
        self.below.sync()?;
        self.close_as(State::Leaving)?;
        self.below.write(0, &first)?;
        self.below.sync()?;
        self.close_as(State::Over)?;
        self.fast.release();
        Ok(())
    }
}

/// Reads the header of the cache on `fast` and the mark's generation, if it and `below` belong
/// together. `None` if neither has data that the other needs.
fn pair(below: &dyn Device, fast: &dyn Device) -> Result<Option<(Header, u64)>, TierError> {
    let mark = BackMark::of(below)?;
    let header = match Header::load(fast)? {
        Some(header) => Some(header).filter(|header| header.state != State::Over),
        None if is_other_file(fast)? => {
            return Err(TierError::NotATier { path: fast.path().to_path_buf() });
        }
        None => None,
    };
    let (path, store) = (fast.path().to_path_buf(), below.path().to_path_buf());
    match (header, mark) {
        (None, None) => Ok(None),
        (None, Some(mark)) => Err(TierError::CacheMissing { path: store, cache: mark.cache }),
        // Attaching or detaching was interrupted, and the device is complete.
        (Some(Header { state: State::Opening, generation: 1, .. }), None)
        | (Some(Header { state: State::Leaving, .. }), None) => Ok(None),
        (Some(header), Some(mark)) if is_its(&header, &mark) => Ok(Some((header, mark.generation))),
        _ => Err(TierError::NotItsStore { path, store }),
    }
}

fn is_its(header: &Header, mark: &BackMark) -> bool {
    let is_opening = header.state == State::Opening;
    let is_last = is_opening && mark.generation + 1 == header.generation;
    header.uuid == mark.uuid && (mark.generation == header.generation || is_last)
}

/// A device and its cache.
struct Attached {
    header: Header,
    /// Copies in the cache.
    records: Vec<Record>,
    /// Number of copies for places behind the device's end.
    cut_off: u64,
}

/// Attaches a cache without data to a complete device.
fn found(below: &dyn Device, fast: &dyn Device, layout: BackLayout) -> Result<Attached, TierError> {
    let bytes = u64::from(layout.slots.slot_bytes);
    let begin = layout.slots_begin();
    if fast.length() < begin + bytes {
        fast.grow(begin + bytes)?;
    }
    // The file becomes a tier's first: whatever happens then, it can be created again.
    let mut header = Header::new(layout, new_uuid());
    header.state = State::Over;
    header.store(fast)?;
    // Long enough for a mark, even if the store is still empty.
    let least = bytes.max(4096);
    if below.length() < least {
        below.grow(least)?;
        below.sync()?;
    }
    let mut first = AlignedBuffer::new(bytes as usize);
    below.read(0, &mut first)?;
    fast.write(layout.slot_offset(0), &first)?;
    fast.sync()?;
    let (checksum, length) = (xxh3_64(&first), layout.slots.slot_bytes);
    let entry = Entry { checksum, length, ..Entry::default() };
    let records = vec![Record { kind: Kind::Pinned, entry }];
    header.state = State::Opening;
    header.store_snapshot(fast, &records)?;
    set_mark(below, fast, &header)?;
    header.state = State::Open;
    header.store(fast)?;
    fast.shrink(layout.end())?;
    Ok(Attached { header, records, cut_off: 0 })
}

fn open_again(
    below: &dyn Device,
    fast: &dyn Device,
    mut header: Header,
    generation: u64,
) -> Result<Attached, TierError> {
    let mut records = load_directory(fast, &header)?;
    let is_closed = header.state == State::Closed;
    // Data that was cut off is nowhere. The cut may be durable, and the directory may not show it.
    let length = below.length();
    let end = |entry: &Entry| entry.offset.saturating_add(u64::from(entry.length));
    let lies_behind = |record: &&Record| record.kind != Kind::Clean && end(&record.entry) > length;
    let behind: Vec<&Entry> =
        records.iter().filter(lies_behind).map(|record| &record.entry).collect();
    let cut_off = behind.len() as u64;
    if let Some(first) = behind.iter().map(|entry| entry.offset).min() {
        let bytes: u64 = behind.iter().map(|entry| u64::from(entry.length)).sum();
        tracing::warn!(
            bytes,
            first,
            length,
            "{} ends before {bytes} bytes, the first of them at offset {first}, that its second \
             tier {} has and storage has not: they are dropped. After a crash while it was made \
             shorter nobody needs them; if something else cut it off, restore a backup",
            below.path().display(),
            fast.path().display(),
        );
    }
    records.retain(|Record { kind, entry }| {
        end(entry) <= length && (*kind != Kind::Clean || is_closed)
    });
    if !records.iter().any(|record| record.kind == Kind::Pinned) {
        return Err(TierError::Damaged { path: fast.path().to_path_buf() });
    }
    let kept: Vec<Record> =
        records.iter().filter(|record| record.kind != Kind::Clean).copied().collect();
    header.state = State::Opening;
    // The mark's generation, not the header's: an opening may have been interrupted between the
    // two.
    header.generation = generation + 1;
    header.store_snapshot(fast, &kept)?;
    set_mark(below, fast, &header)?;
    header.state = State::Open;
    header.store(fast)?;
    Ok(Attached { header, records, cut_off })
}

/// Puts the mark in the place of the first sector of `below`, durably. Nothing else changes there.
fn set_mark(below: &dyn Device, fast: &dyn Device, header: &Header) -> Result<(), DeviceError> {
    let bytes = (MARK_BYTES as u64).next_multiple_of(below.alignment().offset.max(1));
    let mut block = AlignedBuffer::new(bytes as usize);
    below.read(0, &mut block)?;
    let mark = BackMark {
        uuid: header.uuid,
        generation: header.generation,
        page_bytes: header.layout.slots.slot_bytes,
        unit: header.layout.slots.unit,
        cache: fast.path().to_path_buf(),
    };
    mark.write(&mut block);
    below.write(0, &block)?;
    below.sync()
}
