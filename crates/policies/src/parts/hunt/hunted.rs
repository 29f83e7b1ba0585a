//! Interface of a policy to a hunt.

use crate::contract::{HitHook, RefusalReason};

/// A policy whose pages have values, computed many at a time from metadata beside the frames.
pub trait Hunted {
    /// The hot half, with the metadata beside each frame.
    type Hook: HitHook;
    /// State that [`Hunted::stay`] needs to undo [`Hunted::vanish`].
    type Kept: Copy;

    /// Computes the values at `now` of the pages with the metadata `of(0)`, `of(1)`, …, filling
    /// `values`. The value of a frame without a page does not matter.
    fn values<'a>(
        &self,
        now: u32,
        values: &mut [f32],
        of: impl Fn(usize) -> &'a <Self::Hook as HitHook>::Meta,
    );

    /// Returns `true` if the frame may be offered.
    fn is_live(meta: &<Self::Hook as HitHook>::Meta) -> bool;

    /// Hides a frame whose page is offered. The frame is not live until the page stays, or another
    /// page is loaded.
    fn vanish(meta: &<Self::Hook as HitHook>::Meta) -> Self::Kept;

    /// Restores a frame whose page was refused for reason `why`, or whose page stays because
    /// another was evicted instead.
    fn stay(meta: &<Self::Hook as HitHook>::Meta, kept: Self::Kept, why: Option<RefusalReason>);
}

/// The parameters of an eviction's hunt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Frames examined to find the least valued one.
    pub sample: u32,
    /// Frames then compared with that value, if more than one frame is wanted.
    pub candidates: u32,
    /// Time for which values are computed.
    pub now: u32,
    /// The seed of the draws.
    pub bits: u64,
}
