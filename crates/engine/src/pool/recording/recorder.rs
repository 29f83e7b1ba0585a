//! Records page references of a live run, for the simulator.
//!
//! Recording must not change the run, so a reference costs two stores to lines that no other thread
//! writes: each thread records references in a buffer of its own, eight bytes each ([`Reference`]).
//! The references of a mini-transaction stay when it succeeds. When it restarts they are dropped,
//! because the next one records them again, unless the references of all attempts are asked for.
//! Full buffers go to a sink in the order in which they fill up, so that threads' references
//! interleave by the buffer, not by the reference. The thread whose buffer is full pays for the
//! sink's work: a sink should only store the references, and make a trace of them later.
//!
//! Memory is 64 KiB, or [`ROOM`] references, per thread that took part, and the memory of the sink.
//!
//! Invariants:
//! 1. The cells of an owned slot ([`thread_slot`](crate::stats::thread_slot)) are written by its
//!    owner, and by [`Recorder::start`] and [`Recorder::stop`] while no operation runs. Plain loads
//!    and stores are therefore enough. They are atomic, and indices are checked, so that a caller
//!    that breaks this rule gets a wrong trace, but no undefined behaviour.
//! 2. `kept <= noted <= ROOM`. The references between them belong to the mini-transaction under
//!    way.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use millpond_base::{Mark, PageId};

use crate::stats::thread_slot::OWNED;

/// Number of references that a thread keeps before it hands them to the sink.
pub const BUFFER: usize = 4096;
/// Number of references that a thread's buffer has room for: a full buffer, and a mini-transaction
/// that is under way. A mini-transaction with even more references is recorded at once, whether it
/// succeeds or not.
pub const ROOM: usize = 2 * BUFFER;

/// Bits of a packed reference that hold its mark; the others hold its page.
const MARK_BITS: u32 = 24;

/// One page reference: the page in the upper 40 bits, which is enough for stores of 4 PiB, the
/// mark in the lower 24.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reference(u64);

impl Reference {
    /// Returns a reference to `page`.
    #[inline(always)]
    pub fn new(page: PageId, mark: Mark) -> Reference {
        debug_assert!(page.0 >> (64 - MARK_BITS) == 0 && mark.to_bits() >> MARK_BITS == 0);
        Reference(page.0 << MARK_BITS | u64::from(mark.to_bits()))
    }

    /// Returns the page.
    #[inline(always)]
    pub fn page(self) -> PageId {
        PageId(self.0 >> MARK_BITS)
    }

    /// Returns the mark: all that is known of the reference besides the page.
    #[inline(always)]
    pub fn mark(self) -> Mark {
        Mark::from_bits((self.0 & ((1 << MARK_BITS) - 1)) as u32)
    }

    /// Returns the reference as eight bytes.
    #[inline(always)]
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }

    /// Reads the bytes of [`Reference::to_bytes`].
    #[inline(always)]
    pub fn from_bytes(bytes: [u8; 8]) -> Reference {
        Reference(u64::from_le_bytes(bytes))
    }
}

/// Receives references. Called by one thread at a time, whose buffer is full.
pub trait Sink: Send {
    /// Takes references; an error ends the recording.
    ///
    /// # Errors
    /// The reason why they could not be written, in words.
    fn take(&mut self, references: &[Reference]) -> Result<(), String>;
}

/// One thread's references, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Buffer {
    noted: AtomicUsize,
    /// References before this one were recorded by mini-transactions that succeeded.
    kept: AtomicUsize,
    cells: OnceLock<Box<[AtomicU64]>>,
}

impl Buffer {
    #[inline(always)]
    fn cells(&self) -> &[AtomicU64] {
        self.cells.get_or_init(|| (0..ROOM).map(|_| AtomicU64::new(0)).collect())
    }

    /// Records a reference; `false` if there was no room.
    #[inline(always)]
    fn note(&self, reference: Reference) -> bool {
        let at = self.noted.load(Ordering::Relaxed);
        let Some(cell) = self.cells().get(at) else { return false };
        cell.store(reference.0, Ordering::Relaxed);
        self.noted.store(at + 1, Ordering::Relaxed);
        true
    }

    /// Moves the kept references to the end of `out`.
    fn take_kept(&self, out: &mut Vec<Reference>) {
        let (noted, kept) = (self.noted.load(Ordering::Relaxed), self.kept.load(Ordering::Relaxed));
        let Some(cells) = self.cells.get() else { return };
        let of = |cell: &AtomicU64| Reference(cell.load(Ordering::Relaxed));
        out.extend(cells.iter().take(kept).map(of));
        for (to, from) in cells.iter().zip(cells.iter().take(noted).skip(kept)) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.noted.store(noted.saturating_sub(kept), Ordering::Relaxed);
        self.kept.store(0, Ordering::Relaxed);
    }

    fn clear(&self) {
        self.noted.store(0, Ordering::Relaxed);
        self.kept.store(0, Ordering::Relaxed);
    }
}

