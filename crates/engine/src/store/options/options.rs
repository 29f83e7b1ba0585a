//! How a store is opened. [`Options::memory`] is what most users set, if anything.
//!
//! Eighteen knobs are for users; what only measurements turn lies under [`Lab`]. Values are
//! checked together when the store is opened, or by [`Options::check`]: setters never fail, so that
//! they chain.

use millpond_base::Seed;

use crate::io::{self, FileDevice, FileOptions};
use crate::recovery::Progress;
use crate::store::options::budget::{Budget, BudgetError, Demand};
use crate::store::options::choices::{
    DirectIo, EvictionMode, HitDelivery, LatchingMode, ReclamationMode, Submission, TranslationMode,
};
use crate::store::options::memory_limit::SystemRoots;
use crate::store::options::own_policy::OwnPolicies;
use crate::store::options::policy_choice::{PolicyChoice, PolicyError};
use crate::store::options::recovery_watch::RecoveryWatch;
use crate::txn::Durability;

/// The replacement policy of a store whose options name none. Of all that leave the hit path
/// latch-free it reads and writes least beyond memory, and it costs next to nothing in memory
/// (docs/choosing.md).
pub const POLICY_DEFAULT: &str = "watt";
/// The page size of a new store whose options name none.
pub const PAGE_SIZE_DEFAULT: u32 = 4096;
/// The smallest page size that users may set.
pub const PAGE_SIZE_MIN: u32 = 4096;
/// The largest page size.
pub const PAGE_SIZE_MAX: u32 = 65536;
/// The smallest page size with [`Lab::tiny_pages`].
pub const PAGE_SIZE_TINY: u32 = 512;
/// Pretended NUMA nodes, and threads that evict, at most.
pub const PARALLEL_MAX: u32 = 64;
/// The fewest frames with [`Lab::frames`].
pub const LAB_FRAMES_MIN: u32 = 8;

/// Options that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// Not a page size.
    #[error(
        "page_size cannot be {page_size}: choose a power of two from {least} to {PAGE_SIZE_MAX}"
    )]
    PageSize {
        /// The size given, in bytes.
        page_size: u32,
        /// The least there is, in bytes.
        least: u32,
    },
    /// The policy cannot be.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The memory does not suffice.
    #[error(transparent)]
    Budget(#[from] BudgetError),
    /// A number is out of its range.
    #[error("{knob} cannot be {value}: choose a number from {least} to {most}")]
    OutOfRange {
        /// Which number.
        knob: &'static str,
        /// The number given.
        value: u32,
        /// The least it can be.
        least: u32,
        /// The most it can be.
        most: u32,
    },
    /// Without latches there may be one thread only, and eviction has threads of its own.
    #[error(
        "latching = none is for one thread, and eviction = {eviction} starts more: set eviction \
         = worker"
    )]
    NotAlone {
        /// The eviction asked for.
        eviction: EvictionMode,
    },
    /// `direct_io = on`, and the file system cannot.
    #[error(
        "the file system cannot bypass the page cache, and direct_io = on asks for it: set \
         direct_io = auto, or move the store"
    )]
    NoDirectIo,
    /// `submission = uring`, and the kernel does not allow it.
    #[error(
        "the kernel does not allow io_uring, and submission = uring asks for it: set submission \
         = auto, or allow it (sysctl kernel.io_uring_disabled, or the container's seccomp rules)"
    )]
    NoUring,
}

