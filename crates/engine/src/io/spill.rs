//! The spill file: before images and undo records that do not fit into memory; useless after the
//! process ends.
//!
//! It is beside the store, is created on demand, and is removed when the store is closed. The
//! remains after a crash are removed when the store is opened. Nothing in it is ever synced, since
//! only the process that wrote it reads it. A mark distinguishes it from other files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};

use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;
use millpond_device::{Process, beside, error::kind_of, file::new_file::create_like, real_path};
use xxhash_rust::xxh3::xxh3_64;

use super::spill_storage::SpillStorage;

const MARK: &[u8; 8] = b"MPSPILL1";

/// Reason that nothing can be put into the file, or read from it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpillError {
    /// The spill file has reached its limit.
    #[error("the spill file {} is full: it may have {max} bytes", path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// Maximum size in bytes.
        max: u64,
    },
    /// The system reported an error.
    #[error("the spill file {} failed ({})", path.display(), kind_of(error))]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
    /// The bytes read are not the bytes written.
    #[error(
        "{len} bytes at offset {offset} of the spill file {} are not what was written there: look \
         after the drive",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        len: usize,
    },
    /// The store was closed.
    #[error("the spill file {} was closed with its store", path.display())]
    Closed {
        /// The file.
        path: PathBuf,
    },
}

#[derive(Default)]
struct Room {
    file: Option<Arc<SpillStorage>>,
    /// Set once the store was closed.
    is_over: bool,
    /// Free ranges before `end`: length by offset.
    free: BTreeMap<u64, u64>,
    end: u64,
}

impl Room {
    fn take(&mut self, len: u64, max: u64) -> Option<u64> {
        let found = self.free.iter().find(|(_, free)| **free >= len).map(|(at, free)| (*at, *free));
        debug_assert!(
            found.is_none_or(|(at, free)| at + free <= self.end),
            "what is free lies before the end"
        );
        if let Some((at, free)) = found {
            self.free.remove(&at);
            if free > len {
                self.free.insert(at + len, free - len);
            }
            return Some(at);
        }
        let at = self.end;
        let end = at.checked_add(len).filter(|end| *end <= max)?;
        self.end = end;
        Some(at)
    }

    fn give(&mut self, mut at: u64, mut len: u64) {
        debug_assert!(at + len <= self.end, "what is given back lies before the end");
        debug_assert!(
            self.free.range(..at).next_back().is_none_or(|(before, free)| before + free <= at),
            "bytes are given back once"
        );
        debug_assert!(
            self.free.range(at..).next().is_none_or(|(behind, _)| at + len <= *behind),
            "bytes are given back once"
        );
        if let Some((before, free)) = self.free.range(..at).next_back().map(|(a, f)| (*a, *f))
            && before + free == at
        {
            self.free.remove(&before);
            (at, len) = (before, len + free);
        }
        if let Some(behind) = self.free.remove(&(at + len)) {
            len += behind;
        }
        if at + len < self.end {
            self.free.insert(at, len);
            return;
        }
        self.end = at;
        if let Some(file) = &self.file
            && let Err(error) = file.cut(at, MARK.len() as u64)
        {
            tracing::debug!(%error, "the spill file keeps its length");
        }
    }
}

/// A spill file.
pub struct SpillFile {
    path: PathBuf,
    /// The data file, whose mode and owner the spill file gets; `None` if the store is in memory.
    store: Option<PathBuf>,
    /// The opening process; in its children the file belongs to the parent.
    process: Process,
    max: u64,
    room: Mutex<Room>,
}

/// Position of bytes in the file, with their checksum.
struct CheckedRange {
    offset: u64,
    len: usize,
    /// Checksum of the bytes, kept only in memory: the file outlives no process.
    sum: u64,
}

/// Bytes in the file, which are freed when this is dropped.
pub struct Extent {
    file: Arc<SpillFile>,
    handle: Arc<SpillStorage>,
    range: CheckedRange,
}

