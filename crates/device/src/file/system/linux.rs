//! Linux.

use std::fs::{File, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use rustix::fs::{Advice, AtFlags, StatxFlags};

use crate::device::{Alignment, DIRECT_BLOCK_MAX};
use crate::error::Errno;

/// The flag that opens a file for direct I/O.
pub(crate) const DIRECT: Option<i32> = Some(libc::O_DIRECT);

/// File system types that `statfs` reports for ext2 to ext4, and for XFS.
const RANGES_KNOWN: [u64; 2] = [0xef53, 0x5846_5342];

/// Returns the alignment that direct I/O on `file` requires; `None` if the file cannot do it.
pub(crate) fn direct_alignment(file: &File) -> Option<Alignment> {
    let Ok(stat) = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) else {
        return Some(likely_alignment(file));
    };
    if stat.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return Some(likely_alignment(file));
    }
    match (stat.stx_dio_mem_align, stat.stx_dio_offset_align) {
        (_, 0) => None,
        (memory, offset) => {
            Some(Alignment { memory: memory.max(1) as usize, offset: u64::from(offset) })
        }
    }
}

/// Returns the alignment for direct I/O where the kernel reports none (before Linux 6.1, or tmpfs).
/// It is the block size of the drive if that can be found, otherwise one that is safe for every
/// drive in use.
fn likely_alignment(file: &File) -> Alignment {
    /// A file system in memory, which requires no alignment.
    const TMPFS: i64 = 0x0102_1994;
    const SECTOR: u64 = 512;
    let is_tmpfs = rustix::fs::fstatfs(file).is_ok_and(|stat| stat.f_type == TMPFS);
    let block = if is_tmpfs { Some(SECTOR) } else { logical_block(file) };
    let is_usual = |block: &u64| block.is_power_of_two() && (SECTOR..=4096).contains(block);
    Alignment { memory: 4096, offset: block.filter(is_usual).unwrap_or(DIRECT_BLOCK_MAX) }
}

/// Returns the bytes per block of the file's drive.
fn logical_block(file: &File) -> Option<u64> {
    let found = file.metadata().ok()?;
    let is_drive = found.file_type().is_block_device();
    let device = if is_drive { found.rdev() } else { found.dev() };
    let drive = format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device));
    // A partition has the block size of its drive.
    let read = |folder: &str| {
        std::fs::read_to_string(format!("{drive}/{folder}queue/logical_block_size")).ok()
    };
    read("").or_else(|| read("../"))?.trim().parse().ok()
}

/// Advises the kernel to expect random reads of the file. Read-ahead would make its cache, and
/// later write back, use units far larger than a page. A file system that ignores advice works as
/// well.
pub(crate) fn expect_random_reads(file: &File) {
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Random);
}

/// Makes all written bytes durable, and the metadata needed to find them.
pub(crate) fn sync_data(file: &File) -> Result<(), Errno> {
    rustix::io::retry_on_intr(|| rustix::fs::fdatasync(file)).map_err(Errno::from)
}

/// Returns `true` if `file` is on a file system whose ranges can be synced.
pub(crate) fn knows_ranges(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|system| RANGES_KNOWN.contains(&(system.f_type as u64)))
}

/// Returns the name of a file in `/proc/locks`.
pub(crate) fn place_in_locks(of: &Metadata) -> Option<String> {
    let device = of.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    Some(format!("{major:02x}:{minor:02x}:{}", of.ino()))
}

/// Asks the kernel not to bundle this thread's wake-ups, which it otherwise does within 50 µs.
/// Returns `true` if the kernel agreed.
#[cfg(feature = "simulated")]
pub(crate) fn wake_punctually() -> bool {
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).is_ok()
}
