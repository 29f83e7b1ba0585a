//! Rows that come in random order of their keys, and a worker that inserts them in transactions of
//! any size: how an engine takes data that nobody has sorted.
//!
//! Keys have 24 bytes and values 150, as in redb's published benchmark. Row 0, row 1, row 2, … have
//! keys that are scattered evenly over the key space, so that counting up is inserting at random.
//! Each value follows from its key, so that a reader can check an entry without a record of what
//! was written. Threads take turns: worker t of T inserts rows t, t + T, t + 2T, …

mod rows;
mod worker;

pub use rows::{KEY_LEN, Rows, VALUE_LEN, is_value_of, value_of};
pub use worker::{Config, TABLE, Worker, create};
