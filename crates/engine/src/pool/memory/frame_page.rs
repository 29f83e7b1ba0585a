//! The page behind a frame's header: its address, and three ways to reach its bytes. This file
//! needs `unsafe`.
//!
//! Frames of the pool, frames of the twin and anchors are laid out alike: a header, and the page
//! [`FRAME_HEADER_BYTES`] behind its start.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::page::View;
use crate::pool::frame::{FRAME_HEADER_BYTES, FrameHeader};
use crate::pool::swip::Swip;

/// Returns the address of the page behind `frame`.
///
/// # Safety
/// `frame` is the header of a mapped frame or anchor.
#[inline(always)]
pub(crate) unsafe fn start(frame: NonNull<FrameHeader>) -> *mut u8 {
    // SAFETY: header and page are one allocation.
    unsafe { frame.as_ptr().cast::<u8>().add(FRAME_HEADER_BYTES) }
}

/// Returns the page behind `frame`, to be read raw; the bytes count only after validation.
///
/// # Safety
/// `frame` is the header of a frame or anchor with a page of `page_size` bytes, mapped for `'a`.
#[inline(always)]
pub(crate) unsafe fn view<'a>(frame: NonNull<FrameHeader>, page_size: usize) -> View<'a> {
    // SAFETY: the caller's promise; pages are aligned as headers are, to 64.
    unsafe { View::raw(start(frame), page_size) }
}

/// Returns the bytes of the page behind `frame`, to be read.
///
/// # Safety
/// The conditions of [`view`], and no thread writes to the page during `'a`: the caller holds the
/// frame's latch.
#[inline(always)]
pub(crate) unsafe fn bytes<'a>(frame: NonNull<FrameHeader>, page_size: usize) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start(frame), page_size) }
}

/// Returns the bytes of the page behind `frame`, to be changed.
///
/// # Safety
/// The conditions of [`view`], and the caller holds the frame's latch exclusively during `'a`;
/// optimistic readers read raw and validate.
#[inline(always)]
pub(crate) unsafe fn bytes_mut<'a>(frame: NonNull<FrameHeader>, page_size: usize) -> &'a mut [u8] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(start(frame), page_size) }
}

/// Prefetches the cache lines of `frame`'s header that every access reads, and the first `len`
/// bytes of its page. Reads nothing: `frame` may be any address.
#[inline(always)]
pub(crate) fn prefetch(frame: NonNull<FrameHeader>, len: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

        use crate::pool::frame::POLICY_LINE;

        let start = frame.as_ptr().cast::<u8>();
        for at in [0, POLICY_LINE]
            .into_iter()
            .chain((0..len).step_by(64).map(|at| FRAME_HEADER_BYTES + at))
        {
            // SAFETY: the instruction is part of every x86-64, changes nothing and cannot fault,
            // whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(at).cast()) };
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = (frame, len);
}

/// Stores the swip at byte offset `at` of the page behind `frame`, atomically.
///
/// # Safety
/// The conditions of [`bytes_mut`].
#[inline]
pub(crate) unsafe fn store_swip(
    frame: NonNull<FrameHeader>,
    page_size: usize,
    at: usize,
    word: Swip,
) {
    if at.checked_add(8).is_none_or(|end| end > page_size) || at & 7 != 0 {
        debug_assert!(false, "a swip at byte {at}");
        return;
    }
    // SAFETY: inside the page and aligned, as checked; readers load the word atomically.
    let place = unsafe { AtomicU64::from_ptr(start(frame).add(at).cast()) };
    place.store(word.0.to_le(), Ordering::Release);
}
