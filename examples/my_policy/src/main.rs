//! A replacement policy of one's own, run by Millpond's own command line.
//!
//! ```text
//! cargo run --release -- sim ../../traces/arc_OLTP.txt.gz --policy lru,second-touch --size 1%,5%
//! cargo run --release -- policies second-touch
//! cargo run --release -- bench tpcc --policy second-touch --pool 10%
//! ```

mod second_touch;

use std::process::ExitCode;

use millpond_cli::Policies;

fn main() -> ExitCode {
    match Policies::builtin().with::<second_touch::SecondTouch>() {
        Ok(policies) => millpond_cli::main_with(policies),
        Err(error) => {
            eprintln!("my_policy: {error}");
            ExitCode::FAILURE
        }
    }
}
