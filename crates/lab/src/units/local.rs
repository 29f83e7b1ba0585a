//! Units on the cores of this machine.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::unit::{Unit, UnitError};
use crate::registry::Registry;
use crate::results::{SweepFolder, memory_available};
use crate::sweep::threads_for;
use millpond_base::PastPoison;

/// Interval between two checks for a request to stop.
const ASK: Duration = Duration::from_millis(100);

/// Options of a local run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local {
    /// Threads; 0 is one per core.
    pub threads: usize,
    /// Bytes that concurrently running units may need together; `None` for the memory that is free
    /// at the beginning. A unit that needs more runs alone.
    pub memory: Option<u64>,
    /// Bytes that a unit may need; `None` for the unit's estimate.
    pub unit_memory: Option<u64>,
}

/// Event reported to the caller of [`run_local`].
#[derive(Debug)]
pub enum Event<'a> {
    /// Nothing happened for a moment.
    Tick,
    /// A unit's file was written.
    Done(&'a Unit),
    /// A unit failed; the others continue.
    Failed(&'a Unit, &'a UnitError),
}

/// Result of a run of some units.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Number of units that were run.
    pub ran: usize,
    /// Number of units with an existing file.
    pub there: usize,
    /// Failures: each unit's label and the error.
    pub failed: Vec<(String, UnitError)>,
    /// The readers' notes on traces of units that were run, each once: the trace's name and the
    /// note.
    pub notes: Vec<(String, String)>,
    /// `true` if `watch` ended the run.
    pub is_stopped: bool,
}

impl Outcome {
    /// Keeps the notes on a unit's trace that are new.
    fn note(&mut self, unit: &Unit, notes: Vec<String>) {
        for note in notes.into_iter().map(|note| (unit.trace.name.clone(), note)) {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }
}

/// Runs the units that have no file in `folder`, and writes their files. This thread calls `watch`,
/// which returns `true` to continue.
///
/// # Errors
/// [`UnitError`] if a trace cannot be read to name its units. Later failures are in the outcome.
pub fn run_local(
    units: &[Unit],
    folder: &SweepFolder,
    registry: &Registry,
    how: Local,
    watch: &mut dyn FnMut(Event<'_>) -> bool,
) -> Result<Outcome, UnitError> {
    let mut outcome = Outcome::default();
    let mut work = Vec::new();
    for unit in units {
        if !watch(Event::Tick) {
            return Ok(Outcome { is_stopped: true, ..outcome });
        }
        let name = unit.name(registry)?;
        if folder.has(&name) {
            outcome.there += 1;
            watch(Event::Done(unit));
        } else {
            let memory = how.unit_memory.map_or_else(|| unit.memory(registry), Ok)?;
            work.push(Work { unit, name, memory });
        }
    }
    let threads = threads_for(how.threads, usize::MAX);
    let workers = threads.min(work.len());
    let budget = how.memory.or_else(memory_available).unwrap_or(u64::MAX);
    let shared = Shared {
        work: &work,
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        memory: Gate { free: Mutex::new(budget), all: budget, changed: Condvar::new() },
        folder,
        registry,
        // With more threads than units, a unit has several threads.
        threads: threads / workers.max(1),
    };
    std::thread::scope(|scope| {
        let (sender, events) = channel();
        for _ in 0..workers {
            let (sender, shared) = (sender.clone(), &shared);
            scope.spawn(move || shared.run(&sender));
        }
        drop(sender);
        loop {
            let goes_on = match events.recv_timeout(ASK) {
                Ok((at, Ok(notes))) => {
                    outcome.ran += 1;
                    outcome.note(work[at].unit, notes);
                    watch(Event::Done(work[at].unit))
                }
                Ok((_, Err(UnitError::Stopped))) => true,
                Ok((at, Err(error))) => {
                    let goes_on = watch(Event::Failed(work[at].unit, &error));
                    outcome.failed.push((work[at].unit.label(), error));
                    goes_on
                }
                Err(RecvTimeoutError::Timeout) => watch(Event::Tick),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if !goes_on {
                outcome.is_stopped = true;
                shared.stop.store(true, Relaxed);
            }
        }
    });
    Ok(outcome)
}

struct Work<'a> {
    unit: &'a Unit,
    name: String,
    memory: u64,
}

struct Shared<'a> {
    work: &'a [Work<'a>],
    next: AtomicUsize,
    stop: AtomicBool,
    memory: Gate,
    folder: &'a SweepFolder,
    registry: &'a Registry,
    threads: usize,
}

impl Shared<'_> {
    fn run(&self, sender: &Sender<(usize, Result<Vec<String>, UnitError>)>) {
        while !self.stop.load(Relaxed) {
            let at = self.next.fetch_add(1, Relaxed);
            let Some(work) = self.work.get(at) else { break };
            let taken = self.memory.take(work.memory);
            let done = self.one(work);
            self.memory.give(taken);
            if sender.send((at, done)).is_err() {
                break;
            }
        }
    }

    /// Runs a unit and stores its file; returns the notes on its trace.
    fn one(&self, work: &Work<'_>) -> Result<Vec<String>, UnitError> {
        let stop = || self.stop.load(Relaxed);
        let ran = work.unit.run(self.registry, self.threads, Some(&work.name), &stop)?;
        self.folder.store(&work.name, &ran.file)?;
        Ok(ran.notes)
    }
}

/// A budget of memory that units share according to their estimates.
struct Gate {
    free: Mutex<u64>,
    all: u64,
    changed: Condvar,
}

impl Gate {
    /// Waits until `bytes` are free, or all of the memory if `bytes` exceeds it; returns the bytes
    /// taken.
    fn take(&self, bytes: u64) -> u64 {
        let bytes = bytes.min(self.all);
        // The number is consistent at any time, even after a panic.
        let mut free = self.free.lock().past_poison();
        while *free < bytes {
            free = self.changed.wait(free).past_poison();
        }
        *free -= bytes;
        bytes
    }

    fn give(&self, bytes: u64) {
        *self.free.lock().past_poison() += bytes;
        self.changed.notify_all();
    }
}
