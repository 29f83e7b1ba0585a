//! The clock of CLOCK-Pro: hot pages, cold pages and ghosts on one clock, with three hands.
//!
//! All nodes enter at the head. Each hand points at the oldest node of its kind: the hot hand at a
//! hot frame, the cold hand at a resident cold frame, the test hand at a node in its test period
//! (a cold frame, or any ghost). A node that the hot hand passes is no longer in test: neither it
//! nor an older hot page was used again. Hands only move towards the head and pass each node once,
//! so entering nodes pay for their walks.
//!
//! A node is a frame, or a ghost that replaced the frame of its page.
//!
//! Invariants: (1) the counts are those of the nodes' kinds; (2) no node older than a hand is of
//! the hand's kind, once [`ProClock::settle`] was called; (3) there are at most `ghosts_max`
//! ghosts, and the map finds each; (4) the target is within its bounds.

mod clock;
mod hands;

pub use clock::{ColdTarget, ProClock, ProClockOptions};
