//! The Python package as released: `cargo xtask wheels`. Opt-in, since it compiles the module with
//! optimisation, once for each machine.
//!
//! maturin makes the source archive and builds every wheel from it, so an archive that lacks a
//! file is found here. Zig links against the C library of an old system. A wheel therefore loads
//! on all Linux systems since then, and a wheel of another machine needs no cross compiler. Then
//! each wheel is installed alone and used, under emulation if it is for another machine.

mod command;
mod options;
mod run;
mod try_out;

pub use run::main;
