//! Perf events of all threads of the process on all processors, and their ring buffers.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use perf_event::events::Software;
use perf_event::{Builder, Counter, SampleFlag, Sampler};

use crate::error::ProfileError;
use crate::profile::Options;

/// Bits of x86's frame, stack and instruction pointers, in the kernel's numbering. A sample holds
/// the registers in the order of these numbers.
const BP: u64 = 1 << 6;
const SP: u64 = 1 << 7;
const IP: u64 = 1 << 8;

/// Bytes of a processor's ring buffer, if the process may lock that much memory, and the minimum.
const RING_BYTES: usize = 8 << 20;
const RING_BYTES_LEAST: usize = 128 << 10;

/// `PERF_EVENT_IOC_SET_OUTPUT` of the kernel's interface.
const SET_OUTPUT: libc::c_ulong = 0x2405;

/// A ring buffer for each processor; the other events write to these.
pub(super) struct Rings {
    pub(super) rings: Vec<Sampler>,
    /// Other events, kept so that they are not closed.
    others: Vec<Counter>,
    /// `true` if time in the kernel is sampled.
    pub(super) has_kernel: bool,
}

/// Returns the ids of the process's threads.
fn threads() -> Result<Vec<i32>, ProfileError> {
    let path = "/proc/self/task";
    let entries = fs::read_dir(path).map_err(|error| ProfileError::io(path, error))?;
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(ids.collect())
}

/// Returns the numbers of the system's processors.
fn processors() -> Vec<usize> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let found = ranges(text.trim());
    if found.is_empty() {
        return (0..std::thread::available_parallelism().map_or(1, usize::from)).collect();
    }
    found
}

/// Parses ranges such as `0-3,8`.
fn ranges(text: &str) -> Vec<usize> {
    let one = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    };
    text.split(',').filter_map(one).flatten().collect()
}

fn builder(options: &Options, kernel: bool) -> Builder<'static> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    let flags = SampleFlag::TID | SampleFlag::REGS_USER | SampleFlag::STACK_USER;
    let period = 1_000_000_000 / u64::from(options.per_second.clamp(1, 100_000));
    builder
        .inherit(true)
        .enabled(false)
        .sample_period(period)
        .sample(flags)
        .sample_regs_user(BP | SP | IP)
        .sample_stack_user((options.stack_bytes.clamp(512, 65_528)) & !7)
        .exclude_kernel(!kernel)
        .exclude_hv(true);
    builder
}

impl Rings {
    /// Opens events for all threads except `own`, without enabling them.
    pub(super) fn open(options: &Options, own: i32) -> Result<Rings, ProfileError> {
        match Rings::open_with(options, own, true) {
            Err(ProfileError::Forbidden { .. }) => Rings::open_with(options, own, false),
            opened => opened,
        }
    }

    fn open_with(options: &Options, own: i32, has_kernel: bool) -> Result<Rings, ProfileError> {
        let (mut rings, mut others) = (Vec::new(), Vec::new());
        let threads = threads()?;
        for processor in processors() {
            let mut ring: Option<Sampler> = None;
            for thread in threads.iter().filter(|thread| **thread != own) {
                let open = || {
                    let mut builder = builder(options, has_kernel);
                    builder.observe_pid(*thread).one_cpu(processor).build()
                };
                let counter = match open() {
                    Ok(counter) => counter,
                    // The thread has ended, or the process may not use the processor.
                    Err(error) if is_gone(&error) => continue,
                    Err(error) => return Err(refused(error)),
                };
                match &ring {
                    None => ring = Some(mapped(counter, &open)?),
                    Some(ring) => {
                        write_to(&counter, ring)?;
                        others.push(counter);
                    }
                }
            }
            rings.extend(ring);
        }
        Ok(Rings { rings, others, has_kernel })
    }

    /// Enables all events.
    pub(super) fn enable(&mut self) -> Result<(), ProfileError> {
        let firsts = self.rings.iter_mut().map(|ring| ring.as_counter_mut());
        let enabled = firsts.chain(&mut self.others).try_for_each(Counter::enable);
        enabled.map_err(|error| ProfileError::io("enabling a perf event", error))
    }

    /// Disables all events.
    pub(super) fn disable(&mut self) -> Result<(), ProfileError> {
        let firsts = self.rings.iter_mut().map(|ring| ring.as_counter_mut());
        let disabled = firsts.chain(&mut self.others).try_for_each(Counter::disable);
        disabled.map_err(|error| ProfileError::io("disabling a perf event", error))
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENODEV))
}

fn refused(error: io::Error) -> ProfileError {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM | libc::ENOSYS) => {
            let path = Path::new("/proc/sys/kernel/perf_event_paranoid");
            let paranoid = fs::read_to_string(path).unwrap_or_else(|_| "unknown".to_string());
            ProfileError::Forbidden { error, paranoid: paranoid.trim().to_string() }
        }
        _ => ProfileError::io("opening a perf event", error),
    }
}

/// Maps the largest ring buffer that the process may lock.
fn mapped(
    first: Counter,
    again: &dyn Fn() -> io::Result<Counter>,
) -> Result<Sampler, ProfileError> {
    let (mut counter, mut bytes) = (first, RING_BYTES);
    loop {
        match counter.sampled(bytes) {
            Ok(ring) => return Ok(ring),
            Err(_) if bytes > RING_BYTES_LEAST => bytes /= 2,
            Err(error) => return Err(ProfileError::io("mapping a perf event's ring", error)),
        }
        // The failed attempt consumed the other counter.
        counter = again().map_err(refused)?;
    }
}

/// Lets an event write to another event's ring buffer.
fn write_to(counter: &Counter, ring: &Sampler) -> Result<(), ProfileError> {
    // SAFETY: both are open perf events, which is all that the call needs; it keeps neither.
    let done = unsafe { libc::ioctl(counter.as_raw_fd(), SET_OUTPUT, ring.as_raw_fd()) };
    if done == 0 {
        return Ok(());
    }
    Err(ProfileError::io("sharing a perf event's ring", io::Error::last_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(ranges("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(ranges("0"), [0]);
        assert!(ranges("").is_empty() && ranges("x").is_empty());
    }
}
