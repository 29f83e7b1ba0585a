//! A mark that a hit leaves on its frame, and nothing else: the hot half of many clocks.

use millpond_base::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::contract::{Access, Hit, Touch};

/// The hot half: a hit sets a bit, a load clears it.
pub struct MarkTouch;

impl Touch for MarkTouch {
    type Meta = AtomicBool;
    type Params = ();
    const HIT: Hit = Hit::Meta;

    #[inline(always)]
    fn touch(mark: &AtomicBool, _: &(), _: &Access) {
        // Looking first keeps a hot page's line shared between cores.
        if !mark.load(Relaxed) {
            mark.store(true, Relaxed);
        }
    }

    #[inline(always)]
    fn reset(mark: &AtomicBool, _: &(), _: &Access) {
        mark.store(false, Relaxed);
    }
}

/// Whether the mark is set; it is clear afterwards.
#[inline(always)]
pub fn take_mark(mark: &AtomicBool) -> bool {
    let set = mark.load(Relaxed);
    if set {
        mark.store(false, Relaxed);
    }
    set
}
