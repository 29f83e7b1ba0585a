//! Directory pages: 2ᵇ references to other pages, and one byte beside each.
//!
//! ```text
//! offset  size
//!      0    32  the common page header
//!     32    32  what the structure says of the page as a whole
//!     64    2ᵇ  one byte per reference: what the structure says of it
//! 64 + 2ᵇ 8·2ᵇ  the references: swips, in the order of the bytes
//! ```
//! `b` is the largest for which all of this fits on a page: 5 with 512 bytes, 8 with 4 KiB, 12 with
//! 64 KiB. A power of two makes the way to a reference a shift and a mask of a hash or a number.

/// Offset of the bytes.
pub const DIRECTORY_HEADER: usize = 64;

/// The form of the directory pages of some page size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Directory {
    bits: u32,
}

impl Directory {
    /// The form at a page size in bytes.
    pub const fn of(page_size: usize) -> Directory {
        let mut bits = 0;
        while DIRECTORY_HEADER + (9 << (bits + 1)) <= page_size && bits < 16 {
            bits += 1;
        }
        Directory { bits }
    }

    /// Binary logarithm of the fan-out.
    #[inline(always)]
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// Number of references.
    #[inline(always)]
    pub const fn fan_out(self) -> usize {
        1 << self.bits
    }

    /// Returns the offset of the byte beside reference `i`.
    #[inline(always)]
    pub const fn byte_at(self, i: usize) -> usize {
        debug_assert!(i < self.fan_out(), "a directory has that many references");
        DIRECTORY_HEADER + i
    }

    /// Returns the offset of reference `i`.
    #[inline(always)]
    pub const fn swip_at(self, i: usize) -> usize {
        // The place behind the last reference is where they end.
        debug_assert!(i <= self.fan_out(), "a directory has that many references");
        DIRECTORY_HEADER + (1 << self.bits) + 8 * i
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_references_fit_and_are_aligned() {
        for size in [512usize, 1024, 4096, 8192, 16384, 32768, 65536] {
            let form = Directory::of(size);
            assert!(form.swip_at(form.fan_out() - 1) + 8 <= size);
            assert!(DIRECTORY_HEADER + 18 * form.fan_out() > size, "twice as many do not fit");
            assert_eq!(form.swip_at(0) % 8, 0);
        }
        assert_eq!(Directory::of(4096).fan_out(), 256);
    }
}
