//! Giving back the free end of a store's file, in two steps.
//!
//! First the store forgets the free pages at its end: from then on none of them is handed out, but
//! as what a store that grows gets anew. Then, when it is durable that they are free, which is for
//! the caller to see to, the file is cut off where the store ends by then. If it grew in between,
//! it is cut off behind that; what had been forgotten and came back was free in between.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::store::PageStore;
use super::store_error::AllocateError;

/// Bytes that a store keeps, whatever is free: what it had when it was new.
const LEAST_BYTES: u64 = 1 << 20;

/// Lengths of files are multiples of this, as direct I/O wants them.
const BLOCK: u64 = 4096;

impl PageStore {
    /// Forgets the free pages behind the last that is in use. Answers how many there were.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn forget_tail(&self) -> Result<u64, AllocateError> {
        let _gate = self.usable()?;
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let page_bytes = self.page_size().bytes_u64();
        let (least, unit) = (LEAST_BYTES.div_ceil(page_bytes), BLOCK.div_ceil(page_bytes));
        let mut free = self.free_map();
        let old = free.pages();
        let pages = free.cut(least, unit, |page| self.is_reserved(page));
        // Before `free` is unlocked, as where it grows.
        self.pages.store(pages, Ordering::Release);
        Ok(old - pages)
    }

    /// Cuts the file off where the store ends. It must be durable that all pages that
    /// [`PageStore::forget_tail`] forgot are free. Answers by how many bytes the file is shorter.
    ///
    /// # Errors
    /// If the device fails; the file is then as long as before.
    pub fn cut_off(&self) -> Result<u64, AllocateError> {
        let _gate = self.usable()?;
        let _growing = self.growing.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.device.length();
        self.device.shrink(self.pages() * self.page_size().bytes_u64())?;
        Ok(old - self.device.length())
    }
}
