//! A bucket: the versions in memory of a range of keys, in one place. Keys and before images share
//! a buffer, so that a scan reads them from front to back and most writes allocate nothing.
//!
//! Versions are stored in the order of their arrival. An index orders them by key. The versions of
//! a key, its *chain*, are adjacent in it with the oldest first, and refer to one copy of the key.
//! A search of a key reads a few cache lines: the heads of the keys, in order. A replaced before
//! image leaves a hole in the buffer; the buffer is copied once half of it is holes.

use std::mem::size_of;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::txn::before_image::BeforeImage;
use crate::txn::commit_stamp::{COMMITTING, CommitStamp};
use crate::txn::versions::version::{Image, Stamp};
use crate::txn::versions::window::{BufferSpan, Window};

/// Number of versions at which a bucket is split.
const SLOTS_MAX: usize = 64;
/// Bytes of the buffer at which a bucket is split.
const BYTES_MAX: usize = 32 << 10;
/// Length from which on a value is stored apart.
const APART_MIN: usize = 4 << 10;
/// Bytes charged for a bucket, besides its content.
const BUCKET_BYTES: usize = 256;
/// Bytes charged for a stamp or a value apart, besides its content.
const SHARED_BYTES: usize = 40;

/// A before image in a bucket.
#[derive(Clone, Copy)]
enum Before {
    Absent,
    Bytes(BufferSpan),
    /// Index of the before image among those stored apart.
    Apart(u32),
}

/// A version in a bucket.
struct Slot {
    key: BufferSpan,
    before: Before,
    stamp: Stamp,
}

/// The versions of a range of keys.
#[derive(Default)]
pub(super) struct Bucket {
    /// Common prefix of all keys of the range.
    prefix: Box<[u8]>,
    /// The bytes of each version's key behind the prefix, as a number, in key order.
    heads: Vec<u64>,
    /// Numbers of the versions, in key order.
    order: Vec<u32>,
    /// Versions, in the order of arrival.
    slots: Vec<Slot>,
    /// Keys and values, in the order of arrival.
    bytes: Vec<u8>,
    apart: Vec<Option<BeforeImage>>,
    /// Bytes of `bytes` that no version refers to.
    holes: usize,
    /// Bytes charged for values stored apart.
    apart_bytes: usize,
}

/// Returns the first eight bytes as a number with the same order.
#[inline]
pub(super) fn head_of(rest: &[u8]) -> u64 {
    match rest.first_chunk() {
        Some(head) => u64::from_be_bytes(*head),
        None => rest.iter().rev().fold(0, |head, byte| head >> 8 | u64::from(*byte) << 56),
    }
}

/// Returns the length of the common prefix of two keys.
fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Returns the common prefix of all keys from `lower` to before `upper`.
fn prefix_of<'k>(lower: &'k [u8], upper: Option<&[u8]>) -> &'k [u8] {
    upper.and_then(|upper| lower.get(..common(lower, upper))).unwrap_or(&[])
}

/// Returns the bytes charged for a value stored apart.
fn apart_bytes(image: &BeforeImage) -> usize {
    SHARED_BYTES + image.bytes()
}

impl Bucket {
    /// Returns an empty bucket for the keys from `lower` to before `upper`.
    pub(super) fn new(lower: &[u8], upper: Option<&[u8]>) -> Bucket {
        Bucket { prefix: prefix_of(lower, upper).into(), ..Bucket::default() }
    }

