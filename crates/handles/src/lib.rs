//! Handles of a store that own what they refer to, for languages without lifetimes.
//!
//! In Rust a range borrows its transaction, and the compiler sees to it that the transaction is
//! not over while it is read. C and Python have no such thing: there a [`Cursor`] may outlive its
//! transaction, be used by two threads, and be dropped in any order. These handles answer that
//! with an error, not with undefined behaviour:
//!
//! - a [`Transaction`] has its calls made one after the other, and its cursors go with it: when it
//!   ends, or goes back to a savepoint, they are over;
//! - a [`Cursor`] keeps alive what it reads: a tree, a snapshot, a transaction's rest;
//! - [`KeyType`] and [`ValueType`] encode [`Datum`]s as typed trees do, by the types' names, which
//!   trees keep.
//!
//! ```
//! use millpond::{Db, Options, TransactOptions};
//! use millpond_handles::{Cursor, Fault, Transaction};
//!
//! # fn main() -> Result<(), Fault> {
//! let db = Db::in_memory(Options::new().memory(16 << 20))?;
//! let ponds = db.raw_tree("ponds")?;
//! ponds.put(b"mill", b"deep")?;
//!
//! let tx = Transaction::begin(&db, None)?;
//! let mut cursor = tx.cursor(&ponds, millpond::KeyRange::ALL)?;
//! assert!(cursor.first()?);
//! assert_eq!(cursor.entry(), Some((&b"mill"[..], &b"deep"[..])));
//! tx.commit()?;
//! assert!(matches!(cursor.next(), Err(Fault::TransactionOver)));
//! # Ok(()) }
//! ```
//!
//! `crates/capi` and the Python package are made of these.
#![deny(missing_docs)]

mod cursor;
mod datum;
mod fault;
mod key_type;
mod range_cell;
mod shared;
mod transaction;
mod type_name;
mod value_type;

pub use cursor::Cursor;
pub use datum::{Datum, DatumError};
pub use fault::Fault;
pub use key_type::KeyType;
pub use transaction::{Transaction, transact};
pub use type_name::{DEPTH_MAX, TypeNameError};
pub use value_type::ValueType;
