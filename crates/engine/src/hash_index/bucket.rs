//! Bucket pages: small hash tables of fixed size.
//!
//! ```text
//! offset size
//!      0   32  the common page header, type HASH_BUCKET, level 0
//!     32    2  entries, n
//!     34    2  leading bits that the hashes of all entries share
//!     36    4  heap: where the lowest record begins; the page size if there is none
//!     40    4  garbage: bytes of the heap that no record uses
//!     44    4  reserved, 0
//!     48    8  those leading bits, in their place; all lower bits 0
//!     56   8n  slots, ascending by the low half of the hash:
//!                 0  4  low half of the key's hash
//!                 4  2  where the record is, even
//!                 6  2  bytes of the key
//!      …       free
//!   heap       records: bytes of the value (2), key, value; at even places
//! ```
//! The low half of a hash is spread evenly, however deep the directory above is. So the search for
//! a key's slot starts at the position that its hash predicts, and ends a few slots from there. It
//! touches one or two cache lines of a page, where a binary search would touch one per step.
//! Everything below is safe on arbitrary bytes: offsets are checked, and loops are bounded by the
//! page size.

use crate::page::edit::{put_bytes, put_u16, put_u32, put_u64};
use crate::page::{PageBuffer, PageHeader, PageType, View};

const COUNT: usize = 32;
const BITS: usize = 34;
const HEAP: usize = 36;
const GARBAGE: usize = 40;
/// Offset of the leading hash bits, here and in directories.
pub(crate) const PREFIX: usize = 48;
/// Offset of the slots.
pub(crate) const SLOTS: usize = 56;
/// Bytes of a slot.
pub(crate) const SLOT: usize = 8;
/// Number of bytes before the key of a record.
pub(crate) const RECORD_HEADER: usize = 2;

/// Returns the number of bytes that a record occupies.
#[inline(always)]
pub(crate) const fn record_len(key: usize, value: usize) -> usize {
    (RECORD_HEADER + key + value + 1) & !1
}

/// The offsets of an entry in its page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) slot: usize,
    pub(crate) key: usize,
    pub(crate) key_len: usize,
    pub(crate) value: usize,
    pub(crate) value_len: usize,
}

impl Entry {
    fn record_len(self) -> usize {
        record_len(self.key_len, self.value_len)
    }
}

/// A bucket, read through raw loads.
#[derive(Clone, Copy)]
pub(crate) struct Bucket<'a>(pub(crate) View<'a>);

impl<'a> Bucket<'a> {
    #[inline(always)]
    pub(crate) fn is_bucket(self) -> bool {
        PageHeader::type_in(self.0) == PageType::HASH_BUCKET
    }

