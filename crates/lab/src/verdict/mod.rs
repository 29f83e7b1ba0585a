//! From intervals to verdicts: a paper's statements on some values, beside ours.
//!
//! A claim is *yes* if each of its values is certainly within its bounds, *no* if one of them
//! certainly is not, and *open* otherwise. *Certainly* is one-sided at 2.5 %, which is the whole 95
//! % interval on one side. Of several values, the one that contradicts a claim must do so at 2.5 %
//! over their number (Bonferroni), because any of them could have. Values that must all be within
//! bounds need no such correction (an intersection-union test). Bounds on both sides, such as
//! *within 5 %*, are two one-sided tests, so that equivalence is shown and not assumed. A value of
//! one run decides nothing.
//!
//! Composed statements have p-values by the same rules ([`Evidence`]): that *all* statements hold,
//! that *one* does, or that at least some number of them do. A rank among policies is such a
//! statement: at least N of the others are not ahead.
//!
//! The claims of one figure are judged together ([`corrected`]): Holm's correction keeps the
//! probability that any of these verdicts is wrong below 5 %. Observations such as "this run
//! stalled" carry no p-value, and are not among these claims.

mod claims;
mod evidence;
mod parts;

pub use claims::{
    above, at_least, at_most, below, between, claim, claim_of, corrected, listed, shown,
};
pub use evidence::{Bounds, Evidence};
pub use parts::{Named, claim_named, is_more, most};
