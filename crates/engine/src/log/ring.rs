//! The log buffer: a ring of bytes that are not durable yet. Any number of threads fill it, and one
//! empties it.
//!
//! ```text
//!            durable, rounded down     walked               tail
//!     ┌──────────┬───────────────────────┬────────────────────┬──────────┐
//!     │  free    │ published: read-only  │ reserved: each part│   free   │
//!     │          │                       │ its appender's own │          │
//!     └──────────┴───────────────────────┴────────────────────┴──────────┘
//! ```
//!
//! A thread reserves bytes by adding to `tail`, fills them without any lock, and publishes them by
//! storing a mark beside the ring: lap and length of the record. A record has at least 16 bytes. So
//! the marks of two records in one lap never share a place, and a mark of an earlier lap is not
//! mistaken for one of this lap. Nothing has to be zeroed, and the ring's own bytes are plain
//! memory. The one thread that empties the ring walks from mark to mark.
//!
//! # Rules
//!
//! 1. Bytes from `walked` to `tail` belong to reservations, each byte to exactly one.
//! 2. A reservation is filled only when it ends at most one lap behind the free border. The border
//!    is the durable LSN, rounded down to a block, since the rest of that block is written again.
//! 3. From the mark until `durable` has passed a byte's block, no thread writes the byte.

use std::sync::Arc;

use millpond_base::sync::atomic::{AtomicU64, Ordering};
use millpond_device::AlignedBuffer;

use super::options::BLOCK;
use super::record;
use super::record::Form;
use super::record::HEADER_MAX;
use super::record::RECORD_MIN;
use super::record::Record;
use super::record::SUM;

/// Bytes of the ring that share a mark: at most the length of the shortest record.
const CELL: usize = RECORD_MIN;

/// Bytes of a cache line.
const LINE: u64 = 64;
/// Number of cache lines behind a record that its appender prefetches.
const AHEAD: u64 = 4;

/// A value on cache lines of its own: two lines, since processors fetch them in pairs.
#[repr(align(128))]
struct Apart<T>(T);

struct Inner {
    /// Start of the ring's bytes, which belong to `_memory`.
    bytes: *mut u8,
    _memory: AlignedBuffer,
    /// Bytes of the ring, a power of two.
    size: u64,
    lap_shift: u32,
    marks: Box<[AtomicU64]>,
    salt: u64,
    tail: Apart<AtomicU64>,
    durable: Apart<AtomicU64>,
}

// SAFETY: `bytes` points to memory that `_memory` owns and nobody else names. Threads write to it
// only within their own reservations (rules 1 and 2), and read only their own bytes or bytes that
// were published to them (rule 3).
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

/// The side that fills the ring. Clones share one ring.
#[derive(Clone)]
pub(super) struct Ring(Arc<Inner>);

/// The side that empties the ring: there is one for each ring.
pub(super) struct Consumer {
    inner: Arc<Inner>,
    /// Position up to which all records are published.
    walked: u64,
    /// Number of records walked over.
    records: u64,
}

/// Bytes of the ring reserved for one record.
pub(super) struct Reservation<'r> {
    ring: &'r Inner,
    pub(super) start: u64,
    form: Form,
}

impl Reservation<'_> {
    pub(super) fn end(&self) -> u64 {
        self.start + self.form.whole() as u64
    }
}

impl Ring {
    /// Returns a ring of `size` bytes, a power of two of at least a block, whose first record will
    /// begin at `start`. `block` holds the bytes before `start` in its block.
    pub(super) fn new(size: usize, start: u64, block: &[u8], salt: u64) -> (Ring, Consumer) {
        debug_assert!(size.is_power_of_two(), "a ring of {size} bytes: positions are masked");
        debug_assert!(size as u64 >= BLOCK, "a ring holds the block that is written again");
        debug_assert!(start.is_multiple_of(8), "records begin at multiples of 8, not at {start}");
        let mut memory = AlignedBuffer::new(size);
        let begin = start - start % BLOCK;
        let at = (begin & (size as u64 - 1)) as usize;
        let kept = (start - begin) as usize;
        memory[at..at + kept].copy_from_slice(&block[..kept]);
        let inner = Arc::new(Inner {
            bytes: memory.as_mut_ptr(),
            _memory: memory,
            size: size as u64,
            lap_shift: size.trailing_zeros(),
            marks: (0..size / CELL).map(|_| AtomicU64::new(0)).collect(),
            salt,
            tail: Apart(AtomicU64::new(start)),
            durable: Apart(AtomicU64::new(start)),
        });
        (Ring(inner.clone()), Consumer { inner, walked: start, records: 0 })
    }

