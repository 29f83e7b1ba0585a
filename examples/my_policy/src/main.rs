//! A replacement policy of one's own, run by Millpond's own command line.
//!
//! ```text
//! cargo run --release -- sim ../../traces/arc_OLTP.txt.gz --policy lru,second-touch --size 1%,5%
//! cargo run --release -- policies second-touch
//! ```

mod second_touch;

use std::process::ExitCode;

use millpond_lab::registry::Registry;

fn main() -> ExitCode {
    match Registry::builtin().with::<second_touch::SecondTouch>() {
        Ok(registry) => millpond_cli::main_with(registry),
        Err(error) => {
            eprintln!("my_policy: {error}");
            ExitCode::FAILURE
        }
    }
}
