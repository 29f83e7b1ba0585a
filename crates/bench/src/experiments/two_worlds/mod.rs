//! Two worlds: does a policy do in the live pool what it does in the simulator?
//!
//! - [`spy`]: a policy that records all calls of its host, and all results.
//! - [`diary`]: what was written down.
//! - [`distortions`]: what each thing that only a live pool does changes about misses.
//! - [`lawful`]: whether the pool keeps the rules of the policy contract.
//! - [`fed`]: the simulator's host, fed with a live pool's refusals.
//! - [`worlds`]: a live run, the simulator's run over the same references, and whether they differ.

pub mod diary;
pub mod distortions;
pub mod fed;
pub mod lawful;
pub mod spy;
pub mod worlds;
