//! From intervals to verdicts: a paper's statements on some values, beside ours.
//!
//! A claim is *yes* where each of its values is certainly within its bounds, *no* where one of them
//! certainly is not, *open* otherwise. *Certainly* is one-sided at 2.5 %, which is the whole 95 %
//! interval on one side; of several values the one that contradicts a claim must do so at 2.5 %
//! over their number (Bonferroni), for any of them could have. Values that are all to be within
//! bounds need no such correction (an intersection-union test); bounds on both sides, such as
//! *within 5 %*, are two one-sided tests, so that equivalence is shown and not assumed. A value of
//! one run decides nothing.
//!
//! Statements that are put together of others have p-values by the same rules ([`Evidence`]): that
//! *all* hold, that *one* does, that at least some number of them do. A place among policies is
//! such a statement: of the others N at least are not ahead.
//!
//! The claims of one figure are judged together ([`corrected`]): Holm's correction keeps the
//! probability that any of these verdicts is wrong below 5 %. Observations that are no estimates,
//! such as "this run stalled", have no p-value, and are not among them.

mod claims;
mod evidence;
mod parts;

pub use claims::{above, at_least, at_most, below, claim, claim_of, corrected, listed, shown};
pub use evidence::{Bounds, Evidence};
pub use parts::{Named, claim_named, is_more, most};
