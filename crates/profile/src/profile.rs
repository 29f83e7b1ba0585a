//! The samples of a process.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Options of sampling.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Samples per second of a thread's CPU time. An odd number avoids coincidence with periodic
    /// work.
    pub per_second: u32,
    /// Bytes of stack that are copied with each sample; frames above them are lost. Rounded down to
    /// a multiple of 8, at most 65,528.
    pub stack_bytes: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { per_second: 1_999, stack_bytes: 8 << 10 }
    }
}

/// A function that was running, or that called one.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Frame {
    /// Demangled name, or the address if there is no name.
    pub function: String,
    /// Source file; empty if there are no line tables.
    pub file: String,
    /// Line in the source file, or 0.
    pub line: u32,
    /// Program or library that contains the code.
    pub module: String,
}

/// A call stack with its number of samples.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stack {
    /// Frames from the running function out to the thread's first one. Inlined functions have their
    /// own frames.
    pub frames: Vec<Arc<Frame>>,
    /// Samples in user mode.
    pub user: u64,
    /// Samples in the kernel, called from the innermost frame.
    pub kernel: u64,
    /// `true` if the stack was longer than the copied bytes, so that its outer end is missing.
    pub is_cut: bool,
}

/// Call stacks of a process over some time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Profile {
    /// All distinct stacks, most frequent first.
    pub stacks: Vec<Stack>,
    /// CPU time between two samples of a thread.
    pub period: Duration,
    /// Wall time of the sampling.
    pub wall: Duration,
    /// CPU time of the process during sampling, in user mode and in the kernel, by the system's
    /// account; it includes the profiler's own.
    pub cpu: (Duration, Duration),
    /// CPU time of the profiler's own thread during sampling.
    pub own: Duration,
    /// Number of samples that the system could not deliver.
    pub lost: u64,
    /// Number of threads seen running.
    pub threads: u64,
    /// `true` if time in the kernel was sampled; if not, [`Profile::cpu`] shows its amount.
    pub has_kernel: bool,
}

impl Profile {
    /// Returns the number of all samples.
    pub fn samples(&self) -> u64 {
        self.stacks.iter().map(|stack| stack.user + stack.kernel).sum()
    }

    /// Returns the seconds of CPU time that the samples represent.
    pub fn cpu_seconds(&self) -> f64 {
        self.samples() as f64 * self.period.as_secs_f64()
    }

    /// Returns the number of samples in which each function itself was running, under any caller,
    /// the largest first.
    pub fn hottest(&self) -> Vec<(Arc<Frame>, u64)> {
        let mut counts: HashMap<&str, (Arc<Frame>, u64)> = HashMap::new();
        for stack in &self.stacks {
            if let Some(frame) = stack.frames.first() {
                let entry = counts.entry(&frame.function).or_insert((frame.clone(), 0));
                entry.1 += stack.user + stack.kernel;
            }
        }
        let mut all: Vec<_> = counts.into_values().collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.function.cmp(&b.0.function)));
        all
    }
}
