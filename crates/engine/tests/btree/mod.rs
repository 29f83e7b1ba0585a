//! The tree on pages of every kind of memory. The tests are generic over [`Pages`]: a new memory
//! is one more line in each macro call below.
//!
//! [`Pages`]: millpond::internals::pool::Pages

mod bulk;
mod cursors;
mod damage;
mod half_leaves;
mod harness;
mod in_place;
mod long_keys;
mod model;
mod space;
mod stale;
mod stress;
mod values;
