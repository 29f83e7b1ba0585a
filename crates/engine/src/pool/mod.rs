//! The buffer pool: frames, latches, translation, replacement.

pub mod counters;
pub mod error;
pub mod frame;
pub mod guard;
pub mod histogram;
pub mod huge;
pub mod jump;
pub mod kind;
pub mod latch;
pub mod pages;
pub mod swip;
pub mod thread_slot;
pub mod twin;

pub use error::PoolError;
pub use frame::{FRAME_HEADER, Frame, State};
pub use guard::{Read, Write};
pub use jump::{Cold, Jump, Load, Try};
pub use kind::{ANCHOR_SWIP, Kind, NoSwips};
pub use latch::{Latch, Latched, Latching, Optimistic, Unlatched};
pub use pages::{Anchor, NewPage, Op, Pages};
pub use swip::Swip;
pub use twin::Twin;
