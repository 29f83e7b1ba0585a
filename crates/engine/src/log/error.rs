//! Errors of a log.

use std::path::PathBuf;

use millpond_base::Lsn;
use millpond_device::DeviceError;

/// Error of a log. Positions are LSNs, that is, bytes of the stream of records; offsets are bytes
/// of the file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// A size is not possible.
    #[error("the log {} cannot have {option} = {value}: it {rule}", path.display())]
    BadOption {
        /// The log.
        path: PathBuf,
        /// Name of the option.
        option: &'static str,
        /// The requested value.
        value: u64,
        /// The rule for its values.
        rule: &'static str,
    },
    /// There is a log already where one was to be created.
    #[error("{} holds a log already: open it, or choose another name", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file does not begin like a log.
    #[error(
        "{} is no log of this engine, or its first block is damaged, and no record of the store is \
         where its recovery begins: put the store's own log back, or read what is intact with \
         `millpond dump --salvage`",
        path.display()
    )]
    NotALog {
        /// The file.
        path: PathBuf,
    },
    /// The log was written by another version of the engine.
    #[error(
        "the log {} has format {found}, and this program reads {known}: use a release that knows \
         format {found}, or `dump` there and `load` here",
        path.display()
    )]
    Version {
        /// The log.
        path: PathBuf,
        /// The format in the file.
        found: u32,
        /// The format that is understood.
        known: u32,
    },
    /// The log belongs to another store.
    #[error(
        "the log {} belongs to another store (its id is {found:032x}, the store's {expected:032x}): \
         find the log that was beside the data",
        path.display()
    )]
    OtherStore {
        /// The log.
        path: PathBuf,
        /// The store's id.
        expected: u128,
        /// The id in the log.
        found: u128,
    },
    /// The position that recovery must begin with is not in the log.
    #[error(
        "the log {} does not hold position {}: it was cut short, or it and the data file are of \
         different times",
        path.display(),
        at.0
    )]
    Missing {
        /// The log.
        path: PathBuf,
        /// The requested position.
        at: Lsn,
    },
    /// A part of the log that had been durable cannot be read, and there are records behind it. No
    /// crash does that.
    #[error(
        "the log {} is damaged at position {}, though it had been durable up to {}: what was \
         committed from there on is lost with it; restore a backup, or see `millpond recover --salvage`",
        path.display(),
        at.0,
        durable.0
    )]
    Damaged {
        /// The log.
        path: PathBuf,
        /// End of the last whole record before the damage.
        at: Lsn,
        /// Position up to which the log had been durable, at least.
        durable: Lsn,
    },
    /// The block that identifies a segment cannot be read, and the segment is needed.
    #[error(
        "the log {} is damaged: the segment header at offset {offset} is not readable, and the \
         records from position {} on may be behind it; restore a backup, or see `millpond recover \
         --salvage`",
        path.display(),
        at.0
    )]
    DamagedSegment {
        /// The log.
        path: PathBuf,
        /// Offset of the header in the file.
        offset: u64,
        /// End of the last whole record before the segment.
        at: Lsn,
    },
    /// There is no whole record where one was expected.
    #[error("the log {} has no whole record at position {}", path.display(), at.0)]
    NoRecord {
        /// The log.
        path: PathBuf,
        /// The position.
        at: Lsn,
    },
    /// The position is before the part that the log still keeps.
    #[error(
        "position {} of the log {} is forgotten: it keeps what comes after {}",
        at.0,
        path.display(),
        oldest.0
    )]
    Forgotten {
        /// The log.
        path: PathBuf,
        /// The position.
        at: Lsn,
        /// The oldest position that is kept.
        oldest: Lsn,
    },
    /// Nothing has been appended at the position yet.
    #[error("position {} is behind the end {} of the log {}", at.0, tail.0, path.display())]
    BeyondTail {
        /// The log.
        path: PathBuf,
        /// The position.
        at: Lsn,
        /// The end.
        tail: Lsn,
    },
    /// Reading failed.
    #[error("the log cannot be read: {0}")]
    Read(DeviceError),
    /// Creating or opening a log failed.
    #[error("the log cannot be prepared: {0}")]
    Prepare(DeviceError),
    /// A change would take room that undoing changes may need, and there is no more. Nothing was
    /// changed; transactions can be aborted, or committed as they are.
    #[error(
        "the log has no room for more changes: {}; abort the transaction or commit it as it is, \
         make room there and try again",
        without_advice(.0)
    )]
    NoRoom(DeviceError),
    /// The log found no room. Nothing becomes durable from now on.
    #[error(
        "the log takes nothing more: {}. Make room there and open the store again; what was \
         acknowledged as durable is intact. Until then this process also reads commits that may \
         be lost",
        without_advice(.0)
    )]
    Full(DeviceError),
    /// The log could not be written or synced. Nothing becomes durable from now on.
    #[error(
        "the log could not be made durable and takes nothing more: {0}. Check the disk, then \
         open the store again; what was acknowledged as durable is intact. Until then this process \
         also reads commits that may be lost"
    )]
    Failed(DeviceError),
    /// The log was closed. It is unknown whether a record appended at that time is durable.
    #[error("the log {} was closed: open its store again", path.display())]
    Closed {
        /// The log.
        path: PathBuf,
    },
    /// A record was longer than the buffer allows. Nothing becomes durable from now on.
    #[error(
        "a record of {length} bytes does not fit the log {}, which takes {max}: open the store \
         with a larger log buffer",
        path.display()
    )]
    RecordTooLong {
        /// The log.
        path: PathBuf,
        /// Length of the record's body in bytes.
        length: u64,
        /// Maximum length of a body in bytes.
        max: u64,
    },
    /// The background thread could not be started.
    #[error("the thread that writes the log {} cannot be started: {reason}", path.display())]
    NoThread {
        /// The log.
        path: PathBuf,
        /// The operating system's reason.
        reason: String,
    },
}

/// Returns the message that there is no room. The device's own error advises to try again, which
/// would not help.
fn without_advice(cause: &DeviceError) -> String {
    match cause {
        DeviceError::DiskFull { path, offset, needed } => format!(
            "the disk of {} is full, or a quota or a limit of file sizes is reached: {needed} more \
             bytes were needed at offset {offset}",
            path.display()
        ),
        other => other.to_string(),
    }
}

impl LogError {
    /// Returns the error of a log that takes nothing more because of `cause`. A full disk has an
    /// error of its own.
    pub(super) fn fatal(cause: DeviceError) -> LogError {
        if cause.is_disk_full() { LogError::Full(cause) } else { LogError::Failed(cause) }
    }
}
