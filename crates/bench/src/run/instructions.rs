//! Instructions of threads, by the processor's own counter.
//!
//! Many virtual machines have no such counter, and some systems do not let a process read it.
//! Nothing is counted then, and results show that. Kernel work for a thread is left out.

#[cfg(target_os = "linux")]
use perf_event::{Builder, Counter, events::Event, events::Hardware};
#[cfg(target_os = "linux")]
use std::io;

/// Counts the instructions of this thread, and of the threads that it starts from now on.
pub(crate) struct Instructions {
    #[cfg(target_os = "linux")]
    counter: Option<Counter>,
}

impl Instructions {
    /// Starts counting, if that is possible.
    pub fn begin() -> Instructions {
        Instructions {
            #[cfg(target_os = "linux")]
            counter: count(Hardware::INSTRUCTIONS).ok(),
        }
    }

    /// Returns the number of instructions so far; `None` if nothing is counted.
    pub fn so_far(&mut self) -> Option<u64> {
        #[cfg(target_os = "linux")]
        return read(self.counter.as_mut()?).ok().flatten();
        #[cfg(not(target_os = "linux"))]
        None
    }
}

/// Opens a counter of `event` that threads started by this one inherit.
#[cfg(target_os = "linux")]
fn count(event: impl Event) -> io::Result<Counter> {
    Builder::new(event).inherit(true).enabled(true).build()
}

/// Returns the count, scaled up for the time in which others used the processor's counter; `None`
/// if this one never had it.
#[cfg(target_os = "linux")]
fn read(counter: &mut Counter) -> io::Result<Option<u64>> {
    let data = counter.read_full()?;
    let (enabled, running) = (data.time_enabled(), data.time_running());
    Ok(match enabled.zip(running) {
        Some((_, running)) if running.is_zero() => None,
        Some((enabled, running)) if running < enabled => {
            let share = running.as_secs_f64() / enabled.as_secs_f64();
            Some((data.count() as f64 / share) as u64)
        }
        _ => Some(data.count()),
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::hint::black_box;
    use std::thread;

    use perf_event::events::Software;

    use super::*;

    fn work() -> u64 {
        (0..20_000_000u64).fold(0, |sum, at| black_box(sum ^ at))
    }

    /// Machines without counters can test only this much of the mechanism.
    #[test]
    fn threads_that_are_started_count_beside_their_starter() {
        let Ok(mut counter) = count(Software::TASK_CLOCK) else { return };
        let before = read(&mut counter).unwrap().unwrap_or(0);
        thread::spawn(work).join().unwrap();
        let after = read(&mut counter).unwrap().unwrap();
        assert!(after > before + 1_000_000, "a millisecond at least: {before}, {after}");
    }

    #[test]
    fn instructions_are_counted_or_they_are_not() {
        let mut instructions = Instructions::begin();
        let Some(before) = instructions.so_far() else { return };
        thread::spawn(work).join().unwrap();
        let after = instructions.so_far().unwrap();
        assert!(after - before > 20_000_000, "one for each step at least: {before}, {after}");
    }
}
