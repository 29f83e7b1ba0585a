//! Rows in random key order, and a worker that inserts them in transactions of any size. The
//! workload shows how an engine takes unsorted data.
//!
//! Keys have 24 bytes and values 150, as in redb's published benchmark. The keys of row 0, row 1,
//! row 2, … are scattered evenly over the key space, so inserting rows by number is inserting at
//! random. Each value follows from its key, so a reader can check an entry without a record of the
//! writes. Threads take turns: worker t of T inserts rows t, t + T, t + 2T, …

mod rows;
mod worker;

pub use rows::{KEY_LEN, Rows, VALUE_LEN, is_value_of, value_of};
pub use worker::{Config, TABLE, Worker, create};
