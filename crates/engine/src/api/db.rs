//! [`Db`]: a store as users open it.

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

/// A store.
///
/// A handle: clones are cheap and may be used from any thread. The store closes when the last
/// handle goes, those of its structures among them; [`Db::close`] shows errors.
///
/// In the child of a `fork` the handles of its parent do nothing: calls return [`Error::Forked`],
/// and dropping them leaves the store alone. A daemon opens its stores after it has detached.
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
    /// Opens the store in the file at `path`, or creates it if options allow that.
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
    /// [`Error`]: options that cannot be, a file that cannot be opened, is in use, is no store,
    /// was not closed cleanly, has another page size than asked for; or no memory.
    /// [`Error::Remains`]: the data file is missing, and another file of the store is there.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db, Error> {
        Db::start(&options, Builder::file(path.as_ref(), &options))
    }

    /// Opens the store in the file at `path` although its log may be damaged before its end: the
    /// store is recovered as it was at the damage, and what was committed behind it is lost. Where
    /// that cannot be, nothing is changed. A log that is sound is recovered as by [`Db::open`].
    /// [`Db::recovery`] says what was given up.
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
    /// As [`Db::open`], or the damage, if no sound store can be had.
    pub fn open_salvaging(path: impl AsRef<Path>, options: Options) -> Result<Db, Error> {
        Db::open(path, options.lab(|lab| lab.salvage_log = true))
    }

    /// A new store in memory: the file, too, is memory, so that everything is gone afterwards.
    /// [`Options::memory`] is for the pool; the file comes on top. So does what transactions and
    /// snapshots need beyond their share: four times the number at most, or [`Options::spill_max`].
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
    /// [`Error`]: options that cannot be, or no memory.
    pub fn in_memory(options: Options) -> Result<Db, Error> {
        Db::open_on(Arc::new(MemoryDevice::new()), options)
    }

    /// Opens the store on any device, or creates it if the device is empty. Statistics are not
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
    /// As [`Db::open`].
    pub fn open_on(device: Arc<dyn Device>, options: Options) -> Result<Db, Error> {
        Db::start(&options, Builder::device(device, &options))
    }

    /// Opens the store on `device`, with its log on `log`, or creates both if they are empty. If it
    /// was not closed, it is recovered.
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
    /// As [`Db::open`].
    pub fn open_on_devices(
        device: Arc<dyn Device>,
        log: Arc<dyn Device>,
        options: Options,
    ) -> Result<Db, Error> {
        Db::start(&options, Builder::devices(device, log, &options))
    }

    /// As [`Db::open_on_devices`], where the second tier that the options ask for has its cache on
    /// `fast`.
    ///
    /// # Errors
    /// As [`Db::open`].
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

    /// Ends all waits for locks, for bindings that wait for the calls under way before they close.
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

    /// What was done to make the store whole when it was opened; `None` if it had been closed, with
    /// a log that was sound.
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

    /// Makes everything durable that was changed before the call, by single calls and by commits
    /// that did not wait. Operations may run meanwhile.
    ///
    /// Without a log it writes what is dirty, which bounds how long [`Db::close`] takes, and no
    /// more: a store whose process dies is not opened again, however often it was flushed, because
    /// its pages need not fit together. What is flushed can be salvaged.
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
    /// A page could not be written, or the device did not confirm.
    pub fn flush(&self) -> Result<(), Error> {
        self.store.flush()
    }

    /// Takes a checkpoint, so that a recovery would begin about here. The store takes them itself,
    /// as [`Options::log_gap`] demands; nobody waits for one.
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
    /// Log or data could not be made durable.
    pub fn checkpoint(&self) -> Result<(), Error> {
        self.store.checkpoint()
    }

    /// Writes a backup to `target`, where nothing is yet, while the store is used: one file, a
    /// store of its own that was closed. It has everything that was committed before this call, and
    /// of what is committed meanwhile all up to one moment. The log is kept, and so grows, until
    /// the pages are copied.
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
    /// [`Error::Backup`]: something has that name, there is no room, the store has no log, or one
    /// of its pages is damaged; [`Error::ReadOnly`]; or its log failed. Nothing is left behind.
    pub fn backup_to(&self, target: impl AsRef<Path>) -> Result<Backup, Error> {
        self.backup_with(target, &mut |_| ControlFlow::Continue(()))
    }

    /// As [`Db::backup_to`], telling `watch` how far it has come after each MiB. It may wait there,
    /// to limit the load on the device, and returns `Break` to end the backup.
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
    /// As [`Db::backup_to`], or [`BackupError::GivenUp`](crate::error::BackupError::GivenUp).
    pub fn backup_with(
        &self,
        target: impl AsRef<Path>,
        watch: &mut BackupWatch<'_>,
    ) -> Result<Backup, Error> {
        self.store.backup_to(target.as_ref(), watch)
    }

    /// Copies the store to two empty devices while it is used, as a crash would leave it: opening
    /// the copy ([`Db::open_on_devices`]) recovers it. What is in it is what [`Db::backup_to`]
    /// says. It has the store's own id: neither log must ever get beside the other data.
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
    /// As [`Db::backup_with`]. What is on the devices then is of no use.
    pub fn backup_to_devices(
        &self,
        data: &Arc<dyn Device>,
        log: &Arc<dyn Device>,
        watch: &mut BackupWatch<'_>,
    ) -> Result<Backup, Error> {
        self.store.backup_to_devices(data, log, watch)
    }

    /// Moves pages in use to where the front of the data file is free, gives the end that comes
    /// free back to the file system, and of the log what [`Options::log_gap`] does not ask for.
    /// Operations may run meanwhile; in place, pages that they hold, or that transactions under way
    /// need to abort, may stay where they are.
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
    /// [`BackupError::UnderWay`](crate::error::BackupError::UnderWay),
    /// [`Error::ReadOnly`]; a page could not be read; or log or data could not be made durable. The
    /// store is as it was, perhaps with some pages elsewhere.
    pub fn shrink(&self) -> Result<Shrunk, Error> {
        self.shrink_with(&mut |_| ControlFlow::Continue(()))
    }

    /// As [`Db::shrink`], telling `watch` how far it has come: before the first page moves, and
    /// after each 64 pages, or where ids move, after each checkpoint, of which there is one for
    /// some MiB of pages. It may wait there to limit the load on the device, and returns `Break` to
    /// leave it at that.
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
    /// As [`Db::shrink`].
    pub fn shrink_with(&self, watch: &mut ShrinkWatch<'_>) -> Result<Shrunk, Error> {
        self.store.shrink(watch)
    }

    /// What the store did since it was opened, and its state now.
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
    /// them: where the time goes, component by component. Other stores of the process are in it,
    /// too, and the program itself. Needs the feature `profile`, line tables
    /// (`debug = "line-tables-only"` in the program's profile), and the right to sample the own
    /// process. Threads are slower by 3 to 10 % meanwhile.
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

    /// Records page references, if [`Lab::records`](crate::store::options::Lab::records) is set.
    #[doc(hidden)]
    pub fn recorder(&self) -> &Recorder {
        self.store.pool().recorder()
    }

    /// Records requests to storage once it is started: page reads, writes and syncs.
    #[doc(hidden)]
    pub fn storage_recorder(&self) -> &StorageRecorder {
        self.store.pool().storage_recorder()
    }

    /// Bytes of a page.
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

    /// Closes the store, whatever handles of it are left: everything is durable, their calls fail
    /// with [`Error::Closed`], and the store can be opened again at once. Single writes under way
    /// are waited for. A transaction that is left, or another call that is under way, has the next
    /// opening recover the store, as after a crash: it undoes the transaction.
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
    /// [`Error::InUse`]: a closure that looks at a page has called it. [`Error::Displaced`]: a file
    /// no longer has its name. After an error, and where the store has no log, the file stays the
    /// store's until its last handle goes.
    pub fn close(self) -> Result<(), Error> {
        self.store.close()
    }
}

/// Refuses what only the laboratory chooses: other translations, other latching, recording.
fn check_strategies(options: &Options) -> Result<(), Error> {
    let lab = &options.lab;
    let policy = options.own_policies.choose(&options.policy);
    let policy = policy.map_err(OptionsError::from)?;
    let chosen = Combination::choose(lab.translation, lab.latching, &policy, lab.records);
    match chosen.map_err(LabError::from)? {
        Combination::SwizzledAny => Ok(()),
        #[cfg(feature = "lab")]
        laboratory => Err(LabError::NotForUsers { combination: laboratory.to_string() }.into()),
    }
}