    /// Returns the number of entries, limited to those that fit on the page.
    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        usize::from(self.0.u16(COUNT)).min(self.0.len().saturating_sub(SLOTS) / SLOT)
    }

    /// Returns the number of leading hash bits that all entries share.
    pub(crate) fn bits(self) -> u32 {
        u32::from(self.0.u16(BITS))
    }

    /// Returns the leading hash bits.
    pub(crate) fn prefix(self) -> u64 {
        self.0.u64(PREFIX)
    }

    pub(crate) fn heap(self) -> usize {
        self.0.u32(HEAP) as usize
    }

    pub(crate) fn garbage(self) -> usize {
        self.0.u32(GARBAGE) as usize
    }

    /// Returns whether count, heap and garbage are consistent with each other and with the page
    /// size.
    pub(crate) fn is_sound(self) -> bool {
        let slots_end = SLOTS + usize::from(self.0.u16(COUNT)) * SLOT;
        let heap = self.heap();
        slots_end <= heap && heap <= self.0.len() && self.garbage() <= self.0.len() - heap
    }

    /// Returns the number of free bytes, garbage included.
    pub(crate) fn free(self) -> usize {
        let slots_end = SLOTS + self.count() * SLOT;
        (self.heap() + self.garbage()).saturating_sub(slots_end)
    }

    /// Returns the number of bytes that entries occupy.
    pub(crate) fn used(self) -> usize {
        self.0.len().saturating_sub(SLOTS).saturating_sub(self.free())
    }

    /// Returns the low half of the hash in slot `i`.
    #[inline(always)]
    pub(crate) fn word(self, i: usize) -> u32 {
        self.0.u32(SLOTS + i * SLOT)
    }

    /// Returns the first slot whose word is not below `word`.
    #[inline(always)]
    pub(crate) fn lower_bound(self, word: u32) -> usize {
        let n = self.count();
        let mut i = ((u64::from(word) * n as u64) >> 32) as usize;
        if i < n && self.word(i) < word {
            i += 1;
            while i < n && self.word(i) < word {
                i += 1;
            }
        } else {
            while i > 0 && self.word(i - 1) >= word {
                i -= 1;
            }
        }
        i
    }

    /// Returns the entry of slot `i`, which may be outside the page.
    #[inline(always)]
    pub(crate) fn entry(self, slot: usize) -> Entry {
        let at = SLOTS + slot * SLOT;
        let record = usize::from(self.0.u16(at + 4));
        let key_len = usize::from(self.0.u16(at + 6));
        let key = record + RECORD_HEADER;
        let value_len = usize::from(self.0.u16(record));
        Entry { slot, key, key_len, value: key + key_len, value_len }
    }

    /// Returns the entry of `key`, if there is one.
    #[inline(always)]
    pub(crate) fn find(self, word: u32, key: &[u8]) -> Option<Entry> {
        let n = self.count();
        let mut i = self.lower_bound(word);
        while i < n && self.word(i) == word {
            let entry = self.entry(i);
            if entry.key_len == key.len() && self.0.compare(entry.key, key.len(), key).is_eq() {
                return Some(entry);
            }
            i += 1;
        }
        None
    }

    /// Returns whether an entry is inside the heap.
    pub(crate) fn holds(self, entry: Entry) -> bool {
        entry.key >= self.heap() + RECORD_HEADER && entry.value + entry.value_len <= self.0.len()
    }
}

/// Returns key and value of an entry of a latched or copied page; empty where they are outside the
/// page.
pub(crate) fn parts(page: &[u8], entry: Entry) -> (&[u8], &[u8]) {
    let key = page.get(entry.key..entry.key + entry.key_len).unwrap_or(&[]);
    let value = page.get(entry.value..entry.value + entry.value_len).unwrap_or(&[]);
    (key, value)
}

/// A bucket that is latched exclusively, or a draft; its header is sound.
pub(crate) struct BucketMut<'a>(pub(crate) &'a mut [u8]);

