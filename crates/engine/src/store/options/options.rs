//! Options for opening a store. Most users set [`Options::memory`], if anything.
//!
//! Twelve options are for users. Those for measurements, [`Lab`], need the cargo feature
//! `internals`. Values are checked together when the store is opened, or by [`Options::check`].
//! Setters never fail, so that they chain.

use std::path::PathBuf;
use std::time::Duration;

use millpond_device::{FileDevice, FileOptions, Submission};

use crate::page::superblock::Compression;
use crate::recovery::Progress;
use crate::store::options::choices::DirectIo;
use crate::store::options::error::OptionsError;
use crate::store::options::lab::Lab;
use crate::store::options::limits::*;
use crate::store::options::memory_limit::SystemRoots;
use crate::store::options::own_policy::OwnPolicies;
use crate::store::options::recovery_watch::RecoveryWatch;
use crate::store::options::second_tier::SecondTierOptions;
use crate::txn::Durability;

/// Options for opening a store.
///
/// ```
/// use millpond::Options;
/// let options = Options::new().memory(64 << 20).policy("watt(write_weight=2)");
/// options.check().unwrap();
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Bytes of memory for everything: pages, their headers, tables, buffers and the policy's
    /// state. Not included are some 8 KiB for each tree, hash index or heap that was opened since
    /// the store was opened, and up to 400 KiB for each thread that uses it. Default: a quarter of
    /// the memory that the process may use (memory of the machine, control groups, limits).
    pub memory: Option<u64>,
    /// Bytes of a page, a power of two from 4096 to 65536; fixed when the store is created.
    /// Default: that of the store, 4096 for a new one.
    pub page_size: Option<u32>,
    /// Compression of pages in a store that is created with a log; an existing store keeps its own.
    /// A compressed store is smaller, and takes more CPU time for each page read or written.
    /// Default: no compression.
    pub compression: Compression,
    /// The replacement policy, such as `watt(write_weight=2)`: `tide`, `watt`, `lru`, `clock` or
    /// `random`. With the cargo feature `all-policies`, any that `millpond policies` lists.
    /// Default: `tide`.
    pub policy: String,
    /// The program's own policies, which [`Options::policy`](Options#structfield.policy) may name.
    /// Default: none.
    pub own_policies: OwnPolicies,
    /// Open for reading only; the store must exist. Default: no.
    pub read_only: bool,
    /// Create the store if it does not exist, unless `read_only`. Default: yes.
    pub create_if_missing: bool,
    /// A cache of the store's pages on a faster device than the store's own. Has no effect on a
    /// store that is open for reading only; a store whose second tier writes back cannot be opened
    /// for reading only. Default: none.
    pub second_tier: Option<SecondTierOptions>,
    /// Durability of commits, unless the transaction's own options set it. Default: durable when
    /// the call returns. Calls outside transactions are always `async`.
    pub durability: Durability,
    /// Approximate bytes of log that a recovery may have to read. Checkpoints begin at half of it,
    /// and at all of it writers wait for them. Default: 512 MiB.
    pub log_gap: u64,
    /// Maximum bytes of the spill file beside the store, which has the store's name with the suffix
    /// `-spill`. The file takes former versions of entries that do not fit into memory, for
    /// snapshots and for transactions that may be rolled back. It is created on demand, and removed
    /// when the store is closed. With 0 there is no such file: snapshots are lost instead, and
    /// transactions that change too much fail. In a store in memory it is memory, at most four
    /// times [`Options::memory`]. Default: 16 GiB.
    pub spill_max: u64,
    /// Operations that take at least this long are reported to `tracing`, as an event that names
    /// the operation: calls, commits, waits for locks, reads and writes of pages, syncs of the log.
    /// Of calls in memory only, one in 64 is timed, so only one in 64 can be reported. Default: a
    /// second.
    pub slow_after: Duration,
    /// Receiver of the progress of a recovery. Default: none.
    pub recovery_watch: RecoveryWatch,
    /// Options for measurements only, with the cargo feature `internals`.
    #[cfg(feature = "internals")]
    pub lab: Lab,
    #[cfg(not(feature = "internals"))]
    pub(crate) lab: Lab,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            memory: None,
            page_size: None,
            compression: Compression::None,
            policy: POLICY_DEFAULT.to_string(),
            own_policies: OwnPolicies::default(),
            read_only: false,
            create_if_missing: true,
            second_tier: None,
            durability: Durability::default(),
            log_gap: LOG_GAP_DEFAULT,
            spill_max: SPILL_MAX_DEFAULT,
            slow_after: Duration::from_secs(1),
            recovery_watch: RecoveryWatch::default(),
            lab: Lab::default(),
        }
    }
}

