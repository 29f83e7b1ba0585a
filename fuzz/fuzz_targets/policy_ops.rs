//! Any sequence of operations on any policy under any setting keeps the contract.
//!
//! The first byte chooses the policy, the next three its setting, the pool and the host's habits;
//! each four after them are one operation (`crates/policies/tests/model/bytes.rs`). The ordinary
//! test `random_operation_bytes_find_no_fault` runs the same body over bytes drawn by seed.
#![no_main]

#[path = "../../crates/policies/tests/model/mod.rs"]
mod model;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

use model::{Kind, case_of_bytes, decode, drive, kinds};

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(kinds);

fuzz_target!(|bytes: &[u8]| {
    let Some((case, records)) = case_of_bytes(&KINDS, bytes) else { return };
    let ops = decode(records, case.pages());
    if let Err(why) = drive(&case, &ops) {
        let ops: Vec<String> = ops.iter().map(|op| format!("  {op:?}")).collect();
        panic!(
            "{} with {} frames, seed {}: {why}\n{}",
            case.spec,
            case.frames,
            case.seed,
            ops.join("\n")
        );
    }
});
