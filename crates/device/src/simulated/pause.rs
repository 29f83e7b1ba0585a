//! Sleeping for microseconds.
//!
//! A sleeping thread wakes up late: by 5 µs on a quiet machine of its own, by 40 µs in a virtual
//! one, where a sleep also costs as much processor time. So each thread learns its usual delay,
//! asks to be woken earlier by that time, and spins for the rest. Pauses are met within
//! microseconds, and a thread spins only for the time by which this machine's sleep would have been
//! late. At most half of the processors spin. With many active threads, more of them would only
//! delay the others, and one request's delay is hidden behind the next.

use std::cell::Cell;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::file::system::wake_punctually;

/// The longest end of a pause that is spent spinning, in nanoseconds.
const AWAKE_NS_MAX: u64 = 60_000;

thread_local! {
    /// Usual delay of a wake-up of this thread, in nanoseconds; four in five are shorter. The first
    /// use also asks the system for punctual wake-ups.
    static LATE_NS: Cell<u64> =
        Cell::new(if wake_punctually() { 10_000 } else { AWAKE_NS_MAX });
}

/// Number of threads that spin at this moment.
static AWAKE: AtomicUsize = AtomicUsize::new(0);

/// Maximum number of threads that may spin at once.
static AWAKE_MAX: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, |n| n.get() / 2).max(1));

/// Returns at `deadline` or a little later.
pub(super) fn until(deadline: Instant) {
    let left = || deadline.saturating_duration_since(Instant::now());
    let late = LATE_NS.get();
    let nap = left().saturating_sub(Duration::from_nanos(late));
    if !nap.is_zero() {
        let wake = Instant::now() + nap;
        std::thread::sleep(nap);
        LATE_NS.set(learn(late, wake.elapsed().as_nanos() as u64));
    }
    if left().is_zero() {
        return;
    }
    if AWAKE.fetch_add(1, Ordering::Relaxed) < *AWAKE_MAX {
        while !left().is_zero() {
            std::hint::spin_loop();
        }
    }
    AWAKE.fetch_sub(1, Ordering::Relaxed);
    // The rest of the time has passed, since the thread spun.
    while !left().is_zero() {
        std::thread::sleep(left());
    }
}

/// Returns the new estimate after a wake-up that was `seen` late. It rises faster than it falls,
/// and so settles where four wake-ups in five are earlier.
fn learn(estimate: u64, seen: u64) -> u64 {
    let next = if seen > estimate {
        estimate + (seen - estimate) / 8
    } else {
        estimate - (estimate - seen) / 32
    };
    next.min(AWAKE_NS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_never_too_short() {
        for us in [0, 1, 30, 70, 500] {
            let begin = Instant::now();
            until(begin + Duration::from_micros(us));
            assert!(begin.elapsed() >= Duration::from_micros(us));
        }
    }

    #[test]
    fn the_estimate_follows_what_is_seen_and_stays_bounded() {
        let settle = |from, seen: &dyn Fn(u64) -> u64| {
            (0..2000).fold(from, |estimate, round| learn(estimate, seen(round)))
        };
        assert!((39_000..=40_000).contains(&settle(0, &|_| 40_000)));
        assert!((5000..6000).contains(&settle(60_000, &|_| 5000)));
        assert_eq!(settle(0, &|_| 10_000_000), AWAKE_NS_MAX);
        let mixed = settle(0, &|round| if round % 5 == 0 { 50_000 } else { 10_000 });
        assert!((20_000..45_000).contains(&mixed), "{mixed}");
    }
}
