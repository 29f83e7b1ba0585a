//! Work queues of the connections, which the workers serve in turn. Jobs of one connection that
//! belong together are taken together.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard};

use millpond_base::PastPoison;

/// Jobs of several owners. An owner occupies at most half of the workers, or all but one if it is
/// alone. So an owner with many slow jobs does not take all workers.
#[derive(Debug)]
pub(super) struct Jobs<J> {
    workers: usize,
    state: Mutex<State<J>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<J> {
    owners: HashMap<u64, Owner<J>>,
    /// Owners in line for a worker: they have jobs, and fewer workers than their share.
    ready: VecDeque<u64>,
    /// Waiting workers.
    idle: u32,
    is_closed: bool,
}

#[derive(Debug)]
struct Owner<J> {
    jobs: VecDeque<J>,
    /// Workers that are doing its jobs.
    in_work: usize,
    is_ready: bool,
}

impl<J> State<J> {
    /// Puts the owner in line if it belongs there, and removes it if it has no jobs.
    fn settle(&mut self, id: u64, workers: usize) {
        let is_alone = self.owners.len() == 1;
        let share = if is_alone { workers.saturating_sub(1) } else { workers.div_ceil(2) }.max(1);
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
    pub fn new(workers: usize) -> Jobs<J> {
        let (owners, ready) = (HashMap::new(), VecDeque::new());
        let state = State { owners, ready, idle: 0, is_closed: false };
        Jobs { workers, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<J>> {
        // Nothing below can panic between two steps.
        self.state.lock().past_poison()
    }

    /// Wakes a worker if there is a job for one. Waking costs a system call even if nobody waits.
    /// The lock is released first, so that the woken worker finds it free.
    fn tell(&self, state: MutexGuard<'_, State<J>>) {
        let is_of_use = state.idle > 0 && !state.ready.is_empty();
        drop(state);
        if is_of_use {
            self.changed.notify_one();
        }
    }

    /// Queues jobs of `owner` behind its earlier ones.
    pub fn push(&self, owner: u64, jobs: impl IntoIterator<Item = J>) {
        let mut state = self.state();
        let new = || Owner { jobs: VecDeque::new(), in_work: 0, is_ready: false };
        state.owners.entry(owner).or_insert_with(new).jobs.extend(jobs);
        state.settle(owner, self.workers);
        self.tell(state);
    }

    /// Waits for a job, and takes it with the jobs behind it that `joins` accepts: it gets the jobs
    /// taken and the next one. Returns `None` once the queue is closed and empty. The caller calls
    /// [`Jobs::done`] after it has done them.
    pub fn take(&self, joins: impl Fn(&[J], &J) -> bool) -> Option<(u64, Vec<J>)> {
        let mut state = self.state();
        loop {
            if let Some(id) = state.ready.pop_front() {
                let mut jobs = Vec::new();
                if let Some(owner) = state.owners.get_mut(&id) {
                    owner.is_ready = false;
                    let mine = &mut owner.jobs;
                    while let Some(next) = mine.pop_front_if(|n| jobs.is_empty() || joins(&jobs, n))
                    {
                        jobs.push(next);
                    }
                    owner.in_work += usize::from(!jobs.is_empty());
                }
                state.settle(id, self.workers);
                if jobs.is_empty() {
                    continue;
                }
                self.tell(state);
                return Some((id, jobs));
            }
            if state.is_closed && state.owners.values().all(|owner| owner.jobs.is_empty()) {
                return None;
            }
            state.idle += 1;
            state = self.changed.wait(state).past_poison();
            state.idle -= 1;
        }
    }

    /// Reports that the jobs of one `take` are done. Returns `true` if no owner has any others.
    pub fn done(&self, owner: u64) -> bool {
        let mut state = self.state();
        if let Some(owner) = state.owners.get_mut(&owner) {
            owner.in_work = owner.in_work.saturating_sub(1);
        }
        state.settle(owner, self.workers);
        let is_quiet = state.owners.is_empty();
        if state.is_closed {
            self.changed.notify_all()
        } else {
            self.tell(state)
        }
        is_quiet
    }

    /// Closes the queue: no more jobs are pushed.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes one job.
    fn one(jobs: &Jobs<u64>) -> Option<(u64, u64)> {
        jobs.take(|_, _| false).map(|(owner, taken)| (owner, taken[0]))
    }

    #[test]
    fn owners_take_turns() {
        let jobs = Jobs::new(16);
        jobs.push(1, 0..3);
        jobs.push(2, 0..3);
        let taken: Vec<_> = (0..6).map(|_| one(&jobs).unwrap()).collect();
        assert_eq!(taken, [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (2, 2)]);
    }

    #[test]
    fn jobs_that_belong_together_are_taken_together() {
        let jobs = Jobs::new(16);
        jobs.push(1, [2, 4, 6, 8, 1, 3, 2]);
        let joins = |taken: &[u64], next: &u64| taken.len() < 3 && taken[0] % 2 == next % 2;
        let taken: Vec<_> = (0..4).map(|_| jobs.take(joins).unwrap().1).collect();
        assert_eq!(taken, [vec![2, 4, 6], vec![8], vec![1, 3], vec![2]]);
        assert_eq!((0..4).map(|_| jobs.done(1)).collect::<Vec<_>>(), [false, false, false, true]);
    }

    #[test]
    fn an_owner_has_no_more_than_its_share_in_work() {
        let jobs = Jobs::new(4);
        jobs.push(1, 0..5);
        jobs.push(2, [0]);
        let taken: Vec<_> = (0..3).map(|_| one(&jobs).unwrap()).collect();
        assert_eq!(taken, [(1, 0), (2, 0), (1, 1)]);
        std::thread::scope(|scope| {
            let next = scope.spawn(|| one(&jobs));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!next.is_finished());
            jobs.done(1);
            assert_eq!(next.join().unwrap(), Some((1, 2)));
        });
        // An owner that is alone has all workers but one.
        jobs.done(2);
        jobs.done(1);
        assert_eq!(one(&jobs), Some((1, 3)));
        assert_eq!(one(&jobs), Some((1, 4)));
        let quiet: Vec<bool> = (0..3).map(|_| jobs.done(1)).collect();
        assert_eq!(quiet, [false, false, true]);
        jobs.close();
        assert_eq!(one(&jobs), None);
        assert!(jobs.state().owners.is_empty());
    }

    #[test]
    fn what_was_pushed_is_done_before_closed_jobs_end() {
        let jobs = Jobs::new(2);
        (0..100).for_each(|at| jobs.push(at % 3, [at]));
        jobs.close();
        let done = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some((owner, _)) = one(&jobs) {
                        done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        jobs.done(owner);
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 100);
    }
}
