//! The parameters of a story, drawn from its seed.

use std::time::Duration;

use fastrand::Rng;
use millpond_device::Fault;

/// The default is there more often than others.
const POLICIES: [&str; 6] = ["lean-evict(cooling=50%)", "random", "lru", "watt", "tide", "tide"];

/// Threads of a story, and the kind of its failures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One thread; the power fails.
    Alone,
    /// Several threads, each with keys of its own; the power fails.
    Threads(u8),
    /// One thread; single operations of the devices fail, too.
    Faults,
}

/// Phase in which an operation fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailurePhase {
    Run,
    /// While the store is opened after a crash.
    Recovery,
}

/// A failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blow {
    Cut,
    Fails(Fault),
}

/// One operation, of all the only one at which something goes wrong.
#[derive(Clone, Copy, Debug)]
pub struct Forced {
    pub place: FailurePhase,
    pub blow: Blow,
    /// Number of the operation, from 1 on.
    pub at: u64,
}

/// A story from the making of a store to its last check.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub kind: Kind,
    pub page_size: u32,
    /// Keys that each thread has in each tree.
    pub keys: u16,
    /// Times that the store is opened, those in which recovery crashes not counted.
    pub lives: u32,
    /// Steps of a life at most.
    pub steps: u32,
    /// No thread of the store does anything by itself, so that the seed gives the same again.
    pub is_quiet: bool,
    /// Longest latency of a device operation, so that threads meet while one is under way.
    pub latency_us_max: u32,
    /// Of a hundred steps, those that are checkpoints.
    pub checkpoints: u8,
    /// Of a hundred steps, those that are about heaps, whole trees, and whole stores.
    pub extras: u8,
    /// Unit of the record lengths, for a store that is nothing but a log. Some records then end at
    /// the end of a sector, and others begin at the end of those that a crash left.
    pub grain: usize,
    /// Pages are written, and checkpoints taken, all the time, and the power fails when a
    /// superblock has been written and is not durable yet.
    pub is_restless: bool,
    /// Threads write keys that are not their own, too.
    pub shares: bool,
}

impl Plan {
    pub fn of(seed: u64, random: &mut Rng) -> Plan {
        let mut plan = Plan::usual(seed, random);
        if plan.once_bytes() > 0 {
            // What was large is dropped, shrunk and backed up.
            plan.extras = 12;
        }
        if random.u8(..10) == 0 {
            plan = plan.restless(random);
        }
        if plan.once_bytes() > 0 {
            // With as many pages, slow devices would take minutes.
            plan.latency_us_max = 0;
        }
        plan
    }

    fn restless(self, random: &mut Rng) -> Plan {
        let (kind, latency_us_max, is_quiet) = (Kind::Threads(4), 400, false);
        let (keys, lives, steps, checkpoints) = (60, 5, 60, 25);
        let page_size = pick(random, &[512, 1024]);
        Plan {
            kind,
            page_size,
            keys,
            lives,
            steps,
            is_quiet,
            latency_us_max,
            checkpoints,
            is_restless: true,
            ..self
        }
    }

    fn usual(seed: u64, random: &mut Rng) -> Plan {
        let kind = match random.u8(..10) {
            0..6 => Kind::Alone,
            6..8 => Kind::Threads(random.u8(2..=4)),
            _ => Kind::Faults,
        };
        let threads = matches!(kind, Kind::Threads(_));
        Plan {
            seed,
            kind,
            page_size: pick(random, &[512, 512, 1024, 4096, 4096, 16384]),
            keys: pick(random, &[10, 60, 400]),
            lives: random.u32(2..=5),
            steps: pick(random, &[15, 60, 200]),
            is_quiet: !threads && random.u8(..4) > 0,
            latency_us_max: if threads { pick(random, &[0, 100, 400]) } else { 0 },
            checkpoints: pick(random, &[4, 4, 20]),
            extras: pick(random, &[0, 12]),
            grain: pick(random, &[8, 512, 4096]),
            is_restless: false,
            shares: random.u8(..4) < if threads { 3 } else { 1 },
        }
    }

    /// A short story in which everything but `forced` goes well, or the same as for others.
    pub fn forced(seed: u64, random: &mut Rng, forced: Forced) -> Plan {
        let plan = Plan::usual(seed, random);
        let kind = if forced.blow == Blow::Cut { Kind::Alone } else { Kind::Faults };
        let lives = if forced.place == FailurePhase::Run { 1 } else { 2 };
        Plan { kind, lives, steps: 40, is_quiet: true, ..plan }
    }

    /// In one story of five the store has a second tier that writes back.
    pub fn writes_back(&self) -> bool {
        self.seed % 5 == 3
    }

    /// Bytes that the store gets when it is made, and may lose at once: from 1 to 100 MiB in one
    /// story of twelve, none in all others.
    pub fn once_bytes(&self) -> u64 {
        if self.seed % 12 != 7 {
            return 0;
        }
        let mebibytes = 100_f64.powf(Rng::with_seed(!self.seed).f64());
        let most = if self.page_size < 4096 { 32.0 } else { 100.0 };
        (mebibytes.min(most) * f64::from(1 << 20)) as u64
    }

    pub fn threads(&self) -> u8 {
        if let Kind::Threads(threads) = self.kind { threads } else { 1 }
    }
}

/// Options for opening a store once.
#[derive(Clone, Debug)]
pub struct Start {
    pub page_size: u32,
    pub frames: u32,
    pub policy: &'static str,
    pub segment_bytes: u64,
    pub buffer_bytes: usize,
    pub grain: usize,
    pub is_quiet: bool,
    /// Longest wait of a transaction for a lock. A single thread waits only for locks that it can
    /// never get.
    pub patience: Duration,
    /// Bytes of log that a recovery may have to read.
    pub gap_bytes: u64,
    /// Pages of a second tier that writes back.
    pub back: Option<u64>,
    pub seed: u64,
}

impl Start {
    pub fn draw(plan: &Plan, random: &mut Rng) -> Start {
        Start {
            page_size: plan.page_size,
            frames: if plan.is_restless { 24 } else { pick(random, &[24, 40, 100, 1000]) },
            policy: pick(random, &POLICIES),
            segment_bytes: pick(random, &[16 << 10, 16 << 10, 64 << 10, 1 << 20]),
            buffer_bytes: pick(random, &[64 << 10, 256 << 10]),
            grain: plan.grain,
            is_quiet: plan.is_quiet,
            patience: Duration::from_millis(if plan.threads() > 1 { 2000 } else { 100 }),
            gap_bytes: pick(random, &[16 << 10, 64 << 10, 256 << 10, 4 << 20]),
            back: plan.writes_back().then(|| [20, 60, 400][(plan.seed / 5 % 3) as usize]),
            seed: random.u64(..),
        }
    }
}

/// One of them.
pub fn pick<T: Copy>(random: &mut Rng, choices: &[T]) -> T {
    choices[random.usize(..choices.len())]
}