    /// Returns the number of bytes of the ring.
    pub(super) fn size(&self) -> u64 {
        self.0.size
    }

    /// Returns the end of all reservations.
    #[inline]
    pub(super) fn tail(&self) -> u64 {
        self.0.tail.0.load(Ordering::SeqCst)
    }

    /// Returns the durable LSN.
    #[inline]
    pub(super) fn durable(&self) -> u64 {
        self.0.durable.0.load(Ordering::Acquire)
    }

    /// Reserves bytes for `record`, whose body has `body` bytes.
    ///
    /// Sequentially consistent with the background thread: before that sleeps, it sees the new
    /// tail, or the caller sees it asleep.
    #[inline]
    pub(super) fn reserve(&self, record: &Record<'_>, body: usize) -> Reservation<'_> {
        let form = Form::of(record, body);
        let length = form.whole() as u64;
        debug_assert!(length <= self.0.size, "a record of {length} bytes exceeds the ring");
        let start = self.0.tail.0.fetch_add(length, Ordering::SeqCst);
        Reservation { ring: &self.0, start, form }
    }
}

impl<'r> Reservation<'r> {
    /// Returns the position that has to be durable before the reservation can be filled.
    pub(super) fn needs(&self) -> u64 {
        self.end().saturating_sub(self.ring.size).next_multiple_of(BLOCK)
    }

    /// Writes `record`, for which the bytes were reserved, and publishes it. Returns the
    /// reservation if the ring is full.
    #[inline]
    pub(super) fn fill(self, record: &Record<'_>) -> Result<(), Reservation<'r>> {
        let ring = self.ring;
        let durable = ring.durable.0.load(Ordering::Acquire);
        debug_assert!(durable <= self.start, "what is durable was published before");
        let free = durable - durable % BLOCK;
        if self.end() > free + ring.size {
            return Err(self);
        }
        let header = record::encode(record, self.form, self.start, durable, ring.salt);
        let header = &header[..self.form.header()];
        let mut at = self.start + header.len() as u64;
        let body_end = at + self.form.body() as u64;
        for part in record.parts {
            // Parts that have grown since would reach beyond the reservation.
            let part = &part[..part.len().min((body_end - at) as usize)];
            // SAFETY: from the end of the header to `body_end`, which is within the reservation;
            // and the reservation has room (rule 2), as was seen above.
            unsafe { ring.put(at, part) };
            at += part.len() as u64;
        }
        debug_assert_eq!(at, body_end, "the parts fill the body that was reserved");
        debug_assert!(self.end() - at < 8, "padding is shorter than the unit of records");
        let zeros = [0; HEADER_MAX];
        let missing = (self.end() - at).min(HEADER_MAX as u64) as usize;
        // SAFETY: within the reservation, as above.
        unsafe { ring.put(at, &zeros[..missing]) };
        // SAFETY: as above: the header's bytes behind the checksum.
        unsafe { ring.put(self.start + SUM as u64, &header[SUM..]) };
        // SAFETY: the bytes are this reservation's, written by this thread just now; nobody else
        // touches them before the mark (rule 1).
        let [first, rest] = unsafe { ring.get(self.start + SUM as u64, self.end()) };
        let sum = record::checksum(first, rest, self.start, ring.salt);
        // SAFETY: as above: the checksum.
        unsafe { ring.put(self.start, &sum.to_le_bytes()) };
        ring.mark(self.start).store(ring.mark_of(self.start, self.form.whole()), Ordering::Release);
        ring.ask_for_lines_behind(self.end());
        Ok(())
    }
}

/// Prefetches a cache line for writing.
#[inline(always)]
fn own_soon(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the instruction changes no memory and no register and cannot fault, whatever the
    // address; a processor that does not know it does nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

impl Inner {
    #[inline]
    fn mark(&self, start: u64) -> &AtomicU64 {
        &self.marks[(start & (self.size - 1)) as usize / CELL]
    }

    #[inline]
    fn mark_of(&self, start: u64, length: usize) -> u64 {
        (start >> self.lap_shift) << 32 | length as u64
    }

    /// Prefetches the cache lines that the next record will be written to, which the emptying
    /// thread had last. A store to such a line takes as long as a load that misses. Everything that
    /// waits for all earlier stores then waits for it: the next lock, and each value that is copied
    /// as a whole after it was written in parts.
    #[inline]
    fn ask_for_lines_behind(&self, lsn: u64) {
        own_soon(std::ptr::from_ref(self.mark(lsn + AHEAD * LINE / 2)).cast());
        for line in 1..=AHEAD {
            let at = ((lsn + line * LINE) & (self.size - 1)) as usize;
            own_soon(self.bytes.wrapping_add(at));
        }
    }

    /// Copies `bytes` into the ring at `lsn`.
    ///
    /// # Safety
    /// The bytes from `lsn` on, as many as there are, belong to a reservation of the caller that
    /// has room (rules 1 and 2).
    #[inline]
    unsafe fn put(&self, lsn: u64, bytes: &[u8]) {
        let at = (lsn & (self.size - 1)) as usize;
        debug_assert!(bytes.len() as u64 <= self.size, "a write spans at most a lap");
        let first = bytes.len().min(self.size as usize - at);
        // SAFETY: `at + first` is at most the ring's size, and so is the length of the rest, since
        // no reservation that has room is longer than the ring. The caller owns the bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.bytes.add(at), first);
            if first < bytes.len() {
                let rest = &bytes[first..];
                std::ptr::copy_nonoverlapping(rest.as_ptr(), self.bytes, rest.len());
            }
        }
    }

    /// Returns the bytes from `from` to `to` in two parts: up to the ring's end, and from its
    /// beginning.
    ///
    /// # Safety
    /// At most a lap, initialised, and nobody writes them while the slices live (rules 1 and 3).
    #[inline]
    unsafe fn get(&self, from: u64, to: u64) -> [&[u8]; 2] {
        debug_assert!(from <= to, "a range of the ring begins before its end");
        debug_assert!(to - from <= self.size, "a range of the ring spans at most a lap");
        let at = (from & (self.size - 1)) as usize;
        let length = (to - from) as usize;
        let first = length.min(self.size as usize - at);
        // SAFETY: both lie within the ring, which lives as long as `self`; the memory was zeroed
        // when it was allocated, and the caller promises that nobody writes.
        unsafe {
            [
                std::slice::from_raw_parts(self.bytes.add(at), first),
                std::slice::from_raw_parts(self.bytes, length - first),
            ]
        }
    }
}

impl Consumer {
    /// Walks over records published in the meantime; returns the start of the first unpublished
    /// one.
    pub(super) fn walk(&mut self) -> u64 {
        loop {
            let mark = self.inner.mark(self.walked).load(Ordering::Acquire);
            let length = mark & u64::from(u32::MAX);
            if length == 0 || mark != self.inner.mark_of(self.walked, length as usize) {
                return self.walked;
            }
            debug_assert!(length as usize >= RECORD_MIN, "a mark is of a whole record");
            debug_assert!(length.is_multiple_of(8), "records end at multiples of 8");
            self.walked += length;
            self.records += 1;
        }
    }

