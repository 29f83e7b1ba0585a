//! Keys of several parts, in the encoding that typed trees of other languages have: their bytes
//! are in the order of the keys.

use std::ffi::c_void;

use millpond::codec::{DecodeKey, EncodeKey, Reader};

use crate::buffer::{buffer, mp_buffer};
use crate::entry::mp_slice;
use crate::guard::guard;
use crate::pointer::{bytes, exclusive, place, set};
use crate::status::{Failure, mp_status};

/// # Safety
/// Same as [`buffer`].
unsafe fn push(key: *mut mp_buffer, part: impl FnOnce(&mut Vec<u8>)) -> mp_status {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe { buffer(key, "the key") }?.with(part);
        Ok(mp_status::MP_OK)
    })
}

/// Takes a part from the front of the rest of a key.
///
/// # Safety
/// `rest` points to a slice whose bytes may be read.
unsafe fn take<T: for<'a> DecodeKey<'a>>(rest: *mut mp_slice) -> Result<T, Failure> {
    // SAFETY: the caller's promise.
    let rest = unsafe { exclusive(rest, "what is left of the key") }?;
    // SAFETY: the caller's promise.
    let there = unsafe { bytes(rest.data, rest.len, "what is left of the key") }?;
    let mut reader = Reader::new(there);
    let part = T::decode_part(&mut reader).map_err(|error| Failure::Misuse(error.to_string()))?;
    let left = reader.rest();
    (rest.data, rest.len) = (left.as_ptr().cast(), left.len());
    Ok(part)
}

/// # Safety
/// Same as [`take`].
unsafe fn take_into<T: for<'a> DecodeKey<'a>>(rest: *mut mp_slice, part: *mut T) -> mp_status {
    guard(|| {
        let part = place(part, "the place for the part")?;
        // SAFETY: the caller's promise; `place` returned it.
        unsafe { set(part, take(rest)?) };
        Ok(mp_status::MP_OK)
    })
}

/// Appends a u32 to a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_key_push_u32(key: *mut mp_buffer, part: u32) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { push(key, |out| part.encode_part(out)) }
}

/// Takes a u32 from the front of the rest of a key. Returns MP_MISUSE if the rest does not begin
/// with one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_key_take_u32(rest: *mut mp_slice, part: *mut u32) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { take_into(rest, part) }
}

/// Appends a u64 to a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_key_push_u64(key: *mut mp_buffer, part: u64) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { push(key, |out| part.encode_part(out)) }
}

/// Takes a u64 from the front of the rest of a key. Returns MP_MISUSE if the rest does not begin
/// with one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_key_take_u64(rest: *mut mp_slice, part: *mut u64) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { take_into(rest, part) }
}

/// Appends an i32 to a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_key_push_i32(key: *mut mp_buffer, part: i32) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { push(key, |out| part.encode_part(out)) }
}

/// Takes an i32 from the front of the rest of a key. Returns MP_MISUSE if the rest does not begin
/// with one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_key_take_i32(rest: *mut mp_slice, part: *mut i32) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { take_into(rest, part) }
}

/// Appends an i64 to a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_key_push_i64(key: *mut mp_buffer, part: i64) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { push(key, |out| part.encode_part(out)) }
}

/// Takes an i64 from the front of the rest of a key. Returns MP_MISUSE if the rest does not begin
/// with one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_key_take_i64(rest: *mut mp_slice, part: *mut i64) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { take_into(rest, part) }
}

/// Appends an f64 to a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_key_push_f64(key: *mut mp_buffer, part: f64) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { push(key, |out| part.encode_part(out)) }
}

/// Takes an f64 from the front of the rest of a key. Returns MP_MISUSE if the rest does not begin
/// with one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_key_take_f64(rest: *mut mp_slice, part: *mut f64) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { take_into(rest, part) }
}

/// Appends a bool to a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_key_push_bool(key: *mut mp_buffer, part: bool) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { push(key, |out| part.encode_part(out)) }
}

/// Takes a bool from the front of the rest of a key. Returns MP_MISUSE if the rest does not begin
/// with one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_key_take_bool(rest: *mut mp_slice, part: *mut bool) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { take_into(rest, part) }
}

/// Appends a string, or any bytes, to a key of several parts. The bytes may be in the key itself.
/// (A key that is one string is its bytes, and needs no function.)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_key_push_bytes(
    key: *mut mp_buffer,
    part: *const c_void,
    len: usize,
) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        let part = unsafe { bytes(part, len, "the part") }?;
        // A copy, since `part` may be in the key itself, whose memory moves as it grows.
        let part = part.to_vec();
        // SAFETY: the crate's contract.
        Ok(unsafe { push(key, |out| part.encode_part(out)) })
    })
}

/// Takes a string, or any bytes, from the front of the rest of a key of several parts. The rest
/// must not be in the buffer `part`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_key_take_bytes(rest: *mut mp_slice, part: *mut mp_buffer) -> mp_status {
    guard(|| {
        // SAFETY: the crate's contract.
        unsafe {
            let part = buffer(part, "the buffer")?;
            if part.has(exclusive(rest, "what is left of the key")?.data) {
                let text = "what is left of the key is in the buffer for the part: use another one";
                return Err(Failure::Misuse(text.to_string()));
            }
            part.set(&take::<Vec<u8>>(rest)?);
        }
        Ok(mp_status::MP_OK)
    })
}

/// Empties a buffer for another key; its memory stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_key_clear(key: *mut mp_buffer) -> mp_status {
    // SAFETY: the crate's contract.
    unsafe { push(key, Vec::clear) }
}