/// How a store is opened.
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
    /// state. What comes on top is a handle's: some 8 KiB, with pages of 4 KiB, for each tree, hash
    /// index or heap that was asked for since the store was opened. Default: a quarter of what the
    /// process may use, see [`SystemRoots::default_memory`].
    pub memory: Option<u64>,
    /// Bytes of a page, a power of two from 4096 to 65536; fixed when the store is created.
    /// Default: that of the store, 4096 for a new one.
    pub page_size: Option<u32>,
    /// The replacement policy as `millpond policies` lists them, such as `watt(write_weight=2)`.
    /// Default: `watt`.
    pub policy: String,
    /// Policies of the user's own, which [`Options::policy`](Options#structfield.policy) may name.
    /// Default: none.
    pub own_policies: OwnPolicies,
    /// Whether to bypass the operating system's page cache. Default: where possible.
    pub direct_io: DirectIo,
    /// How I/O is submitted. Default: io_uring where possible.
    pub submission: Submission,
    /// Who evicts. Default: the thread that needs a frame.
    pub eviction: EvictionMode,
    /// Touch all memory when the store is opened, instead of when it is needed. Default: no.
    pub prefault: bool,
    /// Divide the pool among so many NUMA nodes, 1 to 64. Default: as many as the machine has.
    pub numa_nodes: Option<u32>,
    /// Open for reading only; the store must exist. Default: no.
    pub read_only: bool,
    /// Create the store if there is none, unless `read_only`. Default: yes.
    pub create_if_missing: bool,
    /// Merge leaves that random inserts and removals left badly filled, in the background, when the
    /// store has little else to do. Default: yes.
    pub background_merge: bool,
    /// Whether changes are logged, so that the store is whole after a crash and commits last.
    /// Default: yes, beside a store in a file: its log is the file of that name with `-log` behind.
    pub log: bool,
    /// Whether transactions lock what they read and write. Without, they see each other's changes.
    /// Default: yes.
    pub locks: bool,
    /// When a transaction's commit is durable, unless the transaction says so itself. Default:
    /// when the call returns. Calls outside transactions are always `async`.
    pub durability: Durability,
    /// Bytes of log that a recovery may have to read, about: checkpoints are begun at half of it,
    /// and writers wait for them at the whole. Default: 512 MiB.
    pub log_gap: u64,
    /// Bytes that the file beside the store may have that takes what entries were, for snapshots
    /// and for transactions that may be taken back, if that does not fit into memory: the file of
    /// the store's name with `-spill` behind. It is made when it is needed, and removed when the
    /// store is closed. 0: there is none; snapshots are lost instead, and transactions that change
    /// too much fail. A store in memory has none. Default: 16 GiB.
    pub spill_max: u64,
    /// Whether a store whose log is damaged before its end is recovered as it was at the damage;
    /// what was committed behind it is lost. Where that cannot be, nothing is changed. Has no
    /// effect on a log that is sound. Default: no, opening fails.
    pub salvage_log: bool,
    /// Who is told how far a recovery is. Default: nobody.
    pub recovery_watch: RecoveryWatch,
    /// What only measurements turn.
    pub lab: Lab,
}

/// [`Options::log_gap`](Options#structfield.log_gap) unless it is set.
pub const LOG_GAP_DEFAULT: u64 = 512 << 20;

/// [`Options::spill_max`](Options#structfield.spill_max) unless it is set.
pub const SPILL_MAX_DEFAULT: u64 = 16 << 30;

/// What only measurements and tests turn: strategies that are worse, or fixed for good reasons.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Lab {
    /// How page ids become frames.
    pub translation: TranslationMode,
    /// How threads keep out of each other's way.
    pub latching: LatchingMode,
    /// Where the replacement policy sits.
    pub hit_delivery: HitDelivery,
    /// What protects optimistic readers of an evicted page.
    pub reclamation: ReclamationMode,
    /// So many frames, whatever they cost, instead of a memory number. At least 8.
    pub frames: Option<u32>,
    /// Allow pages from 512 bytes, so that small tests have deep trees.
    pub tiny_pages: bool,
    /// Frames that evictor threads keep ready, and victims that a worker looks for at once, 1 to
    /// 4096. Default: the pool's own.
    pub batch: Option<u32>,
    /// Whether a thread writes dirty pages in the background. Default: yes.
    pub background_writer: bool,
    /// References by which the clock of policies that count references moves at once, 1 to 65,536.
    /// With 1 it is exact, and a word that all threads write at each reference. Default: 1.
    pub references_per_tick: u32,
    /// Record bytes of a segment of a new log. Default: the log's own, 4 MiB.
    pub log_segment: Option<u64>,
    /// Whether page references can be recorded, at a price for each.
    pub records: bool,
    /// One lookup, insert or scan in so many is timed; 0: none. Default: 64.
    pub latency_sample_period: u32,
    /// An operation that has begun anew so often, 16 to 1,000,000 times, and still misses a page
    /// fails, and nothing is held for it: so a policy shows whether operations get on by its
    /// choices alone.
    /// Default: none fails, and pages are held for one that does not get its path together.
    pub attempts_max: Option<u32>,
    /// Seed of every random choice.
    pub seed: u64,
}

