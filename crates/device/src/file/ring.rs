//! io_uring: many reads or writes in one system call.
//!
//! A ring is used by one batch at a time, from the batch's thread, and has nothing in progress
//! between batches. That is the whole safety argument. The kernel holds addresses of buffers only
//! while [`Ring::drive`] runs, and `drive` returns only after the kernel has answered every entry
//! that it took.
//!
//! Rings are pooled per device, not per thread: a program may have many threads and few batches at
//! once, and a ring costs file descriptors and kernel memory.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};
use millpond_base::PastPoison;
use millpond_base::sync::unmodelled::Mutex;

use super::new_file::take_low_descriptors;
use crate::device::ReadRequest;
use crate::device::WriteRequest;
use crate::error::Errno;

/// Rings that a pool keeps for the next batch; more are created on demand and dropped after use.
const RINGS_KEPT: usize = 8;

/// Number of submissions in a row that may fail for lack of kernel memory before the ring is given
/// up.
const REFUSALS_MAX: usize = 1000;

/// The rings of one device.
#[derive(Debug)]
pub(super) struct RingPool {
    depth: u32,
    idle: Mutex<Vec<Ring>>,
}

impl RingPool {
    /// Creates a pool of rings that keep up to `depth` requests in progress, with the first ring.
    ///
    /// The error is the kernel's refusal.
    pub(super) fn new(depth: u32) -> Result<RingPool, Errno> {
        let first = Ring::new(depth)?;
        Ok(RingPool { depth, idle: Mutex::new(vec![first]) })
    }

    /// Runs `use_it` with a ring, or returns `None` if the kernel gives no more rings.
    fn with<R>(&self, use_it: impl FnOnce(&mut Ring) -> R) -> Option<R> {
        let idle = self.idle.lock().past_poison().pop();
        let mut ring = match idle {
            Some(ring) => ring,
            None => Ring::new(self.depth).ok()?,
        };
        let answer = use_it(&mut ring);
        if !ring.broken {
            let mut idle = self.idle.lock().past_poison();
            if idle.len() < RINGS_KEPT {
                idle.push(ring);
            }
        }
        Some(answer)
    }

    /// Reads all requests at depth. `done` receives the kernel's result of each request: bytes
    /// read, or a negative error number; `None` if the request was never submitted.
    pub(super) fn read(
        &self,
        file: &File,
        requests: &mut [ReadRequest<'_, '_>],
        mut done: impl FnMut(&mut ReadRequest<'_, '_>, Option<i32>),
    ) {
        let fd = types::Fd(file.as_raw_fd());
        let answers = self.with(|ring| {
            ring.entries.clear();
            ring.entries.extend(requests.iter_mut().map(|request| {
                // `IoSliceMut` is an `iovec` on Unix, as the standard library guarantees.
                let (start, count) = (request.parts.as_mut_ptr(), request.parts.len() as u32);
                opcode::Readv::new(fd, start.cast(), count).offset(request.offset).build()
            }));
            // SAFETY: every entry names a file and buffers that `file` and `requests` keep alive,
            // the buffers exclusively borrowed, until `drive` is back.
            unsafe { ring.drive() };
            std::mem::take(&mut ring.answers)
        });
        for (at, request) in requests.iter_mut().enumerate() {
            let answer = answers.as_ref().and_then(|all| all.get(at).copied().flatten());
            done(request, answer);
        }
    }

    /// Writes all requests at depth; `done` receives the results as in [`RingPool::read`].
    pub(super) fn write(
        &self,
        file: &File,
        requests: &mut [WriteRequest<'_, '_>],
        mut done: impl FnMut(&mut WriteRequest<'_, '_>, Option<i32>),
    ) {
        let fd = types::Fd(file.as_raw_fd());
        let answers = self.with(|ring| {
            ring.entries.clear();
            ring.entries.extend(requests.iter().map(|request| {
                // `IoSlice` is an `iovec` on Unix, as the standard library guarantees.
                let (start, count) = (request.parts.as_ptr(), request.parts.len() as u32);
                opcode::Writev::new(fd, start.cast(), count).offset(request.offset).build()
            }));
            // SAFETY: every entry names a file and buffers that `file` and `requests` keep alive
            // and unchanged until `drive` is back.
            unsafe { ring.drive() };
            std::mem::take(&mut ring.answers)
        });
        for (at, request) in requests.iter_mut().enumerate() {
            let answer = answers.as_ref().and_then(|all| all.get(at).copied().flatten());
            done(request, answer);
        }
    }
}

