//! Second-tier policies, one file each.

mod arc_io;
mod lru_hints;
mod lru_io;
mod min_rw;
mod mq_hints;
mod pro_io;
mod t2_arc;
mod t2_lru;
mod t2_mq;
mod t2_opt;
mod t2_rand;
mod tide_io;
mod tq;
mod tq_io;

pub use arc_io::ArcIo;
pub use lru_hints::LruHints;
pub use lru_io::LruIo;
pub use min_rw::MinRw;
pub use mq_hints::MqHints;
pub use pro_io::ProIo;
pub use t2_arc::T2Arc;
pub use t2_lru::T2Lru;
pub use t2_mq::T2Mq;
pub use t2_opt::{T2Opt, T2OptConfig, T2OptRule};
pub use t2_rand::T2Rand;
pub use tide_io::{Ablation, TideIo, TideIoConfig, Whole, WithoutAges, WithoutHints};
pub use tq::Tq;
pub use tq_io::TqIo;
