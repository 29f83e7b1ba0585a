//! Directory pages: 2ᵇ references to other pages, and one byte beside each.
//!
//! ```text
//! offset  size
//!      0    32  the common page header
//!     32    32  data of the structure about the page as a whole
//!     64    2ᵇ  one byte per reference: data of the structure about it
//! 64 + 2ᵇ 8·2ᵇ  the references: swips, in the order of the bytes
//! ```
//! `b` is the largest number for which all of this fits on a page: 5 with 512 bytes, 8 with 4 KiB,
//! 12 with 64 KiB. Since the fan-out is a power of two, a shift and a mask of a hash or a number
//! find a reference.

/// Offset of the bytes beside the references.
pub const DIRECTORY_HEADER: usize = 64;

/// Layout of the directory pages of one page size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Directory {
    bits: u32,
}

impl Directory {
    /// Returns the layout for a page size in bytes.
    pub const fn of(page_size: usize) -> Directory {
        let mut bits = 0;
        while DIRECTORY_HEADER + (9 << (bits + 1)) <= page_size && bits < 16 {
            bits += 1;
        }
        Directory { bits }
    }

    /// Returns the binary logarithm of the fan-out.
    #[inline(always)]
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// Returns the number of references.
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
        // Index `fan_out` gives the end of the references.
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
