//! Sleeping for microseconds.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// The end of a pause that is waited for awake: a sleeping thread is back by so much too late, now
/// and then.
const SPIN: Duration = Duration::from_micros(15);

/// Returns at `deadline` or a little later. Sleeps for most of the time and spins for the rest, so
/// that pauses of 50 µs are met within microseconds and a core is not kept busy by long ones.
pub(super) fn until(deadline: Instant) {
    thread_local! {
        // The kernel bundles wake-ups within 50 µs, unless the thread asks it not to.
        static IS_PUNCTUAL: bool =
            rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).is_ok();
    }
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        if left > SPIN && IS_PUNCTUAL.with(|&punctual| punctual || left > 4 * SPIN) {
            std::thread::sleep(left - SPIN);
        } else {
            std::hint::spin_loop();
        }
    }
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
}
