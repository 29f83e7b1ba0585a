//! Reads a page that may change during the read.
//!
//! An optimistic reader must never make a `&[u8]` of a page: the compiler may take such memory for
//! constant. A [`View`] reads through raw pointers only. Every offset is checked against the page's
//! length, so that an offset which was itself read from a changing page leads nowhere else. The
//! bytes read count only after the reader's guard has validated. This file needs `unsafe`.

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::racy;

/// A page that is read through raw pointers.
#[derive(Clone, Copy)]
pub struct View<'a> {
    start: *const u8,
    len: usize,
    _page: PhantomData<&'a u8>,
}

impl<'a> View<'a> {
    /// Returns the view of a page that nobody changes. It should be aligned to 8, as pages are,
    /// since an unaligned word reads as 0.
    pub fn of(page: &'a [u8]) -> View<'a> {
        View { start: page.as_ptr(), len: page.len(), _page: PhantomData }
    }

    /// Returns the view of `len` bytes at `start`, which may change at any time.
    ///
    /// # Safety
    /// The bytes must stay mapped for `'a`, and `start` must be aligned to 8.
    #[inline(always)]
    pub unsafe fn raw(start: *const u8, len: usize) -> View<'a> {
        debug_assert!(start.addr().is_multiple_of(8), "pages are aligned to words");
        View { start, len, _page: PhantomData }
    }

