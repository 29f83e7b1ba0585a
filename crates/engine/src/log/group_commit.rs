//! The state of group commit: who leads, who waits for which round.

use std::time::Duration;

use millpond_base::sync::atomic::AtomicBool;
use millpond_base::sync::{Condvar, Mutex};

use super::error::LogError;
use super::options::BLOCK;
use super::ring::Consumer;
use crate::io::AlignedBuffer;

/// How long a leader waits for as many others as the round before had.
#[derive(Clone, Copy)]
pub(super) enum GroupCommitWait {
    /// Not at all.
    None,
    /// As long as a flush takes, and no longer than this: who waits in vain loses no more than he
    /// would by missing the others.
    AsAFlush(Duration),
    /// So long.
    UpTo(Duration),
}

/// No group waits longer for company.
const DELAY_MAX: Duration = Duration::from_millis(100);

/// Who leads, who waits.
pub(super) struct Flush {
    pub(super) state: Mutex<State>,
    /// Waiters of even and of odd rounds.
    pub(super) rounds: [Condvar; 2],
    /// A leader that waits for company.
    pub(super) group: Condvar,
    pub(super) leader: Mutex<Leader>,
    /// Whether `State::poison` says anything.
    pub(super) is_poisoned: AtomicBool,
}

pub(super) struct State {
    pub(super) is_led: bool,
    /// There is a leader that has not taken its records yet.
    pub(super) is_open: bool,
    /// End of the records that the leader has taken.
    pub(super) target: u64,
    /// Rounds ended.
    pub(super) round: u64,
    /// Waiters of even and of odd rounds.
    pub(super) waiting: [u32; 2],
    /// Members of the last round.
    pub(super) last_group: u32,
    /// What a flush takes, the last ones counting most.
    pub(super) flush_time: Duration,
    pub(super) poison: Option<LogError>,
}

impl State {
    /// How long a leader waits for its batch to grow.
    pub(super) fn patience(&self, group: GroupCommitWait) -> Duration {
        match group {
            _ if self.last_group < 2 => Duration::ZERO,
            GroupCommitWait::None => Duration::ZERO,
            GroupCommitWait::AsAFlush(most) => self.flush_time.min(most),
            GroupCommitWait::UpTo(most) => most.min(DELAY_MAX),
        }
    }
}

/// What only the leader touches. The mutex is free whenever nobody leads, but for the background
/// thread, which synchronises new segments under it (rule 8).
pub(super) struct Leader {
    pub(super) consumer: Consumer,
    /// The last block, which is not full.
    pub(super) scratch: AlignedBuffer,
}

impl Flush {
    pub(super) fn new(consumer: Consumer) -> Flush {
        let state = State {
            is_led: false,
            is_open: false,
            target: 0,
            round: 0,
            waiting: [0; 2],
            last_group: 1,
            flush_time: Duration::ZERO,
            poison: None,
        };
        Flush {
            state: Mutex::new(state),
            rounds: [Condvar::new(), Condvar::new()],
            group: Condvar::new(),
            is_poisoned: AtomicBool::new(false),
            leader: Mutex::new(Leader { consumer, scratch: AlignedBuffer::new(BLOCK as usize) }),
        }
    }
}
