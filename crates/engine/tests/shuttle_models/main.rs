//! Protocols of the engine under schedules that shuttle draws.
//!
//! `cargo test -p millpond --features shuttle --test shuttle_models`

mod checkpoint;
mod evictor_threads;
#[allow(dead_code, reason = "the pool's own tests use the rest")]
#[path = "../pool/forest.rs"]
mod forest;
mod lock;
mod log;
mod pool;
mod rows;
mod schedules;
#[allow(dead_code, reason = "the pool's own tests use the rest")]
#[path = "../pool/storage.rs"]
mod storage;
#[allow(dead_code, reason = "the log's own tests use the rest")]
#[path = "../log/support.rs"]
mod support;
mod tier;
mod tree;
