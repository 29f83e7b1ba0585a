//! How often this process asked for what it wrote to be on the drive.
//!
//! A commit that claims to be durable and flushes nothing would win any comparison. So the three
//! calls by which a Unix program flushes are defined here, in front of the C library's: each is
//! counted and passed on to the kernel. That holds for everything in the process, the engines in
//! shared libraries included, since the dynamic linker looks into the program first; and for
//! Millpond, whose system calls go through the C library here (rustix's feature `use-libc`).
//!
//! What is not counted: writes to a file opened with `O_DSYNC`, as LMDB writes its last page of a
//! commit, and flushes by io_uring, which no engine here uses.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

static CALLS: AtomicU64 = AtomicU64::new(0);

/// Calls of `fsync`, `fdatasync` and `msync` with `MS_SYNC` by this process so far.
pub fn calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

fn note() {
    CALLS.fetch_add(1, Ordering::Relaxed);
}

/// The C library's `fsync`, counted.
// SAFETY: the name is the C library's, and so are its type and what it does.
#[unsafe(no_mangle)]
pub extern "C" fn fsync(file: c_int) -> c_int {
    note();
    // SAFETY: a system call with one number; the kernel checks it.
    unsafe { libc::syscall(libc::SYS_fsync, file) as c_int }
}

/// The C library's `fdatasync`, counted.
// SAFETY: as of `fsync`.
#[unsafe(no_mangle)]
pub extern "C" fn fdatasync(file: c_int) -> c_int {
    note();
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_fdatasync, file) as c_int }
}

/// The C library's `msync`, counted where it waits for the drive.
///
/// # Safety
/// None is needed: the kernel checks the range, and returns an error.
// SAFETY: as of `fsync`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msync(start: *mut c_void, len: usize, flags: c_int) -> c_int {
    if flags & libc::MS_SYNC != 0 {
        note();
    }
    // SAFETY: the kernel checks the range, and changes none of its bytes.
    unsafe { libc::syscall(libc::SYS_msync, start, len, flags) as c_int }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_flush_a_file_is_counted_and_still_fails_as_it_should() {
        let file = tempfile::tempfile().unwrap();
        let before = calls();
        file.sync_all().unwrap();
        file.sync_data().unwrap();
        rustix::fs::fdatasync(&file).unwrap();
        // Other tests of this process may flush meanwhile.
        assert!(calls() >= before + 3);
        assert_eq!(fsync(-1), -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EBADF));
        assert_eq!(fdatasync(-1), -1);
    }
}