/// Blocks of bytes in the file, numbered from 0, which are freed when this is dropped. A block
/// takes [`Blocks::EACH`] bytes of memory, however long it is.
pub struct Blocks {
    file: Arc<SpillFile>,
    handle: Option<Arc<SpillStorage>>,
    ranges: Vec<CheckedRange>,
}

/// Returns the path of the spill file of the store at `path`.
pub fn spill_path(path: &Path) -> PathBuf {
    beside(path, "-spill")
}

/// Returns `true` if the file at `path` is a spill file, or empty; nobody else needs it then.
///
/// # Errors
/// It cannot be read.
pub fn is_spill(path: &Path) -> io::Result<bool> {
    let meta = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        found => found?,
    };
    if !meta.is_file() {
        return Ok(false);
    }
    let mut begin = Vec::new();
    File::open(path)?.take(MARK.len() as u64).read_to_end(&mut begin)?;
    // A crash, or a full disk, may have left a part of the mark.
    Ok(MARK.starts_with(&begin))
}

/// Removes a spill file, and no other file of that name.
fn remove(path: &Path) -> io::Result<()> {
    if is_spill(path)? { std::fs::remove_file(path) } else { Ok(()) }
}

/// Creates the spill file of `store` with its mark. The remains of an earlier attempt are removed
/// first.
fn create(path: &Path, store: &Path) -> io::Result<File> {
    remove(path)?;
    let file = create_like(path, store)?;
    if let Err(error) = file.write_all_at(MARK, 0) {
        // The disk may be full, and have room later.
        std::fs::remove_file(path)?;
        return Err(error);
    }
    Ok(file)
}

impl SpillFile {
    /// Returns the spill file of the store at `store`, which this process has locked; it may have
    /// `max` bytes. A file that a crash left is removed.
    pub fn beside(store: &Path, max: u64) -> Arc<SpillFile> {
        // It is created on demand, and the process may be in another folder by then.
        let path = spill_path(store);
        let path = std::path::absolute(&path).unwrap_or(path);
        if let Err(error) = remove(&path) {
            tracing::warn!(%error, "{} cannot be removed", path.display());
        }
        let store = real_path(store);
        let store = Some(std::path::absolute(&store).unwrap_or(store));
        Arc::new(SpillFile { path, store, process: Process::this(), max, room: Mutex::default() })
    }

    /// Returns the spill file of a store without a folder: up to `max` bytes of memory, freed when
    /// no longer needed.
    pub fn in_memory(max: u64) -> Arc<SpillFile> {
        let (path, store, process) = (PathBuf::from("(memory)"), None, Process::this());
        Arc::new(SpillFile { path, store, process, max, room: Mutex::default() })
    }

    /// Returns the limit in bytes for the changes of active transactions: their undo records, and
    /// the versions for a snapshot that begins; `None` if they are not bounded.
    ///
    /// Memory has no reserve beyond its limit. So a share is kept for versions of committed
    /// entries, and for merging them. A transaction that exceeds the rest fails, instead of a
    /// snapshot that begins.
    pub fn max_of_active(&self) -> Option<u64> {
        self.store.is_none().then_some(self.max / 2)
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.room.lock().past_poison()
    }

    /// Returns the bytes from the file's beginning to the end of the last used range.
    pub fn bytes(&self) -> u64 {
        self.room().end
    }

    fn failed(&self, source: io::Error) -> SpillError {
        SpillError::File { path: self.path.clone(), error: source }
    }