    /// Returns the position of the first record that was not seen to be published.
    pub(super) fn walked(&self) -> u64 {
        self.walked
    }

    /// Returns the number of records walked over since the last call.
    pub(super) fn take_records(&mut self) -> u64 {
        std::mem::take(&mut self.records)
    }

    /// Returns the durable LSN.
    pub(super) fn durable(&self) -> u64 {
        self.inner.durable.0.load(Ordering::Relaxed)
    }

    /// Returns the published bytes from `from` to `to` in two parts: up to the ring's end, and from
    /// its beginning. They are cut to the part that is published and whose blocks are not free
    /// again.
    pub(super) fn bytes(&self, from: u64, to: u64) -> [&[u8]; 2] {
        let durable = self.durable();
        debug_assert!(durable <= self.walked, "what is durable was walked over before");
        let free = durable - durable % BLOCK;
        let to = to.clamp(free, self.walked);
        let from = from.clamp(free, to);
        // SAFETY: these bytes are published or were there when the ring was created. `durable`,
        // which only this consumer advances, and only while it is borrowed mutably, has not passed
        // their blocks: rule 3. They span at most a lap, by rule 2.
        unsafe { self.inner.get(from, to) }
    }

    /// Advances the durable LSN to `durable`, and frees the blocks before it.
    pub(super) fn advance(&mut self, durable: u64) {
        let before = self.durable();
        debug_assert!(before <= durable, "the durable LSN grows, from {before} to {durable}");
        debug_assert!(durable <= self.walked, "only published records become durable");
        let durable = durable.clamp(before, self.walked);
        // Release: the blocks were read before any thread fills them again.
        self.inner.durable.0.store(durable, Ordering::Release);
    }
}