impl Default for Lab {
    fn default() -> Self {
        Lab {
            translation: TranslationMode::default(),
            latching: LatchingMode::default(),
            hit_delivery: HitDelivery::default(),
            reclamation: ReclamationMode::default(),
            frames: None,
            tiny_pages: false,
            batch: None,
            background_writer: true,
            references_per_tick: 1,
            log_segment: None,
            records: false,
            latency_sample_period: 64,
            attempts_max: None,
            seed: 1,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            memory: None,
            page_size: None,
            policy: POLICY_DEFAULT.to_string(),
            own_policies: OwnPolicies::default(),
            direct_io: DirectIo::default(),
            submission: Submission::default(),
            eviction: EvictionMode::default(),
            prefault: false,
            numa_nodes: None,
            read_only: false,
            create_if_missing: true,
            background_merge: true,
            log: true,
            locks: true,
            durability: Durability::default(),
            log_gap: LOG_GAP_DEFAULT,
            spill_max: SPILL_MAX_DEFAULT,
            salvage_log: false,
            recovery_watch: RecoveryWatch::default(),
            lab: Lab::default(),
        }
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $ty:ty => $value:expr;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $ty) -> Self {
            self.$name = $value;
            self
        }
    )*};
}

impl Options {
    /// The defaults.
    pub fn new() -> Options {
        Options::default()
    }

    setters! {
        /// Sets [`Options::memory`](#structfield.memory), in bytes.
        memory: u64 => Some(memory);
        /// Sets [`Options::page_size`](#structfield.page_size), in bytes.
        page_size: u32 => Some(page_size);
        /// Sets [`Options::policy`](#structfield.policy).
        policy: impl Into<String> => policy.into();
        /// Sets [`Options::own_policies`](#structfield.own_policies).
        own_policies: OwnPolicies => own_policies;
        /// Sets [`Options::direct_io`](#structfield.direct_io).
        direct_io: DirectIo => direct_io;
        /// Sets [`Options::submission`](#structfield.submission).
        submission: Submission => submission;
        /// Sets [`Options::eviction`](#structfield.eviction).
        eviction: EvictionMode => eviction;
        /// Sets [`Options::prefault`](#structfield.prefault).
        prefault: bool => prefault;
        /// Sets [`Options::numa_nodes`](#structfield.numa_nodes).
        numa_nodes: u32 => Some(numa_nodes);
        /// Sets [`Options::read_only`](#structfield.read_only).
        read_only: bool => read_only;
        /// Sets [`Options::create_if_missing`](#structfield.create_if_missing).
        create_if_missing: bool => create_if_missing;
        /// Sets [`Options::background_merge`](#structfield.background_merge).
        background_merge: bool => background_merge;
        /// Sets [`Options::log`](#structfield.log).
        log: bool => log;
        /// Sets [`Options::locks`](#structfield.locks).
        locks: bool => locks;
        /// Sets [`Options::durability`](#structfield.durability).
        durability: Durability => durability;
        /// Sets [`Options::log_gap`](#structfield.log_gap), in bytes.
        log_gap: u64 => log_gap;
        /// Sets [`Options::spill_max`](#structfield.spill_max), in bytes.
        spill_max: u64 => spill_max;
        /// Sets [`Options::salvage_log`](#structfield.salvage_log).
        salvage_log: bool => salvage_log;
    }

    /// Sets [`Options::recovery_watch`](#structfield.recovery_watch).
    #[must_use]
    pub fn watch_recovery(self, watcher: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Options { recovery_watch: RecoveryWatch::new(watcher), ..self }
    }

    /// Changes [`Options::lab`](#structfield.lab):
    /// `options.lab(|lab| lab.latching = LatchingMode::Latched)`.
    #[must_use]
    pub fn lab(mut self, change: impl FnOnce(&mut Lab)) -> Self {
        change(&mut self.lab);
        self
    }

