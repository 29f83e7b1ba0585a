//! Words that threads share without a lock, under every order that their memory orderings allow.
//!
//! `cargo test -p millpond --features loom --test loom_models`

mod epoch;
mod latch;
