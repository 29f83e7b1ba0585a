//! A counter with a limit beside each frame, in which `s3-fifo` and `tide` count hits.

use millpond_base::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::contract::{Access, Hit, HitHook, Zeroed};

/// The hot half: a counter with a limit.
pub struct Counted;

impl HitHook for Counted {
    type Meta = AtomicU8;
    /// Limit of the counter.
    type Params = u8;
    const HIT: Hit = Hit::Meta;
    const READS_PAGE: bool = false;

    #[inline(always)]
    fn is_noop(count: &AtomicU8, max: &u8, _: &Access) -> bool {
        count.load(Relaxed) >= *max
    }

    #[inline(always)]
    fn on_hit(count: &AtomicU8, max: &u8, _: &Access) {
        // Two concurrent hits may count as one; at the limit, the line stays shared between
        // cores.
        let now = count.load(Relaxed);
        if now < *max {
            count.store(now + 1, Relaxed);
        }
    }

    #[inline(always)]
    fn reset(count: &AtomicU8, _: &u8, _: &Access) {
        count.store(0, Relaxed);
    }

    fn zeroed(_: &Self::Params) -> Option<Zeroed<Self::Meta>> {
        Zeroed::fresh()
    }
}

#[cfg(test)]
mod tests {
    use millpond_base::{Mark, PageId};

    use super::*;

    #[test]
    fn hits_are_counted_up_to_the_limit_and_a_load_begins_again() {
        let access = Access { page: PageId(1), mark: Mark::READ, now: 0, next: 0, next_read: 0 };
        let count = AtomicU8::new(0);
        for expected in [1, 2, 2] {
            let is_at_limit = count.load(Relaxed) == 2;
            assert_eq!(Counted::is_noop(&count, &2, &access), is_at_limit);
            Counted::on_hit(&count, &2, &access);
            assert_eq!(count.load(Relaxed), expected);
        }
        Counted::reset(&count, &2, &access);
        assert_eq!(count.load(Relaxed), 0);
    }
}
