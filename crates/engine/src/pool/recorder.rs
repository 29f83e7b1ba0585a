//! Recording page references of a live run, for the simulator.
//!
//! Each thread notes references in a buffer of its own; when an attempt ends well they stay, when
//! it has to start again they are dropped, because the new attempt notes them anew, unless all are
//! asked for. Full buffers go to a sink in the order in which they fill up, so that threads'
//! references interleave by the buffer, not by the reference.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use millpond_base::{Mark, PageId};

use crate::pool::thread_slot::SLOTS;

/// References that a thread keeps before it hands them to the sink.
pub const BUFFER: usize = 4096;

/// One page reference.
pub type Reference = (PageId, Mark);

/// Where references go. Called by whichever thread's buffer is full, one at a time.
pub trait Sink: Send {
    /// Takes references; an error ends the recording.
    ///
    /// # Errors
    /// Why they could not be written, in words.
    fn take(&mut self, references: &[Reference]) -> Result<(), String>;
}

#[derive(Default)]
#[repr(align(128))]
struct Buffer(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    references: Vec<Reference>,
    /// Those before were noted by attempts that ended well.
    kept: usize,
}

/// Records page references while it is on.
pub struct Recorder {
    on: AtomicBool,
    all_attempts: AtomicBool,
    recorded: AtomicU64,
    buffers: Box<[Buffer]>,
    sink: Mutex<Option<Box<dyn Sink>>>,
    error: Mutex<Option<String>>,
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder {
            on: AtomicBool::new(false),
            all_attempts: AtomicBool::new(false),
            recorded: AtomicU64::new(0),
            buffers: (0..SLOTS).map(|_| Buffer::default()).collect(),
            sink: Mutex::new(None),
            error: Mutex::new(None),
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
    /// Begins to record into `sink`; with `all_attempts`, also what attempts referenced that had
    /// to start again.
    pub fn start(&self, sink: Box<dyn Sink>, all_attempts: bool) {
        *locked(&self.sink) = Some(sink);
        *locked(&self.error) = None;
        self.all_attempts.store(all_attempts, Ordering::Relaxed);
        self.recorded.store(0, Ordering::Relaxed);
        self.on.store(true, Ordering::Release);
    }

    /// Whether it records now.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Ends the recording, when no operation runs: hands the rest to the sink and drops it. Says
    /// how many references were recorded.
    ///
    /// # Errors
    /// What ended the recording before its time.
    pub fn stop(&self) -> Result<u64, String> {
        for slot in 0..SLOTS {
            let mut noted = locked(&self.buffers[slot].0);
            self.hand_over(&mut noted);
        }
        self.on.store(false, Ordering::Release);
        *locked(&self.sink) = None;
        match locked(&self.error).take() {
            Some(error) => Err(error),
            None => Ok(self.recorded.load(Ordering::Relaxed)),
        }
    }

    /// The thread of `slot` referenced `page`.
    #[inline]
    pub fn note(&self, slot: usize, page: PageId, mark: Mark) {
        if self.is_on() {
            locked(&self.buffers[slot % SLOTS].0).references.push((page, mark));
        }
    }

    /// The thread's attempt ended.
    #[inline]
    pub fn leave(&self, slot: usize, done: bool) {
        if self.is_on() {
            self.settle(slot, done);
        }
    }

    fn settle(&self, slot: usize, done: bool) {
        let mut noted = locked(&self.buffers[slot % SLOTS].0);
        if !done && !self.all_attempts.load(Ordering::Relaxed) {
            let kept = noted.kept;
            noted.references.truncate(kept);
            return;
        }
        noted.kept = noted.references.len();
        if noted.kept >= BUFFER {
            self.hand_over(&mut noted);
        }
    }

    fn hand_over(&self, noted: &mut Noted) {
        let kept = noted.kept;
        if kept == 0 {
            return;
        }
        if let Some(sink) = locked(&self.sink).as_mut() {
            match sink.take(&noted.references[..kept]) {
                Ok(()) => {
                    self.recorded.fetch_add(kept as u64, Ordering::Relaxed);
                }
                Err(error) => {
                    self.on.store(false, Ordering::Release);
                    *locked(&self.error) = Some(error);
                }
            }
        }
        noted.references.drain(..kept);
        noted.kept = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    struct Into(Arc<Mutex<Vec<u64>>>, usize);

    impl Sink for Into {
        fn take(&mut self, references: &[Reference]) -> Result<(), String> {
            let mut all = locked(&self.0);
            if all.len() + references.len() > self.1 {
                return Err("full".to_string());
            }
            all.extend(references.iter().map(|r| r.0.0));
            Ok(())
        }
    }

    fn run(recorder: &Recorder) {
        for (page, done) in [(1, true), (2, false), (3, true)] {
            recorder.note(0, PageId(page), Mark::READ);
            recorder.leave(0, done);
        }
    }

    #[test]
    fn attempts_that_start_again_leave_no_trace_unless_asked_for() {
        let (recorder, all) = (Recorder::default(), Arc::new(Mutex::new(Vec::new())));
        run(&recorder);
        recorder.start(Box::new(Into(all.clone(), 100)), false);
        run(&recorder);
        assert_eq!(recorder.stop(), Ok(2));
        assert_eq!(*locked(&all), [1, 3]);
        recorder.start(Box::new(Into(all.clone(), 100)), true);
        run(&recorder);
        assert_eq!(recorder.stop(), Ok(3));
        assert_eq!(*locked(&all), [1, 3, 1, 2, 3]);
    }

    #[test]
    fn a_sink_that_is_full_ends_the_recording_and_says_so() {
        let (recorder, all) = (Recorder::default(), Arc::new(Mutex::new(Vec::new())));
        recorder.start(Box::new(Into(all, BUFFER)), false);
        for page in 0..2 * BUFFER as u64 + 1 {
            recorder.note(0, PageId(page), Mark::READ);
            recorder.leave(0, true);
        }
        assert!(!recorder.is_on());
        assert_eq!(recorder.stop(), Err("full".to_string()));
    }
}
