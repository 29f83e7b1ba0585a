//! Actors that write without a client: page cleaners, the checkpointer, the kernel.

use std::collections::VecDeque;

/// Actor that syncs. Its jobs run one after the other, and each is done when all of its
/// writes are.
#[derive(Default)]
pub(super) struct Actor {
    /// Pages that each job must make durable.
    jobs: VecDeque<Vec<u64>>,
    /// Pending writes of the current job.
    outstanding: usize,
    /// Clients that wait until the actor has less to do.
    pub waiting: Vec<usize>,
    /// Transaction for which it last got a job.
    pub of: u64,
}

impl Actor {
    /// Returns `true` if no job waits and none is running.
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.outstanding == 0
    }

    pub fn is_at_work(&self) -> bool {
        self.outstanding > 0
    }

    pub fn backlog(&self) -> usize {
        self.jobs.len()
    }

    pub fn give(&mut self, pages: Vec<u64>) {
        self.jobs.push_back(pages);
    }

    pub fn next_job(&mut self) -> Option<Vec<u64>> {
        if self.outstanding > 0 { None } else { self.jobs.pop_front() }
    }

    pub fn sent(&mut self, writes: usize) {
        self.outstanding += writes;
    }

    /// Records a completed write; returns `true` if it was the last one.
    pub fn done(&mut self) -> bool {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.outstanding == 0
    }
}
