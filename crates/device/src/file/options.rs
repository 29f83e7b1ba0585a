//! Options of a file that is opened as a device.

use std::fmt;
use std::str::FromStr;

use millpond_base::words::ChoiceError;

/// Path by which reads and writes reach the kernel.
///
/// ```
/// use millpond_device::Submission;
///
/// assert_eq!(Submission::default(), Submission::Auto);
/// assert_eq!("uring".parse(), Ok(Submission::Uring));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Submission {
    /// io_uring where the kernel allows it; otherwise blocking calls, with one warning.
    #[default]
    Auto,
    /// Blocking calls: `pread` and `pwrite`.
    Sync,
    /// io_uring, or the store does not open.
    Uring,
}

impl Submission {
    fn word(self) -> &'static str {
        match self {
            Submission::Auto => "auto",
            Submission::Sync => "sync",
            Submission::Uring => "uring",
        }
    }
}

impl FromStr for Submission {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Submission, ChoiceError> {
        let all = [Submission::Auto, Submission::Sync, Submission::Uring];
        let words = all.map(Submission::word).join(" ");
        let wrong = || ChoiceError::new("submission", text, format!("one of {words}"));
        all.into_iter().find(|submission| submission.word() == text).ok_or_else(wrong)
    }
}

impl fmt::Display for Submission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Options for opening a file as a device.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// For reading only, shared with other readers; otherwise exclusively, for reading and writing.
    pub read_only: bool,
    /// Bypass the kernel's page cache where the file system allows it.
    pub direct: bool,
    /// Path by which batches reach the kernel.
    pub submission: Submission,
    /// Maximum number of a batch's requests in progress, 1 to 4096 (io_uring only).
    pub depth: u32,
    /// Grow by writing zeros. Without them the file's blocks are only reserved, which takes no
    /// time; but the first write to each costs the file system a journal entry, for which a sync
    /// waits.
    pub zeros: bool,
    /// Allocate the blocks that a file lacks when it is opened for writing, since a copy tool may
    /// have left holes in it. Writes into a file that was grown then need no room on the disk.
    pub fills_holes: bool,
    /// Accept a block device, too; its length is fixed.
    pub block_devices: bool,
    /// Reads the id of the process that has the file open from the file's first 4,096 bytes, for
    /// systems whose kernel does not name the holder of a lock.
    pub holder: fn(&[u8]) -> Option<u32>,
}

impl Default for FileOptions {
    fn default() -> FileOptions {
        FileOptions {
            read_only: false,
            direct: true,
            submission: Submission::Auto,
            depth: 64,
            zeros: true,
            fills_holes: false,
            block_devices: false,
            holder: |_| None,
        }
    }
}