    /// Returns the number of bytes of the page.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len
    }

    /// Returns whether the page has no bytes.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns the address of the page, for code that has checked its offsets itself.
    #[inline(always)]
    pub fn start(self) -> *const u8 {
        self.start
    }

    #[inline(always)]
    fn fits(self, at: usize, bytes: usize) -> bool {
        at <= self.len && bytes <= self.len - at
    }

    /// Returns the byte at `at`; 0 outside the page.
    #[inline(always)]
    pub fn u8(self, at: usize) -> u8 {
        if !self.fits(at, 1) {
            return 0;
        }
        // SAFETY: inside the page, which stays mapped.
        unsafe { racy::byte(self.start.add(at)) }
    }

    /// Returns the little-endian 16-bit word at `at`; 0 outside the page or at an odd address.
    #[inline(always)]
    pub fn u16(self, at: usize) -> u16 {
        if !self.fits(at, 2) || (self.start.addr() + at) & 1 != 0 {
            return 0;
        }
        // SAFETY: inside the page, which stays mapped; aligned, since the page is.
        u16::from_le(unsafe { racy::half(self.start.add(at)) })
    }

    /// Returns the little-endian 32-bit word at `at`; 0 outside the page.
    #[inline(always)]
    pub fn u32(self, at: usize) -> u32 {
        if !self.fits(at, 4) {
            return 0;
        }
        // SAFETY: inside the page, which stays mapped.
        u32::from_le(unsafe { racy::loose_u32(self.start.add(at)) })
    }

    /// Returns the little-endian 64-bit word at `at`, read in one piece; 0 outside the page or if
    /// `at` is not a multiple of 8.
    #[inline(always)]
    pub fn u64(self, at: usize) -> u64 {
        if !self.fits(at, 8) || (self.start.addr() + at) & 7 != 0 {
            return 0;
        }
        // SAFETY: inside the page, which stays mapped; aligned, since the page is.
        u64::from_le(unsafe { racy::word(self.start.add(at)) })
    }

    /// Appends the `len` bytes at `at` to `out`. Returns `false`, and appends nothing, if they are
    /// not all inside the page.
    #[inline]
    pub fn copy_to(self, at: usize, len: usize, out: &mut Vec<u8>) -> bool {
        if !self.fits(at, len) {
            return false;
        }
        out.reserve(len);
        // SAFETY: source inside the page; `reserve` made room behind `out`'s last byte, and the
        // bytes up to the new length are initialised by the copy.
        unsafe {
            racy::copy(self.start.add(at), out.as_mut_ptr().add(out.len()), len);
            out.set_len(out.len() + len);
        }
        true
    }

    /// Fills `out` from `at` on. Returns `false`, and leaves `out` untouched, if the bytes are not
    /// all inside the page.
    #[inline]
    pub fn copy_into(self, at: usize, out: &mut [u8]) -> bool {
        if !self.fits(at, out.len()) {
            return false;
        }
        // SAFETY: source inside the page; `out` is the caller's own memory.
        unsafe { racy::copy(self.start.add(at), out.as_mut_ptr(), out.len()) };
        true
    }

    /// Returns the first of the items `lo..hi` whose leading little-endian 32-bit word is not below
    /// `word`, or `hi`. Item `i` begins at `at + i * stride`, and the words ascend. Returns `lo` if
    /// the items are not all inside the page. No branch depends on the words.
    #[inline(always)]
    pub fn lower_bound(self, at: usize, stride: usize, lo: usize, hi: usize, word: u32) -> usize {
        if lo >= hi || !self.fits(at, hi.saturating_mul(stride)) || stride < 4 {
            return lo;
        }
        let read = |i: usize| {
            // SAFETY: `i < hi` and `stride >= 4`, so word i ends inside the page.
            u32::from_le(unsafe { racy::loose_u32(self.start.add(at + i * stride)) })
        };
        let (mut base, mut n) = (lo, hi - lo);
        while n > 1 {
            let half = n / 2;
            let below = read(base + half - 1) < word;
            base = std::hint::select_unpredictable(below, base + half, base);
            n -= half;
        }
        base + usize::from(read(base) < word)
    }

    /// Returns how many of the 16 little-endian 32-bit words at `at` are below `word`, and how many
    /// are not above it; 0 and 0 if they are not all inside the page.
    #[inline(always)]
    pub fn rank16(self, at: usize, word: u32) -> (usize, usize) {
        let mut bytes = [0; 64];
        if !self.copy_into(at, &mut bytes) {
            return (0, 0);
        }
        let (mut below, mut not_above) = (0u32, 0u32);
        for chunk in bytes.as_chunks::<4>().0 {
            let w = u32::from_le_bytes(*chunk);
            below += u32::from(w < word);
            not_above += u32::from(w <= word);
        }
        (below as usize, not_above as usize)
    }

    /// Prefetches the cache lines of the `len` bytes at `at`.
    #[inline(always)]
    pub fn prefetch(self, at: usize, len: usize) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if self.fits(at, len) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let mut line = 0;
            while line < len {
                // SAFETY: the instruction is part of every x86-64, changes nothing and cannot
                // fault; the address lies inside the page anyway.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(self.start.add(at + line).cast()) };
                line += 64;
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = (at, len);
    }

    /// Copies the `len` bytes at `at` into `out`. Returns `false` if they are not all inside the
    /// page.
    #[inline(always)]
    pub fn copy_out(self, at: usize, len: usize, out: &mut Scratch) -> bool {
        if !self.fits(at, len) {
            return false;
        }
        if len > SCRATCH_BYTES {
            out.large.clear();
            out.len = len;
            return self.copy_to(at, len, &mut out.large);
        }
        // SAFETY: source inside the page, target `len <= SCRATCH_BYTES` bytes of our own.
        unsafe {
            let target = out.small.as_mut_ptr().cast::<u8>();
            racy::copy(self.start.add(at), target, len);
        }
        out.len = len;
        true
    }

    /// Compares the `len` bytes at `at` with `key`; bytes outside the page compare as less.
    #[inline]
    pub fn compare(self, at: usize, len: usize, key: &[u8]) -> Ordering {
        if !self.fits(at, len) {
            return Ordering::Less;
        }
        let common = len.min(key.len());
        let mut i = 0;
        while i + 8 <= common {
            // SAFETY: `i + 8 <= common`, which is within the page from `at`, and within `key`.
            let (a, b) = unsafe {
                (
                    racy::loose_u64(self.start.add(at + i)),
                    key.as_ptr().add(i).cast::<u64>().read_unaligned(),
                )
            };
            if a != b {
                return u64::from_be(a).cmp(&u64::from_be(b));
            }
            i += 8;
        }
        while i < common {
            // SAFETY: as above.
            let a = unsafe { racy::byte(self.start.add(at + i)) };
            if a != key[i] {
                return a.cmp(&key[i]);
            }
            i += 1;
        }
        len.cmp(&key.len())
    }
}

/// Number of bytes that a [`Scratch`] holds without an allocation.
pub const SCRATCH_BYTES: usize = 1024;

/// Buffer for bytes of a page that are copied before they are validated. It is on the stack while
/// they are few, and is never cleared beforehand.
pub struct Scratch {
    small: [MaybeUninit<u8>; SCRATCH_BYTES],
    large: Vec<u8>,
    len: usize,
}

impl Default for Scratch {
    #[inline(always)]
    fn default() -> Scratch {
        Scratch { small: [MaybeUninit::uninit(); SCRATCH_BYTES], large: Vec::new(), len: 0 }
    }
}

