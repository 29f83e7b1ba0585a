//! Key-value runs in the manner of YCSB, in the three shapes of the papers.
//!
//! | shape | rows | choice | operations | from |
//! |---|---|---|---|---|
//! | `leanstore` | 8-byte big-endian keys, 120-byte values | uniform, or Zipf | reads | leanstore VI-B |
//! | `watt` | the same | Zipf 0.9 | reads, or 90 % reads and 10 % updates | watt 6.2 |
//! | `gilbert` | random 10-byte keys, ten fields of 100 bytes | Zipf | read all fields, or update one | gilbert 2.3.1.1 |
//!
//! The three shapes are presets of one [`Config`], in which everything can be changed. The watt
//! paper does not give the length of its rows. It ran inside LeanStore, so LeanStore's rows are
//! assumed.
//!
//! [`create`] creates the table, and [`load`] fills it. Then each thread has a [`Worker`] and calls
//! [`Worker::step`] with its session: one operation in one transaction. Workers share nothing and a
//! step allocates nothing, so the run measures the store.
//!
//! **Values check themselves.** A field is eight bytes of version and then bytes that follow from
//! row, field and version ([`Shape::check`]). With [`Config::verify`] every value read is checked
//! in full. An update in place raises its field's version by one. So the versions of a table sum to
//! its number of updates, which reveals lost ones.
//!
//! **Inserts do not collide**: worker t of T adds rows n + t, n + t + T, … after the n loaded ones.
//! `Latest` draws by age among a worker's own new rows, newest first, and then among the loaded
//! ones, so it never draws a row that does not exist yet.

mod config;
mod load;
mod shape;
mod worker;

pub use config::{Config, ConfigError, LoadOrder, Mix, ReadStyle, TABLE, UpdateStyle};
pub use load::{create, load};
pub use shape::Shape;
pub use worker::{Operation, Step, Worker};