impl RingPool {
    /// Writes back the dirty pages in `ranges` of `file`, offsets and lengths, all at once, and
    /// waits until they are written to the device, whose cache may still have them. `None` if the
    /// kernel did not take them.
    pub(super) fn write_back(
        &self,
        file: &File,
        ranges: &[(u64, u32)],
    ) -> Option<Result<(), Errno>> {
        let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        let fd = types::Fd(file.as_raw_fd());
        self.without_memory(ranges.iter().map(|(offset, length)| {
            opcode::SyncFileRange::new(fd, *length).offset(*offset).flags(flags).build()
        }))
    }

    /// Makes the bytes written into a range of `file` durable, and the file's metadata with them.
    /// `None` if the kernel did not take the request.
    pub(super) fn sync_range(
        &self,
        file: &File,
        offset: u64,
        length: u32,
    ) -> Option<Result<(), Errno>> {
        let fsync = opcode::Fsync::new(types::Fd(file.as_raw_fd()));
        let fsync = fsync.flags(types::FsyncFlags::DATASYNC).offset(offset).len(length);
        self.without_memory(std::iter::once(fsync.build()))
    }

    /// Runs entries that name no memory, and returns their first error. `None` if one was never
    /// submitted, or the kernel does not know the operation.
    fn without_memory(
        &self,
        entries: impl Iterator<Item = squeue::Entry>,
    ) -> Option<Result<(), Errno>> {
        let answers = self.with(|ring| {
            ring.entries.clear();
            ring.entries.extend(entries);
            // SAFETY: the entries name a file, which the callers borrow, and no memory.
            unsafe { ring.drive() };
            std::mem::take(&mut ring.answers)
        })?;
        outcome(&answers)
    }
}

/// Returns the first error of a set of entries, which the kernel reports only once. `Some(Ok)` if
/// all succeeded. `None` if one was refused or has no known result, and none failed otherwise.
fn outcome(answers: &[Option<i32>]) -> Option<Result<(), Errno>> {
    let refusals = [-libc::EINVAL, -libc::EOPNOTSUPP];
    let known = answers.iter().flatten();
    let failed = known.clone().find(|answer| **answer < 0 && !refusals.contains(answer));
    if let Some(failed) = failed {
        return Some(Err(Errno(-failed)));
    }
    let are_done = known.clone().all(|answer| *answer >= 0) && known.count() == answers.len();
    are_done.then_some(Ok(()))
}

/// One submission and completion queue.
struct Ring {
    queues: IoUring,
    depth: usize,
    /// Entries of the batch; an entry's index is its user data.
    entries: Vec<squeue::Entry>,
    /// The kernel's answers by index, `None` until it has answered.
    answers: Vec<Option<i32>>,
    /// Set if the kernel refused an operation on the ring: it may hold entries that nobody waits
    /// for.
    broken: bool,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ring(depth {})", self.depth)
    }
}

impl Ring {
    fn new(depth: u32) -> Result<Ring, Errno> {
        let _low = take_low_descriptors();
        let queues = IoUring::builder().dontfork().build(depth).map_err(|e| Errno::of(&e))?;
        let depth = queues.params().sq_entries() as usize;
        Ok(Ring { queues, depth, entries: Vec::new(), answers: Vec::new(), broken: false })
    }

    /// Submits all of `entries`, at most `depth` in progress at once, and fills `answers`. Returns
    /// once nothing is in progress.
    ///
    /// # Safety
    /// Files and memory that the entries name must stay as the entries need them until this
    /// returns.
    unsafe fn drive(&mut self) {
        self.answers.clear();
        self.answers.resize(self.entries.len(), None);
        let (mut next, mut under_way, mut refusals) = (0, 0, 0);
        while next < self.entries.len() || under_way > 0 {
            while under_way < self.depth
                && let Some(entry) = self.entries.get(next)
            {
                let entry = entry.clone().user_data(next as u64);
                // SAFETY: the entry stays valid until its completion was reaped, by this
                // function's contract and because the loop ends with nothing under way.
                if unsafe { self.queues.submission().push(&entry) }.is_err() {
                    break;
                }
                next += 1;
                under_way += 1;
            }
            // One answer per system call would make the calls the cost of a batch. So it waits for
            // a quarter of the queue, and at the end for all of it.
            debug_assert!(under_way <= self.depth, "no more requests than the queue has room for");
            debug_assert!(under_way <= next, "requests under way were submitted");
            let is_end = next == self.entries.len();
            let wanted = if is_end { under_way } else { (under_way / 4).max(1) };
            match self.queues.submit_and_wait(wanted) {
                Ok(_) => refusals = 0,
                // Interrupted, or out of memory or completion slots: take the completions there
                // are, and continue.
                Err(error)
                    if [libc::EINTR, libc::EAGAIN, libc::EBUSY]
                        .contains(&error.raw_os_error().unwrap_or(0))
                        && refusals < REFUSALS_MAX =>
                {
                    refusals += 1;
                }
                Err(_) => {
                    // Entries still in the submission queue were not seen by the kernel, and never
                    // will be: nobody uses this ring again.
                    self.broken = true;
                    under_way -= self.queues.submission().len();
                    self.drain(under_way);
                    return;
                }
            }
            let reaped = self.reap();
            debug_assert!(reaped <= under_way, "{reaped} completions of {under_way} requests");
            under_way -= reaped;
        }
        debug_assert!(self.answers.iter().all(Option::is_some), "each request has its answer");
    }