impl Options {
    /// Returns the default options.
    ///
    /// ```
    /// use millpond::Options;
    /// assert_eq!(Options::new(), Options::default());
    /// ```
    pub fn new() -> Options {
        Options::default()
    }

    /// Sets [`Options::memory`](#structfield.memory), in bytes.
    ///
    /// ```
    /// use millpond::Options;
    /// assert_eq!(Options::new().memory(1 << 30).memory, Some(1 << 30));
    /// ```
    #[must_use]
    pub fn memory(self, memory: u64) -> Options {
        Options { memory: Some(memory), ..self }
    }

    /// Sets [`Options::page_size`](#structfield.page_size), in bytes.
    ///
    /// ```
    /// use millpond::Options;
    /// Options::new().page_size(8192).check().unwrap();
    /// assert!(Options::new().page_size(5000).check().is_err());
    /// ```
    #[must_use]
    pub fn page_size(self, page_size: u32) -> Options {
        Options { page_size: Some(page_size), ..self }
    }

    /// Sets [`Options::compression`](#structfield.compression).
    ///
    /// ```
    /// use millpond::{Compression, Options};
    /// Options::new().compression(Compression::Lz4).check().unwrap();
    /// ```
    #[must_use]
    pub fn compression(self, compression: Compression) -> Options {
        Options { compression, ..self }
    }

    /// Sets [`Options::policy`](#structfield.policy).
    ///
    /// ```
    /// use millpond::Options;
    /// Options::new().policy("watt(write_weight=2)").check().unwrap();
    /// ```
    #[must_use]
    pub fn policy(self, policy: impl Into<String>) -> Options {
        Options { policy: policy.into(), ..self }
    }

    /// Sets [`Options::own_policies`](#structfield.own_policies).
    ///
    /// ```
    /// use millpond::{Options, OwnPolicies};
    /// use millpond_policies::policy::Lru; // a policy of your own, usually
    /// let own = OwnPolicies::default().with::<Lru>();
    /// Options::new().own_policies(own).policy("lru").check().unwrap();
    /// ```
    #[must_use]
    pub fn own_policies(self, own_policies: OwnPolicies) -> Options {
        Options { own_policies, ..self }
    }

