//! The statistics of a running store, in a small file beside it, for other processes.
//!
//! `store.db` publishes to `store.db.stat`. The file is one JSON object with the writing process
//! (`process`), its times (`started_ms`, `written_ms`, since 1970), a flag for a closed store
//! (`is_closed`), and the [`Stats`]. Each version is written to `store.db.stat.new` and renamed, so
//! that a reader sees an old version or a new one and never half of one. It is not synced: after a
//! crash of the machine the numbers would be meaningless anyway.
//!
//! The [`Publisher`] has no thread and no timer. A thread that runs anyway (the background writer)
//! calls [`Publisher::maybe_publish`], which checks the clock and mostly does nothing. An idle
//! store sleeps, and its file gets old although it is right. So a reader must not conclude from its
//! age that the process died. It asks the system instead whether the process is alive. It compares
//! pid and start time together, because pids are reused. It does so only in the same boot and pid
//! namespace, because elsewhere the number means another process. If the system cannot tell
//! (another container, another machine over a network, no `/proc`), only the age is known.
//!
//! Nothing here can fail the store. A full disk or a directory without write permission costs the
//! statistics, one warning, and a count of failures.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use millpond_device::{beside, file::new_file::create_like, real_path};
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::store::stats::Stats;
use crate::store::stats::json::Object;
use crate::store::stats::process::Process;

/// Default time between two versions: a second.
pub const PUBLISH_PERIOD: Duration = Duration::from_secs(1);

/// A file of this size or more is not a statistics file; all buckets of all histograms fit.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 20;

/// Returns the path at which a store publishes statistics: its own path with the suffix `.stat`.
pub fn stat_path(store: &Path) -> PathBuf {
    beside(store, ".stat")
}

/// Contents of the statistics file.
///
/// ```
/// use millpond::{Db, Options, Published};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("pond.mp");
/// let db = Db::open(&path, Options::new().memory(16 << 20))?;
/// db.tree::<String, u32>("birds")?.put("heron", &3)?;
/// db.close()?;
/// let published = Published::read(&path)?;
/// assert!(published.is_closed && published.stats.puts == 1);
/// # Ok(()) }
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default))]
pub struct Published {
    /// Version of the library that wrote it.
    pub version: String,
    /// The process that wrote the file.
    pub process: Process,
    /// Time of the store's opening, in ms since 1970.
    pub started_ms: u64,
    /// Time of this version, in ms since 1970.
    pub written_ms: u64,
    /// Set if the store was closed since.
    pub is_closed: bool,
    /// The statistics.
    pub stats: Stats,
}

fn now_ms() -> u64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since_1970.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

/// Publishes a store's statistics from time to time.
#[derive(Debug)]
pub struct Publisher {
    /// The data file, whose mode and owner the statistics file gets.
    store: PathBuf,
    path: PathBuf,
    new_path: PathBuf,
    period_ms: u64,
    process: Process,
    started_ms: u64,
    opened: Instant,
    /// Due time of the next version, in ms since `opened`.
    due_ms: AtomicU64,
    /// Set while the file is written.
    is_busy: AtomicBool,
    failures: AtomicU64,
}

impl Publisher {
    /// Returns a publisher for the store at `store`, with at most one version per `period`. Writes
    /// nothing yet; the first version is due at once.
    pub fn new(store: &Path, period: Duration) -> Publisher {
        // The process may be in another folder by the time it publishes.
        let path = stat_path(store);
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let (store, path) = (absolute(real_path(store)), absolute(path));
        Publisher {
            store,
            new_path: beside(&path, ".new"),
            path,
            period_ms: u64::try_from(period.as_millis()).unwrap_or(u64::MAX),
            process: Process::current(Path::new("/proc")),
            started_ms: now_ms(),
            opened: Instant::now(),
            due_ms: AtomicU64::new(0),
            is_busy: AtomicBool::new(false),
            failures: AtomicU64::new(0),
        }
    }

