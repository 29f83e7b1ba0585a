//! Second-tier policies, one file each.

#[cfg(feature = "all")]
mod arc_io;
#[cfg(feature = "all")]
mod lru_hints;
#[cfg(feature = "all")]
mod lru_io;
#[cfg(feature = "all")]
mod min_rw;
#[cfg(feature = "all")]
mod mq_hints;
#[cfg(feature = "all")]
mod pro_io;
#[cfg(feature = "all")]
mod t2_arc;
mod t2_lru;
#[cfg(feature = "all")]
mod t2_mq;
#[cfg(feature = "all")]
mod t2_opt;
#[cfg(feature = "all")]
mod t2_rand;
mod tide_io;
mod tq;
#[cfg(feature = "all")]
mod tq_io;

#[cfg(feature = "all")]
pub use arc_io::ArcIo;
#[cfg(feature = "all")]
pub use lru_hints::LruHints;
#[cfg(feature = "all")]
pub use lru_io::LruIo;
#[cfg(feature = "all")]
pub use min_rw::MinRw;
#[cfg(feature = "all")]
pub use mq_hints::MqHints;
#[cfg(feature = "all")]
pub use pro_io::ProIo;
#[cfg(feature = "all")]
pub use t2_arc::T2Arc;
pub use t2_lru::T2Lru;
#[cfg(feature = "all")]
pub use t2_mq::T2Mq;
#[cfg(feature = "all")]
pub use t2_opt::{T2Opt, T2OptConfig, T2OptRule};
#[cfg(feature = "all")]
pub use t2_rand::T2Rand;
pub use tide_io::{Ablation, TideIo, TideIoConfig, Whole, WithoutAges, WithoutHints};
pub use tq::Tq;
#[cfg(feature = "all")]
pub use tq_io::TqIo;
