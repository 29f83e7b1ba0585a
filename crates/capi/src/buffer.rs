//! Buffers for bytes that the library returns.

use std::ffi::c_void;

use crate::guard::guard;
use crate::pointer::exclusive;
use crate::status::{Failure, mp_status};

/// Bytes that the library returns: a value, a key, a report. Initialise it with MP_BUFFER_INIT,
/// pass it to any number of calls, and free it with mp_buffer_free. Each call replaces the content
/// and reuses the memory. A copy of the struct is not a buffer of its own.
#[repr(C)]
pub struct mp_buffer {
    /// The bytes, followed by a zero that does not count. NULL until a call has filled it.
    pub data: *mut c_void,
    /// Number of bytes.
    pub len: usize,
    /// Bytes of its memory.
    pub capacity: usize,
}

impl mp_buffer {
    /// Runs `fill` on the buffer's bytes as a vector, and puts the vector back.
    pub(crate) fn with<R>(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        /// Puts the vector back, also if `fill` panics.
        struct Back<'b>(&'b mut mp_buffer, Vec<u8>);
        impl Drop for Back<'_> {
            fn drop(&mut self) {
                let mut bytes = std::mem::ManuallyDrop::new(std::mem::take(&mut self.1));
                self.0.len = bytes.len();
                // The zero behind.
                bytes.push(0);
                self.0.capacity = bytes.capacity();
                self.0.data = bytes.as_mut_ptr().cast();
            }
        }
        let bytes = self.take();
        let mut back = Back(self, bytes);
        fill(&mut back.1)
    }

    /// Takes the bytes, and leaves the buffer empty.
    fn take(&mut self) -> Vec<u8> {
        let (data, len, capacity) = (self.data, self.len, self.capacity);
        (self.data, self.len, self.capacity) = (std::ptr::null_mut(), 0, 0);
        if data.is_null() {
            return Vec::new();
        }
        // SAFETY: a buffer whose `data` is not null was filled by `with`, from a vector of these
        // bytes with this length and capacity that nobody else has: callers do not change or copy
        // it.
        unsafe { Vec::from_raw_parts(data.cast(), len, capacity) }
    }

    /// Returns `true` if `byte` is in the buffer's memory.
    pub(crate) fn has(&self, byte: *const c_void) -> bool {
        !self.data.is_null()
            && (0..self.capacity).contains(&byte.addr().wrapping_sub(self.data.addr()))
    }

    /// Replaces the buffer's bytes.
    pub(crate) fn set(&mut self, bytes: &[u8]) {
        self.with(|there| {
            there.clear();
            there.extend_from_slice(bytes);
        });
    }
}

/// Returns the buffer at `pointer`.
///
/// # Safety
/// Same as [`exclusive`].
pub(crate) unsafe fn buffer<'a>(
    pointer: *mut mp_buffer,
    what: &str,
) -> Result<&'a mut mp_buffer, Failure> {
    // SAFETY: the caller's promise.
    unsafe { exclusive(pointer, what) }
}

/// Frees a buffer's memory and empties the buffer, so that freeing it again does nothing. NULL is
/// allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mp_buffer_free(buffer: *mut mp_buffer) {
    guard(|| {
        // SAFETY: the crate's contract.
        if let Some(buffer) = unsafe { buffer.as_mut() } {
            drop(buffer.take());
        }
        Ok(mp_status::MP_OK)
    });
}
