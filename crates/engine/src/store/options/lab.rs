//! What only measurements and tests turn.

use crate::store::options::choices::{HitDelivery, LatchingMode, ReclamationMode, TranslationMode};

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
    /// Number of frames, whatever they cost, instead of a memory number. At least 8.
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
    /// Sampling period: one lookup, insert or scan in N is timed; 0: none. Default: 64.
    pub latency_sample_period: u32,
    /// An operation that has restarted this often, 16 to 1,000,000 times, and still misses a page
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
