//! The laboratory: traces, simulations, curves, advice, comparisons.

mod judge;
mod own_policy;
mod recording;
mod sweep;
mod table;
mod trace;
mod units;

pub(crate) use judge::{advise, compare};
pub(crate) use own_policy::simulate_own;
pub(crate) use recording::Recording;
pub(crate) use sweep::{curve, policies, simulate};
pub(crate) use trace::{Trace, generate, read_trace};
pub(crate) use units::{Sweep, read_results, run_unit};
