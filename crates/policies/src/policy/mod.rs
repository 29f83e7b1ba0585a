//! First-tier policies, one file each.

mod arc;
mod clock;
mod lru;
mod random;

pub use arc::{Arc, ArcConfig};
pub use clock::{Clock, ClockConfig};
pub use lru::Lru;
pub use random::Random;