    /// Publishes the result of `stats` if a version is due; otherwise it does not call `stats`.
    /// Returns `true` if it wrote a version. Any thread may call this; one at a time writes.
    pub fn maybe_publish(&self, stats: impl FnOnce() -> Stats) -> bool {
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        let due = self.due_ms.load(Ordering::Relaxed);
        if now < due || self.is_busy.swap(true, Ordering::Acquire) {
            return false;
        }
        self.due_ms.store(now.saturating_add(self.period_ms), Ordering::Relaxed);
        let is_written = self.publish(stats(), false);
        self.is_busy.store(false, Ordering::Release);
        is_written
    }

    /// Publishes the last version, of a closed store. Returns `true` if it was written.
    pub fn close(&self, stats: Stats) -> bool {
        // A thread that is writing now writes nothing after this, and needs microseconds.
        for _ in 0..1000 {
            if !self.is_busy.swap(true, Ordering::Acquire) {
                // Nobody else writes from here on.
                return self.publish(stats, true);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    /// Returns the number of versions that could not be written.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    fn publish(&self, mut stats: Stats, is_closed: bool) -> bool {
        stats.uptime_s = self.opened.elapsed().as_secs_f64();
        let published = Published {
            version: env!("CARGO_PKG_VERSION").to_string(),
            process: self.process.clone(),
            started_ms: self.started_ms,
            written_ms: now_ms(),
            is_closed,
            stats,
        };
        match self.replace(&published) {
            Ok(()) => true,
            Err(error) => {
                // Half a file is useless, above all on a full disk.
                let _ = fs::remove_file(&self.new_path);
                if self.failures.fetch_add(1, Ordering::Relaxed) == 0 {
                    let path = self.path.display();
                    tracing::warn!("statistics cannot be published to {path}: {error}");
                }
                false
            }
        }
    }

    fn replace(&self, published: &Published) -> io::Result<()> {
        let text = published.to_json() + "\n";
        // Left by a process that died.
        let _ = fs::remove_file(&self.new_path);
        let mut file = create_like(&self.new_path, &self.store)?;
        file.write_all(text.as_bytes())?;
        drop(file);
        fs::rename(&self.new_path, &self.path)
    }
}

/// Reason that there are no statistics to read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatFileError {
    /// The store has never published, or the file was removed.
    #[error("{} is not there: the store was never open, or publishes nothing", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Reason of the failure.
        error: io::Error,
    },
    /// The file is not a statistics file.
    #[error(
        "{} holds no statistics ({reason}): remove it, the store writes a new one",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The fault of the file.
        reason: String,
    },
}

/// State of the store whose statistics were published: running or not.
///
/// ```
/// use millpond::{Db, Freshness, Options, Published};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("pond.mp");
/// let db = Db::open(&path, Options::new().memory(16 << 20))?;
/// db.tree::<String, u32>("birds")?.put("heron", &3)?;
/// db.close()?;
/// match Published::read(&path)?.freshness() {
///     Freshness::Live { age } => println!("in use, {age:?} ago"),
///     Freshness::Closed => println!("closed"),
///     _ => println!("not closed"),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Freshness {
    /// The process is alive and has the store open; the numbers are `age` old. A large age only
    /// means that nothing has happened since.
    Live {
        /// Time since the file was written.
        age: Duration,
    },
    /// The store was closed; these are its last numbers.
    Closed,
    /// The process ended without closing the store.
    Gone,
    /// This process cannot find out whether the other one is alive (another container or machine).
    Unknown {
        /// Time since the file was written.
        age: Duration,
    },
}

impl Published {
    fn to_json(&self) -> String {
        let mut json = String::new();
        let mut object = Object::begin(&mut json);
        object.text("version", &self.version);
        self.process.write_json(object.value("process"));
        object.number("started_ms", self.started_ms);
        object.number("written_ms", self.written_ms);
        object.flag("is_closed", self.is_closed);
        self.stats.write_json(object.value("stats"));
        object.end();
        json
    }

