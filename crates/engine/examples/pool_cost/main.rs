//! What the buffer pool costs while everything is in memory: lookups in a tree on the pool against
//! the same tree on plain memory, in interleaved rounds.
//!
//! ```sh
//! cargo run --release -p millpond --example pool_cost -- rows=1000000 threads=1,2 rounds=11
//! cargo run --release -p millpond --example pool_cost -- layout
//! cargo run --release -p millpond --example pool_cost -- beyond threads=1,2 seconds=5
//! ```
//! The second measures where frame headers should lie, the third lookups in five times as much
//! data as the pool holds, on a file.
#![allow(clippy::print_stdout, reason = "an example prints")]

mod beyond;
mod in_memory;
mod layout;
mod setup;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let settings = setup::Settings::of(&arguments);
    match arguments.first().map(String::as_str) {
        Some("layout") => layout::run(&settings),
        Some("beyond") => beyond::run(&settings),
        _ => in_memory::run(&settings),
    }
}
