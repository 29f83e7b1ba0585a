//! Types whose fresh value is memory full of zeros, and arrays of them. This file needs `unsafe`.
//!
//! A live pool has millions of frames, most of which hold no page for a long time: to write each
//! one's metadata when a store opens would touch all its memory. Memory that was never written is
//! zeros. So a hot half whose fresh `Meta` is zeros returns a [`Zeroed`], and a pool then does not
//! touch its frames until they are handed out. A policy's arrays have an entry for each frame, too:
//! [`zeroed`] makes one that takes neither time nor memory until it is used.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::NonNull;

use millpond_base::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};

/// A type of which memory full of zeros is a value. [`zeros!`](crate::zeros) implements it for a
/// struct.
///
/// # Safety
/// Zeros in all its bytes are a valid value, unless a model checker runs.
pub unsafe trait Zeros: Sized {}

// SAFETY: it has no bytes.
unsafe impl Zeros for () {}
// SAFETY: it has the representation of a bool, and 0 is false.
unsafe impl Zeros for AtomicBool {}
// SAFETY: it has the representation of an integer; so for those that follow.
unsafe impl Zeros for AtomicU8 {}
// SAFETY: as above.
unsafe impl Zeros for AtomicU32 {}
// SAFETY: as above.
unsafe impl Zeros for AtomicU64 {}
// SAFETY: as above.
unsafe impl Zeros for u8 {}
// SAFETY: as above.
unsafe impl Zeros for u32 {}
// SAFETY: as above.
unsafe impl Zeros for u64 {}
// SAFETY: each element is a value, and there is nothing between them.
unsafe impl<T: Zeros, const N: usize> Zeros for [T; N] {}

/// Implements [`Zeros`] for a struct, all of whose fields implement it,
/// `zeros!(Meta { count, last })` or `zeros!(Node(u32))`, or for an enum without fields, of which
/// one is named whose number is 0: `zeros!(enum FrameState::Out)`.
#[macro_export]
macro_rules! zeros {
    (enum $type:ident :: $zero:ident) => {
        const _: () = assert!($type::$zero as u8 == 0 && size_of::<$type>() == 1);
        // SAFETY: an enum of one byte without fields is its number, and 0 is that of a variant.
        unsafe impl $crate::zeroed::Zeros for $type {}
    };
    ($type:ident ($field:ty)) => {
        const _: () = {
            const fn has_zeros<T: $crate::zeroed::Zeros>() {}
            #[allow(dead_code, reason = "to be compiled is its whole use")]
            fn is_all(field: $field) -> $type {
                has_zeros::<$field>();
                $type(field)
            }
            // SAFETY: a struct is valid if its only field is, and that field's type has zeros.
            unsafe impl $crate::zeroed::Zeros for $type {}
        };
    };
    ($type:ident { $($field:ident),+ $(,)? }) => {
        const _: () = {
            fn has_zeros<T: $crate::zeroed::Zeros>(_: &T) {}
            // A field left out does not compile, nor does one that knows no zeros.
            #[allow(dead_code, reason = "to be compiled is its whole use")]
            fn all_fields_have(value: &$type) {
                let $type { $($field),+ } = value;
                $(has_zeros($field);)+
            }
            // SAFETY: a struct is valid if all its fields are, and each field's type has zeros.
            unsafe impl $crate::zeroed::Zeros for $type {}
        };
    };
}

/// A statement that zeros are a valid `M`, equal to a fresh one.
pub struct Zeroed<M>(PhantomData<fn() -> M>);

impl<M: Zeros> Zeroed<M> {
    /// The statement for `M`; `None` under a model checker, whose atomics are more than their
    /// bytes.
    pub const fn fresh() -> Option<Zeroed<M>> {
        if cfg!(feature = "model") { None } else { Some(Zeroed(PhantomData)) }
    }
}

/// Returns an array of `len` zeroed entries, whose memory the system provides as it is first
/// touched. Aborts as `vec!` does where memory is refused.
pub fn zeroed<T: Zeros + Copy>(len: usize) -> Vec<T> {
    let Ok(layout) = Layout::array::<T>(len) else {
        panic!("an array of {len} entries is larger than the address space")
    };
    if layout.size() == 0 {
        return Vec::from_iter(std::iter::repeat_n(NonNull::<T>::dangling(), len).map(|none| {
            // SAFETY: a value without bytes may be read from any address that is aligned for it.
            unsafe { none.read() }
        }));
    }
    // SAFETY: the layout has bytes.
    let Some(first) = NonNull::new(unsafe { alloc_zeroed(layout) }.cast::<T>()) else {
        handle_alloc_error(layout)
    };
    // SAFETY: the memory is this allocator's, for `len` values of `T`, and zeros are one (`Zeros`;
    // types that are `Copy` have no atomics, which a model checker would need to construct).
    unsafe { Vec::from_raw_parts(first.as_ptr(), len, len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Pair {
        a: u64,
        b: u32,
    }
    zeros!(Pair { a, b });

    #[test]
    fn an_array_of_zeros_is_what_was_asked_for() {
        let mut pairs = zeroed::<Pair>(1000);
        assert_eq!(pairs.len(), 1000);
        assert!(pairs.iter().all(|pair| *pair == Pair { a: 0, b: 0 }));
        pairs.push(Pair { a: 1, b: 2 });
        assert_eq!(pairs.last(), Some(&Pair { a: 1, b: 2 }));
        assert!(zeroed::<Pair>(0).is_empty());
        assert_eq!(zeroed::<()>(7).len(), 7);
    }
}
