//! First-tier policies, one file each.

#[cfg(feature = "all")]
mod age_scan;
#[cfg(feature = "all")]
mod arc;
#[cfg(feature = "all")]
mod car;
#[cfg(feature = "all")]
mod cart;
#[cfg(feature = "all")]
mod cflru;
mod clock;
#[cfg(feature = "all")]
mod clock_pro;
#[cfg(feature = "all")]
mod clock_pro_plus;
#[cfg(feature = "all")]
mod clock_sweep;
#[cfg(feature = "all")]
mod dgclock_v1;
#[cfg(feature = "all")]
mod dgclock_v2;
#[cfg(feature = "all")]
mod dlirs;
#[cfg(feature = "all")]
mod fbr;
#[cfg(feature = "all")]
mod fifo;
#[cfg(feature = "all")]
mod filo;
#[cfg(feature = "all")]
mod gclock_v1;
#[cfg(feature = "all")]
mod gclock_v2;
#[cfg(feature = "all")]
mod hyperbolic;
#[cfg(feature = "all")]
mod lean_evict;
#[cfg(feature = "all")]
mod lfu;
#[cfg(feature = "all")]
mod lfu_aging;
#[cfg(feature = "all")]
mod lfuda;
#[cfg(feature = "all")]
mod lirs;
#[cfg(feature = "all")]
mod r#loop;
#[cfg(feature = "all")]
mod lrd_v1;
#[cfg(feature = "all")]
mod lrd_v2;
#[cfg(feature = "all")]
mod lrfu;
mod lru;
#[cfg(feature = "all")]
mod lru_2_history;
#[cfg(feature = "all")]
mod lru_k;
#[cfg(feature = "all")]
mod lru_partitioned;
#[cfg(feature = "all")]
mod lru_wsr;
#[cfg(feature = "all")]
mod midpoint_lru;
#[cfg(feature = "all")]
mod mq;
#[cfg(feature = "all")]
mod mru;
#[cfg(feature = "all")]
mod opt;
mod random;
#[cfg(feature = "all")]
mod s3_fifo;
#[cfg(feature = "all")]
mod sieve;
#[cfg(feature = "all")]
mod slru;
#[cfg(feature = "all")]
mod sorting_lru;
#[cfg(feature = "all")]
mod sorting_lru_k;
mod tide;
#[cfg(feature = "all")]
mod two_q;
#[cfg(feature = "all")]
mod two_q_simple;
#[cfg(feature = "all")]
mod w_tinylfu;
mod watt;
#[cfg(feature = "all")]
mod zclock;

#[cfg(feature = "all")]
pub use age_scan::{AgeScan, AgeScanConfig};
#[cfg(feature = "all")]
pub use arc::{Arc, ArcConfig};
#[cfg(feature = "all")]
pub use car::{Car, CarConfig};
#[cfg(feature = "all")]
pub use cart::{Cart, CartConfig};
#[cfg(feature = "all")]
pub use cflru::{Cflru, CflruConfig};
pub use clock::{Clock, ClockConfig};
#[cfg(feature = "all")]
pub use clock_pro::{ClockPro, ClockProConfig};
#[cfg(feature = "all")]
pub use clock_pro_plus::{ClockProPlus, ClockProPlusConfig};
#[cfg(feature = "all")]
pub use clock_sweep::{ClockSweep, ClockSweepConfig};
#[cfg(feature = "all")]
pub use dgclock_v1::DgclockV1;
#[cfg(feature = "all")]
pub use dgclock_v2::DgclockV2;
#[cfg(feature = "all")]
pub use dlirs::{Dlirs, DlirsConfig};
#[cfg(feature = "all")]
pub use fbr::{Fbr, FbrConfig};
#[cfg(feature = "all")]
pub use fifo::{Fifo, FifoConfig};
#[cfg(feature = "all")]
pub use filo::{Filo, FiloConfig};
#[cfg(feature = "all")]
pub use gclock_v1::{GclockV1, GclockV1Config};
#[cfg(feature = "all")]
pub use gclock_v2::{GclockV2, GclockV2Config};
#[cfg(feature = "all")]
pub use hyperbolic::{Hyperbolic, HyperbolicConfig};
#[cfg(feature = "all")]
pub use lean_evict::{LeanEvict, LeanEvictConfig};
#[cfg(feature = "all")]
pub use lfu::{Lfu, LfuConfig};
#[cfg(feature = "all")]
pub use lfu_aging::{LfuAging, LfuAgingConfig};
#[cfg(feature = "all")]
pub use lfuda::{Lfuda, LfudaConfig};
#[cfg(feature = "all")]
pub use lirs::{Lirs, LirsConfig};
#[cfg(feature = "all")]
pub use r#loop::{Loop, LoopConfig};
#[cfg(feature = "all")]
pub use lrd_v1::{LrdV1, LrdV1Config};
#[cfg(feature = "all")]
pub use lrd_v2::{LrdV2, LrdV2Config};
#[cfg(feature = "all")]
pub use lrfu::{Lrfu, LrfuConfig};
pub use lru::Lru;
#[cfg(feature = "all")]
pub use lru_2_history::{Lru2History, Lru2HistoryConfig};
#[cfg(feature = "all")]
pub use lru_k::{LruK, LruKConfig};
#[cfg(feature = "all")]
pub use lru_partitioned::{LruPartitioned, LruPartitionedConfig};
#[cfg(feature = "all")]
pub use lru_wsr::LruWsr;
#[cfg(feature = "all")]
pub use midpoint_lru::{MidpointLru, MidpointLruConfig};
#[cfg(feature = "all")]
pub use mq::{Mq, MqConfig};
#[cfg(feature = "all")]
pub use mru::{Mru, MruConfig};
#[cfg(feature = "all")]
pub use opt::{Opt, OptConfig};
pub use random::Random;
#[cfg(feature = "all")]
pub use s3_fifo::{S3Fifo, S3FifoConfig};
#[cfg(feature = "all")]
pub use sieve::Sieve;
#[cfg(feature = "all")]
pub use slru::{Slru, SlruConfig};
#[cfg(feature = "all")]
pub use sorting_lru::{SortingLru, SortingLruConfig};
#[cfg(feature = "all")]
pub use sorting_lru_k::{SortingLruK, SortingLruKConfig};
pub use tide::{Tide, TideConfig};
#[cfg(feature = "all")]
pub use two_q::{TwoQ, TwoQConfig};
#[cfg(feature = "all")]
pub use two_q_simple::{TwoQSimple, TwoQSimpleConfig};
#[cfg(feature = "all")]
pub use w_tinylfu::{WTinyLfu, WTinyLfuConfig};
pub use watt::{ByEvictions, ByReferences, Epochs, Watt, WattClock, WattConfig};
#[cfg(feature = "all")]
pub use zclock::{Zclock, ZclockConfig};