    /// Whether a missing store is to be created.
    pub fn may_create(&self) -> bool {
        self.create_if_missing && !self.read_only
    }

    /// How the store's file is to be opened. Both fall back where they must: see
    /// [`Options::check_device`].
    pub fn file_options(&self) -> FileOptions {
        FileOptions {
            read_only: self.read_only,
            direct: self.direct_io != DirectIo::Off,
            submission: match self.submission {
                Submission::Sync => io::Submission::Pread,
                Submission::Auto | Submission::Uring => io::Submission::Uring,
            },
            ..FileOptions::default()
        }
    }

    /// Whether `device` does what was insisted on.
    ///
    /// # Errors
    /// [`OptionsError::NoDirectIo`] and [`OptionsError::NoUring`], when it fell back.
    pub fn check_device(&self, device: &FileDevice) -> Result<(), OptionsError> {
        if self.direct_io == DirectIo::On && !device.is_direct() {
            return Err(OptionsError::NoDirectIo);
        }
        if self.submission == Submission::Uring && device.submission() != io::Submission::Uring {
            return Err(OptionsError::NoUring);
        }
        Ok(())
    }

    /// Checks everything that can be checked without a store.
    ///
    /// # Errors
    /// [`OptionsError`] for the first thing that cannot be.
    pub fn check(&self) -> Result<(), OptionsError> {
        self.plan(&SystemRoots::default(), None).map(drop)
    }

    /// What the options come to for a store with pages of so many bytes, or for a new one.
    ///
    /// # Errors
    /// [`OptionsError`] for the first thing that cannot be.
    pub fn plan(
        &self,
        system: &SystemRoots,
        store_page_size: Option<u32>,
    ) -> Result<Plan, OptionsError> {
        if let Some(page_size) = self.page_size {
            self.check_page_size(page_size)?;
        }
        self.check_threads()?;
        let page_size = store_page_size.or(self.page_size).unwrap_or(PAGE_SIZE_DEFAULT);
        let policy = self.own_policies.choose(&self.policy)?;
        let memory = self.memory.unwrap_or_else(|| system.default_memory());
        let demand = Demand {
            page_size,
            translation: self.lab.translation,
            policy: &policy,
            log_bytes: if self.log { log_buffer(memory, page_size) } else { 0 },
            lock_bytes: if self.locks { lock_bytes(memory) } else { 0 },
            version_bytes: if self.locks { version_bytes(memory) } else { 0 },
        };
        let budget = match self.lab.frames {
            Some(frames) => Budget::of_frames(frames, &demand)?,
            None => Budget::split(memory, &demand)?,
        };
        let own_policies = self.own_policies.clone();
        Ok(Plan { page_size, policy, own_policies, budget, seed: Seed(self.lab.seed) })
    }

    fn check_page_size(&self, page_size: u32) -> Result<(), OptionsError> {
        let least = if self.lab.tiny_pages { PAGE_SIZE_TINY } else { PAGE_SIZE_MIN };
        if page_size.is_power_of_two() && (least..=PAGE_SIZE_MAX).contains(&page_size) {
            return Ok(());
        }
        Err(OptionsError::PageSize { page_size, least })
    }

    fn check_threads(&self) -> Result<(), OptionsError> {
        let lab = &self.lab;
        if let Some(nodes) = self.numa_nodes {
            in_range("numa_nodes", nodes, 1, PARALLEL_MAX)?;
        }
        if let Some(frames) = lab.frames {
            in_range(
                "lab.frames",
                frames,
                LAB_FRAMES_MIN,
                crate::store::options::budget::FRAMES_MAX,
            )?;
        }
        if let Some(batch) = lab.batch {
            in_range("lab.batch", batch, 1, 4096)?;
        }
        if let Some(attempts) = lab.attempts_max {
            in_range("lab.attempts_max", attempts, 16, 1_000_000)?;
        }
        in_range("lab.references_per_tick", lab.references_per_tick, 1, 1 << 16)?;
        if let EvictionMode::Threads(threads) | EvictionMode::Adaptive(threads) = self.eviction {
            in_range("the number of eviction threads", threads.get(), 1, PARALLEL_MAX)?;
            if lab.latching == LatchingMode::None {
                return Err(OptionsError::NotAlone { eviction: self.eviction });
            }
        }
        Ok(())
    }
}

