//! The log's interface for the rest of the engine.

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

/// Bytes of room in the file that are always kept behind the tail: less than a new log has.
const ROOM_LEAST: u64 = 96 << 10;
/// Bytes to read for one record, unless it is longer.
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
/// A log that is dropped without [`Log::close`] loses the records that are not durable yet, as in a
/// crash.
pub struct Log {
    pub(super) shared: Arc<Shared>,
    /// The background thread, until the log is closed.
    pub(super) writer: Mutex<Option<Handle>>,
}

impl Log {
    /// Appends a record. Threads append side by side. A thread waits only if the buffer is full,
    /// until a part of it has been written.
    ///
    /// Never fails. A log that takes nothing more ([`Log::poisoned`]) returns positions that never
    /// become durable. A record longer than [`Log::record_max`] ends the log, and gets such a
    /// position, too.
    #[inline]
    pub fn append(&self, record: &Record<'_>) -> Appended {
        self.shared.append(record)
    }

    /// Returns the log's path, if another file or none is there by now.
    pub(crate) fn displaced(&self) -> Option<PathBuf> {
        self.shared.segments.device().is_displaced().then(|| self.shared.path.clone())
    }

    /// Returns the maximum length of a record's body in bytes: a quarter of the buffer, less 40.
    pub fn record_max(&self) -> usize {
        self.shared.record_max
    }

    /// Returns the end of the appended records: every record whose append begins after this call
    /// begins here or later.
    #[inline]
    pub fn tail(&self) -> Lsn {
        Lsn(self.shared.ring.tail())
    }

    /// Returns the durable LSN: every record that ends there or before is durable.
    #[inline]
    pub fn durable(&self) -> Lsn {
        Lsn(self.shared.ring.durable())
    }

    /// Returns once every record that ends at `end` or before is durable. If no other thread is
    /// flushing, the calling thread writes and syncs all appended records.
    ///
    /// # Errors
    /// If `end` is behind the tail, or if the log takes nothing more. It is then unknown whether
    /// records that are not durable will be found when the log is opened again.
    #[inline]
    pub fn wait_durable(&self, end: Lsn) -> Result<(), LogError> {
        self.shared.wait(Some(Wait::Log), end.0, GroupCommitWait::None)
    }

    /// Like [`Log::wait_durable`], but first waits up to `delay` (at most 100 ms) for as many other
    /// threads as the last flush served. After a flush for one thread alone, it does not wait.
    ///
    /// # Errors
    /// See [`Log::wait_durable`].
    pub fn wait_group(&self, end: Lsn, delay: Duration) -> Result<(), LogError> {
        self.shared.wait(Some(Wait::Log), end.0, GroupCommitWait::UpTo(delay))
    }

    /// Like [`Log::wait_group`], but the wait for others is limited to the time of a flush, and to
    /// `most`. So if none come, the wait costs no more than missing them would have cost.
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

    /// Returns the error that ended the log, if there is one. A write or a sync that failed is
    /// never tried again: the operating system may have dropped the unwritten data, and reports
    /// that only once.
    pub fn poisoned(&self) -> Option<LogError> {
        self.shared.poisoned()
    }

    /// Makes sure that the file has room for `bytes` more than was appended, for all reservations,
    /// and for the records of usual length that other threads append at this moment. The room is
    /// allocated on the disk, so a disk that fills up later does not take it away.
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

