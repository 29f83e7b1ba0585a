//! The parameters of a story, drawn from its seed: the store, its contents, the faults of reads,
//! and the operations that run during them.

use millpond_device::ReadFault;

/// Kinds of structures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Raw,
    Typed,
    /// A tree with values that need pages of their own.
    Large,
    Hash,
    Heap,
}

/// Pages whose reads go wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultyPages {
    /// Anywhere in the store.
    Anywhere,
    /// In the pages of one structure, named by its number.
    In(usize),
}

/// Something that is done once, while reads go wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    Checkpoint,
    Backup,
    Shrink,
    /// The check of the file, from end to end.
    Check,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub page_size: u32,
    pub frames: u32,
    pub policy: &'static str,
    pub evictors: bool,
    pub threads: usize,
    /// Structures, and rows in each.
    pub structures: Vec<(Kind, usize)>,
    /// Bytes of a tree that the store loses again before reads go wrong: none in most stories, from
    /// 1 to 100 MiB in one of twelve.
    pub once_bytes: u64,
    pub faults: Vec<ReadFault>,
    pub share: f64,
    pub persists: bool,
    pub place: FaultyPages,
    /// Operations of each thread.
    pub operations: usize,
    /// One operation in this number writes.
    pub write_every: u32,
    pub deeds: Vec<Deed>,
    /// The store is closed and opened again before reads go wrong, so that nothing is in memory.
    pub is_cold: bool,
    /// Reads go wrong while the store is opened, too.
    pub opens_under_faults: bool,
    /// The process dies after the operations, and reads go wrong in recovery.
    pub crashes: bool,
    /// When the store is opened after that, its superblock is read as an older version; what
    /// decides which.
    pub older_superblock: Option<u64>,
    /// Pages are compressed, where they are written out of place.
    pub is_compressed: bool,
    /// Pages and policy of the second tier, if any. Reads of its cache go wrong like those of the
    /// store, and no answer of the store may depend on that.
    pub tier: Option<(u64, &'static str)>,
    /// The tier writes back. A misread of data that only its cache has is then an error; no other
    /// answer depends on it.
    pub writes_back: bool,
    /// Reads of the log go wrong, too: in recovery, in a backup, when a transaction is aborted.
    pub log_faults: bool,
}

fn one_of<T: Copy>(random: &mut fastrand::Rng, from: &[T]) -> T {
    from[random.usize(0..from.len())]
}

impl Plan {
    pub fn of(seed: u64) -> Plan {
        let mut random = fastrand::Rng::with_seed(seed);
        let random = &mut random;
        // What came later: it leaves all else of a seed as it was.
        let mut later = fastrand::Rng::with_seed(!seed);
        let older_superblock = (later.u8(0..3) == 0).then(|| later.u64(..));
        let is_compressed = later.u8(0..3) == 0;
        let policy = one_of(&mut later, &["tq", "tq-io", "t2-lru", "lru-hints", "t2-arc"]);
        let pages = one_of(&mut later, &[12, 60, 500]);
        let tier = (later.u8(0..5) < 2).then_some((pages, policy));
        let writes_back = tier.is_some() && later.bool();
        let mebibytes = if seed % 12 == 7 { 100_f64.powf(later.f64()) } else { 0.0 };
        let once_bytes = (mebibytes * f64::from(1 << 20)) as u64;
        let kinds = [Kind::Raw, Kind::Typed, Kind::Large, Kind::Hash, Kind::Heap];
        let mut structures = vec![(Kind::Raw, random.usize(200..1500))];
        for _ in 0..random.usize(1..=4) {
            let kind = one_of(random, &kinds);
            let most = if kind == Kind::Large { 40 } else { 1000 };
            structures.push((kind, random.usize(1..most)));
        }
        let mut faults: Vec<ReadFault> =
            ReadFault::ALL.into_iter().filter(|_| random.u8(0..3) == 0).collect();
        if faults.is_empty() {
            faults.push(one_of(random, &ReadFault::ALL));
        }
        let is_anywhere = random.bool();
        let place = if is_anywhere {
            FaultyPages::Anywhere
        } else {
            FaultyPages::In(random.usize(0..structures.len()))
        };
        let all = [Deed::Checkpoint, Deed::Backup, Deed::Shrink, Deed::Check];
        Plan {
            seed,
            page_size: one_of(random, &[512, 512, 4096, 8192]),
            frames: one_of(random, &[16, 16, 20, 24, 32, 48, 64, 128, 400]),
            policy: one_of(random, &["tide", "tide", "tide", "watt", "lean-evict", "lru"]),
            evictors: random.u8(0..4) == 0,
            threads: one_of(random, &[1, 1, 2, 3]),
            structures,
            once_bytes,
            faults,
            share: one_of(random, &[0.002, 0.01, 0.05, 0.2]),
            persists: random.bool(),
            place,
            operations: random.usize(20..150),
            write_every: one_of(random, &[2, 5, 20, 1000]),
            deeds: all.into_iter().filter(|_| random.u8(0..3) == 0).collect(),
            is_cold: random.u8(0..4) > 0,
            opens_under_faults: is_anywhere && random.u8(0..3) == 0,
            crashes: random.u8(0..3) == 0,
            older_superblock,
            is_compressed,
            tier,
            writes_back,
            log_faults: random.u8(0..4) == 0,
        }
    }
}
