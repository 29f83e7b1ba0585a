//! View of the frames' policy metadata, independent of the host's layout.
//!
//! A simulator keeps a dense vector; a live pool keeps each frame's line in a header array with
//! its own stride. Both pass a [`Frames`] view to the policy. This file needs `unsafe`.

use std::marker::PhantomData;

use millpond_base::FrameId;

use crate::hook::HitHook;

/// A view of every frame's `Meta`: a base, a stride and a length.
pub struct Frames<'a, T: HitHook> {
    base: *const u8,
    stride: usize,
    len: u32,
    _metas: PhantomData<&'a T::Meta>,
}

// Written by hand, since a derive would require that T itself is Clone.
impl<T: HitHook> Clone for Frames<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: HitHook> Copy for Frames<'_, T> {}

// SAFETY: a `Frames` only gives out `&T::Meta`, and `T::Meta: Send + Sync`.
unsafe impl<T: HitHook> Send for Frames<'_, T> {}
// SAFETY: as above.
unsafe impl<T: HitHook> Sync for Frames<'_, T> {}

impl<'a, T: HitHook> Frames<'a, T> {
    /// Creates the view of a dense slice; frames beyond `u32::MAX` are left out.
    #[inline(always)]
    pub fn of(metas: &'a [T::Meta]) -> Frames<'a, T> {
        Frames {
            base: metas.as_ptr().cast(),
            stride: size_of::<T::Meta>(),
            len: u32::try_from(metas.len()).unwrap_or(u32::MAX),
            _metas: PhantomData,
        }
    }

    /// Creates the view of `len` metas that are `stride` bytes apart, the first one at `base`.
    ///
    /// # Safety
    /// For each `i < len`, `base + i * stride` must be aligned for `T::Meta`, point to a valid one
    /// inside one allocation, and stay valid and not mutably borrowed for `'a`.
    pub unsafe fn strided(base: *const u8, stride: usize, len: u32) -> Frames<'a, T> {
        Frames { base, stride, len, _metas: PhantomData }
    }

    /// Views the frames' metadata as that of hot half `U`.
    ///
    /// # Safety
    /// Each meta of the view must begin with a valid `U::Meta`, for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn cast<U: HitHook>(self) -> Frames<'a, U> {
        Frames { base: self.base, stride: self.stride, len: self.len, _metas: PhantomData }
    }

    /// Views the frames for another hot half with the same `Meta`, for policies that wrap another
    /// policy.
    #[inline(always)]
    pub fn alike<U: HitHook<Meta = T::Meta>>(self) -> Frames<'a, U> {
        Frames { base: self.base, stride: self.stride, len: self.len, _metas: PhantomData }
    }

    /// Returns the number of frames.
    #[inline(always)]
    pub fn len(self) -> u32 {
        self.len
    }

    /// Returns `true` if there is no frame.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns the metadata of `frame`.
    ///
    /// # Panics
    /// If `frame` is not below [`Frames::len`]: a policy that invents frames is broken, and
    /// reading another object's memory would be worse.
    #[inline(always)]
    pub fn meta(self, frame: FrameId) -> &'a T::Meta {
        if frame.0 >= self.len {
            no_frame(frame.0, self.len);
        }
        // SAFETY: `of` takes base, stride and len from a slice that lives for 'a, `strided` makes
        // its caller promise the same; the index was checked just now.
        unsafe { &*self.base.add(frame.index() * self.stride).cast() }
    }
}

/// Panics for a missing frame. The function is separate and takes numbers, since callers that do
/// not panic would otherwise store a message's arguments to memory.
#[cold]
#[inline(never)]
fn no_frame(frame: u32, len: u32) -> ! {
    panic!("no frame {frame}: the pool has {len}")
}

impl<T: HitHook> Frames<'_, T> {
    /// Prefetches the metadata of `frame` into the cache, if the machine can. A policy that will
    /// examine many frames prefetches all of them first.
    #[inline(always)]
    pub fn prefetch(self, frame: FrameId) {
        #[cfg(target_arch = "x86_64")]
        if frame.0 < self.len {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: as in `meta` the address lies inside the view, and nothing is read.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(self.base.add(frame.index() * self.stride).cast())
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = frame;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use millpond_base::sync::atomic::AtomicU32;

    use crate::hook::Hit;

    struct Counts;

    impl HitHook for Counts {
        type Meta = AtomicU32;
        type Params = ();
        const HIT: Hit = Hit::Meta;
    }

    #[test]
    fn a_slice_and_a_strided_array_give_the_same_metas() {
        #[repr(align(64))]
        struct Line {
            meta: AtomicU32,
            _rest: [u32; 15],
        }
        let lines: Vec<Line> =
            (0..5).map(|i| Line { meta: AtomicU32::new(i), _rest: [9; 15] }).collect();
        // SAFETY: `meta` is the first field of each of the five lines, which outlive the view.
        let strided = unsafe {
            Frames::<Counts>::strided((&raw const lines[0].meta).cast(), size_of::<Line>(), 5)
        };
        let dense: Vec<AtomicU32> = (0..5).map(AtomicU32::new).collect();
        let sliced = Frames::<Counts>::of(&dense);
        for i in 0..5 {
            assert_eq!(strided.meta(FrameId(i)).load(Relaxed), i);
            assert_eq!(sliced.meta(FrameId(i)).load(Relaxed), i);
        }
        assert_eq!((strided.len(), sliced.len()), (5, 5));
    }

    #[test]
    #[should_panic(expected = "no frame 3")]
    fn a_frame_outside_the_pool_is_never_read() {
        let dense: Vec<AtomicU32> = (0..3).map(AtomicU32::new).collect();
        Frames::<Counts>::of(&dense).meta(FrameId(3));
    }
}
