//! The policies that are worth trying, and why.

/// A policy of the shortlist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Id of the policy.
    pub id: &'static str,
    /// The workloads where it wins, as the end of a sentence that begins with its name.
    pub strength: &'static str,
}

/// Policies that win somewhere, and those that everybody knows. Left out are policies of which
/// another one here is a better form (clocks and FIFO of LRU, CAR and CART of ARC, CLOCK-Pro of
/// LIRS), those that need parameters for each workload (LRFU, MQ), and those that stall or pollute.
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

/// A policy that is left off the list for the memory it keeps, and that may be the default.
pub(super) const LEAN: Candidate = Candidate {
    id: "lean-evict",
    strength: "does nothing at all on a hit: what fits in memory runs at the speed of memory",
};
