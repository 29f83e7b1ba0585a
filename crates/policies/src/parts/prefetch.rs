//! Prefetching of memory that will be needed soon.
//!
//! A host that knows the next references can load their table entries while it works on the
//! present one. That pays only if a table is larger than the caches near a core.

/// Starts loading the cache line of `slice[index]`, even if the index is out of bounds. Does
/// nothing on processors without this instruction.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of every x86-64; it changes no memory and no register,
        // and cannot fault, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(index).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (slice, index);
}
