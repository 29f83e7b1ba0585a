//! Two worlds: compares a policy's behaviour in the live pool and in the simulator.
//!
//! - [`spy`]: a policy that records all calls of its host, and all results.
//! - [`diary`]: the recorded calls.
//! - [`distortions`]: the effect on misses of each thing that only a live pool does.
//! - [`lawful`]: a check that the pool keeps the rules of the policy contract.
//! - [`fed`]: the simulator's host, fed with a live pool's refusals.
//! - [`worlds`]: a live run and the simulator's run over the same references, compared.

pub mod diary;
pub mod distortions;
pub mod fed;
pub mod lawful;
pub mod spy;
pub mod worlds;
