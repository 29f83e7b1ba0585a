//! Tests of stores as users see them, in one program: each program links the engine anew.

#[path = "common/byte_calls.rs"]
mod byte_calls;
mod db;
mod examples;
mod golden_file;
#[path = "common/traced.rs"]
mod traced;
mod txn;
