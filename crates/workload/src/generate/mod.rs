//! Generators of synthetic traces: one file per family, all seeded and exactly repeatable.

mod btree;
mod dynzipf;
mod exponential;
mod info;
mod make;
mod params;
mod patterns;
mod random;
mod stream;
mod tpce;
mod uniform;
mod zipf;
mod zipf_ro;

pub use info::{GENERATORS, GeneratorInfo, ParamInfo, ParamKind};
pub use make::{generate, parse_params};
pub use random::Random;
pub(crate) use zipf::Formula;
pub use zipf::{Zipf, ZipfMethod};