    /// Sets [`Options::read_only`](#structfield.read_only).
    ///
    /// ```
    /// use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("pond.mp");
    /// let options = Options::new().memory(16 << 20);
    /// let db = Db::open(&path, options.clone())?;
    /// db.tree::<String, u32>("birds")?.put("heron", &3)?;
    /// db.close()?;
    /// let db = Db::open(&path, options.read_only(true))?;
    /// let birds = db.tree::<String, u32>("birds")?;
    /// assert_eq!(birds.get("heron")?, Some(3));
    /// assert!(matches!(birds.put("heron", &4), Err(Error::ReadOnly)));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Options {
        Options { read_only, ..self }
    }

    /// Sets [`Options::create_if_missing`](#structfield.create_if_missing).
    ///
    /// ```
    /// use millpond::{Db, Error, Options};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let options = Options::new().create_if_missing(false);
    /// let missing = Db::open(folder.path().join("pond.mp"), options);
    /// assert!(matches!(missing, Err(Error::NoStore { .. })));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn create_if_missing(self, create_if_missing: bool) -> Options {
        Options { create_if_missing, ..self }
    }

    /// Sets [`Options::durability`](#structfield.durability).
    ///
    /// ```
    /// # use millpond::{Db, Durability, Error, Options};
    /// # fn main() -> Result<(), Error> {
    /// let db = Db::in_memory(Options::new().memory(16 << 20).durability(Durability::Async))?;
    /// assert_eq!(db.durability(), Durability::Async);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn durability(self, durability: Durability) -> Options {
        Options { durability, ..self }
    }

    /// Sets [`Options::log_gap`](#structfield.log_gap), in bytes.
    ///
    /// ```
    /// use millpond::Options;
    /// // A recovery reads 64 MiB of log, about.
    /// Options::new().log_gap(64 << 20).check().unwrap();
    /// ```
    #[must_use]
    pub fn log_gap(self, log_gap: u64) -> Options {
        Options { log_gap, ..self }
    }

    /// Sets [`Options::spill_max`](#structfield.spill_max), in bytes.
    ///
    /// ```
    /// use millpond::Options;
    /// Options::new().spill_max(0).check().unwrap(); // no file beside the store
    /// ```
    #[must_use]
    pub fn spill_max(self, spill_max: u64) -> Options {
        Options { spill_max, ..self }
    }

    /// Sets [`Options::slow_after`](#structfield.slow_after).
    ///
    /// ```
    /// use millpond::Options;
    /// use std::time::Duration;
    /// Options::new().slow_after(Duration::from_millis(20)).check().unwrap();
    /// ```
    #[must_use]
    pub fn slow_after(self, slow_after: Duration) -> Options {
        Options { slow_after, ..self }
    }

    /// Sets [`Options::second_tier`](#structfield.second_tier). `bytes` of the file at `path`,
    /// which is created if it does not exist, are a cache of pages under `policy`, such as `tq`,
    /// between memory and the store's file. Unless it writes back ([`Options::write_back`]), the
    /// store is complete without it: the file may be lost or removed while the store is closed. Its
    /// tables in memory are part of [`Options::memory`](#structfield.memory): 130 bytes for each
    /// page with `t2-lru`, 330 with `tq`. Other policies than `t2-lru`, `tq`, `tide-io` and those
    /// of [`Options::policy`](#structfield.policy) need the cargo feature `all-policies`.
    ///
    /// ```
    /// use millpond::{Db, Options};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (slow, fast) = (tempfile::tempdir()?, tempfile::tempdir()?);
    /// let tier = fast.path().join("pond.tier");
    /// let options = Options::new().memory(16 << 20).second_tier(tier, 64 << 20, "tq");
    /// let db = Db::open(slow.path().join("pond.mp"), options)?;
    /// db.tree::<String, u32>("birds")?.put("heron", &3)?;
    /// assert!(db.stats().tier_frames > 10_000);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn second_tier(
        self,
        path: impl Into<PathBuf>,
        bytes: u64,
        policy: impl Into<String>,
    ) -> Self {
        let (path, policy) = (path.into(), policy.into());
        let write_back = false;
        Options { second_tier: Some(SecondTierOptions { path, bytes, policy, write_back }), ..self }
    }

    /// Sets write-back: written pages stay in the second tier's cache, and reach the store's file
    /// later, most of them never. Use it only with a cache on a device as reliable as the store's
    /// own. Without a second tier the option has no effect.
    ///
    /// The two files are one store then. The store's file alone is refused, also after the store
    /// was closed, and without the cache's file the last writes are lost. To detach the cache, open
    /// the store with the same second tier without write-back: the store's file then gets
    /// everything first, and is complete.
    ///
    /// ```
    /// use millpond::{Db, Options};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let (slow, fast) = (tempfile::tempdir()?, tempfile::tempdir()?);
    /// # let (store, tier) = (slow.path().join("pond.mp"), fast.path().join("pond.tier"));
    /// let through = Options::new().memory(16 << 20).second_tier(tier, 64 << 20, "tq-io");
    /// let db = Db::open(&store, through.clone().write_back(true))?;
    /// db.tree::<String, u32>("birds")?.put("heron", &3)?;
    /// db.close()?;
    /// // Nobody opens it without its cache by mistake.
    /// assert!(Db::open(&store, Options::new()).is_err());
    /// Db::open(&store, through)?.close()?;
    /// let db = Db::open(&store, Options::new())?;
    /// assert_eq!(db.tree::<String, u32>("birds")?.get("heron")?, Some(3));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn write_back(self, write_back: bool) -> Self {
        let second_tier = self.second_tier.map(|tier| SecondTierOptions { write_back, ..tier });
        Options { second_tier, ..self }
    }

    /// Sets [`Options::recovery_watch`](#structfield.recovery_watch).
    ///
    /// ```
    /// use millpond::{Db, Options};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// let options = Options::new().memory(16 << 20).watch_recovery(|progress| {
    ///     println!("{:?}: {} of {}", progress.phase, progress.done, progress.total);
    /// });
    /// let db = Db::open(folder.path().join("pond.mp"), options)?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn watch_recovery(self, watcher: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Options { recovery_watch: RecoveryWatch::new(watcher), ..self }
    }

    /// Changes [`Options::lab`](#structfield.lab):
    /// `options.lab(|lab| lab.latching = LatchingMode::Latched)`.
    ///
    /// ```
    /// use millpond::Options;
    /// Options::new().lab(|lab| lab.background_merge = false).check().unwrap();
    /// ```
    #[cfg(feature = "internals")]
    #[must_use]
    pub fn lab(self, change: impl FnOnce(&mut Lab)) -> Self {
        self.with_lab(change)
    }

    /// Changes the options for measurements, which the engine itself needs without the feature.
    pub(crate) fn with_lab(mut self, change: impl FnOnce(&mut Lab)) -> Self {
        change(&mut self.lab);
        self
    }

    /// Returns `true` if a missing store is to be created.
    ///
    /// ```
    /// use millpond::Options;
    /// assert!(Options::new().may_create() && !Options::new().read_only(true).may_create());
    /// ```
    #[doc(hidden)]
    pub fn may_create(&self) -> bool {
        self.create_if_missing && !self.read_only
    }

    /// Returns the options for opening the store's file. Direct I/O and io_uring fall back where
    /// they must: see [`Options::check_device`].
    #[doc(hidden)]
    pub fn file_options(&self) -> FileOptions {
        FileOptions {
            read_only: self.read_only,
            direct: self.lab.direct_io != DirectIo::Off,
            submission: self.lab.submission,
            fills_holes: true,
            ..FileOptions::default()
        }
    }

    /// Fails if `device` lacks a feature that the options insist on.
    ///
    /// # Errors
    /// [`OptionsError::NoDirectIo`] and [`OptionsError::NoUring`], if it fell back.
    #[doc(hidden)]
    pub fn check_device(&self, device: &FileDevice) -> Result<(), OptionsError> {
        if self.lab.direct_io == DirectIo::On && !device.is_direct() {
            return Err(OptionsError::NoDirectIo);
        }
        if self.lab.submission == Submission::Uring && device.submission() != Submission::Uring {
            return Err(OptionsError::NoUring);
        }
        Ok(())
    }

    /// Checks everything that can be checked without a store.
    ///
    /// ```
    /// use millpond::Options;
    /// let error = Options::new().memory(1000).check().unwrap_err();
    /// println!("{error}"); // says how much it needs at least
    /// ```
    ///
    /// # Errors
    /// [`OptionsError`] for the first invalid option.
    pub fn check(&self) -> Result<(), OptionsError> {
        self.plan(&SystemRoots::default(), None).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::cleaning::Cleaning;

    use super::*;
    use crate::page::superblock::Placement;
    use crate::pool::{EvictionMode, SyncMode};
    use crate::store::options::{LatchingMode, TranslationMode};

    #[test]
    fn the_defaults_open_a_store_on_this_machine() {
        let plan = Options::new().plan(&SystemRoots::default(), None).unwrap();
        assert_eq!((plan.page_size, plan.policy.chosen.info.id), (PAGE_SIZE_DEFAULT, "tide"));
        assert!(plan.budget.total() <= SystemRoots::default().default_memory());
        assert!(Options::new().may_create() && !Options::new().read_only(true).may_create());
    }

    #[test]
    fn a_second_tier_takes_its_tables_from_the_memory() {
        let system = SystemRoots::default();
        let of = |policy: &str| {
            let options = Options::new().memory(256 << 20).second_tier("t", 1 << 30, policy);
            options.plan(&system, None).unwrap()
        };
        let without = Options::new().memory(256 << 20).plan(&system, None).unwrap();
        for (policy, bytes) in [("t2-lru", 120..145), ("tq", 300..340), ("mq-hints", 220..260)] {
            let plan = of(policy);
            let tier = plan.tier.unwrap();
            let frames = u64::from(tier.options.frames().unwrap());
            let each = tier.memory_bytes / frames;
            assert!(bytes.contains(&each), "{policy}: {each} bytes for each page");
            assert!(plan.budget.total() <= 256 << 20);
            assert!(plan.budget.frames < without.budget.frames);
            assert_eq!(plan.budget.tier_bytes, tier.memory_bytes);
        }
        for bytes in [1 << 40, u64::MAX] {
            let large =
                Options::new().lab(|lab| lab.frames = Some(64)).second_tier("t", bytes, "tq");
            let error = large.check().unwrap_err();
            assert!(matches!(error, OptionsError::Tier(_)), "{error}");
        }
        let read_only = Options::new().second_tier("t", 1 << 30, "tq").read_only(true);
        assert!(read_only.plan(&system, None).unwrap().tier.is_none());
    }

    #[test]
    fn memory_page_size_and_policy_decide_the_frames() {
        let system = SystemRoots::default();
        let options = Options::new().memory(64 << 20).page_size(16384).policy("arc");
        let plan = options.plan(&system, None).unwrap();
        assert!((3400..4000).contains(&plan.budget.frames), "{:?}", plan.budget);
        // A store's own page size takes precedence.
        let plan = options.plan(&system, Some(4096)).unwrap();
        assert!((12_200..13_500).contains(&plan.budget.frames), "{:?}", plan.budget);
        let few = Options::new().lab(|lab| lab.frames = Some(10)).plan(&system, None).unwrap();
        assert_eq!(few.budget.frames, 10);
    }

    #[test]
    fn options_that_cannot_be_say_what_to_do() {
        let error = |options: Options| options.check().unwrap_err();
        for page_size in [0, 1, 512, 2048, 5000, 131_072, u32::MAX] {
            let wrong = error(Options::new().page_size(page_size));
            assert!(wrong.to_string().contains("from 4096 to 65536"), "{wrong}");
        }
        let tiny = Options::new().page_size(512).lab(|lab| lab.tiny_pages = true);
        assert_eq!(tiny.check(), Ok(()));
        let wrong = error(Options::new().memory(1000));
        assert!(wrong.to_string().contains("needs at least"), "{wrong}");
        assert!(matches!(error(Options::new().policy("lur")), OptionsError::Policy(_)));
        for nodes in [0, 65] {
            let wrong = error(Options::new().lab(|lab| lab.numa_nodes = Some(nodes)));
            assert!(matches!(wrong, OptionsError::OutOfRange { knob: "lab.numa_nodes", .. }));
        }
        let many = "threads(65)".parse().unwrap();
        assert!(matches!(
            error(Options::new().lab(|lab| lab.eviction = many)),
            OptionsError::OutOfRange { .. }
        ));
        let frames = Options::new().lab(|lab| lab.frames = Some(7));
        assert!(matches!(error(frames), OptionsError::OutOfRange { .. }));
        let batch = Options::new().lab(|lab| lab.batch = Some(0));
        assert!(matches!(error(batch), OptionsError::OutOfRange { .. }));
        let unlatched = Options::new().lab(|lab| lab.latching = LatchingMode::None);
        let threads = unlatched.clone().lab(|lab| lab.eviction = "threads".parse().unwrap());
        assert!(matches!(error(threads), OptionsError::NotAlone { .. }));
        let deferred = Options::new().lab(|lab| lab.sync_mode = SyncMode::Ranges);
        assert!(matches!(error(deferred.clone()), OptionsError::NotInPlace { .. }));
        let in_place = deferred.lab(|lab| lab.placement = Placement::InPlace);
        assert_eq!(in_place.check(), Ok(()));
        let cleaning = |neighbours| Some(Cleaning { neighbours, ..Cleaning::default() });
        let nobody = Options::new().lab(|lab| lab.cleaning = cleaning(false));
        assert!(matches!(error(nobody.clone()), OptionsError::NoCleaners { .. }));
        let cleaned = nobody.lab(|lab| lab.eviction = EvictionMode::threads(2));
        assert_eq!(cleaned.check(), Ok(()));
        let swizzled = cleaned.lab(|lab| lab.cleaning = cleaning(true));
        assert!(matches!(error(swizzled.clone()), OptionsError::NoNeighbours { .. }));
        let hashed = swizzled.lab(|lab| lab.translation = TranslationMode::Hashed);
        assert_eq!(hashed.check(), Ok(()));
        assert_eq!(unlatched.check(), Ok(()));
        assert_eq!(Options::new().lab(|lab| lab.read_ahead = true).check(), Ok(()));
        let unlatched = unlatched.lab(|lab| lab.read_ahead = true);
        assert_eq!(error(unlatched), OptionsError::NoReader);
        let nobody = Options::new().lab(|lab| {
            (lab.read_ahead, lab.background_writer) = (true, false);
        });
        assert_eq!(error(nobody), OptionsError::NoReader);
    }

    #[test]
    fn what_is_insisted_on_must_be_there_and_the_rest_falls_back() {
        let dir = tempfile::tempdir().unwrap();
        let buffered = Options::new().lab(|lab| {
            (lab.direct_io, lab.submission) = (DirectIo::Off, Submission::Sync);
        });
        let file = buffered.file_options();
        assert_eq!((file.direct, file.submission), (false, Submission::Sync));
        let device = FileDevice::create(&dir.path().join("s"), &file).unwrap();
        assert_eq!(buffered.check_device(&device), Ok(()));
        assert_eq!(Options::new().check_device(&device), Ok(()));
        let direct = Options::new().lab(|lab| lab.direct_io = DirectIo::On);
        assert_eq!(direct.check_device(&device), Err(OptionsError::NoDirectIo));
        let uring = Options::new().lab(|lab| lab.submission = Submission::Uring);
        assert_eq!(uring.check_device(&device), Err(OptionsError::NoUring));
        assert!(direct.file_options().direct && !Options::new().file_options().read_only);
    }
}
