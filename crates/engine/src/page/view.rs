//! Reading a page that may change under the reader's eyes.
//!
//! An optimistic reader must never make a `&[u8]` of a page: the compiler may take such memory for
//! constant. A [`View`] reads through raw pointers only. Every offset is checked against the
//! page's length, so that an offset which was itself read from a changing page leads nowhere
//! else; what comes back counts only after the reader's guard has validated. This file needs
//! `unsafe`.

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};

/// A page, seen through raw reads.
#[derive(Clone, Copy)]
pub struct View<'a> {
    start: *const u8,
    len: usize,
    _page: PhantomData<&'a u8>,
}

impl<'a> View<'a> {
    /// The view of a page that nobody changes; it should be aligned to 8, as pages are, since a
    /// word that is not aligned reads as 0.
    pub fn of(page: &'a [u8]) -> View<'a> {
        View { start: page.as_ptr(), len: page.len(), _page: PhantomData }
    }

    /// The view of `len` bytes at `start`, which may change at any time.
    ///
    /// # Safety
    /// The bytes must stay mapped for `'a`, and `start` must be aligned to 8.
    #[inline(always)]
    pub unsafe fn raw(start: *const u8, len: usize) -> View<'a> {
        View { start, len, _page: PhantomData }
    }

    /// Bytes of the page.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Where the page is, for code that has checked its offsets itself.
    #[inline(always)]
    pub fn start(self) -> *const u8 {
        self.start
    }

    #[inline(always)]
    fn fits(self, at: usize, bytes: usize) -> bool {
        at <= self.len && bytes <= self.len - at
    }

    /// The byte at `at`; 0 outside the page.
    #[inline(always)]
    pub fn u8(self, at: usize) -> u8 {
        if !self.fits(at, 1) {
            return 0;
        }
        // SAFETY: inside the page, which stays mapped.
        unsafe { self.start.add(at).read_volatile() }
    }

    /// The little-endian 16-bit word at `at`, which is even; 0 outside the page or at an odd place.
    #[inline(always)]
    pub fn u16(self, at: usize) -> u16 {
        if !self.fits(at, 2) || (self.start.addr() + at) & 1 != 0 {
            return 0;
        }
        // SAFETY: inside the page, which stays mapped; aligned, since the page is.
        let word = unsafe { AtomicU16::from_ptr(self.start.add(at).cast_mut().cast()) };
        u16::from_le(word.load(Relaxed))
    }

    /// The little-endian 32-bit word at `at`; 0 outside the page.
    #[inline(always)]
    pub fn u32(self, at: usize) -> u32 {
        if !self.fits(at, 4) {
            return 0;
        }
        // SAFETY: inside the page, which stays mapped.
        u32::from_le(unsafe { self.start.add(at).cast::<u32>().read_unaligned() })
    }

    /// The little-endian 64-bit word at `at`, which is a multiple of 8, in one piece; 0 outside
    /// the page or at another place.
    #[inline(always)]
    pub fn u64(self, at: usize) -> u64 {
        if !self.fits(at, 8) || (self.start.addr() + at) & 7 != 0 {
            return 0;
        }
        // SAFETY: inside the page, which stays mapped; aligned, since the page is.
        let word = unsafe { AtomicU64::from_ptr(self.start.add(at).cast_mut().cast()) };
        u64::from_le(word.load(Relaxed))
    }

    /// Appends the `len` bytes at `at` to `out`; `false`, and nothing appended, if they are not
    /// all inside the page.
    #[inline]
    pub fn copy_to(self, at: usize, len: usize, out: &mut Vec<u8>) -> bool {
        if !self.fits(at, len) {
            return false;
        }
        out.reserve(len);
        // SAFETY: source inside the page; `reserve` made room behind `out`'s last byte, and the
        // bytes up to the new length are initialised by the copy.
        unsafe {
            self.start.add(at).copy_to_nonoverlapping(out.as_mut_ptr().add(out.len()), len);
            out.set_len(out.len() + len);
        }
        true
    }

    /// Fills `out` from `at`; `false`, and `out` untouched, if that is not all inside the page.
    #[inline]
    pub fn copy_into(self, at: usize, out: &mut [u8]) -> bool {
        if !self.fits(at, out.len()) {
            return false;
        }
        // SAFETY: source inside the page; `out` is the caller's own memory.
        unsafe { self.start.add(at).copy_to_nonoverlapping(out.as_mut_ptr(), out.len()) };
        true
    }

    /// How the `len` bytes at `at` compare with `key`; bytes outside the page compare as less.
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
                    self.start.add(at + i).cast::<u64>().read_unaligned(),
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
            let a = unsafe { self.start.add(at + i).read_volatile() };
            if a != key[i] {
                return a.cmp(&key[i]);
            }
            i += 1;
        }
        len.cmp(&key.len())
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
}
