//! The log as its users see it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use millpond_base::Lsn;
use millpond_base::PastPoison;
use millpond_base::sync::Mutex;
use millpond_base::sync::atomic::Ordering;

use super::counts::LogCounts;
use super::error::LogError;
use super::group_commit::GroupCommitWait;
use super::listeners::OnDurable;
use super::options::BLOCK;
use super::reader::Reader;
use super::record::Appended;
use super::record::Header;
use super::record::Record;
use super::shared::Shared;
use super::window::AHEAD;
use super::window::Window;
use super::writer::Handle;
use crate::stats::{Statistics, Wait};

/// Room in the file behind the tail that is always kept, in bytes: less than a new log has.
const ROOM_LEAST: u64 = 96 << 10;
/// Bytes that are read for one record, unless it is longer.
const PEEK: usize = 2 * BLOCK as usize;

/// A write-ahead log. All methods may be called by any number of threads at once.
///
/// ```
/// use std::sync::Arc;
///
/// use millpond_device::MemoryDevice;
/// use millpond::internals::log::{Log, LogOptions, Record};
/// use millpond_base::Lsn;
///
/// # fn main() -> Result<(), millpond::internals::log::LogError> {
/// let log = Log::create(Arc::new(MemoryDevice::new()), [7; 16], Lsn(0), &LogOptions::default())?;
/// let record = Record { kind: 1, tx: 42, prev: Lsn(0), parts: &[b"bolts", b"1200"] };
/// let at = log.append(&record);
/// log.wait_durable(at.end)?;
///
/// let mut body = Vec::new();
/// let header = log.read_at(at.start, &mut body)?;
/// assert_eq!((header.tx, body.as_slice()), (42, b"bolts1200".as_slice()));
/// log.close()?;
/// # Ok(()) }
/// ```
///
/// A log that is dropped without [`Log::close`] loses what is not durable yet, as in a crash.
pub struct Log {
    pub(super) shared: Arc<Shared>,
    /// The background thread, until the log is closed.
    pub(super) writer: Mutex<Option<Handle>>,
}

impl Log {
    /// Appends a record. Threads append side by side; each waits only if the buffer is full, until
    /// a part of it has been written.
    ///
    /// Never fails. A log that takes nothing more ([`Log::poisoned`]) gives positions that never
    /// become durable; so it does for a record longer than [`Log::record_max`], which ends the log.
    #[inline]
    pub fn append(&self, record: &Record<'_>) -> Appended {
        self.shared.append(record)
    }

    /// Returns the log's path, if that leads to another file by now, or to none.
    pub(crate) fn displaced(&self) -> Option<PathBuf> {
        self.shared.segments.device().is_displaced().then(|| self.shared.path.clone())
    }

    /// Most bytes that a record's body can have: a quarter of the buffer, less 40.
    pub fn record_max(&self) -> usize {
        self.shared.record_max
    }

    /// Returns the end of the appended records: every record whose append begins after this call
    /// begins here or later.
    #[inline]
    pub fn tail(&self) -> Lsn {
        Lsn(self.shared.ring.tail())
    }

    /// Everything that ends here or before is durable.
    #[inline]
    pub fn durable(&self) -> Lsn {
        Lsn(self.shared.ring.durable())
    }

    /// Returns once everything that ends at `end` or before is durable. If no other thread is
    /// flushing, the calling thread writes and syncs all appended records.
    ///
    /// # Errors
    /// If `end` lies behind the tail; if the log takes nothing more. Then it is not known whether
    /// records that are not durable will be found when the log is opened again.
    #[inline]
    pub fn wait_durable(&self, end: Lsn) -> Result<(), LogError> {
        self.shared.wait(Some(Wait::Log), end.0, GroupCommitWait::None)
    }

    /// Like [`Log::wait_durable`], but waits up to `delay` (at most 100 ms) for as many other
    /// threads as were served together the last time. After a time alone, it does not wait.
    ///
    /// # Errors
    /// See [`Log::wait_durable`].
    pub fn wait_group(&self, end: Lsn, delay: Duration) -> Result<(), LogError> {
        self.shared.wait(Some(Wait::Log), end.0, GroupCommitWait::UpTo(delay))
    }

    /// Like [`Log::wait_group`], but the wait for others is no longer than a flush takes, and than
    /// `most`: a wait in vain loses no more than missing them would.
    ///
    /// # Errors
    /// See [`Log::wait_durable`].
    pub fn wait_commit(&self, end: Lsn, most: Duration) -> Result<(), LogError> {
        self.shared.wait(Some(Wait::Log), end.0, GroupCommitWait::AsAFlush(most))
    }

