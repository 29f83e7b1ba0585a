//! Reads of memory that other threads may be changing. This file needs `unsafe`.
//!
//! The bytes that a [`View`](super::View) reads may be torn, and count only once the reader's guard
//! has validated: a race by design. ThreadSanitizer knows neither that nor the fences that make the
//! validation right (loom proves those: `tests/loom_models/latch.rs`). So in a build for it (`--cfg
//! tsan`, see `cargo xtask sanitize thread`), these reads, and nothing else, are instructions that
//! ThreadSanitizer does not see. It still checks every write to a page against every other write,
//! all reads that do not go through a view, and everything outside of pages.
//!
//! Each function requires its bytes to be mapped; `word` and `half` also require them to be
//! aligned.

#[cfg(not(tsan))]
mod reads {
    use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};

    /// # Safety
    /// As the module says.
    #[inline(always)]
    pub unsafe fn byte(at: *const u8) -> u8 {
        // SAFETY: the caller's.
        unsafe { at.read_volatile() }
    }

    /// # Safety
    /// As the module says.
    #[inline(always)]
    pub unsafe fn half(at: *const u8) -> u16 {
        debug_assert!(at.addr().is_multiple_of(2), "half words are read in one piece");
        // SAFETY: the caller's.
        unsafe { AtomicU16::from_ptr(at.cast_mut().cast()) }.load(Relaxed)
    }

    /// # Safety
    /// As the module says.
    #[inline(always)]
    pub unsafe fn word(at: *const u8) -> u64 {
        debug_assert!(at.addr().is_multiple_of(8), "words are read in one piece");
        // SAFETY: the caller's.
        unsafe { AtomicU64::from_ptr(at.cast_mut().cast()) }.load(Relaxed)
    }

    /// # Safety
    /// As the module says.
    #[inline(always)]
    pub unsafe fn loose_u32(at: *const u8) -> u32 {
        // SAFETY: the caller's.
        unsafe { at.cast::<u32>().read_unaligned() }
    }

    /// # Safety
    /// As the module says.
    #[inline(always)]
    pub unsafe fn loose_u64(at: *const u8) -> u64 {
        // SAFETY: the caller's.
        unsafe { at.cast::<u64>().read_unaligned() }
    }

    /// # Safety
    /// As the module says.
    #[inline(always)]
    pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the caller's.
        unsafe { from.copy_to_nonoverlapping(to, len) };
    }
}

#[cfg(tsan)]
mod reads {
    use std::arch::asm;

    macro_rules! read {
        ($name:ident, $type:ty, $class:ident, $form:literal) => {
            /// # Safety
            /// As the module says.
            pub unsafe fn $name(at: *const u8) -> $type {
                let value: $type;
                // SAFETY: a load of bytes that the caller knows to be mapped.
                unsafe {
                    asm!($form, out($class) value, in(reg) at,
                         options(nostack, readonly, preserves_flags));
                }
                value
            }
        };
    }

    read!(byte, u8, reg_byte, "mov {}, byte ptr [{}]");
    read!(half, u16, reg, "mov {:x}, word ptr [{}]");
    read!(word, u64, reg, "mov {}, qword ptr [{}]");
    read!(loose_u32, u32, reg, "mov {:e}, dword ptr [{}]");
    read!(loose_u64, u64, reg, "mov {}, qword ptr [{}]");

    /// # Safety
    /// As the module says.
    pub unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: the caller's; the direction flag is clear, as everywhere.
        unsafe {
            asm!("rep movsb", inout("rsi") from => _, inout("rdi") to => _, inout("rcx") len => _,
                 options(nostack, preserves_flags));
        }
    }
}

pub(super) use reads::*;
