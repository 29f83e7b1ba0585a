//! First-tier policies, one file each.

mod arc;
mod cflru;
mod clock;
mod clock_sweep;
mod dgclock_v1;
mod dgclock_v2;
mod gclock_v1;
mod gclock_v2;
mod lru;
mod lru_wsr;
mod opt;
mod random;
mod sieve;
mod two_q;
mod two_q_simple;
mod zclock;

pub use arc::{Arc, ArcConfig};
pub use cflru::{Cflru, CflruConfig};
pub use clock::{Clock, ClockConfig};
pub use clock_sweep::{ClockSweep, ClockSweepConfig};
pub use dgclock_v1::{DgclockV1, DgclockV1Config};
pub use dgclock_v2::{DgclockV2, DgclockV2Config};
pub use gclock_v1::{GclockV1, GclockV1Config};
pub use gclock_v2::{GclockV2, GclockV2Config};
pub use lru::Lru;
pub use lru_wsr::LruWsr;
pub use opt::{Opt, OptConfig};
pub use random::Random;
pub use sieve::Sieve;
pub use two_q::{TwoQ, TwoQConfig};
pub use two_q_simple::{TwoQSimple, TwoQSimpleConfig};
pub use zclock::{Zclock, ZclockConfig};