    /// Returns roughly the bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        let each = size_of::<u64>() + size_of::<u32>() + size_of::<Slot>();
        let slots = self.slots.capacity() * each + self.slots.len() * SHARED_BYTES;
        BUCKET_BYTES + slots + self.bytes.capacity() + self.apart_bytes
    }

    /// Returns the number of versions.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the version at this place in key order.
    #[inline]
    fn slot(&self, at: usize) -> Option<&Slot> {
        self.slots.get(*self.order.get(at)? as usize)
    }

    #[inline]
    fn slot_mut(&mut self, at: usize) -> Option<&mut Slot> {
        self.slots.get_mut(*self.order.get(at)? as usize)
    }

    fn key_at(&self, at: usize) -> &[u8] {
        self.slot(at).map_or(&[], |slot| slot.key.of(&self.bytes))
    }

    fn image(&self, before: Before) -> Option<Image<'_>> {
        match before {
            Before::Absent => None,
            Before::Bytes(span) => Some(Image::Bytes(span.of(&self.bytes))),
            Before::Apart(at) => self.apart.get(at as usize)?.as_ref().map(Image::Apart),
        }
    }

    /// Compares the key of a version with one that has the same head.
    #[inline]
    fn compare(&self, slot: u32, key: &[u8]) -> std::cmp::Ordering {
        let Some(slot) = self.slots.get(slot as usize) else { return std::cmp::Ordering::Equal };
        let len = slot.key.len as usize;
        if len.max(key.len()) <= self.prefix.len() + size_of::<u64>() {
            // The heads hold both keys whole: they are equal, or one is the other followed by
            // zeros.
            return len.cmp(&key.len());
        }
        slot.key.of(&self.bytes).cmp(key)
    }

    /// Returns the places of `key`'s versions in key order, or an empty range where they would be.
    #[inline]
    pub(super) fn chain_of(&self, key: &[u8]) -> Range<usize> {
        let Some(rest) = key.strip_prefix(&*self.prefix) else {
            let at = if *key < *self.prefix { 0 } else { self.len() };
            return at..at;
        };
        let head = head_of(rest);
        let from = self.heads.partition_point(|other| *other < head);
        let to = from + self.heads[from..].partition_point(|other| *other == head);
        let same = &self.order[from..to];
        let begin = from + same.partition_point(|slot| self.compare(*slot, key).is_lt());
        let end = from + same.partition_point(|slot| self.compare(*slot, key).is_le());
        begin..end
    }

    /// Returns the beginning of the chain that ends before place `end`.
    #[inline]
    fn chain_before(&self, end: usize) -> usize {
        let key_before = |at: usize| self.slot(at.checked_sub(1)?).map(|slot| slot.key);
        let (last, mut begin) = (key_before(end), end);
        while begin > 0 && key_before(begin) == last {
            begin -= 1;
        }
        begin
    }

    /// Returns the end of the chain that begins at place `begin`.
    #[inline]
    fn chain_after(&self, begin: usize) -> usize {
        let Some(first) = self.slot(begin).map(|slot| slot.key) else { return begin };
        let mut end = begin + 1;
        while self.slot(end).is_some_and(|slot| slot.key == first) {
            end += 1;
        }
        end
    }

    /// Returns `true` if the writer with `stamp` has not yet put a version of `key`.
    pub(super) fn wants(&self, key: &[u8], stamp: &Arc<CommitStamp>) -> bool {
        let chain = self.chain_of(key);
        chain.is_empty() || self.slot(chain.end - 1).is_none_or(|last| !last.stamp.is_of(stamp))
    }

    /// Puts a version, unless the writer with `stamp` has put one of `key` already. `newest` is the
    /// largest read timestamp.
    pub(super) fn put(
        &mut self,
        key: &[u8],
        stamp: &Arc<CommitStamp>,
        before: Option<Image<'_>>,
        newest: &AtomicU64,
    ) {
        let chain = self.chain_of(key);
        let mut last = None;
        if !chain.is_empty()
            && let Some(slot) = self.slot(chain.end - 1)
        {
            if slot.stamp.is_of(stamp) {
                return;
            }
            last = Some(slot.key);
            if self.is_last_unneeded(&chain, newest) {
                self.replace(chain.end - 1, stamp, before);
                return;
            }
        }
        let head = head_of(key.get(self.prefix.len()..).unwrap_or(&[]));
        let key = last.unwrap_or_else(|| BufferSpan::append(&mut self.bytes, key));
        let before = self.keep(before);
        self.heads.insert(chain.end, head);
        self.order.insert(chain.end, self.slots.len() as u32);
        self.slots.push(Slot { key, before, stamp: Stamp::Active(stamp.clone()) });
    }

    fn keep(&mut self, before: Option<Image<'_>>) -> Before {
        let image = match before {
            None => return Before::Absent,
            Some(Image::Bytes(value)) if value.len() < APART_MIN => {
                return Before::Bytes(BufferSpan::append(&mut self.bytes, value));
            }
            Some(Image::Bytes(value)) => BeforeImage::Here(value.into()),
            Some(Image::Apart(image)) => image.clone(),
        };
        self.keep_apart(image)
    }

    fn keep_apart(&mut self, image: BeforeImage) -> Before {
        self.apart_bytes += apart_bytes(&image);
        self.apart.push(Some(image));
        Before::Apart(self.apart.len() as u32 - 1)
    }

    /// Replaces the version at place `at`, which no snapshot needs.
    fn replace(&mut self, at: usize, stamp: &Arc<CommitStamp>, before: Option<Image<'_>>) {
        let Some(slot) = self.slot_mut(at) else { return };
        slot.stamp = Stamp::Active(stamp.clone());
        let old = slot.before;
        if let (Some(Image::Bytes(value)), Before::Bytes(span)) = (before, old)
            && value.len() == span.len as usize
        {
            span.of_mut(&mut self.bytes).copy_from_slice(value);
            return;
        }
        let new = self.keep(before);
        if let Some(slot) = self.slot_mut(at) {
            slot.before = new;
        }
        match old {
            Before::Absent => {}
            Before::Bytes(span) => self.holes += span.len as usize,
            Before::Apart(at) => {
                let gone = self.apart.get_mut(at as usize).and_then(Option::take);
                self.apart_bytes -= gone.as_ref().map_or(0, apart_bytes);
                self.holes += SHARED_BYTES;
            }
        }
        if self.holes > APART_MIN / 4 && self.holes > self.bytes.len() / 2 {
            let prefix = std::mem::take(&mut self.prefix);
            *self = self.part(prefix, 0..self.len());
        }
    }

    /// Returns `true` if no read timestamp is between those of the last two versions of a chain.
    /// Then none ever will be, since a later snapshot gets a later timestamp.
    fn is_last_unneeded(&mut self, chain: &Range<usize>, newest: &AtomicU64) -> bool {
        if chain.len() < 2 {
            return false;
        }
        let mut ended = |at| self.slot_mut(at).map_or(u64::MAX, |slot| slot.stamp.resolve());
        let newest = newest.load(Ordering::SeqCst);
        let is_older = newest < ended(chain.end - 2);
        ended(chain.end - 1) < COMMITTING && is_older
    }

    /// Moves the versions at these places to a bucket whose keys all begin with `prefix`.
    fn part(&mut self, prefix: Box<[u8]>, places: Range<usize>) -> Bucket {
        let (mut new, mut last) = (Bucket { prefix, ..Bucket::default() }, None);
        new.slots.reserve_exact(places.len() + places.len() / 2);
        new.heads.reserve_exact(places.len() + places.len() / 2);
        new.order.reserve_exact(places.len() + places.len() / 2);
        let len = places.clone().filter_map(|at| self.slot(at)).map(|slot| match slot.before {
            Before::Bytes(span) => slot.key.len + span.len,
            _ => slot.key.len,
        });
        // With room for a few more.
        let len = len.sum::<u32>() as usize;
        new.bytes.reserve_exact(len + len / 2);
        for at in places {
            let Some(slot) = self.order.get(at).and_then(|at| self.slots.get_mut(*at as usize))
            else {
                continue;
            };
            let key = match last {
                Some((old, new)) if old == slot.key => new,
                _ => BufferSpan::append(&mut new.bytes, slot.key.of(&self.bytes)),
            };
            last = Some((slot.key, key));
            let before = match slot.before {
                Before::Absent => Before::Absent,
                Before::Bytes(span) => {
                    Before::Bytes(BufferSpan::append(&mut new.bytes, span.of(&self.bytes)))
                }
                Before::Apart(at) => match self.apart.get_mut(at as usize).and_then(Option::take) {
                    Some(image) => new.keep_apart(image),
                    None => Before::Absent,
                },
            };
            let stamp = std::mem::replace(&mut slot.stamp, Stamp::Ended(0)).ended();
            let rest = key.of(&new.bytes).get(new.prefix.len()..).unwrap_or(&[]);
            new.heads.push(head_of(rest));
            new.order.push(new.slots.len() as u32);
            new.slots.push(Slot { key, before, stamp });
        }
        new
    }

    /// Returns `true` if the bucket needs a split: it has `times` its intended size.
    #[inline]
    pub(super) fn is_full(&self, times: usize) -> bool {
        let is_large = self.slots.len() > SLOTS_MAX * times || self.bytes.len() > BYTES_MAX * times;
        is_large && self.chain_after(0) < self.len()
    }

    /// Extends it to the keys from `lower` to before `upper`, which include all of its keys.
    pub(super) fn cover(&mut self, lower: &[u8], upper: Option<&[u8]>) {
        let prefix = prefix_of(lower, upper);
        if *prefix != *self.prefix {
            *self = self.part(prefix.into(), 0..self.len());
        }
    }

    /// Splits it in two; it covers the keys from `lower` to before `upper`. Returns the second
    /// bucket, and the first key that belongs there.
    pub(super) fn split(
        &mut self,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Option<(Box<[u8]>, Bucket)> {
        let middle = self.len() / 2;
        let at = match self.chain_before(middle + 1) {
            0 => self.chain_after(middle),
            begin => begin,
        };
        let (last, first) = (self.key_at(at.checked_sub(1)?), self.key_at(at));
        let between: Box<[u8]> = first.get(..=common(last, first))?.into();
        let second = self.part(prefix_of(&between, upper).into(), at..self.len());
        *self = self.part(prefix_of(lower, Some(&between)).into(), 0..at);
        Some((between, second))
    }

    /// Returns the version of a chain for a snapshot at `timestamp`, and its timestamp.
    #[inline]
    fn seen_in(&mut self, mut chain: Range<usize>, timestamp: u64) -> Option<(&Slot, u64)> {
        let (at, ended) = chain.find_map(|at| {
            let ended = self.slot_mut(at)?.stamp.resolve();
            (ended > timestamp).then_some((at, ended))
        })?;
        Some((self.slot(at)?, ended))
    }

    /// Appends the version of `key` for a snapshot at `timestamp`.
    pub(super) fn seen(&mut self, key: &[u8], timestamp: u64, out: &mut Window) {
        let chain = self.chain_of(key);
        if let Some((slot, ended)) = self.seen_in(chain, timestamp) {
            let before = slot.before;
            out.push(key, self.image(before), ended);
        }
    }

    /// Appends the versions for a snapshot at `timestamp` at these places, in one direction, until
    /// `out` has `max` keys.
    pub(super) fn window(
        &mut self,
        timestamp: u64,
        places: Range<usize>,
        forward: bool,
        max: usize,
        out: &mut Window,
    ) {
        // If much of the bucket is needed, it is copied as a whole, from front to back.
        let is_copied = places.len() >= self.len() / 2 && self.bytes.len() <= BYTES_MAX * 2;
        let base = is_copied.then(|| out.copy(&self.bytes));
        let Range { start: mut begin, mut end } = places;
        while begin < end && out.len() < max {
            let chain =
                if forward { begin..self.chain_after(begin) } else { self.chain_before(end)..end };
            if let Some((&Slot { key, before, .. }, ended)) = self.seen_in(chain.clone(), timestamp)
            {
                match (base, before) {
                    (Some(base), Before::Bytes(value)) => out.push_copied(base, key, value, ended),
                    _ => out.push(key.of(&self.bytes), self.image(before), ended),
                }
            }
            if forward { begin = chain.end } else { end = chain.start }
        }
    }

    /// Keeps the versions for which `keep` returns `true`. It is called with the timestamps of the
    /// version before, or 0, and of the version itself.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(u64, u64) -> bool) {
        let (mut last, mut kept) = (None, Vec::new());
        for at in 0..self.len() {
            let Some(slot) = self.slot_mut(at) else { continue };
            let ended = slot.stamp.resolve();
            let since = match last {
                Some((key, since)) if key == slot.key => since,
                _ => 0,
            };
            debug_assert!(since <= ended, "the versions of a key are in commit order");
            last = Some((slot.key, ended));
            if keep(since, ended) {
                kept.extend(self.order.get(at));
            }
        }
        if kept.len() < self.len() {
            self.order = kept;
            let prefix = std::mem::take(&mut self.prefix);
            *self = self.part(prefix, 0..self.len());
        }
    }

    /// Calls `f` with all versions, in order.
    pub(super) fn each<E>(
        &self,
        mut f: impl FnMut(&[u8], &Stamp, Option<Image<'_>>) -> Result<(), E>,
    ) -> Result<(), E> {
        for slot in (0..self.len()).filter_map(|at| self.slot(at)) {
            f(slot.key.of(&self.bytes), &slot.stamp, self.image(slot.before))?;
        }
        Ok(())
    }
}
