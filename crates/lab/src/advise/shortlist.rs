//! The policies that are worth trying, each with a reason.

/// A policy of the shortlist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Id of the policy.
    pub id: &'static str,
    /// The workloads where the policy wins, as the end of a sentence that begins with its name.
    pub strength: &'static str,
}

/// Policies that win on some workload, and policies that everybody knows. A policy is left out if a
/// better form of it is here: LRU for clocks and FIFO, ARC for CAR and CART, LIRS for CLOCK-Pro.
/// Policies that need parameters for each workload (LRFU, MQ) are left out, too, and so are
/// policies that stall or pollute.
pub const SHORTLIST: [Candidate; 9] = [
    Candidate {
        id: "lru",
        strength: "keeps what was used last: right where working sets move, helpless against scans",
    },
    Candidate { id: "2q", strength: "lets new pages prove themselves in a queue: scans pass by" },
    Candidate {
        id: "arc",
        strength: "balances what was used last against what was used often, by itself",
    },
    Candidate {
        id: "lirs",
        strength: "keeps pages that come again soon: loops larger than the pool, old scans",
    },
    Candidate {
        id: "s3-fifo",
        strength: "lets most pages that are used once go quickly, and a hit costs it little",
    },
    Candidate {
        id: "tide",
        strength: "watches new pages for as long as its ghosts ask for, and dirty ones stay longer",
    },
    Candidate {
        id: "w-tinylfu",
        strength: "counts: what is popular for long stays, whatever comes between",
    },
    Candidate {
        id: "hyperbolic",
        strength: "counts over a page's time in the pool, with eight bytes a page and no list",
    },
    Candidate {
        id: "watt",
        strength: "remembers when pages were read and written: it saves page writes, and scales",
    },
];

/// Policy that is off the list because of the memory it keeps, and that may still be the default.
pub(super) const LEAN: Candidate = Candidate {
    id: "lean-evict",
    strength: "does nothing at all on a hit: what fits in memory runs at the speed of memory",
};
