//! The clock of CLOCK-Pro: hot pages, cold pages and ghosts on one clock, with three hands.
//!
//! Everything enters at the head. Each hand points at the oldest node of its kind: the hot hand at
//! a hot frame, the cold hand at a resident cold frame, the test hand at a node in its test period
//! (a cold frame, or a ghost, which always is). A node that the hot hand passes is no longer in
//! test: it was not used again while a hot page older than it was neither. Hands only move towards
//! the head and pass each node once, so that their walks are paid for by what entered.
//!
//! A node is a frame, or a ghost that took the place of the frame its page left.
//!
//! Invariants: (1) the counts are those of the nodes' kinds; (2) no node older than a hand is of
//! the hand's kind, once [`ProClock::settle`] was called; (3) there are at most `ghosts_max`
//! ghosts, and the map finds each; (4) the target is within its bounds.

mod clock;
mod hands;

pub use clock::{ColdTarget, ProClock, ProClockOptions};