    /// Makes `call` once everything that ends at `end` or before is durable, or once it is known
    /// that the log takes nothing more. The background thread makes it soon, even if there is
    /// nothing to wait for: calls come in the order of their records. Without that thread the
    /// calling one waits, and makes the call.
    pub fn when_durable(&self, end: Lsn, call: OnDurable) {
        let shared = &self.shared;
        if end > self.tail() {
            return call(self.wait_durable(end));
        }
        match shared.listeners.add(end.0, call) {
            Ok(()) => shared.alarm.urge(),
            Err(call) => call(self.wait_durable(end)),
        }
    }

    /// Returns the error for which the log takes nothing more, if any. A write or a sync that
    /// failed is never tried again: the operating system may have dropped the unwritten data, and
    /// reports that once.
    pub fn poisoned(&self) -> Option<LogError> {
        self.shared.poisoned()
    }

    /// Makes sure that there is room in the file for `bytes` more than was appended, for all that
    /// is reserved, and for the records of usual length that other threads append at this moment.
    /// The room is on the disk, so that it is there whatever happens to that.
    ///
    /// # Errors
    /// [`LogError::NoRoom`]; the log goes on as before.
    #[inline]
    pub fn make_room(&self, bytes: u64) -> Result<(), LogError> {
        let shared = &self.shared;
        let end = shared.ring.tail() + bytes + self.reserved() + self.room_least();
        match end <= shared.room_until.load(Ordering::Acquire) {
            true => Ok(()),
            false => shared.make_room(end),
        }
    }

    /// Like [`Log::make_room`], but without the room for other threads' records: for a record that
    /// frees more than it takes, and for which `reserved` bytes were reserved.
    ///
    /// # Errors
    /// [`LogError::NoRoom`]; the log goes on as before.
    pub fn make_reserved_room(&self, bytes: u64, reserved: u64) -> Result<(), LogError> {
        let others = self.reserved().saturating_sub(reserved);
        self.shared.make_room(self.shared.ring.tail() + bytes + others)
    }

    fn room_least(&self) -> u64 {
        ROOM_LEAST.min(2 * self.shared.segments.size())
    }

    /// Returns whether a call of [`Log::make_room`] has failed since [`Log::forget_refusal`].
    pub fn is_refusing(&self) -> bool {
        self.shared.is_refusing.load(Ordering::Acquire)
    }

    /// Forgets that there was no room.
    pub fn forget_refusal(&self) {
        self.shared.is_refusing.store(false, Ordering::Release);
    }

    /// Returns whether forgetting everything before `lsn` would make a segment free.
    pub fn frees_a_segment(&self, lsn: Lsn) -> bool {
        let segments = &self.shared.segments;
        segments.sequence(lsn.0) > segments.sequence(segments.oldest())
    }