/// Bytes of a log's buffer: a thirty-second of the memory, but enough for the longest record, which
/// is about eight pages and takes a quarter of it at most.
fn log_buffer(memory: u64, page_size: u32) -> u64 {
    const MOST: u64 = 4 << 20;
    let least = (64 * u64::from(page_size)).max(128 << 10);
    let wanted = (memory / 32).clamp(1, MOST);
    // A power of two.
    (1 << wanted.ilog2()).max(least)
}

/// Bytes that all locks may take.
fn lock_bytes(memory: u64) -> u64 {
    (memory / 32).clamp(64 << 10, 64 << 20)
}

/// Bytes that versions for snapshots and the undo of transactions may take.
fn version_bytes(memory: u64) -> u64 {
    (memory / 32).max(128 << 10)
}

fn in_range(knob: &'static str, value: u32, least: u32, most: u32) -> Result<(), OptionsError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(OptionsError::OutOfRange { knob, value, least, most })
}

/// What [`Options`] come to for one store.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Bytes of a page.
    pub page_size: u32,
    /// The policy, looked up and checked.
    pub policy: PolicyChoice,
    /// Where it was looked up first.
    pub own_policies: OwnPolicies,
    /// Who gets how much memory.
    pub budget: Budget,
    /// Seed of every random choice.
    pub seed: Seed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_open_a_store_on_this_machine() {
        let plan = Options::new().plan(&SystemRoots::default(), None).unwrap();
        assert_eq!((plan.page_size, plan.policy.info.id), (PAGE_SIZE_DEFAULT, "watt"));
        assert!(plan.budget.total() <= SystemRoots::default().default_memory());
        assert!(Options::new().may_create() && !Options::new().read_only(true).may_create());
    }

    #[test]
    fn memory_page_size_and_policy_decide_the_frames() {
        let system = SystemRoots::default();
        let options = Options::new().memory(64 << 20).page_size(16384).policy("arc");
        let plan = options.plan(&system, None).unwrap();
        assert!((3400..4000).contains(&plan.budget.frames), "{:?}", plan.budget);
        // The store's own page size counts once it has one.
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
            let wrong = error(Options::new().numa_nodes(nodes));
            assert!(matches!(wrong, OptionsError::OutOfRange { knob: "numa_nodes", .. }));
        }
        let many = "threads(65)".parse().unwrap();
        assert!(matches!(error(Options::new().eviction(many)), OptionsError::OutOfRange { .. }));
        let frames = Options::new().lab(|lab| lab.frames = Some(7));
        assert!(matches!(error(frames), OptionsError::OutOfRange { .. }));
        let batch = Options::new().lab(|lab| lab.batch = Some(0));
        assert!(matches!(error(batch), OptionsError::OutOfRange { .. }));
        let unlatched = Options::new().lab(|lab| lab.latching = LatchingMode::None);
        let threads = unlatched.clone().eviction("threads".parse().unwrap());
        assert!(matches!(error(threads), OptionsError::NotAlone { .. }));
        assert_eq!(unlatched.check(), Ok(()));
    }

    #[test]
    fn what_is_insisted_on_must_be_there_and_the_rest_falls_back() {
        let dir = tempfile::tempdir().unwrap();
        let buffered = Options::new().direct_io(DirectIo::Off).submission(Submission::Sync);
        let file = buffered.file_options();
        assert_eq!((file.direct, file.submission), (false, io::Submission::Pread));
        let device = FileDevice::create(&dir.path().join("s"), &file).unwrap();
        assert_eq!(buffered.check_device(&device), Ok(()));
        assert_eq!(Options::new().check_device(&device), Ok(()));
        let direct = Options::new().direct_io(DirectIo::On);
        assert_eq!(direct.check_device(&device), Err(OptionsError::NoDirectIo));
        let uring = Options::new().submission(Submission::Uring);
        assert_eq!(uring.check_device(&device), Err(OptionsError::NoUring));
        assert!(direct.file_options().direct && !Options::new().file_options().read_only);
    }
}