    /// Removes the file of a closed store, since another store may take its name. Remaining handles
    /// can read their own bytes, and put nothing more.
    pub fn end(&self) {
        let mut room = self.room();
        room.is_over = self.store.is_some();
        if room.is_over
            && room.file.take().is_some()
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::debug!(%error, "{} stays", self.path.display());
        }
    }

    fn open(&self, room: &mut Room) -> Result<Arc<SpillStorage>, SpillError> {
        if room.is_over {
            return Err(SpillError::Closed { path: self.path.clone() });
        }
        if let Some(file) = &room.file {
            return Ok(file.clone());
        }
        let made = |store| create(&self.path, store).map_err(|error| self.failed(error));
        let file = Arc::new(match &self.store {
            None => SpillStorage::in_memory(),
            Some(store) => SpillStorage::File(made(store)?),
        });
        room.end = MARK.len() as u64;
        Ok(room.file.insert(file).clone())
    }

    /// Puts `bytes` into a free range.
    ///
    /// # Errors
    /// [`SpillError`]; nothing is kept.
    pub fn put(self: &Arc<Self>, bytes: &[u8]) -> Result<Extent, SpillError> {
        let (handle, range) = self.place(bytes)?;
        Ok(Extent { file: self.clone(), handle, range })
    }

    fn place(&self, bytes: &[u8]) -> Result<(Arc<SpillStorage>, CheckedRange), SpillError> {
        let len = bytes.len();
        let (handle, offset) = {
            let mut room = self.room();
            let handle = if self.max == 0 { None } else { Some(self.open(&mut room)?) };
            let offset = room.take(len as u64, self.max);
            let full = || SpillError::Full { path: self.path.clone(), max: self.max };
            handle.zip(offset).ok_or_else(full)?
        };
        let range = CheckedRange { offset, len, sum: xxh3_64(bytes) };
        if let Err(error) = handle.write_all_at(bytes, offset) {
            self.give(&range);
            return Err(self.failed(error));
        }
        Ok((handle, range))
    }

    fn give(&self, range: &CheckedRange) {
        if self.process.is_this() {
            self.room().give(range.offset, range.len as u64);
        }
    }

    fn read(
        &self,
        handle: &SpillStorage,
        range: &CheckedRange,
        out: &mut Vec<u8>,
    ) -> Result<(), SpillError> {
        debug_assert!(range.offset >= MARK.len() as u64, "the mark comes first");
        out.resize(range.len, 0);
        handle.read_exact_at(out, range.offset).map_err(|error| self.failed(error))?;
        if xxh3_64(out) == range.sum { Ok(()) } else { Err(self.damaged(range)) }
    }

    fn damaged(&self, range: &CheckedRange) -> SpillError {
        SpillError::Damaged { path: self.path.clone(), offset: range.offset, len: range.len }
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        if self.process.is_this() {
            self.end();
        }
    }
}

impl Extent {
    /// Reads the bytes into `out`, and replaces its contents.
    ///
    /// # Errors
    /// [`SpillError::File`], [`SpillError::Damaged`].
    pub fn read(&self, out: &mut Vec<u8>) -> Result<(), SpillError> {
        self.file.read(&self.handle, &self.range, out)
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        self.file.give(&self.range);
    }
}

impl Blocks {
    /// Bytes of memory per block.
    pub const EACH: usize = size_of::<CheckedRange>();

    /// Returns an empty list of blocks.
    pub fn new(file: &Arc<SpillFile>) -> Blocks {
        Blocks { file: file.clone(), handle: None, ranges: Vec::new() }
    }

