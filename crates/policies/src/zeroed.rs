//! Types whose fresh value is memory full of zeros. This file needs `unsafe`.
//!
//! A live pool has millions of frames, most of which hold no page for a long time: to write each
//! one's metadata when a store opens would touch all its memory. Memory that was never written is
//! zeros. So a hot half whose fresh `Meta` is zeros returns a [`Zeroed`], and a pool then does not
//! touch its frames until they are handed out.

use std::marker::PhantomData;

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

/// Implements [`Zeros`] for a struct, all of whose fields are named and implement it:
/// `zeros!(Meta { count, last })`.
#[macro_export]
macro_rules! zeros {
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
