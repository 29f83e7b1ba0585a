//! Arrays that begin as zeros and cost nothing until they are used.
//!
//! A policy's arrays have an entry for each frame, and a pool may have millions. The system hands
//! out zeroed memory page by page as it is first touched, so that an array whose empty entry is
//! all zeros takes neither time nor memory when a pool is opened.

use zerocopy::FromZeros;

/// An array of `len` zeroed entries. Aborts as `vec!` does where memory is refused.
pub fn zeroed<T: FromZeros>(len: usize) -> Vec<T> {
    match T::new_vec_zeroed(len) {
        Ok(zeros) => zeros,
        Err(_) => match std::alloc::Layout::array::<T>(len) {
            Ok(layout) => std::alloc::handle_alloc_error(layout),
            Err(_) => panic!("an array of {len} entries is larger than the address space"),
        },
    }
}