thread_local! {
    /// References that a thread without a slot of its own recorded in the mini-transaction under
    /// way.
    static PENDING: RefCell<Vec<Reference>> = const { RefCell::new(Vec::new()) };
}

/// The sink and the references on their way there.
struct Drain {
    sink: Box<dyn Sink>,
    batch: Vec<Reference>,
    recorded: u64,
}

/// Records page references while it is on.
pub struct Recorder {
    on: AtomicBool,
    all_attempts: AtomicBool,
    buffers: Box<[Buffer]>,
    /// References of threads without a slot of their own, from mini-transactions that ended.
    shared: Mutex<Vec<Reference>>,
    drain: Mutex<Option<Drain>>,
    error: Mutex<Option<String>>,
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder {
            on: AtomicBool::new(false),
            all_attempts: AtomicBool::new(false),
            buffers: (0..OWNED).map(|_| Buffer::default()).collect(),
            shared: Mutex::default(),
            drain: Mutex::default(),
            error: Mutex::default(),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(poisoned) => poisoned.into_inner(),
    }
}

impl Recorder {
    /// Begins to record into `sink`, when no operation runs; with `all_attempts`, also the
    /// references of mini-transactions that had to restart.
    pub fn start(&self, sink: Box<dyn Sink>, all_attempts: bool) {
        let batch = Vec::with_capacity(ROOM);
        *locked(&self.drain) = Some(Drain { sink, batch, recorded: 0 });
        *locked(&self.error) = None;
        self.buffers.iter().for_each(Buffer::clear);
        locked(&self.shared).clear();
        self.all_attempts.store(all_attempts, Ordering::Relaxed);
        self.on.store(true, Ordering::Release);
    }

    /// Returns whether the recorder is on.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Ends the recording, when no operation runs: hands the rest to the sink and drops the sink.
    /// Returns the number of recorded references.
    ///
    /// # Errors
    /// The error that ended the recording before its time.
    pub fn stop(&self) -> Result<u64, String> {
        for buffer in &self.buffers {
            self.hand_over(|out| buffer.take_kept(out));
        }
        let mut rest = std::mem::take(&mut *locked(&self.shared));
        self.hand_over(|out| out.append(&mut rest));
        self.on.store(false, Ordering::Release);
        let drain = locked(&self.drain).take();
        match locked(&self.error).take() {
            Some(error) => Err(error),
            None => Ok(drain.map_or(0, |drain| drain.recorded)),
        }
    }

    /// Records that the thread of `slot` referenced `page`.
    #[inline(always)]
    pub fn note(&self, slot: usize, page: PageId, mark: Mark) {
        if !self.is_on() {
            return;
        }
        let reference = Reference::new(page, mark);
        match self.buffers.get(slot) {
            Some(buffer) if buffer.note(reference) => {}
            Some(buffer) => self.note_beyond(buffer, reference),
            None => Self::note_pending(reference),
        }
    }

    /// Keeps the references of a mini-transaction that is larger than the buffer.
    #[cold]
    fn note_beyond(&self, buffer: &Buffer, reference: Reference) {
        buffer.kept.store(buffer.noted.load(Ordering::Relaxed), Ordering::Relaxed);
        self.hand_over(|out| buffer.take_kept(out));
        buffer.note(reference);
    }

    #[cold]
    fn note_pending(reference: Reference) {
        // A thread that is being torn down has no place left; nothing that counts runs there.
        let _ = PENDING.try_with(|pending| pending.borrow_mut().push(reference));
    }

    /// Ends the thread's mini-transaction.
    #[inline(always)]
    pub fn leave(&self, slot: usize, done: bool) {
        if !self.is_on() {
            return;
        }
        let is_kept = done || self.all_attempts.load(Ordering::Relaxed);
        let Some(buffer) = self.buffers.get(slot) else { return self.leave_pending(is_kept) };
        if !is_kept {
            buffer.noted.store(buffer.kept.load(Ordering::Relaxed), Ordering::Relaxed);
            return;
        }
        let noted = buffer.noted.load(Ordering::Relaxed);
        buffer.kept.store(noted, Ordering::Relaxed);
        if noted >= BUFFER {
            self.hand_over(|out| buffer.take_kept(out));
        }
    }

    #[cold]
    fn leave_pending(&self, is_kept: bool) {
        let mut full = Vec::new();
        let _ = PENDING.try_with(|pending| {
            let pending = &mut *pending.borrow_mut();
            if is_kept {
                let shared = &mut *locked(&self.shared);
                shared.append(pending);
                if shared.len() >= BUFFER {
                    std::mem::swap(shared, &mut full);
                }
            }
            pending.clear();
        });
        if !full.is_empty() {
            self.hand_over(|out| out.append(&mut full));
        }
    }

