//! The state of group commit: the leader, and the threads that wait for each batch.

use std::time::Duration;

use millpond_base::sync::atomic::AtomicBool;
use millpond_base::sync::{Condvar, Mutex};
use millpond_device::AlignedBuffer;

use super::error::LogError;
use super::options::BLOCK;
use super::ring::Consumer;

/// Time that a leader waits for its batch to become as large as the last one.
#[derive(Clone, Copy)]
pub(super) enum GroupCommitWait {
    /// No wait.
    None,
    /// The time of a flush, and at most this long: if no others come, the wait costs no more than
    /// missing them would have cost.
    AsAFlush(Duration),
    /// At most this long.
    UpTo(Duration),
}

/// Longest time that a batch waits to grow.
const DELAY_MAX: Duration = Duration::from_millis(100);

/// The state of group commit.
pub(super) struct Flush {
    pub(super) state: Mutex<State>,
    /// Waiters of even and of odd rounds.
    pub(super) rounds: [Condvar; 2],
    /// Wakes a leader that waits for its batch to grow.
    pub(super) group: Condvar,
    pub(super) leader: Mutex<Leader>,
    /// True if `State::poison` is set.
    pub(super) is_poisoned: AtomicBool,
}

pub(super) struct State {
    pub(super) is_led: bool,
    /// True if there is a leader that has not taken its records yet.
    pub(super) is_open: bool,
    /// End of the records that the leader has taken.
    pub(super) target: u64,
    /// Number of rounds that have ended.
    pub(super) round: u64,
    /// Number of waiters of even and of odd rounds.
    pub(super) waiting: [u32; 2],
    /// Number of members of the last round.
    pub(super) last_group: u32,
    /// Moving average of the time of a flush.
    pub(super) flush_time: Duration,
    pub(super) poison: Option<LogError>,
}

impl State {
    /// Returns the time that a leader waits for its batch to grow.
    pub(super) fn patience(&self, group: GroupCommitWait) -> Duration {
        match group {
            _ if self.last_group < 2 => Duration::ZERO,
            GroupCommitWait::None => Duration::ZERO,
            GroupCommitWait::AsAFlush(most) => self.flush_time.min(most),
            GroupCommitWait::UpTo(most) => most.min(DELAY_MAX),
        }
    }
}

/// The leader's own state. Its mutex is free whenever there is no leader, except when the
/// background thread syncs new segments under it (rule 8).
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
