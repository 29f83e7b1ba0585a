//! Actors that write without a client: page cleaners, the checkpointer, the kernel.

use std::collections::VecDeque;

/// Someone who syncs: jobs one after the other, each done when all of its writes are.
#[derive(Default)]
pub(super) struct Actor {
    /// Pages that each job is to make durable.
    jobs: VecDeque<Vec<u64>>,
    /// Writes of the job at work that are not done.
    outstanding: usize,
    /// Clients that wait until it has less to do.
    pub waiting: Vec<usize>,
    /// The transaction for which it was last given something.
    pub of: u64,
}

impl Actor {
    /// Pages that wait, and whether it is at work.
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

    /// One write is done; whether it was the last.
    pub fn done(&mut self) -> bool {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.outstanding == 0
    }
}
