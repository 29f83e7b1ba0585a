//! Ranges of keys.

use std::ffi::c_void;
use std::ops::Bound;

use millpond::KeyRange;

use crate::pointer::bytes;
use crate::status::Failure;

/// No bound: up to the end of the tree.
pub const MP_UNBOUNDED: i32 = 0;
/// The range includes the key itself.
pub const MP_INCLUDED: i32 = 1;
/// The range excludes the key itself.
pub const MP_EXCLUDED: i32 = 2;
/// Only as the low bound: all keys that begin with these bytes. The high bound must be unbounded.
pub const MP_PREFIX: i32 = 3;

/// One end of a range.
#[repr(C)]
pub struct mp_bound {
    /// MP_UNBOUNDED, MP_INCLUDED, MP_EXCLUDED or MP_PREFIX.
    pub kind: i32,
    /// The key; unused if unbounded.
    pub key: *const c_void,
    /// Number of bytes.
    pub len: usize,
}

/// A range of keys. All zeros mean all keys, and so does a NULL pointer.
#[repr(C)]
pub struct mp_range {
    /// Lower bound of the range.
    pub low: mp_bound,
    /// Upper bound of the range.
    pub high: mp_bound,
}

/// Copies the range at `range`.
///
/// # Safety
/// `range` is null, or points to a range whose keys may be read.
pub(crate) unsafe fn key_range(range: *const mp_range) -> Result<KeyRange, Failure> {
    // SAFETY: the caller's promise.
    let Some(range) = (unsafe { range.as_ref() }) else { return Ok(KeyRange::ALL) };
    if range.low.kind == MP_PREFIX {
        if range.high.kind != MP_UNBOUNDED {
            let why = "the high bound of a prefix must be MP_UNBOUNDED";
            return Err(Failure::Misuse(why.to_string()));
        }
        // SAFETY: the caller's promise.
        let prefix = unsafe { bytes(range.low.key, range.low.len, "the prefix") }?;
        return Ok(KeyRange::of_prefix::<Vec<u8>>(prefix));
    }
    // SAFETY: the caller's promise.
    let start = unsafe { bound(&range.low, "the low bound") }?;
    // SAFETY: the caller's promise.
    let end = unsafe { bound(&range.high, "the high bound") }?;
    Ok(KeyRange { start, end })
}

/// # Safety
/// Same as [`key_range`].
unsafe fn bound(of: &mp_bound, what: &str) -> Result<Bound<Vec<u8>>, Failure> {
    // SAFETY: the caller's promise.
    let key = || unsafe { bytes(of.key, of.len, what) }.map(<[u8]>::to_vec);
    match of.kind {
        MP_UNBOUNDED => Ok(Bound::Unbounded),
        MP_INCLUDED => key().map(Bound::Included),
        MP_EXCLUDED => key().map(Bound::Excluded),
        other => Err(Failure::Misuse(format!("{what} has the unknown kind {other}"))),
    }
}
