//! Sampling under way.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use perf_event::Record;
use perf_event::data::Record as Parsed;

use super::modules::{Modules, StackUnwinder};
use super::rings::Rings;
use super::symbols::Symbols;
use crate::error::ProfileError;
use crate::profile::{Options, Profile, Stack};

/// Time between two reads of the ring buffers.
const LOOK: Duration = Duration::from_millis(2);

/// Bits of a record's `misc` that hold the processor's mode, and the value for the kernel.
const MODE: u16 = 7;
const MODE_KERNEL: u16 = 1;

/// Stacks by their addresses.
#[derive(Default)]
struct Collected {
    /// For each stack: samples in user mode, samples in the kernel, and `true` if it was cut.
    stacks: HashMap<Vec<u64>, (u64, u64, bool)>,
    threads: HashSet<u32>,
    lost: u64,
    has_kernel: bool,
    /// CPU time of the thread that collects.
    own: Duration,
}

/// Sampling of all threads of the process, under way until it is stopped or dropped.
pub struct Sampling {
    options: Options,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Collected, ProfileError>>>,
    begun: Instant,
    cpu: (Duration, Duration),
}

/// Returns the CPU time in user mode and in the kernel, of the process or of this thread.
fn cpu_time(who: libc::c_int) -> (Duration, Duration) {
    // SAFETY: all of its fields may be zero.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes to the structure, which lives through it, and keeps nothing.
    let done = unsafe { libc::getrusage(who, &raw mut usage) };
    if done != 0 {
        return (Duration::ZERO, Duration::ZERO);
    }
    let time = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64)
    };
    (time(usage.ru_utime), time(usage.ru_stime))
}

fn thread_id() -> i32 {
    // SAFETY: it has no arguments and cannot fail.
    unsafe { libc::gettid() }
}

impl Sampling {
    /// Starts sampling all threads of the process, including threads that start later.
    ///
    /// # Errors
    /// [`ProfileError::Forbidden`], or the system's error.
    pub fn start(options: &Options) -> Result<Sampling, ProfileError> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (told, begun) = mpsc::channel();
        let (asked, over) = (options.clone(), is_over.clone());
        let thread = thread::Builder::new().name("millpond-profile".into()).spawn(move || {
            let opened = Modules::mapped().and_then(|modules| {
                let unwinder = modules.unwinder();
                let mut rings = Rings::open(&asked, thread_id())?;
                rings.enable()?;
                Ok((rings, unwinder, cpu_time(libc::RUSAGE_THREAD)))
            });
            let (mut rings, mut unwinder, before) = match opened {
                Ok(opened) => opened,
                Err(error) => {
                    let _ = told.send(Err(error));
                    return Err(ProfileError::Ended);
                }
            };
            let _ = told.send(Ok(()));
            let mut collected = Collected::default();
            while !over.load(Ordering::Acquire) {
                collected.drain(&mut rings, &mut unwinder);
                thread::sleep(LOOK);
            }
            rings.disable()?;
            collected.drain(&mut rings, &mut unwinder);
            let (user, kernel) = cpu_time(libc::RUSAGE_THREAD);
            collected.has_kernel = rings.has_kernel;
            collected.own = (user + kernel).saturating_sub(before.0 + before.1);
            Ok(collected)
        });
        let thread = thread.map_err(|error| ProfileError::io("starting a thread", error))?;
        begun.recv().map_err(|_| ProfileError::Ended)??;
        Ok(Sampling {
            options: options.clone(),
            is_over,
            thread: Some(thread),
            begun: Instant::now(),
            cpu: cpu_time(libc::RUSAGE_SELF),
        })
    }

    /// Ends the sampling and resolves the samples. Reading the line tables of a large program
    /// takes seconds.
    ///
    /// # Errors
    /// The system's error.
    pub fn stop(mut self) -> Result<Profile, ProfileError> {
        let wall = self.begun.elapsed();
        self.is_over.store(true, Ordering::Release);
        let thread = self.thread.take().ok_or(ProfileError::Ended)?;
        let collected = thread.join().map_err(|_| ProfileError::Ended)??;
        let cpu = cpu_time(libc::RUSAGE_SELF);
        // Reads the present mappings, since libraries may have been mapped during sampling.
        let mut symbols = Symbols::of(Modules::mapped()?);
        let Collected { own, lost, has_kernel, .. } = collected;
        let threads = collected.threads.len() as u64;
        let per_second = u64::from(self.options.per_second.clamp(1, 100_000));
        Ok(Profile {
            stacks: resolved(collected, &mut symbols),
            period: Duration::from_nanos(1_000_000_000 / per_second),
            wall,
            cpu: (cpu.0.saturating_sub(self.cpu.0), cpu.1.saturating_sub(self.cpu.1)),
            own,
            lost,
            threads,
            has_kernel,
        })
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns stacks with the names of their functions, the most frequent first. Stacks that differ
/// only in their instructions count as one.
fn resolved(collected: Collected, symbols: &mut Symbols) -> Vec<Stack> {
    let mut stacks: HashMap<Vec<_>, Stack> = HashMap::new();
    for (addresses, (user, kernel, is_cut)) in collected.stacks {
        let mut frames = Vec::new();
        for address in addresses {
            frames.extend_from_slice(symbols.frames(address));
        }
        let stack = stacks.entry(frames.clone()).or_insert(Stack { frames, ..Stack::default() });
        stack.user += user;
        stack.kernel += kernel;
        stack.is_cut |= is_cut;
    }
    let mut all: Vec<Stack> = stacks.into_values().collect();
    all.sort_by(|a, b| {
        (b.user + b.kernel)
            .cmp(&(a.user + a.kernel))
            .then_with(|| a.frames.len().cmp(&b.frames.len()))
    });
    all
}

impl Collected {
    /// Takes the samples from the ring buffers.
    fn drain(&mut self, rings: &mut Rings, unwinder: &mut StackUnwinder) {
        for ring in &mut rings.rings {
            while let Some(record) = ring.next_record() {
                self.take(&record, unwinder);
            }
        }
    }

    fn take(&mut self, record: &Record<'_>, unwinder: &mut StackUnwinder) {
        let is_kernel = record.misc() & MODE == MODE_KERNEL;
        match record.parse_record() {
            Ok(Parsed::Sample(sample)) => {
                if let Some(thread) = sample.tid() {
                    self.threads.insert(thread);
                }
                let registers = sample.regs_user().map(|registers| &*registers.regs);
                let mut frames = Vec::new();
                let mut is_cut = true;
                if let (Some([bp, sp, ip]), Some(stack)) = (registers, sample.stack_user()) {
                    is_cut = unwinder.unwind(*ip, *sp, *bp, stack, &mut frames);
                }
                let (user, kernel, was_cut) = self.stacks.entry(frames).or_default();
                *user += u64::from(!is_kernel);
                *kernel += u64::from(is_kernel);
                *was_cut |= is_cut;
            }
            Ok(Parsed::Lost(lost)) => self.lost += lost.lost,
            Ok(Parsed::LostSamples(lost)) => self.lost += lost.lost,
            Ok(_) | Err(_) => {}
        }
    }
}