    /// Reads the last published statistics of the store at `store`.
    ///
    /// ```
    /// use millpond::{Db, Options, Published};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("pond.mp");
    /// let db = Db::open(&path, Options::new().memory(16 << 20))?;
    /// db.tree::<String, u32>("birds")?.put("heron", &3)?;
    /// db.close()?;
    /// println!("{}", Published::read(&path)?.stats);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`StatFileError`].
    #[cfg(feature = "serde")]
    pub fn read(store: &Path) -> Result<Published, StatFileError> {
        let path = stat_path(store);
        let text = read_at_most(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => StatFileError::Missing { path: path.clone() },
            _ => StatFileError::Io { path: path.clone(), error: source },
        })?;
        let foreign = |reason: String| StatFileError::Foreign { path: path.clone(), reason };
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(foreign(format!("more than {FILE_BYTES_MAX} bytes")));
        }
        let published: Published =
            serde_json::from_slice(&text).map_err(|error| foreign(error.to_string()))?;
        if published.process.pid == 0 {
            return Err(foreign("it names no process".to_string()));
        }
        Ok(published)
    }

    /// Returns the state of the store whose statistics these are.
    ///
    /// ```
    /// use millpond::{Db, Freshness, Options, Published};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("pond.mp");
    /// let db = Db::open(&path, Options::new().memory(16 << 20))?;
    /// db.tree::<String, u32>("birds")?.put("heron", &3)?;
    /// db.close()?;
    /// assert_eq!(Published::read(&path)?.freshness(), Freshness::Closed);
    /// # Ok(()) }
    /// ```
    pub fn freshness(&self) -> Freshness {
        self.freshness_by(Path::new("/proc"), now_ms())
    }

    /// Like [`Published::freshness`], with `proc` as `/proc` and `now_ms` as the clock, in ms since
    /// 1970.
    #[doc(hidden)]
    pub fn freshness_by(&self, proc: &Path, now_ms: u64) -> Freshness {
        let age = Duration::from_millis(now_ms.saturating_sub(self.written_ms));
        match self.process.is_alive(proc) {
            _ if self.is_closed => Freshness::Closed,
            Some(true) => Freshness::Live { age },
            Some(false) => Freshness::Gone,
            None => Freshness::Unknown { age },
        }
    }
}

