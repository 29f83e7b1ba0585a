//! The twin in a mapped file under a memory limit. One test, and so one process: the limit is the
//! whole process's.

use std::fs;

use millpond_bench::error::BenchError;
use millpond_bench::instance::prepare;
use millpond_bench::instance::setup::{Engine, Paged, Setup};
use millpond_bench::run::client::Workload;
use millpond_bench::run::runner::{Length, RunSpec, Unwatched};
use millpond_workload::ycsb;

const LIMIT: u64 = 32 << 20;

/// Bytes of mapped files that this process has in memory, its program's own included.
fn resident_of_files() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("RssFile:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Without a limit that can be set, the test sees only the error.
#[test]
fn under_a_limit_the_system_pages_the_twin_out_and_no_row_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let paged = Paged { folder: folder.path().to_path_buf(), limit: LIMIT };
    let setup = Setup { engine: Engine::Twin, paged: Some(paged), ..Setup::new() };
    // Row by row and in no order, each would wait for the drive.
    let load_order = ycsb::LoadOrder::Ascending;
    let config = ycsb::Config { threads: 2, load_order, ..ycsb::Config::leanstore(450_000) };
    let before = resident_of_files();
    let mut instance = match prepare(&setup, &Workload::Ycsb(config), &mut Unwatched) {
        Err(BenchError::Limit(error)) => {
            assert!(!error.to_string().is_empty());
            return;
        }
        instance => instance.unwrap(),
    };
    let data = instance.data_pages().unwrap() * u64::from(instance.info().page_size);
    assert!(data > LIMIT / 2 * 3, "{data} bytes");
    let operations = Length::Operations(200);
    let spec = RunSpec { warm_up: Length::NONE, ..RunSpec::of(operations) };
    // A lookup that does not find its row is an error.
    let outcome = instance.run(&spec, &mut |_| Ok(()), &mut Unwatched).unwrap();
    assert_eq!(outcome.transactions, 200);
    let mapped = resident_of_files().saturating_sub(before);
    assert!(mapped < LIMIT + (8 << 20), "{mapped} bytes of {data} are in memory");
}
