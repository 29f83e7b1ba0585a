//! Slow, obvious re-statements of the papers' policies: plain vectors, linear searches, one page
//! at a time. They share nothing with the policies but the words of the papers.

mod adaptive;
mod classics;
mod frequency;
mod lirs;
mod queues;
mod twin;

pub use adaptive::{ArcTwin, CarTwin, CartTwin};
pub use classics::{ClockTwin, LruKTwin, LruTwin, TwoQTwin};
pub use frequency::{Combine, FbrTwin, LrfuTwin, WattTwin};
pub use lirs::LirsTwin;
pub use queues::MqTwin;
pub use twin::Twin;