    /// Reserves `bytes` for records that must find room. The next [`Log::make_room`] makes that
    /// room, or fails.
    #[inline]
    pub fn reserve(&self, bytes: u64) {
        self.shared.reserved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Ends a reservation of `bytes`: the records are in the log, or will never be.
    #[inline]
    pub fn release(&self, bytes: u64) {
        let before = self.shared.reserved.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{bytes} bytes were not reserved");
    }

    /// Returns the number of bytes that are reserved.
    #[inline]
    pub fn reserved(&self) -> u64 {
        self.shared.reserved.load(Ordering::Relaxed)
    }

    /// Forgets everything before `lsn`: segments wholly below it are used again. Records that are
    /// not durable are kept. The caller has made durable that recovery will not ask for the
    /// forgotten ones.
    pub fn forget_before(&self, lsn: Lsn) {
        self.shared.segments.forget_before(lsn.0.min(self.shared.ring.durable()));
    }

    /// The oldest position that is kept.
    pub fn oldest(&self) -> Lsn {
        Lsn(self.shared.segments.oldest())
    }

    /// Bytes from the oldest position that is kept to the tail.
    pub fn bytes_held(&self) -> u64 {
        self.shared.ring.tail().saturating_sub(self.shared.segments.oldest())
    }

    /// Bytes of the log's file.
    pub fn file_bytes(&self) -> u64 {
        self.shared.segments.device().length()
    }

    /// If the segment that is being filled lies behind slots that are free, appends `record`, which
    /// means nothing, until the next one is begun: in the first of them. Returns whether it did. A
    /// log that has no room for that stays where it is.
    pub fn go_forward(&self, record: &Record<'_>) -> bool {
        let segments = &self.shared.segments;
        let tail = self.tail();
        let left = segments.size() - tail.0 % segments.size();
        let is_far = segments.is_far(tail.0) && self.make_room(left).is_ok();
        while is_far
            && self.poisoned().is_none()
            && segments.sequence(self.tail().0) == segments.sequence(tail.0)
        {
            self.append(record);
        }
        is_far
    }

    /// Gives free segments at the end of the file back, as far as it keeps room for `bytes` of
    /// records, for reservations, and a segment to go on in. Returns the number of bytes by which
    /// the file is shorter.
    ///
    /// # Errors
    /// If the device fails; the log goes on as before.
    pub fn give_back(&self, bytes: u64) -> Result<u64, LogError> {
        let shared = &self.shared;
        // The file does not grow ahead meanwhile, and no thread looks how much room it has.
        let _ahead = shared.growing_ahead.lock().past_poison();
        // Before the reservations are read: a thread that makes one later looks for its room.
        shared.room_until.store(0, Ordering::SeqCst);
        let (size, tail) = (shared.segments.size(), shared.ring.tail());
        let kept = bytes.saturating_add(self.reserved() + self.room_least());
        let until = tail.saturating_add(kept).max((tail / size + 2) * size);
        shared.segments.give_back(until).map_err(LogError::Prepare)
    }

    /// Cuts the file of a closed log back to the part that is kept: from the oldest position to the
    /// end. Returns the number of bytes by which the file is shorter.
    ///
    /// # Errors
    /// If the log is not durable up to its end, or the device fails; it can be opened as before.
    pub fn cut_back(&self) -> Result<u64, LogError> {
        self.shared.wait(Some(Wait::Log), self.shared.ring.tail(), GroupCommitWait::None)?;
        self.shared.segments.cut_back(self.shared.ring.durable())
    }

    /// Reads records from `from`, where one begins, to the present tail. Records that are not
    /// durable are made so first; if that fails, the reader's first call returns the error.
    pub fn reader(&self, from: Lsn) -> Reader {
        let shared = &self.shared;
        let refused = shared.wait(Some(Wait::Log), shared.ring.tail(), GroupCommitWait::None).err();
        let window =
            Window::new(shared.segments.clone(), AHEAD, shared.ring.durable(), shared.salt);
        Reader::new(window, from.0, shared.path().to_path_buf(), refused)
    }

    /// Reads the record that begins at `lsn`: its body into `out`, which is cleared first. A record
    /// that is not durable becomes so first.
    ///
    /// # Errors
    /// If there is no whole record at `lsn`, it was forgotten or not appended yet, or the device
    /// fails.
    pub fn read_at(&self, lsn: Lsn, out: &mut Vec<u8>) -> Result<Header, LogError> {
        let shared = &self.shared;
        out.clear();
        // Durable positions are ends of records: one behind the first byte is behind the record.
        let behind = lsn.0.saturating_add(1);
        shared.wait(Some(Wait::Log), behind, GroupCommitWait::None)?;
        let limit = shared.ring.durable();
        let mut window = Window::new(shared.segments.clone(), PEEK, limit, shared.salt);
        match window.record(lsn.0)? {
            Some((header, body)) => {
                out.extend_from_slice(body);
                Ok(header)
            }
            None => Err(LogError::NoRecord { path: shared.path().to_path_buf(), at: lsn }),
        }
    }

    /// Returns the counts of the log's work since it was opened.
    pub fn counts(&self) -> LogCounts {
        let bytes = self.shared.ring.tail() - self.shared.opened_at;
        LogCounts::of(&self.shared.statistics, bytes)
    }

    /// Returns the statistics in which the log counts; appended bytes are in [`Log::counts`] only.
    pub fn statistics(&self) -> &Statistics {
        &self.shared.statistics
    }

    /// Makes everything durable and ends the background thread. Nothing should be appended
    /// afterwards: such a record becomes durable only if a thread waits for it.
    ///
    /// # Errors
    /// If the log takes nothing more.
    pub fn close(&self) -> Result<(), LogError> {
        let flushed =
            self.shared.wait(Some(Wait::Log), self.shared.ring.tail(), GroupCommitWait::None);
        self.stop();
        flushed
    }

    /// Makes everything durable that was appended, and nothing that is appended from now on: a
    /// thread that waits for that gets [`LogError::Closed`]. Ends the background thread.
    ///
    /// # Errors
    /// If the log takes nothing more.
    pub(crate) fn seal(&self) -> Result<(), LogError> {
        let sealed = self.shared.seal();
        self.stop();
        sealed
    }

    /// Gives up the lock of the log's device; nothing is read or written afterwards.
    pub(crate) fn give_up(&self) {
        self.shared.segments.device().release();
    }

    fn stop(&self) {
        let writer = self.writer.lock().past_poison().take();
        if let Some(writer) = writer {
            self.shared.alarm.stop();
            #[cfg(not(feature = "model"))]
            if writer.thread().id() == std::thread::current().id() {
                // The last handle was dropped by a call that this thread made.
                return;
            }
            // It does not panic; if it did, there would be nothing left to do about it here.
            let _ = writer.join();
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log")
            .field("path", &self.shared.path())
            .field("tail", &self.tail())
            .field("durable", &self.durable())
            .finish_non_exhaustive()
    }
}
