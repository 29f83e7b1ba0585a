//! [`Db`]: an open store, as users see it.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use millpond_device::{Device, MemoryDevice};

use crate::admin::backup::{Backup, BackupWatch};
use crate::admin::salvage::names;
use crate::admin::shrink::{ShrinkWatch, Shrunk};
use crate::api::strategy::*;
use crate::pool::StorageRecorder;
use crate::pool::recording::recorder::Recorder;
use crate::recovery::Recovery;
use crate::store::combinations::Combination;
use crate::store::error::Error;
use crate::store::error::lab::LabError;
use crate::store::opening::Builder;
use crate::store::options::{Options, OptionsError};
use crate::store::stats::Stats;
use crate::txn::Durability;

/// An open store.
///
/// A handle: clones are cheap and may be used from any thread. The store closes when its last
/// handle is dropped, including the handles of its structures. Use [`Db::close`] to see errors.
///
/// In the child of a `fork`, the handles of the parent do nothing: calls return [`Error::Forked`],
/// and dropping the handles leaves the store alone. A daemon should open its stores after it has
/// detached.
///
/// ```
/// use millpond::{Db, Options};
/// # fn main() -> Result<(), millpond::Error> {
/// let db = Db::in_memory(Options::new().memory(16 << 20))?;
/// let people = db.tree::<String, u32>("people")?;
/// people.insert("Ada", &36)?;
/// assert_eq!(people.get("Ada")?, Some(36));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Db {
    store: DbStore,
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db").field("path", &self.store.pages().path()).finish()
    }
}

