//! First-tier policies, one file each.

mod clock;
mod lru;
mod random;

pub use clock::{Clock, ClockConfig};
pub use lru::Lru;
pub use random::Random;