    /// Gives the sink the references that `fill` puts into the batch.
    #[cold]
    fn hand_over(&self, fill: impl FnOnce(&mut Vec<Reference>)) {
        let mut drain = locked(&self.drain);
        let Some(Drain { sink, batch, recorded }) = drain.as_mut() else { return };
        batch.clear();
        fill(batch);
        if batch.is_empty() || !self.is_on() {
            return;
        }
        match sink.take(batch) {
            Ok(()) => *recorded += batch.len() as u64,
            Err(error) => {
                self.on.store(false, Ordering::Release);
                *locked(&self.error) = Some(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::thread_slot::{SHARED, thread_slot};
    use millpond_base::{AccessKind, PageKind};
    use std::sync::{Arc, Barrier};

    struct Into(Arc<Mutex<Vec<u64>>>, usize);

    impl Sink for Into {
        fn take(&mut self, references: &[Reference]) -> Result<(), String> {
            let mut all = locked(&self.0);
            if all.len() + references.len() > self.1 {
                return Err("full".to_string());
            }
            all.extend(references.iter().map(|r| r.page().0));
            Ok(())
        }
    }

    fn started(most: usize, all_attempts: bool) -> (Recorder, Arc<Mutex<Vec<u64>>>) {
        let (recorder, all) = (Recorder::default(), Arc::new(Mutex::new(Vec::new())));
        recorder.start(Box::new(Into(all.clone(), most)), all_attempts);
        (recorder, all)
    }

    fn run(recorder: &Recorder, slot: usize) {
        for (page, done) in [(1, true), (2, false), (3, true)] {
            recorder.note(slot, PageId(page), Mark::READ);
            recorder.leave(slot, done);
        }
    }

    #[test]
    fn a_reference_is_packed_and_unpacked_without_loss() {
        let mark = Mark::of(AccessKind::Write).with_kind(PageKind(200), 255).with_scan(true);
        let reference = Reference::new(PageId((1 << 40) - 1), mark);
        let again = Reference::from_bytes(reference.to_bytes());
        assert_eq!((again.page(), again.mark()), (PageId((1 << 40) - 1), mark));
    }

    #[test]
    fn attempts_that_start_again_leave_no_trace_unless_asked_for() {
        for slot in [0, SHARED] {
            let (recorder, all) = started(100, false);
            run(&recorder, slot);
            assert_eq!(recorder.stop(), Ok(2));
            assert_eq!(*locked(&all), [1, 3]);
            run(&recorder, slot);
            recorder.start(Box::new(Into(all.clone(), 100)), true);
            run(&recorder, slot);
            assert_eq!(recorder.stop(), Ok(3));
            assert_eq!(*locked(&all), [1, 3, 1, 2, 3]);
        }
    }

    #[test]
    fn a_sink_that_is_full_ends_the_recording_and_says_so() {
        let (recorder, _) = started(BUFFER, false);
        for page in 0..2 * BUFFER as u64 + 1 {
            recorder.note(0, PageId(page), Mark::READ);
            recorder.leave(0, true);
        }
        assert!(!recorder.is_on());
        assert_eq!(recorder.stop(), Err("full".to_string()));
    }

    #[test]
    fn an_attempt_larger_than_the_buffer_is_recorded_in_full() {
        for slot in [0, SHARED] {
            let (recorder, all) = started(usize::MAX, false);
            let pages = 3 * ROOM as u64 + 7;
            (0..pages).for_each(|page| recorder.note(slot, PageId(page), Mark::READ));
            recorder.leave(slot, true);
            run(&recorder, slot);
            assert_eq!(recorder.stop(), Ok(pages + 2));
            assert!(locked(&all).iter().copied().eq((0..pages).chain([1, 3])));
        }
    }

    #[test]
    fn what_an_attempt_noted_after_a_full_buffer_survives_the_hand_over() {
        let (recorder, all) = started(usize::MAX, false);
        for page in 0..BUFFER as u64 - 1 {
            recorder.note(5, PageId(page), Mark::READ);
        }
        recorder.leave(5, true);
        // Three more fill the buffer; only the first two belong to attempts that end well.
        for (page, done) in [(70_000, true), (70_001, true), (70_002, false)] {
            recorder.note(5, PageId(page), Mark::READ);
            recorder.leave(5, done);
        }
        assert_eq!(recorder.stop(), Ok(BUFFER as u64 + 1));
        assert_eq!(locked(&all)[BUFFER - 1..], [70_000, 70_001]);
    }

    #[test]
    fn threads_beyond_the_slots_record_whole_attempts_too() {
        let (recorder, all) = started(usize::MAX, false);
        let threads = OWNED + 20;
        let barrier = Barrier::new(threads);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let slot = thread_slot();
                    barrier.wait();
                    for round in 0..300u64 {
                        recorder.note(slot, PageId(1), Mark::READ);
                        recorder.note(slot, PageId(2), Mark::READ);
                        recorder.leave(slot, round % 3 != 0);
                    }
                });
            }
        });
        assert_eq!(recorder.stop(), Ok(threads as u64 * 400));
        assert!(locked(&all).chunks(2).all(|attempt| attempt == [1, 2]));
    }
}
