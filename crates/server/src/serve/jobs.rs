//! What the workers have to do: queues of all connections, which take turns.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Jobs of several owners. Each owner has at most `share` of them in work at once, so that one with
/// many slow ones does not keep all workers.
#[derive(Debug)]
pub(super) struct Jobs<J> {
    share: usize,
    state: Mutex<State<J>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<J> {
    owners: HashMap<u64, Owner<J>>,
    /// Owners whose turn it is to come: those with jobs, and with less than their share in work.
    ready: VecDeque<u64>,
    is_closed: bool,
}

#[derive(Debug)]
struct Owner<J> {
    jobs: VecDeque<J>,
    in_work: usize,
    is_ready: bool,
}

impl<J> State<J> {
    /// Puts the owner in line if it belongs there, and forgets it if it has nothing.
    fn settle(&mut self, id: u64, share: usize) {
        let Some(owner) = self.owners.get_mut(&id) else { return };
        if owner.jobs.is_empty() && owner.in_work == 0 {
            self.owners.remove(&id);
        } else if !owner.is_ready && !owner.jobs.is_empty() && owner.in_work < share {
            owner.is_ready = true;
            self.ready.push_back(id);
        }
    }
}

impl<J> Jobs<J> {
    pub fn new(share: usize) -> Jobs<J> {
        let state = State { owners: HashMap::new(), ready: VecDeque::new(), is_closed: false };
        Jobs { share: share.max(1), state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<J>> {
        // Nothing below can panic between two steps.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job of `owner`'s, behind its others.
    pub fn push(&self, owner: u64, job: J) {
        let mut state = self.state();
        let new = || Owner { jobs: VecDeque::new(), in_work: 0, is_ready: false };
        state.owners.entry(owner).or_insert_with(new).jobs.push_back(job);
        state.settle(owner, self.share);
        self.changed.notify_one();
    }

    /// Waits for a job; `None`: there are none any more. When it is done, [`Jobs::done`] is called.
    pub fn take(&self) -> Option<(u64, J)> {
        let mut state = self.state();
        loop {
            if let Some(id) = state.ready.pop_front() {
                let owner = state.owners.get_mut(&id);
                let job = owner.and_then(|owner| {
                    owner.is_ready = false;
                    let job = owner.jobs.pop_front()?;
                    owner.in_work += 1;
                    Some(job)
                });
                state.settle(id, self.share);
                match job {
                    Some(job) => return Some((id, job)),
                    None => continue,
                }
            }
            if state.is_closed && state.owners.values().all(|owner| owner.jobs.is_empty()) {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A job of `owner`'s is done.
    pub fn done(&self, owner: u64) {
        let mut state = self.state();
        if let Some(owner) = state.owners.get_mut(&owner) {
            owner.in_work = owner.in_work.saturating_sub(1);
        }
        state.settle(owner, self.share);
        let is_closed = state.is_closed;
        if is_closed { self.changed.notify_all() } else { self.changed.notify_one() }
    }

    /// No more jobs come.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_take_turns() {
        let jobs = Jobs::new(8);
        (0..3).for_each(|at| jobs.push(1, at));
        (0..3).for_each(|at| jobs.push(2, at));
        let taken: Vec<_> = (0..6).map(|_| jobs.take().unwrap()).collect();
        assert_eq!(taken, [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (2, 2)]);
    }

    #[test]
    fn an_owner_has_no_more_than_its_share_in_work() {
        let jobs = Jobs::new(2);
        (0..4).for_each(|at| jobs.push(1, at));
        jobs.push(2, 0);
        let taken: Vec<_> = (0..3).map(|_| jobs.take().unwrap()).collect();
        assert_eq!(taken, [(1, 0), (2, 0), (1, 1)]);
        std::thread::scope(|scope| {
            let next = scope.spawn(|| jobs.take());
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!next.is_finished());
            jobs.done(2);
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!next.is_finished());
            jobs.done(1);
            assert_eq!(next.join().unwrap(), Some((1, 2)));
        });
        jobs.done(1);
        assert_eq!(jobs.take(), Some((1, 3)));
        (0..2).for_each(|_| jobs.done(1));
        jobs.close();
        assert_eq!(jobs.take(), None);
        assert!(jobs.state().owners.is_empty());
    }

    #[test]
    fn what_was_pushed_is_done_before_closed_jobs_end() {
        let jobs = Jobs::new(1);
        (0..100).for_each(|at| jobs.push(at % 3, at));
        jobs.close();
        let done = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some((owner, _)) = jobs.take() {
                        done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        jobs.done(owner);
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 100);
    }
}