impl Db {
    /// Opens the store in the file at `path`, or creates it if the options allow that.
    ///
    /// ```
    /// # use millpond::{Db, Options};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let db = Db::open(folder.path().join("pond.mp"), Options::new().memory(16 << 20))?;
    /// db.close()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// - [`Error`]: the options contradict each other, or there is not enough memory.
    /// - The file cannot be opened, is in use, is not a store, was not closed cleanly, or has
    ///   another page size than the options.
    /// - [`Error::Remains`]: the data file is missing, and another file of the store is there.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db, Error> {
        Db::start(&options, Builder::file(path.as_ref(), &options))
    }

    /// Opens the store in the file at `path` even if its log is damaged before the end. The store
    /// is recovered as it was at the damage, and commits after that point are lost. If that is
    /// impossible, nothing is changed. A sound log is recovered as by [`Db::open`].
    /// [`Db::recovery`] reports the loss.
    ///
    /// ```
    /// use millpond::{Db, Options};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("pond.mp");
    /// let db = Db::open_salvaging(&path, Options::new().memory(16 << 20))?;
    /// if let Some(salvaged) = db.recovery().and_then(|recovery| recovery.salvaged) {
    ///     println!("{} commits are lost", salvaged.lost.commits);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Db::open`], or the damage, if it leaves no sound store.
    pub fn open_salvaging(path: impl AsRef<Path>, options: Options) -> Result<Db, Error> {
        Db::open(path, options.with_lab(|lab| lab.salvage_log = true))
    }

    /// Creates a new store in memory. Its file is in memory, too, so everything is gone when the
    /// store closes. [`Options::memory`] sizes the pool; the file comes on top. Transactions and
    /// snapshots may also take more than their share: up to four times as much, or
    /// [`Options::spill_max`].
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// assert!(db.trees()?.is_empty());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error`]: the options contradict each other, or there is not enough memory.
    pub fn in_memory(options: Options) -> Result<Db, Error> {
        Db::open_on(Arc::new(MemoryDevice::new()), options)
    }

    /// Opens the store on any device, or creates it if the device is empty. Its statistics are not
    /// published.
    ///
    /// ```
    /// use millpond::{Db, Options};
    /// use millpond_device::{Device, MemoryDevice};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    /// let db = Db::open_on(device.clone(), Options::new().memory(16 << 20))?;
    /// db.tree::<String, u32>("birds")?.put("heron", &3)?;
    /// db.close()?;
    /// let db = Db::open_on(device, Options::new().memory(16 << 20))?;
    /// assert_eq!(db.tree::<String, u32>("birds")?.get("heron")?, Some(3));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Db::open`].
    pub fn open_on(device: Arc<dyn Device>, options: Options) -> Result<Db, Error> {
        Db::start(&options, Builder::device(device, &options))
    }

    /// Opens the store on `device`, with its log on `log`, or creates both if they are empty.
    /// Recovers the store if it was not closed.
    ///
    /// ```
    /// use millpond::{Db, Options};
    /// use millpond_device::MemoryDevice;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// let [data, log] = [0, 1].map(|_| Arc::new(MemoryDevice::new()));
    /// let db = Db::open_on_devices(data, log, Options::new().memory(16 << 20))?;
    /// db.transact(|tx| tx.tree(&db.tree::<String, u32>("birds")?).put("heron", &3))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Db::open`].
    pub fn open_on_devices(
        device: Arc<dyn Device>,
        log: Arc<dyn Device>,
        options: Options,
    ) -> Result<Db, Error> {
        Db::start(&options, Builder::devices(device, log, &options))
    }

    /// Like [`Db::open_on_devices`], with the cache of the second tier that the options ask for on
    /// `fast`.
    ///
    /// # Errors
    /// Same as [`Db::open`].
    #[doc(hidden)]
    pub fn open_on_tiered_devices(
        device: Arc<dyn Device>,
        log: Arc<dyn Device>,
        fast: Arc<dyn Device>,
        options: Options,
    ) -> Result<Db, Error> {
        let builder = Builder::devices(device, log, &options);
        Db::start(&options, builder.second_tier_on(fast))
    }

    fn start(options: &Options, builder: Builder<'_>) -> Result<Db, Error> {
        check_strategies(options)?;
        Ok(Db { store: builder.naming(names).open()? })
    }

    /// Ends all waits for locks. Bindings call it before they close, because they wait for calls in
    /// progress.
    #[doc(hidden)]
    pub fn end_waits(&self) {
        if let Some(locks) = self.store.transactions().locks() {
            locks.end_waits();
        }
    }

    pub(crate) fn store(&self) -> &DbStore {
        &self.store
    }

    /// Returns the durability of transactions that do not set their own.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// assert_eq!(db.durability(), millpond::Durability::Sync);
    /// # Ok(()) }
    /// ```
    pub fn durability(&self) -> Durability {
        self.store.durability()
    }

    /// Returns the recovery that ran when the store was opened, or `None` if the store had been
    /// closed with a sound log.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// assert!(db.recovery().is_none());
    /// # Ok(()) }
    /// ```
    pub fn recovery(&self) -> Option<Recovery> {
        self.store.recovery()
    }

    /// Makes every earlier change durable: changes by single calls and by commits that did not
    /// wait. Other operations may run at the same time.
    ///
    /// Without a log, the call only writes the dirty pages, which bounds how long [`Db::close`]
    /// takes. A store without a log cannot be opened again after its process dies, however often it
    /// was flushed, because its pages need not be consistent with each other. Flushed data can be
    /// salvaged.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// db.tree::<String, u32>("birds")?.put("heron", &3)?;
    /// db.flush()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A page could not be written, or the device did not confirm the write.
    pub fn flush(&self) -> Result<(), Error> {
        self.store.flush()
    }

    /// Takes a checkpoint, so that a recovery would start about here. The store takes checkpoints
    /// by itself, as often as [`Options::log_gap`] demands, and no operation waits for one.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// db.checkpoint()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The log or the data could not be made durable.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.store.checkpoint()
    }

    /// Writes a backup to `target`, which must not exist, while the store is in use. The backup is
    /// one file: a closed store of its own. It contains everything committed before this call, and
    /// all later commits up to one moment during it. The log is kept, and so grows, until the pages
    /// are copied.
    ///
    /// ```
    /// use millpond::{Db, Options};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let db = Db::open(folder.path().join("pond.mp"), Options::new().memory(16 << 20))?;
    /// db.tree::<String, u32>("birds")?.insert("heron", &3)?;
    /// db.backup_to(folder.path().join("monday.mp"))?;
    ///
    /// let monday = Db::open(folder.path().join("monday.mp"), Options::new().memory(16 << 20))?;
    /// assert_eq!(monday.tree::<String, u32>("birds")?.get("heron")?, Some(3));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Backup`]: the target exists, the disk is full, the store has no log, or one of its
    /// pages is damaged. [`Error::ReadOnly`]. The store's log failed. On an error, no file is left
    /// behind.
    pub fn backup_to(&self, target: impl AsRef<Path>) -> Result<Backup, Error> {
        self.backup_with(target, &mut |_| ControlFlow::Continue(()))
    }

    /// Like [`Db::backup_to`], with progress: calls `watch` after each MiB. The watch may wait, to
    /// limit the load on the device, and returns `Break` to end the backup.
    ///
    /// ```
    /// use millpond::{Db, Options};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// use std::ops::ControlFlow;
    /// let db = Db::open(folder.path().join("pond.mp"), Options::new().memory(16 << 20))?;
    /// db.tree::<String, u32>("birds")?.put("heron", &3)?;
    /// db.backup_with(folder.path().join("monday.mp"), &mut |progress| {
    ///     println!("{:?}: {} of {} bytes", progress.phase, progress.done, progress.total);
    ///     ControlFlow::Continue(())
    /// })?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Db::backup_to`], or [`BackupError::GivenUp`](crate::error::BackupError::GivenUp).
    pub fn backup_with(
        &self,
        target: impl AsRef<Path>,
        watch: &mut BackupWatch<'_>,
    ) -> Result<Backup, Error> {
        self.store.backup_to(target.as_ref(), watch)
    }

    /// Copies the store to two empty devices while it is in use, in the state that a crash would
    /// leave: opening the copy ([`Db::open_on_devices`]) recovers it. The copy has the contents
    /// that [`Db::backup_to`] describes. It also has the store's own id: never put the log of one
    /// beside the data of the other.
    ///
    /// ```
    /// use millpond::{Db, Options};
    /// use millpond_device::{Device, MemoryDevice};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// use std::ops::ControlFlow;
    /// use std::sync::Arc;
    /// let db = Db::open(folder.path().join("pond.mp"), Options::new().memory(16 << 20))?;
    /// db.tree::<String, u32>("birds")?.put("heron", &3)?;
    /// let [data, log]: [Arc<dyn Device>; 2] = [0, 1].map(|_| Arc::new(MemoryDevice::new()) as _);
    /// db.backup_to_devices(&data, &log, &mut |_| ControlFlow::Continue(()))?;
    /// let copy = Db::open_on_devices(data, log, Options::new().memory(16 << 20))?;
    /// assert_eq!(copy.tree::<String, u32>("birds")?.get("heron")?, Some(3));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Db::backup_with`]. After an error, the contents of the devices are useless.
    pub fn backup_to_devices(
        &self,
        data: &Arc<dyn Device>,
        log: &Arc<dyn Device>,
        watch: &mut BackupWatch<'_>,
    ) -> Result<Backup, Error> {
        self.store.backup_to_devices(data, log, watch)
    }

    /// Moves pages in use to free space at the front of the data file and gives the freed end back
    /// to the file system. Also gives back the part of the log that [`Options::log_gap`] does not
    /// ask for. Other operations may run at the same time. In an in-place store, pages that they
    /// hold, or that open transactions need to abort, may stay where they are.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// db.shrink()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`BackupError::UnderWay`](crate::error::BackupError::UnderWay), [`Error::ReadOnly`]. A page
    /// could not be read. The log or the data could not be made durable. After an error, the
    /// contents of the store are unchanged, though some pages may have moved.
    pub fn shrink(&self) -> Result<Shrunk, Error> {
        self.shrink_with(&mut |_| ControlFlow::Continue(()))
    }

    /// Like [`Db::shrink`], with progress. Calls `watch` before the first page moves and after each
    /// 64 pages; where page ids move, after each checkpoint, which comes every few MiB of pages.
    /// The watch may wait, to limit the load on the device, and returns `Break` to stop early.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use millpond::{Db, Options};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let db = Db::open(folder.path().join("pond.mp"), Options::new().memory(16 << 20))?;
    /// # let fill = |name| -> Result<(), Box<dyn std::error::Error>> {
    /// #     let tree = db.raw_tree(name)?;
    /// #     (0..8000u32).try_for_each(|row| tree.put(&row.to_be_bytes(), &[7; 300]).map(drop))?;
    /// #     Ok(())
    /// # };
    /// fill("last year")?;
    /// fill("this year")?;
    /// db.drop_tree("last year")?;
    /// let shrunk = db.shrink_with(&mut |_| ControlFlow::Continue(()))?;
    /// assert_eq!(shrunk.pages_left, 0);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Same as [`Db::shrink`].
    pub fn shrink_with(&self, watch: &mut ShrinkWatch<'_>) -> Result<Shrunk, Error> {
        self.store.shrink(watch)
    }

    /// Returns counters since the store was opened, and its present state.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let before = db.stats();
    /// db.tree::<String, u32>("birds")?.put("heron", &3)?;
    /// assert_eq!(db.stats().since(&before).puts, 1);
    /// # Ok(()) }
    /// ```
    pub fn stats(&self) -> Stats {
        self.store.stats()
    }

    /// Samples the call stacks of all threads of the process for `time`, by CPU time, and resolves
    /// them. The result is the CPU time per component. It includes the program itself and other
    /// stores of the process. Needs the feature `profile`, line tables (`debug =
    /// "line-tables-only"` in the program's profile), and the right to sample the process itself.
    /// Threads run 3 to 10 % slower while it samples.
    ///
    /// ```
    /// # use millpond::{Db, Options};
    /// use millpond::profile::{Components, ProfileError};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// match db.profile(std::time::Duration::from_millis(50)) {
    ///     Ok(profile) => println!("{}", profile.breakdown(&Components::shipped()?)),
    ///     Err(ProfileError::Forbidden { .. }) => println!("not in this container"),
    ///     Err(error) => return Err(error.into()),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`ProfileError`](crate::profile::ProfileError).
    #[cfg(feature = "profile")]
    pub fn profile(
        &self,
        time: std::time::Duration,
    ) -> Result<crate::profile::Profile, crate::profile::ProfileError> {
        let sampling = crate::profile::Sampling::start(&crate::profile::Options::default())?;
        std::thread::sleep(time);
        sampling.stop()
    }

    /// Returns the recorder of page references, which records if
    /// [`Lab::records`](crate::store::options::Lab::records) is set.
    #[doc(hidden)]
    pub fn recorder(&self) -> &Recorder {
        self.store.pool().recorder()
    }

    /// Returns the recorder of storage requests: page reads, writes and syncs, once it is started.
    #[doc(hidden)]
    pub fn storage_recorder(&self) -> &StorageRecorder {
        self.store.pool().storage_recorder()
    }

    /// Returns the number of bytes in a page.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// # let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// assert!(db.page_size() >= 4096);
    /// # Ok(()) }
    /// ```
    pub fn page_size(&self) -> usize {
        self.store.pages().page_size().bytes()
    }

    /// Closes the store even if handles of it are left. Everything becomes durable, calls through
    /// the remaining handles fail with [`Error::Closed`], and the store can be opened again at
    /// once. The call waits for single writes under way. If a transaction or another call is still
    /// under way, the next opening recovers the store, as after a crash, and undoes the
    /// transaction.
    ///
    /// ```
    /// # use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::in_memory(Options::new().memory(16 << 20))?;
    /// let birds = db.tree::<String, u32>("birds")?;
    /// birds.put("heron", &3)?;
    /// db.close()?;
    /// assert!(matches!(birds.get("heron"), Err(Error::Closed)));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::InUse`]: a closure that looks at a page has called this method.
    /// [`Error::Displaced`]: a file no longer has its name. After an error, or if the store has no
    /// log, the file belongs to the store until its last handle is dropped.
    pub fn close(self) -> Result<(), Error> {
        self.store.close()
    }
}

/// Refuses options that only the laboratory uses: other translations, other latching, recording.
fn check_strategies(options: &Options) -> Result<(), Error> {
    let lab = &options.lab;
    let policy = options.own_policies.choose(&options.policy);
    let policy = policy.map_err(OptionsError::from)?;
    let chosen = Combination::choose(lab.translation, lab.latching, &policy, lab.records);
    match chosen.map_err(LabError::from)? {
        Combination::SwizzledAny => Ok(()),
        #[cfg(feature = "recording")]
        laboratory => Err(LabError::NotForUsers { combination: laboratory.to_string() }.into()),
    }
}
