//! Reads under faults: stores whose device reads wrongly while they are used, recovered, backed up,
//! made shorter and checked.
//!
//! # The oracle
//! 1. **Every answer is right, or an error**: of `get`, of scans both ways and their rows up to an
//!    error, of ranges, prefixes, counts, checks, dumps, backups, recoveries and writes. The error
//!    is typed, and names a page (or a place of the log) that the device's ledger says was misread.
//! 2. **What a tree does not contain does not concern it**: a page that an error names belongs to
//!    the structure that was asked, or to the catalog. (A thread that begins a snapshot reads large
//!    values that active transactions have replaced, in any tree: errors about their pages are
//!    accepted.)
//! 3. **Nothing hangs**, and nothing panics: a story that takes two minutes is a failure, with its
//!    seed.
//! 4. **Nothing that was misread is written back**. When reads are right again the store equals the
//!    model, it closes, and the check of its file finds nothing wrong. After another opening it is
//!    still the same. Pages that errors have lost are counted.
//!
//! One thing excuses a wrong answer: an older version of a page of that structure, in which nothing
//! tells that it is not the newest (no fence moved, no stamp differs). A lost write that moved no
//! fence cannot be seen by a reader. Such answers are counted apart.
//!
//! The effect of a failed change is unknown: a key has its former value, or the new one.
//!
//! # The mechanism
//! `crates/device/src/simulated/read_faults.rs` stands before store and log. `plan.rs` draws a
//! story from its seed, `story.rs` tells it, `worker.rs` asks and `world.rs` judges. The faults
//! depend on the seed, the page, and the number of its earlier reads. A seed therefore gives the
//! same faults again as far as the threads read the same.
//!
//! # Many stories
//! `cargo xtask crash --reads --seeds N --from S --jobs J`. A binary that was built before
//! (`cargo test --release -p millpond --test reads --no-run` names it) runs the stories on as many
//! processors as there are, in one process or in several with ranges of seeds of their own:
//! `READS_SEEDS=10000 READS_FROM=0 READS_JOBS=16 target/release/deps/reads-… campaign --nocapture`.
//! With `READS_KEEP=folder` store and log of a story that failed are written there.

#![allow(clippy::print_stdout)]

mod campaign;
mod model;
mod plan;
mod stories;
mod story;
mod superblock;
#[path = "../common/telling.rs"]
mod telling;
mod worker;
mod world;

use campaign::Seeds;
use millpond_base::rounds::rounds;
use telling::jobs;

#[test]
fn campaign_of_reads_under_faults() {
    let (_, failures) =
        campaign::run(Seeds::asked_for(Seeds { from: 0, count: rounds(25, 60), jobs: jobs() }));
    assert!(failures.is_empty(), "{failures:?}");
}
