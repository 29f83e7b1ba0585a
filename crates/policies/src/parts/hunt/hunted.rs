//! The interface of a policy to a hunt.

use crate::contract::{HitHook, RefusalReason};

/// A policy whose pages have values beside their frames, of which it can tell many at once.
pub trait Hunted {
    /// The hot half, with the metadata beside each frame.
    type Hook: HitHook;
    /// State that [`Hunted::stay`] needs to undo [`Hunted::vanish`].
    type Kept: Copy;

    /// The values at `now` of the pages with the metadata `of(0)`, `of(1)`, …: as many as `values`
    /// has room for. What a frame without a page is worth does not matter.
    fn values<'a>(
        &self,
        now: u32,
        values: &mut [f32],
        of: impl Fn(usize) -> &'a <Self::Hook as HitHook>::Meta,
    );

    /// Returns `true` if the frame may be offered.
    fn is_live(meta: &<Self::Hook as HitHook>::Meta) -> bool;

    /// The frame's page is offered now: the frame is not live until the page stays, or another page
    /// is loaded.
    fn vanish(meta: &<Self::Hook as HitHook>::Meta) -> Self::Kept;

    /// The page was refused for that reason, or another one went for it.
    fn stay(meta: &<Self::Hook as HitHook>::Meta, kept: Self::Kept, why: Option<RefusalReason>);
}

/// The parameters of an eviction's hunt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Frames looked at to find the least valued one.
    pub sample: u32,
    /// Frames then compared with its value, where more than one frame is wanted.
    pub candidates: u32,
    /// The time that values are of.
    pub now: u32,
    /// The seed of the draws.
    pub bits: u64,
}
