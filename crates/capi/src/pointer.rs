//! Conversion of the callers' pointers: the only module that dereferences them.

use std::ffi::{CStr, c_char, c_void};

use crate::status::Failure;

fn null(what: &str) -> Failure {
    Failure::Misuse(format!("{what} is NULL"))
}

/// Borrows a handle.
///
/// # Safety
/// `pointer` is null, or points to a `T` that nobody changes or drops during `'a`.
pub(crate) unsafe fn handle<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(what))
}

/// Borrows a handle that one thread uses at a time, or a place for a result.
///
/// # Safety
/// `pointer` is null, or points to a `T` that nobody else uses during `'a`.
pub(crate) unsafe fn exclusive<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
}

/// Takes ownership of a handle.
///
/// # Safety
/// `pointer` is null, or was made by [`give`] and not taken since.
pub(crate) unsafe fn take<T>(pointer: *mut T) -> Option<Box<T>> {
    // SAFETY: the caller's promise.
    (!pointer.is_null()).then(|| unsafe { Box::from_raw(pointer) })
}

/// Checks that a place for a result is not null, before the call has any effect.
pub(crate) fn place<T>(out: *mut T, what: &str) -> Result<*mut T, Failure> {
    if out.is_null() { Err(null(what)) } else { Ok(out) }
}

/// Gives a handle to the caller.
///
/// # Safety
/// `out` is what [`place`] returned, and may be written.
pub(crate) unsafe fn give<T>(out: *mut *mut T, handle: T) {
    // SAFETY: the caller's promise. The old content is not read, since it may be anything.
    unsafe { out.write(Box::into_raw(Box::new(handle))) };
}

/// Gives a number to the caller.
///
/// # Safety
/// Same as [`give`].
pub(crate) unsafe fn set<T>(out: *mut T, value: T) {
    // SAFETY: the caller's promise.
    unsafe { out.write(value) };
}

/// Borrows `len` bytes. If `len` is 0, `pointer` may be anything.
///
/// # Safety
/// `len` bytes at `pointer` may be read, and nobody changes them, during `'a`.
pub(crate) unsafe fn bytes<'a>(
    pointer: *const c_void,
    len: usize,
    what: &str,
) -> Result<&'a [u8], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(null(what));
    }
    if isize::try_from(len).is_err() {
        return Err(Failure::Misuse(format!("{what} has {len} bytes, more than there are")));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer.cast(), len) })
}

/// Borrows a string.
///
/// # Safety
/// `pointer` is null, or points to a string that ends in a zero and stays during `'a`.
pub(crate) unsafe fn string<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| Failure::Misuse(format!("{what} is not UTF-8")))
}

/// Borrows the name of a file, which on Unix may have any bytes.
///
/// # Safety
/// Same as [`string`].
pub(crate) unsafe fn path<'a>(
    pointer: *const c_char,
    what: &str,
) -> Result<&'a std::path::Path, Failure> {
    if pointer.is_null() {
        return Err(null(what));
    }
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(pointer) };
    Ok(std::ffi::OsStr::from_bytes(name.to_bytes()).as_ref())
}