    /// Waits for the entries that the kernel has taken, without asking it to wait. There is no
    /// bound: to return earlier would let the kernel write into memory that is no longer ours.
    fn drain(&mut self, mut under_way: usize) {
        while under_way > 0 {
            under_way -= self.reap().min(under_way);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Takes all completions that are ready; returns their number.
    fn reap(&mut self) -> usize {
        let mut count = 0;
        for completion in self.queues.completion() {
            count += 1;
            debug_assert_eq!(
                self.answers.get(completion.user_data() as usize),
                Some(&None),
                "a request of this batch is answered once"
            );
            if let Some(answer) = self.answers.get_mut(completion.user_data() as usize) {
                *answer = Some(completion.result());
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, IoSliceMut, Write};

    use super::*;

    /// Returns a file of `count` blocks of 4096 bytes, block i filled with i, and rings; `None` if
    /// the kernel refuses io_uring, which the fallback's tests cover.
    fn file_and_rings(count: u8, depth: u32) -> Option<(File, RingPool)> {
        let mut file = tempfile::tempfile().unwrap();
        for fill in 0..count {
            file.write_all(&[fill; 4096]).unwrap();
        }
        match RingPool::new(depth) {
            Ok(rings) => Some((file, rings)),
            Err(errno) => {
                println!("no io_uring here: {errno}");
                None
            }
        }
    }

    #[test]
    fn when_a_batch_returns_every_request_was_answered_and_every_buffer_is_filled() {
        for depth in [1, 2, 16, 64] {
            let Some((file, rings)) = file_and_rings(100, depth) else { return };
            for round in 0..20 {
                let mut pages = vec![[0u8; 4096]; 100];
                let mut parts: Vec<_> = pages.iter_mut().map(|p| IoSliceMut::new(p)).collect();
                let mut requests: Vec<_> = parts
                    .chunks_mut(1)
                    .enumerate()
                    .map(|(at, parts)| {
                        let offset = ((at + round) % 100) as u64 * 4096;
                        ReadRequest::new(offset, parts)
                    })
                    .collect();
                rings.read(&file, &mut requests, |_, answer| assert_eq!(answer, Some(4096)));
                for (at, page) in pages.iter().enumerate() {
                    assert_eq!(page, &[((at + round) % 100) as u8; 4096], "depth {depth}");
                }
            }
        }
    }

    #[test]
    fn an_error_of_one_range_is_told_whatever_became_of_the_others() {
        let (refused, failed) = (Some(-libc::EINVAL), Some(-libc::EIO));
        assert_eq!(outcome(&[Some(0), Some(0)]), Some(Ok(())));
        assert_eq!(outcome(&[]), Some(Ok(())));
        for not_done in [None, refused] {
            assert_eq!(outcome(&[Some(0), not_done]), None);
            assert_eq!(outcome(&[not_done, failed]), Some(Err(Errno(libc::EIO))));
            assert_eq!(outcome(&[failed, not_done]), Some(Err(Errno(libc::EIO))));
        }
    }

    #[test]
    fn a_refused_request_is_answered_with_its_error_and_the_others_are_done() {
        let Some((file, rings)) = file_and_rings(4, 2) else { return };
        let bytes = [9u8; 4096];
        let parts = [IoSlice::new(&bytes)];
        let request = |offset| WriteRequest::new(offset, &parts);
        let mut requests = [request(0), request(u64::MAX / 2 + 1), request(8192)];
        let mut answers = Vec::new();
        rings.write(&file, &mut requests, |_, answer| answers.push(answer));
        assert_eq!((answers[0], answers[2]), (Some(4096), Some(4096)));
        assert!(answers[1].is_some_and(|answer| answer < 0), "{:?}", answers[1]);
        // The ring still works like a new one.
        rings.write(&file, &mut requests[..1], |_, answer| assert_eq!(answer, Some(4096)));
    }
}