fn read_at_most(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(File::open(path)?, FILE_BYTES_MAX + 1), &mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::stats::process::start_ticks;
    use std::process::Command;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    fn stats(misses: u64) -> Stats {
        Stats { misses, references: misses * 10, ..Stats::default() }
    }

    #[test]
    fn what_is_published_is_read_back_as_that_of_a_live_store() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("a store.db");
        let publisher = Publisher::new(&store, Duration::ZERO);
        assert!(matches!(Published::read(&store), Err(StatFileError::Missing { .. })));
        assert!(publisher.maybe_publish(|| stats(7)));
        let read = Published::read(&store).unwrap();
        assert_eq!((read.stats.misses, read.process.pid), (7, std::process::id()));
        assert!(read.started_ms <= read.written_ms && read.written_ms <= now_ms());
        if Path::new("/proc/self/stat").exists() {
            assert!(matches!(read.freshness(), Freshness::Live { .. }), "{:?}", read.freshness());
        }
        assert!(publisher.close(stats(8)));
        let read = Published::read(&store).unwrap();
        assert_eq!((read.stats.misses, read.freshness()), (8, Freshness::Closed));
        // After closing, a late thread changes nothing.
        assert!(!publisher.maybe_publish(|| stats(9)));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(publisher.failures(), 0);
    }

    #[test]
    fn a_version_is_written_when_it_is_due_and_the_snapshot_is_taken_only_then() {
        let dir = tempfile::tempdir().unwrap();
        let publisher = Publisher::new(&dir.path().join("s"), Duration::from_secs(100_000));
        let taken = AtomicUsize::new(0);
        let take = || {
            taken.fetch_add(1, Ordering::Relaxed);
            stats(1)
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).filter(|_| publisher.maybe_publish(take)).count());
            }
        });
        assert_eq!(taken.into_inner(), 1);
    }

    #[test]
    fn readers_never_see_half_a_version() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("s");
        let publisher = Publisher::new(&store, Duration::ZERO);
        assert!(publisher.maybe_publish(|| stats(1)));
        thread::scope(|scope| {
            scope.spawn(|| (0..200).filter(|i| publisher.maybe_publish(|| stats(*i))).count());
            for _ in 0..200 {
                let read = Published::read(&store).unwrap();
                assert_eq!(read.stats.references, read.stats.misses * 10);
            }
        });
    }

    #[test]
    fn a_directory_that_is_gone_or_something_in_the_way_costs_the_statistics_only() {
        let dir = tempfile::tempdir().unwrap();
        let gone = Publisher::new(&dir.path().join("no/such/store"), Duration::ZERO);
        assert!(!gone.maybe_publish(|| stats(1)));
        assert!(!gone.maybe_publish(|| stats(1)));
        assert_eq!(gone.failures(), 2);
        let (store, way) = (dir.path().join("s"), dir.path().join("s.stat.new"));
        let publisher = Publisher::new(&store, Duration::ZERO);
        assert!(publisher.maybe_publish(|| stats(1)));
        fs::create_dir(&way).unwrap();
        assert!(!publisher.maybe_publish(|| stats(2)));
        assert_eq!(publisher.failures(), 1);
        assert_eq!(Published::read(&store).unwrap().stats.misses, 1);
        fs::remove_dir(&way).unwrap();
        // A leftover of a dead process is replaced, and not followed.
        #[cfg(unix)]
        std::os::unix::fs::symlink("/dev/full", &way).unwrap();
        assert!(publisher.maybe_publish(|| stats(3)));
        assert_eq!(Published::read(&store).unwrap().stats.misses, 3);
    }

    #[test]
    fn a_process_that_ended_or_whose_pid_is_another_s_now_is_gone() {
        if !Path::new("/proc/self/stat").exists() {
            println!("skipped: no /proc");
            return;
        }
        let proc = Path::new("/proc");
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let start = start_ticks(proc, child.id()).unwrap();
        let process = Process { pid: child.id(), start_ticks: start, ..Process::current(proc) };
        assert_eq!(process.is_alive(proc), Some(true));
        let other = Process { start_ticks: start + 1, ..process.clone() };
        assert_eq!(other.is_alive(proc), Some(false));
        child.kill().unwrap();
        child.wait().unwrap();
        let published = Published { process, written_ms: now_ms(), ..Published::default() };
        assert_eq!(published.freshness(), Freshness::Gone);
    }

    #[test]
    fn where_the_process_cannot_be_asked_only_age_is_known() {
        let proc = Path::new("/proc");
        let here = Process::current(proc);
        let elsewhere = [
            Process { boot_id: "another machine".into(), ..here.clone() },
            Process { pid_namespace: "pid:[1]".into(), ..here.clone() },
            Process { start_ticks: 0, ..here.clone() },
        ];
        for process in elsewhere {
            let published = Published { process, written_ms: 1000, ..Published::default() };
            let age = Duration::from_millis(2500);
            assert_eq!(published.freshness_by(proc, 3500), Freshness::Unknown { age });
        }
        let published = Published { process: here, ..Published::default() };
        let nowhere = Path::new("/no/proc");
        assert!(matches!(published.freshness_by(nowhere, 5), Freshness::Unknown { .. }));
    }

    #[test]
    fn a_program_s_name_may_hold_anything() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("7")).unwrap();
        let write = |text: &str| fs::write(dir.path().join("7/stat"), text).unwrap();
        let rest = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        write(&format!("7 (a) b) 9 (c) S {rest}"));
        assert_eq!(start_ticks(dir.path(), 7), Some(4242));
        write(&format!("7 (zombie) Z {rest}"));
        assert_eq!(start_ticks(dir.path(), 7), None);
        for broken in ["", "7 (x", "7 (x) S 1 2", "7 (x) S 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 x"] {
            write(broken);
            assert_eq!(start_ticks(dir.path(), 7), None, "{broken}");
        }
    }

    #[test]
    fn a_file_that_is_something_else_is_told_from_one_of_ours() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("s");
        for text in ["", "{", "[]", "{}", "null", "{\"process\": {\"pid\": -1}}", "\u{0}"] {
            fs::write(stat_path(&store), text).unwrap();
            let error = Published::read(&store).unwrap_err();
            assert!(matches!(error, StatFileError::Foreign { .. }), "{text}: {error}");
        }
        fs::write(stat_path(&store), vec![b' '; (FILE_BYTES_MAX + 5) as usize]).unwrap();
        assert!(matches!(Published::read(&store), Err(StatFileError::Foreign { .. })));
        fs::remove_file(stat_path(&store)).unwrap();
        fs::create_dir(stat_path(&store)).unwrap();
        assert!(matches!(Published::read(&store), Err(StatFileError::Io { .. })));
    }
}