    /// Like [`Log::make_room`], but without the room for other threads' records. For a record that
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
    /// room or fails.
    #[inline]
    pub fn reserve(&self, bytes: u64) {
        self.shared.reserved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Ends a reservation of `bytes`: its records are in the log, or will never be appended.
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

    /// Forgets everything before `lsn`: segments that are entirely below it are reused. Records
    /// that are not durable are kept. The caller has made durable that recovery will not read the
    /// forgotten ones.
    pub fn forget_before(&self, lsn: Lsn) {
        self.shared.segments.forget_before(lsn.0.min(self.shared.ring.durable()));
    }

    /// Returns the oldest position that is kept.
    pub fn oldest(&self) -> Lsn {
        Lsn(self.shared.segments.oldest())
    }

    /// Returns the number of bytes from the oldest position that is kept to the tail.
    pub fn bytes_held(&self) -> u64 {
        self.shared.ring.tail().saturating_sub(self.shared.segments.oldest())
    }

    /// Returns the length of the log's file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.shared.segments.device().length()
    }

    /// Moves the log on to the first free slot, if the segment being filled is behind free slots.
    /// To end that segment, fills it with copies of `record`, which means nothing. Returns whether
    /// it did so. A log without room for that stays where it is.
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

    /// Cuts free segments off the end of the file, but keeps room for `bytes` of records, for
    /// reservations, and a segment to go on in. Returns the number of bytes by which the file is
    /// shorter.
    ///
    /// # Errors
    /// If the device fails; the log goes on as before.
    pub fn give_back(&self, bytes: u64) -> Result<u64, LogError> {
        let shared = &self.shared;
        // In the meantime the file does not grow ahead, and no thread looks up how much room it
        // has.
        let _ahead = shared.growing_ahead.lock().past_poison();
        // Before the reservations are read: a thread that makes one later looks up its room again.
        shared.room_until.store(0, Ordering::SeqCst);
        let (size, tail) = (shared.segments.size(), shared.ring.tail());
        let kept = bytes.saturating_add(self.reserved() + self.room_least());
        let until = tail.saturating_add(kept).max((tail / size + 2) * size);
        shared.segments.give_back(until).map_err(LogError::Prepare)
    }

    /// Cuts the file of a closed log back to the part that is kept, from the oldest position to the
    /// end. Returns the number of bytes by which the file is shorter.
    ///
    /// # Errors
    /// If the log is not durable up to its end, or the device fails; it can be opened as before.
    pub fn cut_back(&self) -> Result<u64, LogError> {
        self.shared.wait(Some(Wait::Log), self.shared.ring.tail(), GroupCommitWait::None)?;
        self.shared.segments.cut_back(self.shared.ring.durable())
    }

    /// Returns a reader of the records from `from`, where one begins, to the present tail. Records
    /// that are not durable are made durable first; if that fails, the reader's first call returns
    /// the error.
    pub fn reader(&self, from: Lsn) -> Reader {
        let shared = &self.shared;
        let refused = shared.wait(Some(Wait::Log), shared.ring.tail(), GroupCommitWait::None).err();
        let window =
            Window::new(shared.segments.clone(), AHEAD, shared.ring.durable(), shared.salt);
        Reader::new(window, from.0, shared.path().to_path_buf(), refused)
    }

    /// Reads the record that begins at `lsn`, and puts its body into `out`, which is cleared first.
    /// A record that is not durable is made durable first.
    ///
    /// # Errors
    /// If there is no whole record at `lsn`, the record was forgotten or not appended yet, or the
    /// device fails.
    pub fn read_at(&self, lsn: Lsn, out: &mut Vec<u8>) -> Result<Header, LogError> {
        let shared = &self.shared;
        out.clear();
        // Durable positions are ends of records: one behind the first byte is behind the whole
        // record.
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

    /// Makes all records durable and ends the background thread. Nothing should be appended
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

    /// Makes all records durable that were appended before this call, and none after it: a thread
    /// that waits for a later one gets [`LogError::Closed`]. Ends the background thread.
    ///
    /// # Errors
    /// If the log takes nothing more.
    pub(crate) fn seal(&self) -> Result<(), LogError> {
        let sealed = self.shared.seal();
        self.stop();
        sealed
    }

    /// Releases the lock on the log's device; nothing is read or written afterwards.
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
            // The thread does not panic; if it did, there would be nothing left to do about it
            // here.
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