    /// Returns the number of blocks.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns `true` if there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Puts one more block into the file.
    ///
    /// # Errors
    /// [`SpillError`]; it is not kept.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), SpillError> {
        let (handle, range) = self.file.place(bytes)?;
        self.handle.get_or_insert(handle);
        self.ranges.push(range);
        Ok(())
    }

    /// Reads block `number` into `out`, and replaces its contents; nothing if there is no such
    /// block.
    ///
    /// # Errors
    /// [`SpillError::File`], [`SpillError::Damaged`].
    pub fn read(&self, number: usize, out: &mut Vec<u8>) -> Result<(), SpillError> {
        out.clear();
        match (&self.handle, self.ranges.get(number)) {
            (Some(handle), Some(range)) => self.file.read(handle, range, out),
            _ => Ok(()),
        }
    }

    /// Reads a prefix of block `number`, at most `most` bytes, into `out`. The checksum covers the
    /// whole block, so a prefix is not verified.
    ///
    /// # Errors
    /// [`SpillError::File`].
    pub fn read_start(
        &self,
        number: usize,
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), SpillError> {
        out.clear();
        if let (Some(handle), Some(range)) = (&self.handle, self.ranges.get(number)) {
            out.resize(most.min(range.len), 0);
            let read = handle.read_exact_at(out, range.offset);
            read.map_err(|error| self.file.failed(error))?;
        }
        Ok(())
    }

    /// Returns the error for block `number`, whose first bytes are invalid.
    pub fn damaged(&self, number: usize) -> SpillError {
        let range = CheckedRange { offset: 0, len: 0, sum: 0 };
        self.file.damaged(self.ranges.get(number).unwrap_or(&range))
    }

    /// Ends the list: no more blocks are pushed.
    pub fn end(&mut self) {
        self.ranges.shrink_to_fit();
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.ranges.iter().for_each(|range| self.file.give(range));
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_comes_back_and_its_room_is_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("s");
        let spill = SpillFile::beside(&store, 1000);
        assert!(!spill_path(&store).exists(), "nothing was needed yet");
        let mut read = Vec::new();
        let all: Vec<_> = (0..9u8).map(|i| spill.put(&[i; 100]).unwrap()).collect();
        assert!(matches!(spill.put(&[9; 100]), Err(SpillError::Full { max: 1000, .. })));
        for (i, extent) in all.iter().enumerate() {
            extent.read(&mut read).unwrap();
            assert_eq!(read, [i as u8; 100]);
        }
        let mut all = all.into_iter();
        let (first, second) = (all.next().unwrap(), all.next().unwrap());
        drop((second, first));
        let wide = spill.put(&[7; 200]).unwrap();
        wide.read(&mut read).unwrap();
        assert_eq!((read.len(), spill.bytes()), (200, 908));
        let file = File::options().write(true).open(spill_path(&store)).unwrap();
        file.write_all_at(&[8], wide.range.offset + 150).unwrap();
        assert!(matches!(wide.read(&mut read), Err(SpillError::Damaged { len: 200, .. })));
        drop((all, wide));
        assert_eq!(spill.bytes(), 8);
        assert_eq!(std::fs::metadata(spill_path(&store)).unwrap().len(), 8);
        drop(spill);
        assert!(!spill_path(&store).exists());
    }

    /// A full disk left a file without its whole mark: no large transaction worked until the store
    /// was opened again.
    #[test]
    fn a_file_with_a_part_of_its_mark_that_a_failed_creation_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("s");
        let spill = SpillFile::beside(&store, 1000);
        std::fs::write(spill_path(&store), &MARK[..5]).unwrap();
        let (extent, mut out) = (spill.put(b"a version").unwrap(), Vec::new());
        extent.read(&mut out).unwrap();
        assert_eq!(out, b"a version");
        drop((extent, spill));
        assert!(!spill_path(&store).exists());
    }

    /// A process that changed its folder created the file there, where another store may have its
    /// own.
    #[test]
    fn its_place_is_that_of_the_store_when_it_was_opened_wherever_the_process_goes() {
        let spill = SpillFile::beside(Path::new("target/no-store"), 1000);
        assert!(spill.path.is_absolute() && spill.path.ends_with("target/no-store-spill"));
    }

    #[test]
    fn what_a_crash_left_is_removed_and_a_file_of_somebody_else_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("s");
        std::fs::write(spill_path(&store), b"MPSPILL1 and more").unwrap();
        drop(SpillFile::beside(&store, 1000));
        assert!(!spill_path(&store).exists());
        std::fs::write(spill_path(&store), b"a letter to the owner").unwrap();
        let spill = SpillFile::beside(&store, 1000);
        assert!(matches!(spill.put(b"x"), Err(SpillError::File { .. })));
        drop(spill);
        assert_eq!(std::fs::read(spill_path(&store)).unwrap(), b"a letter to the owner");
    }
}
