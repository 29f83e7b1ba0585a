//! The lock of a store file: one process may write it, or any number may read it.
//!
//! The lock is the kernel's (`flock` on the file itself). It ends with the process, for whatever
//! reason, and it also keeps a process from opening a store twice. `/proc/locks` names the holder.
//! Where that file is missing, or does not name the holder, the superblock names the process that
//! opened the store for writing.
//!
//! If a process is killed during asynchronous I/O, the kernel closes its files a little after it is
//! gone. So a lock whose holder is gone is waited for.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::options::FileOptions;
use super::system;
use crate::buffer::AlignedBuffer;
use crate::error::Errno;
use crate::error::OpenFileError;

/// Retries for a lock whose holder cannot be named: the kernel reports no id for a process that is
/// gone.
const TRIES_MAX: u32 = 200;
/// Retries for a lock whose holder is known to be gone. The kernel first finishes the requests that
/// the process had sent to a slow device.
const TRIES_MAX_GONE: u32 = 3000;
/// Time between two retries.
const PAUSE: Duration = Duration::from_millis(10);

/// Takes the lock, without waiting for a process that is alive.
pub(super) fn acquire(
    file: &File,
    path: &Path,
    options: &FileOptions,
) -> Result<(), OpenFileError> {
    let operation = if options.read_only {
        FlockOperation::NonBlockingLockShared
    } else {
        FlockOperation::NonBlockingLockExclusive
    };
    let mut tries = 0;
    loop {
        match flock(file, operation) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let pid = holder_by_kernel(file).or_else(|| holder_by_head(file, options.holder));
                tries += 1;
                let most = match pid {
                    None => TRIES_MAX,
                    Some(pid) if is_gone(pid) => TRIES_MAX_GONE,
                    Some(_) => 0,
                };
                if tries > most {
                    return Err(OpenFileError::Locked { path: path.to_path_buf(), pid });
                }
                std::thread::sleep(PAUSE);
            }
            Err(errno) => {
                return Err(OpenFileError::Io { path: path.to_path_buf(), errno: errno.into() });
            }
        }
    }
}

/// Releases the lock while the file stays open.
pub(super) fn release(file: &File) -> Result<(), Errno> {
    flock(file, FlockOperation::Unlock).map_err(Errno::from)
}

/// Returns `true` if process `pid` no longer exists; `false` where the system cannot tell.
fn is_gone(pid: u32) -> bool {
    Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{pid}")).exists()
}

fn holder_by_kernel(file: &File) -> Option<u32> {
    let place = system::place_in_locks(&file.metadata().ok()?)?;
    holder_in(&std::fs::read_to_string("/proc/locks").ok()?, &place)
}

/// Returns the holder of the `flock` on `place` in a listing in the format of `/proc/locks`: `1:
/// FLOCK  ADVISORY  WRITE 4711 fe:00:123456 0 EOF`. Waiting locks have an arrow before the kind and
/// are skipped.
fn holder_in(listing: &str, place: &str) -> Option<u32> {
    listing.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_it = fields.get(1) == Some(&"FLOCK") && fields.get(5) == Some(&place);
        let pid = fields.get(4).filter(|_| is_it)?;
        // A holder outside our process namespace shows as 0 or below.
        pid.parse().ok().filter(|&pid: &u32| pid != 0)
    })
}

fn holder_by_head(file: &File, holder: fn(&[u8]) -> Option<u32>) -> Option<u32> {
    let mut head = AlignedBuffer::new(4096);
    let read = rustix::io::pread(file, &mut head[..], 0).ok()?;
    holder(head.get(..read)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_listing_names_the_holder() {
        let listing = "1: POSIX  ADVISORY  WRITE 17 fe:00:99 0 EOF\n\
                       2: -> FLOCK  ADVISORY  WRITE 18 fe:00:99 0 EOF\n\
                       3: FLOCK  ADVISORY  WRITE 4711 fe:00:99 0 EOF\n\
                       4: FLOCK  ADVISORY  READ 0 fe:00:98 0 EOF\n\n5:\n";
        assert_eq!(holder_in(listing, "fe:00:99"), Some(4711));
        assert_eq!(holder_in(listing, "fe:00:98"), None);
        assert_eq!(holder_in(listing, "fe:00:97"), None);
        assert_eq!(holder_in("", "fe:00:97"), None);
    }

    #[test]
    fn a_process_that_ended_is_gone_and_this_one_is_not() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(is_gone(pid) && !is_gone(std::process::id()));
    }

    #[test]
    fn where_the_kernel_names_no_holder_the_first_bytes_do() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"writer: 7").unwrap();
        let holder = |head: &[u8]| head.starts_with(b"writer: 7").then_some(7);
        assert_eq!(holder_by_head(file.as_file(), holder), Some(7));
        assert_eq!(holder_by_head(file.as_file(), FileOptions::default().holder), None);
    }

    #[test]
    fn a_lock_excludes_and_is_given_back() {
        let writer = FileOptions::default();
        let reader = FileOptions { read_only: true, ..FileOptions::default() };
        let file = tempfile::NamedTempFile::new().unwrap();
        let again = File::open(file.path()).unwrap();
        let third = File::open(file.path()).unwrap();
        acquire(file.as_file(), file.path(), &writer).unwrap();
        let error = acquire(&again, file.path(), &reader).unwrap_err();
        let pid = std::process::id();
        assert_eq!(
            error,
            OpenFileError::Locked { path: file.path().to_path_buf(), pid: Some(pid) }
        );
        assert!(error.to_string().contains(&pid.to_string()), "{error}");
        release(file.as_file()).unwrap();
        acquire(&again, file.path(), &reader).unwrap();
        acquire(&third, file.path(), &reader).unwrap();
        assert!(acquire(file.as_file(), file.path(), &writer).is_err());
    }
}
