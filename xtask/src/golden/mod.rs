//! Published measurements beside ours: `cargo xtask golden`.

mod agreement;
mod page;
mod run;

pub use run::main;
