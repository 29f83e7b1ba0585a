//! The sizes that a page can have.

use std::fmt;

/// A page size that does not exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a page of {bytes} bytes is not possible: choose 4096, 8192, 16384, 32768 or 65536")]
pub struct PageSizeError {
    /// Requested size, in bytes.
    pub bytes: u64,
}

/// Size of all pages of a store, fixed when the store is created: 4 to 64 KiB, a power of two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageSize(u32);

impl PageSize {
    /// 4 KiB.
    pub const KIB_4: PageSize = PageSize(4 << 10);
    /// 8 KiB.
    pub const KIB_8: PageSize = PageSize(8 << 10);
    /// 16 KiB.
    pub const KIB_16: PageSize = PageSize(16 << 10);
    /// 32 KiB.
    pub const KIB_32: PageSize = PageSize(32 << 10);
    /// 64 KiB.
    pub const KIB_64: PageSize = PageSize(64 << 10);
    /// 512 bytes: for tests, which want trees to split and the pool to evict all the time.
    /// [`PageSize::new`] does not offer it, and direct I/O may refuse it.
    pub const TINY: PageSize = PageSize(512);
    /// All sizes on offer, the smallest first.
    pub const ALL: [PageSize; 5] =
        [Self::KIB_4, Self::KIB_8, Self::KIB_16, Self::KIB_32, Self::KIB_64];

    /// Returns the page size of `bytes`, if there is one.
    ///
    /// # Errors
    /// If pages cannot have that size.
    pub fn new(bytes: u64) -> Result<PageSize, PageSizeError> {
        Self::ALL.into_iter().find(|s| u64::from(s.0) == bytes).ok_or(PageSizeError { bytes })
    }

    /// Returns the page size that a store names, which may also be [`PageSize::TINY`].
    pub(crate) fn of_store(bytes: u32) -> Option<PageSize> {
        Self::ALL.into_iter().chain([Self::TINY]).find(|s| s.0 == bytes)
    }

    /// Returns the size in bytes.
    #[inline]
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }

    /// Returns the number of bytes of a unit: a compressed page takes a number of units. A unit is
    /// 512 bytes, or a sixteenth of a page if that is more; an eighth of a page of 512 bytes.
    #[inline]
    pub const fn unit(self) -> usize {
        match self.0 {
            ..4096 => self.0 as usize / 8,
            4096..8192 => 512,
            8192.. => self.0 as usize / 16,
        }
    }

    /// Returns the number of units of a page: 16 at most.
    #[inline]
    pub const fn units(self) -> u64 {
        self.bytes_u64() / self.unit() as u64
    }

    /// Returns the size in bytes, in the type of offsets.
    #[inline]
    pub const fn bytes_u64(self) -> u64 {
        self.0 as u64
    }
}

impl TryFrom<u64> for PageSize {
    type Error = PageSizeError;
    fn try_from(bytes: u64) -> Result<PageSize, PageSizeError> {
        PageSize::new(bytes)
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 >> 10 {
            0 => write!(f, "{} bytes", self.0),
            kib => write!(f, "{kib} KiB"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_five_sizes_and_no_other() {
        for (size, kib) in PageSize::ALL.into_iter().zip([4u64, 8, 16, 32, 64]) {
            assert_eq!(PageSize::new(kib << 10), Ok(size));
            assert_eq!(size.bytes_u64(), kib << 10);
            assert_eq!(size.to_string(), format!("{kib} KiB"));
        }
        assert_eq!(PageSize::TINY.to_string(), "512 bytes");
        for bytes in [0, 1, 512, 2048, 4095, 4097, 12288, 131_072, u64::MAX] {
            let error = PageSize::new(bytes).unwrap_err();
            assert!(error.to_string().contains(&bytes.to_string()), "{error}");
        }
    }
}
