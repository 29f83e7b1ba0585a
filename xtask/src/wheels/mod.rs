//! The Python package as it is released: `cargo xtask wheels`. Opt-in, since the module is compiled
//! with optimisation, once for each machine.
//!
//! maturin makes the source archive and builds every wheel from it, so that an archive which lacks
//! a file is found here. Zig links, against the C library of an old system: a wheel loads on all
//! Linux systems since, and that of another machine needs no cross compiler. Then each wheel is
//! installed alone, and used: where the machine is another one, under emulation.

mod command;
mod options;
mod run;
mod try_out;

pub use run::main;