impl BucketMut<'_> {
    pub(crate) fn read(&self) -> Bucket<'_> {
        Bucket(View::of(self.0))
    }

    /// Initialises an empty bucket for the hashes that begin with the given bits.
    pub(crate) fn init(&mut self, bits: u32, prefix: u64) {
        put_u16(self.0, COUNT, 0);
        put_u32(self.0, HEAP, self.0.len() as u32);
        put_u32(self.0, GARBAGE, 0);
        self.set_range(bits, prefix);
    }

    /// Changes the bucket's range to the hashes that begin with the given bits.
    pub(crate) fn set_range(&mut self, bits: u32, prefix: u64) {
        put_u16(self.0, BITS, bits as u16);
        put_u64(self.0, PREFIX, prefix);
    }

    /// Inserts a new entry. Returns `false`, and changes nothing, if there is no room.
    pub(crate) fn insert(&mut self, word: u32, key: &[u8], value: &[u8]) -> bool {
        let slot = self.read().lower_bound(word);
        self.insert_at(slot, word, key, value)
    }

    fn insert_at(&mut self, slot: usize, word: u32, key: &[u8], value: &[u8]) -> bool {
        let bytes = record_len(key.len(), value.len());
        if self.read().free() < bytes + SLOT {
            return false;
        }
        let n = self.read().count();
        if self.read().heap() < SLOTS + (n + 1) * SLOT + bytes {
            self.sweep();
        }
        let Some(record) = self.read().heap().checked_sub(bytes) else { return false };
        let at = SLOTS + slot * SLOT;
        let end = SLOTS + n * SLOT;
        if record < end + SLOT || slot > n {
            return false;
        }
        self.0.copy_within(at..end, at + SLOT);
        put_u32(self.0, at, word);
        put_u16(self.0, at + 4, record as u16);
        put_u16(self.0, at + 6, key.len() as u16);
        put_u16(self.0, record, value.len() as u16);
        put_bytes(self.0, record + RECORD_HEADER, key);
        put_bytes(self.0, record + RECORD_HEADER + key.len(), value);
        put_u16(self.0, COUNT, (n + 1) as u16);
        put_u32(self.0, HEAP, record as u32);
        true
    }

    /// Appends an entry whose word is not below any other in the bucket.
    pub(crate) fn push(&mut self, word: u32, key: &[u8], value: &[u8]) -> bool {
        let slot = self.read().count();
        self.insert_at(slot, word, key, value)
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, entry: Entry) {
        let n = self.read().count();
        if entry.slot >= n {
            return;
        }
        let at = SLOTS + entry.slot * SLOT;
        self.0.copy_within(at + SLOT..SLOTS + n * SLOT, at);
        put_u16(self.0, COUNT, (n - 1) as u16);
        let (heap, garbage) = (self.read().heap(), self.read().garbage());
        if n == 1 {
            put_u32(self.0, HEAP, self.0.len() as u32);
            put_u32(self.0, GARBAGE, 0);
        } else if entry.key == heap + RECORD_HEADER {
            put_u32(self.0, HEAP, (heap + entry.record_len()) as u32);
        } else {
            put_u32(self.0, GARBAGE, (garbage + entry.record_len()) as u32);
        }
    }

    /// Compacts the heap, so that the free bytes are contiguous.
    fn sweep(&mut self) {
        let old = PageBuffer::copy_of(self.0);
        let view = Bucket(old.view());
        let (bits, prefix) = (view.bits(), view.prefix());
        self.init(bits, prefix);
        for i in 0..view.count() {
            let (key, value) = parts(old.bytes(), view.entry(i));
            self.push(view.word(i), key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(page: &mut PageBuffer, random: &mut fastrand::Rng) -> Vec<(u32, Vec<u8>, Vec<u8>)> {
        let mut expect: Vec<(u32, Vec<u8>, Vec<u8>)> = Vec::new();
        let mut bucket = BucketMut(page.bytes_mut());
        bucket.init(0, 0);
        for round in 0..400u32 {
            if random.bool() || expect.is_empty() {
                let (word, key) = (random.u32(..8) << 29, round.to_be_bytes().to_vec());
                let value = vec![random.u8(..); random.usize(..30)];
                if bucket.insert(word, &key, &value) {
                    expect.push((word, key, value));
                }
            } else {
                let (word, key, _) = expect.swap_remove(random.usize(..expect.len()));
                let entry = bucket.read().find(word, &key).unwrap();
                bucket.remove(entry);
                assert!(bucket.read().find(word, &key).is_none());
            }
            assert!(bucket.read().is_sound());
        }
        expect
    }

    #[test]
    fn inserted_entries_are_found_until_they_are_removed() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..20 {
            let mut page = PageBuffer::new(512);
            let expect = fill(&mut page, &mut random);
            let bucket = Bucket(page.view());
            assert_eq!(bucket.count(), expect.len());
            for (word, key, value) in &expect {
                let entry = bucket.find(*word, key).unwrap();
                assert_eq!(parts(page.bytes(), entry), (&key[..], &value[..]));
            }
        }
    }

    #[test]
    fn removed_entries_leave_no_garbage_behind() {
        let mut page = PageBuffer::new(512);
        let mut bucket = BucketMut(page.bytes_mut());
        bucket.init(0, 0);
        let room = bucket.read().free();
        for i in 0..10_000u32 {
            let word = i.wrapping_mul(0x9e37_79b9);
            assert!(bucket.insert(word, &i.to_be_bytes(), &[7; 20]));
            if i >= 8 {
                let old = i - 8;
                let word = old.wrapping_mul(0x9e37_79b9);
                let entry = bucket.read().find(word, &old.to_be_bytes()).unwrap();
                bucket.remove(entry);
            }
        }
        assert_eq!(bucket.read().count(), 8);
        assert_eq!(bucket.read().free(), room - 8 * (SLOT + record_len(4, 20)));
    }
}