impl Scratch {
    /// Returns the bytes that the last [`View::copy_out`] copied.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        if self.len > SCRATCH_BYTES {
            debug_assert_eq!(self.large.len(), self.len, "a long copy is all on the heap");
            return &self.large;
        }
        // SAFETY: `copy_out` initialised the first `len` bytes.
        unsafe { std::slice::from_raw_parts(self.small.as_ptr().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_and_outside_is_zero() {
        let mut page = [0u64; 8];
        page[1] = u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8]);
        // SAFETY: the vector outlives the view and is aligned to 8.
        let view = unsafe { View::raw(page.as_ptr().cast(), 64) };
        assert_eq!(view.u8(9), 2);
        assert_eq!(view.u16(8), 0x0201);
        assert_eq!(view.u32(9), 0x0504_0302);
        assert_eq!(view.u64(8), 0x0807_0605_0403_0201);
        assert_eq!((view.u8(64), view.u16(63), view.u32(61), view.u64(60)), (0, 0, 0, 0));
        assert_eq!((view.u64(usize::MAX), view.u8(usize::MAX), view.u64(9)), (0, 0, 0));
        let mut out = vec![9];
        assert!(view.copy_to(8, 2, &mut out) && !view.copy_to(63, 2, &mut out));
        assert_eq!(out, [9, 1, 2]);
        let mut two = [0; 2];
        assert!(view.copy_into(62, &mut two) && !view.copy_into(63, &mut two));
    }

    #[test]
    fn bytes_compare_as_slices_do() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let a: Vec<u8> = (0..random.usize(..24)).map(|_| random.u8(..3)).collect();
            let mut b = a.clone();
            if random.bool() {
                b.truncate(random.usize(..=a.len()));
            }
            if !b.is_empty() && random.bool() {
                let at = random.usize(..b.len());
                b[at] = random.u8(..3);
            }
            let mut page = [0u64; 4];
            let mut bytes: Vec<u8> = a.clone();
            bytes.resize(32, 0xee);
            for (i, word) in page.iter_mut().enumerate() {
                *word = u64::from_le_bytes(bytes[i * 8..i * 8 + 8].try_into().unwrap());
            }
            // SAFETY: the vector outlives the view and is aligned to 8.
            let view = unsafe { View::raw(page.as_ptr().cast(), 32) };
            assert_eq!(view.compare(0, a.len(), &b), a.cmp(&b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn the_lower_bound_is_that_of_a_sorted_slice() {
        let mut random = fastrand::Rng::with_seed(8);
        for _ in 0..2000 {
            let mut words: Vec<u32> = (0..random.usize(..24)).map(|_| random.u32(..20)).collect();
            words.sort_unstable();
            let mut page = [0u64; 40];
            for (i, word) in words.iter().enumerate() {
                page[2 + i] = u64::from_le_bytes(
                    [word.to_le_bytes(), [7; 4]].concat()[..].try_into().unwrap(),
                );
            }
            // SAFETY: the array outlives the view and is aligned to 8.
            let view = unsafe { View::raw(page.as_ptr().cast(), 320) };
            for word in 0..21 {
                let lo = random.usize(..=words.len());
                let expected = lo + words[lo..].partition_point(|w| *w < word);
                assert_eq!(view.lower_bound(16, 8, lo, words.len(), word), expected);
            }
            assert_eq!(view.lower_bound(16, 8, 3, 60, 5), 3, "outside");
        }
    }

    #[test]
    fn sixteen_words_are_ranked_and_bytes_copied_out() {
        let mut bytes = Vec::new();
        for i in 0..24u32 {
            bytes.extend_from_slice(&(i / 2).to_le_bytes());
        }
        let page: Vec<u64> =
            bytes.as_chunks::<8>().0.iter().map(|c| u64::from_le_bytes(*c)).collect();
        // SAFETY: the vector outlives the view and is aligned to 8.
        let view = unsafe { View::raw(page.as_ptr().cast(), 96) };
        assert_eq!(view.rank16(0, 3), (6, 8));
        assert_eq!(view.rank16(0, 100), (16, 16));
        assert_eq!(view.rank16(40, 3), (0, 0), "outside");
        let mut scratch = Scratch::default();
        assert!(scratch.bytes().is_empty());
        assert!(view.copy_out(4, 90, &mut scratch) && !view.copy_out(4, 93, &mut scratch));
        assert_eq!(scratch.bytes(), &bytes[4..94]);
        let large = vec![9u8; 5000];
        assert!(View::of(&large).copy_out(1, 4000, &mut scratch));
        assert_eq!(scratch.bytes(), &large[1..4001]);
    }
}
